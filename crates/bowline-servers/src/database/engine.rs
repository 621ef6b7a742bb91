//! The two engines behind one face.

use super::{
    error::Error,
    postgres::Postgres,
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

/// A database of one kind or another. Dropping a future of it cuts the statement off.
#[derive(Clone, Debug)]
pub(super) enum Engine {
    Sqlite(Arc<Sqlite>),
    Postgres(Arc<Postgres>),
}

impl Engine {
    /// The name for people.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SQLite",
            Self::Postgres(_) => "PostgreSQL",
        }
    }

    /// How placeholders are written.
    pub(super) fn placeholders(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "?1, ?2, …",
            Self::Postgres(_) => "$1, $2, …",
        }
    }

    /// Runs a statement that only reads.
    pub(super) async fn query(&self, statement: Statement, limits: Limits) -> Result<Rows, Error> {
        match self {
            Self::Sqlite(sqlite) => sqlite.query(statement, limits).await,
            Self::Postgres(postgres) => postgres.query(statement, limits).await,
        }
    }

    /// Runs a statement that may write, in a transaction of its own.
    pub(super) async fn execute(&self, statement: Statement, limits: Limits) -> Result<Executed, Error> {
        match self {
            Self::Sqlite(sqlite) => sqlite.execute(statement, limits).await,
            Self::Postgres(postgres) => postgres.execute(statement, limits).await,
        }
    }

    /// How a statement would be run.
    pub(super) async fn explain(&self, mut statement: Statement, limits: Limits) -> Result<Rows, Error> {
        let prefix = match self {
            Self::Sqlite(_) => "EXPLAIN QUERY PLAN",
            Self::Postgres(_) => "EXPLAIN",
        };
        statement.sql = format!("{prefix} {}", statement.sql);
        self.query(statement, limits).await
    }

    /// The tables and views there are.
    pub(super) async fn tables(&self, limits: Limits) -> Result<Vec<TableName>, Error> {
        match self {
            Self::Sqlite(sqlite) => sqlite.tables(limits).await,
            Self::Postgres(postgres) => postgres.tables(limits).await,
        }
    }

    /// One table or view.
    pub(super) async fn describe(&self, name: String, limits: Limits) -> Result<Table, Error> {
        match self {
            Self::Sqlite(sqlite) => sqlite.describe(name, limits).await,
            Self::Postgres(postgres) => postgres.describe(name, limits).await,
        }
    }
}
