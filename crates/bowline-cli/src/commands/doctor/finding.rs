//! Findings: severity, description, places and advice.

use clap::ValueEnum;
use serde::Serialize;

/// The severity of a finding, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// A protocol violation, or something does not work.
    Error,
    /// Some clients will have problems.
    Warning,
    /// A possible improvement.
    Hint,
}

impl Level {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Hint => "hint",
        }
    }
}

/// A finding, possibly in several places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(super) level: Level,
    /// The stable name of the check.
    pub(super) check: &'static str,
    pub(super) what: String,
    #[serde(rename = "where")]
    pub(super) places: Vec<String>,
    pub(super) advice: &'static str,
    /// The numbers of the messages in the inspector that it is about.
    #[serde(skip)]
    pub(super) messages: Vec<u64>,
}

impl Finding {
    pub(super) fn new(
        level: Level,
        check: &'static str,
        what: impl Into<String>,
        advice: &'static str,
    ) -> Self {
        Self { level, check, what: what.into(), places: Vec::new(), advice, messages: Vec::new() }
    }

    /// Sets the places. Returns `None` if there are none.
    pub(super) fn at_all(mut self, places: Vec<String>) -> Option<Self> {
        self.places = places;
        (!self.places.is_empty()).then_some(self)
    }
}

/// Formats findings for tests.
#[cfg(test)]
pub(super) fn summary_lines(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let Finding { level, check, what, places, .. } = finding;
        format!("{} {check}: {what} [{}]", level.name(), places.join(", "))
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}
