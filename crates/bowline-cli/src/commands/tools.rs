//! `bowline tools`: lists the tools of a server, or describes one.

use crate::{
    context::Context,
    failure::Failure,
    schema::{Property, Schema},
    screen::{Screen, Tone},
    session::Session,
    table,
    target::ConnectionArguments,
};
use bowline_client::{RelayWith, Relayed};
use bowline_policy::hints;
use bowline_text::visible;
use bowline_types::{Method, RawJson, Tool};
use clap::Args;
use serde::Deserialize;
use serde_json::json;

/// The maximum depth of nested objects.
const DEEPEST: usize = 4;
/// The maximum number of nested members.
const MOST: usize = 500;

#[derive(Args, Debug)]
#[command(
    override_usage = "bowline tools [OPTIONS] [TARGET [TOOL]]\n       bowline tools [OPTIONS] [TOOL] -- PROGRAM..."
)]
pub(crate) struct Arguments {
    /// The server and the tool to describe
    #[arg(value_name = "TARGET TOOL", num_args = 0..=2)]
    words: Vec<String>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let (name, words) = arguments.connection.split(&arguments.words);
    let target = arguments.connection.target(name, context)?;
    Session::with(target, context, async |session| show(session, words).await).await
}

pub(crate) async fn show(session: &Session<'_>, words: &[String]) -> Result<(), Failure> {
    let screen = session.context.screen;
    match words {
        [] => {
            let tools = session.tools().await?;
            if session.context.json() {
                return screen.json(&json!({ "tools": tools }));
            }
            let starting = starting(session).await;
            if !starting.is_empty() {
                screen.note(&format!("still starting: {}", visible(&starting.join(", "))));
            }
            if tools.is_empty() {
                screen.note("the server has no tools");
            }
            table::rows(screen, tools.iter().map(|tool| (tool.name.as_str(), summary(tool))))
        }
        [name] => {
            let tool = session.find_tool(name).await?;
            if session.context.json() { screen.json(&tool) } else { describe(screen, &tool) }
        }
        [_, ..] => Err(Failure::misused("expected at most one tool name")),
    }
}

/// Returns the servers of a gateway that are still starting. Their tools are missing from the list.
async fn starting(session: &Session<'_>) -> Vec<String> {
    #[derive(Default, Deserialize)]
    struct Listed {
        #[serde(rename = "_meta", default)]
        meta: Starting,
    }
    #[derive(Default, Deserialize)]
    struct Starting {
        #[serde(rename = "bowline/starting", default)]
        servers: Vec<String>,
    }
    if !session.is_gateway() {
        return Vec::new();
    }
    let list = session.client.relay(Method::ListTools, RawJson::empty_object(), RelayWith::default());
    match list.await {
        Ok(Relayed::Complete(result)) => result.decode::<Listed>().unwrap_or_default().meta.servers,
        Ok(Relayed::InputRequired { .. } | Relayed::Task(_)) | Err(_) => Vec::new(),
    }
}

fn summary(tool: &Tool) -> String {
    let text = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    text.split("\n\n").next().unwrap_or_default().to_owned()
}

fn describe(screen: Screen, tool: &Tool) -> Result<(), Failure> {
    screen.line(&screen.paint(Tone::Name, &visible(&tool.name)))?;
    if let Some(title) = &tool.title {
        screen.line(&visible(title))?;
    }
    if let Some(description) = &tool.description {
        screen.line("")?;
        screen.untrusted(description.trim_end())?;
    }
    if tool.annotations.is_some() {
        screen.line("")?;
        screen.line(&format!("Hints: {}", hints(tool.annotations.as_ref())))?;
    }
    schema(screen, "Arguments", &Schema::new(&tool.input_schema))?;
    match &tool.output_schema {
        Some(output) => schema(screen, "Result", &Schema::new(output)),
        None => Ok(()),
    }
}

/// Prints the members of an object with their descriptions.
fn schema(screen: Screen, heading: &str, schema: &Schema) -> Result<(), Failure> {
    screen.line("")?;
    screen.line(&screen.paint(Tone::Heading, heading))?;
    let mut room = MOST;
    let properties: Vec<Property<'_>> = schema.properties().collect();
    if properties.is_empty() { screen.line("  none") } else { members(screen, &properties, 1, &mut room) }
}

/// Prints members and nested members, up to the limits.
fn members(
    screen: Screen,
    properties: &[Property<'_>],
    depth: usize,
    room: &mut usize,
) -> Result<(), Failure> {
    let indent = "  ".repeat(depth);
    for property in properties {
        if depth > 1 {
            let Some(left) = room.checked_sub(1) else { return Ok(()) };
            *room = left;
        }
        let need = if property.required { ", required" } else { "" };
        let default = property.default().map(|value| format!(", default {value}")).unwrap_or_default();
        let kind = visible(&format!("{}{need}{default}", property.kind()));
        screen.line(&format!("{indent}{}  {kind}", screen.paint(Tone::Name, &visible(property.name))))?;
        if let Some(description) = property.description() {
            screen.line(&format!("{indent}    {}", visible(&table::one_line(description))))?;
        }
        if depth < DEEPEST {
            members(screen, &property.members(), depth + 1, room)?;
        }
    }
    Ok(())
}
