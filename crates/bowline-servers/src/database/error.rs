//! What goes wrong with a database.

use super::engine::Tool;
use std::{fmt, time::Duration};

/// What went wrong with a database. It says so in words for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    pub(super) fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }

    pub(super) fn too_slow(limit: Duration) -> Self {
        Self(format!(
            "the statement was cut off after {limit:?}; narrow it down with WHERE, or LIMIT the rows it goes through"
        ))
    }

    /// The statement does something that the tool does not allow.
    pub(super) fn not_allowed(tool: Tool) -> Self {
        Self(match tool {
            Tool::Query | Tool::Explain => {
                format!("`{}` is read-only; use `execute` (needs `--write`)", tool.name())
            }
            Tool::Execute => "`execute` runs one statement that reads or writes tables, in a transaction of its own; it does \
                              not attach databases, change settings, load extensions or control transactions"
                .into(),
        })
    }

    pub(super) fn too_large(bytes: usize) -> Self {
        Self(format!(
            "the result is too large: one row may have {bytes} bytes; select fewer columns, or parts of long values \
             (`substr`, `length`)"
        ))
    }

    pub(super) fn out_of_memory() -> Self {
        Self(
            "the statement needs too much memory; select fewer columns, or parts of long values (`substr`, `length`)"
                .into(),
        )
    }

    pub(super) fn busy(running: usize, waiting: usize) -> Self {
        Self(format!(
            "the database is busy: {running} statements run at once and {waiting} may wait; try again later"
        ))
    }

    pub(super) fn no_rows() -> Self {
        Self(
            "`query` returns rows, and this statement returns none; use SELECT, or `execute` (needs `--write`) for a \
             statement that writes"
                .into(),
        )
    }

    pub(super) fn parameters(expected: usize, found: usize) -> Self {
        Self(format!("expected {expected} parameters for the placeholders of the statement, got {found}"))
    }

    pub(super) fn no_table(name: &str) -> Self {
        Self(format!("there is no table or view `{name}`; `tables` lists those there are"))
    }

    /// The same error with advice on how to write the statement for `explain`.
    pub(super) fn in_explain(self) -> Self {
        Self(format!("{self}; `explain` takes the statement alone, without EXPLAIN, ANALYZE or options"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
