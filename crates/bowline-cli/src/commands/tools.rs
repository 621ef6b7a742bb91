//! `bowline tools`: what a server can do, and one tool in full.

use crate::{
    cache,
    context::Context,
    failure::{Code, Failure},
    schema::{Property, Schema},
    screen::{Screen, Tone},
    session::Session,
    table,
    target::ConnectionArguments,
};
use bowline_client::{RelayWith, Relayed};
use bowline_policy::hints;
use bowline_search::MetaTool;
use bowline_text::{nearest, visible};
use bowline_types::{Method, RawJson, Tool};
use clap::Args;
use serde::Deserialize;
use serde_json::json;

/// How many names are told in place of one that does not exist.
const SHOWN: usize = 12;
/// How many objects within one another are shown.
const DEEPEST: usize = 4;
/// How many of their members are.
const MOST: usize = 500;

#[derive(Args, Debug)]
#[command(
    override_usage = "bowline tools [OPTIONS] [TARGET [TOOL]]\n       bowline tools [OPTIONS] [TOOL] -- PROGRAM..."
)]
pub(crate) struct Arguments {
    /// The server, and the tool to show in full
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
            let tools = list(session).await?;
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
            let tool = lookup(session, name).await?;
            if session.context.json() { screen.json(&tool) } else { describe(screen, &tool) }
        }
        [_, ..] => Err(Failure::misused("expected at most one tool")),
    }
}

/// The tools, which completion then knows of.
pub(crate) async fn list(session: &Session<'_>) -> Result<Vec<Tool>, Failure> {
    let tools = session.client.tools().await?;
    cache::remember(session.context, &session.name, |names| names.set_tools(&tools));
    Ok(tools)
}

/// The servers of a gateway that are still starting, whose tools are missing from its lists.
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
        Ok(Relayed::InputRequired { .. }) | Err(_) => Vec::new(),
    }
}

/// The tool of that name. A gateway that lists only its tools for searching is asked to describe it.
pub(crate) async fn lookup(session: &Session<'_>, name: &str) -> Result<Tool, Failure> {
    let tools = list(session).await?;
    if let Some(found) = tools.iter().find(|tool| tool.name == name) {
        return Ok(found.clone());
    }
    let is_listed = |wanted: &MetaTool| tools.iter().any(|tool| tool.name == wanted.name());
    let hides_tools = MetaTool::ALL.iter().all(is_listed);
    let unknown = || unknown(session, "tool", name, tools.iter().map(|tool| tool.name.as_str()));
    // The gateway of `bowline up` describes the tools of servers that are still starting, too.
    let may_be_starting = session.is_gateway() && name.contains("__");
    if !hides_tools && !may_be_starting {
        return Err(unknown());
    }
    let described = session.client.call(MetaTool::Describe.name(), json!({ "name": name })).await;
    match described {
        Ok(described) if !described.is_error() => described.json().map_err(Failure::from),
        Ok(described) if hides_tools => Err(Failure::misused(described.text())),
        _ => Err(unknown()),
    }
}

/// Says that there is nothing of that name, and what may have been meant.
pub(crate) fn unknown<'a>(
    session: &Session<'_>,
    what: &str,
    name: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Failure {
    let names: Vec<&str> = names.into_iter().collect();
    let failure = Failure::new(Code::Misused, format!("the server has no {what} `{}`", visible(name)));
    match nearest(name, names.iter().copied()) {
        Some(near) => failure.advise(format!("did you mean `{}`?", visible(near))),
        None if names.is_empty() => failure.advise("it has none"),
        None if names.len() > SHOWN => {
            let look = session.inspect_command(&format!("{what}s"), "");
            failure.advise(format!("`{look}` shows which it has"))
        }
        None => failure.advise(format!("it has {}", visible(&names.join(", ")))),
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
        screen.line(&format!("The server says it is: {}", hints(tool.annotations.as_ref())))?;
    }
    schema(screen, "Arguments", &Schema::new(&tool.input_schema))?;
    match &tool.output_schema {
        Some(output) => schema(screen, "Result", &Schema::new(output)),
        None => Ok(()),
    }
}

/// The members of an object, a line each, with what they mean below.
fn schema(screen: Screen, heading: &str, schema: &Schema) -> Result<(), Failure> {
    screen.line("")?;
    screen.line(&screen.paint(Tone::Heading, heading))?;
    let mut room = MOST;
    let properties: Vec<Property<'_>> = schema.properties().collect();
    if properties.is_empty() { screen.line("  none") } else { members(screen, &properties, 1, &mut room) }
}

/// Members, and those of the objects among them, each further in, as long as there is room for these.
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
