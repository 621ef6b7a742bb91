//! Calls of legacy servers that wait for answers of their caller. Their number and waiting time are limited.

use super::UpstreamCall;
use crate::upstream::CallerKey;
use bowline_proto::{caller::user_of, service::ClientView};
use bowline_server::transport::random_id;
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How long a call waits for an answer.
const MAX_WAIT: Duration = Duration::from_secs(600);
/// How many calls may wait: in total, per session (or user without session), per user over all sessions, and for all
/// anonymous callers together.
const MAX_PARKED: usize = 1000;
const MAX_PER_CALLER: usize = 64;
const MAX_PER_USER: usize = 256;
const MAX_ANONYMOUS: usize = 256;

/// The calls that wait, each with its context.
pub(crate) struct ParkedCalls<T>(Mutex<HashMap<String, Parked<T>>>);

struct Parked<T> {
    call: UpstreamCall,
    context: T,
    caller: CallerKey,
    user: Option<Arc<str>>,
    since: Instant,
}

impl<T> Parked<T> {
    fn is_expired(&self) -> bool {
        self.since.elapsed() >= MAX_WAIT || self.call.is_abandoned() || self.caller.is_gone()
    }
}

impl<T> Default for ParkedCalls<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> ParkedCalls<T> {
    fn parked(&self) -> MutexGuard<'_, HashMap<String, Parked<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parks a call and returns its key. Returns the call itself if a limit is reached.
    pub(crate) fn park(
        &self,
        call: UpstreamCall,
        context: T,
        client: &Arc<ClientView>,
    ) -> Result<String, Box<(UpstreamCall, T)>> {
        self.sweep();
        let mut parked = self.parked();
        let (caller, user) = (CallerKey::quota(client), client.principal.as_ref().map(user_of));
        if !is_allowed(
            parked.values().map(|parked| (&parked.caller, parked.user.as_ref())),
            &caller,
            user.as_ref(),
        ) {
            return Err(Box::new((call, context)));
        }
        let key = random_id();
        parked.insert(key.clone(), Parked { call, context, caller, user, since: Instant::now() });
        Ok(key)
    }

    /// Removes a call to resume it.
    pub(crate) fn take(&self, key: &str) -> Option<(UpstreamCall, T)> {
        self.parked().remove(key).map(|parked| (parked.call, parked.context))
    }

    /// Cancels all calls.
    pub(crate) fn clear(&self) {
        // Dropped outside the lock, because dropping cancels them at their servers.
        let all = std::mem::take(&mut *self.parked());
        drop(all);
    }

    /// Cancels calls that expired or whose caller has gone.
    pub(crate) fn sweep(&self) {
        let expired: Vec<_> = {
            let mut parked = self.parked();
            let keys: Vec<_> =
                parked.iter().filter(|(_, parked)| parked.is_expired()).map(|(key, _)| key.clone()).collect();
            keys.iter().filter_map(|key| parked.remove(key)).collect()
        };
        // Dropped outside the lock, because dropping cancels them at their servers.
        drop(expired);
    }

    /// Returns how many calls wait.
    pub(crate) fn len(&self) -> usize {
        self.parked().len()
    }
}

/// Returns whether the limits allow one more call of a caller.
fn is_allowed<'a>(
    parked: impl Iterator<Item = (&'a CallerKey, Option<&'a Arc<str>>)>,
    caller: &CallerKey,
    user: Option<&Arc<str>>,
) -> bool {
    let (mut all, mut of_one, mut of_user) = (0, 0, 0);
    for (other, other_user) in parked {
        all += 1;
        of_one += usize::from(other == caller);
        of_user += usize::from(user.is_some() && other_user == user);
    }
    let max_of_one = if caller.is_anonymous() { MAX_ANONYMOUS } else { MAX_PER_CALLER };
    all < MAX_PARKED && of_one < max_of_one && of_user < MAX_PER_USER
}

impl<T> fmt::Debug for ParkedCalls<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParkedCalls").field("len", &self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_types::{RawJson, Revision};

    fn client(revision: Revision, user: Option<&str>) -> Arc<ClientView> {
        Arc::new(ClientView::new(revision, user.map(Arc::from), RawJson::empty_object(), None))
    }

    #[test]
    fn a_session_at_its_limit_does_not_block_others() {
        let legacy = |user| client(Revision::V2025_11_25, user);
        let (one, other) = (legacy(None), legacy(None));
        let (key, others) = (CallerKey::quota(&one), CallerKey::quota(&other));
        let full = vec![(&key, None); MAX_PER_CALLER];
        assert!(!is_allowed(full.iter().copied(), &key, None));
        assert!(
            is_allowed(full.iter().copied(), &others, None),
            "another session without a user has its own share"
        );

        // Requests that cannot be distinguished share one quota and leave the rest to others.
        let anybody = CallerKey::quota(&client(Revision::V2026_07_28, None));
        assert!(is_allowed(vec![(&anybody, None); MAX_PER_CALLER].into_iter(), &anybody, None));
        let full = vec![(&anybody, None); MAX_ANONYMOUS];
        assert!(!is_allowed(full.iter().copied(), &anybody, None));
        assert!(is_allowed(full.iter().copied(), &key, None));

        // Nobody gets more by opening sessions.
        let ada: Arc<str> = "ada".into();
        let sessions: Vec<_> = (0..MAX_PER_USER).map(|_| legacy(Some("ada"))).collect();
        let keys: Vec<_> = sessions.iter().map(CallerKey::quota).collect();
        let full = keys.iter().map(|key| (key, Some(&ada)));
        let next = legacy(Some("ada"));
        assert!(!is_allowed(full.clone(), &CallerKey::quota(&next), Some(&ada)));
        assert!(is_allowed(full, &CallerKey::quota(&legacy(Some("bob"))), Some(&"bob".into())));
    }
}
