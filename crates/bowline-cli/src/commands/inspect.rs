//! `bowline inspect`: shows one server in the browser.

use crate::{
    context::Context,
    failure::{Code, Failure},
    inspector_setup::{InspectorSetup, open_browser},
    logging::{self, LogArguments},
    signals::ShutdownSignals,
    target::TargetArguments,
};
use bowline_host::{Host, Start, Upstream};
use bowline_inspector::query::Mode;
use bowline_policy::{Guard, Policy, Rule};
use bowline_server::Server;
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TargetArguments,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    log: LogArguments,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    arguments.log.start(context, "warn", logging::to_stderr())?;
    let target = arguments.target.target(context)?.long_lived();
    let signals = ShutdownSignals::listen()?;
    let setup = InspectorSetup::new(Mode::Inspect, |options| options).await?;
    let inspector = setup.inspector.clone();
    inspector.add_secrets(target.secrets().iter().cloned());
    // The person at the page is the only caller, and is asked by the page itself before a destructive call.
    let guard =
        Guard::builder().policy(Policy::new([Rule::allow().tool("*")])).gate(inspector.gate(None)).build();
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
    let url = setup.url();
    let mut links = Vec::new();
    if context.interactive() || arguments.open {
        links.push(setup.own_link(context.interactive())?);
    }
    let _serving = setup.serve();
    match links.first() {
        Some(link) if context.interactive() => {
            // Standard output may be stored; only standard error is known to be a terminal.
            context.screen.note(&format!("Open this link, which works once:\n{link}"));
            context.screen.note("Press Ctrl-C to stop.");
        }
        _ => context.screen.line(&url)?,
    }
    if arguments.open
        && let Some(link) = links.first()
        && let Err(reason) = open_browser(link).await
    {
        context.screen.warn(&reason);
    }
    signals.received(1).await;
    tokio::select! {
        () = host.close() => {}
        () = signals.received(2) => {}
    }
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
