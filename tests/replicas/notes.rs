//! What a process did, as lines of a history that all processes write, and the lapses that its log tells of.

use bowline_testing::history::{Entry, Event};
use std::{
    collections::HashMap,
    fmt,
    fs::File,
    io::Write,
    path::Path,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};
use tracing::{
    Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

static NOTES: OnceLock<Notes> = OnceLock::new();

struct Notes {
    file: File,
    node: String,
    /// What is broken on purpose, to see that the checker notices.
    broken: String,
    /// How often the claim of a task has lapsed, by the newest claim of this process.
    lapses: Mutex<HashMap<String, u32>>,
    count: AtomicU64,
}

fn notes() -> &'static Notes {
    NOTES.get().expect("`begin` comes first")
}

/// The history goes to this file from now on.
pub(crate) fn begin(path: &Path, node: &str, broken: &str) -> std::io::Result<()> {
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path)?;
    let node = format!("{node}.{}", std::process::id());
    let notes =
        Notes { file, node, broken: broken.to_owned(), lapses: Mutex::default(), count: AtomicU64::new(0) };
    if NOTES.set(notes).is_ok() {
        tracing::subscriber::set_global_default(Lapses).map_err(std::io::Error::other)?;
    }
    Ok(())
}

pub(crate) fn is_broken(what: &str) -> bool {
    notes().broken.split(',').any(|broken| broken == what)
}

/// A text that no process has made before.
pub(crate) fn unique() -> String {
    let Notes { node, count, .. } = notes();
    format!("{node}.{}", count.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Adds an event. One write, so that lines of several processes do not mix.
pub(crate) fn note(event: Event) {
    let line = format!("{}\n", Entry::new(now(), event).to_line());
    (&notes().file).write_all(line.as_bytes()).expect("the history can be written");
}

/// A handler at work on a task, until it is dropped.
pub(crate) struct Run {
    task: String,
    claim: String,
}

impl Run {
    pub(crate) fn start(task: &str) -> Self {
        let lapses = notes().lapses.lock().unwrap_or_else(PoisonError::into_inner);
        let lapses = lapses.get(task).copied().unwrap_or(0);
        let (task, claim, node) = (task.to_owned(), unique(), notes().node.clone());
        note(Event::AttemptStarted { task: task.clone(), node, claim: claim.clone(), lapses });
        Self { task, claim }
    }

    pub(crate) fn task(&self) -> &str {
        &self.task
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        note(Event::AttemptEnded { task: self.task.clone(), claim: self.claim.clone() });
    }
}

/// Reads in the log of the server how often claims have lapsed.
struct Lapses;

#[derive(Default)]
struct Claimed {
    task: Option<String>,
    lapses: Option<u64>,
}

impl Visit for Claimed {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "lapses" {
            self.lapses = Some(value);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "task" {
            self.task = Some(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

impl Subscriber for Lapses {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("bowline_server::tasks")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut claimed = Claimed::default();
        event.record(&mut claimed);
        if let Claimed { task: Some(task), lapses: Some(lapses) } = claimed {
            let lapses = u32::try_from(lapses).unwrap_or(u32::MAX);
            notes().lapses.lock().unwrap_or_else(PoisonError::into_inner).insert(task, lapses);
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
