//! Sessions that several processes share: every request may reach another one.

mod streams;

use crate::wire::{Ask, HttpReply};
use bowline_http::{HttpOptions, HttpService, Resume, SessionStore};
use bowline_server::{Ctx, Key as SealKey, KeyRing, Registry, Resource, Result, Server, Task, Tasks, Tool};
use bowline_store::{
    ClaimRequest, Durability, Group, Key, Memory, MemoryBus, NodeId, Owner, Put, PutError, Reach, Record,
    Records, Store, StoreError, Version,
};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

type Reply<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A store that counts what it is asked for and can be made unavailable.
#[derive(Debug, Default)]
struct Faulty {
    inner: Memory,
    is_down: AtomicBool,
    refuses_writes: AtomicBool,
    /// Writes happen, and nobody hears of it.
    is_mute: AtomicBool,
    /// Relaxed writes are acknowledged and lost, as by a database that is killed.
    loses_relaxed: AtomicBool,
    refused: AtomicUsize,
    operations: AtomicUsize,
}

impl Faulty {
    fn check(&self) -> Result<(), StoreError> {
        self.operations.fetch_add(1, Ordering::SeqCst);
        if self.is_down.load(Ordering::SeqCst) {
            Err(StoreError::unavailable("switched off"))
        } else {
            Ok(())
        }
    }
}

macro_rules! checked {
    ($self:ident, $operation:expr) => {
        Box::pin(async move {
            $self.check()?;
            $operation.await
        })
    };
}

impl Records for Faulty {
    fn get<'a>(&'a self, keys: &'a [Key]) -> Reply<'a, Result<Vec<Option<Record>>, StoreError>> {
        checked!(self, self.inner.get(keys))
    }

    fn put(&self, put: Put) -> Reply<'_, Result<Version, PutError>> {
        checked!(self, async {
            if self.refuses_writes.load(Ordering::SeqCst) {
                let refused = self.refused.fetch_add(1, Ordering::SeqCst);
                assert!(refused < 1000, "the store is asked again and again without a pause");
                return Err(StoreError::unavailable("read only").into());
            }
            let is_lost = put.durability == Durability::Relaxed && self.loses_relaxed.load(Ordering::SeqCst);
            let key = put.key.clone();
            let written = self.inner.put(put).await;
            if self.is_mute.load(Ordering::SeqCst) {
                return Err(StoreError::unknown("the reply was lost").into());
            }
            let version = written?;
            if is_lost {
                self.inner.remove(&[key]).await?;
            }
            Ok(version)
        })
    }

    fn remove<'a>(&'a self, keys: &'a [Key]) -> Reply<'a, Result<(), StoreError>> {
        checked!(self, self.inner.remove(keys))
    }

    fn list<'a>(
        &'a self,
        group: &'a Group,
        after: Option<&'a Key>,
        limit: usize,
    ) -> Reply<'a, Result<Vec<Record>, StoreError>> {
        checked!(self, self.inner.list(group, after, limit))
    }

    fn count<'a>(&'a self, group: &'a Group) -> Reply<'a, Result<u64, StoreError>> {
        checked!(self, self.inner.count(group))
    }

    fn claim(&self, claim: ClaimRequest) -> Reply<'_, Result<Vec<Record>, StoreError>> {
        checked!(self, self.inner.claim(claim))
    }

    fn renew(&self, node: NodeId, lease: Duration) -> Reply<'_, Result<Vec<(Key, Owner)>, StoreError>> {
        checked!(self, self.inner.renew(node, lease))
    }

    fn touch<'a>(&'a self, keys: &'a [Key], ttl: Duration) -> Reply<'a, Result<(), StoreError>> {
        checked!(self, self.inner.touch(keys, ttl))
    }

    fn sweep(&self, limit: usize) -> Reply<'_, Result<usize, StoreError>> {
        checked!(self, self.inner.sweep(limit))
    }
}

#[derive(Deserialize, JsonSchema)]
struct Who {
    name: String,
}

/// Lets the calls of all processes through.
#[derive(Debug, Default)]
struct Gates {
    open: Notify,
    entered: Notify,
    dropped: Notify,
}

/// Says that a call was dropped.
struct Dropped(Arc<Gates>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.dropped.notify_one();
    }
}

fn server(gates: &Arc<Gates>) -> Server {
    let gates = Arc::clone(gates);
    Server::new("shared")
        .keys(KeyRing::new(SealKey::new([7; 32])))
        .resource(Resource::new("note:///a", "a").text("text"))
        .dynamic()
        .tool(Tool::new("now").handler(|| "now"))
        .tool(Tool::new("greet").handler(|ctx: Ctx| async move {
            let Who { name } = ctx.ask("Who are you?").await?.accepted()?;
            Result::<_>::Ok(format!("hello {name}"))
        }))
        .tool(Tool::new("greet_later").task(Task::now()).handler(|ctx: Ctx| async move {
            let Who { name } = ctx.ask("Who are you?").await?.accepted()?;
            Result::<_>::Ok(format!("hello {name}"))
        }))
        .tool(Tool::new("gated").handler(move |ctx: Ctx| {
            let gates = Arc::clone(&gates);
            async move {
                let _dropped = Dropped(Arc::clone(&gates));
                ctx.progress(1.0, 4.0);
                ctx.progress(2.0, 4.0);
                gates.entered.notify_one();
                gates.open.notified().await;
                ctx.progress(3.0, 4.0);
                "through"
            }
        }))
}

/// Two processes that share a store.
struct Pair {
    nodes: Vec<HttpService>,
    registries: Vec<Registry>,
    gates: Arc<Gates>,
    store: Arc<Faulty>,
}

impl Pair {
    fn new() -> Self {
        Self::with(|store| store)
    }

    fn with(change: impl Fn(SessionStore) -> SessionStore) -> Self {
        let (gates, store, bus) =
            (Arc::new(Gates::default()), Arc::new(Faulty::default()), Arc::new(MemoryBus::new()));
        let (mut nodes, mut registries) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let shared = SessionStore::new(Arc::clone(&store) as _, Arc::clone(&bus) as _);
            let shared = change(shared.poll_time(Duration::from_millis(50)));
            let server = server(&gates);
            registries.push(server.registry());
            nodes.push(HttpService::with_options(
                server.build().unwrap(),
                HttpOptions::new().session_store(shared),
            ));
        }
        Self { nodes, registries, gates, store }
    }

    async fn open(&self) -> Client {
        self.open_as(None, "2025-11-25").await
    }

    /// Opens a session at the first process and completes the handshake at the second.
    async fn open_as(&self, principal: Option<&str>, revision: &str) -> Client {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": revision,
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "c", "version": "1" },
        } });
        let mut client =
            Client { id: String::new(), principal: principal.map(str::to_owned), revision: revision.into() };
        let reply = client.by(Ask::post(&hello)).send(&self.nodes[0]).await;
        assert_eq!(reply.status, StatusCode::OK);
        client.id = reply.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let reply = client
            .post(&self.nodes[1], &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        assert_eq!(reply.status, StatusCode::ACCEPTED);
        client
    }
}

struct Client {
    id: String,
    principal: Option<String>,
    revision: String,
}

impl Client {
    fn by(&self, ask: Ask) -> Ask {
        match &self.principal {
            Some(principal) => ask.by(principal),
            None => ask,
        }
    }

    fn with(&self, ask: Ask) -> Ask {
        self.by(ask).header("mcp-session-id", &self.id).header("mcp-protocol-version", &self.revision)
    }

    async fn post(&self, node: &HttpService, body: &Value) -> HttpReply {
        self.with(Ask::post(body)).send(node).await
    }

    async fn request(&self, node: &HttpService, id: i64, method: &str, params: Value) -> HttpReply {
        self.post(node, &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await
    }

    async fn call(&self, node: &HttpService, id: i64, tool: &str) -> HttpReply {
        self.request(node, id, "tools/call", json!({ "name": tool, "_meta": { "progressToken": id } })).await
    }

    async fn get(&self, node: &HttpService, last: Option<&str>) -> HttpReply {
        let ask = self.with(Ask::new(Method::GET).header("accept", "text/event-stream"));
        match last {
            Some(last) => ask.header("last-event-id", last).send(node).await,
            None => ask.send(node).await,
        }
    }

    async fn delete(&self, node: &HttpService) -> StatusCode {
        self.with(Ask::new(Method::DELETE)).send(node).await.status
    }
}

#[tokio::test]
async fn any_process_serves_any_request_of_a_session() {
    // proves: HTTP-53, HTTP-59
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let pair = Pair::new();
        let client = pair.open_as(None, revision).await;
        for id in 1..6 {
            for node in &pair.nodes {
                let reply = client.call(node, id, "now").await;
                assert_eq!(reply.json().await["result"]["content"][0]["text"], "now");
            }
        }
        assert_eq!(client.delete(&pair.nodes[1]).await, StatusCode::NO_CONTENT);
        assert_eq!(client.call(&pair.nodes[1], 7, "now").await.status, StatusCode::NOT_FOUND);
        // The other process learns it by a hint, which may take a moment.
        while client.call(&pair.nodes[0], 8, "now").await.status != StatusCode::NOT_FOUND {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_session_does_not_exist_for_another_principal() {
    // proves: ELIF-38
    let pair = Pair::new();
    let ada = pair.open_as(Some("ada"), "2025-11-25").await;
    for principal in [Some("bob"), None] {
        let thief = Client {
            id: ada.id.clone(),
            principal: principal.map(str::to_owned),
            revision: ada.revision.clone(),
        };
        for node in &pair.nodes {
            assert_eq!(thief.call(node, 1, "now").await.status, StatusCode::NOT_FOUND);
            assert_eq!(thief.get(node, None).await.status, StatusCode::NOT_FOUND);
            assert_eq!(thief.delete(node).await, StatusCode::NOT_FOUND);
        }
    }
    assert_eq!(ada.call(&pair.nodes[0], 2, "now").await.status, StatusCode::OK);
    // Nor for one that shares nothing but the store, before it has a copy.
    let other = Pair { nodes: Pair::new().nodes, ..pair };
    assert_eq!(ada.call(&other.nodes[0], 3, "now").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_answer_reaches_the_call_that_asked_from_any_process() {
    let pair = Pair::new();
    let client = pair.open().await;
    let mut reply = client.call(&pair.nodes[0], 1, "greet").await;
    assert!(reply.is_stream());
    let (_, question) = reply.message().await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": { "name": "Ada" } } });
    // Another session cannot answer it, even if it knows the id.
    let stranger = pair.open().await;
    let forged = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": { "name": "Eve" } } });
    assert_eq!(stranger.post(&pair.nodes[1], &forged).await.status, StatusCode::ACCEPTED);
    assert_eq!(client.post(&pair.nodes[1], &answer).await.status, StatusCode::ACCEPTED);
    // A second answer is ignored.
    assert_eq!(client.post(&pair.nodes[1], &forged).await.status, StatusCode::ACCEPTED);
    let (_, response) = reply.message().await.unwrap();
    assert_eq!(response["result"]["content"][0]["text"], "hello Ada");
    assert!(reply.message().await.is_none());
}

#[tokio::test]
async fn a_question_of_a_task_stays_open_while_the_store_is_down() {
    let pair = Pair::new();
    let client = pair.open().await;
    let node = &pair.nodes[0];
    let params = json!({ "name": "greet_later", "task": {} });
    let created = client.request(node, 1, "tools/call", params).await.json().await;
    let task = json!({ "taskId": created["result"]["task"]["taskId"] });
    let status = async |id| {
        let reply = client.request(node, id, "tasks/get", task.clone()).await;
        reply.json().await["result"]["status"].clone()
    };
    while status(2).await != "input_required" {
        tokio::task::yield_now().await;
    }
    // The client cannot be asked, which is not its answer.
    pair.store.is_down.store(true, Ordering::SeqCst);
    let mut reply = client.request(node, 3, "tasks/result", task.clone()).await;
    let refused = if reply.is_stream() { reply.message().await.unwrap().1 } else { reply.json().await };
    assert!(refused["error"]["data"]["retryAfterMs"].is_u64(), "{refused}");
    assert_eq!(status(4).await, "input_required");
    pair.store.is_down.store(false, Ordering::SeqCst);
    let mut reply = client.request(node, 5, "tasks/result", task.clone()).await;
    let (_, question) = reply.message().await.unwrap();
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
    assert_eq!(client.post(&pair.nodes[1], &answer).await.status, StatusCode::ACCEPTED);
    let (_, response) = reply.message().await.unwrap();
    assert_eq!(response["result"]["content"][0]["text"], "hello Ada");
}

#[tokio::test]
async fn nobody_listens_in_vain_to_tasks_while_the_store_is_down() {
    let faulty = Arc::new(Faulty::default());
    faulty.is_down.store(true, Ordering::SeqCst);
    let store = Store::builder("faulty", faulty, Arc::new(MemoryBus::new()), Reach::Network).build();
    let tool = Tool::new("quick").task(Task::now()).handler(async || "done");
    let endpoint = HttpService::new(Server::new("tasks").tool(tool).tasks(Tasks::new(store))).unwrap();
    let filter = json!({ "notifications": { "taskIds": ["0123456789abcdef"] } });
    let reply = crate::tasks::ask("subscriptions/listen", None, filter).send(&endpoint).await;
    assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(reply.json().await["error"]["code"], -32603);
}

#[tokio::test]
async fn a_cancellation_reaches_the_call_from_any_process() {
    let pair = Pair::new();
    let client = pair.open().await;
    let mut reply = client.call(&pair.nodes[0], 1, "gated").await;
    reply.message().await.unwrap();
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(client.post(&pair.nodes[1], &cancel).await.status, StatusCode::ACCEPTED);
    pair.gates.dropped.notified().await;
    while let Some((_, message)) = reply.message().await {
        assert!(message.get("result").is_none(), "{message}");
    }
}

#[tokio::test]
async fn a_call_that_cannot_ask_does_not_blame_its_client() {
    let pair = Pair::new();
    let client = pair.open().await;
    assert_eq!(client.call(&pair.nodes[0], 1, "now").await.status, StatusCode::OK);
    pair.store.is_down.store(true, Ordering::SeqCst);
    let mut reply = client.call(&pair.nodes[0], 2, "greet").await;
    let response = if reply.is_stream() { reply.message().await.unwrap().1 } else { reply.json().await };
    assert_eq!(response["error"]["code"], -32603, "{response}");
    assert!(response["error"]["data"]["retryAfterMs"].is_u64(), "{response}");
}

#[tokio::test]
async fn subscriptions_and_levels_are_known_to_every_process() {
    let pair = Pair::new();
    let client = pair.open().await;
    let reply = client.request(&pair.nodes[0], 1, "resources/subscribe", json!({ "uri": "note:///a" })).await;
    assert_eq!(reply.json().await["result"], json!({}));
    let mut get_stream = client.get(&pair.nodes[1], None).await;
    assert!(get_stream.is_stream());
    get_stream.event().await.unwrap();
    // A change at the other process is notified on the one stream of the session.
    pair.registries[0].resource_updated("note:///a");
    let (_, message) = get_stream.message().await.unwrap();
    assert_eq!(message["method"], "notifications/resources/updated");
    // A newer stream at another process takes over.
    let mut newer = client.get(&pair.nodes[0], None).await;
    newer.event().await.unwrap();
    assert!(get_stream.message().await.is_none());
    pair.registries[1].resource_updated("note:///a");
    assert_eq!(newer.message().await.unwrap().1["method"], "notifications/resources/updated");
    // Unsubscribed at one process, it is quiet at the other.
    let reply =
        client.request(&pair.nodes[1], 2, "resources/unsubscribe", json!({ "uri": "note:///a" })).await;
    assert_eq!(reply.status, StatusCode::OK);
}

#[tokio::test]
async fn a_state_is_used_once_by_all_processes_together() {
    // proves: MRTR-12
    let pair = Pair::new();
    let ask = |params: Value| Ask::modern("tools/call", params);
    let reply = ask(json!({ "name": "greet", "arguments": {} })).send(&pair.nodes[0]).await.json().await;
    let (state, key) = (
        reply["result"]["requestState"].clone(),
        reply["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone(),
    );
    let retry = json!({ "name": "greet", "arguments": {}, "requestState": state,
        "inputResponses": { key: { "action": "accept", "content": { "name": "Ada" } } } });
    let first = ask(retry.clone()).send(&pair.nodes[1]).await.json().await;
    assert_eq!(first["result"]["content"][0]["text"], "hello Ada");
    for node in &pair.nodes {
        let again = ask(retry.clone()).send(node).await.json().await;
        assert_eq!(again["error"]["code"], -32602, "{again}");
    }
    // Nobody knows whether it was used while the store is down.
    pair.store.is_down.store(true, Ordering::SeqCst);
    let unknown = ask(retry).send(&pair.nodes[0]).await;
    assert_eq!(unknown.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(unknown.headers["retry-after"], "5");
    let unknown = unknown.json().await;
    assert_eq!(unknown["error"]["code"], -32603, "{unknown}");
}

#[tokio::test]
async fn calls_without_state_never_touch_the_store() {
    let pair = Pair::new();
    for _ in 0..100 {
        for method in [
            ("tools/call", json!({ "name": "now" })),
            ("tools/list", json!({})),
            ("server/discover", json!({})),
        ] {
            let reply = Ask::modern(method.0, method.1).send(&pair.nodes[0]).await;
            assert_eq!(reply.status, StatusCode::OK);
        }
    }
    // A call that asks seals its state without storing it.
    let asks = Ask::modern("tools/call", json!({ "name": "greet" })).send(&pair.nodes[0]).await.json().await;
    assert!(asks["result"]["requestState"].is_string());
    assert_eq!(pair.store.operations.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn without_the_store_known_sessions_go_on_and_others_are_refused_with_a_time_to_retry() {
    let pair = Pair::new();
    let client = pair.open().await;
    assert_eq!(client.call(&pair.nodes[1], 1, "now").await.status, StatusCode::OK);
    pair.store.is_down.store(true, Ordering::SeqCst);
    assert_eq!(client.call(&pair.nodes[1], 2, "now").await.status, StatusCode::OK);
    let unknown = Client { id: "f".repeat(32), principal: None, revision: client.revision.clone() };
    let reply = unknown.call(&pair.nodes[1], 3, "now").await;
    assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(reply.headers.contains_key("retry-after"));
    assert_eq!(client.delete(&pair.nodes[1]).await, StatusCode::SERVICE_UNAVAILABLE);
    let level = client.request(&pair.nodes[1], 4, "resources/subscribe", json!({ "uri": "note:///a" })).await;
    assert_eq!(level.status, StatusCode::SERVICE_UNAVAILABLE);
    pair.store.is_down.store(false, Ordering::SeqCst);
    assert_eq!(client.call(&pair.nodes[1], 5, "now").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_stream_that_outlives_the_store_is_marked_as_broken() {
    let pair = Pair::new();
    let client = pair.open().await;
    let mut reply = client.call(&pair.nodes[0], 1, "gated").await;
    reply.message().await.unwrap();
    let (second, _) = reply.message().await.unwrap();
    assert!(second.is_some());
    pair.store.is_down.store(true, Ordering::SeqCst);
    pair.gates.open.notify_one();
    let (third, message) = reply.message().await.unwrap();
    assert_eq!((third, &message["params"]["progress"]), (None, &json!(3)));
    assert_eq!(reply.message().await.unwrap().1["result"]["content"][0]["text"], "through");
    pair.store.is_down.store(false, Ordering::SeqCst);
    // Whether the marker is there yet or not, the resumed stream ends with the error.
    let mut again = client.get(&pair.nodes[1], second.as_deref()).await;
    let (_, message) = again.message().await.unwrap();
    assert_eq!(message["error"]["code"], -32603, "{message}");
    assert!(message["error"]["message"].as_str().unwrap().contains("events were lost"), "{message}");
}

#[tokio::test]
async fn events_can_stay_in_the_process() {
    let pair = Pair::with(|store| store.resume(Resume::Node));
    let client = pair.open().await;
    let mut reply = client.call(&pair.nodes[0], 1, "gated").await;
    let (first, _) = reply.message().await.unwrap();
    drop(reply);
    assert_eq!(client.get(&pair.nodes[1], first.as_deref()).await.status, StatusCode::NOT_FOUND);
    pair.gates.open.notify_one();
    let mut again = client.get(&pair.nodes[0], first.as_deref()).await;
    assert_eq!(again.message().await.unwrap().1["params"]["progress"], 2.0);
}

mod sealed {
    use super::*;

    fn nodes() -> Vec<HttpService> {
        let gates = Arc::new(Gates::default());
        let node = |_| {
            HttpService::with_options(server(&gates).build().unwrap(), HttpOptions::new().sealed_sessions())
        };
        (0..2).map(node).collect()
    }

    async fn open(nodes: &[HttpService], principal: Option<&str>) -> Client {
        let pair = Pair { nodes: nodes.to_vec(), ..Pair::new() };
        pair.open_as(principal, "2025-11-25").await
    }

    #[tokio::test]
    async fn any_process_with_the_key_serves_a_sealed_session() {
        let nodes = nodes();
        let client = open(&nodes, None).await;
        assert!(client.id.len() <= 2048 && client.id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
        for node in &nodes {
            assert_eq!(client.call(node, 1, "now").await.json().await["result"]["content"][0]["text"], "now");
            assert_eq!(client.get(node, None).await.status, StatusCode::METHOD_NOT_ALLOWED);
            assert_eq!(client.delete(node).await, StatusCode::METHOD_NOT_ALLOWED);
            assert_eq!(node.sessions(), 0);
        }
        let other = HttpService::with_options(
            Server::new("other key").tool(Tool::new("now").handler(|| "now")).build().unwrap(),
            HttpOptions::new().sealed_sessions(),
        );
        assert_eq!(client.call(&other, 1, "now").await.status, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn a_sealed_session_belongs_to_its_principal() {
        let nodes = nodes();
        let ada = open(&nodes, Some("ada")).await;
        assert_eq!(ada.call(&nodes[1], 1, "now").await.status, StatusCode::OK);
        for principal in [Some("bob"), None] {
            let thief = Client {
                id: ada.id.clone(),
                principal: principal.map(str::to_owned),
                revision: ada.revision.clone(),
            };
            assert_eq!(thief.call(&nodes[1], 1, "now").await.status, StatusCode::NOT_FOUND);
        }
    }

    #[tokio::test]
    async fn what_a_sealed_session_cannot_do_is_said() {
        let nodes = nodes();
        let client = open(&nodes, None).await;
        let reply = client.call(&nodes[1], 1, "greet").await.json().await;
        assert!(reply.to_string().contains("`sealed`"), "{reply}");
        let reply = client.request(&nodes[1], 2, "resources/subscribe", json!({ "uri": "note:///a" })).await;
        let reply = reply.json().await;
        assert!(reply["error"]["message"].as_str().unwrap().contains("`sealed`"), "{reply}");
        // A stream has no ids, because nobody could resume it.
        let mut reply = client.call(&nodes[0], 3, "gated").await;
        let (id, message) = reply.message().await.unwrap();
        assert_eq!((id, &message["params"]["progress"]), (None, &json!(1)));
    }
}
