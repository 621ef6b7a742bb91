//! The commands, one module each: its arguments, and what it does.

pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod gateway;
pub(crate) mod ping;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod up;

use crate::{arguments::Command, context::Context, failure::Failure};

/// Runs a command; none is `up`.
pub(crate) async fn run(command: Option<Command>, context: &Context) -> Result<(), Failure> {
    match command {
        None => up::run(up::Arguments::default(), context).await,
        Some(Command::Up(arguments)) => up::run(arguments, context).await,
        Some(Command::Gateway(arguments)) => gateway::run(arguments, context).await,
        Some(Command::Config(arguments)) => config::run(&arguments, context),
        Some(Command::Ping(arguments)) => ping::run(arguments, context).await,
        Some(Command::Doctor(arguments)) => doctor::run(arguments, context).await,
        Some(Command::Record(arguments)) => record::run(arguments, context).await,
        Some(Command::Replay(arguments)) => replay::run(arguments, context).await,
    }
}
