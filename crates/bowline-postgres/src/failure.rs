//! What an error of PostgreSQL says about a statement.

use bowline_store::StoreError;
use tokio_postgres::error::{Severity, SqlState};

use crate::url::described;

/// Why a statement has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There was no connection.
    NotSent(StoreError),
    /// The statement was sent.
    Statement(tokio_postgres::Error),
}

impl Failure {
    /// The server undid the statement, and it may succeed if it is repeated.
    pub(crate) fn is_transient(&self) -> bool {
        let Self::Statement(error) = self else { return false };
        let codes = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
        error.code().is_some_and(|code| codes.contains(code))
    }

    /// The failure of a statement that reads.
    pub(crate) fn of_read(self) -> StoreError {
        match self {
            Self::NotSent(error) => error,
            Self::Statement(error) if is_wrong(&error) => {
                StoreError::invalid(format!("PostgreSQL: {}", described(&error))).with_source(error)
            }
            Self::Statement(error) => {
                StoreError::unavailable(format!("PostgreSQL: {}", described(&error))).with_source(error)
            }
        }
    }

    /// The failure of a statement that writes.
    pub(crate) fn of_write(self) -> StoreError {
        match self {
            // An error, unlike the end of the session, means that the statement was undone.
            Self::Statement(error) if !is_undone(&error) => {
                StoreError::unknown(format!("PostgreSQL: {}", described(&error))).with_source(error)
            }
            failure => failure.of_read(),
        }
    }
}

fn is_undone(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|error| error.parsed_severity() == Some(Severity::Error))
}

/// Returns whether repeating the statement cannot help, because a permission is missing or the table is not ours.
fn is_wrong(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else { return false };
    let code = code.code();
    code.starts_with("42") || code.starts_with("22")
}

/// The failure to connect.
pub(crate) fn connecting(error: tokio_postgres::Error) -> StoreError {
    let message = format!("cannot connect to PostgreSQL: {}", described(&error));
    // A wrong password, role or database stays wrong.
    let wrong =
        error.code().is_some_and(|code| code.code().starts_with("28") || code.code().starts_with("3D"));
    let failed = if wrong { StoreError::invalid(message) } else { StoreError::unavailable(message) };
    failed.with_source(error)
}
