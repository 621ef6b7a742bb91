//! The params of a call.
//!
//! One scan finds the members that the protocol uses and keeps each as a slice of the original text, so a
//! call can be checked, routed and digested without decoding its arguments.

use bowline_json::scan::{MAX_DEPTH, ScanError, Scanner, Span};
use bowline_types::{Id, LoggingLevel, RawJson, Revision, RpcError, meta};
use bytes::Bytes;
use serde::Deserialize;
use std::{borrow::Cow, fmt, sync::Arc};

/// The `params` object of a request. Cheap to clone and to move.
#[derive(Clone)]
pub struct Params(Arc<ParsedParams>);

struct ParsedParams {
    raw: RawJson,
    parts: Parts,
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.raw(), f)
    }
}

/// Compares the text.
impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.raw() == other.raw()
    }
}

/// The positions of the members in the text.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    name: Span,
    uri: Span,
    arguments: Span,
    cursor: Span,
    input_responses: Span,
    request_state: Span,
    task: Span,
    meta: Span,
    progress_token: Span,
    protocol_version: Span,
    client_capabilities: Span,
    client_info: Span,
    log_level: Span,
}

impl Parts {
    fn all(&mut self) -> [&mut Span; 13] {
        [
            &mut self.name,
            &mut self.uri,
            &mut self.arguments,
            &mut self.cursor,
            &mut self.input_responses,
            &mut self.request_state,
            &mut self.task,
            &mut self.meta,
            &mut self.progress_token,
            &mut self.protocol_version,
            &mut self.client_capabilities,
            &mut self.client_info,
            &mut self.log_level,
        ]
    }
}

/// The positions of the members of `params`, found while the frame was scanned.
#[derive(Default)]
pub(crate) struct ParamsScan {
    whole: Span,
    parts: Parts,
    wrong: Option<RpcError>,
}

impl ParamsScan {
    pub(crate) fn is_absent(&self) -> bool {
        self.whole.is_absent()
    }

    /// Scans the value of `params`. Errors other than syntax errors are reported by [`ParamsScan::read`].
    pub(crate) fn scan(&mut self, scanner: &mut Scanner<'_>) -> Result<(), ScanError> {
        if scanner.peek() != b'{' {
            self.whole = scanner.value()?;
            self.wrong = Some(RpcError::invalid_params("`params` must be an object"));
            return Ok(());
        }
        let Self { whole, parts, wrong } = self;
        *whole = scanner.members(|name, scanner| match name {
            b"name" => once(scanner, "name", &mut parts.name, wrong),
            b"arguments" => once(scanner, "arguments", &mut parts.arguments, wrong),
            b"_meta" if parts.meta.is_absent() && scanner.peek() == b'{' => scan_meta(scanner, parts, wrong),
            b"_meta" => once(scanner, "_meta", &mut parts.meta, wrong),
            b"uri" => once(scanner, "uri", &mut parts.uri, wrong),
            b"cursor" => once(scanner, "cursor", &mut parts.cursor, wrong),
            b"inputResponses" => once(scanner, "inputResponses", &mut parts.input_responses, wrong),
            b"requestState" => once(scanner, "requestState", &mut parts.request_state, wrong),
            b"task" => once(scanner, "task", &mut parts.task, wrong),
            _ => scanner.value().map(drop),
        })?;
        for part in parts.all() {
            *part = part.within(*whole);
        }
        Ok(())
    }

    /// Returns the params, if present. Fails with -32602 if they are not an object or contain a member twice.
    pub(crate) fn read(self, frame: &Bytes) -> Result<Option<Params>, RpcError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        Ok(self.whole.raw(frame).map(|raw| Params::of(raw, self.parts)))
    }
}

/// Scans a member, which may occur once.
fn once(
    scanner: &mut Scanner<'_>,
    name: &'static str,
    span: &mut Span,
    wrong: &mut Option<RpcError>,
) -> Result<(), ScanError> {
    if !span.is_absent() {
        wrong.get_or_insert_with(|| RpcError::invalid_params(format!("`{name}` is given twice")));
    }
    *span = scanner.value()?;
    Ok(())
}

/// Scans the value of `_meta`, an object.
fn scan_meta(
    scanner: &mut Scanner<'_>,
    parts: &mut Parts,
    wrong: &mut Option<RpcError>,
) -> Result<(), ScanError> {
    let Parts { meta, progress_token, protocol_version, client_capabilities, client_info, log_level, .. } =
        parts;
    *meta = scanner.members(|name, scanner| {
        let (name, span) = match name {
            b"progressToken" => ("_meta.progressToken", &mut *progress_token),
            _ => match name.strip_prefix(meta::key::PREFIX.as_bytes()) {
                Some(b"protocolVersion") => (meta::key::PROTOCOL_VERSION, &mut *protocol_version),
                Some(b"clientCapabilities") => (meta::key::CLIENT_CAPABILITIES, &mut *client_capabilities),
                Some(b"clientInfo") => (meta::key::CLIENT_INFO, &mut *client_info),
                Some(b"logLevel") => (meta::key::LOG_LEVEL, &mut *log_level),
                _ => return scanner.value().map(drop),
            },
        };
        once(scanner, name, span, wrong)
    })?;
    Ok(())
}

impl Params {
    fn of(raw: RawJson, parts: Parts) -> Self {
        Self(Arc::new(ParsedParams { raw, parts }))
    }

    /// Parses params. Fails with -32602 if `raw` is not an object or contains a member twice.
    pub fn parse(raw: RawJson) -> Result<Self, RpcError> {
        let mut found = ParamsScan::default();
        // One value as it is, but perhaps too deep.
        found
            .scan(&mut Scanner::new(raw.as_str()))
            .map_err(|_| RpcError::invalid_params(format!("JSON nested deeper than {MAX_DEPTH} levels")))?;
        match found.wrong {
            Some(wrong) => Err(wrong),
            None => Ok(Self::of(raw, found.parts)),
        }
    }

    /// Creates empty params.
    pub fn empty() -> Self {
        Self::of(RawJson::empty_object(), Parts::default())
    }

    /// Returns the text of a member, unless it is absent or `null`.
    fn part(&self, span: Span) -> Option<&[u8]> {
        let bytes = span.bytes(self.raw().as_bytes());
        (!bytes.is_empty() && bytes != b"null").then_some(bytes)
    }

    fn text(&self, member: &str, span: Span) -> Result<Cow<'_, str>, RpcError> {
        if self.part(span).is_none() {
            return Err(RpcError::invalid_params(format!("`{member}` is missing")));
        }
        let text = span.text(self.raw().as_bytes());
        text.ok_or_else(|| RpcError::invalid_params(format!("`{member}` must be a string")))
    }

    fn object(&self, member: &str, span: Span) -> Result<Option<RawJson>, RpcError> {
        match self.part(span) {
            None => Ok(None),
            Some([b'{', ..]) => Ok(span.raw(self.raw().bytes())),
            Some(_) => Err(RpcError::invalid_params(format!("`{member}` must be an object"))),
        }
    }

    /// Returns the whole object as received.
    pub fn raw(&self) -> &RawJson {
        &self.0.raw
    }

    /// Converts into the whole object as received.
    pub fn into_raw(self) -> RawJson {
        self.0.raw.clone()
    }

    /// Returns `name`, of a tool or prompt.
    pub fn name(&self) -> Result<Cow<'_, str>, RpcError> {
        self.text("name", self.0.parts.name)
    }

    /// Returns `uri`, of a resource.
    pub fn uri(&self) -> Result<Cow<'_, str>, RpcError> {
        self.text("uri", self.0.parts.uri)
    }

    /// Returns `cursor`, if present. An empty string is a cursor.
    pub fn cursor(&self) -> Result<Option<Cow<'_, str>>, RpcError> {
        self.part(self.0.parts.cursor).map(|_| self.text("cursor", self.0.parts.cursor)).transpose()
    }

    /// Returns `requestState`, if present.
    pub fn request_state(&self) -> Result<Option<Cow<'_, str>>, RpcError> {
        let state = self.0.parts.request_state;
        self.part(state).map(|_| self.text("requestState", state)).transpose()
    }

    /// Returns `arguments`, if present; an object.
    pub fn arguments(&self) -> Result<Option<RawJson>, RpcError> {
        self.object("arguments", self.0.parts.arguments)
    }

    /// Returns `inputResponses`, if present; an object.
    pub fn input_responses(&self) -> Result<Option<RawJson>, RpcError> {
        self.object("inputResponses", self.0.parts.input_responses)
    }

    /// Returns `task`, if present; 2025-11-25 requests tasks with it.
    pub fn task(&self) -> Result<Option<RawJson>, RpcError> {
        self.object("task", self.0.parts.task)
    }

    /// Returns `_meta`, if present; an object.
    pub fn meta(&self) -> Result<Option<RawJson>, RpcError> {
        self.object("_meta", self.0.parts.meta)
    }

    /// Deserializes the whole object.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, RpcError> {
        self.raw().decode().map_err(|error| RpcError::invalid_params(error.to_string()))
    }
}

/// The keys of `_meta` that the protocol defines for requests.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RequestMeta {
    /// The progress token, if the sender wants progress.
    pub progress_token: Option<Id>,
    /// The revision of a self-describing request, or the text if it is not a known revision.
    pub protocol_version: Option<Result<Revision, Box<str>>>,
    /// The capabilities of a self-describing request.
    pub client_capabilities: Option<RawJson>,
    /// Name and version of the client of a self-describing request.
    pub client_info: Option<RawJson>,
    /// The lowest level of log messages for the request.
    pub log_level: Option<LoggingLevel>,
    /// Whether a key marks the request as self-describing.
    pub is_modern: bool,
}

impl RequestMeta {
    /// Reads `_meta`. Fails with -32602 if a value has the wrong type.
    pub fn of(params: &Params) -> Result<Self, RpcError> {
        let ParsedParams { raw, parts } = &*params.0;
        if parts.meta.is_absent() {
            return Ok(Self::default());
        }
        params.meta()?;
        let progress_token = match params.part(parts.progress_token) {
            None => None,
            Some(token) => Some(serde_json::from_slice(token).map_err(|_| {
                RpcError::invalid_params("`_meta.progressToken` must be a string or an integer")
            })?),
        };
        let protocol_version = if parts.protocol_version.is_absent() {
            None
        } else {
            let version = parts.protocol_version.text(raw.as_bytes());
            let version = version.ok_or_else(|| wrong(meta::key::PROTOCOL_VERSION, "a string"))?;
            Some(Revision::parse(&version).ok_or_else(|| version.into()))
        };
        let client_capabilities = parts.client_capabilities.raw(raw.bytes());
        if client_capabilities.as_ref().is_some_and(|capabilities| !capabilities.is_object()) {
            return Err(wrong(meta::key::CLIENT_CAPABILITIES, "an object"));
        }
        let is_modern = protocol_version.is_some() || client_capabilities.is_some();
        let log_level = match params.part(parts.log_level) {
            // Before 2026-07-28 the key means nothing, and may hold anything.
            Some(level) if is_modern => {
                let level = serde_json::from_slice(level);
                Some(level.map_err(|_| wrong(meta::key::LOG_LEVEL, "a log level"))?)
            }
            _ => None,
        };
        // Name and version are for display only, so an invalid value does not fail the request.
        let client_info = parts.client_info.raw(raw.bytes()).filter(RawJson::is_object);
        Ok(Self { progress_token, protocol_version, client_capabilities, client_info, log_level, is_modern })
    }
}

impl RequestMeta {
    /// Returns the revision and capabilities that every self-describing request has to contain; fails with -32602.
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
    fn metadata_determines_the_era() {
        let read = |meta: &str| {
            let params = format!("{{\"_meta\":{meta}}}");
            RequestMeta::of(&Params::parse(RawJson::parse(params).unwrap()).unwrap())
        };
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
