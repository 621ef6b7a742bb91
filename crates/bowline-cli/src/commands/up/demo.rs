//! The read-only demo servers that run if nothing is configured.

use crate::{builtin::unusable, context::Context, failure::Failure, running_gateway};
use bowline_host::{Gateway, Start, Upstream};
use bowline_inspector::query::TryCall;
use bowline_server::Server;
use bowline_servers::{Database, Files, Git, Web, files_and_git};
use serde_json::json;
use std::net::SocketAddr;

/// A demo server, as shown to the user.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) name: &'static str,
    pub(super) about: String,
    /// Commands to try, without the program name.
    pub(super) commands: Vec<String>,
}

/// Adds the demo servers to a gateway.
pub(super) fn add(gateway: &Gateway, context: &Context, address: SocketAddr) -> Result<Vec<Shown>, Failure> {
    let mut shown = Vec::new();
    for (server, demo) in [files(context), Some(database()?), Some(web(address)?)].into_iter().flatten() {
        let handle = server.build().map_err(unusable)?;
        // Built-in servers are trusted, and an idle one costs nothing.
        let upstream = Upstream::from(handle).trusted().start(Start::Eager).idle_stop(None);
        gateway.host().add(demo.name, upstream);
        shown.push(demo);
    }
    Ok(shown)
}

/// Serves the current directory and its git repository, if any. Returns `None` if the directory cannot be read.
fn files(context: &Context) -> Option<(Server, Shown)> {
    let folder = context.environment.workspace.as_deref()?;
    let files = Files::new([folder]).ok()?;
    let mut commands = vec!["call up files__list_directory".to_owned()];
    let shown = folder.display();
    let (server, about) = match Git::at(folder) {
        Ok(git) => {
            commands.push("call up files__git_log".to_owned());
            (files_and_git(files, git), format!("files and git repository in {shown}, read-only"))
        }
        Err(_) => (files.server(), format!("files in {shown}, read-only")),
    };
    Some((server, Shown { name: "files", about, commands }))
}

/// The query that the demo shows.
const QUERY: &str = "SELECT city, count(*) AS customers FROM customers GROUP BY city";

/// Returns the call that the inspector offers to try.
pub(super) fn try_call() -> TryCall {
    TryCall::new("database", "query", json!({ "sql": QUERY }))
}

fn database() -> Result<(Server, Shown), Failure> {
    let server = Database::sqlite_sample().map_err(unusable)?.server();
    let shown = Shown {
        name: "database",
        about: "sample SQLite database in memory".to_owned(),
        commands: vec![
            "call up database__tables".to_owned(),
            format!("call up database__query sql='{QUERY}'"),
        ],
    };
    Ok((server, shown))
}

/// Serves the public internet and the health endpoint of this gateway, so that there is something to fetch without a network.
fn web(address: SocketAddr) -> Result<(Server, Shown), Failure> {
    let page = running_gateway::url(address, "/healthz");
    let here = page.trim_start_matches("http://").trim_end_matches("/healthz");
    let server = Web::new().allow_hosts([here]).server().map_err(unusable)?;
    let shown = Shown {
        name: "web",
        about: "web pages".to_owned(),
        commands: vec![format!("call up web__fetch url={page}")],
    };
    Ok((server, shown))
}
