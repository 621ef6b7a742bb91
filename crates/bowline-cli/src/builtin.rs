//! The servers that come with the program: their options, and how they are set up where nobody gives any.

use crate::{context::Context, failure::Failure};
use bowline_server::Server;
use clap::{FromArgMatches, Subcommand};

/// A server that comes with the program.
#[derive(Debug, Subcommand)]
pub(crate) enum Builtin {
    /// Every feature of the protocol, each in the smallest way that shows it
    Everything,
}

impl Builtin {
    /// The one of this name, as it is without options.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let matches = Self::command().try_get_matches_from(["serve", name]).ok()?;
        Self::from_arg_matches(&matches).ok()
    }

    /// The names of all.
    pub(crate) fn names() -> Vec<String> {
        Self::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
    }

    fn command() -> clap::Command {
        Self::augment_subcommands(clap::Command::new("serve")).disable_help_subcommand(true)
    }

    /// The server.
    pub(crate) fn server(&self, context: &Context) -> Result<Server, Failure> {
        let _ = context;
        match self {
            Self::Everything => Ok(bowline_servers::everything::server()),
        }
    }
}
