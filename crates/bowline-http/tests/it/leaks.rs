//! What is left when everybody has gone: nothing.

use crate::wire::{Ask, HttpReply};
use bowline_http::HttpService;
use bowline_server::{Server, Tool};
use http::{Method, StatusCode};
use serde_json::json;
use std::time::Duration;
use tokio::runtime::Handle;

fn hello() -> Ask {
    let client = json!({ "name": "c", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    Ask::post(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }))
}

async fn open(endpoint: &HttpService) -> String {
    let response = hello().send(endpoint).await;
    response.headers["mcp-session-id"].to_str().unwrap().to_owned()
}

async fn get(endpoint: &HttpService, id: &str) -> HttpReply {
    let ask = Ask::new(Method::GET).header("accept", "text/event-stream").header("mcp-session-id", id);
    ask.header("mcp-protocol-version", "2025-11-25").send(endpoint).await
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_sessions_and_half_as_many_listens_leave_nothing_behind() {
    let server = Server::new("busy").tool(Tool::new("now").handler(|| "now"));
    let registry = server.registry();
    let endpoint = HttpService::new(server).unwrap();
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();

    let mut sessions = Vec::new();
    for _ in 0..10_000 {
        let id = open(&endpoint).await;
        let mut stream = get(&endpoint, &id).await;
        assert!(stream.event().await.is_some(), "a stream begins with its priming event");
        sessions.push((id, stream));
    }
    assert_eq!(endpoint.sessions(), 10_000);
    let refused = hello().send(&endpoint).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "these are enough");
    assert!(refused.headers.contains_key("retry-after"));
    let mut listens = Vec::new();
    for _ in 0..5_000 {
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        let mut stream = Ask::modern("subscriptions/listen", filter).send(&endpoint).await;
        assert!(stream.message().await.is_some());
        listens.push(stream);
    }
    registry.add_tool(Tool::new("late").handler(|| "late")).unwrap();
    for stream in &mut listens {
        assert!(stream.message().await.is_some(), "every listener hears of a change");
    }

    drop(listens);
    for (position, (id, stream)) in sessions.into_iter().enumerate() {
        drop(stream);
        // Half of the clients say good-bye; the others are just gone.
        if position % 2 == 0 {
            let ended = Ask::new(Method::DELETE).header("mcp-session-id", &id).send(&endpoint).await;
            assert_eq!(ended.status, StatusCode::NO_CONTENT);
        }
    }
    assert_eq!(endpoint.sessions(), 5_000);
    let until_idle = Duration::from_secs(400);
    tokio::time::sleep(until_idle).await;
    assert_eq!(endpoint.sessions(), 0);
    assert_eq!(tasks(), before);
    registry.add_tool(Tool::new("later").handler(|| "later")).unwrap();
}
