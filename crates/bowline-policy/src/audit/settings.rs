//! The settings of the audit log.

use std::fmt;
use std::path::PathBuf;

/// How arguments are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuditArguments {
    /// As a digest, which shows whether two calls had the same arguments. Arguments with few possible values can be
    /// guessed from it.
    #[default]
    Digest,
    /// Without secrets. Arguments of more than 16 KiB are logged as a digest.
    Redacted,
    /// Not at all.
    Omitted,
}

/// Settings of the audit log.
#[derive(Clone)]
#[must_use = "it does nothing until it is used"]
pub struct AuditSettings {
    pub(super) path: PathBuf,
    pub(super) max_bytes: u64,
    pub(super) keep: usize,
    pub(super) arguments: AuditArguments,
    pub(super) secrets: Vec<String>,
    pub(super) queue: usize,
    pub(super) required: bool,
}

impl AuditSettings {
    /// Creates settings for a log in this file. Defaults: rotation at 10 MiB, five rotated files, digests of arguments,
    /// a queue of 1024 entries.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            max_bytes: 10 << 20,
            keep: 5,
            arguments: AuditArguments::default(),
            secrets: Vec::new(),
            queue: 1024,
            required: false,
        }
    }

    /// Sets the size at which the file is renamed to `name.1`.
    pub fn max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Sets the number of rotated files to keep.
    pub fn keep(mut self, keep: usize) -> Self {
        self.keep = keep;
        self
    }

    /// Sets how arguments are logged.
    pub fn arguments(mut self, arguments: AuditArguments) -> Self {
        self.arguments = arguments;
        self
    }

    /// Adds a value that is never logged. Values shorter than four characters are ignored, because they would match
    /// unrelated text. Encoded forms, such as Base64, are not recognized.
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secrets.push(secret.into());
        self
    }

    /// Sets whether calls are refused if they cannot be logged. Default: they are allowed, and lost entries are
    /// counted.
    pub fn required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// Sets the length of the queue, at least one. Further entries are dropped.
    pub fn queue(mut self, queue: usize) -> Self {
        self.queue = queue.max(1);
        self
    }
}

impl fmt::Debug for AuditSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AuditSettings")
            .field("path", &self.path)
            .field("max_bytes", &self.max_bytes)
            .field("keep", &self.keep)
            .field("arguments", &self.arguments)
            .field("secrets", &"***")
            .field("queue", &self.queue)
            .field("required", &self.required)
            .finish()
    }
}
