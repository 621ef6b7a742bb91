//! Tasks over HTTP: the headers of their requests, a store that is not available, and their changes on a stream.

use crate::wire::Ask;
use bowline_http::{HttpOptions, HttpService};
use bowline_server::{Server, Task, Tasks, Tool};
use bowline_store::{Memory, MemoryBus, Reach, Store};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

fn server() -> Server {
    Server::new("tasks")
        .tool(Tool::new("quick").task(Task::now()).handler(async || "done"))
        .tool(Tool::new("endless").task(Task::now()).handler(async || std::future::pending::<String>().await))
}

fn endpoint(server: Server) -> HttpService {
    HttpService::new(server).unwrap()
}

/// A request of a client that declares the extension.
pub(crate) fn ask(method: &str, name: Option<&str>, mut params: Value) -> Ask {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
    });
    let ask = Ask::post(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    match name {
        Some(name) => ask.header("mcp-name", name),
        None => ask,
    }
}

async fn create(endpoint: &HttpService, tool: &str) -> String {
    let told = ask("tools/call", Some(tool), json!({ "name": tool })).send(endpoint).await;
    assert_eq!(told.status, 200);
    told.json().await["result"]["taskId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_server_that_ends_leaves_no_task_that_seems_to_run() {
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let node = || {
        let store =
            Store::builder("m", Arc::clone(&memory) as _, Arc::clone(&bus) as _, Reach::Network).build();
        let server = server().tasks(Tasks::new(store).space("test"));
        HttpService::with_options(server.build().unwrap(), HttpOptions::new().drain(Duration::ZERO))
    };
    let (ending, other) = (node(), node());
    let id = create(&ending, "endless").await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    ending.serve(listener, async {}).await.unwrap();
    let told = ask("tasks/get", Some(&id), json!({ "taskId": id })).send(&other).await.json().await;
    assert_eq!(told["result"]["status"], "failed", "{told}");
}

#[tokio::test]
async fn the_name_of_a_task_request_is_its_task() {
    // proves: TASKX-49
    let endpoint = endpoint(server());
    let id = create(&endpoint, "endless").await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = || json!({ "taskId": id, "inputResponses": {} });
        for wrong in [None, Some("other"), Some("endless")] {
            let told = ask(method, wrong, params()).send(&endpoint).await;
            assert_eq!(told.status, 400, "{method} {wrong:?}");
            assert_eq!(told.json().await["error"]["code"], -32020, "{method} {wrong:?}");
        }
        let told = ask(method, Some(&id), params()).send(&endpoint).await;
        assert!(!told.is_stream());
        assert_eq!(
            (told.status.as_u16(), &told.json().await["result"]["resultType"]),
            (200, &json!("complete"))
        );
    }
    let told = ask("tasks/get", Some("nonsense"), json!({ "taskId": "nonsense" })).send(&endpoint).await;
    assert_eq!((told.status.as_u16(), &told.json().await["error"]["code"]), (200, &json!(-32602)));
    // A client that does not declare the extension gets a status of its own.
    let told =
        Ask::modern("tasks/get", json!({ "taskId": id })).header("mcp-name", &id).send(&endpoint).await;
    assert_eq!((told.status.as_u16(), &told.json().await["error"]["code"]), (400, &json!(-32021)));
}

#[tokio::test]
async fn a_store_that_takes_no_task_is_a_reason_to_come_back() {
    let full = Arc::new(Memory::with_max_bytes(0));
    let store = Store::builder("full", full, Arc::new(MemoryBus::new()), Reach::Process).build();
    let endpoint = endpoint(server().tasks(Tasks::new(store)));
    let told = ask("tools/call", Some("quick"), json!({ "name": "quick" })).send(&endpoint).await;
    assert_eq!(told.status, 503);
    assert_eq!(told.headers["retry-after"], "5");
    assert_eq!(told.json().await["error"]["code"], -32603);
}

#[tokio::test]
async fn a_stream_tells_of_the_end_of_a_task() {
    // proves: TASKX-43, TASKX-44, TASKX-46
    let endpoint = endpoint(server());
    let id = create(&endpoint, "quick").await;
    let filter = json!({ "notifications": { "taskIds": [id, "nonsense"] } });
    let mut told = ask("subscriptions/listen", None, filter).send(&endpoint).await;
    let (_, acknowledged) = told.message().await.unwrap();
    assert_eq!(acknowledged["params"]["notifications"], json!({ "taskIds": [id] }));
    loop {
        let (_, heard) = told.message().await.unwrap();
        assert_eq!(
            (&heard["method"], &heard["params"]["taskId"]),
            (&json!("notifications/tasks"), &json!(id))
        );
        if heard["params"]["status"] == "completed" {
            assert_eq!(heard["params"]["result"]["content"][0]["text"], "done");
            break;
        }
    }
}
