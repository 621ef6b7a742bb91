//! `bowline info`: shows the name, version, capabilities and instructions of a server.

use crate::{context::Context, failure::Failure, screen::Tone, session::Session, target::TargetArguments};
use bowline_text::visible;
use bowline_types::{Capability, Era, ServerCapabilities};
use clap::Args;
use serde_json::json;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TargetArguments,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let target = arguments.target.target(context)?;
    Session::with(target, context, async |session| show(session)).await
}

pub(crate) fn show(session: &Session<'_>) -> Result<(), Failure> {
    let server = session.client.server();
    let screen = session.context.screen;
    let milliseconds = session.opening.as_secs_f64() * 1000.0;
    let era = match server.revision.era() {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    };
    if session.context.json() {
        return screen.json(&json!({
            "server": server.server_info,
            "revision": server.revision,
            "era": era,
            "capabilities": server.capabilities,
            "instructions": server.instructions,
            "milliseconds": milliseconds,
        }));
    }
    let field = |name: &str, value: &str| {
        screen.line(&format!("{}{}{value}", screen.paint(Tone::Heading, name), " ".repeat(14 - name.len())))
    };
    match &server.server_info {
        Some(info) => {
            let title =
                info.title.as_deref().map(|title| format!(" ({})", visible(title))).unwrap_or_default();
            field("server", &format!("{} {}{title}", visible(&info.name), visible(&info.version)))?;
            if let Some(description) = &info.description {
                field("description", &visible(description))?;
            }
            if let Some(url) = &info.website_url {
                field("website", &visible(url))?;
            }
        }
        None => field("server", "unknown")?,
    }
    field("revision", &format!("{} ({era})", server.revision))?;
    let able = describe_capabilities(&server.capabilities);
    field("capabilities", if able.is_empty() { "none" } else { &able })?;
    field("connected in", &format!("{milliseconds:.0} ms"))?;
    if let Some(instructions) = &server.instructions {
        screen.line("")?;
        screen.untrusted(instructions.trim_end())?;
    }
    Ok(())
}

fn describe_capabilities(capabilities: &ServerCapabilities) -> String {
    let details = |details: &[(Capability, &str)]| {
        let had = details.iter().filter(|(capability, _)| capabilities.has(*capability));
        let had: Vec<&str> = had.map(|(_, name)| *name).collect();
        if had.is_empty() { String::new() } else { format!(" ({})", had.join(", ")) }
    };
    let changes = "list changes";
    let known = [
        (Capability::Tools, "tools", details(&[(Capability::ToolsListChanged, changes)])),
        (
            Capability::Resources,
            "resources",
            details(&[
                (Capability::ResourcesListChanged, changes),
                (Capability::ResourcesSubscribe, "subscriptions"),
            ]),
        ),
        (Capability::Prompts, "prompts", details(&[(Capability::PromptsListChanged, changes)])),
        (Capability::Completions, "completions", String::new()),
        (Capability::Logging, "logging", String::new()),
        (Capability::Tasks, "tasks", String::new()),
    ];
    let had = known.iter().filter(|(capability, ..)| capabilities.has(*capability));
    let had = had.map(|(_, name, details)| format!("{name}{details}"));
    had.chain(capabilities.extensions.iter().map(|(name, _)| visible(name))).collect::<Vec<_>>().join(", ")
}
