//! The words of the command line: what all commands share, and which commands there are.

use crate::{commands, failure};
use bowline_types::Revision;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// The Model Context Protocol from the command line
///
/// Without a command it is `bowline up`: a host with its gateway, and the servers of the configuration behind it.
#[derive(Debug, Parser)]
#[command(name = "bowline", version, max_term_width = 100, after_long_help = failure::CODES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What every command understands.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Common {
    /// Write results and errors as JSON, in a form that stays the same
    #[arg(long, global = true, help_heading = "Common options")]
    pub(crate) json: bool,
    /// Read this configuration instead of searching for one; may be given more than once
    #[arg(long, short = 'c', global = true, value_name = "FILE", help_heading = "Common options")]
    pub(crate) config: Vec<PathBuf>,
    /// Run as if started in this folder
    #[arg(long, short = 'C', global = true, value_name = "FOLDER", help_heading = "Common options")]
    pub(crate) directory: Option<PathBuf>,
    /// Speak only this revision of the protocol
    #[arg(long, global = true, value_name = "DATE", value_parser = revision, help_heading = "Common options")]
    pub(crate) revision: Option<Revision>,
    /// Show every message with its time, on standard error
    #[arg(long, global = true, help_heading = "Common options")]
    pub(crate) trace: bool,
    /// Write every message that passes to this file, as a transcript that `bowline replay` understands
    #[arg(long, global = true, value_name = "FILE", help_heading = "Common options")]
    pub(crate) record: Option<PathBuf>,
    /// Never ask anything, even at a terminal
    #[arg(long, global = true, help_heading = "Common options")]
    pub(crate) no_input: bool,
    /// Whether to use color: `auto` does so at a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Common options")]
    pub(crate) color: clap::ColorChoice,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the host with its gateway, and show how its servers are doing
    Up(commands::up::Arguments),
    /// Run the host without a person: as a service, or as the one server of another program
    Gateway(commands::gateway::Arguments),
    /// Give a program that starts its servers the gateway that you run
    Connect(commands::connect::Arguments),
    /// Run one of the servers that come with the program
    Serve(commands::serve::Arguments),
    /// See what the configuration says, look for mistakes in it, take over that of other programs
    Config(commands::config::Arguments),
    /// Show or replace the token that clients send to your gateway
    Token(commands::token::Arguments),
    /// See which definitions of tools were accepted, how they changed, and accept the change
    Pins(commands::pins::Arguments),
    /// List the answers that were given when the gateway asked, and take them back
    Answers(commands::answers::Arguments),
    /// Show who a server is and what it can do
    Info(commands::info::Arguments),
    /// List the tools of a server, or show one in full
    Tools(commands::tools::Arguments),
    /// Call a tool
    Call(commands::call::Arguments),
    /// List the resources of a server
    Resources(commands::resources::Arguments),
    /// List the resource templates of a server
    Templates(commands::resources::Arguments),
    /// Read a resource
    Read(commands::read::Arguments),
    /// List the prompts of a server
    Prompts(commands::prompts::Arguments),
    /// Fill in a prompt
    Prompt(commands::prompt::Arguments),
    /// Send any request, and print its result as JSON
    Request(commands::request::Arguments),
    /// Ask a server what it proposes for an argument
    Complete(commands::complete::Arguments),
    /// Show what a server tells by itself: log messages and changes
    Watch(commands::watch::Arguments),
    /// See whether a server answers
    Ping(commands::ping::Arguments),
    /// See what is wrong with a server, and what other clients will not take
    Doctor(commands::doctor::Arguments),
    /// Stand between a client and a server, and write down what they say
    Record(commands::record::Arguments),
    /// Serve a recording, or say it again to a program and compare the answers
    Replay(commands::replay::Arguments),
    /// Write a reference page of the book
    #[command(name = "__reference", hide = true)]
    Reference(commands::reference::Arguments),
    /// Keep a connection open and give it one command after the other
    Repl(commands::repl::Arguments),
    /// Print what makes a shell complete command lines
    Completions(commands::completions::Arguments),
    /// Print or write the manual
    Man(commands::man::Arguments),
    #[command(name = "__complete", hide = true)]
    CompletionRequest(commands::completions::CompletionRequest),
}

#[cfg(test)]
#[test]
fn the_words_of_the_command_line_fit_together() {
    <Arguments as clap::CommandFactory>::command().debug_assert();
}

impl Command {
    /// Whether it has many callers, for whom more than one thread is worth having.
    pub(crate) fn serves_many(&self) -> bool {
        matches!(self, Self::Up(_) | Self::Gateway(_) | Self::Serve(_))
    }

    /// Whether the files that the user names have to be there.
    pub(crate) fn reads_configuration(&self) -> bool {
        match self {
            Self::Config(arguments) => !arguments.writes(),
            Self::CompletionRequest(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Reference(_)
            | Self::Token(_)
            | Self::Connect(_) => false,
            _ => true,
        }
    }
}

fn revision(text: &str) -> Result<Revision, String> {
    text.parse().map_err(|_| {
        let known: Vec<&str> = Revision::ALL.iter().map(|revision| revision.as_str()).collect();
        format!("expected one of {}", known.join(", "))
    })
}
