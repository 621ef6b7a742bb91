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
    /// With a result.
    Completed,
    /// With a result that says the tool failed.
    ToolFailed,
    /// With an error.
    Failed {
        /// The code.
        code: i64,
        /// What it says.
        message: String,
    },
}

/// The permission for one call. Say how the call ended; a permit that is dropped tells the audit log that nobody knows.
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

    /// Who decided.
    pub fn by(&self) -> DecidedBy {
        self.by
    }

    /// Why it is permitted.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Tells how the call ended, and how many bytes its result had.
    pub fn finish(mut self, ended: Ended, bytes: u64) {
        let outcome = match ended {
            Ended::Completed => "ok".to_owned(),
            Ended::ToolFailed => "tool error".to_owned(),
            Ended::Failed { code, message } => format!("error {code}: {message}"),
        };
        self.tell(outcome, Some(bytes));
    }

    fn tell(&mut self, outcome: String, bytes: Option<u64>) {
        let Some(End { audit, clock, mut entry, started }) = self.end.take() else { return };
        entry.time = clock();
        entry.event = Event::Call;
        entry.outcome = Some(outcome);
        entry.duration = Some(entry.time.duration_since(started).unwrap_or_default());
        entry.bytes = bytes;
        audit.write(*entry);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.tell("abandoned".to_owned(), None);
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

/// In which way something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// By a rule, or by an answer given before.
    Denied,
    /// By whoever was asked.
    Declined,
    /// Nobody answered.
    Cancelled,
    /// The question was handed to the caller, and nothing is decided yet.
    Deferred,
    /// The server has caused too many questions.
    Limited,
    /// What came is not safe to act on, or the files of answers or pins cannot be used.
    Unsafe,
}

/// Why something may not happen. Its text may be shown to a model.
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

    /// In which way.
    pub fn kind(&self) -> RefusalKind {
        self.kind
    }

    /// Who decided.
    pub fn by(&self) -> DecidedBy {
        self.by
    }

    /// Why.
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
