//! The servers people install first, as values: each is set up by a builder and gives a [`Server`].
//!
//! What serves them is up to the caller: standard input and output, HTTP, or a client in the same process.
//!
//! ```no_run
//! use bowline_servers::{Files, Git, files_and_git};
//!
//! # async fn run() -> bowline::Result {
//! let files = Files::new(["."])?.writable(true);
//! let git = Git::at(".")?;
//! files_and_git(files, git).serve_stdio().await
//! # }
//! ```
//!
//! All of them do only what they were set up for: the folders they may look into, the hosts they may reach, and whether
//! they may change anything, are decided by who starts them, never by who calls them.
//!
//! - [`database`]: the tables of SQLite and PostgreSQL, to look at, to query, and to change once the user agrees.
//! - [`web`]: pages to fetch, and the operations of interfaces as tools.

mod client_roots;
pub mod database;
pub mod everything;
pub mod files;
pub mod git;
mod percent;
mod text;
pub mod web;

pub use database::Database;
pub use files::Files;
pub use git::Git;
pub use web::Web;

use bowline::server::{Server, middleware::RateLimit};
use std::time::Duration;

/// How many calls a minute each caller of a server may make, unless it was set.
pub const CALLS_PER_MINUTE: u32 = 1200;

/// Limits the calls of each caller; 0 leaves them without a limit.
pub fn rate_limited(server: Server, calls_per_minute: u32) -> Server {
    if calls_per_minute == 0 {
        return server;
    }
    server.layer(RateLimit::new(calls_per_minute, Duration::from_secs(60)))
}

/// One server with the tools of both, called `files`.
pub fn files_and_git(files: Files, git: Git) -> Server {
    git.add_to(files.server())
}
