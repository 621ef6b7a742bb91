//! `bowline prompts`: what a server has to say, and what it can be filled with.

use crate::{cache, context::Context, failure::Failure, session::Session, table, target::TargetArguments};
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
    let (prompts, screen) = (list(session).await?, session.context.screen);
    if session.context.json() {
        return screen.json(&json!({ "prompts": prompts }));
    }
    if prompts.is_empty() {
        screen.note("the server has no prompts");
    }
    table::rows(screen, prompts.iter().map(|prompt| (prompt.name.as_str(), summary(prompt))))
}

/// The prompts, which completion then knows of.
pub(crate) async fn list(session: &Session<'_>) -> Result<Vec<Prompt>, Failure> {
    let prompts = session.client.prompts().await?;
    cache::remember(session.context, &session.name, |names| names.set_prompts(&prompts));
    Ok(prompts)
}

/// The arguments in the way they are typed, those that may be left out in brackets; and what it is.
fn summary(prompt: &Prompt) -> String {
    let argument = |argument: &bowline_types::PromptArgument| match argument.required {
        Some(true) => format!("{}=", argument.name),
        _ => format!("[{}=]", argument.name),
    };
    let mut words: Vec<String> = prompt.arguments.iter().map(argument).collect();
    words.extend(prompt.description.clone().or_else(|| prompt.title.clone()));
    words.join(" ")
}
