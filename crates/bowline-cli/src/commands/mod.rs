//! The command line: the commands, one module each.

pub(crate) mod answers;
pub(crate) mod call;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod connect;
pub(crate) mod doctor;
pub(crate) mod gateway;
pub(crate) mod info;
pub(crate) mod inspect;
pub(crate) mod login;
pub(crate) mod logout;
pub(crate) mod man;
pub(crate) mod open;
pub(crate) mod ping;
pub(crate) mod pins;
pub(crate) mod prompt;
pub(crate) mod prompts;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod reference;
pub(crate) mod repl;
pub(crate) mod replay;
pub(crate) mod request;
pub(crate) mod resources;
pub(crate) mod serve;
pub(crate) mod store;
pub(crate) mod tasks;
pub(crate) mod token;
pub(crate) mod tools;
pub(crate) mod up;
pub(crate) mod watch;
pub(crate) mod whoami;

use crate::{
    context::{Common, Context},
    failure::{CODES, Code, Failure},
    logging,
};
use clap::{Parser, Subcommand};

/// Run, call and debug Model Context Protocol servers
///
/// Without a command, runs `bowline up`: a gateway in front of all configured servers.
#[derive(Debug, Parser)]
#[command(name = "bowline", version, max_term_width = 100, after_long_help = CODES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the gateway and show the status of its servers
    Up(up::Arguments),
    /// Run the gateway headless, over HTTP or stdio
    Gateway(gateway::Arguments),
    /// Inspect a server in the browser: its tools, messages and questions
    ///
    /// If TARGET is a directory that `--keep` wrote, shows the messages in it and starts no server.
    Inspect(inspect::Arguments),
    /// Open the inspector of your running gateway in the browser
    Open(open::Arguments),
    /// Connect a stdio client to your running gateway
    Connect(connect::Arguments),
    /// Run a built-in server
    Serve(serve::Arguments),
    /// Show, check or import configuration
    Config(config::Arguments),
    /// Show or replace the token of your gateway
    Token(token::Arguments),
    /// Log in to a server with OAuth
    Login(login::Arguments),
    /// Log out of a server: revoke and delete its tokens
    Logout(logout::Arguments),
    /// Show your logins
    Whoami(whoami::Arguments),
    /// List, compare and accept pinned tool definitions
    Pins(pins::Arguments),
    /// List and revoke your stored answers
    Answers(answers::Arguments),
    /// Check the store that keeps tasks and sessions, or rotate its keys
    Store(store::Arguments),
    /// Show the name, version and capabilities of a server
    Info(info::Arguments),
    /// List the tools of a server, or describe one
    Tools(tools::Arguments),
    /// Call a tool
    Call(call::Arguments),
    /// Show, wait for, answer or cancel the tasks of a server
    Tasks(tasks::Arguments),
    /// List the resources of a server
    Resources(resources::Arguments),
    /// List the resource templates of a server
    Templates(resources::Arguments),
    /// Read a resource
    Read(read::Arguments),
    /// List the prompts of a server
    Prompts(prompts::Arguments),
    /// Get a prompt
    Prompt(prompt::Arguments),
    /// Send any request and print the result as JSON
    Request(request::Arguments),
    /// Ask a server to complete an argument
    Complete(complete::Arguments),
    /// Print the notifications and log messages of a server
    Watch(watch::Arguments),
    /// Check whether a server responds
    Ping(ping::Arguments),
    /// Check a server for protocol errors and client compatibility
    Doctor(doctor::Arguments),
    /// Record the messages between a client and a server
    Record(record::Arguments),
    /// Serve a recording, or replay it against a server and compare
    Replay(replay::Arguments),
    /// Print a reference page of the book
    #[command(name = "__reference", hide = true)]
    Reference(reference::Arguments),
    /// Run several commands over one connection
    Repl(repl::Arguments),
    /// Print a completion script for a shell
    Completions(completions::Arguments),
    /// Print the manual page, or write the pages of all commands to a directory
    Man(man::Arguments),
    #[command(name = "__complete", hide = true)]
    CompletionRequest(completions::CompletionRequest),
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

/// Runs a command. `None` runs `up`.
pub(crate) async fn run(command: Option<Command>, context: &Context) -> Result<(), Failure> {
    if let Some(path) = context.environment.missing()
        && command.as_ref().is_none_or(Command::reads_configuration)
    {
        let sentence = format!("configuration file `{}` does not exist", path.display());
        return Err(Failure::new(Code::Config, sentence));
    }
    if !command.as_ref().is_none_or(Command::starts_logging) {
        logging::start_if_wanted(context)?;
    }
    match command {
        None => up::run(up::Arguments::default(), context).await,
        Some(Command::Up(arguments)) => up::run(arguments, context).await,
        Some(Command::Gateway(arguments)) => gateway::run(arguments, context).await,
        Some(Command::Inspect(arguments)) => inspect::run(arguments, context).await,
        Some(Command::Open(arguments)) => open::run(arguments, context).await,
        Some(Command::Connect(arguments)) => connect::run(arguments, context).await,
        Some(Command::Serve(arguments)) => serve::run(arguments, context).await,
        Some(Command::Config(arguments)) => config::run(&arguments, context),
        Some(Command::Token(arguments)) => token::run(&arguments, context),
        Some(Command::Login(arguments)) => login::run(arguments, context).await,
        Some(Command::Logout(arguments)) => logout::run(arguments, context).await,
        Some(Command::Whoami(arguments)) => whoami::run(arguments, context).await,
        Some(Command::Pins(arguments)) => pins::run(arguments, context).await,
        Some(Command::Answers(arguments)) => answers::run(&arguments, context),
        Some(Command::Store(arguments)) => store::run(arguments, context).await,
        Some(Command::Info(arguments)) => info::run(arguments, context).await,
        Some(Command::Tools(arguments)) => tools::run(arguments, context).await,
        Some(Command::Call(arguments)) => call::run(arguments, context).await,
        Some(Command::Tasks(arguments)) => Box::pin(tasks::run(arguments, context)).await,
        Some(Command::Resources(arguments)) => resources::run(arguments, context).await,
        Some(Command::Templates(arguments)) => resources::run_templates(arguments, context).await,
        Some(Command::Read(arguments)) => read::run(arguments, context).await,
        Some(Command::Prompts(arguments)) => prompts::run(arguments, context).await,
        Some(Command::Prompt(arguments)) => prompt::run(arguments, context).await,
        Some(Command::Request(arguments)) => request::run(arguments, context).await,
        Some(Command::Complete(arguments)) => complete::run(arguments, context).await,
        Some(Command::Watch(arguments)) => watch::run(arguments, context).await,
        Some(Command::Ping(arguments)) => ping::run(arguments, context).await,
        Some(Command::Doctor(arguments)) => doctor::run(arguments, context).await,
        Some(Command::Record(arguments)) => record::run(arguments, context).await,
        Some(Command::Replay(arguments)) => replay::run(arguments, context).await,
        Some(Command::Reference(arguments)) => reference::run(&arguments),
        Some(Command::Repl(arguments)) => repl::run(arguments, context).await,
        Some(Command::Completions(arguments)) => completions::run(&arguments, context),
        Some(Command::Man(arguments)) => man::run(&arguments, context),
        Some(Command::CompletionRequest(arguments)) => completions::answer(&arguments, context),
    }
}

#[cfg(test)]
#[test]
fn the_command_line_definition_is_consistent() {
    <Arguments as clap::CommandFactory>::command().debug_assert();
}
