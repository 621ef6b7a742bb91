//! The parameters of a call, taken apart once.
//!
//! One pass finds the members that the protocol itself looks at and leaves each as a slice of the original text, so a
//! call can be checked, routed and digested, and its arguments are decoded by whoever knows their type.

use crate::lenient::{Text, present};
use bowline_types::{Id, LoggingLevel, RawJson, Revision, RpcError, meta};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The `params` object of a request.
#[derive(Clone, Debug)]
pub struct Params {
    raw: RawJson,
    name: Option<RawJson>,
    uri: Option<RawJson>,
    arguments: Option<RawJson>,
    cursor: Option<RawJson>,
    meta: Option<RawJson>,
    input_responses: Option<RawJson>,
    request_state: Option<RawJson>,
    task: Option<RawJson>,
}

#[derive(Deserialize)]
struct Flat<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cursor: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "inputResponses")]
    input_responses: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "requestState")]
    request_state: Option<&'a RawValue>,
    #[serde(borrow, default)]
    task: Option<&'a RawValue>,
}

impl Params {
    /// Takes `raw` apart. Fails with -32602 when it is no object or names a member twice.
    pub fn parse(raw: RawJson) -> Result<Self, RpcError> {
        let flat: Flat<'_> = raw.decode().map_err(|error| RpcError::invalid_params(error.to_string()))?;
        let part = |value: Option<&RawValue>| value.map(|value| RawJson::slice_of(raw.bytes(), value));
        let (name, uri, arguments, cursor) =
            (part(flat.name), part(flat.uri), part(flat.arguments), part(flat.cursor));
        let (meta, input_responses) = (part(flat.meta), part(flat.input_responses));
        let (request_state, task) = (part(flat.request_state), part(flat.task));
        Ok(Self { raw, name, uri, arguments, cursor, meta, input_responses, request_state, task })
    }

    /// No parameters.
    pub fn empty() -> Self {
        let raw = RawJson::empty_object();
        let (name, uri, arguments, cursor) = (None, None, None, None);
        let (meta, input_responses, request_state, task) = (None, None, None, None);
        Self { raw, name, uri, arguments, cursor, meta, input_responses, request_state, task }
    }

    /// The whole object as it came.
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// `name`: of a tool or prompt.
    pub fn name(&self) -> Result<Cow<'_, str>, RpcError> {
        text("name", self.name.as_ref())
    }

    /// `uri`: of a resource.
    pub fn uri(&self) -> Result<Cow<'_, str>, RpcError> {
        text("uri", self.uri.as_ref())
    }

    /// `cursor`: where the next page starts. An empty string is a cursor.
    pub fn cursor(&self) -> Result<Option<Cow<'_, str>>, RpcError> {
        self.cursor.as_ref().map(|cursor| text("cursor", Some(cursor))).transpose()
    }

    /// `requestState`, to be opened by whoever sealed it.
    pub fn request_state(&self) -> Result<Option<Cow<'_, str>>, RpcError> {
        self.request_state.as_ref().map(|state| text("requestState", Some(state))).transpose()
    }

    /// `arguments`, if given; an object.
    pub fn arguments(&self) -> Result<Option<&RawJson>, RpcError> {
        object("arguments", self.arguments.as_ref())
    }

    /// `inputResponses`, if given; an object.
    pub fn input_responses(&self) -> Result<Option<&RawJson>, RpcError> {
        object("inputResponses", self.input_responses.as_ref())
    }

    /// `task`, with which 2025-11-25 asks for a task.
    pub fn task(&self) -> Result<Option<&RawJson>, RpcError> {
        object("task", self.task.as_ref())
    }

    /// `_meta`, if given; an object.
    pub fn meta(&self) -> Result<Option<&RawJson>, RpcError> {
        object("_meta", self.meta.as_ref())
    }

    /// Decodes the whole object.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, RpcError> {
        self.raw.decode().map_err(|error| RpcError::invalid_params(error.to_string()))
    }
}

fn text<'a>(member: &str, value: Option<&'a RawJson>) -> Result<Cow<'a, str>, RpcError> {
    let Some(value) = value else { return Err(RpcError::invalid_params(format!("`{member}` is missing"))) };
    match value.decode() {
        Ok(Text(text)) => Ok(text),
        Err(_) => Err(RpcError::invalid_params(format!("`{member}` must be a string"))),
    }
}

fn object<'a>(member: &str, value: Option<&'a RawJson>) -> Result<Option<&'a RawJson>, RpcError> {
    match value {
        Some(value) if !value.is_object() => {
            Err(RpcError::invalid_params(format!("`{member}` must be an object")))
        }
        value => Ok(value),
    }
}

/// What `_meta` of a request says to the protocol.
#[derive(Clone, Debug, Default)]
pub struct RequestMeta {
    /// Asks for progress under this token.
    pub progress_token: Option<Id>,
    /// The revision of a self-describing request, or the text that names none this library knows.
    pub protocol_version: Option<Result<Revision, Box<str>>>,
    /// The capabilities of a self-describing request.
    pub client_capabilities: Option<RawJson>,
    /// Who sends a self-describing request.
    pub client_info: Option<RawJson>,
    /// The lowest level of log messages wanted while the request runs.
    pub log_level: Option<LoggingLevel>,
    /// Whether any key marks the request as self-describing.
    pub is_modern: bool,
}

#[derive(Deserialize)]
struct FlatMeta<'a> {
    #[serde(borrow, default, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        rename = "io.modelcontextprotocol/protocolVersion",
        deserialize_with = "present"
    )]
    protocol_version: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        rename = "io.modelcontextprotocol/clientCapabilities",
        deserialize_with = "present"
    )]
    client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo")]
    client_info: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<&'a RawValue>,
}

impl RequestMeta {
    /// Reads `_meta`. A token of the wrong type is -32602; so is a version that is no string.
    pub fn parse(raw: &RawJson) -> Result<Self, RpcError> {
        let flat: FlatMeta<'_> =
            raw.decode().map_err(|error| RpcError::invalid_params(format!("`_meta`: {error}")))?;
        let progress_token = match flat.progress_token {
            None => None,
            Some(token) => Some(serde_json::from_str(token.get()).map_err(|_| {
                RpcError::invalid_params("`_meta.progressToken` must be a string or an integer")
            })?),
        };
        let protocol_version = match flat.protocol_version {
            None => None,
            Some(version) => {
                let Text(version) = serde_json::from_str(version.get())
                    .map_err(|_| wrong(meta::key::PROTOCOL_VERSION, "a string"))?;
                Some(Revision::parse(&version).ok_or_else(|| version.into()))
            }
        };
        let client_capabilities = match flat.client_capabilities {
            None => None,
            Some(value) if value.get().starts_with('{') => Some(RawJson::slice_of(raw.bytes(), value)),
            Some(_) => return Err(wrong(meta::key::CLIENT_CAPABILITIES, "an object")),
        };
        let is_modern = protocol_version.is_some() || client_capabilities.is_some();
        let log_level = match flat.log_level {
            None => None,
            // Before 2026-07-28 the key means nothing, and may hold anything.
            Some(_) if !is_modern => None,
            Some(level) => Some(
                serde_json::from_str(level.get()).map_err(|_| wrong(meta::key::LOG_LEVEL, "a log level"))?,
            ),
        };
        // Who sends is told for display only, so a value of another shape is not worth failing the request for.
        let client_info =
            flat.client_info.map(|info| RawJson::slice_of(raw.bytes(), info)).filter(RawJson::is_object);
        Ok(Self { progress_token, protocol_version, client_capabilities, client_info, log_level, is_modern })
    }
}

impl RequestMeta {
    /// What every self-describing request has to say: its revision and the client's capabilities.
    pub fn require(&self) -> Result<(&Result<Revision, Box<str>>, &RawJson), RpcError> {
        let missing = |key: &str| RpcError::invalid_params(format!("`_meta[\"{key}\"]` is missing"));
        let version = self.protocol_version.as_ref().ok_or_else(|| missing(meta::key::PROTOCOL_VERSION))?;
        let capabilities =
            self.client_capabilities.as_ref().ok_or_else(|| missing(meta::key::CLIENT_CAPABILITIES))?;
        Ok((version, capabilities))
    }
}

fn wrong(key: &str, expected: &str) -> RpcError {
    RpcError::invalid_params(format!("`_meta[\"{key}\"]` must be {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &'static str) -> Params {
        Params::parse(RawJson::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn members_are_slices_of_the_original() {
        let params = parse(r#" {"name":"a\u0062", "arguments" : {"x":1}, "cursor":"" } "#);
        assert_eq!(params.name().unwrap(), "ab");
        assert_eq!(params.arguments().unwrap().unwrap().as_str(), r#"{"x":1}"#);
        assert_eq!(params.cursor().unwrap().unwrap(), "");
        assert_eq!(params.uri().unwrap_err().message, "`uri` is missing");
    }

    #[test]
    fn wrong_types_are_invalid_params() {
        let params = parse(r#"{"name":7,"arguments":[1],"_meta":"x"}"#);
        assert_eq!(params.name().unwrap_err().message, "`name` must be a string");
        assert_eq!(params.arguments().unwrap_err().message, "`arguments` must be an object");
        assert_eq!(params.meta().unwrap_err().message, "`_meta` must be an object");
    }

    #[test]
    fn metadata_tells_the_era() {
        let read = |text: &'static str| RequestMeta::parse(&RawJson::parse(text).unwrap());
        assert!(!read(r#"{"progressToken":"a"}"#).unwrap().is_modern);
        assert!(read(r#"{"io.modelcontextprotocol/protocolVersion":"1"}"#).unwrap().is_modern);
        assert!(read(r#"{"io.modelcontextprotocol/protocolVersion":1}"#).is_err());
        assert!(read(r#"{"io.modelcontextprotocol/clientCapabilities":null}"#).is_err());
        assert!(read(r#"{"progressToken":1.5}"#).is_err());
        assert!(read(r#"{"io.modelcontextprotocol/logLevel":7}"#).is_ok());
        let modern =
            r#"{"io.modelcontextprotocol/protocolVersion":"1","io.modelcontextprotocol/logLevel":7}"#;
        assert!(read(modern).is_err());
    }
}
