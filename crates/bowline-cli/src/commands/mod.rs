//! The commands, one module each: its arguments, and what it does.

pub(crate) mod ping;
pub(crate) mod reference;

use crate::{arguments::Command, context::Context, failure::Failure};

/// Runs a command; none is `up`.
pub(crate) async fn run(command: Option<Command>, context: &Context) -> Result<(), Failure> {
    match command {
        None => Err(Failure::misused("there is no `up` yet")),
        Some(Command::Ping(arguments)) => ping::run(arguments, context).await,
        Some(Command::Reference(arguments)) => reference::run(arguments, context).await,
    }
}
