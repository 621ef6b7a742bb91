//! Captures `tracing` output in tests.

use std::{
    fmt::{self, Write as _},
    sync::{Arc, LazyLock, Mutex, PoisonError},
};
use tracing::{
    Dispatch, Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::{DefaultGuard, NoSubscriber},
};

/// Captures every event and span of this thread, one line each: the level or the name, then the fields.
///
/// A `#[tokio::test]` runs all of its tasks on its own thread, unless it asks for the multi-thread runtime.
///
/// ```
/// use bowline_testing::Log;
///
/// let (log, _guard) = Log::start();
/// tracing::warn!(server = "files", "a server is slow");
/// assert_eq!(log.count(&["WARN", "a server is slow", "files"]), 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

/// Captures events until it is dropped. See [`Log::start`].
#[derive(Debug)]
pub struct LogGuard(#[expect(dead_code, reason = "it does its work when it is dropped")] DefaultGuard);

/// With a single subscriber, `tracing` caches the interest of the first thread that meets an event for all threads. A
/// second subscriber makes it ask every subscriber.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::default()));

/// The subscriber that writes to a [`Log`].
struct Keeper {
    log: Log,
    /// The prefix of captured targets.
    target: &'static str,
}

impl Log {
    /// Captures events of every level and crate until the guard is dropped.
    pub fn start() -> (Self, LogGuard) {
        Self::of("")
    }

    /// Captures events of this crate or module until the guard is dropped.
    pub fn of(target: &'static str) -> (Self, LogGuard) {
        let log = Self::default();
        LazyLock::force(&SECOND);
        let guard = tracing::subscriber::set_default(Keeper { log: log.clone(), target });
        (log, LogGuard(guard))
    }

    /// Returns the captured lines.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of lines that contain all of these parts.
    pub fn count(&self, parts: &[&str]) -> usize {
        self.lines().iter().filter(|line| parts.iter().all(|part| line.contains(part))).count()
    }

    fn keep(&self, start: &str, record: impl FnOnce(&mut Line)) {
        let mut line = Line(start.to_owned());
        record(&mut line);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.0);
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with(self.target)
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        self.log.keep(attributes.metadata().name(), |line| attributes.record(line));
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, record: &span::Record<'_>) {
        self.log.keep("", |line| record.record(line));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        self.log.keep(event.metadata().level().as_str(), |line| event.record(line));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
