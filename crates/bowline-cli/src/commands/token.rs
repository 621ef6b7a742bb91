//! `bowline token`: shows or replaces the access token of the user's gateway.

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
    /// Print the token, and create it if there is none
    Show,
    /// Replace the token; takes effect after a restart of the gateway
    Rotate,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let Some(file) = TokenFile::of(&context.environment) else {
        return Err(Failure::new(Code::Failed, "cannot store a token without a home directory").advise(
            "set HOME or XDG_STATE_HOME; without them, each run of the gateway prints a temporary token",
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
        context
            .screen
            .note(&format!("the gateway at {url} (process {pid}) uses the old token until it is restarted"));
    }
    Ok(())
}
