//! Frames on their way out: written together, in order, by one task.

use bytes::{Bytes, BytesMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

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
    bytes: BytesMut,
    closed: bool,
}

impl Outbox {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a frame. After the connection has ended, frames vanish.
    pub(crate) fn push(&self, frame: &Bytes) {
        let mut queue = self.queue();
        if queue.closed {
            return;
        }
        queue.bytes.reserve(frame.len() + 1);
        queue.bytes.extend_from_slice(frame);
        queue.bytes.extend_from_slice(b"\n");
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

    /// Takes what waits; completes when there may be something.
    pub(crate) async fn filled(&self) {
        self.filled.notified().await;
    }

    pub(crate) fn take(&self) -> BytesMut {
        let bytes = std::mem::take(&mut self.queue().bytes);
        self.emptied.notify_waiters();
        bytes
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
