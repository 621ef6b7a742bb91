//! The servers that run where nothing is configured: they show what the program does, and can change nothing.

use crate::{builtin::unusable, context::Context, failure::Failure};
use bowline_host::{Gateway, Start, Upstream};
use bowline_server::Server;
use bowline_servers::{Files, Git, database::Database, files_and_git};

/// A server of the demonstration, as the user is told of it.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) name: &'static str,
    pub(super) about: String,
    /// What to try.
    pub(super) commands: Vec<String>,
}

/// Adds the servers to a gateway.
pub(super) fn add(gateway: &Gateway, context: &Context) -> Result<Vec<Shown>, Failure> {
    let mut shown = Vec::new();
    for (server, told) in [files(context), Some(database()?)].into_iter().flatten() {
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
    let folder = context.surroundings.workspace.as_deref()?;
    let files = Files::new([folder]).ok()?;
    let mut commands = vec!["bowline call up files__list_directory".to_owned()];
    let shown = folder.display();
    let (server, about) = match Git::at(folder) {
        Ok(git) => {
            commands.push("bowline call up files__git_log".to_owned());
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
            "bowline call up database__tables".to_owned(),
            format!("bowline call up database__query sql='{query}'"),
        ],
    };
    Ok((server, shown))
}
