//! `bowline config`: what the configuration says, whether it is right, and what other programs have.

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
    /// Whether the configuration is written, which then need not be there.
    pub(crate) fn writes(&self) -> bool {
        matches!(self.command, Command::Import(_))
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the configuration that holds, and where each value comes from
    Explain,
    /// Look for mistakes in configuration files of any program
    Check(check::Arguments),
    /// Take over the servers that other programs on this computer have
    Import(import::Arguments),
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    match &arguments.command {
        Command::Explain => explain::run(context),
        Command::Check(arguments) => check::run(arguments, context),
        Command::Import(arguments) => import::run(arguments, context),
    }
}
