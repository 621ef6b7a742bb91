//! A ring of messages with limits in bytes: a quarter for heads, the rest for bodies.

use crate::events::Head;
use ring::digest;
use std::collections::VecDeque;

/// A body over this size keeps only its beginning.
const LARGE: usize = 256 * 1024;
/// How much of a large body is kept.
const BEGINNING: usize = 64 * 1024;
/// How many replaced heads are remembered for readers.
const MAX_UPDATES: usize = 4096;

/// A message in the buffer.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) head: Head,
    pub(crate) body: Option<Body>,
}

/// The text of a message, or its beginning.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) bytes: Box<[u8]>,
    /// The digest of the whole message, if only its beginning is kept.
    pub(crate) sha256: Option<String>,
    /// Status and headers of the HTTP response that carried it, masked.
    pub(crate) http: Option<Box<str>>,
}

impl Body {
    fn size(&self) -> usize {
        self.bytes.len() + self.http.as_ref().map_or(0, |http| http.len())
    }
}

/// The part of the ring after a cursor.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// Heads that were replaced since, oldest first.
    pub(crate) updates: Vec<Head>,
    /// New heads.
    pub(crate) heads: Vec<Head>,
    /// The numbers that are dropped.
    pub(crate) gap: Option<[u64; 2]>,
    /// Whether there are more.
    pub(crate) more: bool,
}

/// The latest messages.
#[derive(Debug)]
pub(crate) struct Ring {
    entries: VecDeque<Stored>,
    /// The number of the next message.
    next: u64,
    head_bytes: usize,
    body_bytes: usize,
    limit: usize,
    keeps_bodies: bool,
    /// All messages before this number have no body any more.
    bodies_from: u64,
    dropped: u64,
    /// Numbers of replaced heads, and how many were replaced before them.
    updates: VecDeque<u64>,
    updated: u64,
}

impl Ring {
    pub(crate) fn new(limit: usize, keeps_bodies: bool) -> Self {
        Self {
            entries: VecDeque::new(),
            next: 1,
            head_bytes: 0,
            body_bytes: 0,
            limit,
            keeps_bodies,
            bodies_from: 1,
            dropped: 0,
            updates: VecDeque::new(),
            updated: 0,
        }
    }

    /// Returns the number that the next message gets.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the number of the oldest message.
    pub(crate) fn first(&self) -> u64 {
        self.next - self.entries.len() as u64
    }

    pub(crate) fn used(&self) -> usize {
        self.head_bytes + self.body_bytes
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn keeps_bodies(&self) -> bool {
        self.keeps_bodies
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns how many heads were replaced so far.
    pub(crate) fn updated(&self) -> u64 {
        self.updated
    }

    /// Adds a message. `head.seq` must be [`next`](Self::next).
    pub(crate) fn push(&mut self, head: Head, text: Option<&[u8]>) {
        self.push_with(head, text, None);
    }

    /// Adds a message that an HTTP response carried.
    pub(crate) fn push_with(&mut self, head: Head, text: Option<&[u8]>, http: Option<Box<str>>) {
        debug_assert_eq!(head.seq, self.next);
        let body = text.filter(|_| self.keeps_bodies).map(|text| {
            let is_large = text.len() > LARGE;
            let kept = if is_large { text.get(..BEGINNING).unwrap_or(text) } else { text };
            let sha256 = is_large.then(|| bowline_text::hex(digest::digest(&digest::SHA256, text).as_ref()));
            // A slice would keep the whole read buffer alive.
            Body { bytes: kept.into(), sha256, http }
        });
        self.next += 1;
        self.head_bytes += weight(&head);
        self.body_bytes += body.as_ref().map_or(0, Body::size);
        self.entries.push_back(Stored { head, body });
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.head_bytes > self.limit / 4
            && let Some(oldest) = self.entries.pop_front()
        {
            self.dropped += 1;
            self.head_bytes -= weight(&oldest.head);
            self.body_bytes -= oldest.body.map_or(0, |body| body.size());
        }
        let first = self.first();
        self.bodies_from = self.bodies_from.max(first);
        while self.body_bytes > self.limit - self.limit / 4 && self.bodies_from < self.next {
            let place = usize::try_from(self.bodies_from - first).unwrap_or(usize::MAX);
            let body = self.entries.get_mut(place).and_then(|stored| stored.body.take());
            self.body_bytes -= body.map_or(0, |body| body.size());
            self.bodies_from += 1;
        }
    }

    pub(crate) fn get(&self, seq: u64) -> Option<&Stored> {
        let place = seq.checked_sub(self.first())?;
        self.entries.get(usize::try_from(place).ok()?)
    }

    /// Changes a head; readers get it again.
    pub(crate) fn update(&mut self, seq: u64, change: impl FnOnce(&mut Head)) {
        let Some(place) = seq.checked_sub(self.first()).and_then(|place| usize::try_from(place).ok()) else {
            return;
        };
        let Some(stored) = self.entries.get_mut(place) else { return };
        let before = weight(&stored.head);
        change(&mut stored.head);
        self.head_bytes = self.head_bytes - before + weight(&stored.head);
        self.updates.push_back(seq);
        self.updated += 1;
        if self.updates.len() > MAX_UPDATES {
            self.updates.pop_front();
        }
    }

    /// Returns messages from the oldest to the newest.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Stored> {
        self.entries.iter()
    }

    /// Returns messages after `seq`, from the oldest to the newest.
    pub(crate) fn after(&self, seq: u64) -> impl Iterator<Item = &Stored> {
        let skipped = seq.saturating_add(1).saturating_sub(self.first());
        self.entries.iter().skip(usize::try_from(skipped).unwrap_or(usize::MAX))
    }

    /// Returns at most `limit` heads after `seq`, and heads up to `seq` that were replaced after the update `updated`.
    pub(crate) fn window(&self, seq: u64, updated: u64, limit: usize) -> Window {
        let first = self.first();
        let start = seq.saturating_add(1);
        let gap = (start < first).then(|| [start, first - 1]);
        let skipped = usize::try_from(updated.saturating_sub(self.updated - self.updates.len() as u64));
        let updates = (self.updates.iter().skip(skipped.unwrap_or(usize::MAX)))
            .filter(|updated| **updated <= seq)
            .filter_map(|updated| Some(self.get(*updated)?.head.clone()))
            .take(limit)
            .collect();
        let heads: Vec<_> = self.after(seq).take(limit).map(|stored| stored.head.clone()).collect();
        let last = heads.last().map_or(self.next - 1, |head| head.seq);
        Window { updates, heads, gap, more: last + 1 < self.next }
    }

    /// Forgets all messages. Their numbers are not used again.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.updates.clear();
        (self.head_bytes, self.body_bytes, self.bodies_from) = (0, 0, self.next);
    }
}

/// Returns about how many bytes a head takes.
fn weight(head: &Head) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    size_of::<Stored>()
        + head.peer.len()
        + text(&head.method)
        + text(&head.name)
        + text(&head.id)
        + text(&head.revision)
        + head.task.as_ref().map_or(0, |task| task.id.len() + text(&task.status) + text(&task.message))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::events::{Direction, Kind, Leg};

    pub(crate) fn head(seq: u64) -> Head {
        Head {
            seq,
            at: 0.0,
            connection: 1,
            peer: "files".into(),
            leg: Leg::Server,
            direction: Direction::Out,
            kind: Kind::Request,
            method: None,
            name: None,
            id: None,
            call: None,
            parent: None,
            size: 0,
            status: None,
            code: None,
            took: None,
            revision: None,
            task: None,
        }
    }

    fn filled(limit: usize, count: u64, body: usize) -> Ring {
        let mut ring = Ring::new(limit, true);
        for seq in 1..=count {
            ring.push(head(seq), Some(&vec![b'x'; body]));
        }
        ring
    }

    #[test]
    fn the_ring_holds_n_heads_and_drops_the_first_of_n_plus_one() {
        let limit = 4 * 10 * weight(&head(1));
        let full = filled(limit, 10, 0);
        assert_eq!((full.first(), full.next(), full.dropped()), (1, 11, 0));
        let over = filled(limit, 11, 0);
        assert_eq!((over.first(), over.next(), over.dropped()), (2, 12, 1));
        assert!(over.get(1).is_none() && over.get(2).is_some());
    }

    #[test]
    fn bodies_are_dropped_before_heads() {
        let limit = 100_000;
        let ring = filled(limit, 8, 10_000);
        assert!(ring.body_bytes <= limit - limit / 4);
        assert!(ring.get(1).is_some_and(|stored| stored.body.is_none()));
        assert!(ring.get(8).is_some_and(|stored| stored.body.is_some()));
        assert_eq!(ring.body_bytes, 70_000);
    }

    #[test]
    fn a_large_body_keeps_its_beginning_and_its_digest() {
        let mut ring = Ring::new(10_000_000, true);
        ring.push(head(1), Some(&vec![b'x'; LARGE]));
        ring.push(head(2), Some(&vec![b'x'; LARGE + 1]));
        let kept = |seq| ring.get(seq).and_then(|stored| stored.body.as_ref()).unwrap();
        assert_eq!((kept(1).bytes.len(), kept(1).sha256.is_some()), (LARGE, false));
        assert_eq!((kept(2).bytes.len(), kept(2).sha256.as_ref().map(String::len)), (BEGINNING, Some(64)));
    }

    #[test]
    fn a_reader_that_is_too_slow_sees_a_gap() {
        let ring = filled(4 * 10 * weight(&head(1)), 25, 0);
        let window = ring.window(3, 0, 4);
        assert_eq!(window.gap, Some([4, 15]));
        assert_eq!(window.heads.iter().map(|head| head.seq).collect::<Vec<_>>(), [16, 17, 18, 19]);
        assert!(window.more);
        let rest = ring.window(19, 0, 100);
        assert_eq!((rest.gap, rest.heads.len(), rest.more), (None, 6, false));
    }

    #[test]
    fn a_cursor_beyond_all_numbers_sees_nothing() {
        let window = filled(1_000_000, 5, 0).window(u64::MAX, 0, 10);
        assert_eq!((window.heads.len(), window.gap, window.more), (0, None, false));
    }

    #[test]
    fn replaced_heads_are_sent_again_once() {
        let mut ring = filled(1_000_000, 5, 0);
        ring.update(2, |head| head.parent = Some(1));
        let window = ring.window(5, 0, 10);
        assert_eq!(
            window.updates.iter().map(|head| (head.seq, head.parent)).collect::<Vec<_>>(),
            [(2, Some(1))]
        );
        assert!(ring.window(5, ring.updated(), 10).updates.is_empty());
    }

    #[test]
    fn without_bodies_only_heads_are_kept() {
        let mut ring = Ring::new(1_000_000, false);
        ring.push(head(1), Some(b"secret payload"));
        assert!(ring.get(1).is_some_and(|stored| stored.body.is_none()));
    }
}
