//! The events of one stream, retained so that a reader can resume it.

use super::log::{EventLog, EventStore};
use crate::server::retention::{EVENT_OVERHEAD, EventBuffer, Eviction, Retention};
use bowline_server::transport::Sink;
use bytes::Bytes;
use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    task::Waker,
};
use tokio::time::Instant;

/// Creates the logs of a session's streams.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) store: Arc<dyn EventStore>,
    pub(super) session: Arc<str>,
    pub(super) bounds: Bounds,
    /// The budget of retained events of all sessions.
    pub(super) retention: Arc<Retention>,
    /// Makes the names of streams unique among processes.
    pub(super) prefix: Option<Arc<str>>,
}

/// How many events, and bytes of them, one stream keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) events: usize,
    pub(super) bytes: usize,
}

/// One stream of a session.
#[derive(Debug)]
pub(in crate::server) struct Stream {
    pub(super) number: u64,
    /// The name in the ids of its events.
    pub(in crate::server) name: Arc<str>,
    source: Source,
    /// Whether a disconnected reader knows that it can resume.
    returning: bool,
    /// Its number among the streams that can be dropped to free memory.
    retained: OnceLock<u64>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The events, counted from 1; 0 is the priming event. Opened for the first of them.
    log: Option<Box<dyn EventLog>>,
    /// Everything below was handed to a reader.
    delivered: u64,
    /// Since when there will be no more.
    finished: Option<Instant>,
    /// Whether the reader was disconnected and has not resumed.
    hung_up: bool,
    /// Rises with every reader; only the newest one reads.
    readers: u64,
    /// Whether the newest reader is still connected.
    is_read: bool,
    /// The bytes counted in the budget of all streams.
    charged: usize,
    /// The number of events before the first of the log, for a stream that began in another process.
    offset: u64,
    /// Events that wait until they are stored.
    #[cfg(feature = "store")]
    staged: Option<Staged>,
    /// From this event on, the stream cannot be resumed.
    #[cfg(feature = "store")]
    live_from: Option<u64>,
    waker: Option<Waker>,
}

/// Events that nobody reads until they are stored.
#[cfg(feature = "store")]
#[derive(Debug, Default)]
struct Staged {
    events: std::collections::VecDeque<Bytes>,
    bytes: usize,
    /// Whether no more events follow.
    has_ended: bool,
    changed: Arc<tokio::sync::Notify>,
}

/// Events to be stored together.
#[cfg(feature = "store")]
#[derive(Debug, Default)]
pub(in crate::server) struct Batch {
    pub(in crate::server) events: Vec<Bytes>,
    /// Whether the stream ends with them.
    pub(in crate::server) is_last: bool,
}

/// The most events, and bytes of them, that are stored together. One event may be longer.
#[cfg(feature = "store")]
pub(in crate::server) const MAX_BATCH: (usize, usize) = (64, 256 * 1024);

/// The result of reading.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The event of this number.
    Event(u64, Bytes),
    /// Nothing yet.
    Wait,
    /// Nothing ever again: the stream is finished, or somebody else reads it now.
    End,
}

/// The state of the response to a POST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// There is nothing yet.
    Nothing,
    /// It is a response and nothing else.
    Whole,
    /// It is a stream.
    Events,
}

impl Stream {
    pub(super) fn new(number: u64, source: Source, returning: bool) -> Self {
        let state = Mutex::new(State { delivered: 1, ..State::default() });
        let name =
            source.prefix.as_ref().map_or_else(|| number.to_string(), |prefix| format!("{prefix}.{number}"));
        Self { number, name: name.into(), source, returning, retained: OnceLock::new(), state }
    }

    /// Creates the copy of a stream of another process, behind the event `after`.
    #[cfg(feature = "store")]
    pub(super) fn copy(name: Arc<str>, source: Source, after: u64) -> Self {
        let state = Mutex::new(State { delivered: after + 1, offset: after, ..State::default() });
        Self { number: u64::MAX, name, source, returning: false, retained: OnceLock::new(), state }
    }

    /// From now on nobody reads an event before it is [published](Self::publish). False if it was so already.
    #[cfg(feature = "store")]
    pub(in crate::server) fn stage(&self) -> bool {
        let mut state = self.state();
        if state.staged.is_some() {
            return false;
        }
        let mut staged = Staged { has_ended: state.finished.take().is_some(), ..Staged::default() };
        if let Some(log) = state.log.take() {
            for event in (log.first()..log.first() + log.len() as u64).filter_map(|number| log.get(number)) {
                staged.bytes += event.len();
                staged.events.push_back(event);
            }
        }
        state.staged = Some(staged);
        self.settle(&mut state);
        true
    }

    /// Returns the next events to store; `None` after the last.
    #[cfg(feature = "store")]
    pub(in crate::server) async fn next_batch(&self) -> Option<Batch> {
        loop {
            let changed = {
                let mut state = self.state();
                let staged = state.staged.as_mut()?;
                if !staged.events.is_empty() || staged.has_ended {
                    let mut batch = Batch::default();
                    let mut bytes = 0;
                    while batch.events.len() < MAX_BATCH.0
                        && let Some(event) = staged.events.front()
                        && (batch.events.is_empty() || bytes + event.len() <= MAX_BATCH.1)
                    {
                        bytes += event.len();
                        batch.events.extend(staged.events.pop_front());
                    }
                    staged.bytes -= bytes;
                    batch.is_last = staged.has_ended && staged.events.is_empty();
                    self.settle(&mut state);
                    return Some(batch);
                }
                Arc::clone(&staged.changed)
            };
            changed.notified().await;
        }
    }

    /// Returns the number of bytes that wait to be stored.
    #[cfg(feature = "store")]
    pub(in crate::server) fn staged_bytes(&self) -> usize {
        self.state().staged.as_ref().map_or(0, |staged| staged.bytes)
    }

    /// Lets the reader have these events, and end after them if they are the last.
    #[cfg(feature = "store")]
    pub(in crate::server) fn publish(&self, batch: Batch) {
        let mut state = self.state();
        if batch.is_last {
            // What is added after this is dropped.
            state.staged = None;
        }
        for event in batch.events {
            self.append(&mut state, event);
        }
        if batch.is_last {
            state.finished.get_or_insert_with(Instant::now);
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        self.source.retention.reclaim();
    }

    /// Events from now on have no id, because they are not stored.
    #[cfg(feature = "store")]
    pub(in crate::server) fn go_live(&self) {
        let mut state = self.state();
        let next = state.first() + state.len() as u64;
        state.live_from.get_or_insert(next);
    }

    /// Returns whether a client can resume after this event.
    pub(super) fn has_id(&self, number: u64) -> bool {
        #[cfg(feature = "store")]
        return self.state().live_from.is_none_or(|from| number < from);
        #[cfg(not(feature = "store"))]
        {
            let _ = number;
            true
        }
    }

    /// Lets the budget drop events of this stream if there is not enough space.
    pub(super) fn retain(self: &Arc<Self>) {
        self.retained.get_or_init(|| {
            let stream: Weak<Self> = Arc::downgrade(self);
            self.source.retention.join(stream)
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Becomes the one reader of the stream, behind the event `after`. `None` when there never was such an event, or what
    /// follows it is no longer kept.
    pub(super) fn attach(&self, after: u64) -> Option<u64> {
        let mut state = self.state();
        if !state.goes_on_after(after) {
            return None;
        }
        state.readers += 1;
        state.is_read = true;
        // The first reader of a stream that was hung up before it began is sent away after its opening.
        state.hung_up &= state.readers == 1;
        let (reader, waker) = (state.readers, state.waker.take());
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Some(reader)
    }

    /// Returns whether a reader that knows the events up to this one can read on.
    #[cfg(feature = "store")]
    pub(super) fn goes_on_after(&self, number: u64) -> bool {
        self.state().goes_on_after(number)
    }

    /// Sends the reader away, because another process serves the stream now.
    #[cfg(feature = "store")]
    pub(in crate::server) fn end_reader(&self) {
        let mut state = self.state();
        state.readers += 1;
        state.is_read = false;
        drop(state);
        self.wake();
    }

    /// Returns whether a client reads the stream.
    #[cfg(feature = "store")]
    pub(in crate::server) fn is_read(&self) -> bool {
        self.state().is_read
    }

    /// Returns the number of the last event; 0 if there was none.
    #[cfg(feature = "store")]
    pub(in crate::server) fn last(&self) -> u64 {
        let state = self.state();
        state.first() + state.len() as u64 - 1
    }

    /// Notes that a reader is gone.
    pub(super) fn detach(&self, reader: u64) {
        let mut state = self.state();
        if state.readers == reader {
            state.is_read = false;
        }
    }

    /// Returns the event `number`, or the state of the stream if there is none.
    pub(super) fn next(&self, reader: u64, number: u64, waker: &Waker) -> Next {
        let mut state = self.state();
        if state.readers != reader || number < state.first() || state.hung_up {
            return Next::End;
        }
        let offset = state.offset;
        if let Some(event) = state.log.as_ref().and_then(|log| log.get(number.checked_sub(offset)?)) {
            state.delivered = state.delivered.max(number + 1);
            return Next::Event(number, event);
        }
        if state.finished.is_some() {
            return Next::End;
        }
        state.waker = Some(waker.clone());
        Next::Wait
    }

    /// Returns the last event that was delivered or dropped; 0 before the first.
    pub(super) fn delivered(&self) -> u64 {
        let state = self.state();
        state.delivered.max(state.first()) - 1
    }

    /// Returns how a response should start.
    pub(super) fn progress(&self, waker: &Waker) -> Progress {
        let mut state = self.state();
        state.waker = Some(waker.clone());
        match (state.len(), state.finished.is_some()) {
            _ if state.hung_up => Progress::Events,
            (0 | 1, true) => Progress::Whole,
            (0, false) => Progress::Nothing,
            _ => Progress::Events,
        }
    }

    /// Takes the only event of a stream that was not read.
    pub(super) fn take_only(&self) -> Option<Bytes> {
        let mut state = self.state();
        let only = state.len() == 1;
        let log = state.log.as_mut().filter(|_| only)?;
        let event = log.get(log.first());
        log.drop_oldest();
        self.settle(&mut state);
        event
    }

    /// Counts what is kept now in the budget of all streams.
    fn settle(&self, state: &mut State) {
        let kept = state.kept();
        let retention = &self.source.retention;
        if kept > state.charged {
            retention.charge(kept - state.charged);
        } else {
            retention.release(state.charged - kept);
        }
        state.charged = kept;
    }

    /// Returns the number of bytes of retained events.
    pub(super) fn bytes(&self) -> usize {
        self.state().bytes()
    }

    pub(super) fn is_finished(&self) -> bool {
        let state = self.state();
        #[cfg(feature = "store")]
        if state.staged.as_ref().is_some_and(|staged| staged.has_ended) {
            return true;
        }
        state.finished.is_some()
    }

    /// Returns when the last event was added, if no more will follow.
    pub(super) fn finished_since(&self) -> Option<Instant> {
        self.state().finished
    }

    /// Records that no more events will follow.
    pub(super) fn finish(&self) {
        let mut state = self.state();
        #[cfg(feature = "store")]
        if let Some(staged) = &mut state.staged {
            staged.has_ended = true;
            staged.changed.notify_one();
            return;
        }
        state.finished.get_or_insert_with(Instant::now);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn wake(&self) {
        let waker = self.state().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn add(&self, event: Bytes, spare: bool) {
        let mut state = self.state();
        if state.finished.is_some() {
            return;
        }
        let Bounds { events, bytes } = self.source.bounds;
        if spare {
            // What may be lost takes half of the room at most, so that there is some for what may not.
            let (waiting, waiting_bytes) = state.waiting();
            if 2 * (waiting + 1) > events
                || 2 * (waiting_bytes + event.len()) > bytes
                || !self.source.retention.has_space(event.len() + EVENT_OVERHEAD)
            {
                return;
            }
        }
        #[cfg(feature = "store")]
        if let Some(staged) = &mut state.staged {
            if !staged.has_ended {
                staged.bytes += event.len();
                staged.events.push_back(event);
                staged.changed.notify_one();
                self.settle(&mut state);
            }
            return;
        }
        self.append(&mut state, event);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        self.source.retention.reclaim();
    }

    /// Adds an event to the log.
    fn append(&self, state: &mut State, event: Bytes) {
        let Source { store, session, bounds: Bounds { events, bytes }, .. } = &self.source;
        let (events, bytes) = (*events, *bytes);
        // What was delivered goes first; then, for a reader that fell behind or never came, the oldest. That one event is
        // longer than there is room for costs no other that waits.
        let delivered = state.delivered.saturating_sub(state.offset);
        let log = state.log.get_or_insert_with(|| store.open(session, self.number));
        while log.first() < delivered && (log.len() >= events || log.bytes() + event.len() > bytes) {
            log.drop_oldest();
        }
        while !log.is_empty() && (log.len() >= events || log.bytes() > bytes) {
            log.drop_oldest();
        }
        log.append(event);
        self.settle(state);
    }
}

impl EventBuffer for Stream {
    fn evict(&self, which: Eviction) {
        let mut state = self.state();
        let until = match which {
            Eviction::Delivered => state.delivered,
            Eviction::Unread if state.is_read => return,
            Eviction::Unread | Eviction::All => u64::MAX,
        };
        let until = until.saturating_sub(state.offset);
        if let Some(log) = &mut state.log {
            while !log.is_empty() && log.first() < until {
                log.drop_oldest();
            }
        }
        self.settle(&mut state);
        drop(state);
        // A reader finds that what it waits for is gone.
        self.wake();
    }

    fn kept(&self) -> usize {
        self.state().charged
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.source.retention.release(state.charged);
        if let Some(number) = self.retained.get() {
            self.source.retention.leave(*number);
        }
    }
}

impl State {
    /// Returns the number of undelivered events and their bytes.
    fn waiting(&self) -> (usize, usize) {
        #[cfg(feature = "store")]
        if let Some(staged) = &self.staged {
            return (staged.events.len(), staged.bytes);
        }
        let Some(log) = &self.log else { return (0, 0) };
        let waiting =
            log.first().max(self.delivered.saturating_sub(self.offset))..log.first() + log.len() as u64;
        waiting.fold((0, 0), |(events, bytes), number| {
            (events + 1, bytes + log.get(number).map_or(0, |event| event.len()))
        })
    }

    fn first(&self) -> u64 {
        self.offset + self.log.as_ref().map_or(1, |log| log.first())
    }

    fn goes_on_after(&self, number: u64) -> bool {
        let first = self.first();
        (first..=first + self.len() as u64).contains(&number.saturating_add(1))
    }

    fn len(&self) -> usize {
        self.log.as_ref().map_or(0, |log| log.len())
    }

    fn bytes(&self) -> usize {
        self.log.as_ref().map_or(0, |log| log.bytes())
    }

    fn kept(&self) -> usize {
        #[cfg(feature = "store")]
        let staged =
            self.staged.as_ref().map_or(0, |staged| staged.bytes + staged.events.len() * EVENT_OVERHEAD);
        #[cfg(not(feature = "store"))]
        let staged = 0;
        self.bytes() + self.len() * EVENT_OVERHEAD + staged
    }
}

impl Sink for Stream {
    fn write(&self, write: &mut dyn FnMut(&mut Vec<u8>) -> bool) {
        let mut event = Vec::new();
        if write(&mut event) {
            self.add(event.into(), false);
        }
    }

    fn close_stream(&self) {
        if !self.returning {
            return;
        }
        self.state().hung_up = true;
        self.wake();
    }

    fn offer(&self, frame: &[u8]) {
        self.add(Bytes::copy_from_slice(frame), true);
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
