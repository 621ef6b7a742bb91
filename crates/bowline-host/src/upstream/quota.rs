//! Limits calls per caller at a server, and per-client servers per user.

use super::CallerKey;
use bowline_proto::caller::user_of;
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many calls of one caller run at one server. Further calls wait and do not block other callers.
pub(crate) const MAX_CALLS: usize = 16;
/// The same for all anonymous callers together.
const MAX_CALLS_OF_ANYBODY: usize = 64;
/// The number of callers from which those without calls are removed.
const CROWD: usize = 64;

/// Limits the calls of each caller at one server.
#[derive(Debug, Default)]
pub(crate) struct CallQuota(Mutex<HashMap<CallerKey, Weak<Semaphore>>>);

impl CallQuota {
    /// Waits until the caller is below its limit. Dropping the permit releases it.
    pub(crate) async fn enter(&self, caller: &CallerKey) -> Option<OwnedSemaphorePermit> {
        // Fails only if the semaphore is closed, which it never is.
        self.slots(caller).acquire_owned().await.ok()
    }

    fn slots(&self, caller: &CallerKey) -> Arc<Semaphore> {
        let mut callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slots) = callers.get(caller).and_then(Weak::upgrade) {
            return slots;
        }
        if callers.len() >= CROWD {
            callers.retain(|_, slots| slots.strong_count() > 0);
        }
        let count = if caller.is_anonymous() { MAX_CALLS_OF_ANYBODY } else { MAX_CALLS };
        let slots = Arc::new(Semaphore::new(count));
        callers.insert(caller.clone(), Arc::downgrade(&slots));
        slots
    }
}

/// How many per-client servers may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstanceLimit {
    /// In total.
    pub(crate) total: usize,
    /// Per authenticated user, over all sessions.
    pub(crate) per_user: usize,
}

impl Default for InstanceLimit {
    fn default() -> Self {
        Self { total: 256, per_user: 64 }
    }
}

/// Counts the per-client servers that run.
#[derive(Default)]
pub(crate) struct InstanceQuota {
    limit: InstanceLimit,
    running: Mutex<Running>,
}

#[derive(Default)]
struct Running {
    total: usize,
    by_user: HashMap<Arc<str>, usize>,
}

impl InstanceQuota {
    pub(crate) fn new(limit: InstanceLimit) -> Arc<Self> {
        Arc::new(Self { limit, running: Mutex::default() })
    }

    /// Counts one more server. Returns the reason if the limit is reached.
    pub(crate) fn take(self: &Arc<Self>, caller: &CallerKey) -> Result<InstanceSlot, String> {
        let InstanceLimit { total, per_user } = self.limit;
        let user = caller.user().map(|principal| user_of(&principal));
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.total >= total {
            return Err(format!(
                "{total} per-client servers are running, the most this gateway starts; close unused clients, or raise \
                 `gateway.max_client_servers`"
            ));
        }
        if let Some(user) = &user {
            let count = running.by_user.entry(Arc::clone(user)).or_default();
            if *count >= per_user {
                return Err(format!(
                    "{per_user} per-client servers of this user are running, the most one user may have; close unused \
                     clients, or raise `gateway.max_client_servers_per_user`"
                ));
            }
            *count += 1;
        }
        running.total += 1;
        Ok(InstanceSlot { quota: Arc::clone(self), user })
    }
}

impl fmt::Debug for InstanceQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceQuota").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Counts one per-client server until it is dropped.
#[derive(Debug)]
pub(crate) struct InstanceSlot {
    quota: Arc<InstanceQuota>,
    user: Option<Arc<str>>,
}

impl Drop for InstanceSlot {
    fn drop(&mut self) {
        let mut running = self.quota.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.total = running.total.saturating_sub(1);
        if let Some(user) = &self.user
            && let Some(count) = running.by_user.get_mut(user)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                running.by_user.remove(user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> CallerKey {
        CallerKey::User(Some(name.into()))
    }

    #[test]
    fn per_client_servers_are_limited_by_user_and_in_total() {
        let quota = InstanceQuota::new(InstanceLimit { total: 3, per_user: 2 });
        let first = quota.take(&user("ada")).unwrap();
        let _second = quota.take(&user("ada")).unwrap();
        assert!(quota.take(&user("ada")).unwrap_err().contains("2 per-client servers of this user"));
        let _other = quota.take(&user("bob")).unwrap();
        assert!(quota.take(&CallerKey::User(None)).unwrap_err().contains("3 per-client servers are running"));
        drop(first);
        quota.take(&user("ada")).unwrap();
    }

    #[tokio::test]
    async fn each_caller_has_its_own_slots() {
        let quota = CallQuota::default();
        let mut slots = Vec::new();
        for _ in 0..MAX_CALLS {
            slots.push(quota.enter(&user("ada")).await);
        }
        let ada = user("ada");
        let mut waiting = std::pin::pin!(quota.enter(&ada));
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        assert!(quota.enter(&user("bob")).await.is_some());
        slots.pop();
        assert!(waiting.await.is_some());
    }
}
