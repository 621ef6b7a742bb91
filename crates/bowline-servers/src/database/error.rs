//! What goes wrong with a database.

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
            "the statement was cut off after {limit:?}: expected one that ends within it; narrow it down with WHERE, or \
             LIMIT the rows it goes through"
        ))
    }

    pub(super) fn no_rows() -> Self {
        Self("expected a statement that gives rows, such as SELECT; this one gives none".into())
    }

    pub(super) fn parameters(expected: usize, found: usize) -> Self {
        Self(format!("expected {expected} parameters for the placeholders of the statement, got {found}"))
    }

    pub(super) fn no_table(name: &str) -> Self {
        Self(format!("there is no table or view `{name}`; `tables` lists those there are"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
