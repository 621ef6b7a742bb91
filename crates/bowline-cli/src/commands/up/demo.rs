//! The servers that run where nothing is configured: they show what the program does, and can change nothing.

use crate::{builtin::unusable, context::Context, failure::Failure, running_gateway};
use bowline_host::{Gateway, Start, Upstream};
use bowline_server::Server;
use bowline_servers::{Database, Files, Git, Web, files_and_git};
use std::net::SocketAddr;

/// A server of the demonstration, as the user is told of it.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) name: &'static str,
    pub(super) about: String,
    /// What to try, without the name of the program.
    pub(super) commands: Vec<String>,
}

/// Adds the servers to a gateway.
pub(super) fn add(gateway: &Gateway, context: &Context, address: SocketAddr) -> Result<Vec<Shown>, Failure> {
    let mut shown = Vec::new();
    for (server, told) in [files(context), Some(database()?), Some(web(address)?)].into_iter().flatten() {
        let handle = server.build().map_err(unusable)?;
        // They are this program's own, so what they say of their tools is true, and they cost nothing while they wait.
        let upstream = Upstream::from(handle).trusted().start(Start::Eager).idle_stop(None);
        gateway.host().add(told.name, upstream);
        shown.push(told);
    }
    Ok(shown)
}

/// The current folder, and its repository if it has one. A folder that cannot be read is not shown.
fn files(context: &Context) -> Option<(Server, Shown)> {
    let folder = context.environment.workspace.as_deref()?;
    let files = Files::new([folder]).ok()?;
    let mut commands = vec!["call up files__list_directory".to_owned()];
    let shown = folder.display();
    let (server, about) = match Git::at(folder) {
        Ok(git) => {
            commands.push("call up files__git_log".to_owned());
            (files_and_git(files, git), format!("the files and the git repository of {shown}, read-only"))
        }
        Err(_) => (files.server(), format!("the files of {shown}, read-only")),
    };
    Some((server, Shown { name: "files", about, commands }))
}

fn database() -> Result<(Server, Shown), Failure> {
    let server = Database::sqlite_sample().map_err(unusable)?.server();
    let query = "SELECT city, count(*) AS customers FROM customers GROUP BY city";
    let shown = Shown {
        name: "database",
        about: "a small shop in SQLite, in memory".to_owned(),
        commands: vec![
            "call up database__tables".to_owned(),
            format!("call up database__query sql='{query}'"),
        ],
    };
    Ok((server, shown))
}

/// The open internet; and of this machine nothing but this program, so that there is something to fetch without a network.
fn web(address: SocketAddr) -> Result<(Server, Shown), Failure> {
    let page = running_gateway::url(address, "/healthz");
    let here = page.trim_start_matches("http://").trim_end_matches("/healthz");
    let server = Web::new().allow_hosts([here]).server().map_err(unusable)?;
    let shown = Shown {
        name: "web",
        about: "pages of the internet".to_owned(),
        commands: vec![format!("call up web__fetch url={page}")],
    };
    Ok((server, shown))
}
