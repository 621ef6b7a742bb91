//! `bowline config`: shows, checks and imports configuration.

mod check;
mod explain;
mod import;
mod toml_entry;

use crate::{context::Context, failure::Failure};
use clap::{Args, Subcommand};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

impl Arguments {
    /// Returns whether the command writes the configuration, which then need not exist.
    pub(crate) fn writes(&self) -> bool {
        matches!(self.command, Command::Import(_))
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the effective configuration and the origin of each value
    Explain,
    /// Check configuration files of any client
    Check(check::Arguments),
    /// Import the servers configured in other clients
    Import(import::Arguments),
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    match &arguments.command {
        Command::Explain => explain::run(context),
        Command::Check(arguments) => check::run(arguments, context),
        Command::Import(arguments) => import::run(arguments, context),
    }
}
