//! A client of one revision, written from the specification, that can do all its revision has.

use super::{Feature, server::Scripted};
use bowline_testing::Peer;
use bowline_types::Revision;
use serde_json::{Value, json};
use std::time::Duration;

/// What came of trying a feature.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    /// The server's revision does not have it.
    NotInServer,
    /// The tool answered.
    Text(String),
    /// Progress was reported.
    Progress(Vec<f64>),
    /// The server heard that the call was given up.
    Cancelled,
    /// A log message came.
    Log(String),
    /// A change of a resource was reported.
    Updated(String),
    /// Something else.
    Wrong(String),
}

pub(super) struct Caller {
    peer: Peer,
    revision: Revision,
}

impl Caller {
    pub(super) async fn new(peer: Peer, revision: Revision) -> Self {
        let mut capabilities = json!({ "sampling": {}, "roots": {} });
        if revision >= Revision::V2025_06_18 {
            capabilities["elicitation"] = json!({});
        }
        if revision >= Revision::V2025_11_25 {
            capabilities["elicitation"] = json!({ "form": {}, "url": {} });
        }
        let mut peer = peer.capabilities(capabilities).deadline(Duration::from_secs(10));
        if !revision.is_modern() {
            peer.initialize(revision).await.expect("the host takes the handshake");
        }
        Self { peer, revision }
    }

    pub(super) async fn try_feature(&mut self, feature: Feature, far: &Scripted) -> Said {
        let tried = match feature {
            Feature::Elicitation => self.call("far__elicit", json!({})).await,
            Feature::Url => self.call("far__visit", json!({})).await,
            Feature::Sampling => self.call("far__sample", json!({})).await,
            Feature::Roots => self.call("far__roots", json!({})).await,
            Feature::Progress => self.progress().await,
            Feature::Cancel => self.cancel(far).await,
            Feature::Log => self.log().await,
            Feature::Subscribe => self.subscribe(far).await,
        };
        tried.unwrap_or_else(Said::Wrong)
    }

    async fn start(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let params = if self.revision.is_modern() { self.described(params) } else { params };
        self.peer.start(method, params).await.map_err(|error| error.to_string())
    }

    fn described(&self, mut params: Value) -> Value {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = self.revision.as_str().into();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({ "sampling": {}, "roots": {}, "elicitation": { "form": {}, "url": {} } });
        params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "near", "version": "1" });
        params
    }

    /// Calls a tool and answers all it asks.
    async fn call(&mut self, name: &str, more: Value) -> Result<Said, String> {
        let mut params = params(name, more);
        for _ in 0..5 {
            let id = self.start("tools/call", params.clone()).await?;
            let result = self.settle(&id).await?;
            if result["resultType"] != "input_required" {
                let text = result["content"][0]["text"].as_str();
                return Ok(Said::Text(text.map_or_else(|| result.to_string(), str::to_owned)));
            }
            let requests = result["inputRequests"].as_object().cloned().unwrap_or_default();
            let mut responses = json!({});
            for (key, request) in requests {
                responses[key] = answer(request["method"].as_str().unwrap_or_default(), &request["params"]);
            }
            params["inputResponses"] = responses;
            params["requestState"] = result["requestState"].clone();
        }
        Err("it asks for ever".into())
    }

    /// Waits for a response, and answers requests of the server meanwhile.
    async fn settle(&mut self, id: &Value) -> Result<Value, String> {
        loop {
            let frame = self.peer.recv().await.map_err(|error| error.to_string())?;
            match frame["method"].as_str() {
                None if frame["id"] == *id => {
                    return match frame.get("error") {
                        Some(error) => Err(error.to_string()),
                        None => Ok(frame["result"].clone()),
                    };
                }
                Some(method) if frame.get("id").is_some() => {
                    let answer = answer(method, &frame["params"]);
                    self.peer.reply(&frame, answer).await.map_err(|error| error.to_string())?;
                }
                _ => {}
            }
        }
    }

    async fn progress(&mut self) -> Result<Said, String> {
        let params = params("far__progress", json!({ "_meta": { "progressToken": "p" } }));
        let id = self.start("tools/call", params).await?;
        let mut seen = Vec::new();
        loop {
            let frame = self.peer.recv().await.map_err(|error| error.to_string())?;
            if frame["id"] == id {
                return Ok(Said::Progress(seen));
            }
            if frame["method"] == "notifications/progress" && frame["params"]["progressToken"] == "p" {
                seen.extend(frame["params"]["progress"].as_f64());
            }
        }
    }

    async fn log(&mut self) -> Result<Said, String> {
        let level = json!({ "_meta": { "io.modelcontextprotocol/logLevel": "debug" } });
        let params = params("far__log", if self.revision.is_modern() { level } else { json!({}) });
        self.start("tools/call", params).await?;
        let frame =
            self.peer.recv_method("notifications/message").await.map_err(|error| error.to_string())?;
        Ok(Said::Log(frame["params"]["data"].as_str().unwrap_or_default().to_owned()))
    }

    async fn cancel(&mut self, far: &Scripted) -> Result<Said, String> {
        let params = params("far__hang", json!({}));
        let id = self.start("tools/call", params).await?;
        let waited = async {
            far.seen.called.notified().await;
            let _ = self.peer.notify("notifications/cancelled", json!({ "requestId": id })).await;
            far.seen.cancelled.notified().await;
        };
        match tokio::time::timeout(Duration::from_secs(10), waited).await {
            Ok(()) => Ok(Said::Cancelled),
            Err(_) => Err("the server does not hear of it".into()),
        }
    }

    async fn subscribe(&mut self, far: &Scripted) -> Result<Said, String> {
        if self.revision.is_modern() {
            let wanted = json!({ "notifications": { "resourceSubscriptions": ["note:///a"] } });
            self.start("subscriptions/listen", wanted).await?;
        } else {
            let id = self.start("resources/subscribe", json!({ "uri": "note:///a" })).await?;
            // What the server tells may come before its answer.
            self.peer.response(&id).await.map_err(|error| error.to_string())?;
        }
        let subscribed = tokio::time::timeout(Duration::from_secs(10), far.seen.subscribed.notified()).await;
        subscribed.map_err(|_| "the server is not subscribed to".to_owned())?;
        let frame = self.peer.recv_method("notifications/resources/updated").await;
        let frame = frame.map_err(|error| error.to_string())?;
        Ok(Said::Updated(frame["params"]["uri"].as_str().unwrap_or_default().to_owned()))
    }
}

/// The parameters of a call.
fn params(name: &str, more: Value) -> Value {
    let mut params = json!({ "name": name, "arguments": {} });
    if let (Some(params), Value::Object(more)) = (params.as_object_mut(), more) {
        params.extend(more);
    }
    params
}

/// What the user, the model and the folders of this client are.
fn answer(method: &str, params: &Value) -> Value {
    match method {
        "elicitation/create" if params["mode"] == "url" => json!({ "action": "accept" }),
        "elicitation/create" => json!({ "action": "accept", "content": { "name": "Ada" } }),
        "sampling/createMessage" => json!({
            "role": "assistant",
            "content": { "type": "text", "text": "the model says hello" },
            "model": "m",
            "stopReason": "endTurn",
        }),
        "roots/list" => json!({ "roots": [{ "uri": "file:///home/ada", "name": "home" }] }),
        _ => json!({}),
    }
}
