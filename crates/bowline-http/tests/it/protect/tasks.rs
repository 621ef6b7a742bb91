//! Scopes of tasks: a request about a task needs the scopes that its tool declares.

use super::{
    Session, bearer, endpoint, protect,
    scopes::{refused, script},
    text,
};
use crate::tasks::ask;
use bowline_http::HttpService;
use bowline_server::{Registry, Server, Task, Tool};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::Notify;

const WRITE: &str = "notes:read notes:write";

/// A server whose tool `write` needs `notes:write` and ends when it is released. `list` needs nothing more than the endpoint.
struct Notes {
    endpoint: HttpService,
    registry: Registry,
    runs: Arc<AtomicUsize>,
    release: Arc<Notify>,
}

impl Notes {
    fn new() -> Self {
        let (runs, release) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let (counted, released) = (Arc::clone(&runs), Arc::clone(&release));
        let write = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let released = Arc::clone(&released);
            async move {
                released.notified().await;
                "written"
            }
        };
        let server = Server::new("notes")
            .tool(Tool::new("write").scopes(["notes:write"]).task(Task::now()).handler(write))
            .tool(Tool::new("list").task(Task::now()).handler(async || "none"))
            .dynamic();
        let registry = server.registry();
        Self { endpoint: endpoint(server, protect(&script())), registry, runs, release }
    }

    /// Calls a tool of 2026-07-28 as a task.
    async fn create(&self, tool: &str, token: &str) -> String {
        let call = bearer(ask("tools/call", Some(tool), json!({ "name": tool })), token);
        let reply = call.send(&self.endpoint).await.json().await;
        reply["result"]["taskId"].as_str().unwrap_or_else(|| panic!("expected a task: {reply}")).to_owned()
    }

    /// Calls a tool of 2025-11-25 as a task.
    async fn create_legacy(&self, session: &Session, tool: &str, token: &str) -> String {
        let call = session.request(1, "tools/call", &json!({ "name": tool, "task": {} }));
        let reply = bearer(call, token).send(&self.endpoint).await.json().await;
        let id = reply["result"]["task"]["taskId"].as_str();
        id.unwrap_or_else(|| panic!("expected a task: {reply}")).to_owned()
    }

    async fn modern(&self, method: &str, id: &str, token: &str) -> Value {
        let params = json!({ "taskId": id, "inputResponses": {} });
        bearer(ask(method, Some(id), params), token).send(&self.endpoint).await.json().await
    }

    async fn legacy(&self, session: &Session, method: &str, params: Value, token: &str) -> Value {
        bearer(session.request(2, method, &params), token).send(&self.endpoint).await.json().await
    }
}

#[tokio::test]
async fn v62_a_scoped_tool_does_not_run_as_a_task_without_its_scope() {
    let notes = Notes::new();
    let call = ask("tools/call", Some("write"), json!({ "name": "write" }));
    refused(&notes.endpoint, bearer(call, "reader"), WRITE).await;
    let session = Session::open(&notes.endpoint, "2025-11-25", "reader").await;
    let call = session.request(1, "tools/call", &json!({ "name": "write", "task": {} }));
    refused(&notes.endpoint, bearer(call, "reader"), WRITE).await;
    assert_eq!(notes.runs.load(Ordering::Relaxed), 0);
    notes.create("list", "reader").await;
}

#[tokio::test]
async fn v62_a_task_of_a_scoped_tool_needs_its_scope_for_every_method() {
    let notes = Notes::new();
    let id = notes.create("write", "writer").await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": id, "inputResponses": {} });
        refused(&notes.endpoint, bearer(ask(method, Some(&id), params), "reader"), WRITE).await;
    }
    let other = notes.create("list", "reader").await;
    let listen = |ids: Value, token| {
        bearer(ask("subscriptions/listen", None, json!({ "notifications": { "taskIds": ids } })), token)
    };
    refused(&notes.endpoint, listen(json!([other, id]), "reader"), WRITE).await;
    // Nothing was cancelled, and the same user with the scope sees everything.
    let mut stream = listen(json!([other, id]), "writer").send(&notes.endpoint).await;
    let acknowledged = stream.message().await.unwrap().1;
    assert_eq!(acknowledged["params"]["notifications"]["taskIds"], json!([other, id]));
    assert_eq!(notes.modern("tasks/get", &id, "writer").await["result"]["status"], "working");
    notes.release.notify_one();
    loop {
        let heard = stream.message().await.expect("the stream goes on").1;
        if heard["params"]["taskId"] == json!(id) && heard["params"]["status"] == "completed" {
            break;
        }
    }
    refused(&notes.endpoint, bearer(ask("tasks/get", Some(&id), json!({ "taskId": id })), "reader"), WRITE)
        .await;
    let done = notes.modern("tasks/get", &id, "writer").await;
    assert_eq!(done["result"]["result"]["content"][0]["text"], "written");
    // The task of a tool without scopes needs those of the endpoint only.
    let mut stream = listen(json!([other]), "reader").send(&notes.endpoint).await;
    let acknowledged = stream.message().await.unwrap().1;
    assert_eq!(acknowledged["params"]["notifications"]["taskIds"], json!([other]));
}

#[tokio::test]
async fn v62_a_legacy_task_of_a_scoped_tool_needs_its_scope_for_every_method() {
    let notes = Notes::new();
    let session = Session::open(&notes.endpoint, "2025-11-25", "writer").await;
    let id = notes.create_legacy(&session, "write", "writer").await;
    let open = notes.create_legacy(&session, "list", "reader").await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let ask = session.request(2, method, &json!({ "taskId": id }));
        refused(&notes.endpoint, bearer(ask, "reader"), WRITE).await;
    }
    let ids = |reply: &Value| {
        let tasks = reply["result"]["tasks"].as_array().unwrap().iter();
        let mut ids: Vec<String> = tasks.map(|task| task["taskId"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    };
    let listed = notes.legacy(&session, "tasks/list", json!({}), "reader").await;
    assert_eq!(ids(&listed), std::slice::from_ref(&open));
    let listed = notes.legacy(&session, "tasks/list", json!({}), "writer").await;
    let mut both = [id.clone(), open];
    both.sort();
    assert_eq!(ids(&listed), both);
    notes.release.notify_one();
    let result = notes.legacy(&session, "tasks/result", json!({ "taskId": id }), "writer").await;
    assert_eq!(text(&result), "written");
    let ask = session.request(2, "tasks/result", &json!({ "taskId": id }));
    refused(&notes.endpoint, bearer(ask, "reader"), WRITE).await;
}

#[tokio::test]
async fn v62_status_notifications_need_the_scope_of_the_tool() {
    for (token, is_heard) in [("reader", false), ("writer", true)] {
        let notes = Notes::new();
        let session = Session::open(&notes.endpoint, "2025-11-25", "writer").await;
        let id = notes.create_legacy(&session, "write", "writer").await;
        // The same user comes back with this token for its stream.
        let mut stream = bearer(session.get(), token).send(&notes.endpoint).await;
        let open = notes.create_legacy(&session, "list", token).await;
        if is_heard {
            notes.release.notify_one();
        }
        let (mut heard_of, mut is_over) = (Vec::new(), false);
        while !is_over || (is_heard && !heard_of.contains(&id)) {
            let message = stream.message().await.expect("the stream goes on").1;
            if message["method"] != "notifications/tasks/status" {
                continue;
            }
            heard_of.push(message["params"]["taskId"].as_str().unwrap().to_owned());
            is_over |=
                message["params"]["taskId"] == json!(open) && message["params"]["status"] == "completed";
        }
        assert_eq!(heard_of.contains(&id), is_heard, "{token}");
    }
}

#[tokio::test]
async fn v62_a_task_of_a_tool_that_is_gone_needs_the_scopes_of_its_call() {
    let notes = Notes::new();
    let id = notes.create("write", "writer").await;
    notes.registry.remove_tool("write");
    let all = "notes:read notes:write notes:sync";
    refused(&notes.endpoint, bearer(ask("tasks/get", Some(&id), json!({ "taskId": id })), "reader"), all)
        .await;
    assert_eq!(notes.modern("tasks/get", &id, "writer").await["result"]["taskId"], json!(id));
}
