//! Calls of legacy servers that wait for an answer of the caller: bounded, and not for ever.

use super::Flight;
use crate::upstream::CallerKey;
use bowline_proto::service::ClientView;
use bowline_server::transport::random_id;
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How long a call waits for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
/// How many calls may wait at once: of everybody, of one session or user without one, of all sessions of one user, and of
/// all callers together that cannot be told apart.
const MAX_PARKED: usize = 1000;
const MAX_OF_ONE: usize = 64;
const MAX_OF_USER: usize = 256;
const MAX_OF_ANYBODY: usize = 256;

/// The calls that wait, each with what belongs to it.
pub(crate) struct Parking<T>(Mutex<HashMap<String, Parked<T>>>);

struct Parked<T> {
    flight: Flight,
    cargo: T,
    caller: CallerKey,
    user: Option<Arc<str>>,
    since: Instant,
}

impl<T> Parked<T> {
    fn is_over(&self) -> bool {
        self.since.elapsed() >= PATIENCE || self.flight.is_abandoned() || self.caller.is_gone()
    }
}

impl<T> Default for Parking<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Parking<T> {
    fn parked(&self) -> MutexGuard<'_, HashMap<String, Parked<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parks a call, and gives the key to find it by; the call itself when there is no room.
    pub(crate) fn park(
        &self,
        flight: Flight,
        cargo: T,
        client: &Arc<ClientView>,
    ) -> Result<String, Box<(Flight, T)>> {
        self.sweep();
        let mut parked = self.parked();
        let (caller, user) = (CallerKey::quota(client), client.principal.clone());
        if !has_room(parked.values().map(|call| (&call.caller, call.user.as_ref())), &caller, user.as_ref()) {
            return Err(Box::new((flight, cargo)));
        }
        let key = random_id();
        parked.insert(key.clone(), Parked { flight, cargo, caller, user, since: Instant::now() });
        Ok(key)
    }

    /// Takes a call out to go on with it.
    pub(crate) fn take(&self, key: &str) -> Option<(Flight, T)> {
        self.parked().remove(key).map(|parked| (parked.flight, parked.cargo))
    }

    /// Gives all of them up.
    pub(crate) fn clear(&self) {
        // Dropped outside the lock: that tells their servers.
        let all = std::mem::take(&mut *self.parked());
        drop(all);
    }

    /// Gives up calls that nobody will come back for.
    pub(crate) fn sweep(&self) {
        let expired: Vec<_> = {
            let mut parked = self.parked();
            let keys: Vec<_> =
                parked.iter().filter(|(_, call)| call.is_over()).map(|(key, _)| key.clone()).collect();
            keys.iter().filter_map(|key| parked.remove(key)).collect()
        };
        // Dropped outside the lock: that tells their servers.
        drop(expired);
    }

    /// How many calls wait.
    pub(crate) fn len(&self) -> usize {
        self.parked().len()
    }
}

/// Whether one more call of a caller may wait beside these.
fn has_room<'a>(
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
    let max_of_one = if caller.is_anybody() { MAX_OF_ANYBODY } else { MAX_OF_ONE };
    all < MAX_PARKED && of_one < max_of_one && of_user < MAX_OF_USER
}

impl<T> fmt::Debug for Parking<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parking").field("len", &self.len()).finish()
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
    fn a_session_that_fills_its_share_leaves_room_for_others() {
        let legacy = |user| client(Revision::V2025_11_25, user);
        let (one, other) = (legacy(None), legacy(None));
        let (key, others) = (CallerKey::quota(&one), CallerKey::quota(&other));
        let full = vec![(&key, None); MAX_OF_ONE];
        assert!(!has_room(full.iter().copied(), &key, None));
        assert!(
            has_room(full.iter().copied(), &others, None),
            "another session without a user has its own share"
        );

        // Requests that nobody can tell apart share one quota, and leave the rest to others.
        let anybody = CallerKey::quota(&client(Revision::V2026_07_28, None));
        assert!(has_room(vec![(&anybody, None); MAX_OF_ONE].into_iter(), &anybody, None));
        let full = vec![(&anybody, None); MAX_OF_ANYBODY];
        assert!(!has_room(full.iter().copied(), &anybody, None));
        assert!(has_room(full.iter().copied(), &key, None));

        // Nobody gets more by opening sessions.
        let ada: Arc<str> = "ada".into();
        let sessions: Vec<_> = (0..MAX_OF_USER).map(|_| legacy(Some("ada"))).collect();
        let keys: Vec<_> = sessions.iter().map(CallerKey::quota).collect();
        let full = keys.iter().map(|key| (key, Some(&ada)));
        let next = legacy(Some("ada"));
        assert!(!has_room(full.clone(), &CallerKey::quota(&next), Some(&ada)));
        assert!(has_room(full, &CallerKey::quota(&legacy(Some("bob"))), Some(&"bob".into())));
    }
}
