//! Files: reading, searching and, when allowed, changing what is in some folders and nowhere else.

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

use crate::{CALLS_PER_MINUTE, client_roots, rate_limited};
use bowline::server::{Ctx, Error, Result, Server};
use jail::{Jail, Place};
use std::{path::Path, sync::Arc};

pub use reading::{AllowedFolders, Directory, Entry, EntryKind, Found, Match, Stat};
pub use tree::{Tree, TreeEntry};
pub use writing::{Deleted, Edit, Edited, Made, Moved, Written};

/// How many bytes of a file are read at once, unless it was set.
const MAX_BYTES: u64 = 2 * 1024 * 1024;

/// A server of files.
///
/// It reaches what is below the folders it is given. A link that leads out of them fails, however it came to be there,
/// and what is neither file nor folder is not opened. A client that declares roots is served what lies in those, too.
///
/// It changes nothing unless it is [`writable`](Self::writable), and never what git keeps for itself.
///
/// ```no_run
/// # async fn run() -> bowline::Result {
/// use bowline_servers::Files;
///
/// Files::new(["/srv/project"])?.server().serve_stdio().await
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Files {
    jail: Jail,
    writable: bool,
    max_bytes: u64,
    calls_per_minute: u32,
}

impl Files {
    /// Serves these folders. Fails when one is not there or may not be read.
    pub fn new(roots: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self> {
        let jail = Jail::open(roots)?;
        Ok(Self { jail, writable: false, max_bytes: MAX_BYTES, calls_per_minute: CALLS_PER_MINUTE })
    }

    /// Whether tools that change files are offered. Default: no.
    pub fn writable(mut self, writable: bool) -> Self {
        self.writable = writable;
        self
    }

    /// How many bytes of a file are read, searched or edited at once. Default: 2 MiB.
    pub fn max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// How many calls a minute each caller may make; 0 for any number. Default: 1200.
    pub fn calls_per_minute(mut self, calls: u32) -> Self {
        self.calls_per_minute = calls;
        self
    }

    /// The server.
    pub fn server(self) -> Server {
        let names = self.jail.names();
        let access =
            if self.writable { "read and changed" } else { "read, not changed (`--write` allows changes)" };
        let shelf = Shelf { jail: Arc::new(self.jail), max_bytes: self.max_bytes, writable: self.writable };
        let mut server = rate_limited(Server::new("files"), self.calls_per_minute)
            .version(env!("CARGO_PKG_VERSION"))
            .title("Files")
            .description("Reads, searches and edits the files of some folders.")
            .instructions(format!(
                "Files below {names} can be {access}. Paths are absolute, or relative when there is only one folder."
            ))
            .tools(reading::Reading(shelf.clone()));
        if self.writable {
            server = server.tools(writing::Writing(shelf.clone()));
        }
        resources::add_to(server, shelf)
    }
}

/// What all tools share.
#[derive(Clone, Debug)]
struct Shelf {
    jail: Arc<Jail>,
    max_bytes: u64,
    writable: bool,
}

impl Shelf {
    /// The folders the caller may use.
    async fn view(&self, ctx: &Ctx) -> Result<Arc<Jail>> {
        let Some(folders) = client_roots::of(ctx).await? else { return Ok(Arc::clone(&self.jail)) };
        let jail = Arc::clone(&self.jail);
        off_thread(move || client_roots::narrow(&jail, &folders).map(Arc::new)).await
    }

    /// Does something at a place, on a thread that may wait for the disk.
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
    done.map_err(|error| Error::internal(format!("the work on files failed: {error}")))?
}
