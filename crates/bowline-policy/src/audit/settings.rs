//! The settings of the audit log.

use std::fmt;
use std::path::PathBuf;

/// What of the arguments is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuditArguments {
    /// Their digest: whether two calls had the same arguments can be seen, but not which. Arguments with few possible
    /// values can be guessed from it.
    #[default]
    Digest,
    /// The arguments, without secrets. Those of more than 16 KiB by their digest.
    Redacted,
    /// Nothing.
    Omitted,
}

/// Where and how the audit log is kept.
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
    /// A log in this file: 10 MiB before it is rotated, five old ones kept, digests of arguments, 1024 entries queued.
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

    /// From which size on the file is set aside as `name.1`.
    pub fn max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// How many files are kept that were set aside.
    pub fn keep(mut self, keep: usize) -> Self {
        self.keep = keep;
        self
    }

    /// What of the arguments is written.
    pub fn arguments(mut self, arguments: AuditArguments) -> Self {
        self.arguments = arguments;
        self
    }

    /// A value that is never written, wherever it occurs. Those of fewer than four characters are ignored: they occur
    /// everywhere. Encodings of it, such as Base64, are not recognized.
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secrets.push(secret.into());
        self
    }

    /// Whether nothing may be allowed that cannot be written down. Default: it may, and what is lost is counted.
    pub fn required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// How many entries wait before some are dropped; at least one.
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
