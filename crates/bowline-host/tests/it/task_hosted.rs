//! Slow calls of servers without tasks, which the host makes tasks.

use crate::task_script::caller;
use bowline_client::{Answer, Client, ClientBuilder, Started, TaskHandle};
use bowline_host::{Host, Upstream};
use bowline_policy::{
    Guard, Policy, Rule,
    audit::{Audit, AuditSettings},
};
use bowline_server::{Ctx, Error, Key, KeyRing, Result, Server, ServerHandle, Task, Tool};
use bowline_store::{
    ClaimChange, ClaimRequest, Group, Key as RecordKey, Memory, MemoryBus, NodeId, Owner, Put, PutError,
    Reach, Record, Records, Store, StoreError, Version,
};
use bowline_testing::Peer;
use bowline_types::{Revision, TaskStatus, TaskSupport};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Notify, watch};

const RELATED: &str = "io.modelcontextprotocol/related-task";
/// Revisions without tasks, with those of the core, and with the extension.
const UPSTREAMS: [Revision; 3] = [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];
const AT_ONCE: Duration = Duration::from_millis(5);

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Who {
    name: String,
}

/// A server without tasks.
struct Far {
    server: ServerHandle,
    /// Slow tools end when it is true.
    gate: watch::Sender<bool>,
    calls: Arc<AtomicUsize>,
    cancelled: Arc<Notify>,
}

/// Notifies when it is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Far {
    fn new() -> Self {
        let (gate, cancelled) = (watch::Sender::new(false), Arc::new(Notify::new()));
        let calls = Arc::new(AtomicUsize::new(0));
        let open = {
            let gate = gate.clone();
            move || {
                let mut gate = gate.subscribe();
                async move { drop(gate.wait_for(|is_open| *is_open).await) }
            }
        };
        let (slow, wrong, asks) = (open.clone(), open.clone(), open);
        let (count, dropped) = (Arc::clone(&calls), Arc::clone(&cancelled));
        let server = Server::new("far")
            .tool(Tool::new("slow").handler(move |ctx: Ctx| {
                let slow = slow();
                async move {
                    ctx.progress_with(1, 3, "the first third");
                    slow.await;
                    "slow"
                }
            }))
            .tool(Tool::new("wrong").handler(move || {
                let wrong = wrong();
                async move {
                    wrong.await;
                    Err::<String, _>(Error::tool("no luck"))
                }
            }))
            .tool(Tool::new("asks").handler(move |ctx: Ctx| {
                let asks = asks();
                async move {
                    asks.await;
                    let Who { name } = ctx.ask("Who?").await?.accepted()?;
                    let again: Who = ctx.ask("Who again?").await?.accepted()?;
                    Result::<String>::Ok(format!("{name} and {}", again.name))
                }
            }))
            .tool(Tool::new("endless").handler(move || {
                count.fetch_add(1, Ordering::Relaxed);
                let dropped = Dropped(Arc::clone(&dropped));
                async move {
                    let _dropped = dropped;
                    std::future::pending::<String>().await
                }
            }))
            .build()
            .expect("the server can be built");
        Self { server, gate, calls, cancelled }
    }

    fn open(&self) {
        self.gate.send_replace(true);
    }
}

fn host_of(far: &Far, revision: Revision, after: Option<Duration>, store: Store) -> (Host, ServerHandle) {
    let guard = Guard::builder().policy(Policy::new([Rule::allow()])).build();
    guarded_host(guard, far, revision, after, store)
}

fn guarded_host(
    guard: Guard,
    far: &Far,
    revision: Revision,
    after: Option<Duration>,
    store: Store,
) -> (Host, ServerHandle) {
    let upstream = Upstream::from(far.server.clone()).revision(revision).task_after(after);
    let host = Host::builder().add("far", upstream).guard(guard).store(store).build();
    let gateway = Server::new("gateway").keys(KeyRing::new(Key::new([7; 32])));
    let handle = host.open(gateway).expect("the gateway can be built");
    (host, handle)
}

fn host(far: &Far, revision: Revision) -> (Host, ServerHandle) {
    host_of(far, revision, Some(AT_ONCE), Store::memory())
}

fn answering() -> ClientBuilder {
    Client::builder().tasks().on_ask(|ask| async move {
        let name = if ask.message.contains("again") { "Bob" } else { "Ada" };
        Answer::accept(json!({ "name": name }))
    })
}

async fn started(client: &Client, tool: &str) -> TaskHandle {
    match client.call(format!("far__{tool}"), ()).start().await.unwrap() {
        Started::Task(task) => task,
        other => panic!("expected a task, got {other:?}"),
    }
}

async fn status_of(task: &TaskHandle) -> TaskStatus {
    task.status().await.unwrap().task.status
}

#[tokio::test]
async fn a_slow_call_becomes_a_task() {
    for upstream in UPSTREAMS {
        let far = Far::new();
        let (host, handle) = host(&far, upstream);
        let client = answering().connect(handle).await.unwrap();
        let (slow, wrong) = (started(&client, "slow").await, started(&client, "wrong").await);
        // Progress of the call is the status message.
        loop {
            let state = slow.status().await.unwrap();
            assert_eq!(state.task.status, TaskStatus::Working, "{upstream}");
            assert_eq!(state.task.ttl_ms, Some(3_600_000), "{upstream}");
            if state.task.status_message.as_deref() == Some("the first third") {
                break;
            }
        }
        far.open();
        assert_eq!(slow.wait().await.unwrap().text(), "slow", "{upstream}");
        // The result stays.
        assert_eq!(client.task(slow.id()).wait().await.unwrap().text(), "slow", "{upstream}");
        assert_eq!(status_of(&slow).await, TaskStatus::Completed, "{upstream}");
        let failed = wrong.wait().await.unwrap();
        assert!(failed.is_error() && failed.text().contains("no luck"), "{upstream}");
        client.close().await;
        host.close().await;
    }
}

#[tokio::test]
async fn a_call_that_is_fast_enough_is_no_task() {
    let far = Far::new();
    far.open();
    for after in [Some(Duration::from_secs(3600)), None] {
        let (host, handle) = host_of(&far, Revision::V2025_11_25, after, Store::memory());
        let client = answering().connect(handle).await.unwrap();
        match client.call("far__slow", ()).start().await.unwrap() {
            Started::Done(result) => assert_eq!(result.text(), "slow"),
            other => panic!("expected a result, got {other:?}"),
        }
        client.close().await;
        host.close().await;
    }
}

#[tokio::test]
async fn callers_without_tasks_wait() {
    let far = Far::new();
    let (host, handle) = host(&far, Revision::V2025_11_25);
    for caller in Revision::ALL {
        let client = Client::builder().revisions([caller]).connect(handle.clone()).await.unwrap();
        let waiting = client.call("far__slow", ());
        let mut waiting = Box::pin(std::future::IntoFuture::into_future(waiting));
        let early = tokio::time::timeout(AT_ONCE * 4, &mut waiting).await;
        assert!(early.is_err(), "{caller}: {early:?}");
        far.open();
        assert_eq!(waiting.await.unwrap().text(), "slow", "{caller}");
        far.gate.send_replace(false);
        client.close().await;
    }
    host.close().await;
}

#[tokio::test]
async fn a_task_asks_its_caller() {
    for upstream in UPSTREAMS {
        for caller in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let far = Far::new();
            let (host, handle) = host(&far, upstream);
            let client = answering().revisions([caller]).connect(handle).await.unwrap();
            let task = started(&client, "asks").await;
            far.open();
            let what = format!("a caller of {caller}, a server of {upstream}");
            assert_eq!(task.wait().await.unwrap().text(), "Ada and Bob", "{what}");
            client.close().await;
            host.close().await;
        }
    }
}

#[tokio::test]
async fn cancelling_a_task_cancels_the_call() {
    for upstream in UPSTREAMS {
        let (far, store) = (Far::new(), Store::memory());
        let (one, first) = host_of(&far, upstream, Some(AT_ONCE), store.clone());
        let (two, second) = host_of(&far, upstream, Some(AT_ONCE), store);
        let client = answering().connect(first).await.unwrap();
        let elsewhere = answering().connect(second).await.unwrap();
        for cancelling in [&client, &elsewhere] {
            let task = started(&client, "endless").await;
            cancelling.task(task.id()).cancel().await.unwrap();
            assert_eq!(status_of(&task).await, TaskStatus::Cancelled, "{upstream}");
            far.cancelled.notified().await;
            assert!(client.task(task.id()).wait().await.is_err(), "{upstream}");
        }
        for client in [client, elsewhere] {
            client.close().await;
        }
        one.close().await;
        two.close().await;
    }
}

#[tokio::test]
async fn every_process_answers_for_a_task() {
    for upstream in UPSTREAMS {
        let (far, store) = (Far::new(), Store::memory());
        let (one, first) = host_of(&far, upstream, Some(AT_ONCE), store.clone());
        let (two, second) = host_of(&far, upstream, Some(AT_ONCE), store);
        let client = answering().connect(first).await.unwrap();
        let task = started(&client, "asks").await;
        far.open();
        // The other process shows the questions, takes the answers, and has the result.
        let elsewhere = answering().connect(second).await.unwrap();
        let result = elsewhere.task(task.id()).wait().await.unwrap();
        assert_eq!(result.text(), "Ada and Bob", "{upstream}");
        for client in [client, elsewhere] {
            client.close().await;
        }
        one.close().await;
        two.close().await;
    }
}

async fn create(near: &mut Peer, tool: &str, ttl: u64) -> Value {
    let params = json!({ "name": format!("far__{tool}"), "task": { "ttl": ttl } });
    let created = near.request("tools/call", params).await.unwrap();
    let task = &created["result"]["task"];
    assert_eq!(task["status"], "working", "{created}");
    assert_eq!(task["ttl"], ttl, "{created}");
    json!({ "taskId": task["taskId"] })
}

#[tokio::test]
async fn a_caller_of_2025_11_25_gets_the_task_that_it_asks_for() {
    let far = Far::new();
    let (host, handle) =
        host_of(&far, Revision::V2025_06_18, Some(Duration::from_secs(3600)), Store::memory());
    let mut near = caller(&handle, Some("ada")).await;
    let listed = near.request("tools/list", json!({})).await.unwrap();
    for tool in listed["result"]["tools"].as_array().unwrap() {
        assert_eq!(tool["execution"]["taskSupport"], "optional", "{tool}");
    }
    let id = create(&mut near, "slow", 120_000).await;
    let got = near.request("tasks/get", id.clone()).await.unwrap();
    assert_eq!(got["result"]["status"], "working", "{got}");
    let tasks = near.request("tasks/list", json!({})).await.unwrap();
    assert_eq!(tasks["result"]["tasks"][0]["taskId"], id["taskId"], "{tasks}");
    let waiting = near.start("tasks/result", id.clone()).await.unwrap();
    far.open();
    let result = near.response(&waiting).await.unwrap();
    assert_eq!(result["result"]["content"][0]["text"], "slow", "{result}");
    assert_eq!(result["result"]["_meta"][RELATED], id, "{result}");
    let refused = near.request("tasks/cancel", id.clone()).await.unwrap();
    assert_eq!(refused["error"]["code"], -32602, "{refused}");

    // A tool that returns an error is a failed task with a result.
    far.gate.send_replace(false);
    let wrong = create(&mut near, "wrong", 120_000).await;
    far.open();
    let result = near.request("tasks/result", wrong.clone()).await.unwrap();
    assert_eq!(result["result"]["isError"], true, "{result}");
    let got = near.request("tasks/get", wrong).await.unwrap();
    assert_eq!(got["result"]["status"], "failed", "{got}");

    let endless = create(&mut near, "endless", 120_000).await;
    let cancelled = near.request("tasks/cancel", endless.clone()).await.unwrap();
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    let refused = near.request("tasks/result", endless.clone()).await.unwrap();
    assert_eq!(refused["error"]["code"], -32603, "{refused}");

    // It belongs to its principal.
    let mut bob = caller(&handle, Some("bob")).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let foreign = bob.request(method, id.clone()).await.unwrap();
        assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
    }
    host.close().await;
}

#[tokio::test]
async fn a_caller_of_2025_11_25_is_told_the_status() {
    let far = Far::new();
    let (host, handle) = host(&far, Revision::V2025_06_18);
    let mut near = caller(&handle, None).await;
    let id = create(&mut near, "slow", 120_000).await;
    far.open();
    loop {
        let notification = near.recv_method("notifications/tasks/status").await.unwrap();
        assert_eq!(notification["params"]["taskId"], id["taskId"], "{notification}");
        if notification["params"]["status"] == "completed" {
            break;
        }
    }
    host.close().await;
}

#[tokio::test]
async fn a_task_ends_with_its_ttl() {
    let far = Far::new();
    let (host, handle) = host(&far, Revision::V2025_06_18);
    let mut near = caller(&handle, None).await;
    let id = create(&mut near, "endless", 50).await;
    let failed = near.request("tasks/result", id.clone()).await.unwrap();
    assert_eq!(failed["error"]["code"], -32603, "{failed}");
    assert!(failed["error"]["message"].as_str().unwrap().contains("expired"), "{failed}");
    far.cancelled.notified().await;
    let got = near.request("tasks/get", id).await.unwrap();
    assert_eq!(got["result"]["status"], "failed", "{got}");
    host.close().await;
}

#[tokio::test]
async fn one_caller_has_at_most_100_running_tasks() {
    let far = Far::new();
    let (host, handle) = host(&far, Revision::V2025_06_18);
    let mut ada = caller(&handle, Some("ada")).await;
    let params = json!({ "name": "far__slow", "task": {} });
    let mut ids = Vec::new();
    for _ in 0..100 {
        ids.push(ada.start("tools/call", params.clone()).await.unwrap());
    }
    for id in &ids {
        let created = ada.response(id).await.unwrap();
        assert_eq!(created["result"]["task"]["status"], "working", "{created}");
    }
    let refused = ada.request("tools/call", params.clone()).await.unwrap();
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    assert!(refused["error"]["data"]["retryAfterMs"].is_u64(), "{refused}");
    let mut bob = caller(&handle, Some("bob")).await;
    let created = bob.request("tools/call", params).await.unwrap();
    assert_eq!(created["result"]["task"]["status"], "working", "{created}");
    host.close().await;
}

/// A store in memory whose leases end at once, and which fails on demand.
#[derive(Debug)]
struct FaultyRecords {
    records: Memory,
    fails: Arc<AtomicBool>,
}

impl FaultyRecords {
    fn store(fails: &Arc<AtomicBool>) -> Store {
        let faulty = Self { records: Memory::new(), fails: Arc::clone(fails) };
        Store::builder("faulty", Arc::new(faulty), Arc::new(MemoryBus::new()), Reach::Machine).build()
    }
}

type Answered<'a, T> = BoxFuture<'a, std::result::Result<T, StoreError>>;

impl Records for FaultyRecords {
    fn get<'a>(&'a self, keys: &'a [RecordKey]) -> Answered<'a, Vec<Option<Record>>> {
        self.records.get(keys)
    }

    fn put(&self, mut put: Put) -> BoxFuture<'_, std::result::Result<Version, PutError>> {
        if self.fails.load(Ordering::Relaxed) {
            return Box::pin(std::future::ready(Err(StoreError::unavailable("it fails on demand").into())));
        }
        if let ClaimChange::Take { lease, .. } = &mut put.claim {
            *lease = Duration::ZERO;
        }
        self.records.put(put)
    }

    fn remove<'a>(&'a self, keys: &'a [RecordKey]) -> Answered<'a, ()> {
        self.records.remove(keys)
    }

    fn list<'a>(
        &'a self,
        group: &'a Group,
        after: Option<&'a RecordKey>,
        limit: usize,
    ) -> Answered<'a, Vec<Record>> {
        self.records.list(group, after, limit)
    }

    fn count<'a>(&'a self, group: &'a Group) -> Answered<'a, u64> {
        self.records.count(group)
    }

    fn claim(&self, claim: ClaimRequest) -> Answered<'_, Vec<Record>> {
        self.records.claim(claim)
    }

    fn renew(&self, node: NodeId, lease: Duration) -> Answered<'_, Vec<(RecordKey, Owner)>> {
        self.records.renew(node, lease)
    }

    fn touch<'a>(&'a self, keys: &'a [RecordKey], ttl: Duration) -> Answered<'a, ()> {
        self.records.touch(keys, ttl)
    }

    fn sweep(&self, limit: usize) -> Answered<'_, usize> {
        self.records.sweep(limit)
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_fails_if_its_process_dies_and_is_not_repeated() {
    let (far, store) = (Far::new(), FaultyRecords::store(&Arc::default()));
    let (one, first) = host_of(&far, Revision::V2025_11_25, Some(AT_ONCE), store.clone());
    let client = answering().connect(first.clone()).await.unwrap();
    let task = started(&client, "endless").await;
    // The process ends without a word.
    client.close().await;
    drop((one, first));
    let (two, second) = host_of(&far, Revision::V2025_11_25, Some(AT_ONCE), store);
    let client = answering().connect(second).await.unwrap();
    let error = client.task(task.id()).wait().await.unwrap_err();
    assert!(error.to_string().contains("the gateway process that ran this call has ended"), "{error}");
    assert_eq!(far.calls.load(Ordering::Relaxed), 1);
    client.close().await;
    two.close().await;
}

#[tokio::test]
async fn a_task_fails_if_its_gateway_is_stopped() {
    let (far, store) = (Far::new(), Store::memory());
    let (one, first) = host_of(&far, Revision::V2025_11_25, Some(AT_ONCE), store.clone());
    let client = answering().connect(first).await.unwrap();
    let task = started(&client, "endless").await;
    one.close().await;
    client.close().await;
    let (two, second) = host_of(&far, Revision::V2025_11_25, Some(AT_ONCE), store);
    let client = answering().connect(second).await.unwrap();
    let error = client.task(task.id()).wait().await.unwrap_err();
    assert!(error.to_string().contains("the gateway was stopped while this call ran"), "{error}");
    assert_eq!(far.calls.load(Ordering::Relaxed), 1);
    client.close().await;
    two.close().await;
}

#[tokio::test]
async fn a_call_goes_on_without_a_task_if_the_store_fails() {
    let (far, fails) = (Far::new(), Arc::new(AtomicBool::new(true)));
    let (host, handle) = host_of(&far, Revision::V2025_11_25, Some(AT_ONCE), FaultyRecords::store(&fails));
    let client = answering().connect(handle.clone()).await.unwrap();
    let waiting = client.call("far__slow", ());
    let mut waiting = Box::pin(waiting.start());
    assert!(tokio::time::timeout(AT_ONCE * 4, &mut waiting).await.is_err());
    far.open();
    match waiting.await.unwrap() {
        Started::Done(result) => assert_eq!(result.text(), "slow"),
        other => panic!("expected a result, got {other:?}"),
    }
    // Whoever asks for a task is told that there is none.
    far.gate.send_replace(false);
    let mut near = caller(&handle, None).await;
    let refused = near.request("tools/call", json!({ "name": "far__slow", "task": {} })).await.unwrap();
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    client.close().await;
    host.close().await;
}

#[tokio::test]
async fn the_audit_log_tells_what_became_of_a_task() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let audit = Audit::open(AuditSettings::new(&path)).unwrap();
    let guard = Guard::builder().policy(Policy::new([Rule::allow()])).audit(audit.clone()).build();
    let far = Far::new();
    let (host, handle) = guarded_host(guard, &far, Revision::V2025_11_25, Some(AT_ONCE), Store::memory());
    let client = answering().connect(handle).await.unwrap();
    let mut expected = Vec::new();
    for (tool, outcome) in [("wrong", "tool error"), ("endless", "cancelled")] {
        let task = started(&client, tool).await;
        if tool == "endless" {
            task.cancel().await.unwrap();
            far.cancelled.notified().await;
        } else {
            far.open();
            task.wait().await.unwrap();
        }
        expected.push((tool, outcome));
    }
    client.close().await;
    host.close().await;
    audit.flush();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (tool, outcome) in expected {
        let is_call = |line: &&Value| line["event"] == "call" && line["name"] == tool;
        let call = lines.iter().find(is_call).unwrap_or_else(|| panic!("{text}"));
        assert!(call["task"].as_str().is_some_and(|digest| digest.len() == 32), "{call}");
        let is_end = |line: &&Value| {
            line["event"] == "task" && line["method"] == "tools/call" && line["task"] == call["task"]
        };
        let end = lines.iter().find(is_end).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(end["outcome"], outcome, "{text}");
    }
}

#[tokio::test]
async fn a_task_of_the_server_stays_one() {
    // The host makes tasks only of calls that their servers do not make tasks of.
    let server = Server::new("far")
        .tool(Tool::new("endless").task(Task::now()).handler(async || std::future::pending::<String>().await))
        .build()
        .unwrap();
    let far = Far { server, ..Far::new() };
    let (host, handle) = host_of(&far, Revision::V2025_11_25, None, Store::memory());
    let client = answering().revisions([Revision::V2025_11_25]).connect(handle).await.unwrap();
    let tools = client.tools().await.unwrap();
    let support = tools[0].execution.as_ref().and_then(|execution| execution.task_support.clone());
    assert_eq!(support, Some(TaskSupport::Optional));
    let task = started(&client, "endless").await;
    task.cancel().await.unwrap();
    client.close().await;
    host.close().await;
}
