//! Tasks of 2025-11-25, where the client decides that a call becomes a task.

use crate::support::*;
use bowline_client::{Answer, Client, ClientBuilder, Started};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

fn declared() -> Value {
    json!({ "tools": {}, "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } } })
}

async fn connected(builder: ClientBuilder) -> (Client, Peer) {
    connect(builder.tasks(), V2025_11_25, declared()).await
}

fn tool(name: &str, support: Option<&str>) -> Value {
    let mut tool = json!({ "name": name, "inputSchema": { "type": "object" } });
    if let Some(support) = support {
        tool["execution"] = json!({ "taskSupport": support });
    }
    tool
}

fn tools() -> Value {
    json!({ "tools": [
        tool("required", Some("required")), tool("optional", Some("optional")),
        tool("forbidden", Some("forbidden")), tool("silent", None),
    ] })
}

fn task(status: &str) -> Value {
    json!({
        "taskId": "t1", "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 60_000, "pollInterval": 2000,
    })
}

fn related(mut result: Value) -> Value {
    result["_meta"] = json!({ "io.modelcontextprotocol/related-task": { "taskId": "t1" } });
    result
}

/// Answers the requests of a task that ends after one poll.
async fn serve(peer: &mut Peer, text: &str) {
    let get = peer.expect("tasks/get").await;
    assert_eq!(get["params"], json!({ "taskId": "t1" }));
    peer.reply(&get, task("completed")).await;
    let result = peer.expect("tasks/result").await;
    assert_eq!(result["params"], json!({ "taskId": "t1" }));
    peer.reply(&result, related(text_result(text))).await;
}

#[tokio::test(start_paused = true)]
async fn only_tools_that_support_tasks_are_called_as_tasks() {
    // proves: TASK-02, TASK-04, TASK-05, TASK-07, TASK-08, TASK-12
    for (name, starts, as_task) in [
        ("required", true, true),
        ("required", false, true),
        ("optional", true, true),
        ("optional", false, false),
        ("forbidden", true, false),
        ("silent", true, false),
        ("unknown", true, false),
    ] {
        let (client, mut peer) = connected(Client::builder()).await;
        let listed = both(client.tools(), async {
            let list = peer.expect("tools/list").await;
            peer.reply(&list, tools()).await;
        });
        listed.await.0.unwrap();
        let call = client.call(name, json!({ "a": 1 })).task_ttl(Duration::from_secs(60));
        let script = async {
            let mut call = peer.next().await;
            // An unknown tool is looked up.
            if call["method"] == "tools/list" {
                peer.reply(&call, tools()).await;
                call = peer.next().await;
            }
            assert_eq!(call["method"], "tools/call");
            let expected = if as_task {
                json!({ "name": name, "arguments": { "a": 1 }, "task": { "ttl": 60_000 } })
            } else {
                json!({ "name": name, "arguments": { "a": 1 } })
            };
            assert_eq!(call["params"], expected);
            if as_task {
                peer.reply(&call, json!({ "task": task("working") })).await;
                serve(&mut peer, "done").await;
            } else {
                peer.reply(&call, text_result("done")).await;
            }
            peer.quiet().await;
        };
        let run = async {
            if !starts {
                return call.await.unwrap();
            }
            match call.start().await.unwrap() {
                Started::Done(result) if !as_task => result,
                Started::Task(task) if as_task => task.wait().await.unwrap(),
                other => panic!("{name}: {other:?}"),
            }
        };
        assert_eq!(both(run, script).await.0.text(), "done", "{name}");
    }

    // Without the server's capability, nothing about a tool matters.
    for capabilities in [json!({ "tools": {} }), json!({ "tools": {}, "tasks": { "list": {} } })] {
        let (client, mut peer) = connect(Client::builder().tasks(), V2025_11_25, capabilities).await;
        let (started, ()) = both(client.call("required", ()).start(), async {
            let call = peer.expect("tools/call").await;
            assert_eq!(call["params"], json!({ "name": "required" }));
            peer.reply(&call, text_result("done")).await;
        })
        .await;
        assert!(matches!(started.unwrap(), Started::Done(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_needs_a_task_is_found_when_the_plain_call_is_refused() {
    let (client, mut peer) = connected(Client::builder()).await;
    let (result, ()) = both(client.call("required", ()), async {
        let call = peer.expect("tools/call").await;
        assert_eq!(call["params"], json!({ "name": "required" }));
        peer.fail(&call, -32601, "this tool needs a task").await;
        let list = peer.expect("tools/list").await;
        peer.reply(&list, tools()).await;
        let call = peer.expect("tools/call").await;
        assert_eq!(call["params"], json!({ "name": "required", "task": {} }));
        peer.reply(&call, json!({ "task": task("working") })).await;
        serve(&mut peer, "done").await;
    })
    .await;
    assert_eq!(result.unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_polled_and_its_result_fetched() {
    // proves: TASK-24, TASK-25, TASK-32, TASK-36
    let (client, mut peer) = connected(Client::builder()).await;
    let waiting = client.task("t1");
    let (result, ()) = both(waiting.wait(), async {
        let get = peer.expect("tasks/get").await;
        assert!(get["params"].get("_meta").is_none(), "{get}");
        peer.reply(&get, task("working")).await;
        let before = Instant::now();
        let get = peer.expect("tasks/get").await;
        assert_eq!(before.elapsed(), Duration::from_secs(2));
        // A notification for another task changes nothing, one for this task saves a poll.
        let mut other = task("completed");
        other["taskId"] = json!("t2");
        peer.notify("notifications/tasks/status", other).await;
        peer.reply(&get, task("working")).await;
        peer.notify("notifications/tasks/status", task("failed")).await;
        let result = peer.expect("tasks/result").await;
        assert_eq!(before.elapsed(), Duration::from_secs(2));
        peer.fail(&result, -32603, "the tool crashed").await;
    })
    .await;
    assert_eq!(result.unwrap_err().to_string(), "the server returned an error: the tool crashed (-32603)");

    let (result, ()) = both(waiting.wait(), async {
        let get = peer.expect("tasks/get").await;
        peer.reply(&get, task("cancelled")).await;
    })
    .await;
    assert!(result.unwrap_err().is_task_cancelled());
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn questions_arrive_while_the_result_is_fetched() {
    // proves: TASK-30, TASK-34, TASK-37
    let builder = Client::builder().on_ask(|_| async {
        // Longer than any other request may take.
        tokio::time::sleep(Duration::from_secs(1000)).await;
        Answer::accept(json!({ "name": "ada" }))
    });
    let (client, mut peer) = connected(builder).await;
    let task_handle = client.task("t1");
    let (result, ()) = both(task_handle.wait(), async {
        let get = peer.expect("tasks/get").await;
        peer.reply(&get, task("input_required")).await;
        let result = peer.expect("tasks/result").await;
        let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        let meta = json!({ "io.modelcontextprotocol/related-task": { "taskId": "t1" } });
        let params = json!({ "message": "who", "requestedSchema": schema, "_meta": meta });
        peer.ask("q", "elicitation/create", params).await;
        let answer = peer.next().await;
        let expected = json!({ "action": "accept", "content": { "name": "ada" }, "_meta": meta });
        assert_eq!(answer["result"], expected);
        peer.reply(&result, related(text_result("done"))).await;
    })
    .await;
    assert_eq!(result.unwrap().text(), "done");

    // A question outside of a task has no such mark.
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    peer.ask("r", "elicitation/create", json!({ "message": "who", "requestedSchema": schema })).await;
    assert!(peer.next().await["result"].get("_meta").is_none());
}

#[tokio::test(start_paused = true)]
async fn progress_continues_after_the_task_was_created() {
    // proves: PROG-14, PROG-15
    let received = Arc::new(Mutex::new(Vec::new()));
    let (client, mut peer) = connected(Client::builder()).await;
    let call = client.call("required", ()).progress({
        let received = Arc::clone(&received);
        move |progress| received.lock().unwrap().push(progress.progress)
    });
    let listed = both(client.tools(), async {
        let list = peer.expect("tools/list").await;
        peer.reply(&list, tools()).await;
    });
    listed.await.0.unwrap();
    let (result, token) = both(call, async {
        let call = peer.expect("tools/call").await;
        let token = call["params"]["_meta"]["progressToken"].clone();
        assert!(token.is_string() || token.is_number(), "{call}");
        peer.notify("notifications/progress", json!({ "progressToken": token, "progress": 1 })).await;
        peer.reply(&call, json!({ "task": task("working") })).await;
        peer.notify("notifications/progress", json!({ "progressToken": token, "progress": 2 })).await;
        let get = peer.expect("tasks/get").await;
        assert!(get["params"].get("_meta").is_none(), "{get}");
        peer.reply(&get, task("completed")).await;
        let result = peer.expect("tasks/result").await;
        peer.notify("notifications/progress", json!({ "progressToken": token, "progress": 3 })).await;
        peer.reply(&result, related(text_result("done"))).await;
        token
    })
    .await;
    result.unwrap();
    // The token ends with the task.
    peer.notify("notifications/progress", json!({ "progressToken": token, "progress": 4 })).await;
    peer.settle().await;
    assert_eq!(*received.lock().unwrap(), [1.0, 2.0, 3.0]);
}

#[tokio::test(start_paused = true)]
async fn tasks_are_cancelled_and_listed() {
    // proves: CANCEL-04, TASK-41
    let (client, mut peer) = connected(Client::builder()).await;
    let (cancelled, ()) = both(async { client.task("t1").cancel().await }, async {
        let cancel = peer.expect("tasks/cancel").await;
        assert_eq!(cancel["params"], json!({ "taskId": "t1" }));
        peer.reply(&cancel, task("cancelled")).await;
    })
    .await;
    cancelled.unwrap();
    let (listed, ()) = both(client.list_tasks(), async {
        let list = peer.expect("tasks/list").await;
        assert_eq!(list["params"], json!({}));
        peer.reply(&list, json!({ "tasks": [task("working")], "nextCursor": "{\"odd\": 1}" })).await;
        let list = peer.expect("tasks/list").await;
        assert_eq!(list["params"], json!({ "cursor": "{\"odd\": 1}" }));
        let mut second = task("completed");
        second["taskId"] = json!("t2");
        peer.reply(&list, json!({ "tasks": [second] })).await;
    })
    .await;
    let ids: Vec<_> = listed.unwrap().into_iter().map(|task| task.task_id).collect();
    assert_eq!(ids, ["t1", "t2"]);

    // A list that never ends is an error.
    let (listed, ()) = both(client.list_tasks(), async {
        for _ in 0..2 {
            let list = peer.expect("tasks/list").await;
            peer.reply(&list, json!({ "tasks": [], "nextCursor": "again" })).await;
        }
    })
    .await;
    assert!(listed.unwrap_err().is_malformed());
}
