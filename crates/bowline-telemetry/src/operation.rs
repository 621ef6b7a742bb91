//! The attributes of a span, following the OpenTelemetry conventions for MCP.

use bowline_proto::uri::UrlParts;
use bowline_types::{Id, Method, Revision};

/// The maximum length of foreign values.
const LONGEST: usize = 256;

/// The transport of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Standard input and output of a process.
    Pipe,
    /// HTTP.
    Tcp,
    /// A Unix socket.
    Unix,
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Static(&'static str),
    Text(String),
}

impl Value {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Static(text) => text,
            Self::Text(text) => text,
        }
    }
}

/// The attributes of a span.
pub(super) type Attributes = Vec<(&'static str, Value)>;

/// The attributes of a call, for its span.
///
/// ```
/// use bowline_telemetry::{Operation, Transport};
/// use bowline_types::{Method, Revision};
///
/// let operation = Operation::new(Method::CallTool).tool("create_issue").upstream("github").transport(Transport::Pipe);
/// ```
#[derive(Clone, Debug)]
pub struct Operation {
    pub(super) name: String,
    pub(super) attributes: Attributes,
}

impl Operation {
    /// Creates the attributes of a call of a method.
    pub fn new(method: Method) -> Self {
        let name = method.as_str().to_owned();
        Self { name, attributes: vec![("mcp.method.name", Value::Static(method.as_str()))] }
    }

    /// Sets the called tool.
    #[must_use]
    pub fn tool(self, name: &str) -> Self {
        self.target(name)
            .with("gen_ai.operation.name", Value::Static("execute_tool"))
            .text("gen_ai.tool.name", name)
    }

    /// Sets the requested prompt.
    #[must_use]
    pub fn prompt(self, name: &str) -> Self {
        self.target(name).text("gen_ai.prompt.name", name)
    }

    /// Sets the requested resource. The query, the fragment and the user are removed, because they may contain secrets.
    #[must_use]
    pub fn resource(self, uri: &str) -> Self {
        let kept = uri.split(['?', '#']).next().unwrap_or_default();
        let Some(parts) = UrlParts::split(kept) else { return self.text("mcp.resource.uri", kept) };
        let port = parts.port.map(|port| format!(":{port}")).unwrap_or_default();
        self.text("mcp.resource.uri", &format!("{}://{}{port}{}", parts.scheme, parts.host, parts.tail))
    }

    /// Sets the id of the request.
    #[must_use]
    pub fn request(self, id: &Id) -> Self {
        self.text("jsonrpc.request.id", &id.to_string())
    }

    /// Sets a name for the session. Do not use the session id, because traces are widely readable.
    #[must_use]
    pub fn session(self, name: &str) -> Self {
        self.text("mcp.session.id", name)
    }

    /// Sets the negotiated revision.
    #[must_use]
    pub fn revision(self, revision: Revision) -> Self {
        self.with("mcp.protocol.version", Value::Static(revision.as_str()))
    }

    /// Sets the transport.
    #[must_use]
    pub fn transport(self, transport: Transport) -> Self {
        let transport = match transport {
            Transport::Pipe => "pipe",
            Transport::Tcp => "tcp",
            Transport::Unix => "unix",
        };
        self.with("network.transport", Value::Static(transport))
    }

    /// Sets the called upstream.
    #[must_use]
    pub fn upstream(self, name: &str) -> Self {
        self.text("bowline.upstream", name)
    }

    fn target(mut self, name: &str) -> Self {
        self.name.push(' ');
        self.name.push_str(&short(name));
        self
    }

    fn text(self, key: &'static str, value: &str) -> Self {
        self.with(key, Value::Text(short(value)))
    }

    fn with(mut self, key: &'static str, value: Value) -> Self {
        self.attributes.push((key, value));
        self
    }
}

/// Shortens a foreign text.
pub(super) fn short(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_of_a_resource_is_sent() {
        // V-57
        for (uri, reported) in [
            ("https://ada:s3cret@shop.example/a?key=s3cret#s3cret", "https://shop.example/a"),
            ("https://s3cret@shop.example", "https://shop.example"),
            ("https://shop.example/@a", "https://shop.example/@a"),
            ("file:///srv/a@b", "file:///srv/a@b"),
            ("note:a@b", "note:a@b"),
        ] {
            let operation = Operation::new(Method::ReadResource).resource(uri);
            let value = operation.attributes.last().map(|(_, value)| value.as_str().to_owned());
            assert_eq!(value.as_deref(), Some(reported));
        }
    }
}
