//! Metadata: what `_meta` holds, and how its keys are formed.

use std::fmt;

use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::RawMap;
use crate::capability::ClientCapabilities;
use crate::implementation::Implementation;
use crate::log::LoggingLevel;
use crate::revision::Revision;
use crate::rpc::{Id, ProgressToken};
use crate::task::RelatedTaskMetadata;
use bowline_json::RawJson;

/// The keys that the protocol itself defines.
pub mod key {
    /// What the names of keys of the protocol begin with.
    pub const PREFIX: &str = "io.modelcontextprotocol/";
    /// The token that progress of the request is reported under.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// The revision of a request (from 2026-07-28).
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Who sends a request (from 2026-07-28).
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// What the sender of a request can do (from 2026-07-28).
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The least level of log messages wanted for a request (from 2026-07-28).
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Who sends a result (from 2026-07-28).
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The subscription a notification belongs to (from 2026-07-28).
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The task a message belongs to (2025-11-25 only).
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// What to tell the model while a task runs (2025-11-25 only).
    pub const MODEL_IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";
    /// The position in a trace (W3C Trace Context).
    pub const TRACEPARENT: &str = "traceparent";
    /// What tracing systems add (W3C Trace Context).
    pub const TRACESTATE: &str = "tracestate";
    /// What the application adds to a trace (W3C Baggage).
    pub const BAGGAGE: &str = "baggage";
}

/// The members of a `_meta` object, known and unknown, as they came.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Meta(RawMap);

macro_rules! accessors {
    ($($(#[$attribute:meta])* $read:ident $write:ident $type:ty = $key:ident;)*) => {
        $(
            $(#[$attribute])*
            ///
            /// Fails when the member is there but has another type.
            pub fn $read(&self) -> serde_json::Result<Option<$type>> {
                self.0.decode(key::$key)
            }

            #[doc = concat!("Sets what [`", stringify!($read), "`](Self::", stringify!($read), ") reads.")]
            pub fn $write(&mut self, value: &$type) {
                self.0.insert(key::$key, crate::to_json(value));
            }
        )*
    };
}

impl Meta {
    /// Empty metadata.
    pub const fn new() -> Self {
        Self(RawMap::new())
    }

    /// Returns the value under `key`.
    pub fn get(&self, key: &str) -> Option<&RawJson> {
        self.0.get(key)
    }

    /// Sets `key`, and returns what it held before.
    pub fn insert(&mut self, key: impl Into<String>, value: RawJson) -> Option<RawJson> {
        self.0.insert(key, value)
    }

    /// Sets `key`.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<RawJson>) -> Self {
        self.0.insert(key, value.into());
        self
    }

    /// Removes `key` and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<RawJson> {
        self.0.remove(key)
    }

    /// Reads the value under `key` as a type; `None` when the key is absent.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self, key: &str) -> serde_json::Result<Option<T>> {
        self.0.decode(key)
    }

    /// Returns the members in order.
    pub fn iter(&self) -> bowline_json::map::Iter<'_, RawJson> {
        self.0.iter()
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the members.
    pub fn as_map(&self) -> &RawMap {
        &self.0
    }

    /// Returns the members for changes.
    pub fn as_map_mut(&mut self) -> &mut RawMap {
        &mut self.0
    }

    /// Returns the members.
    pub fn into_map(self) -> RawMap {
        self.0
    }

    accessors! {
        /// The token that progress of the request is reported under.
        progress_token set_progress_token ProgressToken = PROGRESS_TOKEN;
        /// The revision of a request; any text, for the sender may be newer than this code.
        protocol_version set_protocol_version String = PROTOCOL_VERSION;
        /// Who sends a request.
        client_info set_client_info Implementation = CLIENT_INFO;
        /// What the sender of a request can do.
        client_capabilities set_client_capabilities ClientCapabilities = CLIENT_CAPABILITIES;
        /// The least level of log messages wanted for a request.
        log_level set_log_level LoggingLevel = LOG_LEVEL;
        /// Who sends a result.
        server_info set_server_info Implementation = SERVER_INFO;
        /// The subscription a notification belongs to.
        subscription_id set_subscription_id Id = SUBSCRIPTION_ID;
        /// The task a message belongs to.
        related_task set_related_task RelatedTaskMetadata = RELATED_TASK;
        /// What to tell the model while a task runs.
        model_immediate_response set_model_immediate_response String = MODEL_IMMEDIATE_RESPONSE;
    }
}

impl From<RawMap> for Meta {
    fn from(members: RawMap) -> Self {
        Self(members)
    }
}

impl<'a> IntoIterator for &'a Meta {
    type Item = (&'a str, &'a RawJson);
    type IntoIter = bowline_json::map::Iter<'a, RawJson>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawMap::deserialize(deserializer).map(Self)
    }
}

/// A key does not follow the grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaKeyError {
    key: Box<str>,
    fault: Fault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Label,
    Name,
    NoPrefix,
    NoName,
}

impl MetaKeyError {
    fn new(key: &str, fault: Fault) -> Self {
        Self { key: key.into(), fault }
    }

    /// Returns the key.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for MetaKeyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expected = match self.fault {
            Fault::Label => {
                "each label of the prefix to begin with a letter, end with a letter or digit and have only \
                 letters, digits and hyphens between"
            }
            Fault::Name => {
                "the name to begin and end with a letter or digit and have only letters, digits, \
                 `-`, `_` and `.` between"
            }
            Fault::NoPrefix => "a prefix such as `com.example/`",
            Fault::NoName => "a name after the prefix",
        };
        write!(formatter, "expected {expected}, got `{}`", self.key)
    }
}

impl std::error::Error for MetaKeyError {}

/// Checks a key against the grammar of 2025-06-18 and later: an optional prefix of labels, joined by
/// dots and followed by a slash, then a name, which may be empty.
pub fn validate_key(key: &str) -> Result<(), MetaKeyError> {
    let (prefix, name) = split(key);
    if let Some(prefix) = prefix
        && !prefix.split('.').all(is_label)
    {
        return Err(MetaKeyError::new(key, Fault::Label));
    }
    if !name.is_empty() && !is_name(name) {
        return Err(MetaKeyError::new(key, Fault::Name));
    }
    Ok(())
}

/// Checks the identifier of an extension: a key with a prefix and a name.
pub fn validate_extension(identifier: &str) -> Result<(), MetaKeyError> {
    validate_key(identifier)?;
    match split(identifier) {
        (None, _) => Err(MetaKeyError::new(identifier, Fault::NoPrefix)),
        (Some(_), "") => Err(MetaKeyError::new(identifier, Fault::NoName)),
        (Some(_), _) => Ok(()),
    }
}

/// Returns whether a key is reserved for the protocol.
///
/// Prefixes are judged by the rule of the revision: in 2025-06-18 the last label but one decides (`tools.mcp.com/`),
/// from 2025-11-25 on the second one does (`com.mcp.tools/`).
pub fn is_reserved(key: &str, revision: Revision) -> bool {
    let is_ours = |label: Option<&str>| matches!(label, Some("modelcontextprotocol" | "mcp"));
    let (prefix, name) = split(key);
    let Some(prefix) = prefix else {
        return match name {
            key::PROGRESS_TOKEN => true,
            key::TRACEPARENT | key::TRACESTATE | key::BAGGAGE => revision >= Revision::V2026_07_28,
            _ => false,
        };
    };
    match revision {
        Revision::V2024_11_05 | Revision::V2025_03_26 => false,
        Revision::V2025_06_18 => is_ours(prefix.rsplit('.').nth(1)),
        Revision::V2025_11_25 | Revision::V2026_07_28 => is_ours(prefix.split('.').nth(1)),
    }
}

fn split(key: &str) -> (Option<&str>, &str) {
    match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    }
}

fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

    // proves: META-01, META-02, META-04
    #[test]
    fn keys_follow_the_grammar() {
        for key in [
            "name",
            "a",
            "0",
            "a.b_c-d9",
            "com.example/name",
            "com.example/",
            "a/x",
            "a-b.c1/x.y",
            "",
            "X.Y/Z",
            "io.modelcontextprotocol/related-task",
            "traceparent",
        ] {
            assert_eq!(validate_key(key), Ok(()), "{key}");
        }
        for key in [
            "1a/x",
            "a-/x",
            "-a/x",
            "/x",
            "a..b/x",
            ".a/x",
            "a./x",
            "a_b/x",
            "a b/x",
            "é/x",
            "com.example/-x",
            "com.example/x-",
            "x_",
            ".x",
            "a/b/c",
            "x y",
            "naïve",
            "com.example/a:b",
        ] {
            assert!(validate_key(key).is_err(), "{key}");
        }
        assert_eq!(
            validate_key("1a/x").unwrap_err().to_string(),
            "expected each label of the prefix to begin with a letter, end with a letter or digit and have \
             only letters, digits and hyphens between, got `1a/x`",
        );
    }

    // proves: EXT-01
    #[test]
    fn extensions_need_a_prefix() {
        assert_eq!(validate_extension("io.modelcontextprotocol/ui"), Ok(()));
        for identifier in ["ui", "com.example/", "", "1/x"] {
            assert!(validate_extension(identifier).is_err(), "{identifier}");
        }
    }

    // proves: META-06, META-07
    #[test]
    fn reserved_prefixes_depend_on_the_revision() {
        let reserved_in = |key| {
            Revision::ALL.into_iter().filter(|revision| is_reserved(key, *revision)).collect::<Vec<_>>()
        };
        for (key, revisions) in [
            ("modelcontextprotocol.io/x", vec![V2025_06_18]),
            ("mcp.dev/x", vec![V2025_06_18]),
            ("api.modelcontextprotocol.org/x", vec![V2025_06_18, V2025_11_25, V2026_07_28]),
            ("a.tools.mcp.com/x", vec![V2025_06_18]),
            ("io.modelcontextprotocol/x", vec![V2025_11_25, V2026_07_28]),
            ("dev.mcp/", vec![V2025_11_25, V2026_07_28]),
            ("org.modelcontextprotocol.api.v2/x", vec![V2025_11_25, V2026_07_28]),
            ("com.example.mcp/x", vec![]),
            ("mcp/x", vec![]),
            ("com.example/mcp", vec![]),
            ("progressToken", vec![V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28]),
            ("traceparent", vec![V2026_07_28]),
        ] {
            assert_eq!(reserved_in(key), revisions, "{key}");
        }
    }

    #[test]
    fn typed_members_are_read_and_written() {
        let mut meta = Meta::new();
        meta.set_progress_token(&Id::from("t"));
        meta.set_protocol_version(&"2026-07-28".to_owned());
        meta.set_client_capabilities(&ClientCapabilities::new());
        assert_eq!(
            serde_json::to_string(&meta).unwrap(),
            "{\"progressToken\":\"t\",\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
             \"io.modelcontextprotocol/clientCapabilities\":{}}",
        );
        assert_eq!(meta.progress_token().unwrap(), Some(Id::from("t")));
        assert_eq!(meta.server_info().unwrap(), None);
        meta.insert(key::LOG_LEVEL, RawJson::null());
        assert!(meta.log_level().is_err());
    }
}
