//! `bowline token`: shows the token that clients send to the user's gateway, or replaces it.

use crate::{
    context::Context,
    failure::{Code, Failure},
    running_gateway::RunningGateway,
    token::{TokenError, TokenFile, unusable},
};
use clap::{Args, Subcommand};
use serde_json::json;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum Action {
    /// Print the token, which is created if there is none
    Show,
    /// Replace the token: clients with the old one are refused once the gateway is started again
    Rotate,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let Some(file) = TokenFile::of(&context.environment) else {
        return Err(Failure::new(Code::Failed, "there is no home directory to keep a token in").advise(
            "set HOME or XDG_STATE_HOME; without one every run of the gateway prints a token of its own",
        ));
    };
    let cannot_write = |error: std::io::Error| {
        Failure::new(Code::Failed, format!("cannot write `{}`: {error}", file.path().display()))
    };
    let token = match arguments.action {
        Action::Show => file.read_or_create().map_err(|error| match error {
            TokenError::Unusable(error) => unusable(&error),
            TokenError::CannotWrite(error) => cannot_write(error),
        })?,
        Action::Rotate => file.rotate().map_err(cannot_write)?,
    };
    if context.json() {
        return context.screen.json(&json!({ "token": token, "file": file.path() }));
    }
    context.screen.line(&token)?;
    if let (Action::Rotate, Some(running)) = (arguments.action, RunningGateway::find(&context.environment)) {
        let RunningGateway { url, pid, .. } = running;
        context.screen.note(&format!("{url} uses the old token until its process {pid} is started again"));
    }
    Ok(())
}
