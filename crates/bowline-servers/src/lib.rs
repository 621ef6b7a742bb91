//! The built-in servers. Each has a builder that returns a [`Server`].
//!
//! Serve them over stdio, over HTTP, or to a client in the same process.
//!
//! ```no_run
//! use bowline_servers::{Files, Git, files_and_git};
//!
//! # async fn run() -> bowline::Result {
//! let files = Files::new(["."])?.writable(true);
//! let git = Git::at(".")?;
//! files_and_git(files, git).serve_stdio().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Whoever starts a server decides which directories and hosts it may access and whether it may write. Callers cannot change that.
//!
//! - [`database`]: queries SQLite and PostgreSQL databases, and modifies them after asking the user.
//! - [`web`]: fetches web pages, and calls HTTP APIs described by OpenAPI.

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

use bowline::{
    server::{
        Outcome, Server,
        middleware::{RateLimit, from_fn},
    },
    types::{Method, RpcError},
};
use std::{fmt, time::Duration};

/// A directory or repository cannot be served.
#[derive(Debug)]
pub struct OpenError(String);

impl OpenError {
    pub(crate) fn new(error: &bowline::server::Error) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OpenError {}

/// The default number of calls per minute and caller.
pub const CALLS_PER_MINUTE: u32 = 1200;

/// Limits the calls per minute and caller; 0 means no limit.
pub fn rate_limited(server: Server, calls_per_minute: u32) -> Server {
    if calls_per_minute == 0 {
        return server;
    }
    server.layer(RateLimit::new(calls_per_minute, Duration::from_secs(60)))
}

/// Explains calls of tools that a read-only server does not have.
fn read_only(server: Server, tools: &'static [&'static str]) -> Server {
    server.layer(from_fn(move |call, next| async move {
        let name = match call.method.known() {
            Some(Method::CallTool) => call.params.name().ok(),
            _ => None,
        };
        match name.and_then(|name| tools.iter().find(|tool| **tool == name)) {
            Some(tool) => Outcome::Failed(RpcError::invalid_params(format!(
                "unknown tool `{tool}`: this server is read-only; start it with `--write` to add the tool"
            ))),
            None => next.run(call).await,
        }
    }))
}

/// Combines the tools of both into one server named `files`.
pub fn files_and_git(files: Files, git: Git) -> Server {
    git.add_to(files.server())
}
