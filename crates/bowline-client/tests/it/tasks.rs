//! Tasks of 2026-07-28, where the server decides that a call becomes a task.

mod questions;
mod updates;

use crate::support::*;
use bowline_client::{Answer, Client, ClientBuilder, Started, TaskHandle};
use bowline_types::{
    CreateMessageParams, CreateMessageResult, InputResponses, RawJson, Role, Root, TaskStatus,
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn declared() -> Value {
    json!({ "tools": {}, "extensions": { EXTENSION: {} } })
}

async fn connected(builder: ClientBuilder) -> (Client, Peer) {
    connect(builder.tasks(), V2026_07_28, declared()).await
}

/// A task in the extension's format, with more members.
#[expect(clippy::needless_pass_by_value, reason = "the values are written where they are used")]
fn task(kind: &str, status: &str, more: Value) -> Value {
    let mut task = json!({
        "resultType": kind, "taskId": "t1", "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": 60_000, "pollIntervalMs": 2000,
    });
    for (key, value) in more.as_object().unwrap() {
        task[key] = value.clone();
    }
    task
}

fn created() -> Value {
    task("task", "working", json!({}))
}

fn state(status: &str, more: Value) -> Value {
    task("complete", status, more)
}

fn completed(text: &str) -> Value {
    state("completed", json!({ "result": text_result(text) }))
}

fn question(message: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    json!({ "method": "elicitation/create", "params": { "message": message, "requestedSchema": schema } })
}

/// Starts a call that becomes a task.
async fn started(client: &Client, peer: &mut Peer) -> TaskHandle {
    let (started, ()) = both(client.call("index", ()).start(), async {
        let call = peer.expect("tools/call").await;
        peer.reply(&call, created()).await;
    })
    .await;
    match started.unwrap() {
        Started::Task(task) => task,
        other => panic!("expected a task, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_its_task_at_the_interval_of_the_server() {
    // proves: TASKX-01, TASKX-04, TASKX-14, TASKX-16, EXT-04
    let (client, mut peer) = connected(Client::builder()).await;
    let (result, ()) = both(client.call("index", ()), async {
        let start = Instant::now();
        let waited = || start.elapsed().as_millis();
        let call = peer.expect("tools/call").await;
        let declared = &call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
        assert_eq!(declared, &json!({ EXTENSION: {} }));
        assert!(call["params"].get("task").is_none(), "{call}");
        peer.reply(&call, created()).await;
        let get = peer.expect("tasks/get").await;
        assert_eq!(get["params"]["taskId"], "t1");
        assert!(
            get["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"][EXTENSION]
                .is_object()
        );
        // The interval also counts before the first request, and may change.
        assert_eq!(waited(), 2000);
        peer.reply(&get, state("working", json!({ "pollIntervalMs": 5000 }))).await;
        let get = peer.expect("tasks/get").await;
        assert_eq!(waited(), 7000);
        // The examples of the extension have this type, although its text says `complete`.
        peer.reply(&get, task("task", "working", json!({}))).await;
        let get = peer.expect("tasks/get").await;
        assert_eq!(waited(), 9000);
        peer.reply(&get, completed("indexed")).await;
        peer.quiet().await;
    })
    .await;
    assert_eq!(result.unwrap().text(), "indexed");

    // A result that is not a task is a result.
    let (result, ()) = both(client.call("index", ()), async {
        let call = peer.expect("tools/call").await;
        peer.reply(&call, json!({ "resultType": "complete", "content": [] })).await;
    })
    .await;
    assert!(result.unwrap().content.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_task_is_the_end_of_the_call() {
    let (client, mut peer) = connected(Client::builder()).await;
    let failed = json!({ "error": { "code": -32050, "message": "no disk" }, "statusMessage": "stopped" });
    let tool_failed = json!({ "content": [{ "type": "text", "text": "bad input" }], "isError": true });
    let ends = [
        (state("failed", failed), "the server returned an error: no disk (-32050)"),
        (
            state("failed", json!({ "statusMessage": "stopped" })),
            "the server returned an error: stopped (-32603)",
        ),
        (state("cancelled", json!({})), "task `t1` was cancelled"),
        (
            state("completed", json!({})),
            "the result of `tasks/get` violates the protocol: the task is completed, but `result` is missing (task `t1`)",
        ),
        (state("completed", json!({ "result": tool_failed })), "bad input"),
    ];
    for (end, expected) in ends {
        let (result, ()) = both(client.call("index", ()), async {
            let call = peer.expect("tools/call").await;
            peer.reply(&call, created()).await;
            let get = peer.expect("tasks/get").await;
            peer.reply(&get, end.clone()).await;
        })
        .await;
        let error = result.and_then(bowline_client::ToolResult::ok).unwrap_err();
        assert_eq!(error.to_string(), expected, "{end}");
        if end["status"] == "completed" && end.get("result").is_none() {
            // A task that cannot be followed is cancelled, because nobody else knows of it.
            assert_eq!(peer.expect("tasks/cancel").await["params"]["taskId"], "t1");
        }
    }
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn questions_are_shown_and_answered_once() {
    // proves: TASKX-23, TASKX-24, TASKX-26, TASKX-27, TASKX-33
    let shown = Arc::new(Mutex::new(Vec::new()));
    let handler = {
        let shown = Arc::clone(&shown);
        move |ask: bowline_client::Ask| {
            shown.lock().unwrap().push(ask.message.clone());
            async move {
                // The user takes longer than the polling interval.
                tokio::time::sleep(Duration::from_secs(3)).await;
                Answer::accept(json!({ "name": format!("re: {}", ask.message) }))
            }
        }
    };
    let (client, mut peer) = connected(Client::builder().on_ask(handler)).await;
    let answer = |text: &str| json!({ "action": "accept", "content": { "name": text } });
    let (result, ()) = both(client.call("index", ()), async {
        let call = peer.expect("tools/call").await;
        peer.reply(&call, created()).await;
        let get = peer.expect("tasks/get").await;
        let both = json!({ "q1": question("who"), "q2": question("where") });
        peer.reply(&get, state("input_required", json!({ "inputRequests": both }))).await;
        // While the user thinks, the task is polled. One question disappears, another is new.
        let get = peer.expect("tasks/get").await;
        let other = json!({ "q1": question("who"), "q3": question("when") });
        peer.reply(&get, state("input_required", json!({ "inputRequests": other }))).await;
        let mut answers = serde_json::Map::new();
        while answers.len() < 2 {
            let frame = peer.next().await;
            if frame["method"] == "tasks/get" {
                peer.reply(&frame, state("input_required", json!({ "inputRequests": other }))).await;
                continue;
            }
            assert_eq!(frame["method"], "tasks/update", "{frame}");
            assert_eq!(frame["params"]["taskId"], "t1");
            answers.extend(frame["params"]["inputResponses"].as_object().unwrap().clone());
            peer.reply(&frame, json!({ "resultType": "complete" })).await;
        }
        assert_eq!(Value::from(answers), json!({ "q1": answer("re: who"), "q3": answer("re: when") }));
        // The server has not processed them yet, and lists them again.
        let get = peer.expect("tasks/get").await;
        peer.reply(&get, state("input_required", json!({ "inputRequests": other }))).await;
        let get = peer.expect("tasks/get").await;
        peer.reply(&get, completed("done")).await;
    })
    .await;
    assert_eq!(result.unwrap().text(), "done");
    let mut shown = shown.lock().unwrap().clone();
    shown.sort();
    assert_eq!(shown, ["when", "where", "who"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_can_answer_cancels_the_task_of_a_call() {
    let (client, mut peer) = connected(Client::builder()).await;
    let (result, ()) = both(client.call("index", ()), async {
        let call = peer.expect("tools/call").await;
        peer.reply(&call, created()).await;
        let get = peer.expect("tasks/get").await;
        let asks = json!({ "inputRequests": { "q1": question("who") } });
        peer.reply(&get, state("input_required", asks)).await;
        peer.expect("tasks/cancel").await;
    })
    .await;
    let error = result.unwrap_err();
    assert!(error.is_unanswerable(), "{error}");
    assert_eq!(error.task_id(), Some("t1"));
}

#[tokio::test(start_paused = true)]
async fn failures_that_may_pass_are_retried_and_others_are_not() {
    let (client, mut peer) = connected(Client::builder()).await;
    let (result, ()) = both(client.call("index", ()), async {
        let call = peer.expect("tools/call").await;
        peer.reply(&call, created()).await;
        for _ in 0..5 {
            let before = Instant::now();
            let get = peer.expect("tasks/get").await;
            peer.fail(&get, -32603, "the store is unavailable").await;
            assert!(before.elapsed() >= Duration::from_secs(2), "the interval is kept");
        }
        // A request that gets no answer at all is repeated, too.
        let unanswered = peer.expect("tasks/get").await;
        let cancelled = peer.expect("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], unanswered["id"]);
        let get = peer.expect("tasks/get").await;
        peer.reply(&get, completed("done")).await;
    })
    .await;
    assert_eq!(result.unwrap().text(), "done");

    let task = started(&client, &mut peer).await;
    let (result, ()) = both(task.wait(), async {
        let get = peer.expect("tasks/get").await;
        peer.fail(&get, -32602, "unknown task").await;
    })
    .await;
    let error = result.unwrap_err();
    assert!(error.is_task_gone() && error.task_id() == Some("t1"), "{error}");
    assert_eq!(error.to_string(), "the server does not know task `t1`, or it has expired: unknown task");
    drop(task);
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_not_negotiated_is_an_invalid_result_with_its_id() {
    // proves: TASKX-05
    let calls = [(Client::builder(), declared()), (Client::builder().tasks(), json!({ "tools": {} }))];
    for (builder, capabilities) in calls {
        let (client, mut peer) = connect(builder, V2026_07_28, capabilities).await;
        let (result, ()) = both(client.call("index", ()), async {
            let call = peer.expect("tools/call").await;
            peer.reply(&call, created()).await;
        })
        .await;
        let error = result.unwrap_err();
        assert!(error.is_malformed() && error.task_id() == Some("t1"), "{error}");
        peer.quiet().await;
    }
    // Only tool calls become tasks.
    let (client, mut peer) = connect(
        Client::builder().tasks(),
        V2026_07_28,
        json!({ "prompts": {}, "extensions": { EXTENSION: {} } }),
    )
    .await;
    let (result, ()) = both(client.prompt("p", ()), async {
        let get = peer.expect("prompts/get").await;
        peer.reply(&get, created()).await;
    })
    .await;
    let error = result.unwrap_err();
    assert!(error.is_malformed() && error.task_id() == Some("t1"), "{error}");
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_survives_the_client_that_started_it() {
    // proves: TASKX-17
    let (client, mut peer) = connected(Client::builder()).await;
    let task = started(&client, &mut peer).await;
    assert_eq!(task.known().unwrap().task.status, TaskStatus::Working);
    let id = task.id().to_owned();
    // Neither the handle nor a future of it cancels the task.
    {
        let mut wait = std::pin::pin!(task.wait());
        tokio::select! {
            biased;
            _ = &mut wait => panic!("the task has not ended"),
            () = async {
                let get = peer.expect("tasks/get").await;
                peer.reply(&get, state("working", json!({}))).await;
                peer.quiet().await;
            } => {}
        }
    }
    drop(task);
    peer.quiet().await;
    drop((client, peer));

    let (client, mut peer) = connected(Client::builder()).await;
    let task = client.task(id);
    assert_eq!(task.known(), None);
    let (found, ()) = both(task.status(), async {
        let get = peer.expect("tasks/get").await;
        assert_eq!(get["params"]["taskId"], "t1");
        peer.reply(&get, state("working", json!({ "statusMessage": "half" }))).await;
    })
    .await;
    assert_eq!(found.unwrap().task.status_message.as_deref(), Some("half"));
    let (result, ()) = both(task.wait(), async {
        let get = peer.expect("tasks/get").await;
        peer.reply(&get, completed("done")).await;
    })
    .await;
    assert_eq!(result.unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled_with_its_own_request() {
    // proves: TASKX-34
    let (client, mut peer) = connected(Client::builder()).await;
    let task = started(&client, &mut peer).await;
    let (cancelled, ()) = both(task.cancel(), async {
        let cancel = peer.expect("tasks/cancel").await;
        assert_eq!(cancel["params"]["taskId"], "t1");
        peer.reply(&cancel, json!({ "resultType": "complete" })).await;
    })
    .await;
    cancelled.unwrap();
    peer.quiet().await;

    // A call that is dropped cancels the task that it became.
    {
        let mut call = std::pin::pin!(client.call("index", ()));
        tokio::select! {
            biased;
            _ = &mut call => panic!("the task has not ended"),
            () = async {
                let call = peer.expect("tools/call").await;
                peer.reply(&call, created()).await;
                let get = peer.expect("tasks/get").await;
                peer.reply(&get, state("working", json!({}))).await;
                peer.quiet().await;
            } => {}
        }
    }
    assert_eq!(peer.expect("tasks/cancel").await["params"]["taskId"], "t1");

    // And so is a handle that says so.
    let task = started(&client, &mut peer).await.cancel_on_drop();
    drop(task);
    assert_eq!(peer.expect("tasks/cancel").await["params"]["taskId"], "t1");
    let task = started(&client, &mut peer).await.cancel_on_drop();
    let (_, ()) = both(task.wait(), async {
        let get = peer.expect("tasks/get").await;
        peer.reply(&get, completed("done")).await;
    })
    .await;
    drop(task);
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_with_a_time_limit_cancels_its_task() {
    let (client, mut peer) = connected(Client::builder()).await;
    let call = client.call("index", ()).max_total(Duration::from_secs(5));
    let (result, ()) = both(call, async {
        let call = peer.expect("tools/call").await;
        peer.reply(&call, created()).await;
        for _ in 0..2 {
            let get = peer.expect("tasks/get").await;
            peer.reply(&get, state("working", json!({}))).await;
        }
        peer.expect("tasks/cancel").await;
    })
    .await;
    let error = result.unwrap_err();
    assert!(error.is_timeout() && error.task_id() == Some("t1"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn status_messages_are_the_progress_of_a_call() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let (client, mut peer) = connected(Client::builder()).await;
    let call = client.call("index", ()).progress({
        let received = Arc::clone(&received);
        move |progress| received.lock().unwrap().push((progress.progress, progress.message.unwrap()))
    });
    let (result, ()) = both(call, async {
        let call = peer.expect("tools/call").await;
        peer.reply(&call, created()).await;
        for message in ["one", "one", "two"] {
            let get = peer.expect("tasks/get").await;
            peer.reply(&get, state("working", json!({ "statusMessage": message }))).await;
        }
        let get = peer.expect("tasks/get").await;
        peer.reply(&get, completed("done")).await;
    })
    .await;
    result.unwrap();
    assert_eq!(*received.lock().unwrap(), [(1.0, "one".to_owned()), (2.0, "two".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_knows_the_task_can_drop_the_call() {
    let (client, mut peer) = connected(Client::builder()).await;
    let known = Arc::new(Mutex::new(None));
    let call = client.call("index", ()).on_task({
        let known = Arc::clone(&known);
        move |state| *known.lock().unwrap() = Some(state.task.task_id.clone())
    });
    {
        let mut call = std::pin::pin!(call);
        tokio::select! {
            biased;
            _ = &mut call => panic!("the task has not ended"),
            () = async {
                let call = peer.expect("tools/call").await;
                peer.reply(&call, created()).await;
                peer.quiet().await;
            } => {}
        }
    }
    assert_eq!(known.lock().unwrap().as_deref(), Some("t1"));
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn without_tasks_a_call_cannot_be_started() {
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, declared()).await;
    let error = client.call("index", ()).start().await.unwrap_err();
    assert_eq!(error.to_string(), "tasks are off; turn them on with `Client::builder().tasks()`");
    let error = client.task("t1").wait().await.unwrap_err();
    assert_eq!(error.to_string(), "tasks are off; turn them on with `Client::builder().tasks()`");
    peer.quiet().await;

    let (client, mut peer) = connect(Client::builder().tasks(), V2026_07_28, json!({ "tools": {} })).await;
    assert!(client.task("t1").wait().await.unwrap_err().is_unsupported());
    assert!(client.task("t1").status().await.unwrap_err().is_unsupported());
    assert!(client.list_tasks().await.unwrap_err().is_unsupported());
    peer.quiet().await;
}
