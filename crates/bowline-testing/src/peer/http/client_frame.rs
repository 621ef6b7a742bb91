//! A frame of the client, as far as HTTP needs to know it: its kind, and the values for headers.

use super::request::Outgoing;
use base64::{Engine, engine::general_purpose::STANDARD};
use bowline_types::{Revision, meta};
use serde_json::Value;
use std::borrow::Cow;

/// A frame of the client; `None` if it is not JSON.
pub(super) struct ClientFrame(Option<Value>);

impl ClientFrame {
    pub(super) fn read(line: &[u8]) -> Self {
        Self(serde_json::from_slice(line).ok())
    }

    fn get(&self, member: &str) -> Option<&Value> {
        self.0.as_ref()?.get(member)
    }

    fn param(&self, name: &str) -> Option<&Value> {
        self.get("params")?.get(name)
    }

    pub(super) fn method(&self) -> Option<&str> {
        self.get("method")?.as_str()
    }

    /// Returns the id, if it is a request.
    pub(super) fn id(&self) -> Option<&Value> {
        self.get("id").filter(|_| self.get("method").is_some())
    }

    /// Returns whether no response is expected: the frame is a notification or a response.
    pub(super) fn is_final(&self) -> bool {
        let is_notification = self.method().is_some() && self.get("id").is_none();
        is_notification || self.get("result").is_some() || self.get("error").is_some()
    }

    /// Returns the id of the request that this frame cancels.
    pub(super) fn cancels(&self) -> Option<&Value> {
        let is_cancellation = self.method() == Some("notifications/cancelled") && self.get("id").is_none();
        self.param("requestId").filter(|_| is_cancellation)
    }

    /// Returns whether `_meta` names a revision, as in requests of 2026-07-28.
    pub(super) fn describes_itself(&self) -> bool {
        self.version().is_some()
    }

    fn version(&self) -> Option<&Value> {
        self.param("_meta")?.get(meta::key::PROTOCOL_VERSION)
    }

    /// Returns the revision that a handshake requests.
    pub(super) fn opens(&self) -> Option<&str> {
        let is_handshake = self.method() == Some("initialize") && !self.describes_itself();
        self.param("protocolVersion")?.as_str().filter(|_| is_handshake)
    }

    /// Adds the headers that 2026-07-28 requires.
    pub(super) fn mirror(&self, mut request: Outgoing) -> Outgoing {
        let version = self.version().and_then(Value::as_str).unwrap_or(Revision::V2026_07_28.as_str());
        request = request.header("mcp-protocol-version", version);
        let Some(method) = self.method() else { return request };
        request = request.header("mcp-method", method);
        let name = match method {
            "tools/call" | "prompts/get" => self.param("name"),
            "resources/read" => self.param("uri"),
            "tasks/get" | "tasks/update" | "tasks/cancel" => self.param("taskId"),
            _ => None,
        };
        match name.and_then(Value::as_str) {
            Some(name) => request.header("mcp-name", &encoded(name)),
            None => request,
        }
    }
}

/// Encodes a header value: unchanged if possible, or else in Base64.
fn encoded(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.trim() == text;
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    if is_plain && !looks_encoded {
        return text.into();
    }
    format!("=?base64?{}?=", STANDARD.encode(text)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_header_values_are_encoded() {
        for (name, value) in [
            ("get_weather", "get_weather"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encoded(name), value);
        }
    }

    #[test]
    fn only_notifications_and_responses_end_an_exchange() {
        for (line, is_final) in [
            (r#"{"method":"a"}"#, true),
            (r#"{"id":1,"result":{}}"#, true),
            (r#"{"id":1,"error":{}}"#, true),
            (r#"{"id":1,"method":"a"}"#, false),
            (r#"{"id":null,"method":"a"}"#, false),
            (r#"{"id":1}"#, false),
            (r#"[{"method":"a"}]"#, false),
            ("{", false),
        ] {
            assert_eq!(ClientFrame::read(line.as_bytes()).is_final(), is_final, "{line}");
        }
    }
}
