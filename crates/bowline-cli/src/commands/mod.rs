//! The commands, one module each: its arguments, and what it does.

pub(crate) mod config;
pub(crate) mod gateway;
pub(crate) mod ping;
pub(crate) mod serve;
pub(crate) mod up;

use crate::{arguments::Command, context::Context, failure::Failure};

/// Runs a command; none is `up`.
pub(crate) async fn run(command: Option<Command>, context: &Context) -> Result<(), Failure> {
    match command {
        None => up::run(up::Arguments::default(), context).await,
        Some(Command::Up(arguments)) => up::run(arguments, context).await,
        Some(Command::Gateway(arguments)) => gateway::run(arguments, context).await,
        Some(Command::Serve(arguments)) => serve::run(arguments, context).await,
        Some(Command::Config(arguments)) => config::run(&arguments, context),
        Some(Command::Ping(arguments)) => ping::run(arguments, context).await,
    }
}
