//! A common interface for SQLite and PostgreSQL.

use super::{
    error::Error,
    postgres::Postgres,
    queue::Queue,
    rows::Rows,
    schema::{Table, TableName},
    sqlite::Sqlite,
};
use bowline::prelude::data;
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// The limits of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) rows: usize,
    pub(super) bytes: usize,
    pub(super) time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rows: 200, bytes: 1024 * 1024, time: Duration::from_secs(10) }
    }
}

/// A statement with its parameters.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) parameters: Vec<Value>,
    /// The tool that runs the statement, for error messages.
    pub(super) tool: Tool,
}

/// The tools that run statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Query,
    Explain,
    Execute,
}

impl Tool {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Explain => "explain",
            Self::Execute => "execute",
        }
    }
}

/// The result of a statement that writes.
#[data]
#[derive(PartialEq)]
pub(super) struct Executed {
    /// The number of rows changed.
    pub(super) affected: u64,
    /// The rows returned, as with RETURNING.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) returned: Option<Rows>,
}

/// The default number of statements of one database that run at once, and that may wait.
pub(super) const RUNNING: usize = 4;
pub(super) const WAITING: usize = 64;

/// A database and the queue of its statements. Dropping a future cancels the statement.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    kind: Kind,
    queue: Queue,
}

#[derive(Clone, Debug)]
enum Kind {
    Sqlite(Arc<Sqlite>),
    Postgres(Arc<Postgres>),
}

impl From<Sqlite> for Engine {
    fn from(sqlite: Sqlite) -> Self {
        let kind = Kind::Sqlite(Arc::new(sqlite));
        Self { kind, queue: Queue::new(RUNNING, WAITING) }.with_queue(RUNNING, WAITING)
    }
}

impl From<Postgres> for Engine {
    fn from(postgres: Postgres) -> Self {
        Self { kind: Kind::Postgres(Arc::new(postgres)), queue: Queue::new(RUNNING, WAITING) }
    }
}

impl Engine {
    /// Replaces the queue.
    pub(super) fn with_queue(self, running: usize, waiting: usize) -> Self {
        // An in-memory database has only one connection.
        let one = matches!(&self.kind, Kind::Sqlite(sqlite) if sqlite.is_in_memory());
        Self { queue: Queue::new(if one { 1 } else { running }, waiting), ..self }
    }

    /// Returns the display name.
    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Sqlite(_) => "SQLite",
            Kind::Postgres(_) => "PostgreSQL",
        }
    }

    /// Returns the placeholder syntax.
    pub(super) fn placeholders(&self) -> &'static str {
        match self.kind {
            Kind::Sqlite(_) => "?1, ?2, …",
            Kind::Postgres(_) => "$1, $2, …",
        }
    }

    /// Runs a read-only statement.
    pub(super) async fn query(&self, statement: Statement, limits: Limits) -> Result<Rows, Error> {
        let slot = self.queue.enter(limits.time).await?;
        match &self.kind {
            Kind::Sqlite(sqlite) => sqlite.query(statement, limits, slot).await,
            Kind::Postgres(postgres) => postgres.query(statement, limits, slot).await,
        }
    }

    /// Runs a statement that may write, in its own transaction.
    pub(super) async fn execute(&self, statement: Statement, limits: Limits) -> Result<Executed, Error> {
        let slot = self.queue.enter(limits.time).await?;
        match &self.kind {
            Kind::Sqlite(sqlite) => sqlite.execute(statement, limits, slot).await,
            Kind::Postgres(postgres) => postgres.execute(statement, limits, slot).await,
        }
    }

    /// Returns the query plan of a statement.
    pub(super) async fn explain(&self, mut statement: Statement, limits: Limits) -> Result<Rows, Error> {
        let prefix = match self.kind {
            Kind::Sqlite(_) => "EXPLAIN QUERY PLAN",
            // Only a statement can follow a list of options: neither ANALYZE, which would run it, nor more options.
            Kind::Postgres(_) => "EXPLAIN (FORMAT TEXT)",
        };
        statement.sql = format!("{prefix} {}", statement.sql);
        self.query(statement, limits).await
    }

    /// Lists the tables and views.
    pub(super) async fn tables(&self, limits: Limits) -> Result<Vec<TableName>, Error> {
        let slot = self.queue.enter(limits.time).await?;
        match &self.kind {
            Kind::Sqlite(sqlite) => sqlite.tables(limits, slot).await,
            Kind::Postgres(postgres) => postgres.tables(limits, slot).await,
        }
    }

    /// Describes a table or view.
    pub(super) async fn describe(&self, name: String, limits: Limits) -> Result<Table, Error> {
        let slot = self.queue.enter(limits.time).await?;
        match &self.kind {
            Kind::Sqlite(sqlite) => sqlite.describe(name, limits, slot).await,
            Kind::Postgres(postgres) => postgres.describe(name, limits, slot).await,
        }
    }
}
