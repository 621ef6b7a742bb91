//! Frames on their way out: written together, in order, by one task.

use crate::transport::Sink;
use bowline_proto::lines;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// How large an emptied buffer may stay.
const KEPT: usize = 64 * 1024;

/// The frames waiting to be written.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    /// How many bytes may wait before frames that may be lost are.
    limit: usize,
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
    pub(crate) fn new(limit: usize) -> Self {
        Self { queue: Mutex::default(), limit, filled: Notify::new(), emptied: Notify::new() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Whether there is room for more.
    pub(crate) fn has_room(&self) -> bool {
        let queue = self.queue();
        queue.bytes.len() < self.limit || queue.closed
    }

    /// Completes when there is room for more.
    pub(crate) async fn room(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.has_room() {
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
}

impl Sink for Outbox {
    /// Frames vanish once the connection has ended.
    fn write(&self, write: &mut dyn FnMut(&mut Vec<u8>) -> bool) {
        let mut queue = self.queue();
        let length = queue.bytes.len();
        if !write(&mut queue.bytes) {
            return;
        }
        lines::join(queue.bytes.get_mut(length..).unwrap_or_default());
        queue.bytes.push(b'\n');
        if queue.closed {
            queue.bytes.truncate(length);
        }
        drop(queue);
        self.filled.notify_one();
    }

    fn offer(&self, frame: &[u8]) {
        if self.has_room() {
            self.push(frame);
        }
    }
}
