//! `bowline prompts`: lists the prompts of a server and their arguments.

use crate::{context::Context, failure::Failure, session::Session, table, target::TargetArguments};
use bowline_types::Prompt;
use clap::Args;
use serde_json::json;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TargetArguments,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    Session::with(arguments.target.target(context)?, context, async |session| show(session).await).await
}

pub(crate) async fn show(session: &Session<'_>) -> Result<(), Failure> {
    let (prompts, screen) = (session.prompts().await?, session.context.screen);
    if session.context.json() {
        return screen.json(&json!({ "prompts": prompts }));
    }
    if prompts.is_empty() {
        screen.note("the server has no prompts");
    }
    table::rows(screen, prompts.iter().map(|prompt| (prompt.name.as_str(), summary(prompt))))
}

/// Returns the arguments as they are typed, optional ones in brackets, followed by the description.
fn summary(prompt: &Prompt) -> String {
    let argument = |argument: &bowline_types::PromptArgument| match argument.required {
        Some(true) => format!("{}=", argument.name),
        _ => format!("[{}=]", argument.name),
    };
    let mut words: Vec<String> = prompt.arguments.iter().map(argument).collect();
    words.extend(prompt.description.clone().or_else(|| prompt.title.clone()));
    words.join(" ")
}
