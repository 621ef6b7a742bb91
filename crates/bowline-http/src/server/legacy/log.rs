//! Stores the events of a stream, so that a client can resume it.

use bytes::Bytes;
use std::{collections::VecDeque, fmt};

/// Opens the logs of streams: the seam for keeping events elsewhere than in memory.
///
/// What is asked of a log is asked with the stream locked, so an implementation that writes to a disk or another machine
/// keeps what it has not written yet, and does the writing elsewhere.
pub trait EventStore: Send + Sync + fmt::Debug + 'static {
    /// Creates an empty log for one stream of a session. Stream 0 belongs to no request.
    fn open(&self, session: &str, stream: u64) -> Box<dyn EventLog>;
}

/// The events of one stream in their order, counted from 1. Dropped when the stream cannot be read again.
pub trait EventLog: Send + fmt::Debug {
    /// Appends an event.
    fn append(&mut self, event: Bytes);

    /// Returns the event with this number, if it is retained.
    fn get(&self, number: u64) -> Option<Bytes>;

    /// Returns the number of the oldest retained event, or of the next event if none is retained.
    fn first(&self) -> u64;

    /// Returns the number of retained events.
    fn len(&self) -> usize;

    /// Returns whether no event is retained.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of retained bytes.
    fn bytes(&self) -> usize;

    /// Lets go of the oldest event.
    fn drop_oldest(&mut self);
}

/// Keeps events in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryEvents;

impl EventStore for MemoryEvents {
    fn open(&self, _session: &str, _stream: u64) -> Box<dyn EventLog> {
        Box::new(MemoryLog::default())
    }
}

#[derive(Debug, Default)]
struct MemoryLog {
    events: VecDeque<Bytes>,
    bytes: usize,
    dropped: u64,
}

impl EventLog for MemoryLog {
    fn append(&mut self, event: Bytes) {
        self.bytes += event.len();
        self.events.push_back(event);
    }

    fn get(&self, number: u64) -> Option<Bytes> {
        let index = usize::try_from(number.checked_sub(self.first())?).ok()?;
        self.events.get(index).cloned()
    }

    fn first(&self) -> u64 {
        self.dropped + 1
    }

    fn len(&self) -> usize {
        self.events.len()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.bytes -= oldest.len();
            self.dropped += 1;
        }
    }
}
