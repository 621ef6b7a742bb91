//! The status of a server.

use bowline_types::Revision;
use std::time::Duration;

/// Whether a server can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It is not running, because nobody has used it recently.
    Idle,
    /// It is starting.
    Starting,
    /// It is running.
    Ready,
    /// It failed to start, or the connection was lost. Contains the reason, with exit status and last output of a program.
    Failed(String),
}

/// The status of one instance of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpstreamStatus {
    /// The name of the server.
    pub name: String,
    /// Whether it can be called.
    pub health: Health,
    /// The negotiated revision.
    pub revision: Option<Revision>,
    /// Why its lists could not be read, if so.
    pub list_problem: Option<String>,
    /// How many tools it has, once they were listed.
    pub tools: Option<usize>,
    /// How often it was started.
    pub starts: u64,
    /// How many calls it received.
    pub calls: u64,
    /// How many of them failed.
    pub errors: u64,
    /// How many calls are running.
    pub running: usize,
    /// How long it has been in this state.
    pub since: Duration,
    /// Whether its last failure was a missing login.
    pub needs_login: bool,
}
