//! Tasks of servers behind a host: waited for on behalf of callers that have none, and passed on to those that do.

use bowline_client::{
    Answer, BoxFuture, Client, ClientBuilder, Connect, Inbox, Result, Started, Stream, TaskHandle, Transport,
};
use bowline_host::{Host, Upstream};
use bowline_policy::{Guard, Policy, Rule};
use bowline_server::{Server, ServerHandle};
use bowline_testing::Peer;
use bowline_types::{Revision, TaskStatus, TaskSupport};
use serde_json::{Value, json};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::Notify;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A server of 2026-07-28 whose tool `build` always becomes a task, which asks for a name.
#[derive(Clone, Debug, Default)]
struct Far(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// The answer to the question, once there is one.
    answer: Mutex<Option<Value>>,
    /// How often the state was asked for.
    gets: Mutex<usize>,
    works_forever: AtomicBool,
    got: Notify,
    cancelled: Notify,
}

impl Connect for Far {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(ours);
        tokio::spawn(serve(Peer::over(read, write), Arc::clone(&self.0)));
        let (read, write) = tokio::io::split(theirs);
        Box::pin(async move { Stream::new(read, write).connect(inbox).await })
    }
}

async fn serve(mut peer: Peer, seen: Arc<Seen>) {
    while let Ok(frame) = peer.recv().await {
        let params = &frame["params"];
        let method = frame["method"].as_str().unwrap_or_default();
        let capabilities = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        let declares = capabilities["extensions"][EXTENSION].is_object();
        let refused = |reason: &str| Err((-32602, reason.to_owned()));
        let result = match method {
            "server/discover" => Ok(json!({
                "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                "capabilities": { "tools": {}, "extensions": { EXTENSION: {} } },
            })),
            "tools/list" => Ok(json!({
                "tools": [{ "name": "build", "inputSchema": { "type": "object" } }],
                "ttlMs": 60_000, "cacheScope": "private",
            })),
            "tools/call" if declares => {
                *seen.answer.lock().unwrap() = None;
                *seen.gets.lock().unwrap() = 0;
                Ok(task("working", json!({ "resultType": "task" })))
            }
            _ if method.starts_with("tasks/") && !declares => Err((-32021, "tasks are missing".to_owned())),
            _ if method.starts_with("tasks/") && params["taskId"] != "up-1" => refused("unknown task"),
            "tasks/get" => Ok(state(&seen)),
            "tasks/update" => {
                *seen.answer.lock().unwrap() = Some(params["inputResponses"]["q1"].clone());
                Ok(json!({}))
            }
            "tasks/cancel" => {
                seen.cancelled.notify_one();
                Ok(json!({}))
            }
            "subscriptions/listen" => {
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": frame["id"] });
                let acknowledged = json!({ "_meta": meta, "notifications": {} });
                let _ = peer.notify("notifications/subscriptions/acknowledged", acknowledged).await;
                continue;
            }
            _ if frame.get("id").is_none() => continue,
            _ => Err((-32601, "method not found".to_owned())),
        };
        let sent = match result {
            Ok(mut result) => {
                if result.get("resultType").is_none() {
                    result["resultType"] = json!("complete");
                }
                peer.reply(&frame, result).await
            }
            Err((code, message)) => {
                let error = json!({ "code": code, "message": message });
                peer.send(json!({ "jsonrpc": "2.0", "id": frame["id"], "error": error })).await
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

fn state(seen: &Seen) -> Value {
    let mut gets = seen.gets.lock().unwrap();
    *gets += 1;
    seen.got.notify_one();
    if seen.works_forever.load(Ordering::Relaxed) {
        return task("working", json!({}));
    }
    let schema =
        json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    let question =
        json!({ "method": "elicitation/create", "params": { "message": "who", "requestedSchema": schema } });
    match (&*seen.answer.lock().unwrap(), *gets) {
        (Some(answer), _) => {
            let text = match answer["action"].as_str() {
                Some("accept") => {
                    format!("built for {}", answer["content"]["name"].as_str().unwrap_or_default())
                }
                _ => answer["action"].to_string(),
            };
            task("completed", json!({ "result": { "content": [{ "type": "text", "text": text }] } }))
        }
        (None, 1) => task("working", json!({ "statusMessage": "warming up" })),
        (None, _) => task("input_required", json!({ "inputRequests": { "q1": question } })),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the values are written where they are used")]
fn task(status: &str, more: Value) -> Value {
    let mut task = json!({
        "taskId": "up-1", "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": 60_000, "pollIntervalMs": 50,
    });
    for (key, value) in more.as_object().unwrap() {
        task[key] = value.clone();
    }
    task
}

fn host() -> (Host, ServerHandle, Far) {
    let far = Far::default();
    let guard = Guard::builder().policy(Policy::new([Rule::allow()])).build();
    let host = Host::builder().add("far", Upstream::to(far.clone())).guard(guard).build();
    let handle = host.open(Server::new("gateway")).expect("the gateway can be built");
    (host, handle, far)
}

fn answering() -> ClientBuilder {
    Client::builder().on_ask(|ask| async move {
        assert!(ask.message.contains("who"), "{}", ask.message);
        Answer::accept(json!({ "name": "Ada" }))
    })
}

async fn started(client: &Client) -> TaskHandle {
    match client.call("far__build", ()).start().await.unwrap() {
        Started::Task(task) => task,
        other => panic!("expected a task, got {other:?}"),
    }
}

#[tokio::test]
async fn the_host_waits_for_callers_that_have_no_tasks() {
    for revision in Revision::ALL {
        let (host, handle, far) = host();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let client = answering().revisions([revision]).connect(handle).await.unwrap();
        let call = client.call("far__build", ()).progress({
            let heard = Arc::clone(&heard);
            move |progress| heard.lock().unwrap().push(progress.message)
        });
        let expected = if revision >= Revision::V2025_06_18 { "built for Ada" } else { "\"cancel\"" };
        assert_eq!(call.await.unwrap().text(), expected, "{revision}");
        assert!(far.0.answer.lock().unwrap().is_some());
        // What the task says is progress for its caller, where progress has a message.
        if revision >= Revision::V2025_03_26 {
            assert_eq!(*heard.lock().unwrap(), [Some("warming up".to_owned())], "{revision}");
        }
        client.close().await;
        host.close().await;
    }
}

#[tokio::test]
async fn a_caller_that_gives_up_cancels_the_task_that_the_host_waits_for() {
    for revision in Revision::ALL {
        let (host, handle, far) = host();
        far.0.works_forever.store(true, Ordering::Relaxed);
        let client = answering().revisions([revision]).connect(handle).await.unwrap();
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.call("far__build", ()).await }
        });
        far.0.got.notified().await;
        call.abort();
        far.0.cancelled.notified().await;
        client.close().await;
        host.close().await;
    }
}

#[tokio::test]
async fn a_caller_with_tasks_gets_the_task_under_an_id_of_the_host() {
    let (host, handle, far) = host();
    let client = answering().tasks().connect(handle.clone()).await.unwrap();
    let task = started(&client).await;
    assert!(!task.id().contains("up-1"), "{}", task.id());
    assert_eq!(task.status().await.unwrap().task.status, TaskStatus::Working);
    // Any client of the same principal can go on.
    let other = answering().tasks().connect(handle).await.unwrap();
    let continued = other.task(task.id());
    let asking = continued.status().await.unwrap();
    assert_eq!(asking.task.status, TaskStatus::InputRequired);
    assert_eq!(asking.questions.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["q1"]);
    assert_eq!(continued.wait().await.unwrap().text(), "built for Ada");
    assert_eq!(task.wait().await.unwrap().text(), "built for Ada");

    task.cancel().await.unwrap();
    far.0.cancelled.notified().await;
    for unknown in ["up-1", "", "AAAA"] {
        assert!(client.task(unknown).status().await.unwrap_err().is_task_gone(), "{unknown}");
    }
    host.close().await;
}

#[tokio::test]
async fn a_task_passes_the_policy_with_every_request() {
    let (host, handle, _far) = host();
    let client = answering().tasks().connect(handle).await.unwrap();
    let task = started(&client).await;
    host.guard().set_policy(Policy::new([Rule::deny()]));
    let error = task.status().await.unwrap_err();
    assert!(error.is_rpc() && !error.is_task_gone(), "{error}");
    assert!(task.cancel().await.is_err());
    host.guard().set_policy(Policy::new([Rule::allow()]));
    assert_eq!(task.wait().await.unwrap().text(), "built for Ada");
    host.close().await;
}

#[tokio::test]
async fn a_question_that_the_caller_of_a_task_cannot_answer_is_cancelled() {
    let (host, handle, far) = host();
    let client = Client::builder().tasks().connect(handle).await.unwrap();
    let task = started(&client).await;
    assert_eq!(task.wait().await.unwrap().text(), "\"cancel\"");
    assert_eq!(far.0.answer.lock().unwrap().as_ref().unwrap()["action"], "cancel");
    host.close().await;
}

/// A server of 2025-11-25 whose tool `build` has to be called as a task, which asks while its result is fetched.
#[derive(Clone, Debug)]
struct Older;

impl Connect for Older {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(ours);
        tokio::spawn(serve_2025(Peer::over(read, write)));
        let (read, write) = tokio::io::split(theirs);
        Box::pin(async move { Stream::new(read, write).connect(inbox).await })
    }
}

async fn serve_2025(mut peer: Peer) {
    let mut waiting = None;
    while let Ok(frame) = peer.recv().await {
        let params = &frame["params"];
        let mut task = task("working", json!({ "ttl": 60_000, "pollInterval": 50 }));
        let result = match frame["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25", "serverInfo": { "name": "older", "version": "1" },
                "capabilities": { "tools": {}, "tasks": { "cancel": {}, "requests": { "tools": { "call": {} } } } },
            }),
            Some("tools/list") => json!({ "tools": [{
                "name": "build", "inputSchema": { "type": "object" },
                "execution": { "taskSupport": "required" },
            }] }),
            Some("tools/call") if params["task"].is_object() => json!({ "task": task }),
            Some("tasks/get") => {
                task["status"] = json!("input_required");
                task
            }
            Some("tasks/result") => {
                waiting = Some(frame.clone());
                let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
                let meta = json!({ "io.modelcontextprotocol/related-task": { "taskId": "up-1" } });
                let params = json!({ "message": "who", "requestedSchema": schema, "_meta": meta });
                let request =
                    json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params });
                let _ = peer.send(request).await;
                continue;
            }
            None => {
                let Some(waiting) = waiting.take() else { continue };
                let answer = &frame["result"];
                let name = answer["content"]["name"].as_str().unwrap_or_default();
                let text = format!("{} {name}", answer["action"].as_str().unwrap_or_default());
                let _ = peer.reply(&waiting, json!({ "content": [{ "type": "text", "text": text }] })).await;
                continue;
            }
            Some(_) if frame.get("id").is_none() => continue,
            Some(_) => {
                let error = json!({ "code": -32601, "message": "method not found" });
                let _ = peer.send(json!({ "jsonrpc": "2.0", "id": frame["id"], "error": error })).await;
                continue;
            }
        };
        let _ = peer.reply(&frame, result).await;
    }
}

#[tokio::test]
async fn a_tool_of_2025_11_25_that_needs_a_task_can_be_called_by_everybody() {
    for revision in Revision::ALL {
        let guard = Guard::builder().policy(Policy::new([Rule::allow()])).build();
        let host = Host::builder().add("far", Upstream::to(Older)).guard(guard).build();
        let handle = host.open(Server::new("gateway")).expect("the gateway can be built");
        let client = answering().revisions([revision]).connect(handle).await.unwrap();
        let listed = client.tools().await.unwrap();
        // Everybody may call it without a task; callers of its revision also with one.
        let execution = listed[0].execution.as_ref().and_then(|execution| execution.task_support.clone());
        let optional = (revision == Revision::V2025_11_25).then_some(TaskSupport::Optional);
        assert_eq!(execution, optional, "{revision}");
        let expected = if revision >= Revision::V2025_06_18 { "accept Ada" } else { "cancel " };
        assert_eq!(client.call("far__build", ()).await.unwrap().text(), expected, "{revision}");
        client.close().await;
        host.close().await;
    }
}
