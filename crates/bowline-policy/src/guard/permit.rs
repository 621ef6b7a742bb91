//! The result of a check: a permit or a refusal.

use std::fmt;
use std::time::SystemTime;

use super::Clock;
use crate::audit::{Audit, Entry, Event};
use crate::rules::DecidedBy;
use crate::store::StoreError;

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// A result.
    Completed,
    /// A result with `isError`.
    ToolFailed,
    /// An error.
    Failed {
        /// The error code.
        code: i64,
        /// The error message.
        message: String,
    },
}

/// The permission for one call. Report the end of the call with [`finish`](Self::finish); otherwise the audit log says
/// that the outcome is unknown.
#[must_use = "finish the permit to record the end of the call"]
pub struct Permit {
    by: DecidedBy,
    reason: String,
    end: Option<End>,
}

struct End {
    audit: Audit,
    clock: Clock,
    entry: Box<Entry>,
    started: SystemTime,
}

impl Permit {
    pub(super) fn new(
        by: DecidedBy,
        reason: String,
        audit: Option<&Audit>,
        clock: &Clock,
        entry: Option<Box<Entry>>,
    ) -> Self {
        let end = audit.zip(entry).map(|(audit, entry)| End {
            audit: audit.clone(),
            clock: clock.clone(),
            entry,
            started: clock(),
        });
        Self { by, reason, end }
    }

    /// Returns who decided.
    pub fn by(&self) -> DecidedBy {
        self.by
    }

    /// Returns the reason of the permission.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Reports how the call ended, and the size of its result in bytes.
    pub fn finish(mut self, ended: Ended, bytes: u64) {
        let outcome = match ended {
            Ended::Completed => "ok".to_owned(),
            Ended::ToolFailed => "tool error".to_owned(),
            Ended::Failed { code, message } => format!("error {code}: {message}"),
        };
        self.log_end(outcome, Some(bytes));
    }

    /// Records the task that the call became: a digest that identifies it.
    pub fn for_task(mut self, task: impl Into<String>) -> Self {
        if let Some(end) = &mut self.end {
            end.entry.task = Some(task.into());
        }
        self
    }

    fn log_end(&mut self, outcome: String, bytes: Option<u64>) {
        let Some(End { audit, clock, mut entry, started }) = self.end.take() else { return };
        entry.time = clock();
        if entry.event == Event::Decision {
            entry.event = Event::Call;
        }
        entry.outcome = Some(outcome);
        entry.duration = Some(entry.time.duration_since(started).unwrap_or_default());
        entry.bytes = bytes;
        audit.write(*entry);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.log_end("abandoned".to_owned(), None);
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Permit")
            .field("by", &self.by)
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// Denied by a rule or a stored answer.
    Denied,
    /// Declined by the user.
    Declined,
    /// Nobody answered.
    Cancelled,
    /// The question was passed to the caller, and nothing is decided yet.
    Deferred,
    /// The server has caused too many questions.
    Limited,
    /// The request is not safe, or the files of answers or pins cannot be used.
    Unsafe,
}

/// The reason why an action is not allowed. Its text may be shown to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    kind: RefusalKind,
    by: DecidedBy,
    reason: String,
}

impl Refusal {
    pub(super) fn new(kind: RefusalKind, by: DecidedBy, reason: impl Into<String>) -> Self {
        Self { kind, by, reason: reason.into() }
    }

    pub(super) fn unusable(error: &StoreError) -> Self {
        Self::new(RefusalKind::Unsafe, DecidedBy::Check, error.to_string())
    }

    /// Returns the kind of the refusal.
    pub fn kind(&self) -> RefusalKind {
        self.kind
    }

    /// Returns who decided.
    pub fn by(&self) -> DecidedBy {
        self.by
    }

    /// Returns the reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            RefusalKind::Denied => "not allowed",
            RefusalKind::Declined => "declined",
            RefusalKind::Cancelled => "nobody answered",
            RefusalKind::Deferred => "not decided",
            RefusalKind::Limited => "too many questions",
            RefusalKind::Unsafe => "refused",
        };
        write!(formatter, "{what}: {}", self.reason)
    }
}

impl std::error::Error for Refusal {}
