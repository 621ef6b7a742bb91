//! Defines the command line: the commands and their common options.

use crate::{commands, failure};
use bowline_types::Revision;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Run, call and debug Model Context Protocol servers
///
/// Without a command, runs `bowline up`: a gateway in front of all configured servers.
#[derive(Debug, Parser)]
#[command(name = "bowline", version, max_term_width = 100, after_long_help = failure::CODES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Options of every command.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Common {
    /// Print results and errors as JSON in a stable format
    #[arg(long, global = true, help_heading = "Common options")]
    pub(crate) json: bool,
    /// Read this configuration file instead of the default ones; can be repeated
    #[arg(long, short = 'c', global = true, value_name = "FILE", help_heading = "Common options")]
    pub(crate) config: Vec<PathBuf>,
    /// Change to this directory first
    #[arg(long, short = 'C', global = true, value_name = "DIR", help_heading = "Common options")]
    pub(crate) directory: Option<PathBuf>,
    /// Use only this protocol revision
    #[arg(long, global = true, value_name = "DATE", value_parser = revision, help_heading = "Common options")]
    pub(crate) revision: Option<Revision>,
    /// Print every message with a timestamp to standard error
    #[arg(long, global = true, help_heading = "Common options")]
    pub(crate) trace: bool,
    /// Record all messages to this file; `bowline replay` can play it back
    #[arg(long, global = true, value_name = "FILE", help_heading = "Common options")]
    pub(crate) record: Option<PathBuf>,
    /// Never prompt, even at a terminal
    #[arg(long, global = true, help_heading = "Common options")]
    pub(crate) no_input: bool,
    /// When to use colors; `auto` uses them at a terminal unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Common options")]
    pub(crate) color: clap::ColorChoice,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the gateway and show the status of its servers
    Up(commands::up::Arguments),
    /// Run the gateway headless, over HTTP or stdio
    Gateway(commands::gateway::Arguments),
    /// Show a server in the browser: its tools, every message, what it asks
    Inspect(commands::inspect::Arguments),
    /// Open the inspector of your running gateway in the browser
    Open(commands::open::Arguments),
    /// Connect a stdio client to your running gateway
    Connect(commands::connect::Arguments),
    /// Run a built-in server
    Serve(commands::serve::Arguments),
    /// Show, check or import configuration
    Config(commands::config::Arguments),
    /// Show or replace the access token of your gateway
    Token(commands::token::Arguments),
    /// Log in to a server with OAuth
    Login(commands::login::Arguments),
    /// Log out of a server: revoke and delete its tokens
    Logout(commands::logout::Arguments),
    /// Show your logins
    Whoami(commands::whoami::Arguments),
    /// List, compare and accept pinned tool definitions
    Pins(commands::pins::Arguments),
    /// List and revoke remembered approvals
    Answers(commands::answers::Arguments),
    /// Check the store that keeps tasks and sessions, or rotate its keys
    Store(commands::store::Arguments),
    /// Show the name, version and capabilities of a server
    Info(commands::info::Arguments),
    /// List the tools of a server, or describe one
    Tools(commands::tools::Arguments),
    /// Call a tool
    Call(commands::call::Arguments),
    /// Show, wait for, answer or cancel the tasks of a server
    Tasks(commands::tasks::Arguments),
    /// List the resources of a server
    Resources(commands::resources::Arguments),
    /// List the resource templates of a server
    Templates(commands::resources::Arguments),
    /// Read a resource
    Read(commands::read::Arguments),
    /// List the prompts of a server
    Prompts(commands::prompts::Arguments),
    /// Get a prompt
    Prompt(commands::prompt::Arguments),
    /// Send any request and print the result as JSON
    Request(commands::request::Arguments),
    /// Ask a server to complete an argument
    Complete(commands::complete::Arguments),
    /// Print the notifications and log messages of a server
    Watch(commands::watch::Arguments),
    /// Check whether a server responds
    Ping(commands::ping::Arguments),
    /// Check a server for protocol errors and client compatibility
    Doctor(commands::doctor::Arguments),
    /// Record the messages between a client and a server
    Record(commands::record::Arguments),
    /// Serve a recording, or replay it against a server and compare
    Replay(commands::replay::Arguments),
    /// Print a reference page of the book
    #[command(name = "__reference", hide = true)]
    Reference(commands::reference::Arguments),
    /// Run several commands over one connection
    Repl(commands::repl::Arguments),
    /// Print a completion script for a shell
    Completions(commands::completions::Arguments),
    /// Print the manual page, or write the pages of all commands to a directory
    Man(commands::man::Arguments),
    #[command(name = "__complete", hide = true)]
    CompletionRequest(commands::completions::CompletionRequest),
}

#[cfg(test)]
#[test]
fn the_command_line_definition_is_consistent() {
    <Arguments as clap::CommandFactory>::command().debug_assert();
}

impl Command {
    /// Returns whether the command serves many callers and benefits from several threads.
    pub(crate) fn serves_many(&self) -> bool {
        matches!(self, Self::Up(_) | Self::Gateway(_) | Self::Serve(_) | Self::Inspect(_))
    }

    /// Returns whether the command starts logging itself, or must not log: a shell shows what completion prints.
    pub(crate) fn starts_logging(&self) -> bool {
        self.serves_many() || matches!(self, Self::CompletionRequest(_))
    }

    /// Returns whether the files named by `--config` must exist.
    pub(crate) fn reads_configuration(&self) -> bool {
        match self {
            Self::Config(arguments) => !arguments.writes(),
            Self::CompletionRequest(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Reference(_)
            | Self::Store(_)
            | Self::Token(_)
            | Self::Connect(_)
            | Self::Open(_) => false,
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
