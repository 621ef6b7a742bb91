//! Who was sent to which page: a server tells the end of a visit by the id it gave the page.

use super::pilot::{Pilot, WeakPilot};
use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// How many visits of one server may be under way before those of calls that are over are forgotten, and new ones not kept.
const MAX_VISITS: usize = 1000;

/// The pages that callers of one server were sent to: by the server's id, the call and the id that its caller was given.
#[derive(Default)]
pub(crate) struct Visitors(Mutex<HashMap<String, (WeakPilot, String)>>);

impl Visitors {
    fn visits(&self) -> MutexGuard<'_, HashMap<String, (WeakPilot, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A caller is sent to a page.
    pub(crate) fn note(&self, theirs: String, ours: String, pilot: &Pilot) {
        let mut visits = self.visits();
        if visits.len() >= MAX_VISITS {
            visits.retain(|_, (pilot, _)| pilot.upgrade().is_some());
        }
        if visits.len() < MAX_VISITS {
            visits.insert(theirs, (pilot.downgrade(), ours));
        }
    }

    /// The visit is over: whose it was, if its call still runs, and by which id.
    pub(crate) fn take(&self, theirs: &str) -> Option<(Pilot, String)> {
        let (pilot, ours) = self.visits().remove(theirs)?;
        Some((pilot.upgrade()?, ours))
    }
}

impl fmt::Debug for Visitors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visitors").field("len", &self.visits().len()).finish()
    }
}
