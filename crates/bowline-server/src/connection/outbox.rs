//! Frames to send, written in order by one task.

use crate::transport::Sink;
use bowline_proto::{encode, lines};
use bowline_types::Id;
use bytes::Bytes;
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};
use tokio::sync::Notify;

/// Maximum capacity of an empty buffer. Below the size of common large messages, every one of them would cost the system
/// calls and page faults of a new buffer.
const KEPT: usize = 256 * 1024;
/// From which length on it pays to send a part from where it is.
const SHARED: usize = 4 * 1024;

/// The frames waiting to be written.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    /// How many bytes may wait before frames that may be lost are.
    limit: usize,
    /// Wakes tasks that wait for space.
    emptied: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    frames: Frames,
    /// Whether there may be notifications to write.
    has_notifications: bool,
    closed: bool,
    /// Wakes the writer.
    writer: Option<Waker>,
}

/// A sequence of frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
    /// Large parts that are not copied, each with its position in `bytes`.
    shared: Vec<(usize, Bytes)>,
}

impl Frames {
    /// Returns the number of bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() + self.shared.iter().map(|(_, part)| part.len()).sum::<usize>()
    }

    /// Returns the bytes after the first `skipped`, in chunks.
    pub(super) fn pieces(&self, mut skipped: usize) -> impl Iterator<Item = &[u8]> {
        let ends = self.shared.iter().map(|(end, _)| *end).chain([self.bytes.len()]);
        let starts = [0].into_iter().chain(self.shared.iter().map(|(start, _)| *start));
        let own = starts.zip(ends).map(|(start, end)| self.bytes.get(start..end).unwrap_or_default());
        let parts = self.shared.iter().map(|(_, part)| &**part).chain([&[][..]]);
        own.zip(parts).flat_map(|(own, part)| [own, part]).filter_map(move |piece| {
            let rest = piece.get(skipped.min(piece.len())..).unwrap_or_default();
            skipped -= piece.len() - rest.len();
            (!rest.is_empty()).then_some(rest)
        })
    }

    fn clear(&mut self) {
        self.bytes.clear();
        // A buffer that grew for one large frame is not kept.
        self.bytes.shrink_to(KEPT);
        self.shared.clear();
    }
}

impl Outbox {
    pub(crate) fn new(limit: usize) -> Self {
        Self { queue: Mutex::default(), limit, emptied: Notify::new() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the writer for something else than a frame.
    pub(crate) fn notify_writer(&self) {
        let mut queue = self.queue();
        queue.has_notifications = true;
        wake(queue);
    }

    /// Completes when there may be something to write.
    pub(super) fn poll_filled(&self, context: &Context<'_>) -> Poll<()> {
        let mut queue = self.queue();
        if queue.has_notifications || queue.frames.len() > 0 {
            return Poll::Ready(());
        }
        queue.writer = Some(context.waker().clone());
        Poll::Pending
    }

    /// The task of the writer is at work and will look by itself: it need not be woken.
    pub(super) fn clear_waker(&self) {
        self.queue().writer = None;
    }

    /// Returns whether there may be new data to write, and resets the flag.
    pub(super) fn take_has_notifications(&self) -> bool {
        std::mem::take(&mut self.queue().has_notifications)
    }

    /// Swaps the queued frames with an empty buffer, so that two buffers alternate.
    pub(super) fn take(&self, frames: &mut Frames) {
        frames.clear();
        std::mem::swap(&mut self.queue().frames, frames);
        self.emptied.notify_waiters();
    }

    /// Returns whether there is space for more.
    pub(crate) fn has_space(&self) -> bool {
        let queue = self.queue();
        queue.frames.len() < self.limit || queue.closed
    }

    /// Waits until there is space for more.
    pub(crate) async fn wait_for_space(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.has_space() {
                return;
            }
            emptied.await;
        }
    }

    /// Takes no more.
    pub(crate) fn close(&self) {
        self.queue().closed = true;
        self.emptied.notify_waiters();
    }
}

fn wake(mut queue: MutexGuard<'_, Queue>) {
    let writer = queue.writer.take();
    drop(queue);
    if let Some(writer) = writer {
        writer.wake();
    }
}

impl Sink for Outbox {
    /// Frames vanish once the connection has ended.
    fn write(&self, write: &mut dyn FnMut(&mut Vec<u8>) -> bool) {
        let mut queue = self.queue();
        let bytes = &mut queue.frames.bytes;
        let length = bytes.len();
        if !write(bytes) {
            return;
        }
        lines::join(bytes.get_mut(length..).unwrap_or_default());
        bytes.push(b'\n');
        if queue.closed {
            queue.frames.bytes.truncate(length);
        }
        wake(queue);
    }

    fn push_response(&self, id: &Id, result: &Bytes) {
        let mut queue = self.queue();
        if queue.closed {
            return;
        }
        let Frames { bytes, shared } = &mut queue.frames;
        encode::start_response(bytes, id);
        if result.len() < SHARED {
            bytes.extend_from_slice(result);
        } else {
            shared.push((bytes.len(), result.clone()));
        }
        bytes.extend_from_slice(b"}\n");
        wake(queue);
    }

    fn offer(&self, frame: &[u8]) {
        if self.has_space() {
            self.push(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_parts_are_in_place_at_any_write_position() {
        let outbox = Outbox::new(1 << 20);
        let large = Bytes::from(format!("{{\"a\":\"{}\"}}", "x".repeat(SHARED)));
        outbox.push(b"first");
        outbox.push_response(&Id::from(1), &large);
        outbox.push_response(&Id::from(2), &large);
        outbox.push_response(&Id::from(3), &Bytes::from_static(b"{}"));
        let mut frames = Frames::default();
        outbox.take(&mut frames);
        let response =
            |id: u32, result: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
        let large = std::str::from_utf8(&large).unwrap();
        let whole = ["first\n", &response(1, large), &response(2, large), &response(3, "{}")].concat();
        assert_eq!(frames.len(), whole.len());
        for skipped in 0..=whole.len() {
            let pieces: Vec<_> = frames.pieces(skipped).collect();
            assert_eq!(pieces.concat(), whole.as_bytes()[skipped..], "{skipped}");
        }
    }
}
