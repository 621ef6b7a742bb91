//! The byte budget for the events that all streams keep together.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

/// What one kept event takes besides its text.
pub(super) const EVENT_OVERHEAD: usize = 64;

/// Which events a stream drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eviction {
    /// Those that a reader has received, kept only for a client that resumes the stream.
    Delivered,
    /// All of them, if nobody reads the stream.
    Unread,
    /// All of them. For a reader that has not received them, the stream ends.
    All,
}

/// A stream that keeps events and can drop them.
pub(super) trait EventBuffer: Send + Sync {
    /// Drops events.
    fn evict(&self, which: Eviction);

    /// Returns how many bytes it keeps.
    fn kept(&self) -> usize;
}

/// The budget. It is shared by all streams of an endpoint.
pub(super) struct Retention {
    limit: usize,
    kept: AtomicUsize,
    streams: Mutex<Streams>,
}

#[derive(Default)]
struct Streams {
    /// By age.
    known: BTreeMap<u64, Weak<dyn EventBuffer>>,
    next: u64,
}

impl Retention {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, kept: AtomicUsize::new(0), streams: Mutex::default() }
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Counts bytes that are kept from now on.
    pub(super) fn charge(&self, bytes: usize) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes that are no longer kept.
    pub(super) fn release(&self, bytes: usize) {
        self.kept.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns whether this many more bytes fit.
    pub(super) fn has_space(&self, bytes: usize) -> bool {
        self.kept.load(Ordering::Relaxed).saturating_add(bytes) <= self.limit
    }

    /// Makes a stream drop events when room is needed, until its number is given to [`leave`](Self::leave).
    pub(super) fn join(&self, stream: Weak<dyn EventBuffer>) -> u64 {
        let mut streams = self.streams();
        let number = streams.next;
        streams.next += 1;
        streams.known.insert(number, stream);
        number
    }

    pub(super) fn leave(&self, number: u64) {
        self.streams().known.remove(&number);
    }

    /// Makes streams drop events until there is enough memory again. The caller must hold the lock of no stream.
    pub(super) fn reclaim(&self) {
        if self.has_space(0) {
            return;
        }
        // A little more than needed, so that the next event does not search all streams again.
        let enough = || self.has_space(self.limit / 8);
        let mut streams: Vec<Arc<dyn EventBuffer>> =
            self.streams().known.values().filter_map(Weak::upgrade).collect();
        for which in [Eviction::Delivered, Eviction::Unread, Eviction::All] {
            if which == Eviction::All {
                streams.sort_by_key(|stream| Reverse(stream.kept()));
            }
            for stream in &streams {
                if enough() {
                    return;
                }
                stream.evict(which);
            }
        }
    }
}

impl std::fmt::Debug for Retention {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Retention")
            .field("limit", &self.limit)
            .field("kept", &self.kept)
            .finish_non_exhaustive()
    }
}
