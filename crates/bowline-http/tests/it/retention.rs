//! What all streams keep together is bounded.

use crate::wire::{Ask, HttpReply};
use bowline_http::{HttpOptions, HttpService};
use bowline_server::{Ctx, Server, Tool};
use http::{Method, StatusCode};
use serde_json::json;

const KIB: usize = 1024;

/// An endpoint whose tool answers with 100 KiB, on a stream.
fn endpoint(settings: HttpOptions) -> HttpService {
    let long = Tool::new("long").handler(|ctx: Ctx| async move {
        ctx.progress(1.0, None);
        tokio::task::yield_now().await;
        "x".repeat(100 * KIB)
    });
    HttpService::with_options(Server::new("s").tool(long).build().unwrap(), settings)
}

async fn open(endpoint: &HttpService) -> String {
    let client = json!({ "name": "c", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let response = Ask::post(&hello).send(endpoint).await;
    let session = response.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let accepted = Ask::post(&ready).header("mcp-session-id", &session).send(endpoint).await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED);
    session
}

async fn call(endpoint: &HttpService, session: &str) -> HttpReply {
    let params = json!({ "name": "long", "_meta": { "progressToken": 1 } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    Ask::post(&call).header("mcp-session-id", session).send(endpoint).await
}

/// Goes back to the stream of the call, which is the third of its session.
async fn resume(endpoint: &HttpService, session: &str) -> HttpReply {
    let get = Ask::new(Method::GET).header("accept", "text/event-stream").header("mcp-session-id", session);
    get.header("last-event-id", "3-0").send(endpoint).await
}

/// Reads a stream to its end; whether the response was on it.
async fn has_response(mut response: HttpReply) -> bool {
    let mut found = false;
    while let Some((_, message)) = response.message().await {
        found |= message.get("result").is_some();
    }
    found
}

#[tokio::test]
async fn unread_streams_are_dropped_for_others() {
    let endpoint = endpoint(HttpOptions::new().max_retained_bytes(1000 * KIB));
    let mut sessions = Vec::new();
    for _ in 0..60 {
        let session = open(&endpoint).await;
        // The client goes away; its call goes on.
        let response = call(&endpoint, &session).await;
        assert!(response.is_stream());
        drop(response);
        tokio::task::yield_now().await;
        sessions.push(session);
    }
    let mut kept = 0;
    for session in &sessions {
        let response = resume(&endpoint, session).await;
        if response.status == StatusCode::OK {
            kept += usize::from(has_response(response).await);
        }
    }
    assert!((1..=10).contains(&kept), "{kept} replies of 100 KiB fit into 1000 KiB");
    let last = resume(&endpoint, sessions.last().unwrap()).await;
    assert_eq!(last.status, StatusCode::OK, "the newest is kept");
}

#[tokio::test]
async fn a_stream_that_is_read_gets_its_response_while_others_fill_the_limit() {
    let endpoint = endpoint(HttpOptions::new().max_retained_bytes(1000 * KIB));
    for _ in 0..30 {
        let session = open(&endpoint).await;
        drop(call(&endpoint, &session).await);
        let session = open(&endpoint).await;
        assert!(has_response(call(&endpoint, &session).await).await);
    }
}

#[tokio::test]
async fn streams_that_are_read_too_slowly_are_ended() {
    let endpoint = endpoint(HttpOptions::new().max_retained_bytes(1000 * KIB));
    let mut streams = Vec::new();
    for _ in 0..30 {
        let session = open(&endpoint).await;
        streams.push(call(&endpoint, &session).await);
        tokio::task::yield_now().await;
    }
    let mut whole = 0;
    for stream in streams {
        whole += usize::from(has_response(stream).await);
    }
    assert!((1..=10).contains(&whole), "{whole} replies of 100 KiB fit into 1000 KiB");
}

#[tokio::test]
async fn listens_are_bounded_in_number_and_in_the_length_of_their_filters() {
    let server = || Server::new("s").tool(Tool::new("t").handler(|| "t")).build().unwrap();
    let listen = |uris: Vec<String>| {
        let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": uris });
        Ask::modern("subscriptions/listen", json!({ "notifications": filter }))
    };
    let few = HttpService::with_options(server(), HttpOptions::new().max_listens(2));
    let mut open = Vec::new();
    for status in [200, 200, 503] {
        let response = listen(Vec::new()).send(&few).await;
        assert_eq!(response.status, status);
        open.push(response);
    }
    drop(open);
    assert_eq!(listen(Vec::new()).send(&few).await.status, StatusCode::OK, "the others are gone");

    let short = HttpService::with_options(server(), HttpOptions::new().max_retained_bytes(100 * KIB));
    let long: Vec<String> = (0..10).map(|number| format!("x://{number}/{}", "x".repeat(2000))).collect();
    let first = listen(long.clone()).send(&short).await;
    assert_eq!(first.status, StatusCode::OK);
    assert_eq!(listen(long.clone()).send(&short).await.status, StatusCode::SERVICE_UNAVAILABLE);
    drop(first);
    assert_eq!(listen(long).send(&short).await.status, StatusCode::OK);
}

#[tokio::test]
async fn one_caller_cannot_use_up_the_listens_of_others() {
    let server = || Server::new("s").tool(Tool::new("t").handler(|| "t")).build().unwrap();
    let listen = |uris: &[String]| {
        let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": uris });
        Ask::modern("subscriptions/listen", json!({ "notifications": filter }))
    };
    let options = HttpOptions::new().max_listens(4).max_listens_per_principal(2);
    let few = HttpService::with_options(server(), options);
    let mut open = Vec::new();
    for (caller, status) in [("ada", 200), ("ada", 200), ("ada", 503), ("bob", 200)] {
        let response = listen(&[]).by(caller).send(&few).await;
        assert_eq!(response.status, status, "{caller}");
        open.push(response);
    }
    open.remove(0);
    assert_eq!(listen(&[]).by("ada").send(&few).await.status, StatusCode::OK, "one of hers is closed");

    // Filters of 20 KB, stored three times: each caller has 100 KiB of the 400.
    let short = HttpService::with_options(server(), HttpOptions::new().max_retained_bytes(400 * KIB));
    let long: Vec<String> = (0..10).map(|number| format!("x://{number}/{}", "x".repeat(2000))).collect();
    let mut open = Vec::new();
    for (caller, status) in
        [(None, 200), (None, 503), (Some("ada"), 200), (Some("ada"), 503), (Some("bob"), 200)]
    {
        let ask = listen(&long);
        let response = match caller {
            Some(caller) => ask.by(caller).send(&short).await,
            None => ask.send(&short).await,
        };
        assert_eq!(response.status, status, "{caller:?}");
        open.push(response);
    }
}
