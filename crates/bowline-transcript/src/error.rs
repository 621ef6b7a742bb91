//! The error of a conversation, with enough context for the output of a test.

use std::fmt;

/// A conversation that did not go as expected.
///
/// `{}` and `{:?}` print the same, possibly over several lines, so that `unwrap` in a test is readable.
pub struct Error {
    kind: Kind,
    message: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The peer did not respond in time.
    Timeout,
    /// The peer closed the connection.
    Closed,
    /// Unexpected input of the peer, or an invalid file.
    Unexpected,
}

impl Error {
    /// Creates an error for a peer that did not respond in time.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self { kind: Kind::Timeout, message: message.into() }
    }

    /// Creates an error for a closed connection.
    pub fn closed(message: impl Into<String>) -> Self {
        Self { kind: Kind::Closed, message: message.into() }
    }

    /// Creates an error for unexpected input.
    pub fn unexpected(message: impl Into<String>) -> Self {
        Self { kind: Kind::Unexpected, message: message.into() }
    }

    /// Changes the message and keeps the kind.
    #[must_use]
    pub fn map(self, change: impl FnOnce(String) -> String) -> Self {
        Self { kind: self.kind, message: change(self.message) }
    }

    /// Returns whether the peer did not respond in time.
    pub fn is_timeout(&self) -> bool {
        self.kind == Kind::Timeout
    }

    /// Returns whether the peer closed the connection.
    pub fn is_closed(&self) -> bool {
        self.kind == Kind::Closed
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}
