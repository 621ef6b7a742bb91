//! A server of one revision, written from the specification: one tool for each thing servers ask and tell.

use bowline_client::{BoxFuture, Connect, Inbox, Result, Stream, Transport};
use bowline_testing::Peer;
use bowline_types::Revision;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use tokio::sync::Notify;

/// The server, as often as it is connected to.
#[derive(Clone, Debug)]
pub(super) struct Scripted {
    revision: Revision,
    pub(super) seen: Arc<Seen>,
}

/// What the server has seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) called: Notify,
    pub(super) cancelled: Notify,
    pub(super) subscribed: Notify,
    pub(super) gone: AtomicBool,
    pub(super) connections: AtomicUsize,
}

impl Scripted {
    pub(super) fn new(revision: Revision) -> Self {
        Self { revision, seen: Arc::default() }
    }
}

impl Connect for Scripted {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(ours);
        let peer = Peer::over(read, write);
        self.seen.connections.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(serve(self.revision, peer, Arc::clone(&self.seen)));
        let (read, write) = tokio::io::split(theirs);
        Box::pin(async move { Stream::new(read, write).connect(inbox).await })
    }
}

async fn serve(revision: Revision, mut peer: Peer, seen: Arc<Seen>) {
    let mut listening = None;
    let mut subscribed = false;
    while let Ok(frame) = peer.recv().await {
        let modern = revision.is_modern();
        let result = match frame["method"].as_str().unwrap_or_default() {
            "initialize" if !modern => json!({
                "protocolVersion": revision.as_str(),
                "capabilities": capabilities(),
                "serverInfo": { "name": "far", "version": "1" },
            }),
            "server/discover" if modern => json!({
                "resultType": "complete",
                "supportedVersions": [revision.as_str()],
                "capabilities": capabilities(),
                "ttlMs": 0,
                "cacheScope": "private",
            }),
            "tools/list" => {
                complete(revision, json!({ "tools": tools(), "ttlMs": 60000, "cacheScope": "private" }))
            }
            "prompts/list" => complete(revision, json!({ "prompts": [] })),
            "resources/list" => {
                complete(revision, json!({ "resources": [{ "uri": "note:///a", "name": "a" }] }))
            }
            "resources/templates/list" => complete(revision, json!({ "resourceTemplates": [] })),
            "logging/setLevel" | "ping" | "resources/unsubscribe" if !modern => json!({}),
            "resources/subscribe" if !modern => {
                subscribed = true;
                json!({})
            }
            "subscriptions/listen" if modern => {
                let id = frame["id"].clone();
                let wanted = frame["params"]["notifications"].clone();
                let acknowledged = json!({
                    "_meta": { "io.modelcontextprotocol/subscriptionId": id },
                    "notifications": wanted,
                });
                let _ = peer.notify("notifications/subscriptions/acknowledged", acknowledged).await;
                if wanted["resourceSubscriptions"].as_array().is_some_and(|uris| !uris.is_empty()) {
                    listening = Some(id.clone());
                    let params = json!({ "uri": "note:///a", "_meta": { "io.modelcontextprotocol/subscriptionId": id } });
                    seen.subscribed.notify_one();
                    let _ = peer.notify("notifications/resources/updated", params).await;
                }
                continue;
            }
            "tools/call" => {
                seen.called.notify_one();
                match call(revision, &mut peer, &frame, &seen).await {
                    Some(result) => result,
                    None => continue,
                }
            }
            "notifications/cancelled" => {
                seen.cancelled.notify_one();
                continue;
            }
            _ if frame.get("id").is_some() && frame.get("method").is_some() => {
                let error = json!({ "code": -32601, "message": "method not found" });
                let _ = peer.send(json!({ "jsonrpc": "2.0", "id": frame["id"], "error": error })).await;
                continue;
            }
            _ => continue,
        };
        let _ = peer.reply(&frame, result).await;
        if std::mem::take(&mut subscribed) {
            seen.subscribed.notify_one();
            let _ = peer.notify("notifications/resources/updated", json!({ "uri": "note:///a" })).await;
        }
    }
    drop(listening);
    seen.gone.store(true, Ordering::Relaxed);
}

fn capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "resources": { "subscribe": true, "listChanged": true },
        "logging": {},
    })
}

fn tools() -> Value {
    let tool = |name: &str| {
        json!({
            "name": name,
            "inputSchema": { "type": "object" },
            "vendorExtra": { "kept": [1, 2] },
        })
    };
    ["elicit", "visit", "sample", "roots", "progress", "hang", "log"].map(tool).into()
}

fn complete(revision: Revision, mut result: Value) -> Value {
    if revision.is_modern() {
        result["resultType"] = "complete".into();
    } else if let Some(members) = result.as_object_mut() {
        members.remove("ttlMs");
        members.remove("cacheScope");
    }
    result
}

fn text(revision: Revision, text: impl Into<String>) -> Value {
    complete(revision, json!({ "content": [{ "type": "text", "text": text.into() }] }))
}

/// What a tool answers; nothing when its call was cancelled.
async fn call(revision: Revision, peer: &mut Peer, frame: &Value, seen: &Seen) -> Option<Value> {
    let params = &frame["params"];
    let name = params["name"].as_str().unwrap_or_default();
    let (method, asked) = match name {
        "elicit" => {
            let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
            let mut asked = json!({ "message": "Who are you?", "requestedSchema": schema });
            if revision >= Revision::V2025_11_25 {
                asked["mode"] = "form".into();
            }
            ("elicitation/create", asked)
        }
        "visit" => {
            let mut asked =
                json!({ "mode": "url", "message": "Sign in", "url": "https://example.com/login" });
            if !revision.is_modern() {
                asked["elicitationId"] = "e1".into();
            }
            ("elicitation/create", asked)
        }
        "sample" => {
            let content = json!({ "type": "text", "text": "Say hello" });
            let messages = json!([{ "role": "user", "content": content }]);
            ("sampling/createMessage", json!({ "messages": messages, "maxTokens": 10 }))
        }
        "roots" => ("roots/list", json!({})),
        "progress" => {
            let token = params["_meta"]["progressToken"].clone();
            for progress in 1..=2 {
                let told = json!({ "progressToken": token, "progress": progress, "total": 2 });
                let _ = peer.notify("notifications/progress", told).await;
            }
            return Some(text(revision, "done"));
        }
        "log" => {
            let _ =
                peer.notify("notifications/message", json!({ "level": "error", "data": "it works" })).await;
            return Some(text(revision, "done"));
        }
        "hang" => {
            let _ = peer.recv_method("notifications/cancelled").await;
            seen.cancelled.notify_one();
            return None;
        }
        other => return Some(text(revision, format!("no tool {other}"))),
    };
    let answer = if revision.is_modern() {
        let Some(answer) = params["inputResponses"].get("question").cloned() else {
            let mut request = json!({ "method": method });
            if method != "roots/list" {
                request["params"] = asked;
            }
            return Some(json!({
                "resultType": "input_required",
                "inputRequests": { "question": request },
                "requestState": format!("state of {name}"),
            }));
        };
        assert_eq!(params["requestState"], format!("state of {name}"));
        Ok(answer)
    } else {
        ask(peer, method, asked).await?
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Some(text(revision, format!("error {}", error["code"]))),
    };
    let said = match name {
        "elicit" if answer["content"].is_null() => answer["action"].as_str().unwrap_or_default().to_owned(),
        "elicit" => format!("{} {}", answer["action"].as_str().unwrap_or_default(), answer["content"]),
        "visit" => answer["action"].as_str().unwrap_or_default().to_owned(),
        "sample" => answer["content"]["text"].as_str().unwrap_or_default().to_owned(),
        _ => answer["roots"][0]["uri"].as_str().unwrap_or_default().to_owned(),
    };
    Some(text(revision, said))
}

/// Sends a request to the client and waits for its answer.
async fn ask(peer: &mut Peer, method: &str, params: Value) -> Option<std::result::Result<Value, Value>> {
    let request = peer.start(method, params).await.ok()?;
    let answer = peer.response(&request).await.ok()?;
    Some(match answer.get("error") {
        Some(error) => Err(error.clone()),
        None => Ok(answer["result"].clone()),
    })
}
