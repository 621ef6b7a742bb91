//! What a program under test leaves in its log.

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

/// Keeps every event and every span of this thread as one line each: the level or the name, then the fields.
///
/// A test of tokio runs all of its tasks on its own thread, unless it is told otherwise.
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

/// Keeps a [`Log`] going until it is dropped.
#[derive(Debug)]
pub struct LogGuard(#[expect(dead_code, reason = "it does its work when it is dropped")] DefaultGuard);

/// With a single subscriber, `tracing` lets the thread that meets an event first decide for all threads whether it is
/// kept. A second subscriber makes it ask all of them.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::default()));

/// Writes a log.
struct Keeper {
    log: Log,
    /// Where the target of what is kept begins.
    target: &'static str,
}

impl Log {
    /// Keeps everything, of whatever level and crate, until the guard is dropped.
    pub fn start() -> (Self, LogGuard) {
        Self::of("")
    }

    /// Keeps what comes from this crate or module alone, until the guard is dropped.
    pub fn of(target: &'static str) -> (Self, LogGuard) {
        let log = Self::default();
        LazyLock::force(&SECOND);
        let guard = tracing::subscriber::set_default(Keeper { log: log.clone(), target });
        (log, LogGuard(guard))
    }

    /// The lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many lines have all of these parts.
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
