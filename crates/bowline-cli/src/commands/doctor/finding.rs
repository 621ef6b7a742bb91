//! What a check has to say: how bad, what, where, and what to do about it.

use clap::ValueEnum;
use serde::Serialize;

/// How bad a finding is; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// It breaks the protocol, or does not work.
    Error,
    /// Some clients will have trouble.
    Warning,
    /// It could be better.
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

/// One thing that was found, perhaps in several places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(super) level: Level,
    /// The name of the check, which stays the same.
    pub(super) check: &'static str,
    pub(super) what: String,
    #[serde(rename = "where")]
    pub(super) places: Vec<String>,
    pub(super) advice: &'static str,
}

impl Finding {
    pub(super) fn new(
        level: Level,
        check: &'static str,
        what: impl Into<String>,
        advice: &'static str,
    ) -> Self {
        Self { level, check, what: what.into(), places: Vec::new(), advice }
    }

    /// Says where it was found; none of it when that is nowhere.
    pub(super) fn at_all(mut self, places: Vec<String>) -> Option<Self> {
        self.places = places;
        (!self.places.is_empty()).then_some(self)
    }
}

/// What a check found, as lines for its tests.
#[cfg(test)]
pub(super) fn summary_lines(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let Finding { level, check, what, places, .. } = finding;
        format!("{} {check}: {what} [{}]", level.name(), places.join(", "))
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}
