//! Git: looking at a repository's history and state and, when allowed, adding to it.

mod check;
mod reading;
mod run;
mod told;
mod writing;

use crate::{CALLS_PER_MINUTE, client_roots, rate_limited};
use bowline::server::{Ctx, Result, Server};
use run::Repository;
use std::{path::Path, sync::Arc, time::Duration};

pub use reading::{Blame, BlameLine, Branch, Branches, ChangedFile, Commit, Log, Status};
pub use writing::{Added, Committed, Switched, Unstaged};

/// How much git may write and how long it may take, unless it was set.
const MAX_OUTPUT: u64 = 1024 * 1024;
const TIME: Duration = Duration::from_secs(30);

/// A server of one git repository.
///
/// It runs the program `git`, without a shell and without any program that the repository or its user configures: no hooks,
/// filters, monitors or viewers. So a file that goes through a filter, such as that of git-lfs, is shown as it is in the work
/// tree, and cannot be staged here. Nothing goes over the network. It changes nothing unless it is
/// [`writable`](Self::writable).
///
/// ```no_run
/// # async fn run() -> bowline::Result {
/// use bowline_servers::Git;
///
/// Git::at("/srv/project")?.server().serve_stdio().await
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Git {
    repository: Repository,
    writable: bool,
    calls_per_minute: u32,
}

impl Git {
    /// The repository whose work tree `folder` is in. All of it is shown: paths are from its top.
    ///
    /// Fails when there is none, when git does not trust it, or when the program `git` is missing.
    pub fn at(folder: impl AsRef<Path>) -> Result<Self> {
        let repository = Repository::find(folder.as_ref(), MAX_OUTPUT, TIME)?;
        Ok(Self { repository, writable: false, calls_per_minute: CALLS_PER_MINUTE })
    }

    /// Whether tools that change the repository are offered. Default: no.
    pub fn writable(mut self, writable: bool) -> Self {
        self.writable = writable;
        self
    }

    /// How many bytes of what git writes are shown. Default: 1 MiB.
    pub fn max_output(mut self, bytes: u64) -> Self {
        self.repository.max_output = bytes;
        self
    }

    /// How long git may take. Default: 30 seconds.
    pub fn time(mut self, time: Duration) -> Self {
        self.repository.time = time;
        self
    }

    /// How many calls a minute each caller may make; 0 for any number. Default: 1200.
    pub fn calls_per_minute(mut self, calls: u32) -> Self {
        self.calls_per_minute = calls;
        self
    }

    /// The server.
    pub fn server(self) -> Server {
        let access =
            if self.writable { "" } else { " It is read-only; `--write` adds tools that commit to it." };
        let server = rate_limited(Server::new("git"), self.calls_per_minute)
            .version(env!("CARGO_PKG_VERSION"))
            .title("Git")
            .description("Looks at the history and the state of a git repository.")
            .instructions(format!(
                "The repository has its top at `{}`; paths are from there.{access}",
                self.repository.folder.display()
            ));
        self.add_to(server)
    }

    /// Adds the tools to a server.
    pub(crate) fn add_to(self, server: Server) -> Server {
        let desk = Desk(Arc::new(self.repository));
        let server = server.tools(reading::Reading(desk.clone()));
        if self.writable { server.tools(writing::Writing(desk)) } else { server }
    }
}

/// What all tools share.
#[derive(Clone, Debug)]
struct Desk(Arc<Repository>);

impl Desk {
    /// The repository, if the client works in it.
    async fn open(&self, ctx: &Ctx) -> Result<&Repository> {
        if let Some(folders) = client_roots::of(ctx).await? {
            client_roots::check([&self.0.folder, &self.0.given], &folders)?;
        }
        Ok(&self.0)
    }
}
