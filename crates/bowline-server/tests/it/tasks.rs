//! Tasks of the extension of 2026-07-28.

use crate::wire::Peer;
use bowline_server::{Ctx, Error, Result, Server, ServerHandle, Task, Tasks, Tool};
use bowline_store::Store;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Who {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Sure {
    sure: bool,
}

/// A server with tools of every kind.
pub(crate) fn server() -> Server {
    Server::new("tasks")
        .tool(Tool::new("plain").handler(async || "plain"))
        .tool(Tool::new("quick").task(Task::now()).handler(async || "done"))
        .tool(Tool::new("endless").task(Task::now()).handler(async || std::future::pending::<String>().await))
        .tool(Tool::new("required").task(Task::now().required()).handler(async || "done"))
        .tool(Tool::new("wrong").task(Task::now()).handler(async || Err::<String, _>(Error::tool("no luck"))))
        .tool(
            Tool::new("broken")
                .task(Task::now())
                .handler(async || Err::<String, _>(Error::invalid_params("odd"))),
        )
        .tool(Tool::new("panics").task(Task::now()).handler(async || -> String { panic!("ouch") }))
        .tool(Tool::new("confirm").task(Task::now()).handler(async |ctx: Ctx| -> Result<String> {
            let Sure { sure } = ctx.ask("Sure?").await?.accepted()?;
            Ok(format!("sure: {sure}"))
        }))
        .tool(Tool::new("two").task(Task::now()).handler(async |ctx: Ctx| -> Result<String> {
            let (who, sure) = tokio::join!(ctx.ask::<Who>("Who?"), ctx.ask::<Sure>("Sure?"));
            let (who, sure) = (who?.accepted()?, sure?.accepted()?);
            let again: Who = ctx.ask("Who again?").await?.accepted()?;
            Ok(format!("{} {} {}", who.name, sure.sure, again.name))
        }))
        .tool(Tool::new("later").task(Task::later().required()).handler(async |ctx: Ctx| -> Result<String> {
            let Who { name } = ctx.ask("Who?").await?.accepted()?;
            ctx.task().await?;
            let Sure { sure } = ctx.ask("Sure?").await?.accepted()?;
            Ok(format!("{name} {sure} {}", ctx.task_id().is_some()))
        }))
        .tool(Tool::new("report").task(Task::now()).handler(async |ctx: Ctx| -> Result<String> {
            ctx.progress_with(1, 3, "halfway");
            ctx.info("not sent for tasks");
            std::future::pending().await
        }))
}

/// A client that declares tasks.
pub(crate) fn peer(server: &ServerHandle, principal: Option<&str>) -> Peer {
    let mut peer = Peer::of(server, principal);
    peer.capabilities = json!({ "elicitation": {}, "extensions": { EXTENSION: {} } });
    peer
}

/// Calls a tool, which becomes a task.
pub(crate) async fn create(peer: &mut Peer, tool: &str) -> Value {
    let reply = peer.modern("tools/call", json!({ "name": tool })).await;
    assert_eq!(reply["result"]["resultType"], "task", "{reply}");
    reply["result"].clone()
}

pub(crate) async fn get(peer: &mut Peer, id: &Value) -> Value {
    peer.modern("tasks/get", json!({ "taskId": id })).await["result"].clone()
}

/// Waits until a task has a status. Time is paused, so waiting takes none.
pub(crate) async fn until(peer: &mut Peer, id: &Value, status: &str) -> Value {
    for _ in 0..200 {
        let task = get(peer, id).await;
        if task["status"] == status {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the task never became {status}: {}", get(peer, id).await);
}

#[tokio::test(start_paused = true)]
async fn a_call_becomes_a_task_and_its_result_is_read_later() {
    // proves: TASKX-02, TASKX-07, TASKX-08, TASKX-09, TASKX-10, TASKX-11, TASKX-18, TASKX-20, TASKX-52, TASKX-59
    let mut peer = peer(&server().build().unwrap(), None);
    let discovered = peer.modern("server/discover", json!({})).await;
    let capabilities = &discovered["result"]["capabilities"];
    assert_eq!(capabilities["extensions"][EXTENSION], json!({}));
    assert_eq!(capabilities.get("tasks"), None);

    let created = create(&mut peer, "quick").await;
    let mut members: Vec<_> = created.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    assert_eq!(
        members,
        ["_meta", "createdAt", "lastUpdatedAt", "pollIntervalMs", "resultType", "status", "taskId", "ttlMs"]
    );
    assert_eq!(created["status"], "working");
    assert_eq!(created["ttlMs"], 3_600_000);
    // At once, before anything can have run.
    let first = get(&mut peer, &created["taskId"]).await;
    assert_eq!(first["taskId"], created["taskId"]);
    let done = until(&mut peer, &created["taskId"], "completed").await;
    assert_eq!(done["resultType"], "complete");
    assert_eq!(done["result"], json!({ "content": [{ "type": "text", "text": "done" }] }));
    assert_eq!(done.get("error"), None);
    assert_eq!(done.get("inputRequests"), None);
    // It stays.
    tokio::time::sleep(Duration::from_secs(3000)).await;
    assert_eq!(get(&mut peer, &created["taskId"]).await["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn only_a_request_that_declares_the_extension_gets_a_task() {
    // proves: TASKX-03, TASKX-06, TASKX-39, TASKX-45, TASKX-50, TASKX-51, TASKX-53
    let mut peer = peer(&server().build().unwrap(), None);
    let created = create(&mut peer, "quick").await;
    let legacy_only = json!({ "elicitation": {}, "tasks": { "requests": {} } });
    for capabilities in [json!({ "elicitation": {} }), legacy_only] {
        peer.capabilities = capabilities;
        let inline = peer.modern("tools/call", json!({ "name": "quick", "task": { "ttl": 1 } })).await;
        assert_eq!(inline["result"]["resultType"], "complete");
        assert_eq!(inline["result"]["content"][0]["text"], "done");
        let required = json!({ "extensions": { EXTENSION: {} } });
        for (method, params) in [
            ("tools/call", json!({ "name": "required", "arguments": { "unexpected": 1 } })),
            ("tasks/get", json!({ "taskId": created["taskId"] })),
            ("tasks/get", json!({ "taskId": "nonsense" })),
            ("tasks/update", json!({ "taskId": created["taskId"], "inputResponses": {} })),
            ("tasks/cancel", json!({ "taskId": created["taskId"] })),
            ("subscriptions/listen", json!({ "notifications": { "taskIds": [created["taskId"]] } })),
        ] {
            let refused = peer.modern(method, params).await;
            assert_eq!(refused["error"]["code"], -32021, "{method}: {refused}");
            assert_eq!(refused["error"]["data"]["requiredCapabilities"], required, "{method}");
        }
    }
    peer.capabilities = json!({ "extensions": { EXTENSION: {} } });
    for method in ["tasks/result", "tasks/list"] {
        let refused = peer.modern(method, json!({ "taskId": created["taskId"] })).await;
        assert_eq!(refused["error"]["code"], -32601);
    }
    // The caller does not decide in this revision.
    let plain = peer.modern("tools/call", json!({ "name": "plain", "task": {} })).await;
    assert_eq!(plain["result"]["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn failures_are_what_the_call_would_have_returned() {
    // proves: TASKX-40, TASKX-42, TASKX-41
    let mut peer = peer(&server().build().unwrap(), None);
    let wrong = create(&mut peer, "wrong").await;
    let wrong = until(&mut peer, &wrong["taskId"], "completed").await;
    assert_eq!(wrong["result"]["isError"], true);
    assert_eq!(wrong["result"]["content"][0]["text"], "no luck");
    let broken = create(&mut peer, "broken").await;
    let broken = until(&mut peer, &broken["taskId"], "failed").await;
    assert_eq!(broken["error"], json!({ "code": -32602, "message": "odd" }));
    assert_eq!(broken["statusMessage"], "odd");
    let panics = create(&mut peer, "panics").await;
    let panics = until(&mut peer, &panics["taskId"], "failed").await;
    assert_eq!(panics["error"]["message"], "`panics` panicked");
}

#[tokio::test(start_paused = true)]
async fn questions_wait_in_the_task_and_are_answered_in_parts() {
    // proves: TASKX-19, TASKX-28, TASKX-29, TASKX-30, TASKX-31, TASKX-32
    let mut peer = peer(&server().build().unwrap(), None);
    let id = create(&mut peer, "two").await["taskId"].clone();
    let asking = until(&mut peer, &id, "input_required").await;
    let open = |task: &Value| -> Vec<String> {
        task["inputRequests"].as_object().map(|open| open.keys().cloned().collect()).unwrap_or_default()
    };
    assert_eq!(open(&asking), ["q1", "q2"]);
    assert_eq!(asking["inputRequests"]["q1"]["params"]["message"], "Who?");
    let accept = |content: Value| json!({ "action": "accept", "content": content });
    let update = |answers: Value| json!({ "taskId": id, "inputResponses": answers });
    // A wrong answer is refused, and so is what comes with it.
    let wrong = update(json!({ "q1": accept(json!({ "name": "Ada" })), "q2": accept(json!({ "sure": 1 })) }));
    let refused = peer.modern("tasks/update", wrong).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(open(&get(&mut peer, &id).await), ["q1", "q2"]);
    let first = update(json!({ "q1": accept(json!({ "name": "Ada" })), "q99": accept(json!({})) }));
    let acknowledged = peer.modern("tasks/update", first.clone()).await;
    let mut result = acknowledged["result"].clone();
    result.as_object_mut().unwrap().remove("_meta");
    assert_eq!(result, json!({ "resultType": "complete" }));
    let half = get(&mut peer, &id).await;
    assert_eq!((half["status"].as_str(), open(&half)), (Some("input_required"), vec!["q2".to_owned()]));
    // Answered before: ignored.
    assert!(peer.modern("tasks/update", first).await.get("result").is_some());
    peer.modern("tasks/update", update(json!({ "q2": accept(json!({ "sure": true })) }))).await;
    let again = until(&mut peer, &id, "input_required").await;
    assert_eq!(open(&again), ["q3"]);
    peer.modern("tasks/update", update(json!({ "q3": accept(json!({ "name": "Bob" })) }))).await;
    let done = until(&mut peer, &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Ada true Bob");
    // Too late, and acknowledged all the same.
    let late = peer.modern("tasks/update", update(json!({ "q3": accept(json!({ "name": "Eve" })) }))).await;
    assert!(late.get("result").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_handler_asks_first_and_becomes_a_task_later() {
    // proves: TASKX-13
    let mut peer = peer(&server().build().unwrap(), None);
    let asked = peer.modern("tools/call", json!({ "name": "later" })).await;
    assert_eq!(asked["result"]["resultType"], "input_required");
    assert_eq!(asked["result"].get("taskId"), None);
    let answers = json!({ "q0": { "action": "accept", "content": { "name": "Ada" } } });
    let again = json!({ "name": "later", "requestState": asked["result"]["requestState"], "inputResponses": answers });
    let created = peer.modern("tools/call", again).await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    assert_eq!(created["result"].get("requestState"), None);
    let id = created["result"]["taskId"].clone();
    let asking = until(&mut peer, &id, "input_required").await;
    assert_eq!(asking["inputRequests"]["q1"]["params"]["message"], "Sure?");
    let answers = json!({ "q1": { "action": "accept", "content": { "sure": true } } });
    peer.modern("tasks/update", json!({ "taskId": id, "inputResponses": answers })).await;
    let done = until(&mut peer, &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Ada true true");
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_becomes_a_task_while_it_runs() {
    let runs = Arc::new(AtomicUsize::new(0));
    let go = Arc::new(Notify::new());
    let (counted, waiting) = (Arc::clone(&runs), Arc::clone(&go));
    let slow = Tool::new("slow").task(Task::after(Duration::from_secs(2))).handler(move |ctx: Ctx| {
        let (counted, waiting) = (Arc::clone(&counted), Arc::clone(&waiting));
        async move {
            counted.fetch_add(1, Ordering::Relaxed);
            let before: u32 = ctx.once("before", async { Ok(1) }).await?;
            waiting.notified().await;
            let after: u32 = ctx.once("after", async { Ok(2) }).await?;
            Ok::<_, Error>(format!("{before} {after} {}", ctx.task_id().is_some()))
        }
    });
    let mut peer = peer(&Server::new("s").tool(slow).build().unwrap(), None);
    let id = create(&mut peer, "slow").await["taskId"].clone();
    assert_eq!(get(&mut peer, &id).await["status"], "working");
    go.notify_one();
    let done = until(&mut peer, &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "1 2 true");
    assert_eq!(runs.load(Ordering::Relaxed), 1, "the running future goes on");
    // One that is quick stays a call.
    go.notify_one();
    let quick = peer.modern("tools/call", json!({ "name": "slow" })).await;
    assert_eq!(quick["result"]["content"][0]["text"], "1 2 false");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_runs_while_its_call_becomes_a_task_is_recorded() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let slow = Tool::new("slow").task(Task::after(Duration::from_secs(2))).handler(move |ctx: Ctx| {
        let counted = Arc::clone(&counted);
        async move {
            let before = ctx.step_id("x");
            let step = async {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(5)).await;
                Ok(before.clone())
            };
            let first: String = ctx.once("slow", step).await?;
            let Sure { sure } = ctx.ask("Sure?").await?.accepted()?;
            Ok::<_, Error>(format!("{sure} {}", first == ctx.step_id("x") && before == first))
        }
    });
    let mut peer = peer(&Server::new("s").tool(slow).build().unwrap(), None);
    let id = create(&mut peer, "slow").await["taskId"].clone();
    let asking = until(&mut peer, &id, "input_required").await;
    let key = asking["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let answer = json!({ "action": "accept", "content": { "sure": true } });
    peer.modern("tasks/update", json!({ "taskId": id, "inputResponses": { key: answer } })).await;
    let done = until(&mut peer, &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "true true");
    assert_eq!(runs.load(Ordering::Relaxed), 1, "the step has a value");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_stays_cancelled_and_its_work_stops() {
    // proves: TASKX-35, TASK-45
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&dropped);
    let endless = Tool::new("endless").task(Task::now()).handler(move || {
        let guard = Dropped(Arc::clone(&counted));
        async move {
            let _guard = guard;
            std::future::pending::<String>().await
        }
    });
    let mut peer = peer(&Server::new("s").tool(endless).build().unwrap(), None);
    let id = create(&mut peer, "endless").await["taskId"].clone();
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..2 {
        let mut acknowledged = peer.modern("tasks/cancel", json!({ "taskId": id })).await["result"].clone();
        acknowledged.as_object_mut().unwrap().remove("_meta");
        assert_eq!(acknowledged, json!({ "resultType": "complete" }));
        assert_eq!(get(&mut peer, &id).await["status"], "cancelled");
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn tasks_of_others_do_not_exist() {
    // proves: TASKX-37, TASKX-38, TASKX-56, TASKX-57, TASKX-44, TASK-54
    let server = server().build().unwrap();
    let (mut ada, mut bob) = (peer(&server, Some("ada")), peer(&server, Some("bob")));
    let id = create(&mut ada, "confirm").await["taskId"].clone();
    assert_eq!(id.as_str().unwrap().len(), 32, "128 random bits");
    until(&mut ada, &id, "input_required").await;
    let answers = json!({ "q1": { "action": "accept", "content": { "sure": true } } });
    let text = |id: &str| format!("unknown task `{id}`; it may have expired");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for named in [id.as_str().unwrap(), "never-existed", "../../etc", ""] {
            let refused = bob.modern(method, json!({ "taskId": named, "inputResponses": answers })).await;
            assert_eq!(refused["error"]["code"], -32602, "{method} {named}: {refused}");
            assert_eq!(refused["error"]["message"], text(named));
        }
    }
    let filter = json!({ "notifications": { "taskIds": [id, "nonsense"] }, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": bob.capabilities,
    } });
    bob.start("subscriptions/listen", filter.clone()).await;
    assert_eq!(bob.recv().await["params"]["notifications"], json!({ "taskIds": [] }));
    ada.start("subscriptions/listen", filter).await;
    assert_eq!(ada.recv().await["params"]["notifications"], json!({ "taskIds": [id] }));
    assert_eq!(get(&mut ada, &id).await["status"], "input_required");
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_receives_what_get_would_return() {
    // proves: TASKX-43, TASKX-44, TASKX-46, TASKX-47
    let mut peer = peer(&server().build().unwrap(), None);
    let id = create(&mut peer, "confirm").await["taskId"].clone();
    until(&mut peer, &id, "input_required").await;
    let listen = peer
        .start(
            "subscriptions/listen",
            json!({ "notifications": { "taskIds": [id] }, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": peer.capabilities,
        } }),
        )
        .await;
    let acknowledged = peer.recv().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"], json!({ "taskIds": [id] }));
    let compare = |received: Value, got: &Value| {
        assert_eq!(received["method"], "notifications/tasks");
        let (mut received, mut got) = (received["params"].clone(), got.clone());
        assert_eq!(received["_meta"], json!({ "io.modelcontextprotocol/subscriptionId": listen }));
        for value in [&mut received, &mut got] {
            for member in ["_meta", "resultType", "pollIntervalMs"] {
                value.as_object_mut().unwrap().remove(member);
            }
        }
        assert_eq!(received, got);
    };
    let received = peer.recv().await;
    let got = get(&mut peer, &id).await;
    compare(received, &got);
    let answers = json!({ "q1": { "action": "accept", "content": { "sure": true } } });
    peer.modern("tasks/update", json!({ "taskId": id, "inputResponses": answers })).await;
    let done = until(&mut peer, &id, "completed").await;
    loop {
        let received = peer.recv().await;
        if received["params"]["status"] == "completed" {
            compare(received, &done);
            break;
        }
        assert_eq!(received["params"]["status"], "working");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_the_status_of_a_task() {
    let mut peer = peer(&server().build().unwrap(), None);
    let id = create(&mut peer, "report").await["taskId"].clone();
    for _ in 0..100 {
        let task = get(&mut peer, &id).await;
        if task["statusMessage"] == "halfway" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the status is not shown");
}

#[tokio::test(start_paused = true)]
async fn a_task_expires_and_is_forgotten_later() {
    // proves: TASKX-22, TASK-57
    let tasks = Tasks::new(Store::memory()).ttl(Duration::from_secs(60));
    let mut peer = peer(&server().tasks(tasks).build().unwrap(), None);
    let id = create(&mut peer, "endless").await["taskId"].clone();
    tokio::time::sleep(Duration::from_secs(61)).await;
    let expired = get(&mut peer, &id).await;
    assert_eq!(expired["status"], "failed");
    assert_eq!(expired["error"]["code"], -32603);
    assert_eq!(expired["error"]["message"], "the task expired: `endless@1` did not end within 60000 ms");
    tokio::time::sleep(Duration::from_secs(16 * 60)).await;
    let expired = peer.modern("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(expired["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn the_tasks_of_a_caller_are_limited() {
    // proves: TASK-57
    let tasks = Tasks::new(Store::memory()).per_principal(3).concurrency(2);
    let server = server().tasks(tasks).build().unwrap();
    let (mut ada, mut bob) = (peer(&server, Some("ada")), peer(&server, Some("bob")));
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(create(&mut ada, "endless").await["taskId"].clone());
    }
    let refused = ada.modern("tools/call", json!({ "name": "endless" })).await;
    assert_eq!(refused["error"]["code"], -32603);
    assert_eq!(refused["error"]["message"], "you have 3 unfinished tasks; wait for one to end");
    assert!(refused["error"]["data"]["retryAfterMs"].as_u64().unwrap() >= 5000);
    create(&mut bob, "endless").await;
    ada.modern("tasks/cancel", json!({ "taskId": ids[0] })).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    create(&mut ada, "endless").await;
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_too_large_fails_with_advice_and_a_large_one_is_kept_apart() {
    let sized = |bytes: usize| {
        Tool::new(format!("b{bytes}")).task(Task::now()).handler(move || async move { "x".repeat(bytes) })
    };
    let tasks = Tasks::new(Store::memory()).result_bytes(100_000);
    let server = Server::new("s").tool(sized(50_000)).tool(sized(200_000)).tasks(tasks).build().unwrap();
    let mut peer = peer(&server, None);
    let id = create(&mut peer, "b50000").await["taskId"].clone();
    let done = until(&mut peer, &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"].as_str().unwrap().len(), 50_000);
    let id = create(&mut peer, "b200000").await["taskId"].clone();
    let failed = until(&mut peer, &id, "failed").await;
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(
        message.ends_with("more than the 100000 allowed; return a `resource_link` to it instead"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_does_not_decide_how_large_a_record_is() {
    let mut peer = peer(&server().build().unwrap(), None);
    let declared = peer.capabilities.clone();
    peer.capabilities["experimental"] = json!({ "x": { "y": "z".repeat(10_000) } });
    let refused = peer.modern("tools/call", json!({ "name": "quick" })).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("more than the 8192 allowed"), "{message}");
    // As a plain call it needs no record.
    let plain = peer.modern("tools/call", json!({ "name": "plain" })).await;
    assert_eq!(plain["result"]["content"][0]["text"], "plain");
    peer.capabilities = declared;
    create(&mut peer, "quick").await;
}

#[tokio::test(start_paused = true)]
async fn large_arguments_reach_the_handler() {
    #[derive(Deserialize, JsonSchema)]
    struct Text {
        text: String,
    }
    let length =
        Tool::new("length").task(Task::now()).handler(async |Text { text }: Text| text.len().to_string());
    let mut peer = peer(&Server::new("s").tool(length).build().unwrap(), None);
    let arguments = json!({ "text": "x".repeat(100_000) });
    let created = peer.modern("tools/call", json!({ "name": "length", "arguments": arguments })).await;
    let done = until(&mut peer, &created["result"]["taskId"], "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "100000");
}
