//! JSON-RPC: ids, errors and error codes.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::RawMap;
use crate::adapt::Adapt;
use crate::capability::ClientCapabilities;
use crate::elicit::ElicitUrlParams;
use crate::record::{once, present};
use crate::revision::Revision;
use bowline_json::{RawJson, borrow::Text};

/// Id of a request. `1` and `"1"` are different ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// An integer.
    Number(i64),
    /// A string.
    String(Arc<str>),
}

/// Token of a request for progress notifications; chosen by the sender of the request.
pub type ProgressToken = Id;

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number}"),
            Self::String(text) => write!(formatter, "{text:?}"),
        }
    }
}

impl From<i64> for Id {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Id {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl From<Arc<str>> for Id {
    fn from(text: Arc<str>) -> Self {
        Self::String(text)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::String(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;

        impl Visitor<'_> for IdVisitor {
            type Value = Id;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string or an integer")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Id, E> {
                Ok(Id::Number(number))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Id, E> {
                i64::try_from(number)
                    .map(Id::Number)
                    .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Id, E> {
                Ok(Id::String(text.into()))
            }
        }

        deserializer.deserialize_any(IdVisitor)
    }
}

/// Error codes.
pub mod error_code {
    /// The message is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The message is not a request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method is not supported.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The params are invalid.
    pub const INVALID_PARAMS: i64 = -32602;
    /// An internal error.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// The resource does not exist (legacy; 2026-07-28 uses [`INVALID_PARAMS`]).
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// The access token lacks a scope. The protocol has no code for it: over HTTP the status and the challenge say so.
    pub const INSUFFICIENT_SCOPE: i64 = -32003;
    /// The user has to open a URL first (2025-11-25 only).
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
    /// A header does not match the body (from 2026-07-28).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The client lacks a required capability (from 2026-07-28).
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// The revision is not supported (from 2026-07-28).
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
    /// The user declined (legacy, as a response to sampling).
    pub const USER_REJECTED: i64 = -1;
}

/// The error of a JSON-RPC response.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// Error code; see [`error_code`].
    pub code: i64,
    /// A short message.
    pub message: Cow<'static, str>,
    /// Additional data.
    pub data: Option<RawJson>,
}

impl RpcError {
    /// Creates an error.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Adds data.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<RawJson>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Creates an error for a message that is not JSON.
    pub fn parse_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(error_code::PARSE_ERROR, message)
    }

    /// Creates an error for a message that is not a request.
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(error_code::INVALID_REQUEST, message)
    }

    /// Creates an error for an unsupported method.
    pub fn method_not_found(method: impl fmt::Display) -> Self {
        Self::new(error_code::METHOD_NOT_FOUND, format!("method not found: {method}"))
    }

    /// Creates an error for invalid params.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(error_code::INVALID_PARAMS, message)
    }

    /// Creates an internal error.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(error_code::INTERNAL_ERROR, message)
    }

    /// Creates an error for a resource that does not exist. [`Adapt`] sets the code of the revision.
    pub fn resource_not_found(uri: impl AsRef<str>) -> Self {
        let uri = uri.as_ref();
        Self::new(error_code::RESOURCE_NOT_FOUND, format!("resource not found: {uri}"))
            .with_data(crate::to_json(&RawMap::from([("uri", crate::to_json(uri))])))
    }

    /// Creates an error for an unsupported revision. The data lists the supported ones.
    pub fn unsupported_version(requested: impl AsRef<str>, supported: &[Revision]) -> Self {
        let requested = requested.as_ref();
        let data = RawMap::from([
            ("supported", crate::to_json(supported)),
            ("requested", crate::to_json(requested)),
        ]);
        Self::new(
            error_code::UNSUPPORTED_PROTOCOL_VERSION,
            format!("unsupported protocol version: {requested}"),
        )
        .with_data(crate::to_json(&data))
    }

    /// Creates an error for a client that lacks a required capability. The data lists what is missing.
    pub fn missing_capability(required: &ClientCapabilities) -> Self {
        let data = RawMap::from([("requiredCapabilities", crate::to_json(required))]);
        Self::new(error_code::MISSING_CLIENT_CAPABILITY, "missing required client capability")
            .with_data(crate::to_json(&data))
    }

    /// Creates an error for an access token without the required scopes. The data lists them.
    pub fn insufficient_scope<'a>(required: impl IntoIterator<Item = &'a str>) -> Self {
        let required: Vec<&str> = required.into_iter().collect();
        let data = RawMap::from([("requiredScopes", crate::to_json(&required))]);
        let message = format!("insufficient scope: this needs `{}`", required.join(" "));
        Self::new(error_code::INSUFFICIENT_SCOPE, message).with_data(crate::to_json(&data))
    }

    /// Returns the scopes that the access token lacks, if that is the reason.
    pub fn required_scopes(&self) -> Option<Vec<String>> {
        if self.code != error_code::INSUFFICIENT_SCOPE {
            return None;
        }
        self.data_member("requiredScopes")
    }

    /// Creates an error for a server that cannot answer now. The data says when to ask again; over HTTP the status is 503.
    pub fn unavailable(message: impl Into<Cow<'static, str>>, retry_after: Duration) -> Self {
        let millis = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
        let data = RawMap::from([("retryAfterMs", crate::to_json(&millis))]);
        Self::new(error_code::INTERNAL_ERROR, message).with_data(crate::to_json(&data))
    }

    /// Returns when to ask again, if the server could not answer now.
    pub fn retry_after(&self) -> Option<Duration> {
        if self.code != error_code::INTERNAL_ERROR {
            return None;
        }
        self.data_member("retryAfterMs").map(Duration::from_millis)
    }

    /// Creates an error for a header that is missing or does not match the body.
    pub fn header_mismatch(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(error_code::HEADER_MISMATCH, message)
    }

    /// Creates an error for a request that needs the user to open these URLs first.
    #[expect(clippy::needless_pass_by_value, reason = "the error takes over what was built for it")]
    pub fn url_elicitation_required(elicitations: Vec<ElicitUrlParams>) -> Self {
        let data = RawMap::from([("elicitations", crate::to_json(&elicitations))]);
        Self::new(error_code::URL_ELICITATION_REQUIRED, "URL elicitation required")
            .with_data(crate::to_json(&data))
    }

    /// Returns whether only a modern peer sends this: an error code of 2026-07-28 with its data.
    pub fn is_modern(&self) -> bool {
        match self.code {
            error_code::HEADER_MISMATCH => true,
            error_code::MISSING_CLIENT_CAPABILITY => {
                self.data_member::<ClientCapabilities>("requiredCapabilities").is_some()
            }
            error_code::UNSUPPORTED_PROTOCOL_VERSION => self.supported_versions().is_some(),
            _ => false,
        }
    }

    /// Returns the revisions that the peer supports, if it rejected the revision.
    pub fn supported_versions(&self) -> Option<Vec<String>> {
        if self.code != error_code::UNSUPPORTED_PROTOCOL_VERSION {
            return None;
        }
        self.data_member::<String>("requested")?;
        self.data_member("supported")
    }

    /// Returns whether the error means that a resource does not exist, in any revision.
    pub fn is_resource_not_found(&self) -> bool {
        match self.code {
            error_code::RESOURCE_NOT_FOUND => true,
            error_code::INVALID_PARAMS => self.data_member::<String>("uri").is_some(),
            _ => false,
        }
    }

    /// Returns the URLs that the user has to open, if any.
    pub fn url_elicitations(&self) -> Option<Vec<ElicitUrlParams>> {
        if self.code != error_code::URL_ELICITATION_REQUIRED {
            return None;
        }
        self.data_member("elicitations")
    }

    fn data_member<T: de::DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.data.as_ref()?.decode::<RawMap>().ok()?.decode(key).ok()?
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}

impl Adapt for RpcError {
    fn adapt(&mut self, to: Revision) {
        let modern = to >= Revision::V2026_07_28;
        // Only 2025-11-25 can read what to visit from an error.
        if self.code == error_code::URL_ELICITATION_REQUIRED && to != Revision::V2025_11_25 {
            self.data = None;
        }
        self.code = match self.code {
            error_code::RESOURCE_NOT_FOUND if modern => error_code::INVALID_PARAMS,
            error_code::URL_ELICITATION_REQUIRED if to != Revision::V2025_11_25 => error_code::INTERNAL_ERROR,
            // Older peers could take the codes of 2026-07-28 for the sign of a modern one.
            error_code::HEADER_MISMATCH | error_code::MISSING_CLIENT_CAPABILITY if !modern => {
                error_code::INVALID_REQUEST
            }
            error_code::UNSUPPORTED_PROTOCOL_VERSION if !modern => error_code::INVALID_PARAMS,
            code => code,
        };
    }
}

impl Serialize for RpcError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", &self.code)?;
        map.serialize_entry("message", &self.message)?;
        if let Some(data) = &self.data {
            map.serialize_entry("data", data)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RpcError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ErrorVisitor;

        impl<'de> Visitor<'de> for ErrorVisitor {
            type Value = RpcError;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an error object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RpcError, A::Error> {
                let (mut code, mut message, mut data) = (None, None::<String>, None);
                while let Some(Text(key)) = map.next_key()? {
                    match key.as_ref() {
                        "code" => {
                            once(code.as_ref(), "code")?;
                            code = Some(map.next_value()?);
                        }
                        "message" => {
                            once(message.as_ref(), "message")?;
                            message = Some(map.next_value()?);
                        }
                        "data" => {
                            once(data.as_ref(), "data")?;
                            data = Some(map.next_value()?);
                        }
                        _ => {
                            map.next_value::<de::IgnoredAny>()?;
                        }
                    }
                }
                let message = Cow::Owned(present(message, "message")?);
                Ok(RpcError { code: present(code, "code")?, message, data })
            }
        }

        deserializer.deserialize_map(ErrorVisitor)
    }
}
