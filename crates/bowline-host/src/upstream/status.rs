//! How a server behind the host is doing.

use bowline_types::Revision;
use std::time::Duration;

/// Whether a server can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nobody has needed it yet, or not for a while.
    Idle,
    /// It is being started.
    Starting,
    /// It answers.
    Ready,
    /// It could not be started, or was lost: why, with its exit and its last words where it is a program.
    Failed(String),
}

/// What there is to say of one instance of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpstreamStatus {
    /// The name the user gave it.
    pub name: String,
    /// Whether it can be called.
    pub health: Health,
    /// The revision both sides agreed on.
    pub revision: Option<Revision>,
    /// Why what it offers could not be listed, if it could not.
    pub list_problem: Option<String>,
    /// How many tools it offers, once they were asked for.
    pub tools: Option<usize>,
    /// How often it was started.
    pub starts: u64,
    /// How many calls went to it.
    pub calls: u64,
    /// How many of them failed.
    pub errors: u64,
    /// How many run now.
    pub running: usize,
    /// For how long it has been in this state.
    pub since: Duration,
}
