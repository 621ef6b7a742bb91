//! A server of 2026-07-28 whose tasks the tests change. Every connection counts its tasks from 1.

use bowline_client::{BoxFuture, Connect, Inbox, Result, Stream, Transport};
use bowline_host::{Host, Upstream};
use bowline_policy::{Guard, Policy};
use bowline_server::{Key, KeyRing, Server, ServerHandle};
use bowline_store::Store;
use bowline_testing::Peer;
use bowline_types::Revision;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use tokio::sync::Notify;

pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

#[derive(Clone, Debug, Default)]
pub(crate) struct Script(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// What is added to the state of tasks, by id. Others work.
    states: Mutex<BTreeMap<String, Value>>,
    /// The requests about tasks.
    requests: Mutex<Vec<Value>>,
    changed: Notify,
}

impl Connect for Script {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        let (peer, other) = Peer::pair();
        tokio::spawn(serve(peer, self.clone()));
        let (read, write) = tokio::io::split(other);
        Box::pin(async move { Stream::new(read, write).connect(inbox).await })
    }
}

impl Script {
    pub(crate) fn set(&self, id: &str, state: Value) {
        self.0.states.lock().unwrap().insert(id.to_owned(), state);
    }

    /// Returns the parameters of the requests of a method.
    pub(crate) fn requests(&self, method: &str) -> Vec<Value> {
        let requests = self.0.requests.lock().unwrap();
        let of_method = requests.iter().filter(|request| request["method"] == method);
        of_method.map(|request| request["params"].clone()).collect()
    }

    /// Waits for the first request of a method.
    pub(crate) async fn requested(&self, method: &str) -> Value {
        let wait = async {
            loop {
                let changed = self.0.changed.notified();
                if let Some(first) = self.requests(method).into_iter().next() {
                    return first;
                }
                changed.await;
            }
        };
        let waited = tokio::time::timeout(std::time::Duration::from_secs(60), wait).await;
        waited.unwrap_or_else(|_| panic!("the server got no {method}"))
    }

    pub(crate) fn host(&self, policy: Policy, store: Store) -> (Host, ServerHandle) {
        host_of(Upstream::to(self.clone()), policy, store)
    }
}

pub(crate) fn host_of(upstream: Upstream, policy: Policy, store: Store) -> (Host, ServerHandle) {
    let guard = Guard::builder().policy(policy).build();
    let host = Host::builder().add("far", upstream).guard(guard).store(store).build();
    let gateway = Server::new("gateway").keys(KeyRing::new(Key::new([7; 32])));
    let handle = host.open(gateway).expect("the gateway can be built");
    (host, handle)
}

async fn serve(mut peer: Peer, script: Script) {
    let mut created = 0;
    while let Ok(frame) = peer.recv().await {
        let method = frame["method"].as_str().unwrap_or_default();
        let state = |id: &str| {
            let mut task = json!({
                "taskId": id, "status": "working", "createdAt": "2026-01-01T00:00:00Z",
                "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": 60_000, "pollIntervalMs": 20,
            });
            let states = script.0.states.lock().unwrap();
            let more = states.get(id).and_then(Value::as_object).cloned();
            task.as_object_mut().unwrap().extend(more.unwrap_or_default());
            task
        };
        let mut result = match method {
            "server/discover" => json!({
                "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                "capabilities": { "tools": {}, "extensions": { EXTENSION: {} } },
            }),
            "tools/list" => json!({
                "tools": [{ "name": "build", "inputSchema": { "type": "object" } }],
                "ttlMs": 60_000, "cacheScope": "private",
            }),
            "tools/call" => {
                created += 1;
                let mut task = state(&created.to_string());
                (task["resultType"], task["status"]) = (json!("task"), json!("working"));
                for member in ["inputRequests", "result"] {
                    task.as_object_mut().unwrap().remove(member);
                }
                task
            }
            "tasks/get" => state(frame["params"]["taskId"].as_str().unwrap_or_default()),
            // Nothing stops the work.
            "tasks/cancel" => json!({}),
            "tasks/update" => {
                let id = frame["params"]["taskId"].as_str().unwrap_or_default();
                script.set(id, completed(&frame["params"]["inputResponses"].to_string()));
                json!({})
            }
            _ if frame.get("id").is_none() => continue,
            _ => {
                let error = json!({ "code": -32601, "message": "method not found" });
                let _ = peer.send(json!({ "jsonrpc": "2.0", "id": frame["id"], "error": error })).await;
                continue;
            }
        };
        if method.starts_with("tasks/") {
            let seen = json!({ "method": method, "params": frame["params"] });
            script.0.requests.lock().unwrap().push(seen);
            script.0.changed.notify_waiters();
        }
        if result.get("resultType").is_none() {
            result["resultType"] = json!("complete");
        }
        if peer.reply(&frame, result).await.is_err() {
            return;
        }
    }
}

pub(crate) fn completed(text: &str) -> Value {
    json!({ "status": "completed", "result": { "content": [{ "type": "text", "text": text }] } })
}

/// A state that asks, by the key of the question.
pub(crate) fn asking(key: &str, request: &Value) -> Value {
    json!({ "status": "input_required", "inputRequests": { key: request } })
}

pub(crate) fn form() -> Value {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    json!({ "method": "elicitation/create", "params": { "message": "who", "requestedSchema": schema } })
}

/// A client of 2025-11-25 whose frames the test writes.
pub(crate) async fn caller(handle: &ServerHandle, principal: Option<&str>) -> Peer {
    let (peer, other) = Peer::pair();
    let (handle, principal) = (handle.clone(), principal.map(Arc::from));
    tokio::spawn(async move {
        let (read, write) = tokio::io::split(other);
        let _ = handle.serve_as(principal, read, write).await;
    });
    let mut peer = peer.capabilities(json!({ "elicitation": {} }));
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    peer
}

/// Calls a tool of the server as a task of 2025-11-25, and returns the parameters of requests about it.
pub(crate) async fn create(near: &mut Peer, tool: &str) -> Value {
    let created =
        near.request("tools/call", json!({ "name": format!("far__{tool}"), "task": {} })).await.unwrap();
    assert_eq!(created["result"]["task"]["status"], "working", "{created}");
    json!({ "taskId": created["result"]["task"]["taskId"] })
}
