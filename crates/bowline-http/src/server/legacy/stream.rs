//! The events of one stream, kept so that a reader can come back to them.

use bowline_server::transport::Sink;
use bytes::Bytes;
use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::Waker,
};

/// How many events, and bytes of them, one stream keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) events: usize,
    pub(super) bytes: usize,
}

/// One stream of a session.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) number: u64,
    bounds: Bounds,
    /// Whether a reader that is sent away knows to come back.
    returning: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Bytes>,
    bytes: usize,
    /// The number of the first event kept. Events are counted from 1; 0 is the priming event.
    first: u64,
    /// Everything below was handed to a reader.
    delivered: u64,
    finished: bool,
    /// The reader was sent away until it comes back.
    hung_up: bool,
    /// Rises with every reader; only the newest one reads.
    readers: u64,
    waker: Option<Waker>,
}

/// What a reader finds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The event of this number.
    Event(u64, Bytes),
    /// Nothing yet.
    Wait,
    /// Nothing ever again: the stream is finished, or somebody else reads it now.
    End,
}

/// How far the reply to a POST has come.
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
    pub(super) fn new(number: u64, bounds: Bounds, returning: bool) -> Self {
        Self {
            number,
            bounds,
            returning,
            state: Mutex::new(State { first: 1, delivered: 1, ..State::default() }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Becomes the one reader of the stream, behind the event `after`. `None` when there never was such an event, or what
    /// follows it is no longer kept.
    pub(super) fn attach(&self, after: u64) -> Option<u64> {
        let mut state = self.state();
        let last = state.first + state.events.len() as u64 - 1;
        if after > last || after + 1 < state.first {
            return None;
        }
        state.readers += 1;
        // The first reader of a stream that was hung up before it began is sent away after its opening.
        state.hung_up &= state.readers == 1;
        let (reader, waker) = (state.readers, state.waker.take());
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Some(reader)
    }

    /// The event `number`, or what there is instead.
    pub(super) fn next(&self, reader: u64, number: u64, waker: &Waker) -> Next {
        let mut state = self.state();
        if state.readers != reader || number < state.first || state.hung_up {
            return Next::End;
        }
        let index = usize::try_from(number - state.first).unwrap_or(usize::MAX);
        if let Some(event) = state.events.get(index).cloned() {
            state.delivered = state.delivered.max(number + 1);
            return Next::Event(number, event);
        }
        if state.finished {
            return Next::End;
        }
        state.waker = Some(waker.clone());
        Next::Wait
    }

    /// The last event a reader was handed or nobody can be handed any more; 0 before the first.
    pub(super) fn delivered(&self) -> u64 {
        let state = self.state();
        state.delivered.max(state.first) - 1
    }

    /// What a reply would begin with.
    pub(super) fn progress(&self, waker: &Waker) -> Progress {
        let mut state = self.state();
        state.waker = Some(waker.clone());
        match (state.events.len(), state.finished) {
            _ if state.hung_up => Progress::Events,
            (0 | 1, true) => Progress::Whole,
            (0, false) => Progress::Nothing,
            _ => Progress::Events,
        }
    }

    /// The only event of a stream that nobody has read.
    pub(super) fn take_only(&self) -> Option<Bytes> {
        let mut state = self.state();
        if state.events.len() == 1 { state.events.pop_front() } else { None }
    }

    /// How many bytes of events are kept.
    pub(super) fn bytes(&self) -> usize {
        self.state().bytes
    }

    pub(super) fn is_finished(&self) -> bool {
        self.state().finished
    }

    /// There will be no more events.
    pub(super) fn finish(&self) {
        let mut state = self.state();
        state.finished = true;
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
        if state.finished {
            return;
        }
        let Bounds { events, bytes } = self.bounds;
        if spare {
            // What may be lost takes half of the room at most, so that there is some for what may not.
            let (waiting, waiting_bytes) = state.waiting();
            if 2 * (waiting + 1) > events || 2 * (waiting_bytes + event.len()) > bytes {
                return;
            }
        }
        // What was delivered goes first; then, for a reader that fell behind or never came, the oldest. That one event is
        // longer than there is room for costs no other that waits.
        while state.first < state.delivered
            && (state.events.len() >= events || state.bytes + event.len() > bytes)
        {
            state.drop_oldest();
        }
        while !state.events.is_empty() && (state.events.len() >= events || state.bytes > bytes) {
            state.drop_oldest();
        }
        state.bytes += event.len();
        state.events.push_back(event);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl State {
    /// How many events no reader was handed yet, and how many bytes they have.
    fn waiting(&self) -> (usize, usize) {
        let handed = usize::try_from(self.delivered.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let waiting = self.events.iter().skip(handed);
        waiting.fold((0, 0), |(events, bytes), event| (events + 1, bytes + event.len()))
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.bytes -= oldest.len();
            self.first += 1;
        }
    }
}

impl Sink for Stream {
    fn write(&self, write: &mut dyn FnMut(&mut Vec<u8>) -> bool) {
        let mut event = Vec::new();
        if write(&mut event) {
            self.add(event.into(), false);
        }
    }

    fn hang_up(&self) {
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
mod tests {
    use super::*;

    fn stream() -> Stream {
        Stream::new(1, Bounds { events: 3, bytes: 1000 }, true)
    }

    fn read(stream: &Stream, reader: u64, from: u64) -> Vec<String> {
        let mut seen = Vec::new();
        let mut number = from;
        while let Next::Event(at, event) = stream.next(reader, number, Waker::noop()) {
            seen.push(format!("{at}:{}", String::from_utf8_lossy(&event)));
            number += 1;
        }
        seen
    }

    #[test]
    fn a_reader_comes_back_behind_what_it_saw() {
        let stream = stream();
        for event in ["a", "b", "c"] {
            stream.push(event.as_bytes());
        }
        let first = stream.attach(0).unwrap();
        assert_eq!(read(&stream, first, 1), ["1:a", "2:b", "3:c"]);
        let again = stream.attach(2).unwrap();
        assert_eq!(read(&stream, again, 3), ["3:c"]);
        // The older reader is told to go.
        assert_eq!(stream.next(first, 4, Waker::noop()), Next::End);
        assert_eq!(stream.next(again, 4, Waker::noop()), Next::Wait);
        stream.finish();
        assert_eq!(stream.next(again, 4, Waker::noop()), Next::End);
    }

    #[test]
    fn what_is_kept_is_bounded_and_a_gap_is_noticed() {
        let stream = stream();
        for event in ["a", "b", "c", "d", "e"] {
            stream.push(event.as_bytes());
        }
        assert_eq!(stream.attach(0), None);
        assert_eq!(stream.attach(1), None);
        let reader = stream.attach(2).unwrap();
        assert_eq!(read(&stream, reader, 3), ["3:c", "4:d", "5:e"]);
    }

    #[test]
    fn what_may_be_lost_does_not_push_out_what_may_not() {
        let stream = stream();
        for event in ["a", "b", "c"] {
            stream.push(event.as_bytes());
        }
        stream.offer(b"progress");
        let reader = stream.attach(0).unwrap();
        assert_eq!(read(&stream, reader, 1), ["1:a", "2:b", "3:c"]);
    }
}
