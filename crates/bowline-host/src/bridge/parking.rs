//! Calls of legacy servers that wait for an answer of the caller: bounded, and not for ever.

use super::Flight;
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
/// How many calls may wait at once, of everybody and of one user.
const MAX_PARKED: usize = 1000;
const MAX_OF_ONE: usize = 64;

/// The calls that wait, each with what belongs to it.
pub(crate) struct Parking<T>(Mutex<HashMap<String, Parked<T>>>);

struct Parked<T> {
    flight: Flight,
    cargo: T,
    user: Option<Arc<str>>,
    since: Instant,
}

impl<T> Parked<T> {
    fn is_over(&self) -> bool {
        self.since.elapsed() >= PATIENCE || self.flight.is_abandoned()
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
        client: &ClientView,
    ) -> Result<String, Box<(Flight, T)>> {
        self.sweep();
        let mut parked = self.parked();
        let of_one = parked.values().filter(|other| other.user == client.principal).count();
        if parked.len() >= MAX_PARKED || of_one >= MAX_OF_ONE {
            return Err(Box::new((flight, cargo)));
        }
        let key = random_id();
        let user = client.principal.clone();
        parked.insert(key.clone(), Parked { flight, cargo, user, since: Instant::now() });
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

impl<T> fmt::Debug for Parking<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parking").field("len", &self.len()).finish()
    }
}
