//! `bowline prompt`: gets a prompt with its arguments filled in.

use crate::{
    content::ContentPrinter,
    context::Context,
    failure::Failure,
    schema::Schema,
    screen::Tone,
    session::Session,
    target::{ConnectionArguments, Interaction, RequestOptions},
    tool_arguments,
};
use bowline_types::Prompt;
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(
    override_usage = "bowline prompt [OPTIONS] TARGET PROMPT [NAME=VALUE]...\n       bowline prompt [OPTIONS] PROMPT [NAME=VALUE]... -- PROGRAM..."
)]
pub(crate) struct Arguments {
    /// The server, the prompt and its arguments
    #[arg(value_name = "TARGET PROMPT ARGUMENTS")]
    words: Vec<String>,
    /// Save images, audio and other binary content in this directory
    #[arg(long, short = 'o', value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    request: RequestOptions,
    #[command(flatten)]
    interaction: Interaction,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let (name, words) = arguments.connection.split(&arguments.words);
    let Some((prompt, words)) = words.split_first() else {
        return Err(arguments.connection.missing(name, "prompt name", "prompts"));
    };
    let target = arguments.interaction.apply(arguments.connection.target(name, context)?)?;
    let (folder, options) = (arguments.output.as_deref(), &arguments.request);
    Session::with(target, context, async |session| fill(session, prompt, words, folder, options).await).await
}

pub(crate) async fn fill(
    session: &Session<'_>,
    name: &str,
    words: &[String],
    folder: Option<&Path>,
    options: &RequestOptions,
) -> Result<(), Failure> {
    let prompts = session.prompts().await?;
    let prompt = prompts.iter().find(|prompt| prompt.name == name);
    let prompt = prompt
        .ok_or_else(|| session.unknown("prompt", name, prompts.iter().map(|prompt| prompt.name.as_str())))?;
    let look = session.inspect_command("prompts", "");
    let arguments = tool_arguments::arguments(session, name, &look, &schema(prompt), words, None).await?;
    let request = options.apply(session.client.prompt(name, arguments));
    let result = request.await.map_err(|error| session.explain(error))?;
    let screen = session.context.screen;
    if session.context.json() {
        return screen.json(&json!({ "description": result.description, "messages": result.messages }));
    }
    let printer = ContentPrinter { screen, folder, name };
    for (place, message) in result.messages.iter().enumerate() {
        if place > 0 {
            screen.line("")?;
        }
        screen.line(&screen.paint(Tone::Heading, &format!("[{}]", message.role.as_str())))?;
        printer.block(&message.content)?;
    }
    Ok(())
}

/// Returns the arguments of a prompt as a schema. All arguments are strings.
fn schema(prompt: &Prompt) -> Schema {
    let mut properties = Map::new();
    for argument in &prompt.arguments {
        let schema = json!({ "type": "string", "description": argument.description });
        properties.insert(argument.name.clone(), schema);
    }
    let required = prompt.arguments.iter().filter(|argument| argument.required == Some(true));
    let required: Vec<Value> = required.map(|argument| argument.name.clone().into()).collect();
    let schema = json!({ "properties": properties, "required": required, "additionalProperties": false });
    Schema::new(&schema.into())
}
