//! What can go wrong.

use std::error::Error;
use std::fmt;

/// What is known about an operation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store cannot be used now. A write was certainly not applied.
    Unavailable,
    /// A write may have been applied, or may be applied later.
    Unknown,
    /// The request breaks a limit of the store, or a kept value cannot be read. Repeating it does not help.
    Invalid,
}

/// Why a store did not do what it was asked for.
#[derive(Debug)]
pub struct StoreError {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// The store cannot be used now; a write was certainly not applied.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Unavailable, message: message.into(), source: None }
    }

    /// A write may have been applied.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Unknown, message: message.into(), source: None }
    }

    /// The request or the kept value is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Invalid, message: message.into(), source: None }
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What is known about the operation.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ErrorKind::Unavailable => "the store is not available: ",
            ErrorKind::Unknown => "the store did not confirm a write: ",
            ErrorKind::Invalid => "",
        })?;
        f.write_str(&self.message)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// Why a record was not written.
#[derive(Debug)]
#[non_exhaustive]
pub enum PutError {
    /// The record exists, is missing, or has another version.
    Conflict,
    /// The claim that the write was made under is no longer the record's.
    ClaimLost,
    /// The store failed.
    Store(StoreError),
}

impl fmt::Display for PutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict => f.write_str("the record was changed by another writer"),
            Self::ClaimLost => f.write_str("another process has claimed the record"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl Error for PutError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Store(error) => error.source(),
            Self::Conflict | Self::ClaimLost => None,
        }
    }
}

impl From<StoreError> for PutError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
