//! Child processes: how a server program is started, watched, explained and ended.
//!
//! A [`Command`] says what to run and under which rules, [`Child`] is the running program with everything it
//! starts, [`ProcessError`] tells why it failed, and [`Backoff`] decides when to try again.

mod child;
mod command;
mod environment;
mod error;
mod group;
mod limits;
#[cfg(unix)]
mod placeholder;
mod restart;
mod stderr;
#[cfg(unix)]
mod watchdog;

pub use child::Child;
pub use command::{Command, Environment, command};
pub(crate) use error::LastLines;
pub use error::{Exit, ProcessError};
pub use limits::Limits;
pub use restart::{Backoff, Restart, Retry};
pub use stderr::{Stderr, StderrMode};
