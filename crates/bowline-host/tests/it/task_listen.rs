//! Callers of 2026-07-28 that subscribe to tasks of servers behind a host.

use bowline_client::{BoxFuture, Connect, Inbox, Result, Stream, Transport};
use bowline_host::{Host, Upstream};
use bowline_policy::{
    Guard, Policy, Rule,
    audit::{Audit, AuditSettings},
};
use bowline_server::{Server, ServerHandle};
use bowline_testing::Peer;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::mpsc;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A server of 2026-07-28 whose tool `build` makes a task of each call. The test changes the tasks.
#[derive(Clone, Debug, Default)]
struct Far(Arc<Script>);

#[derive(Debug, Default)]
struct Script {
    /// What `tasks/get` returns, by id.
    tasks: Mutex<BTreeMap<String, Value>>,
    /// The id of each subscription, and its tasks.
    listens: Mutex<Vec<(Value, Vec<String>)>>,
    /// Whether subscriptions to tasks are refused.
    is_mute: AtomicBool,
    /// What is added to the ids of tasks.
    suffix: Mutex<String>,
    cancelled: Mutex<Vec<String>>,
    to_host: Mutex<Option<mpsc::UnboundedSender<Value>>>,
}

impl Connect for Far {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        let (peer, other) = Peer::pair();
        let (sender, receiver) = mpsc::unbounded_channel();
        *self.0.to_host.lock().unwrap() = Some(sender);
        tokio::spawn(serve(peer, Arc::clone(&self.0), receiver));
        let (read, write) = tokio::io::split(other);
        Box::pin(async move { Stream::new(read, write).connect(inbox).await })
    }
}

impl Far {
    /// Changes a task. The server tells whoever listens.
    fn set(&self, id: &str, status: &str, more: &Value) {
        let task = task(id, status, more);
        self.0.tasks.lock().unwrap().insert(id.to_owned(), task.clone());
        if self.0.is_mute.load(Ordering::Relaxed) {
            return;
        }
        for (subscription, ids) in &*self.0.listens.lock().unwrap() {
            if !ids.iter().any(|listened| listened == id) {
                continue;
            }
            let mut params = task.clone();
            params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": subscription });
            let notification = json!({ "jsonrpc": "2.0", "method": "notifications/tasks", "params": params });
            let to_host = self.0.to_host.lock().unwrap();
            to_host.as_ref().expect("the host is connected").send(notification).expect("the host listens");
        }
    }
}

fn task(id: &str, status: &str, more: &Value) -> Value {
    let mut task = json!({
        "taskId": id, "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": null, "pollIntervalMs": 60_000,
    });
    for (key, value) in more.as_object().unwrap() {
        task[key] = value.clone();
    }
    task
}

async fn serve(mut peer: Peer, script: Arc<Script>, mut to_host: mpsc::UnboundedReceiver<Value>) {
    loop {
        let frame = tokio::select! {
            frame = peer.recv() => match frame {
                Ok(frame) => frame,
                Err(_) => return,
            },
            Some(notification) = to_host.recv() => {
                let _ = peer.send(notification).await;
                continue;
            }
        };
        let params = &frame["params"];
        let id = params["taskId"].as_str().unwrap_or_default().to_owned();
        let mut result = match frame["method"].as_str().unwrap_or_default() {
            "server/discover" => json!({
                "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                "capabilities": { "tools": {}, "extensions": { EXTENSION: {} } },
            }),
            "tools/list" => json!({
                "tools": [{ "name": "build", "inputSchema": { "type": "object" } }],
                "ttlMs": 60_000, "cacheScope": "private",
            }),
            "tools/call" => {
                let mut tasks = script.tasks.lock().unwrap();
                let id = format!("up-{}{}", tasks.len() + 1, script.suffix.lock().unwrap());
                let created = task(&id, "working", &json!({}));
                tasks.insert(id, created.clone());
                let mut created = created;
                created["resultType"] = json!("task");
                created
            }
            "tasks/get" => {
                let known = script.tasks.lock().unwrap().get(&id).cloned();
                let Some(task) = known else {
                    let error = json!({ "code": -32602, "message": format!("unknown task {id}") });
                    let _ = peer.send(json!({ "jsonrpc": "2.0", "id": frame["id"], "error": error })).await;
                    continue;
                };
                task
            }
            "tasks/cancel" => {
                script.cancelled.lock().unwrap().push(id);
                json!({})
            }
            "subscriptions/listen" => {
                let ids: Vec<String> =
                    serde_json::from_value(params["notifications"]["taskIds"].clone()).unwrap_or_default();
                let granted = if script.is_mute.load(Ordering::Relaxed) {
                    json!({})
                } else {
                    json!({ "taskIds": ids })
                };
                if !ids.is_empty() {
                    script.listens.lock().unwrap().push((frame["id"].clone(), ids));
                }
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": frame["id"] });
                let acknowledged = json!({ "_meta": meta, "notifications": granted });
                let _ = peer.notify("notifications/subscriptions/acknowledged", acknowledged).await;
                continue;
            }
            _ => continue,
        };
        if result.get("resultType").is_none() {
            result["resultType"] = json!("complete");
        }
        let _ = peer.reply(&frame, result).await;
    }
}

fn host(guard: Guard) -> (Host, ServerHandle, Far) {
    let far = Far::default();
    let host = Host::builder().add("far", Upstream::to(far.clone())).guard(guard).build();
    let handle = host.open(Server::new("gateway")).expect("the gateway can be built");
    (host, handle, far)
}

fn allowing() -> Guard {
    Guard::builder().policy(Policy::new([Rule::allow()])).build()
}

/// A client of 2026-07-28 with tasks.
fn caller(handle: &ServerHandle, principal: Option<&str>) -> Peer {
    let (peer, other) = Peer::pair();
    let (handle, principal) = (handle.clone(), principal.map(Arc::from));
    tokio::spawn(async move {
        let (read, write) = tokio::io::split(other);
        let _ = handle.serve_as(principal, read, write).await;
    });
    peer.capabilities(json!({ "extensions": { EXTENSION: {} } }))
}

/// Calls the tool, and returns the task that the call became.
async fn build(near: &mut Peer) -> Value {
    let answer = near.modern("tools/call", json!({ "name": "far__build" })).await.unwrap();
    assert_eq!(answer["result"]["resultType"], "task", "{answer}");
    answer["result"].clone()
}

fn id_of(task: &Value) -> &str {
    task["taskId"].as_str().expect("a task has an id")
}

/// Subscribes to tasks, and returns the tasks that the host acknowledges.
async fn listen(near: &mut Peer, ids: &[&str], capabilities: Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let params = json!({ "notifications": { "taskIds": ids }, "_meta": meta });
    near.start("subscriptions/listen", params).await.unwrap();
    let granted = near.recv_method("notifications/subscriptions/acknowledged").await.unwrap();
    granted["params"]["notifications"]["taskIds"].clone()
}

async fn heard(near: &mut Peer) -> Value {
    near.recv_method("notifications/tasks").await.unwrap()["params"].clone()
}

#[tokio::test]
async fn changes_of_tasks_are_sent_and_one_subscription_at_the_server_is_enough() {
    let (host, handle, far) = host(allowing());
    let mut near = caller(&handle, None);
    let (one, two) = (build(&mut near).await, build(&mut near).await);
    let granted =
        listen(&mut near, &[id_of(&one), id_of(&two)], json!({ "extensions": { EXTENSION: {} } })).await;
    assert_eq!(granted, json!([id_of(&one), id_of(&two)]));
    // The states at the beginning.
    for _ in 0..2 {
        assert_eq!(heard(&mut near).await["status"], "working");
    }
    let result = json!({ "content": [{ "type": "text", "text": "built" }] });
    far.set("up-2", "completed", &json!({ "result": result }));
    let done = heard(&mut near).await;
    assert_eq!((id_of(&done), &done["status"]), (id_of(&two), &json!("completed")), "{done}");
    assert_eq!(done["result"]["content"][0]["text"], "built");
    assert!(done["_meta"]["io.modelcontextprotocol/subscriptionId"].is_number(), "{done}");
    assert!(done.get("resultType").is_none(), "{done}");
    // It is what `tasks/get` returns.
    let mut got = near.modern("tasks/get", json!({ "taskId": id_of(&two) })).await.unwrap()["result"].take();
    got.as_object_mut().unwrap().retain(|key, _| key != "resultType" && key != "_meta");
    let mut sent = done.clone();
    sent.as_object_mut().unwrap().remove("_meta");
    assert_eq!(got, sent);

    far.set("up-1", "cancelled", &json!({}));
    let cancelled = heard(&mut near).await;
    assert_eq!((id_of(&cancelled), &cancelled["status"]), (id_of(&one), &json!("cancelled")));
    let listens = far.0.listens.lock().unwrap().clone();
    let mut listened: Vec<Vec<String>> = listens.into_iter().map(|(_, ids)| ids).collect();
    for ids in &mut listened {
        ids.sort();
    }
    assert_eq!(listened, [["up-1", "up-2"]]);
    host.close().await;
}

#[tokio::test]
async fn tasks_of_a_server_that_sends_no_changes_are_polled() {
    let (host, handle, far) = host(allowing());
    far.0.is_mute.store(true, Ordering::Relaxed);
    let mut near = caller(&handle, None);
    let one = build(&mut near).await;
    far.set("up-1", "working", &json!({ "pollIntervalMs": 1 }));
    let granted = listen(&mut near, &[id_of(&one)], json!({ "extensions": { EXTENSION: {} } })).await;
    assert_eq!(granted, json!([id_of(&one)]));
    assert_eq!(heard(&mut near).await["status"], "working");
    far.set("up-1", "failed", &json!({ "error": { "code": -32603, "message": "it broke" } }));
    let failed = heard(&mut near).await;
    assert_eq!((&failed["status"], &failed["error"]["message"]), (&json!("failed"), &json!("it broke")));
    host.close().await;
}

#[tokio::test]
async fn nobody_learns_of_tasks_of_others_by_subscribing() {
    let (host, handle, far) = host(allowing());
    let (mut ada, mut bob) = (caller(&handle, Some("ada")), caller(&handle, Some("bob")));
    let (hers, gone) = (build(&mut ada).await, build(&mut ada).await);
    far.0.tasks.lock().unwrap().remove("up-2");
    let tasks = json!({ "extensions": { EXTENSION: {} } });
    // Foreign, unknown, of the server, and never an id.
    let granted = listen(&mut bob, &[id_of(&hers), id_of(&gone), "up-1", "", "x"], tasks.clone()).await;
    assert_eq!(granted, json!([]));
    let granted = listen(&mut ada, &[id_of(&gone), id_of(&hers), "up-1", id_of(&hers)], tasks).await;
    assert_eq!(granted, json!([id_of(&hers)]));
    assert_eq!(id_of(&heard(&mut ada).await), id_of(&hers));
    assert!(bob.notifications().is_empty());

    // Without the extension the subscription is refused.
    let mut plain = caller(&handle, Some("ada")).capabilities(json!({}));
    let params = json!({ "notifications": { "taskIds": [id_of(&hers)] } });
    let refused = plain.modern("subscriptions/listen", params).await.unwrap();
    assert_eq!(refused["error"]["code"], -32021, "{refused}");

    // A rule that denies the tool by now ends it.
    host.guard().set_policy(Policy::new([Rule::deny()]));
    far.set("up-1", "completed", &json!({ "result": { "content": [] } }));
    let granted = listen(&mut ada, &[id_of(&hers)], json!({ "extensions": { EXTENSION: {} } })).await;
    assert_eq!(granted, json!([]));
    host.close().await;
    assert!(ada.notifications().iter().all(|frame| frame["params"]["status"] != "completed"));
}

#[tokio::test]
async fn no_task_is_promised_to_last_longer_than_the_keys() {
    let (host, handle, far) = host(allowing());
    let mut near = caller(&handle, None);
    // The server says that it keeps the task forever.
    let created = build(&mut near).await;
    assert_eq!(created["ttlMs"], 86_400_000);
    for (said, told) in [(json!(1000), 1000), (json!(u64::MAX / 2), 86_400_000), (json!(null), 86_400_000)] {
        far.set("up-1", "working", &json!({ "ttlMs": said }));
        let got = near.modern("tasks/get", json!({ "taskId": id_of(&created) })).await.unwrap();
        assert_eq!(got["result"]["ttlMs"], told, "{got}");
    }
    host.close().await;
}

#[tokio::test]
async fn an_id_that_would_not_fit_is_refused_and_its_task_cancelled() {
    let (host, handle, far) = host(allowing());
    let mut near = caller(&handle, None);
    *far.0.suffix.lock().unwrap() = "x".repeat(508);
    build(&mut near).await;
    *far.0.suffix.lock().unwrap() = "x".repeat(509);
    let refused = near.modern("tools/call", json!({ "name": "far__build" })).await.unwrap();
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("`far`") && message.contains("513 bytes"), "{message}");
    // Another request shows that the cancellation has arrived: the channel keeps the order.
    far.0.suffix.lock().unwrap().clear();
    build(&mut near).await;
    assert_eq!(far.0.cancelled.lock().unwrap().iter().map(String::len).collect::<Vec<_>>(), [513]);
    host.close().await;
}

#[tokio::test]
async fn every_request_about_a_task_is_a_line_of_the_audit_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let audit = Audit::open(AuditSettings::new(&path)).unwrap();
    let guard = Guard::builder().policy(Policy::new([Rule::allow()])).audit(audit.clone()).build();
    let (host, handle, far) = host(guard);
    let mut near = caller(&handle, Some("ada"));
    let created = build(&mut near).await;
    let id = json!({ "taskId": id_of(&created) });
    near.modern("tasks/get", id.clone()).await.unwrap();
    near.modern("tasks/cancel", id.clone()).await.unwrap();
    near.modern("tasks/get", json!({ "taskId": "up-1" })).await.unwrap();
    far.0.tasks.lock().unwrap().clear();
    near.modern("tasks/get", id.clone()).await.unwrap();
    host.guard().set_policy(Policy::new([Rule::deny()]));
    near.modern("tasks/get", id).await.unwrap();
    host.close().await;
    audit.flush();

    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("up-1") && !text.contains(id_of(&created)), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let task = lines.iter().find(|line| line["event"] == "call").unwrap()["task"].clone();
    assert!(task.as_str().is_some_and(|digest| digest.len() == 32), "{text}");
    let told: Vec<String> = lines
        .iter()
        .filter(|line| line["event"] == "task")
        .map(|line| {
            let known = if line["task"] == task { "known" } else { "other" };
            let text = |member: &str| line[member].as_str().unwrap_or("-").to_owned();
            let what = if line["decision"].is_null() { text("outcome") } else { text("decision") };
            format!("{} {} {} {known} {what}", text("server"), text("name"), text("method"))
        })
        .collect();
    assert_eq!(
        told,
        [
            "far build tasks/get known ok",
            "far build tasks/cancel known ok",
            "- - tasks/get other unknown task",
            "far build tasks/get known error -32602: unknown task: it does not exist, has expired, or belongs to another \
             caller",
            "far build tasks/get known deny",
        ]
    );
}
