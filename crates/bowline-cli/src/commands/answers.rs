//! `bowline answers`: lists and revokes stored answers.

use crate::{
    context::Context,
    failure::{Code, Failure},
    table,
};
use bowline_policy::{Answered, Answers, Covers, Remembered, StoreError};
use bowline_text::visible;
use clap::{Args, Subcommand};
use serde_json::json;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the stored answers
    List,
    /// Revoke answers, so that you are asked again; takes effect immediately in a running gateway
    Revoke(Which),
}

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["server", "all"]))]
struct Which {
    /// The server
    server: Option<String>,
    /// The tool, prompt or URI [default: all answers for the server]
    #[arg(requires = "server")]
    name: Option<String>,
    /// Revoke all answers
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let Some(folder) = context.environment.state_dir() else {
        return Err(Failure::new(Code::Failed, "answers cannot be stored without a home directory"));
    };
    let answers = Answers::open(folder.join("answers.json")).map_err(|error| unusable(&error))?;
    match &arguments.command {
        Command::List => list(&answers, context),
        Command::Revoke(which) => revoke(&answers, which, context),
    }
}

fn unusable(error: &StoreError) -> Failure {
    Failure::new(Code::Failed, error.to_string())
}

fn list(answers: &Answers, context: &Context) -> Result<(), Failure> {
    let (kept, screen) = (answers.kept().map_err(|error| unusable(&error))?, context.screen);
    if context.json() {
        return screen.json(&json!({ "file": answers.path(), "answers": kept }));
    }
    if kept.is_empty() {
        screen.note("no answers are stored");
    }
    table::rows(screen, kept.iter().map(|kept| (kept.server.as_str(), describe(kept))))?;
    if let Some(path) = answers.path() {
        screen.note(&format!("stored in {}", path.display()));
    }
    Ok(())
}

fn describe(kept: &Remembered) -> String {
    let answer = match kept.answer {
        Answered::Allow => "allow",
        Answered::Deny => "deny",
    };
    let what = match (kept.covers, &kept.name) {
        (Covers::Server, _) => "everything".to_owned(),
        (Covers::ReadOnlyTools, _) => "all read-only tools".to_owned(),
        (Covers::Tool, Some(name)) => format!("{} {name}", kept.action.as_str()),
        (Covers::Tool, None) => kept.action.as_str().to_owned(),
    };
    let mut line = format!("{answer} {what}");
    if kept.arguments.is_some() {
        line.push_str(" with the same arguments");
    }
    if let Some(project) = &kept.project {
        line += ", in ";
        line += project;
    }
    if let Some(principal) = &kept.principal {
        line += ", for ";
        line += principal;
    }
    if let Some(expires) = kept.expires_text() {
        line += ", until ";
        line += &expires;
    }
    line
}

fn revoke(answers: &Answers, which: &Which, context: &Context) -> Result<(), Failure> {
    let is_meant = |kept: &Remembered| {
        let of_server = which.server.as_ref().is_none_or(|server| *server == kept.server);
        let of_name = which.name.is_none() || which.name == kept.name;
        of_server && of_name
    };
    let forgotten = answers.forget(is_meant).map_err(|error| unusable(&error))?;
    if context.json() {
        return context.screen.json(&json!({ "revoked": forgotten }));
    }
    if forgotten == 0
        && let Some(server) = &which.server
    {
        let sentence = format!("no matching answer for server `{}`", visible(server));
        return Err(
            Failure::new(Code::Failed, sentence).advise("run `bowline answers list` to see all answers")
        );
    }
    context.screen.note(&format!("answers revoked: {forgotten}"));
    Ok(())
}
