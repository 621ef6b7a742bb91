//! Limits per-client servers, in total and per user.

use super::CallerKey;
use bowline_proto::caller::user_of;
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

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
}
