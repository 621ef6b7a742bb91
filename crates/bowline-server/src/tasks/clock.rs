//! The clock of the store, as this process knows it.

use bowline_store::Time;
use std::{
    sync::{Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::time::Instant;

/// Estimates the time of the store from the last record that was read. Between reads it follows the monotonic clock.
#[derive(Debug)]
pub(crate) struct Clock {
    seen: Mutex<(Instant, u64)>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Self { seen: Mutex::new((Instant::now(), millis)) }
    }

    /// The store has just said what time it is.
    pub(crate) fn observe(&self, time: Time) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), time.as_millis());
    }

    /// Milliseconds since the epoch.
    pub(crate) fn now(&self) -> u64 {
        let (seen, millis) = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = u64::try_from(seen.elapsed().as_millis()).unwrap_or(u64::MAX);
        millis.saturating_add(elapsed)
    }
}
