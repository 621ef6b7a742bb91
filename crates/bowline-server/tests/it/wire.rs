//! A raw peer over memory: frames in, frames out.

use bowline_server::{Server, ServerHandle};
use serde_json::{Value, json};
use std::{collections::VecDeque, sync::Arc};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

/// The client's end of a connection, speaking plain JSON.
pub(crate) struct Peer {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    early: VecDeque<Value>,
    next: i64,
    pub(crate) capabilities: Value,
}

impl Peer {
    pub(crate) fn new(server: Server) -> Self {
        Self::of(&server.build().unwrap(), None)
    }

    pub(crate) fn of(server: &ServerHandle, principal: Option<&str>) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (read, write) = tokio::io::split(theirs);
        let (server, principal) = (server.clone(), principal.map(Arc::from));
        tokio::spawn(async move { server.serve_as(principal, read, write).await.unwrap() });
        let (read, write) = tokio::io::split(ours);
        let lines = BufReader::new(read).lines();
        Self { lines, write, early: VecDeque::new(), next: 1, capabilities: json!({ "elicitation": {} }) }
    }

    pub(crate) async fn send(&mut self, frame: Value) {
        self.write.write_all(format!("{frame}\n").as_bytes()).await.unwrap();
    }

    /// Sends frames in one piece.
    pub(crate) async fn send_all(&mut self, frames: &[Value]) {
        let lines: Vec<_> = frames.iter().map(Value::to_string).collect();
        self.write.write_all((lines.join("\n") + "\n").as_bytes()).await.unwrap();
    }

    pub(crate) async fn recv(&mut self) -> Value {
        if let Some(early) = self.early.pop_front() {
            return early;
        }
        serde_json::from_str(&self.lines.next_line().await.unwrap().expect("the server is still there"))
            .unwrap()
    }

    /// Sends a request as it is and gives its id.
    pub(crate) async fn start(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next;
        self.next += 1;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    /// Waits for the response to `id`.
    pub(crate) async fn response(&mut self, id: i64) -> Value {
        let mut others = VecDeque::new();
        loop {
            let frame = self.recv().await;
            if frame["id"] == id && frame.get("method").is_none() {
                self.early.extend(others);
                return frame;
            }
            others.push_back(frame);
        }
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.start(method, params).await;
        self.response(id).await
    }

    pub(crate) async fn initialize(&mut self, revision: &str) -> Value {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": self.capabilities,
            "clientInfo": { "name": "peer", "version": "1" },
        });
        let reply = self.request("initialize", params).await;
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        reply
    }

    /// Calls a tool, as a modern client or in the session.
    pub(crate) async fn call(&mut self, modern: bool, params: Value) -> Value {
        if modern {
            self.modern("tools/call", params).await
        } else {
            self.request("tools/call", params).await
        }
    }

    /// A self-describing request.
    pub(crate) async fn modern(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        self.request(method, params).await
    }
}
