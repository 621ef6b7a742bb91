//! A server that is scripted by a test and checks every frame that it receives.

use bowline_client::{Client, ClientBuilder, ServerEnd, memory};
use bowline_types::Revision;
use serde_json::{Value, json};
use std::{collections::HashSet, time::Duration};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

pub(crate) use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

pub(crate) const LEGACY: [Revision; 4] = [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25];

/// Longer than anything a test waits for.
const LONG: Duration = Duration::from_secs(10_000_000);

/// Everything a server can declare.
pub(crate) fn everything() -> Value {
    json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "completions": {},
        "logging": {},
    })
}

pub(crate) struct Peer {
    read: BufReader<DuplexStream>,
    write: DuplexStream,
    revision: Option<Revision>,
    ids: HashSet<String>,
}

impl Peer {
    pub(crate) fn new(end: ServerEnd) -> Self {
        let ServerEnd { read, write } = end;
        Self { read: BufReader::new(read), write, revision: None, ids: HashSet::new() }
    }

    async fn line(&mut self) -> Option<Value> {
        let mut line = String::new();
        // A stopped clock gets there at once when nothing else is left to happen.
        let read = tokio::time::timeout(LONG, self.read.read_line(&mut line)).await;
        read.expect("the client sends another frame").unwrap();
        if line.is_empty() {
            return None;
        }
        let frame: Value = serde_json::from_str(&line).expect("a line is one JSON value");
        self.look_at(&frame);
        Some(frame)
    }

    /// What holds for every frame of a client, whatever it is about.
    fn look_at(&mut self, frame: &Value) {
        assert_eq!(frame["jsonrpc"], "2.0", "{frame}");
        let has = |member: &str| frame.get(member).is_some();
        if !has("method") {
            assert!(self.revision != Some(V2026_07_28), "a modern client sent a response: {frame}");
            assert!(has("result") != has("error"), "{frame}");
            if let Some(error) = frame.get("error") {
                assert!(error["code"].is_i64() && error["message"].is_string(), "{frame}");
            }
            return;
        }
        if !has("id") {
            return;
        }
        assert!(frame["id"].is_i64() || frame["id"].is_string(), "{frame}");
        assert!(self.ids.insert(frame["id"].to_string()), "an id was used twice: {frame}");
        if self.revision == Some(V2026_07_28) {
            let meta = &frame["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{frame}");
            assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object(), "{frame}");
            let info = &meta["io.modelcontextprotocol/clientInfo"];
            assert!(info["name"].is_string() && info["version"].is_string(), "{frame}");
        }
    }

    /// The next frame of the client.
    pub(crate) async fn next(&mut self) -> Value {
        self.line().await.expect("the client sends another frame")
    }

    /// The next frame of the client, which has to be of this method.
    pub(crate) async fn expect(&mut self, method: &str) -> Value {
        let frame = self.next().await;
        assert_eq!(frame["method"], method, "{frame}");
        frame
    }

    /// The client has nothing more to send. Needs a stopped clock, which moves on only when all is done.
    pub(crate) async fn quiet(&mut self) {
        if let Ok(frame) = tokio::time::timeout(Duration::from_millis(1), self.line()).await {
            panic!("expected silence, got {frame:?}");
        }
    }

    /// Everything the client still sends, until it closes its side.
    pub(crate) async fn closing(&mut self) -> Vec<Value> {
        let mut frames = Vec::new();
        while let Some(frame) = self.line().await {
            frames.push(frame);
        }
        frames
    }

    /// The client has closed its side.
    pub(crate) async fn ended(&mut self) {
        let frames = self.closing().await;
        assert!(frames.is_empty(), "expected the end, got {frames:?}");
    }

    pub(crate) async fn text(&mut self, text: &str) {
        self.write.write_all(text.as_bytes()).await.unwrap();
        self.write.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn send(&mut self, frame: Value) {
        self.text(&frame.to_string()).await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    pub(crate) async fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })).await;
    }

    pub(crate) async fn reply(&mut self, request: &Value, result: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    pub(crate) async fn fail(&mut self, request: &Value, code: i64, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.send(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
    }

    /// Answers the opening as a server of this revision. Gives the request that settled it.
    pub(crate) async fn open(&mut self, revision: Revision, capabilities: Value) -> Value {
        let mut frame = self.next().await;
        if revision.is_modern() {
            assert_eq!(frame["method"], "server/discover");
            self.revision = Some(revision);
            self.look_at_again(&frame);
            let result = json!({
                "resultType": "complete", "supportedVersions": [revision], "capabilities": capabilities,
                "ttlMs": 0, "cacheScope": "private",
                "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "peer", "version": "1" } },
            });
            self.reply(&frame, result).await;
            return frame;
        }
        if frame["method"] == "server/discover" {
            self.fail(&frame, -32601, "method not found").await;
            frame = self.next().await;
        }
        assert_eq!(frame["method"], "initialize");
        self.revision = Some(revision);
        let result = json!({
            "protocolVersion": revision, "capabilities": capabilities,
            "serverInfo": { "name": "peer", "version": "1" },
        });
        self.reply(&frame, result).await;
        let initialized = self.expect("notifications/initialized").await;
        assert!(initialized.get("id").is_none());
        frame
    }

    fn look_at_again(&mut self, frame: &Value) {
        self.ids.remove(&frame["id"].to_string());
        self.look_at(frame);
    }

    /// Leaves no doubt that everything sent so far was taken in; legacy eras only.
    pub(crate) async fn settle(&mut self) {
        self.settle_as("settle").await;
    }

    /// As `settle`, under an id of its own.
    pub(crate) async fn settle_as(&mut self, id: &str) {
        self.ask(id, "ping", json!({})).await;
        let pong = self.next().await;
        assert_eq!(pong, json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
    }

    /// Ends the connection.
    pub(crate) fn hang_up(self) {
        drop(self);
    }
}

/// A client and its server, connected under one revision.
pub(crate) async fn connect(
    builder: ClientBuilder,
    revision: Revision,
    capabilities: Value,
) -> (Client, Peer) {
    let (client, peer, _) = connect_seen(builder, revision, capabilities).await;
    (client, peer)
}

/// As `connect`, with the request of the opening that settled the revision.
pub(crate) async fn connect_seen(
    builder: ClientBuilder,
    revision: Revision,
    capabilities: Value,
) -> (Client, Peer, Value) {
    let (end, server) = memory();
    let mut peer = Peer::new(server);
    let (client, frame) = tokio::join!(builder.connect(end), peer.open(revision, capabilities));
    (client.unwrap(), peer, frame)
}

/// Runs a request against what the server does meanwhile.
pub(crate) async fn both<A, B>(request: impl Future<Output = A>, script: impl Future<Output = B>) -> (A, B) {
    tokio::join!(request, script)
}

/// A value as the result of a tool.
pub(crate) fn text_result(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}
