//! The attributes of a span, following the OpenTelemetry conventions for MCP.

use bowline_proto::uri::UrlParts;
use bowline_types::{Id, Method, Revision};

/// The most characters that a value from elsewhere may have.
const LONGEST: usize = 256;

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// By the standard streams of a process.
    Pipe,
    /// By HTTP.
    Tcp,
    /// By a socket of the machine.
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

/// A call, as a span describes it.
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
    /// A call of a method.
    pub fn new(method: Method) -> Self {
        let name = method.as_str().to_owned();
        Self { name, attributes: vec![("mcp.method.name", Value::Static(method.as_str()))] }
    }

    /// The tool that is called.
    pub fn tool(self, name: &str) -> Self {
        self.target(name)
            .with("gen_ai.operation.name", Value::Static("execute_tool"))
            .text("gen_ai.tool.name", name)
    }

    /// The prompt that is asked for.
    pub fn prompt(self, name: &str) -> Self {
        self.target(name).text("gen_ai.prompt.name", name)
    }

    /// The resource that is asked for. What follows a `?` or `#` is left out, and so is a user with a password: keys hide
    /// there.
    pub fn resource(self, uri: &str) -> Self {
        let kept = uri.split(['?', '#']).next().unwrap_or_default();
        let Some(parts) = UrlParts::split(kept) else { return self.text("mcp.resource.uri", kept) };
        let port = parts.port.map(|port| format!(":{port}")).unwrap_or_default();
        self.text("mcp.resource.uri", &format!("{}://{}{port}{}", parts.scheme, parts.host, parts.tail))
    }

    /// The id of the request.
    pub fn request(self, id: &Id) -> Self {
        self.text("jsonrpc.request.id", &id.to_string())
    }

    /// A name for the session. It must not be the id that opens the session: traces are read by many.
    pub fn session(self, name: &str) -> Self {
        self.text("mcp.session.id", name)
    }

    /// The revision that both sides speak.
    pub fn revision(self, revision: Revision) -> Self {
        self.with("mcp.protocol.version", Value::Static(revision.as_str()))
    }

    /// How the messages travel.
    pub fn transport(self, transport: Transport) -> Self {
        let transport = match transport {
            Transport::Pipe => "pipe",
            Transport::Tcp => "tcp",
            Transport::Unix => "unix",
        };
        self.with("network.transport", Value::Static(transport))
    }

    /// The upstream that is called.
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

/// The beginning of a text that may have any length.
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
