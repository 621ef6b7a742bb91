//! URL elicitations in progress: maps the id that a server chose to the call and the id that its caller was given.

use super::call_handle::{CallHandle, WeakCallHandle};
use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// How many are kept per server. At the limit, those of ended calls are dropped; if that does not help, new ones are not kept.
const MAX_ELICITATIONS: usize = 1000;

/// The URL elicitations of one server, by the id that the server chose.
#[derive(Default)]
pub(crate) struct UrlElicitations(Mutex<HashMap<String, (WeakCallHandle, String)>>);

impl UrlElicitations {
    fn entries(&self) -> MutexGuard<'_, HashMap<String, (WeakCallHandle, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a caller was sent to a URL.
    pub(crate) fn insert(&self, upstream_id: String, caller_id: String, call: &CallHandle) {
        let mut entries = self.entries();
        if entries.len() >= MAX_ELICITATIONS {
            entries.retain(|_, (call, _)| call.upgrade().is_some());
        }
        if entries.len() < MAX_ELICITATIONS {
            entries.insert(upstream_id, (call.downgrade(), caller_id));
        }
    }

    /// Removes an elicitation that is complete. Returns its call, if that still runs, and the id that the caller knows.
    pub(crate) fn take(&self, upstream_id: &str) -> Option<(CallHandle, String)> {
        let (call, caller_id) = self.entries().remove(upstream_id)?;
        Some((call.upgrade()?, caller_id))
    }
}

impl fmt::Debug for UrlElicitations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UrlElicitations").field("len", &self.entries().len()).finish()
    }
}
