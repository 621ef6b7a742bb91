//! Requests and replies down to their bytes.

use bowline_http::{HttpService, Principal};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// After this long, what has not come will not come: a hang is a failure.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// A request under construction. Nothing about it has to be right.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: String,
    target: String,
    version: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// A request with a `Host` that is right.
    pub(crate) fn new(method: &str) -> Self {
        Self {
            method: method.into(),
            target: "/mcp".into(),
            version: "HTTP/1.1".into(),
            headers: vec![("Host".into(), "{address}".into())],
            body: Vec::new(),
        }
    }

    /// A POST of JSON.
    pub(crate) fn post(body: &Value) -> Self {
        Self::post_bytes(body.to_string().as_bytes())
    }

    pub(crate) fn post_bytes(body: &[u8]) -> Self {
        let request = Self::new("POST")
            .set("Content-Type", "application/json")
            .set("Accept", "application/json, text/event-stream");
        Self { body: body.to_vec(), ..request }
    }

    /// `initialize`.
    pub(crate) fn hello(revision: &str) -> Self {
        Self::post(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": revision,
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "c", "version": "1" },
        } }))
    }

    /// A request of 2026-07-28 with all it has to say.
    pub(crate) fn modern(id: &Value, method: &str, mut params: Value) -> Self {
        let name = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str);
        let name = name.map(str::to_owned);
        describe(&mut params);
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let request = Self::post(&body).set("MCP-Protocol-Version", "2026-07-28").set("Mcp-Method", method);
        match name {
            Some(name) => request.set("Mcp-Name", &name),
            None => request,
        }
    }

    /// A modern call of a tool.
    pub(crate) fn call(tool: &str, arguments: Value) -> Self {
        let mut params = json!({ "name": tool });
        params["arguments"] = arguments;
        Self::modern(&json!(1), "tools/call", params)
    }

    /// The same tool in a session.
    pub(crate) fn in_session(session: &str, id: &Value, tool: &str, arguments: Value) -> Self {
        let mut params = json!({ "name": tool, "_meta": { "progressToken": id } });
        params["arguments"] = arguments;
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        Self::post(&call).set("Mcp-Session-Id", session)
    }

    /// The standing stream of a session, or what comes behind an event.
    pub(crate) fn stream(session: &str, after: Option<&str>) -> Self {
        let get = Self::new("GET").set("Accept", "text/event-stream").set("Mcp-Session-Id", session);
        match after {
            Some(after) => get.set("Last-Event-ID", after),
            None => get,
        }
    }

    pub(crate) fn target(mut self, target: &str) -> Self {
        target.clone_into(&mut self.target);
        self
    }

    pub(crate) fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.version);
        self
    }

    /// Adds a header line, whatever there is already.
    pub(crate) fn add(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Has exactly this header line of its name.
    pub(crate) fn set(self, name: &str, value: &str) -> Self {
        self.without(name).add(name, value)
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// The same request with another body.
    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// What goes over the wire. `{address}` in a header stands for the address of the server.
    pub(crate) fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        let framed = |name: &str| self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        let mut head = format!("{} {} {}\r\n", self.method, self.target, self.version);
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        if !framed("content-length") && !framed("transfer-encoding") {
            head.extend(["Content-Length: ", &self.body.len().to_string(), "\r\n"]);
        }
        head.push_str("\r\n");
        [head.replace("{address}", &address.to_string()).into_bytes(), self.body.clone()].concat()
    }

    /// Sends the request without a socket, as a user whom some layer knows.
    pub(crate) async fn send_as(&self, principal: Option<&str>, service: &HttpService) -> Reply {
        let mut request = http::Request::builder().method(&*self.method).uri(&self.target);
        for (name, value) in &self.headers {
            request = request.header(name, value.replace("{address}", "localhost"));
        }
        let mut request = request.body(Full::new(Bytes::from(self.body.clone()))).unwrap();
        if let Some(principal) = principal {
            request.extensions_mut().insert(Principal(principal.into()));
        }
        let (parts, body) = service.respond(request).await.into_parts();
        let headers = parts.headers.iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
        let headers: Vec<_> = headers.collect();
        let is_stream = headers.iter().any(|(_, value)| value == "text/event-stream");
        let body = if is_stream { Vec::new() } else { body.collect().await.unwrap().to_bytes().to_vec() };
        Reply { status: parts.status.as_u16(), headers, body }
    }
}

/// Adds what every request of 2026-07-28 says of itself.
pub(crate) fn describe(params: &mut Value) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    match params.get_mut("_meta") {
        Some(Value::Object(given)) => {
            for (key, value) in meta.as_object().cloned().unwrap_or_default() {
                given.entry(key).or_insert(value);
            }
        }
        _ => params["_meta"] = meta,
    }
}

/// A connection.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    bytes: Vec<u8>,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, bytes: Vec::new() }
    }

    /// Writes bytes; the server may have turned away before it has them all.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        let written = tokio::time::timeout(DEADLINE, self.stream.write_all(bytes)).await;
        drop(written.expect("the server neither reads nor closes"));
    }

    /// Reads more; false at the end.
    async fn fill(&mut self) -> bool {
        self.bytes.reserve(16 * 1024);
        let read = tokio::time::timeout(DEADLINE, self.stream.read_buf(&mut self.bytes)).await;
        // A reset is an end as well.
        read.expect("the server neither answers nor closes").is_ok_and(|length| length > 0)
    }

    /// Reads up to and with `needle`.
    pub(crate) async fn until(&mut self, needle: &str) -> String {
        loop {
            if let Some(at) = find(&self.bytes, needle.as_bytes()) {
                let rest = self.bytes.split_off(at + needle.len());
                let found = std::mem::replace(&mut self.bytes, rest);
                return String::from_utf8(found).unwrap();
            }
            let more = self.fill().await;
            assert!(more, "the end came before {needle:?}: {}", String::from_utf8_lossy(&self.bytes));
        }
    }

    /// Reads the head of a reply.
    pub(crate) async fn head(&mut self) -> Reply {
        let head = self.until("\r\n\r\n").await;
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        let reply = Reply { status, headers: lines.map(header).collect(), body: Vec::new() };
        // No page of another origin is ever told that it may read a reply.
        assert!(!reply.headers.iter().any(|(name, _)| name.starts_with("access-control-")), "{reply:?}");
        reply
    }

    /// Reads a whole reply.
    pub(crate) async fn reply(&mut self) -> Reply {
        let mut reply = self.head().await;
        if let Some(length) = reply.header("content-length") {
            let length: usize = length.parse().unwrap();
            while self.bytes.len() < length && self.fill().await {}
            let rest = self.bytes.split_off(length.min(self.bytes.len()));
            reply.body = std::mem::replace(&mut self.bytes, rest);
        } else if reply.header("transfer-encoding").is_some() {
            loop {
                let size = self.until("\r\n").await;
                let size = usize::from_str_radix(size.trim(), 16).unwrap();
                while self.bytes.len() < size + 2 && self.fill().await {}
                let rest = self.bytes.split_off(size + 2);
                let chunk = std::mem::replace(&mut self.bytes, rest);
                reply.body.extend_from_slice(&chunk[..size]);
                if size == 0 {
                    break;
                }
            }
        } else if reply.status != 204 {
            reply.body = self.end().await;
        }
        reply
    }

    /// Reads to the end of the connection.
    pub(crate) async fn end(&mut self) -> Vec<u8> {
        while self.fill().await {}
        std::mem::take(&mut self.bytes)
    }
}

pub(crate) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The code of the error in it, or 0.
    pub(crate) fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap_or_default()
    }

    /// The messages of a stream that has ended.
    pub(crate) fn messages(&self) -> Vec<Value> {
        let text = String::from_utf8_lossy(&self.body).into_owned();
        text.lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .filter_map(|data| serde_json::from_str(data).ok())
            .collect()
    }
}
