//! A server for files: reads, searches and optionally writes files in some directories.

mod edit;
pub(crate) mod jail;
mod kind;
mod lines;
mod path;
mod reading;
mod replace;
mod resources;
mod search;
mod tree;
mod watching;
mod writing;

use crate::{CALLS_PER_MINUTE, OpenError, client_roots, rate_limited};
use bowline::server::{Ctx, Error, Result, Server};
use jail::{Jail, Place};
use std::{path::Path, sync::Arc};

pub use reading::{AllowedFolders, Directory, Entry, EntryKind, Found, Match, Stat};
pub use tree::{Tree, TreeEntry};
pub use writing::{Deleted, Edit, Edited, Made, Moved, Written};

/// The default for [`Files::max_bytes`].
const MAX_BYTES: u64 = 2 * 1024 * 1024;

/// Builds a file server.
///
/// Only files below the given directories can be accessed. Links that lead outside fail, and pipes, sockets and devices are never
/// opened. If the client declares roots, access is restricted to them as well.
///
/// Files can be changed only if it is [`writable`](Self::writable); `.git` can never be changed.
///
/// ```no_run
/// # async fn run() -> bowline::Result {
/// use bowline_servers::Files;
///
/// Files::new(["/srv/project"])?.server().serve_stdio().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "it does nothing until it is used"]
pub struct Files {
    jail: Jail,
    writable: bool,
    max_bytes: u64,
    calls_per_minute: u32,
}

impl Files {
    /// Serves these directories. Fails if one of them cannot be opened.
    pub fn new(roots: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, OpenError> {
        let jail = Jail::open(roots).map_err(|error| OpenError::new(&error))?;
        Ok(Self { jail, writable: false, max_bytes: MAX_BYTES, calls_per_minute: CALLS_PER_MINUTE })
    }

    /// Sets whether to offer tools that write files. Default: no.
    pub fn writable(mut self, writable: bool) -> Self {
        self.writable = writable;
        self
    }

    /// Sets the maximum number of bytes of a file that a call reads, searches or edits. Default: 2 MiB.
    pub fn max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Sets the maximum number of calls per minute and caller; 0 means no limit. Default: 1200.
    pub fn calls_per_minute(mut self, calls: u32) -> Self {
        self.calls_per_minute = calls;
        self
    }

    /// Builds the server.
    pub fn server(self) -> Server {
        let names = self.jail.names();
        let access = if self.writable {
            "read and written"
        } else {
            "read but not written (`--write` allows writing)"
        };
        let state =
            ToolState { jail: Arc::new(self.jail), max_bytes: self.max_bytes, writable: self.writable };
        let mut server = rate_limited(Server::new("files"), self.calls_per_minute)
            .version(env!("CARGO_PKG_VERSION"))
            .title("Files")
            .description("Reads, searches and edits files.")
            .instructions(format!(
                "Files in {names} can be {access}. Paths are absolute, or relative if there is only one directory."
            ))
            .with(reading::Reading(state.clone()));
        server = if self.writable {
            server.with(writing::Writing(state.clone()))
        } else {
            crate::read_only(server, &writing::TOOLS)
        };
        resources::add_to(server, state)
    }
}

/// The state of the tools.
#[derive(Clone, Debug)]
struct ToolState {
    jail: Arc<Jail>,
    max_bytes: u64,
    writable: bool,
}

impl ToolState {
    /// Returns the directories that the caller may use.
    async fn view(&self, ctx: &Ctx) -> Result<Arc<Jail>> {
        let Some(folders) = client_roots::of(ctx).await? else { return Ok(Arc::clone(&self.jail)) };
        let jail = Arc::clone(&self.jail);
        off_thread(move || client_roots::narrow(&jail, &folders).map(Arc::new)).await
    }

    /// Runs a file operation on a blocking thread.
    async fn at<T: Send + 'static>(
        &self,
        ctx: &Ctx,
        path: String,
        work: impl FnOnce(&Place) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let jail = self.view(ctx).await?;
        off_thread(move || work(&jail.place(&path)?)).await
    }
}

async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::internal(format!("the file operation failed: {error}")))?
}
