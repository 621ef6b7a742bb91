//! The two engines behind one face.

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

/// How much a statement may give and take.
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

/// One statement, with the values of its placeholders.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) parameters: Vec<Value>,
    /// Whose limits apply, for messages.
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

/// What a statement that writes did.
#[data]
#[derive(PartialEq)]
pub(super) struct Executed {
    /// How many rows were changed.
    pub(super) affected: u64,
    /// What it gives back, as with RETURNING.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) returned: Option<Rows>,
}

/// How many statements of one database run at once, and how many may wait, unless it was set.
pub(super) const RUNNING: usize = 4;
pub(super) const WAITING: usize = 64;

/// A database of one kind or another, and the queue of its statements. Dropping a future of it cuts the statement off.
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
    /// The same database with another queue.
    pub(super) fn with_queue(self, running: usize, waiting: usize) -> Self {
        // A database in memory has one connection.
        let one = matches!(&self.kind, Kind::Sqlite(sqlite) if sqlite.is_in_memory());
        Self { queue: Queue::new(if one { 1 } else { running }, waiting), ..self }
    }

    /// The name for people.
    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Sqlite(_) => "SQLite",
            Kind::Postgres(_) => "PostgreSQL",
        }
    }

    /// How placeholders are written.
    pub(super) fn placeholders(&self) -> &'static str {
        match self.kind {
            Kind::Sqlite(_) => "?1, ?2, …",
            Kind::Postgres(_) => "$1, $2, …",
        }
    }

    /// Runs a statement that only reads.
    pub(super) async fn query(&self, statement: Statement, limits: Limits) -> Result<Rows, Error> {
        let slot = self.queue.enter(limits.time).await?;
        match &self.kind {
            Kind::Sqlite(sqlite) => sqlite.query(statement, limits, slot).await,
            Kind::Postgres(postgres) => postgres.query(statement, limits, slot).await,
        }
    }

    /// Runs a statement that may write, in a transaction of its own.
    pub(super) async fn execute(&self, statement: Statement, limits: Limits) -> Result<Executed, Error> {
        let slot = self.queue.enter(limits.time).await?;
        match &self.kind {
            Kind::Sqlite(sqlite) => sqlite.execute(statement, limits, slot).await,
            Kind::Postgres(postgres) => postgres.execute(statement, limits, slot).await,
        }
    }

    /// How a statement would be run.
    pub(super) async fn explain(&self, mut statement: Statement, limits: Limits) -> Result<Rows, Error> {
        let prefix = match self.kind {
            Kind::Sqlite(_) => "EXPLAIN QUERY PLAN",
            // After a list of options only a statement can follow: neither ANALYZE, which would run it, nor more options.
            Kind::Postgres(_) => "EXPLAIN (FORMAT TEXT)",
        };
        statement.sql = format!("{prefix} {}", statement.sql);
        self.query(statement, limits).await
    }

    /// The tables and views there are.
    pub(super) async fn tables(&self, limits: Limits) -> Result<Vec<TableName>, Error> {
        let slot = self.queue.enter(limits.time).await?;
        match &self.kind {
            Kind::Sqlite(sqlite) => sqlite.tables(limits, slot).await,
            Kind::Postgres(postgres) => postgres.tables(limits, slot).await,
        }
    }

    /// One table or view.
    pub(super) async fn describe(&self, name: String, limits: Limits) -> Result<Table, Error> {
        let slot = self.queue.enter(limits.time).await?;
        match &self.kind {
            Kind::Sqlite(sqlite) => sqlite.describe(name, limits, slot).await,
            Kind::Postgres(postgres) => postgres.describe(name, limits, slot).await,
        }
    }
}
