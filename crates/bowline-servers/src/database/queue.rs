//! Limits how many statements of a database run at once, and how many wait.
//!
//! Every database server has its own queue. Waiting statements use no thread and no connection, so other servers in the same
//! process are not affected.

use super::error::Error;
use std::{sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The queue of a database server. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// One permit per statement that may run.
    running: Arc<Semaphore>,
    /// One permit per statement that may run or wait.
    admitted: Arc<Semaphore>,
    max_running: usize,
    max_waiting: usize,
}

/// A slot to run a statement. Dropping the last clone frees it.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    _permits: Arc<[OwnedSemaphorePermit; 2]>,
}

impl Queue {
    pub(super) fn new(max_running: usize, max_waiting: usize) -> Self {
        let max_running = max_running.clamp(1, Semaphore::MAX_PERMITS / 2);
        let max_waiting = max_waiting.min(Semaphore::MAX_PERMITS / 2);
        Self {
            running: Arc::new(Semaphore::new(max_running)),
            admitted: Arc::new(Semaphore::new(max_running + max_waiting)),
            max_running,
            max_waiting,
        }
    }

    /// Waits for a slot, at most `timeout`. Fails immediately if too many statements are already waiting.
    pub(super) async fn enter(&self, timeout: Duration) -> Result<Slot, Error> {
        let busy = || Error::busy(self.max_running, self.max_waiting);
        let admitted = Arc::clone(&self.admitted).try_acquire_owned().map_err(|_| busy())?;
        let permit = tokio::time::timeout(timeout, Arc::clone(&self.running).acquire_owned()).await;
        let running = permit.map_err(|_| busy())?.map_err(|_| busy())?;
        Ok(Slot { _permits: Arc::new([admitted, running]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn statements_beyond_the_queue_are_refused() {
        let queue = Queue::new(1, 1);
        let first = queue.enter(Duration::from_secs(1)).await.unwrap();
        let second = tokio::spawn({
            let queue = queue.clone();
            async move { queue.enter(Duration::from_secs(3600)).await.map(drop) }
        });
        tokio::task::yield_now().await;
        let refused = queue.enter(Duration::from_secs(1)).await.unwrap_err().to_string();
        assert_eq!(refused, "the database is busy (1 statements running, 1 waiting); try again later");
        let shared = first.clone();
        drop(first);
        assert!(!second.is_finished(), "a clone keeps the slot");
        drop(shared);
        second.await.unwrap().unwrap();
        let held = queue.enter(Duration::from_secs(1)).await.unwrap();
        queue.enter(Duration::from_secs(1)).await.unwrap_err();
        drop(held);
        queue.enter(Duration::from_secs(1)).await.unwrap();
    }
}
