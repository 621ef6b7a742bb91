//! The log of refused requests: each value once, in bounded memory.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

/// How many different refusals are logged. What a client sends must neither flood the log nor fill memory.
const MAX_LOGGED: usize = 64;

/// Remembers which refusals were logged.
#[derive(Debug, Default)]
pub(super) struct RefusalLog {
    logged: Mutex<HashSet<String>>,
}

impl RefusalLog {
    /// Logs a refusal unless it was logged before.
    pub(super) fn log(&self, reason: &str) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() >= MAX_LOGGED || !logged.insert(reason.to_owned()) {
            return;
        }
        let is_last = logged.len() == MAX_LOGGED;
        drop(logged);
        tracing::warn!("refused a request: {reason}");
        if is_last {
            tracing::warn!(
                "refused requests for {MAX_LOGGED} different reasons; further ones are not logged"
            );
        }
    }
}
