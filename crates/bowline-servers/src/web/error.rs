//! Errors of the web server.

use std::fmt;

/// An error in an OpenAPI document, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The position as in a `$ref`; empty for the whole document.
    at: String,
    reason: String,
}

impl Error {
    pub(super) fn new(at: impl Into<String>, reason: impl fmt::Display) -> Self {
        Self { at: at.into(), reason: reason.to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at.is_empty() { f.write_str(&self.reason) } else { write!(f, "{}: {}", self.at, self.reason) }
    }
}

impl std::error::Error for Error {}
