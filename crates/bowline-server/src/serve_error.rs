//! Errors of building and serving a server.

use std::{error::Error as StdError, fmt, io};

/// An error in the definition of a server, tool, prompt or resource.
pub struct BuildError {
    message: Box<str>,
}

impl BuildError {
    /// Creates an error with this message, for crates that build servers.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into().into_boxed_str() }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Prints like `Display`, because a failing `main` shows this.
impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for BuildError {}

/// Why a server could not start or continue.
pub struct ServeError(Kind);

enum Kind {
    Build(BuildError),
    Io(io::Error),
}

impl ServeError {
    /// Returns whether the server was not started because it is invalid.
    pub fn is_build(&self) -> bool {
        matches!(self.0, Kind::Build(_))
    }

    /// Returns the error of the connection or socket, if that is what failed.
    pub fn as_io(&self) -> Option<&io::Error> {
        match &self.0 {
            Kind::Io(error) => Some(error),
            Kind::Build(_) => None,
        }
    }
}

impl From<BuildError> for ServeError {
    fn from(error: BuildError) -> Self {
        Self(Kind::Build(error))
    }
}

impl From<io::Error> for ServeError {
    fn from(error: io::Error) -> Self {
        Self(Kind::Io(error))
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Build(error) => error.fmt(f),
            Kind::Io(error) => error.fmt(f),
        }
    }
}

/// Prints like `Display`, because a failing `main` shows this.
impl fmt::Debug for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StdError for ServeError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0 {
            Kind::Build(error) => error.source(),
            Kind::Io(error) => error.source(),
        }
    }
}
