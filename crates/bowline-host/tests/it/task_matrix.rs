//! Callers and servers with tasks of either revision, on both sides of a host.

use bowline_client::{Answer, Client, ClientBuilder, Started, TaskHandle};
use bowline_host::{Host, Upstream};
use bowline_policy::{Guard, Policy, Rule};
use bowline_server::{Ctx, Error, Key, KeyRing, Result, Server, ServerHandle, Task, Tool};
use bowline_store::Store;
use bowline_testing::Peer;
use bowline_types::{Revision, TaskStatus, TaskSupport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

const RELATED: &str = "io.modelcontextprotocol/related-task";

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Who {
    name: String,
}

/// A server whose calls become tasks, except those of `plain`.
fn server() -> ServerHandle {
    Server::new("far")
        .tool(Tool::new("plain").handler(async || "plain"))
        .tool(Tool::new("quick").task(Task::now()).handler(async || "quick"))
        .tool(Tool::new("required").task(Task::now().required()).handler(async || "required"))
        .tool(Tool::new("endless").task(Task::now()).handler(async || std::future::pending::<String>().await))
        .tool(Tool::new("wrong").task(Task::now()).handler(async || Err::<String, _>(Error::tool("no luck"))))
        .tool(Tool::new("asks").task(Task::now()).handler(async |ctx: Ctx| -> Result<String> {
            let Who { name } = ctx.ask("Who?").await?.accepted()?;
            let again: Who = ctx.ask("Who again?").await?.accepted()?;
            Ok(format!("{name} and {}", again.name))
        }))
        .build()
        .expect("the server can be built")
}

fn host_of(upstream: ServerHandle, revision: Revision, store: Store) -> (Host, ServerHandle) {
    host_with(Upstream::from(upstream).revision(revision), store)
}

fn host_with(upstream: Upstream, store: Store) -> (Host, ServerHandle) {
    let guard = Guard::builder().policy(Policy::new([Rule::allow()])).build();
    let host = Host::builder().add("far", upstream).guard(guard).store(store).build();
    let gateway = Server::new("gateway").keys(KeyRing::new(Key::new([7; 32])));
    let handle = host.open(gateway).expect("the gateway can be built");
    (host, handle)
}

fn host(revision: Revision) -> (Host, ServerHandle) {
    host_of(server(), revision, Store::memory())
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

const BOTH: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

#[tokio::test]
async fn tasks_of_both_revisions_reach_callers_of_both() {
    for upstream in BOTH {
        let (host, handle) = host(upstream);
        for caller in BOTH {
            let what = format!("a caller of {caller}, a server of {upstream}");
            let client = answering().revisions([caller]).connect(handle.clone()).await.unwrap();
            let task = started(&client, "asks").await;
            assert_eq!(task.wait().await.unwrap().text(), "Ada and Bob", "{what}");
            // The result stays.
            assert_eq!(client.task(task.id()).wait().await.unwrap().text(), "Ada and Bob", "{what}");
            assert_eq!(task.status().await.unwrap().task.status, TaskStatus::Completed, "{what}");

            let failed = started(&client, "wrong").await.wait().await.unwrap();
            assert!(failed.is_error() && failed.text().contains("no luck"), "{what}");

            let task = started(&client, "endless").await;
            assert_eq!(task.status().await.unwrap().task.status, TaskStatus::Working, "{what}");
            task.cancel().await.unwrap();
            assert_eq!(task.status().await.unwrap().task.status, TaskStatus::Cancelled, "{what}");
            assert!(client.task(task.id()).wait().await.is_err(), "{what}");
            client.close().await;

            // Those without tasks get results, whatever the server has.
            let plain = Client::builder().revisions([caller]).connect(handle.clone()).await.unwrap();
            for tool in ["plain", "quick", "required"] {
                let result = plain.call(format!("far__{tool}"), ()).await.unwrap();
                assert_eq!(result.text(), tool, "{what}");
            }
            plain.close().await;
        }
        host.close().await;
    }
}

#[tokio::test]
async fn the_list_of_tools_says_to_2025_11_25_which_become_tasks() {
    let after = Some(Duration::from_secs(20));
    // The host makes tasks itself, unless it is told not to.
    for (upstream, task_after, plain) in [
        (Revision::V2025_11_25, None, None),
        (Revision::V2025_11_25, after, Some(TaskSupport::Optional)),
        (Revision::V2026_07_28, None, Some(TaskSupport::Optional)),
    ] {
        let far = Upstream::from(server()).revision(upstream).task_after(task_after);
        let (host, handle) = host_with(far, Store::memory());
        for caller in Revision::ALL {
            let client = answering().revisions([caller]).connect(handle.clone()).await.unwrap();
            let support = |tools: &[bowline_types::Tool], name: &str| {
                let tool = tools.iter().find(|tool| tool.name == name).expect("it is listed");
                tool.execution.as_ref().and_then(|execution| execution.task_support.clone())
            };
            let tools = client.tools().await.unwrap();
            let has_tasks = caller == Revision::V2025_11_25;
            let optional = has_tasks.then_some(TaskSupport::Optional);
            for name in ["far__quick", "far__required"] {
                assert_eq!(support(&tools, name), optional, "{name} of {upstream} for {caller}");
            }
            assert_eq!(
                support(&tools, "far__plain"),
                plain.clone().filter(|_| has_tasks),
                "{upstream} {caller}"
            );
            client.close().await;
        }
        host.close().await;
    }
}

/// A client of 2025-11-25 whose frames the test writes.
async fn caller(handle: &ServerHandle, principal: Option<&str>) -> Peer {
    let (peer, other) = Peer::pair();
    let (handle, principal) = (handle.clone(), principal.map(Arc::from));
    tokio::spawn(async move {
        let (read, write) = tokio::io::split(other);
        let _ = handle.serve_as(principal, read, write).await;
    });
    let mut peer = peer.capabilities(json!({ "elicitation": {} }));
    let result = peer.initialize(Revision::V2025_11_25).await.unwrap();
    assert_eq!(
        result["capabilities"]["tasks"],
        json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } })
    );
    peer
}

async fn create(near: &mut Peer, tool: &str) -> Value {
    let params = json!({ "name": format!("far__{tool}"), "task": { "ttl": 120_000 } });
    let created = near.request("tools/call", params).await.unwrap();
    let task = &created["result"]["task"];
    assert_eq!(task["status"], "working", "{created}");
    assert!(created["result"].get("content").is_none(), "{created}");
    json!({ "taskId": task["taskId"] })
}

#[tokio::test]
async fn a_caller_of_2025_11_25_gets_the_messages_of_its_revision() {
    for upstream in BOTH {
        let (host, handle) = host(upstream);
        let mut near = caller(&handle, None).await;
        let id = create(&mut near, "asks").await;
        // The state has no payload, whatever the server sends.
        let got = near.request("tasks/get", id.clone()).await.unwrap();
        assert_eq!(got["result"]["taskId"], id["taskId"], "{got}");
        for member in ["inputRequests", "result", "resultType", "ttlMs"] {
            assert!(got["result"].get(member).is_none(), "{got}");
        }
        assert!(got["result"]["ttl"].as_u64().is_some_and(|ttl| ttl <= 86_400_000), "{got}");

        let waiting = near.start("tasks/result", id.clone()).await.unwrap();
        for name in ["Ada", "Bob"] {
            let asked = near.recv_method("elicitation/create").await.unwrap();
            assert_eq!(asked["params"]["_meta"][RELATED], id, "{asked}");
            let answer = json!({ "action": "accept", "content": { "name": name } });
            near.reply(&asked, answer).await.unwrap();
        }
        let result = near.response(&waiting).await.unwrap();
        assert_eq!(result["result"]["content"][0]["text"], "Ada and Bob", "{result}");
        assert_eq!(result["result"]["_meta"][RELATED], id, "{result}");

        // A tool that returns an error is a failed task with a result.
        let wrong = create(&mut near, "wrong").await;
        let result = near.request("tasks/result", wrong.clone()).await.unwrap();
        assert_eq!(result["result"]["isError"], true, "{result}");
        let got = near.request("tasks/get", wrong.clone()).await.unwrap();
        assert_eq!(got["result"]["status"], "failed", "{got}");
        assert!(got["result"]["statusMessage"].is_string(), "{got}");

        // What has ended cannot be cancelled, and what was cancelled stays so.
        let refused = near.request("tasks/cancel", wrong).await.unwrap();
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let endless = create(&mut near, "endless").await;
        let cancelled = near.request("tasks/cancel", endless.clone()).await.unwrap();
        assert_eq!(cancelled["result"]["taskId"], endless["taskId"], "{cancelled}");
        assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
        let got = near.request("tasks/get", endless.clone()).await.unwrap();
        assert_eq!(got["result"]["status"], "cancelled", "{got}");
        let refused = near.request("tasks/cancel", endless.clone()).await.unwrap();
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let refused = near.request("tasks/result", endless).await.unwrap();
        assert_eq!(refused["error"]["code"], -32603, "{refused}");

        // The extension's method does not exist in this revision.
        let unknown =
            near.request("tasks/update", json!({ "taskId": "x", "inputResponses": {} })).await.unwrap();
        assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
        host.close().await;
    }
}

/// Waits for the notification that a task has this status.
async fn told(near: &mut Peer, id: &Value, status: &str) {
    loop {
        let notification = near.recv_method("notifications/tasks/status").await.unwrap();
        let task = &notification["params"];
        assert_eq!(task["taskId"], id["taskId"], "{notification}");
        assert!(task.get("result").is_none() && task["ttl"].is_u64(), "{notification}");
        if task["status"] == status {
            return;
        }
        assert_eq!(task["status"], "working", "{notification}");
    }
}

#[tokio::test]
async fn a_caller_of_2025_11_25_is_told_the_status_of_its_tasks() {
    for upstream in BOTH {
        let (host, handle) = host(upstream);
        for (tool, status) in [("quick", "completed"), ("wrong", "failed"), ("asks", "input_required")] {
            let mut near = caller(&handle, Some("ada")).await;
            let id = create(&mut near, tool).await;
            told(&mut near, &id, status).await;
        }
        // Cancelled by another session of the caller.
        let (mut near, mut other) = (caller(&handle, Some("ada")).await, caller(&handle, Some("ada")).await);
        let id = create(&mut near, "endless").await;
        other.request("tasks/cancel", id.clone()).await.unwrap();
        told(&mut near, &id, "cancelled").await;
        host.close().await;
    }
}

#[tokio::test]
async fn a_tool_without_tasks_is_not_called_as_one() {
    let far = Upstream::from(server()).revision(Revision::V2025_11_25).task_after(None);
    let (host, handle) = host_with(far, Store::memory());
    let mut near = caller(&handle, None).await;
    let refused = near.request("tools/call", json!({ "name": "far__plain", "task": {} })).await.unwrap();
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("far__plain"), "{refused}");
    let wrong = near.request("tools/call", json!({ "name": "far__quick", "task": 1 })).await.unwrap();
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    host.close().await;
}

#[tokio::test]
async fn a_call_that_ends_at_once_is_a_task_for_whoever_asked_for_one() {
    // A server of 2026-07-28 decides itself, and does not make a task of `plain`.
    let (host, handle) = host(Revision::V2026_07_28);
    let mut near = caller(&handle, Some("ada")).await;
    let id = create(&mut near, "plain").await;
    let got = near.request("tasks/get", id.clone()).await.unwrap();
    assert_eq!(got["result"]["status"], "completed", "{got}");
    assert!(got["result"].get("result").is_none(), "{got}");
    let result = near.request("tasks/result", id.clone()).await.unwrap();
    assert_eq!(result["result"]["content"][0]["text"], "plain", "{result}");
    assert_eq!(result["result"]["_meta"][RELATED], id, "{result}");
    let refused = near.request("tasks/cancel", id.clone()).await.unwrap();
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let mut bob = caller(&handle, Some("bob")).await;
    let foreign = bob.request("tasks/result", id).await.unwrap();
    assert_eq!(foreign["error"]["code"], -32602, "{foreign}");

    // A refusal of the policy is an error, not a task.
    host.guard().set_policy(Policy::new([Rule::deny()]));
    let refused = near.request("tools/call", json!({ "name": "far__plain", "task": {} })).await.unwrap();
    assert_eq!(refused["error"]["data"]["io.github.bowline-mcp/refused"], true, "{refused}");
    host.close().await;
}

async fn listed(near: &mut Peer) -> Vec<(String, String)> {
    let (mut tasks, mut cursor) = (Vec::new(), None::<Value>);
    loop {
        let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let page = near.request("tasks/list", params).await.unwrap();
        let listed = page["result"]["tasks"].as_array().unwrap_or_else(|| panic!("{page}"));
        tasks.extend(listed.iter().map(|task| {
            let text = |member: &str| task[member].as_str().unwrap().to_owned();
            (text("taskId"), text("status"))
        }));
        cursor = page["result"].get("nextCursor").cloned();
        if cursor.is_none() {
            tasks.sort();
            return tasks;
        }
    }
}

#[tokio::test]
async fn a_caller_lists_its_own_tasks_at_any_process() {
    for upstream in BOTH {
        let (server, store) = (server(), Store::memory());
        let (one, first) = host_of(server.clone(), upstream, store.clone());
        let (two, second) = host_of(server, upstream, store);
        let mut ada = caller(&first, Some("ada")).await;
        let mut expected = Vec::new();
        for _ in 0..21 {
            let id = create(&mut ada, "endless").await["taskId"].as_str().unwrap().to_owned();
            expected.push((id, "working".to_owned()));
        }
        let ended = create(&mut ada, "quick").await;
        near_result(&mut ada, &ended).await;
        let id = |task: &Value| task["taskId"].as_str().unwrap().to_owned();
        expected.push((id(&ended), "completed".to_owned()));
        expected[0].1 = "cancelled".to_owned();
        ada.request("tasks/cancel", json!({ "taskId": expected[0].0 })).await.unwrap();
        expected.sort();
        assert_eq!(listed(&mut ada).await, expected, "{upstream}");
        let mut elsewhere = caller(&second, Some("ada")).await;
        assert_eq!(listed(&mut elsewhere).await, expected, "{upstream}");

        // Others see nothing, and their cursors are not hers.
        let mut bob = caller(&second, Some("bob")).await;
        assert_eq!(listed(&mut bob).await, []);
        let page = ada.request("tasks/list", json!({})).await.unwrap();
        let params = json!({ "cursor": page["result"]["nextCursor"] });
        let refused = bob.request("tasks/list", params).await.unwrap();
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        one.close().await;
        two.close().await;
    }
}

async fn near_result(near: &mut Peer, id: &Value) {
    let result = near.request("tasks/result", id.clone()).await.unwrap();
    assert_eq!(result["result"]["content"][0]["text"], "quick", "{result}");
}

#[tokio::test]
async fn two_requests_for_one_result_ask_once() {
    for upstream in BOTH {
        let (host, handle) = host(upstream);
        let (mut one, mut two) = (caller(&handle, None).await, caller(&handle, None).await);
        let id = create(&mut one, "asks").await;
        let first = one.start("tasks/result", id.clone()).await.unwrap();
        let asked = one.recv_method("elicitation/create").await.unwrap();
        let second = two.start("tasks/result", id.clone()).await.unwrap();
        // The second request has been seen when a later one is answered.
        two.request("tasks/get", id.clone()).await.unwrap();
        one.reply(&asked, json!({ "action": "accept", "content": { "name": "Ada" } })).await.unwrap();
        // Whoever is asked next answers.
        let next = tokio::select! {
            asked = one.recv_method("elicitation/create") => {
                one.reply(&asked.unwrap(), json!({ "action": "accept", "content": { "name": "Bob" } })).await
            }
            asked = two.recv_method("elicitation/create") => {
                two.reply(&asked.unwrap(), json!({ "action": "accept", "content": { "name": "Bob" } })).await
            }
        };
        next.unwrap();
        for (near, waiting) in [(&mut one, first), (&mut two, second)] {
            let result = near.response(&waiting).await.unwrap();
            assert_eq!(result["result"]["content"][0]["text"], "Ada and Bob", "{upstream}: {result}");
        }
        host.close().await;
    }
}

#[tokio::test]
async fn a_caller_of_2026_07_28_looks_after_its_older_tasks() {
    // A client that declares only the tasks of 2025-11-25 keeps access to those that it created there.
    let (host, handle) = host(Revision::V2026_07_28);
    let older = create(&mut caller(&handle, None).await, "endless").await;
    let mut modern = Peer::memory(&handle).unwrap().capabilities(json!({ "tasks": {} }));
    let got = modern.modern("tasks/get", older.clone()).await.unwrap();
    assert_eq!(got["result"]["status"], "working", "{got}");
    let refused = modern.modern("tasks/get", json!({ "taskId": "x" })).await.unwrap();
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let client = answering().connect(handle.clone()).await.unwrap();
    let newer = started(&client, "endless").await;
    let refused = modern.modern("tasks/get", json!({ "taskId": newer.id() })).await.unwrap();
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let cancelled = modern.modern("tasks/cancel", older.clone()).await.unwrap();
    assert!(cancelled["error"].is_null(), "{cancelled}");
    client.close().await;
    host.close().await;
}
