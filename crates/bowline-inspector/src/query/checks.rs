//! What checks of a server found, as the page shows it.

use crate::render::Shown;
use serde::Serialize;

/// How far the checks of a server are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChecksState {
    /// They did not run yet.
    #[default]
    None,
    /// They run.
    Running,
    /// They are done.
    Done,
    /// They could not run; see `problem`.
    Failed,
}

/// The latest checks of a server.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ChecksView {
    /// Whether checks can run here.
    pub is_available: bool,
    /// How far they are.
    pub state: ChecksState,
    /// When they began, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
    /// Why they could not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Shown>,
    /// What they found, the worst first.
    pub findings: Vec<FindingView>,
}

/// Something that checks found.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FindingView {
    /// How bad it is.
    pub level: FindingLevel,
    /// The stable name of the check.
    pub check: String,
    /// What was found.
    pub what: Shown,
    /// Where, in words.
    pub places: Vec<Shown>,
    /// What to do.
    pub advice: String,
    /// The numbers of the messages that it is about.
    pub messages: Vec<u64>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingLevel {
    /// A violation of the protocol, or something does not work.
    Error,
    /// Some clients will have problems.
    Warning,
    /// A possible improvement.
    Hint,
}
