//! The commands, one module each.

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
    arguments::Command,
    context::Context,
    failure::{Code, Failure},
    logging,
};

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
