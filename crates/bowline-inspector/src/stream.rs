//! The event stream: one reader with a cursor into the buffer.

use crate::{
    buffer::{Recorder, Window},
    events::{Changed, Event},
    inspector::Shared,
    keys::Holder,
    query::Grade,
};
use bowline_http::Body;
use bytes::Bytes;
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

/// How many streams may be open, and how many of them with keys that only look.
const MAX_STREAMS: usize = 8;
const MAX_VIEW_STREAMS: usize = MAX_STREAMS / 2;
/// How many heads one line has at most.
const MAX_HEADS: usize = 500;
/// How long heads are collected for one line.
const COLLECT: Duration = Duration::from_millis(40);
/// How often an empty line shows that the connection is alive.
const ALIVE: Duration = Duration::from_secs(15);

/// How many streams are open.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    all: AtomicUsize,
    view: AtomicUsize,
}

/// Counts an open stream until it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    open: Arc<Streams>,
    grade: Grade,
}

impl Slot {
    /// Takes a slot. `None` if too many streams are open.
    pub(crate) fn take(open: &Arc<Streams>, grade: Grade) -> Option<Self> {
        // Counted first, so that the slot gives back what it took.
        let view = if grade == Grade::View { open.view.fetch_add(1, Ordering::Relaxed) } else { 0 };
        let all = open.all.fetch_add(1, Ordering::Relaxed);
        let slot = Self { open: Arc::clone(open), grade };
        (all < MAX_STREAMS && view < MAX_VIEW_STREAMS).then_some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.open.all.fetch_sub(1, Ordering::Relaxed);
        if self.grade == Grade::View {
            self.open.view.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Reads the buffer for one browser.
struct Reader {
    shared: Arc<Shared>,
    holder: Holder,
    cursor: u64,
    updated: u64,
    changed: Option<Changed>,
    has_begun: bool,
    _slot: Slot,
}

/// Returns the body of a stream that starts after `cursor`.
pub(crate) fn body(shared: Arc<Shared>, holder: Holder, cursor: u64, slot: Slot) -> Body {
    type Next = Pin<Box<dyn Future<Output = Option<(Reader, Bytes)>> + Send>>;
    let updated = shared.recorder.with_ring(crate::buffer::updated);
    let reader = Reader { shared, holder, cursor, updated, changed: None, has_begun: false, _slot: slot };
    let mut next: Option<Next> = Some(Box::pin(reader.next()));
    Body::stream(move |context| {
        let Some(reading) = &mut next else { return Poll::Ready(None) };
        let Poll::Ready(read) = reading.as_mut().poll(context) else { return Poll::Pending };
        next = None;
        Poll::Ready(read.map(|(reader, bytes)| {
            next = Some(Box::pin(reader.next()));
            bytes
        }))
    })
}

impl Reader {
    /// Waits for the next lines. `None` at the end.
    async fn next(mut self) -> Option<(Self, Bytes)> {
        let recorder = self.shared.recorder.clone();
        let mut ending = self.shared.ending.subscribe();
        loop {
            // Registered before the look, so that nothing between the two is missed.
            let mut news = std::pin::pin!(recorder.news().notified());
            news.as_mut().enable();
            if *ending.borrow() || !self.shared.keys.is_valid(self.holder.number) {
                return None;
            }
            if let Some(lines) = self.look(&recorder) {
                return Some((self, lines));
            }
            tokio::select! {
                () = news => tokio::time::sleep(COLLECT).await,
                () = tokio::time::sleep(ALIVE) => return Some((self, Bytes::from_static(b"\n"))),
                _ = ending.changed() => {}
            }
        }
    }

    /// Returns the lines that are due.
    fn look(&mut self, recorder: &Recorder) -> Option<Bytes> {
        let mut lines = Vec::new();
        if !self.has_begun {
            self.has_begun = true;
            line(&mut lines, &Event::Run(self.shared.run.clone()));
        }
        let changed = recorder.changed();
        if self.changed != Some(changed) {
            self.changed = Some(changed);
            line(&mut lines, &Event::Changed(changed));
        }
        let (Window { updates, heads, gap, .. }, updated) =
            recorder.window(self.cursor, self.updated, MAX_HEADS);
        self.updated = updated;
        if let Some(gap) = gap {
            line(&mut lines, &Event::Gap(gap));
            self.cursor = gap[1];
        }
        if let Some(last) = heads.last() {
            self.cursor = last.seq;
        }
        let heads: Vec<_> = updates.into_iter().chain(heads).collect();
        if !heads.is_empty() {
            line(&mut lines, &Event::Heads(heads));
        }
        (!lines.is_empty()).then(|| lines.into())
    }
}

fn line(lines: &mut Vec<u8>, event: &Event) {
    if serde_json::to_writer(&mut *lines, event).is_ok() {
        lines.push(b'\n');
    }
}
