//! Child processes: starts, watches and stops a server program.
//!
//! A [`Command`] describes the program, a [`Child`] is the running program with all processes that it starts, a
//! [`ProcessError`] says why it failed, and a [`Backoff`] decides when to retry.

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
