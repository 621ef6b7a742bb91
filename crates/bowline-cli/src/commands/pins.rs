//! `bowline pins`: lists, compares and accepts pinned tool definitions.

use crate::{
    context::Context,
    failure::{Code, Failure},
    session::Session,
    table,
    target::Target,
};
use bowline_config::UpstreamConfig;
use bowline_policy::{Definition, Difference, DifferenceKind, PinKey, Pins};
use bowline_text::{visible, visible_lines};
use clap::{Args, Subcommand};
use serde_json::json;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the servers with accepted tool definitions
    List,
    /// Show tools that changed since they were accepted
    ///
    /// Starts or connects to each server and lists its tools. Exits with 8 if a definition changed.
    Diff {
        /// Names of configured servers [default: all]
        #[arg(value_name = "SERVER")]
        servers: Vec<String>,
    },
    /// Accept the current tool definitions of a server
    Accept {
        /// The name of a configured server
        server: String,
        /// The tools to accept [default: all]
        #[arg(value_name = "TOOL")]
        tools: Vec<String>,
    },
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let pins = open(context)?;
    match arguments.command {
        Command::List => list(&pins, context),
        Command::Diff { servers } => diff(&pins, &servers, context).await,
        Command::Accept { server, tools } => accept(&pins, &server, &tools, context).await,
    }
}

fn open(context: &Context) -> Result<Pins, Failure> {
    let Some(folder) = context.environment.state_dir() else {
        return Err(Failure::new(
            Code::Failed,
            "accepted definitions cannot be stored without a home directory",
        ));
    };
    Pins::open(folder.join("pins.json")).map_err(|error| Failure::new(Code::Failed, error.to_string()))
}

fn list(pins: &Pins, context: &Context) -> Result<(), Failure> {
    let (servers, screen) = (pins.list(), context.screen);
    if context.json() {
        let servers: Vec<_> = servers
            .iter()
            .map(|pinned| {
                let tools: serde_json::Map<_, _> = pinned
                    .tools
                    .iter()
                    .map(|(name, digest)| (name.clone(), json!(digest.as_str())))
                    .collect();
                json!({ "server": pinned.key.server, "started": pinned.key.started, "tools": tools })
            })
            .collect();
        return screen.json(&json!({ "file": pins.path(), "servers": servers }));
    }
    if servers.is_empty() {
        screen.note("no tool definitions have been accepted");
    }
    let rows = servers.iter().map(|pinned| {
        let started = pinned.key.started.as_deref().unwrap_or("any server of this name");
        (pinned.key.server.as_str(), format!("{:>3} tools  {started}", pinned.tools.len()))
    });
    table::rows(screen, rows)?;
    if let Some(path) = pins.path() {
        screen.note(&format!("stored in {}", path.display()));
    }
    Ok(())
}

async fn diff(pins: &Pins, names: &[String], context: &Context) -> Result<(), Failure> {
    let config = context.environment.config();
    let entries: Vec<&UpstreamConfig> = if names.is_empty() {
        config.upstreams.iter().filter(|entry| entry.settings.enabled).collect()
    } else {
        names.iter().map(|name| entry(name, context)).collect::<Result<_, _>>()?
    };
    let mut differences = Vec::new();
    let mut failed = None;
    for entry in entries {
        let key = PinKey::new(&entry.name, entry.identity());
        if !pins.contains_server(&key) {
            context.screen.note(&format!("{}: no tool definitions have been accepted", visible(&entry.name)));
            continue;
        }
        match definitions(entry, context).await {
            Ok(definitions) => differences.extend(pins.compare(&key, &definitions)),
            // Continue with the other servers.
            Err(failure) if names.is_empty() => {
                context.screen.warn(&format!("{}: {}", visible(&entry.name), failure.sentence));
                failed = Some(failure);
            }
            Err(failure) => return Err(failure),
        }
    }
    print_differences(&differences, context)?;
    let has_changed = |difference: &Difference| matches!(difference.kind, DifferenceKind::Changed { .. });
    if differences.iter().any(has_changed) {
        return Err(Failure { silent: true, ..Failure::new(Code::Found, "a definition changed") });
    }
    match failed {
        Some(failure) => Err(Failure { silent: true, ..failure }),
        None => Ok(()),
    }
}

fn print_differences(differences: &[Difference], context: &Context) -> Result<(), Failure> {
    let screen = context.screen;
    if context.json() {
        let listed: Vec<_> = differences
            .iter()
            .map(|difference| {
                let (kind, diff) = match &difference.kind {
                    DifferenceKind::New => ("new", None),
                    DifferenceKind::Removed => ("removed", None),
                    DifferenceKind::Changed { diff } => ("changed", Some(diff)),
                };
                json!({ "server": difference.server, "tool": difference.tool, "kind": kind, "diff": diff })
            })
            .collect();
        return screen.json(&json!({ "differences": listed }));
    }
    if differences.is_empty() {
        screen.note("no changes");
    }
    for difference in differences {
        for line in visible_lines(&difference.to_string()) {
            screen.line(&line)?;
        }
    }
    Ok(())
}

async fn accept(pins: &Pins, server: &str, tools: &[String], context: &Context) -> Result<(), Failure> {
    let entry = entry(server, context)?;
    let mut definitions = definitions(entry, context).await?;
    if let Some(unknown) = tools.iter().find(|tool| definitions.iter().all(|known| known.name() != **tool)) {
        let sentence = format!("server `{}` has no tool `{}`", visible(server), visible(unknown));
        return Err(Failure::new(Code::Failed, sentence)
            .advise(format!("run `bowline tools {}` to list its tools", visible(server))));
    }
    definitions.retain(|known| tools.is_empty() || tools.iter().any(|tool| tool == known.name()));
    let key = PinKey::new(&entry.name, entry.identity());
    pins.accept(&key, &definitions).map_err(|error| Failure::new(Code::Failed, error.to_string()))?;
    if context.json() {
        let names: Vec<_> = definitions.iter().map(Definition::name).collect();
        return context.screen.json(&json!({ "server": entry.name, "accepted": names }));
    }
    context.screen.note(&format!("accepted {} tool definitions of `{}`", definitions.len(), visible(server)));
    Ok(())
}

fn entry<'a>(name: &str, context: &'a Context) -> Result<&'a UpstreamConfig, Failure> {
    let config = context.environment.config();
    config.upstream(name).ok_or_else(|| {
        Failure::new(Code::Config, format!("server `{}` is not configured", visible(name)))
            .advise("run `bowline config explain` to see the configuration")
    })
}

/// Returns the current tool definitions of a server.
async fn definitions(entry: &UpstreamConfig, context: &Context) -> Result<Vec<Definition>, Failure> {
    let target = Target::named(&entry.name, context)?;
    let list = async |session: &Session<'_>| Ok(session.client.tools().await?);
    let tools = Session::with(target, context, list).await?;
    Ok(tools.iter().map(Definition::of).collect())
}
