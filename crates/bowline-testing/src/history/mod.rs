//! What clients and handlers saw, and the rules that it must follow.
//!
//! Clients and handlers [`record`](History::record) [`Event`]s, or write them as lines of JSON that are
//! [read](History::read_lines) later. [`History::check`] finds violations of these rules:
//!
//! | rule | meaning |
//! |---|---|
//! | H1 | an acknowledged task is never unknown before its time to live ends |
//! | H2 | a task that ended stays as it ended, with one outcome |
//! | H3 | a step has one value, and whatever has a value ran at least once |
//! | H4 | two attempts overlap only after a lease ended |
//! | H5 | a state is used by one call |
//! | H6 | a stream has no gap and no duplicate, or ends with an error |
//! | H7 | every request is settled |
//! | H8 | after the faults end, no task stays at work without an owner |
//! | H9 | nothing is seen by another principal |
//!
//! After a failover that lost writes only H2, H7 and H9 hold: [`Rules::after_lost_writes`].

mod check;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// One of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the table of the module describes them")]
pub enum Rule {
    H1,
    H2,
    H3,
    H4,
    H5,
    H6,
    H7,
    H8,
    H9,
}

/// The rules that a run must follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules(BTreeSet<Rule>);

impl Rules {
    /// All of them.
    pub fn all() -> Self {
        use Rule::{H1, H2, H3, H4, H5, H6, H7, H8, H9};
        Self([H1, H2, H3, H4, H5, H6, H7, H8, H9].into())
    }

    /// Those that hold although the store lost acknowledged writes.
    pub fn after_lost_writes() -> Self {
        Self([Rule::H2, Rule::H7, Rule::H9].into())
    }

    /// Leaves one out.
    #[must_use]
    pub fn without(mut self, rule: Rule) -> Self {
        self.0.remove(&rule);
        self
    }
}

/// The state of a task as a client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// It runs, or waits to run.
    Working,
    /// It waits for an answer.
    InputRequired,
    /// It has ended.
    Ended,
}

/// What happened. Times are milliseconds of one clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names of the members say what they are")]
pub enum Event {
    /// A client got the id of a new task.
    Created { task: String, principal: String, ttl: u64 },
    /// A client read a task. `outcome` identifies the result of a task that has ended.
    Read { task: String, principal: String, asked: u64, status: Status, outcome: Option<String> },
    /// A client was answered that there is no such task.
    Unknown { task: String, principal: String, asked: u64 },
    /// A node began to work on a task under a claim. `lapses` is the count of the record.
    AttemptStarted { task: String, node: String, claim: String, lapses: u32 },
    /// The attempt ended.
    AttemptEnded { task: String, claim: String },
    /// All attempts of a node ended with it.
    NodeDied { node: String },
    /// The effect of a step happened.
    StepRan { task: String, step: String },
    /// A handler continued with the value of a step.
    StepUsed { task: String, step: String, value: String },
    /// A call was accepted with a state that is good for one use.
    StateUsed { state: String, call: String },
    /// A client received an event of a stream. Numbers count from 1.
    StreamEvent { stream: String, number: u64 },
    /// The stream notified its client that events were lost.
    StreamBroken { stream: String },
    /// A client sent a request.
    Sent { request: String },
    /// The request was answered, failed, or its connection broke.
    Settled { request: String },
    /// No more faults after this event.
    Quiet,
}

/// An event and when it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// In milliseconds.
    pub at: u64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

impl Entry {
    /// An event at a time.
    pub fn new(at: u64, event: Event) -> Self {
        Self { at, event }
    }

    /// One line of JSON.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("an entry is JSON")
    }
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.what)
    }
}

/// A line that is not an event.
#[derive(Debug)]
pub struct InvalidLine {
    number: usize,
    source: serde_json::Error,
}

impl fmt::Display for InvalidLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the history is not an event: {}", self.number, self.source)
    }
}

impl std::error::Error for InvalidLine {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The events of a run.
///
/// ```
/// use bowline_testing::history::{Event, History, Rules, Status};
///
/// let history = History::new();
/// let (task, principal) = ("t1".to_owned(), "ann".to_owned());
/// history.record(0, Event::Created { task: task.clone(), principal: principal.clone(), ttl: 60_000 });
/// history.record(9, Event::Unknown { task, principal, asked: 8 });
/// let violations = history.check(&Rules::all());
/// assert_eq!(violations[0].to_string(), "H1: task t1 was created at 0 for 60000 ms and unknown at 9");
/// ```
#[derive(Debug, Default)]
pub struct History {
    entries: Mutex<Vec<Entry>>,
}

impl History {
    /// Without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event.
    pub fn record(&self, at: u64, event: Event) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).push(Entry::new(at, event));
    }

    /// Adds events from lines of JSON, such as those of another process. Empty lines are ignored.
    pub fn read_lines(&self, text: &str) -> Result<(), InvalidLine> {
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let entry: Entry =
                serde_json::from_str(line).map_err(|source| InvalidLine { number: index + 1, source })?;
            self.entries.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        }
        Ok(())
    }

    /// All events in the order of their times.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner).clone();
        entries.sort_by_key(|entry| entry.at);
        entries
    }

    /// Returns the violations of the rules.
    pub fn check(&self, rules: &Rules) -> Vec<Violation> {
        let mut violations = check::all(&self.entries());
        violations.retain(|violation| rules.0.contains(&violation.rule));
        violations
    }
}
