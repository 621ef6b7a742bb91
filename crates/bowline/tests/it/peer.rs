//! A client of plain frames, for looking at a server from outside.

use bowline::prelude::*;
use expect_test::Expect;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    task::JoinHandle,
};

/// A client that has said hello.
pub(crate) struct Peer {
    write: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    served: JoinHandle<Result<(), ServeError>>,
    id: u64,
    notifications: Vec<String>,
}

impl Peer {
    /// Connects to a server.
    pub(crate) async fn of(server: Server) -> Self {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(far);
        let served = tokio::spawn(server.serve(read, write));
        let (read, write) = tokio::io::split(near);
        let mut peer =
            Self { write, lines: BufReader::new(read).lines(), served, id: 0, notifications: Vec::new() };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "peer", "version": "1" }
        });
        peer.request("initialize", &hello).await;
        peer.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        peer
    }

    async fn send(&mut self, message: &Value) {
        let frame = format!("{message}\n");
        self.write.write_all(frame.as_bytes()).await.expect("the server reads");
    }

    /// Sends a request and gives the result, or else the error.
    pub(crate) async fn request(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        let mut reply = self.next().await;
        while reply.get("method").is_some() {
            self.notifications.push(reply["method"].as_str().unwrap_or_default().to_owned());
            reply = self.next().await;
        }
        assert_eq!(reply["id"], id, "{reply}");
        match reply.get_mut("result") {
            Some(result) => result.take(),
            None => reply["error"].take(),
        }
    }

    async fn next(&mut self) -> Value {
        let line = self.lines.next_line().await.expect("the server writes").expect("the server stays");
        serde_json::from_str(&line).expect("the server writes JSON")
    }

    /// Waits for a notification, and returns how many of its kind have come since the last time.
    pub(crate) async fn notified(&mut self, method: &str) -> usize {
        while !self.notifications.iter().any(|known| known == method) {
            let message = self.next().await;
            self.notifications.push(message["method"].as_str().unwrap_or_default().to_owned());
        }
        self.notifications.extract_if(.., |known| known == method).count()
    }

    /// Calls a tool and gives its text.
    pub(crate) async fn call(&mut self, name: &str, arguments: Value) -> String {
        let result = self.request("tools/call", &json!({ "name": name, "arguments": arguments })).await;
        result["content"][0]["text"].as_str().map_or_else(|| result.to_string(), str::to_owned)
    }

    /// Closes the connection and waits for the server to end.
    pub(crate) async fn close(self) {
        drop((self.write, self.lines));
        self.served.await.expect("the server does not panic").expect("the server ends well");
    }
}

/// Holds the answer to one request against what is expected.
pub(crate) async fn check(server: Server, method: &str, params: Value, expected: Expect) {
    let mut peer = Peer::of(server).await;
    let result = peer.request(method, &params).await;
    expected.assert_eq(&serde_json::to_string_pretty(&result).expect("values are JSON"));
    peer.close().await;
}

/// Holds the list of tools against what is expected.
pub(crate) async fn check_tools(server: Server, expected: Expect) {
    check(server, "tools/list", json!({}), expected).await;
}
