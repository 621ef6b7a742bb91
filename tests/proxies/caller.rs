//! A client of either era that writes its requests by hand.

use crate::{Result, raw::Raw};
use bowline::types::Revision;
use serde_json::{Value, json};

/// A client, with its session if its era has any.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) address: String,
    revision: Revision,
    session: Option<String>,
}

impl Caller {
    /// Opens a session where there are any.
    pub(crate) async fn open(address: &str, revision: Revision) -> Result<Self> {
        let mut caller = Self { address: address.to_owned(), revision, session: None };
        if revision.is_modern() {
            return Ok(caller);
        }
        let client = json!({ "name": "raw", "version": "1" });
        let hello = json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": client });
        let reply = caller.post(json!({ "id": 0, "method": "initialize", "params": hello })).await?;
        caller.session = reply.header("mcp-session-id").map(str::to_owned);
        let told = caller.post(json!({ "method": "notifications/initialized" })).await?;
        expect(told.status, 202)?;
        Ok(caller)
    }

    /// Calls a tool and reads the head of the reply.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Result<Raw> {
        let params = json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": 7 } });
        self.post(json!({ "id": 1, "method": "tools/call", "params": params })).await
    }

    /// Opens the stream on which changes of a resource arrive.
    pub(crate) async fn listen(&self, uri: &str) -> Result<Raw> {
        if self.revision.is_modern() {
            let filter = json!({ "notifications": { "resourceSubscriptions": [uri] } });
            let mut stream =
                self.post(json!({ "id": 2, "method": "subscriptions/listen", "params": filter })).await?;
            stream.event_with("acknowledged").await?;
            return Ok(stream);
        }
        let subscribed =
            self.post(json!({ "id": 2, "method": "resources/subscribe", "params": { "uri": uri } })).await?;
        expect(subscribed.status, 200)?;
        self.get(None).await
    }

    /// Reads the standing stream, or goes on behind an event.
    pub(crate) async fn get(&self, last: Option<&str>) -> Result<Raw> {
        let mut headers = vec![("accept", "text/event-stream")];
        headers.extend(last.map(|last| ("last-event-id", last)));
        self.send("GET", headers, "").await
    }

    /// Ends the session.
    pub(crate) async fn delete(&self) -> Result<Raw> {
        self.send("DELETE", Vec::new(), "").await
    }

    async fn post(&self, mut message: Value) -> Result<Raw> {
        message["jsonrpc"] = json!("2.0");
        let mut headers =
            vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let name = message["params"]["name"].as_str().unwrap_or_default().to_owned();
        if self.revision.is_modern() {
            let meta = &mut message["params"]["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(self.revision.as_str());
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            headers.push(("mcp-method", &method));
            if !name.is_empty() {
                headers.push(("mcp-name", &name));
            }
        }
        self.send("POST", headers, &message.to_string()).await
    }

    async fn send(&self, method: &str, mut headers: Vec<(&str, &str)>, body: &str) -> Result<Raw> {
        headers.push(("mcp-protocol-version", self.revision.as_str()));
        if let Some(session) = &self.session {
            headers.push(("mcp-session-id", session));
        }
        let mut raw = Raw::connect(&self.address).await?;
        raw.send(method, &self.address, &headers, body).await?;
        Ok(raw)
    }
}

/// Fails when a status is not the expected one.
pub(crate) fn expect(status: u16, expected: u16) -> Result<()> {
    if status == expected { Ok(()) } else { Err(format!("expected status {expected}, got {status}").into()) }
}
