//! What goes wrong in a test, told so that the test's output is enough to see why.

use std::fmt;

/// A conversation that went differently than it should.
///
/// Prints the same with `{}` and `{:?}`, over several lines, so that `unwrap` in a test shows it well.
pub struct Error {
    kind: Kind,
    message: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The peer did not answer in time.
    Timeout,
    /// The peer closed the connection.
    Closed,
    /// What came, or what was written in a file, is not what should be there.
    Unexpected,
}

impl Error {
    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self { kind: Kind::Timeout, message: message.into() }
    }

    pub(crate) fn closed(message: impl Into<String>) -> Self {
        Self { kind: Kind::Closed, message: message.into() }
    }

    pub(crate) fn unexpected(message: impl Into<String>) -> Self {
        Self { kind: Kind::Unexpected, message: message.into() }
    }

    pub(crate) fn map(self, tell: impl FnOnce(String) -> String) -> Self {
        Self { kind: self.kind, message: tell(self.message) }
    }

    /// Whether the peer did not answer in time.
    pub fn is_timeout(&self) -> bool {
        self.kind == Kind::Timeout
    }

    /// Whether the peer closed the connection.
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
