//! The outgoing events of one stream.

use super::{
    retention::{EVENT_OVERHEAD, Retention},
    service::Shared,
};
use bowline_proto::sse::{EventRef, encode_event};
use bowline_server::transport::Sink;
use bytes::Bytes;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};

/// The events of one stream. Those that may be lost are, when a client does not read them; of the others a stream has
/// few: the response to its call, or the names of what changed.
#[derive(Debug)]
pub(super) struct Events {
    queue: Mutex<Queue>,
    limit: usize,
    byte_limit: usize,
    /// The budget of retained events of all streams.
    retention: Arc<Retention>,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Bytes>,
    bytes: usize,
    waker: Option<Waker>,
}

impl Events {
    /// Returns the events of a new stream of an endpoint.
    pub(super) fn of(shared: &Shared) -> Self {
        Self {
            queue: Mutex::default(),
            limit: shared.options.max_events,
            byte_limit: shared.options.max_event_bytes,
            retention: Arc::clone(&shared.retention),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn pop(&self) -> Option<Bytes> {
        let mut queue = self.queue();
        let frame = queue.frames.pop_front()?;
        queue.bytes -= frame.len();
        self.retention.release(frame.len() + EVENT_OVERHEAD);
        Some(frame)
    }

    pub(super) fn len(&self) -> usize {
        self.queue().frames.len()
    }

    /// Wakes this one at the next event.
    pub(super) fn register(&self, waker: &Waker) {
        let mut queue = self.queue();
        if queue.waker.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            queue.waker = Some(waker.clone());
        }
    }

    pub(super) fn wake(&self) {
        let waker = self.queue().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn add(&self, frame: Bytes, spare: bool) {
        let mut queue = self.queue();
        let full = queue.frames.len() >= self.limit || queue.bytes + frame.len() > self.byte_limit;
        // One frame always fits, however long: the limit is for those that pile up.
        if spare && full && !queue.frames.is_empty() {
            return;
        }
        let size = frame.len() + EVENT_OVERHEAD;
        if spare && !self.retention.has_space(size) {
            return;
        }
        self.retention.charge(size);
        queue.bytes += frame.len();
        queue.frames.push_back(frame);
        drop(queue);
        self.wake();
        self.retention.reclaim();
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let queue = self.queue.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.retention.release(queue.bytes + queue.frames.len() * EVENT_OVERHEAD);
    }
}

impl Sink for Events {
    fn write(&self, write: &mut dyn FnMut(&mut Vec<u8>) -> bool) {
        let mut frame = Vec::new();
        if write(&mut frame) {
            self.add(frame.into(), false);
        }
    }

    fn offer(&self, frame: &[u8]) {
        self.add(Bytes::copy_from_slice(frame), true);
    }
}

/// Encodes a message as an event.
pub(super) fn event(message: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(message.len() + 32);
    let event = EventRef { event: Some("message"), data: message, ..EventRef::default() };
    // Encoding fails only for an id or a name with a line break, and there is none.
    drop(encode_event(&mut out, &event));
    out.into()
}

/// Returns a comment that keeps an idle stream open.
pub(super) fn comment() -> Bytes {
    Bytes::from_static(b": keep-alive\n\n")
}
