//! `bowline inspect`: shows one server in the browser.

use crate::{
    commands::doctor::ServerChecks,
    context::Context,
    failure::{Code, Failure},
    inspector_setup::{InspectorSetup, Serving, open_browser},
    logging::{self, LogArguments},
    signals::ShutdownSignals,
    target::TargetArguments,
};
use bowline_host::{Host, Start, Upstream};
use bowline_inspector::{Inspector, query::Mode};
use bowline_policy::{Guard, Policy, Rule};
use bowline_server::Server;
use clap::Args;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TargetArguments,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Save all messages to this directory, with secrets masked; `bowline inspect DIR` shows them later
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    #[command(flatten)]
    log: LogArguments,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    arguments.log.start(context, "warn", logging::to_stderr())?;
    let signals = ShutdownSignals::listen()?;
    if let Some(folder) = arguments.target.folder().filter(|folder| Inspector::is_kept(folder)) {
        return show_folder(folder, &arguments, context, &signals).await;
    }
    let target = arguments.target.target(context)?.long_lived();
    let setup =
        InspectorSetup::new(Mode::Inspect, &context.environment.config().inspector, context.interactive())
            .await?;
    let inspector = setup.inspector.clone();
    inspector.add_secrets(target.secrets().iter().cloned());
    // The person at the page is the only caller, and is asked by the page itself before a destructive call.
    let guard =
        Guard::builder().policy(Policy::new([Rule::allow().tool("*")])).gate(inspector.gate(None)).build();
    inspector.set_checker(Arc::new(ServerChecks::of_target(context, target.clone())));
    let name = server_name(&target.name);
    let revision = context.revision();
    let upstream = match target.program() {
        Some(program) => Upstream::from(program.clone()),
        None => Upstream::to(target.into_connect(context)),
    };
    let mut upstream = upstream.start(Start::Eager).idle_stop(None);
    if let Some(revision) = revision {
        upstream = upstream.revision(revision);
    }
    let host = Host::builder().add(&name, upstream).guard(guard).attended().tap(inspector.tap()).build();
    let handle = host.open(Server::new("bowline inspect").version(env!("CARGO_PKG_VERSION")));
    let handle = handle.map_err(|error| Failure::new(Code::Failed, error.to_string()))?;
    inspector.attach_host(&host, &handle);
    let serving = serve(setup, &arguments, context).await?;
    signals.received(1).await;
    tokio::select! {
        () = async { host.close().await; serving.end().await } => {}
        () = signals.received(2) => {}
    }
    Ok(())
}

/// Serves the page and shows its link.
async fn serve(setup: InspectorSetup, arguments: &Arguments, context: &Context) -> Result<Serving, Failure> {
    let url = setup.url();
    let is_attended = context.interactive();
    let link = if is_attended || arguments.open { Some(setup.own_link(is_attended)?) } else { None };
    let serving = setup.serve(arguments.keep.as_deref())?;
    match &link {
        Some(link) if is_attended => {
            // Standard output may be stored; only standard error is known to be a terminal.
            context.screen.note(&format!("Open this link, which works once:\n{link}"));
            context.screen.note("Press Ctrl-C to stop.");
        }
        _ => context.screen.line(&url)?,
    }
    if arguments.open
        && let Some(link) = &link
        && let Err(reason) = open_browser(link).await
    {
        context.screen.warn(&reason);
    }
    Ok(serving)
}

/// Shows messages that were kept earlier. There are no servers.
async fn show_folder(
    folder: &Path,
    arguments: &Arguments,
    context: &Context,
    signals: &ShutdownSignals,
) -> Result<(), Failure> {
    if arguments.keep.is_some() {
        return Err(Failure::misused("`--keep` needs a server; these messages are already saved"));
    }
    let config = &context.environment.config().inspector;
    let setup = InspectorSetup::new(Mode::Folder, config, context.interactive()).await?;
    let read = setup.inspector.open_folder(folder);
    let unreadable = read.map_err(|error| {
        Failure::new(Code::Failed, format!("cannot read the messages in `{}`: {error}", folder.display()))
    })?;
    if unreadable > 0 {
        context.screen.warn(&format!("{unreadable} lines in `{}` cannot be read", folder.display()));
    }
    let _serving = serve(setup, arguments, context).await?;
    signals.received(1).await;
    Ok(())
}

/// Returns a short name for a server: the last part of a path or URL.
fn server_name(target: &str) -> String {
    let last = target.trim_end_matches('/').rsplit(['/', '\\']).next().unwrap_or(target);
    let name: String = last
        .chars()
        .filter(|character| character.is_ascii_alphanumeric() || "-_.".contains(*character))
        .take(32)
        .collect();
    if name.is_empty() { "server".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_after_the_end_of_its_path() {
        for (target, name) in [
            ("files", "files"),
            ("/usr/bin/my-server", "my-server"),
            ("http://a.example/mcp/", "mcp"),
            ("//", "server"),
        ] {
            assert_eq!(server_name(target), name);
        }
    }
}
