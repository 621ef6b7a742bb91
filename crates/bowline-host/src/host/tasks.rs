//! Background tasks that end with the host.

use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// The background tasks of a host.
#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<Vec<AbortHandle>>);

impl Tasks {
    fn handles(&self) -> MutexGuard<'_, Vec<AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let handle = tokio::spawn(task).abort_handle();
        let mut handles = self.handles();
        handles.retain(|handle| !handle.is_finished());
        handles.push(handle);
    }

    pub(super) fn abort_all(&self) {
        for handle in self.handles().drain(..) {
            handle.abort();
        }
    }
}
