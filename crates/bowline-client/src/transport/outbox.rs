//! Frames to send, written in order by one task.

use bowline_proto::lines;
use bytes::{Bytes, BytesMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Requests wait while at least this many bytes are queued.
const ROOM: usize = 1024 * 1024;

/// The frames to write.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    /// Wakes the writer.
    filled: Notify,
    /// Wakes tasks that wait for space.
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

    /// Adds a frame as one line. After the connection was closed, frames are dropped.
    pub(super) fn push(&self, frame: &Bytes) {
        let mut queue = self.queue();
        if queue.closed {
            return;
        }
        let start = queue.bytes.len();
        queue.bytes.reserve(frame.len() + 1);
        queue.bytes.extend_from_slice(frame);
        lines::join(queue.bytes.get_mut(start..).unwrap_or_default());
        queue.bytes.extend_from_slice(b"\n");
        drop(queue);
        self.filled.notify_one();
    }

    /// Waits for queued data and takes it. Returns `None` if there will be no more.
    pub(super) async fn take(&self) -> Option<BytesMut> {
        loop {
            {
                let mut queue = self.queue();
                if !queue.bytes.is_empty() {
                    let bytes = std::mem::take(&mut queue.bytes);
                    self.emptied.notify_waiters();
                    return Some(bytes);
                }
                if queue.closed {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }

    /// Waits until there is space for another request.
    pub(super) async fn wait_for_space(&self) {
        loop {
            let emptied = self.emptied.notified();
            {
                let queue = self.queue();
                if queue.bytes.len() < ROOM || queue.closed {
                    return;
                }
            }
            emptied.await;
        }
    }

    /// Lets the writer end after everything is written.
    pub(super) fn close(&self) {
        self.queue().closed = true;
        self.filled.notify_one();
        self.emptied.notify_waiters();
    }
}
