//! A server that is scripted by a test, down to the bytes.

use bowline_client::{Client, ClientBuilder};
use bowline_http::{HttpTarget, http};
use serde_json::{Value, json};
use std::{collections::VecDeque, net::SocketAddr};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinHandle,
};

/// A server whose replies are written by hand.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    asked: mpsc::UnboundedReceiver<Asked>,
    /// What came while something else was waited for.
    early: VecDeque<Asked>,
    accepting: JoinHandle<()>,
}

/// One request, and the connection to reply on.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Value,
    pub(crate) stream: TcpStream,
}

impl Peer {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, asked) = mpsc::unbounded_channel();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let sender = sender.clone();
                tokio::spawn(async move {
                    if let Some(request) = Asked::read(stream).await {
                        drop(sender.send(request));
                    }
                });
            }
        });
        Self { address, asked, early: VecDeque::new(), accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn target(&self) -> HttpTarget {
        http(self.url())
    }

    /// The next request, whichever it is.
    pub(crate) async fn next(&mut self) -> Asked {
        match self.early.pop_front() {
            Some(asked) => asked,
            None => self.asked.recv().await.expect("the peer accepts for as long as it is there"),
        }
    }

    /// The next request of this kind; others have to wait.
    async fn find(&mut self, fits: impl Fn(&Asked) -> bool) -> Asked {
        if let Some(index) = self.early.iter().position(&fits) {
            return self.early.remove(index).unwrap();
        }
        loop {
            let asked = self.asked.recv().await.expect("the peer accepts for as long as it is there");
            if fits(&asked) {
                return asked;
            }
            self.early.push_back(asked);
        }
    }

    /// The next message of this method.
    pub(crate) async fn post(&mut self, method: &str) -> Asked {
        self.find(|asked| asked.method == "POST" && asked.body["method"] == method).await
    }

    /// The next response of the client.
    pub(crate) async fn response(&mut self) -> Asked {
        self.find(|asked| asked.method == "POST" && asked.body.get("method").is_none()).await
    }

    /// The next request with this verb.
    pub(crate) async fn verb(&mut self, verb: &str) -> Asked {
        self.find(|asked| asked.method == verb).await
    }

    /// What came and was not looked at.
    pub(crate) fn unseen(&mut self) -> Vec<String> {
        while let Ok(asked) = self.asked.try_recv() {
            self.early.push_back(asked);
        }
        self.early.iter().map(Asked::kind).collect()
    }

    /// Answers the opening as a modern server.
    pub(crate) async fn open_modern(&mut self, capabilities: Value) {
        let discover = self.post("server/discover").await;
        discover.result(&discovery(&capabilities)).await;
    }

    /// Answers the opening as a server with sessions. Gives what came of `initialize`, `notifications/initialized` and
    /// the GET stream, which is open.
    pub(crate) async fn open_legacy(&mut self, revision: &str, session: &str) -> (Asked, Asked, Events) {
        let mut opening = self.next().await;
        if opening.body["method"] == "server/discover" {
            opening.status(400, "text/plain", "what?").await;
            opening = self.post("initialize").await;
        }
        let result = greeting(revision);
        let (initialize, body) = (opening.seen(), opening.response_to(&result));
        opening.reply(200, &[("Content-Type", "application/json"), ("Mcp-Session-Id", session)], &body).await;
        let initialized = self.post("notifications/initialized").await;
        let seen = initialized.seen();
        initialized.accepted().await;
        let get_stream = self.verb("GET").await.events(&[]).await;
        (initialize, seen, get_stream)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

pub(crate) fn discovery(capabilities: &Value) -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
        "ttlMs": 0, "cacheScope": "private",
    })
}

pub(crate) fn greeting(revision: &str) -> Value {
    let capabilities = json!({ "tools": {}, "resources": {}, "prompts": {} });
    json!({
        "protocolVersion": revision, "capabilities": capabilities,
        "serverInfo": { "name": "peer", "version": "1" },
    })
}

pub(crate) fn text(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}

impl Asked {
    async fn read(mut stream: TcpStream) -> Option<Self> {
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        let head = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            let length = stream.read(&mut buffer).await.ok().filter(|length| *length > 0)?;
            bytes.extend_from_slice(&buffer[..length]);
        };
        let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
        let mut lines = text.split("\r\n");
        let mut first = lines.next().unwrap().split(' ');
        let (method, path) = (first.next().unwrap().to_owned(), first.next().unwrap().to_owned());
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
        while bytes.len() < head + 4 + length {
            let read = stream.read(&mut buffer).await.ok().filter(|length| *length > 0)?;
            bytes.extend_from_slice(&buffer[..read]);
        }
        let body = &bytes[head + 4..];
        let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(body).unwrap() };
        Some(Self { method, path, headers, body, stream })
    }

    /// What was asked, apart from its connection, which is given to a socket that leads nowhere.
    fn seen(&self) -> Self {
        let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(nowhere.local_addr().unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        Self {
            method: self.method.clone(),
            path: self.path.clone(),
            headers: self.headers.clone(),
            body: self.body.clone(),
            stream: TcpStream::from_std(stream).unwrap(),
        }
    }

    /// The verb, and the method of the message.
    pub(crate) fn kind(&self) -> String {
        match self.body["method"].as_str() {
            Some(method) => format!("{} {method}", self.method),
            None => self.method.clone(),
        }
    }

    /// The value of a header, which is there at most once.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(known, _)| known == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "`{name}` is there twice");
        value
    }

    /// The headers that repeat arguments.
    pub(crate) fn mirrored(&self) -> Vec<(&str, &str)> {
        let all = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut found: Vec<_> = all.filter(|(name, _)| name.starts_with("mcp-param-")).collect();
        found.sort_unstable();
        found
    }

    pub(crate) fn response_to(&self, result: &Value) -> String {
        json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result }).to_string()
    }

    /// Replies in one piece, and closes the connection.
    pub(crate) async fn reply(mut self, status: u16, headers: &[(&str, &str)], body: &str) {
        let mut reply =
            format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            reply.extend([name, ": ", value, "\r\n"]);
        }
        reply.push_str("\r\n");
        reply.push_str(body);
        self.raw(reply.as_bytes()).await;
    }

    pub(crate) async fn status(self, status: u16, kind: &str, body: &str) {
        self.reply(status, &[("Content-Type", kind)], body).await;
    }

    /// Answers with a result, as JSON.
    pub(crate) async fn result(self, result: &Value) {
        let body = self.response_to(result);
        self.status(200, "application/json", &body).await;
    }

    /// Answers with an error, as JSON.
    pub(crate) async fn error(self, status: u16, error: Value) {
        let body = json!({ "jsonrpc": "2.0", "id": self.body["id"], "error": error }).to_string();
        self.status(status, "application/json", &body).await;
    }

    pub(crate) async fn accepted(self) {
        self.reply(202, &[], "").await;
    }

    /// Writes bytes, whatever they are, and closes the connection. The client may be gone by then.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        drop(self.stream.write_all(bytes).await);
        drop(self.stream.shutdown().await);
    }

    /// Begins a stream of events.
    pub(crate) async fn events(mut self, headers: &[(&str, &str)]) -> Events {
        let mut head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n".to_owned();
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.push_str("\r\n");
        self.stream.write_all(head.as_bytes()).await.unwrap();
        Events { asked: self }
    }
}

/// A stream of events under way.
pub(crate) struct Events {
    pub(crate) asked: Asked,
}

impl Events {
    /// Writes a part of the stream as it is.
    pub(crate) async fn write(&mut self, text: &str) {
        self.asked.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Writes a message as an event.
    pub(crate) async fn message(&mut self, message: &Value) {
        self.write(&format!("event: message\ndata: {message}\n\n")).await;
    }

    /// Writes the response as an event, and ends the stream.
    pub(crate) async fn result(mut self, result: &Value) {
        let response = self.asked.response_to(result);
        self.write(&format!("data: {response}\n\n")).await;
    }

    /// Completes when the client has closed the stream.
    pub(crate) async fn closed(mut self) {
        let mut rest = Vec::new();
        // A reset says the same.
        drop(self.asked.stream.read_to_end(&mut rest).await);
        assert!(rest.is_empty(), "nothing follows a request: {rest:?}");
    }
}

/// A client and a modern server.
pub(crate) async fn modern(builder: ClientBuilder, capabilities: Value) -> (Client, Peer) {
    let mut peer = Peer::new().await;
    let target = peer.target();
    let (client, ()) = tokio::join!(builder.connect(target), peer.open_modern(capabilities));
    (client.unwrap(), peer)
}

/// A client and a server with sessions, and its GET stream.
pub(crate) async fn legacy(builder: ClientBuilder, revision: &str) -> (Client, Peer, Events) {
    let mut peer = Peer::new().await;
    let target = peer.target();
    let (client, (_, _, get_stream)) =
        tokio::join!(builder.connect(target), peer.open_legacy(revision, "s-1"));
    (client.unwrap(), peer, get_stream)
}
