//! Database errors.

use super::engine::Tool;
use std::{fmt, time::Duration};

/// A database error, worded for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    pub(super) fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }

    pub(super) fn too_slow(limit: Duration) -> Self {
        Self(format!("the statement timed out after {limit:?}; narrow it down with WHERE or LIMIT"))
    }

    /// The statement does something that the tool does not allow.
    pub(super) fn not_allowed(tool: Tool) -> Self {
        Self(match tool {
            Tool::Query | Tool::Explain => {
                format!("`{}` is read-only; use `execute` (needs `--write`)", tool.name())
            }
            Tool::Execute => {
                "`execute` runs one statement that reads or writes tables, in its own transaction; it does \
                              not attach databases, change settings, load extensions or control transactions"
                    .into()
            }
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
            "the statement needs too much memory; select fewer columns, or only parts of long values (`substr`, `length`)"
                .into(),
        )
    }

    pub(super) fn busy(running: usize, waiting: usize) -> Self {
        Self(format!(
            "the database is busy ({running} statements running, {waiting} waiting); try again later"
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
        Self(format!("the statement has {expected} placeholders, but got {found} parameters"))
    }

    pub(super) fn no_table(name: &str) -> Self {
        Self(format!("unknown table or view `{name}`; use `tables` to list them"))
    }

    /// Adds a hint on how to write the statement for `explain`.
    pub(super) fn in_explain(self) -> Self {
        Self(format!("{self}; pass only the statement to `explain`, without EXPLAIN, ANALYZE or options"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
