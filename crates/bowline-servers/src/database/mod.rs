//! A server for databases: lists tables, runs read-only queries, and runs statements that write after asking the user.
//!
//! ```
//! use bowline_servers::database::Database;
//!
//! # fn main() -> Result<(), bowline_servers::database::Error> {
//! let server = Database::sqlite_sample()?.max_rows(50).server();
//! # Ok(())
//! # }
//! ```
//!
//! The database engine enforces that queries are read-only: SQLite opens the file read-only and asks an authorizer about every
//! action; PostgreSQL uses a read-only transaction that is rolled back. The text of a statement is never analyzed. Each call runs
//! one statement.

mod engine;
mod error;
mod postgres;
mod queue;
mod rows;
mod sample;
mod schema;
mod sqlite;
mod sqlite_schema;
mod tools;

pub use error::Error;
pub use rows::{Column, Rows};
pub use schema::{ForeignKey, Index, Table, TableColumn, TableName};

use crate::{CALLS_PER_MINUTE, rate_limited};
use bowline::prelude::*;
use engine::{Engine, Limits};
use postgres::Postgres;
use sqlite::Sqlite;
use std::{path::PathBuf, time::Duration};

/// Builds a database server.
#[derive(Clone, Debug)]
#[must_use = "it does nothing until it is used"]
pub struct Database {
    engine: Engine,
    limits: Limits,
    access: Access,
    calls_per_minute: u32,
}

/// What clients may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Read.
    Read,
    /// Write, after asking the user.
    WriteByConsent,
    /// Write without asking.
    Write,
}

impl Database {
    /// Opens the SQLite database in an existing file.
    ///
    /// Values are limited to 16 MiB, and all SQLite databases of the process share 256 MiB of memory. Statements that need more
    /// fail.
    ///
    /// Fails if the file cannot be opened.
    pub fn sqlite(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Sqlite::file(path.into()).map(|sqlite| Self::of(sqlite.into()))
    }

    /// Opens the SQLite database in a file, and creates the file if it does not exist.
    ///
    /// Fails if the file can be neither opened nor created.
    pub fn sqlite_or_create(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        Sqlite::create(&path)?;
        Self::sqlite(path)
    }

    /// Opens a sample database in memory: a small shop with customers, products and orders. The data is always the same.
    pub fn sqlite_sample() -> Result<Self, Error> {
        Sqlite::memory(sample::fill).map(|sqlite| Self::of(sqlite.into()))
    }

    /// Creates the sample database in a new file.
    ///
    /// Fails if the file exists.
    pub fn sqlite_sample_at(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        sample::create(&path)?;
        Self::sqlite(path)
    }

    /// Uses the PostgreSQL database at a URL, `postgres://user:password@host/database`.
    ///
    /// Each call opens a connection. Connections to other machines are encrypted and need a trusted certificate, unless the URL
    /// contains `sslmode=disable`. Use a role with minimal privileges: a read-only transaction does not prevent functions of a
    /// superuser from acting outside of the database.
    ///
    /// Fails if the URL is invalid.
    pub fn postgres(url: &str) -> Result<Self, Error> {
        Postgres::new(url).map(|postgres| Self::of(postgres.into()))
    }

    fn of(engine: Engine) -> Self {
        let calls_per_minute = CALLS_PER_MINUTE;
        Self { engine, limits: Limits::default(), access: Access::Read, calls_per_minute }
    }

    /// Sets whether to offer `execute`, which runs statements that write. The user is asked before each statement; if the client
    /// cannot ask, the statement is refused. Default: no.
    pub fn writable(mut self, writable: bool) -> Self {
        self.access = if writable { Access::WriteByConsent } else { Access::Read };
        self
    }

    /// Runs statements that write without asking the user. Use it if the host asks, or for disposable databases.
    pub fn without_consent(mut self) -> Self {
        self.access = Access::Write;
        self
    }

    /// Sets the maximum number of rows per result. Default: 200.
    pub fn max_rows(mut self, rows: usize) -> Self {
        self.limits.rows = rows;
        self
    }

    /// Sets the maximum size of a result as JSON. Default: 1 MiB.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Sets the timeout of a statement. Default: 10 s. Cancelled calls also cancel their statement.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.limits.time = limit;
        self
    }

    /// Sets how many statements run at once (default: 4) and how many may wait (default: 64). Further statements are refused, and
    /// so are statements that wait longer than the timeout. An in-memory SQLite database runs one statement at a time.
    pub fn max_statements(mut self, running: usize, waiting: usize) -> Self {
        self.engine = self.engine.with_queue(running, waiting);
        self
    }

    /// Sets the maximum number of calls per minute and caller; 0 means no limit. Default: 1200.
    pub fn calls_per_minute(mut self, calls: u32) -> Self {
        self.calls_per_minute = calls;
        self
    }

    /// Builds the server.
    pub fn server(self) -> Server {
        rate_limited(tools::server(self.engine, self.limits, self.access), self.calls_per_minute)
    }
}
