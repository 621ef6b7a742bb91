//! A database as a server: its tables to look at, queries that only read, and statements that write once the user agrees.
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
//! That queries only read is up to the engine, which is told so before it sees a statement: SQLite opens the file
//! read-only and asks an authorizer about everything a statement would do, PostgreSQL runs it in a transaction that is
//! read-only and rolled back. Nothing is decided by looking at the text of a statement, and each call takes one.

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

/// A database, and how much of it is offered.
#[derive(Clone, Debug)]
pub struct Database {
    engine: Engine,
    limits: Limits,
    access: Access,
    calls_per_minute: u32,
}

/// What a client may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Look.
    Read,
    /// Write what the user agrees to.
    WriteByConsent,
    /// Write.
    Write,
}

impl Database {
    /// The SQLite database in this file, which has to exist.
    ///
    /// A value may have 16 MiB, and all SQLite databases of the process share 256 MiB of memory; a statement that needs more
    /// fails.
    ///
    /// Fails when it cannot be opened.
    pub fn sqlite(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Sqlite::file(path.into()).map(|sqlite| Self::of(sqlite.into()))
    }

    /// The SQLite database in this file, which is created empty if there is none.
    ///
    /// Fails when it can be neither opened nor created.
    pub fn sqlite_or_create(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        Sqlite::create(&path)?;
        Self::sqlite(path)
    }

    /// A small shop in memory, to try things with: customers, products, orders and their lines, the same each time.
    pub fn sqlite_sample() -> Result<Self, Error> {
        Sqlite::memory(sample::fill).map(|sqlite| Self::of(sqlite.into()))
    }

    /// The same small shop in a new file.
    ///
    /// Fails when there is a file already, which is left as it is.
    pub fn sqlite_sample_at(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        sample::create(&path)?;
        Self::sqlite(path)
    }

    /// The PostgreSQL database at this URL, `postgres://user:password@host/database`.
    ///
    /// Connections are made when they are needed, one per call. To another machine they are encrypted, with a certificate
    /// that this machine trusts, unless the URL says `sslmode=disable`. Give a role that may do no more than is wanted:
    /// what a superuser's functions do outside of the database, a read-only transaction does not keep them from.
    ///
    /// Fails when the URL cannot be read.
    pub fn postgres(url: &str) -> Result<Self, Error> {
        Postgres::new(url).map(|postgres| Self::of(postgres.into()))
    }

    fn of(engine: Engine) -> Self {
        let calls_per_minute = CALLS_PER_MINUTE;
        Self { engine, limits: Limits::default(), access: Access::Read, calls_per_minute }
    }

    /// Whether there is a tool that writes, `execute`. Each statement is shown to the user, who has to agree; where the
    /// client cannot ask its user, it is refused. Default: no.
    pub fn writable(mut self, writable: bool) -> Self {
        self.access = if writable { Access::WriteByConsent } else { Access::Read };
        self
    }

    /// Lets statements write without asking the user, for where something else does: the host, or a copy nobody misses.
    pub fn without_consent(mut self) -> Self {
        self.access = Access::Write;
        self
    }

    /// How many rows a result may have: 200. The rest is not fetched.
    pub fn max_rows(mut self, rows: usize) -> Self {
        self.limits.rows = rows;
        self
    }

    /// How many bytes a result may have, as JSON: 1 MiB. The rest is not fetched.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// How long a statement may run: 10 s. It is cut off then, and when the caller gives up.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.limits.time = limit;
        self
    }

    /// How many statements run at once, 4, and how many may wait for their turn, 64. Further ones are refused, and so is one
    /// that has waited as long as it may run. A SQLite database in memory runs one at a time.
    pub fn max_statements(mut self, running: usize, waiting: usize) -> Self {
        self.engine = self.engine.with_queue(running, waiting);
        self
    }

    /// How many calls a minute each caller may make; 0 for any number. Default: 1200.
    pub fn calls_per_minute(mut self, calls: u32) -> Self {
        self.calls_per_minute = calls;
        self
    }

    /// The server.
    pub fn server(self) -> Server {
        rate_limited(tools::server(self.engine, self.limits, self.access), self.calls_per_minute)
    }
}
