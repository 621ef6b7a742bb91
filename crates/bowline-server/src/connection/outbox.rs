//! Frames on their way out: written together, in order, by one task.

use bytes::Bytes;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// How large an emptied buffer may stay.
const KEPT: usize = 64 * 1024;

/// The frames waiting to be written.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    /// Wakes the writer.
    filled: Notify,
    /// Wakes who waits for room.
    emptied: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    bytes: Vec<u8>,
    closed: bool,
}

impl Outbox {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a frame. After the connection has ended, frames vanish.
    pub(crate) fn push(&self, frame: &[u8]) {
        self.write(|bytes| {
            bytes.reserve(frame.len() + 1);
            bytes.extend_from_slice(frame);
            true
        });
    }

    /// Adds the frame that `write` appends, if it says that it did.
    pub(crate) fn write(&self, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let mut queue = self.queue();
        let length = queue.bytes.len();
        if !write(&mut queue.bytes) {
            return;
        }
        queue.bytes.push(b'\n');
        if queue.closed {
            queue.bytes.truncate(length);
        }
        drop(queue);
        self.filled.notify_one();
    }

    /// Adds a frame unless more than `limit` bytes wait already: for what may be lost.
    pub(crate) fn offer(&self, frame: &Bytes, limit: usize) {
        if self.queue().bytes.len() < limit {
            self.push(frame);
        }
    }

    /// Wakes the writer for something else than a frame.
    pub(crate) fn nudge(&self) {
        self.filled.notify_one();
    }

    /// Completes when there may be something to write.
    pub(crate) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Swaps what waits for an emptied buffer, so that the two take turns.
    pub(crate) fn take(&self, bytes: &mut Vec<u8>) {
        bytes.clear();
        // A buffer that grew for one large frame is not kept for small ones.
        bytes.shrink_to(KEPT);
        std::mem::swap(&mut self.queue().bytes, bytes);
        self.emptied.notify_waiters();
    }

    fn has_room(&self, limit: usize) -> bool {
        let queue = self.queue();
        queue.bytes.len() < limit || queue.closed
    }

    /// Completes when less than `limit` bytes wait.
    pub(crate) async fn room(&self, limit: usize) {
        loop {
            let emptied = self.emptied.notified();
            if self.has_room(limit) {
                return;
            }
            emptied.await;
        }
    }

    /// Lets the writer end once everything is written.
    pub(crate) fn close(&self) {
        self.queue().closed = true;
        self.filled.notify_one();
        self.emptied.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.queue().closed
    }
}
