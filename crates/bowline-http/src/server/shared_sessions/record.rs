//! The record of a session, and the names of all records.

use bowline_proto::{seal::digest, server::SessionState};
use bowline_store::{Group, InvalidName, Key, NodeId};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The format that this release writes.
const FORMAT: u32 = 1;

/// A session as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SessionRecord {
    format: u32,
    /// The digest of the principal.
    pub(super) owner: String,
    /// Seconds since the epoch.
    pub(super) created: u64,
    /// The copy that serves the GET stream.
    pub(super) get_stream: Option<String>,
    pub(super) state: SessionState,
}

/// Why a record cannot be used.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// A newer release wrote it.
    Newer(u32),
    Invalid(serde_json::Error),
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Newer(format) => write!(f, "the session has format {format}; this release reads {FORMAT}"),
            Self::Invalid(error) => write!(f, "the session cannot be read: {error}"),
        }
    }
}

impl SessionRecord {
    pub(super) fn new(principal: Option<&str>, created: u64, state: SessionState) -> Self {
        Self { format: FORMAT, owner: owner(principal), created, get_stream: None, state }
    }

    pub(super) fn read(value: &[u8]) -> Result<Self, Unreadable> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let head: Head = serde_json::from_slice(value).map_err(Unreadable::Invalid)?;
        if head.format > FORMAT {
            return Err(Unreadable::Newer(head.format));
        }
        serde_json::from_slice(value).map_err(Unreadable::Invalid)
    }

    pub(super) fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Names a principal, or that there is none, without revealing it.
pub(super) fn owner(principal: Option<&str>) -> String {
    let presence: &[u8] = if principal.is_some() { b"known" } else { b"unknown" };
    hex(&digest(&[b"session owner", presence, principal.unwrap_or_default().as_bytes()]))
}

/// Names a session without its id, which would open it.
pub(super) fn session_digest(id: &str) -> String {
    hex(&digest(&[b"session", id.as_bytes()]))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(super) fn session_key(digest: &str) -> Result<Key, InvalidName> {
    Key::new(format!("session/{digest}"))
}

pub(super) fn owner_group(principal: Option<&str>) -> Result<Group, InvalidName> {
    Group::new(format!("sessions/{}", owner(principal)))
}

pub(super) fn node_key(node: NodeId) -> Result<Key, InvalidName> {
    Key::new(format!("node/{node}"))
}

pub(super) fn question_key(digest: &str, id: &str) -> Result<Key, InvalidName> {
    Key::new(format!("question/{digest}/{id}"))
}
