//! What goes wrong with the web.

use std::fmt;

/// What went wrong while a document of an interface was read, with the place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where in the document, as in a `$ref`; empty when it is about the whole.
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
