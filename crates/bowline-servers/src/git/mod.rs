//! A server for a git repository: shows status and history and optionally commits.

mod check;
mod parse;
mod reading;
mod run;
mod writing;

use crate::{CALLS_PER_MINUTE, OpenError, client_roots, rate_limited};
use bowline::server::{Ctx, Result, Server};
use run::Repository;
use std::{path::Path, sync::Arc, time::Duration};

pub use reading::{Blame, BlameLine, Branch, Branches, ChangedFile, Commit, Log, Status};
pub use writing::{Added, Committed, Switched, Unstaged};

/// The default limits for output and time.
const MAX_OUTPUT: u64 = 1024 * 1024;
const TIME: Duration = Duration::from_secs(30);

/// Builds a git server.
///
/// It runs `git` without a shell and without programs that the repository or the user configures: no hooks, filters, monitors or
/// diff viewers. Files with a filter, such as git-lfs, are shown as they are in the work tree and cannot be staged. The network is
/// not used. The repository can be changed only if it is [`writable`](Self::writable).
///
/// ```no_run
/// # async fn run() -> bowline::Result {
/// use bowline_servers::Git;
///
/// Git::at("/srv/project")?.server().serve_stdio().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "it does nothing until it is used"]
pub struct Git {
    repository: Repository,
    writable: bool,
    calls_per_minute: u32,
}

impl Git {
    /// Serves the repository whose work tree contains `folder`. Paths are relative to its top.
    ///
    /// Fails if there is no repository, if git does not trust it, or if `git` is not installed.
    pub fn at(folder: impl AsRef<Path>) -> Result<Self, OpenError> {
        let repository =
            Repository::find(folder.as_ref(), MAX_OUTPUT, TIME).map_err(|error| OpenError::new(&error))?;
        Ok(Self { repository, writable: false, calls_per_minute: CALLS_PER_MINUTE })
    }

    /// Sets whether to offer tools that change the repository. Default: no.
    pub fn writable(mut self, writable: bool) -> Self {
        self.writable = writable;
        self
    }

    /// Sets the maximum size of git's output. Default: 1 MiB.
    pub fn max_output(mut self, bytes: u64) -> Self {
        self.repository.max_output = bytes;
        self
    }

    /// Sets the timeout of a git command. Default: 30 seconds.
    pub fn time(mut self, time: Duration) -> Self {
        self.repository.time = time;
        self
    }

    /// Sets the maximum number of calls per minute and caller; 0 means no limit. Default: 1200.
    pub fn calls_per_minute(mut self, calls: u32) -> Self {
        self.calls_per_minute = calls;
        self
    }

    /// Builds the server.
    pub fn server(self) -> Server {
        let access = if self.writable {
            ""
        } else {
            " The repository is read-only; `--write` adds tools that change it."
        };
        let server = rate_limited(Server::new("git"), self.calls_per_minute)
            .version(env!("CARGO_PKG_VERSION"))
            .title("Git")
            .description("Shows the status and history of a git repository.")
            .instructions(format!(
                "The top of the repository is `{}`; paths are relative to it.{access}",
                self.repository.folder.display()
            ));
        self.add_to(server)
    }

    /// Adds the tools to a server.
    pub(crate) fn add_to(self, server: Server) -> Server {
        let state = ToolState(Arc::new(self.repository));
        let server = server.with(reading::Reading(state.clone()));
        if self.writable {
            server.with(writing::Writing(state))
        } else {
            crate::read_only(server, &writing::TOOLS)
        }
    }
}

/// The state of the tools.
#[derive(Clone, Debug)]
struct ToolState(Arc<Repository>);

impl ToolState {
    /// Returns the repository, if the client's roots allow it.
    async fn open(&self, ctx: &Ctx) -> Result<&Repository> {
        if let Some(folders) = client_roots::of(ctx).await? {
            client_roots::check([&self.0.folder, &self.0.given], &folders)?;
        }
        Ok(&self.0)
    }
}
