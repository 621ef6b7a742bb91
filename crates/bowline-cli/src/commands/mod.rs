//! The commands, one module each: its arguments, and what it does.

pub(crate) mod doctor;
pub(crate) mod ping;
pub(crate) mod record;
pub(crate) mod replay;

use crate::{arguments::Command, context::Context, failure::Failure};

/// Runs a command; none is `up`.
pub(crate) async fn run(command: Option<Command>, context: &Context) -> Result<(), Failure> {
    match command {
        None => Err(Failure::misused("there is no `up` yet")),
        Some(Command::Ping(arguments)) => ping::run(arguments, context).await,
        Some(Command::Doctor(arguments)) => doctor::run(arguments, context).await,
        Some(Command::Record(arguments)) => record::run(arguments, context).await,
        Some(Command::Replay(arguments)) => replay::run(arguments, context).await,
    }
}
