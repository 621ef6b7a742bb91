//! 2026-07-28: every request on its own.

use crate::wire::Ask;
use bowline_http::{HttpService, Settings};
use bowline_server::{Ctx, Prompt, Registry, Resource, Result, Server, Tool};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

#[derive(Deserialize, JsonSchema)]
struct Echo {
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Who {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Query {
    #[schemars(extend("x-mcp-header" = "Region"))]
    #[expect(dead_code, reason = "only mirrored into a header")]
    region: Option<String>,
}

fn server() -> Server {
    Server::new("http")
        .tool(Tool::new("echo").handler(|Echo { message }: Echo| message))
        .tool(Tool::new("count").handler(|ctx: Ctx| async move {
            for step in 1..=3 {
                ctx.progress(f64::from(step), 3.0);
            }
            "counted"
        }))
        .tool(Tool::new("greet").handler(|ctx: Ctx| async move {
            let Who { name } = ctx.ask("Who are you?").await?.accepted()?;
            Result::<_>::Ok(format!("hello {name}"))
        }))
        .tool(Tool::new("query").handler(|_: Query| "rows"))
        .tool(Tool::new("panic").handler(|| -> String { panic!("on purpose") }))
        .prompt(Prompt::new("p").handler(|| "hi"))
        .resource(Resource::new("http://x/ü".replace('ü', "y").as_str(), "y").text("why"))
}

fn endpoint() -> HttpService {
    HttpService::new(server()).unwrap()
}

fn endpoint_with_registry() -> (HttpService, Registry) {
    let server = server();
    let registry = server.registry();
    (HttpService::new(server).unwrap(), registry)
}

#[tokio::test]
async fn a_call_is_answered_in_one_piece() {
    let told = Ask::modern("tools/call", json!({ "name": "echo", "arguments": { "message": "hi" } }))
        .send(&endpoint())
        .await;
    assert_eq!(told.status, StatusCode::OK);
    assert_eq!(told.headers["content-type"], "application/json");
    assert!(!told.headers.contains_key("mcp-session-id"));
    let reply = told.json().await;
    assert_eq!(reply["result"]["content"][0]["text"], "hi", "{reply}");
    assert_eq!(reply["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_call_that_reports_becomes_a_stream() {
    let mut told = Ask::modern("tools/call", json!({ "name": "count", "_meta": { "progressToken": "t" } }))
        .send(&endpoint())
        .await;
    assert!(told.is_stream());
    assert_eq!(told.headers["x-accel-buffering"], "no");
    for step in 1..=3 {
        let (id, message) = told.message().await.unwrap();
        assert_eq!(id, None, "streams of this revision cannot be resumed");
        assert_eq!(message["params"], json!({ "progressToken": "t", "progress": step, "total": 3 }));
    }
    let (_, response) = told.message().await.unwrap();
    assert_eq!(response["result"]["content"][0]["text"], "counted");
    assert!(told.message().await.is_none());
}

#[tokio::test]
async fn a_question_is_answered_by_a_retry() {
    let endpoint = endpoint();
    let mut params = json!({ "name": "greet" });
    let asked = Ask::modern("tools/call", params.clone()).send(&endpoint).await.json().await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    params["inputResponses"] = json!({ "q0": { "action": "accept", "content": { "name": "Ada" } } });
    params["requestState"] = asked["result"]["requestState"].clone();
    let reply = Ask::modern("tools/call", params).send(&endpoint).await.json().await;
    assert_eq!(reply["result"]["content"][0]["text"], "hello Ada", "{reply}");
}

#[tokio::test]
async fn faults_are_told_in_order_with_their_status() {
    let endpoint = endpoint();
    let call = || Ask::modern("tools/call", json!({ "name": "echo", "arguments": { "message": "hi" } }));
    let discover = |meta: Value| {
        Ask::post(
            &json!({ "jsonrpc": "2.0", "id": 7, "method": "server/discover", "params": { "_meta": meta } }),
        )
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "server/discover")
    };
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    for (ask, status, code) in [
        (call().without("mcp-protocol-version"), 400, -32020),
        (call().without("mcp-method"), 400, -32020),
        (call().without("mcp-name"), 400, -32020),
        (call().header("mcp-method", "tools/list"), 400, -32020),
        (call().header("mcp-name", "other"), 400, -32020),
        (call().header("mcp-name", "=?base64?ZWNobw==?="), 200, 0),
        (call().header("mcp-name", "=?base64?b3RoZXI=?="), 400, -32020),
        (call().header("mcp-protocol-version", "1900-01-01"), 400, -32020),
        (discover(json!({ version: "2026-07-28" })), 400, -32602),
        (
            discover(json!({ capabilities: {}, version: "1900-01-01" }))
                .header("mcp-protocol-version", "1900-01-01"),
            400,
            -32022,
        ),
        (Ask::modern("no/such", json!({})), 404, -32601),
        (Ask::modern("ping", json!({})), 404, -32601),
        (Ask::modern("tools/call", json!({ "name": "nope" })), 200, -32602),
        (Ask::modern("tools/call", json!({ "name": "panic" })), 200, -32603),
        (Ask::modern("tools/call", json!({ "name": "query", "arguments": { "region": "eu" } })), 400, -32020),
        (
            Ask::modern("tools/call", json!({ "name": "query", "arguments": { "region": "eu" } }))
                .header("mcp-param-region", "us"),
            400,
            -32020,
        ),
        (
            Ask::modern("tools/call", json!({ "name": "query", "arguments": { "region": "eu" } }))
                .header("mcp-param-region", "eu"),
            200,
            0,
        ),
        (Ask::modern("tools/call", json!({ "name": "query", "arguments": { "region": null } })), 200, 0),
    ] {
        let told = ask.send(&endpoint).await;
        let actual = told.status;
        let reply = told.json().await;
        assert_eq!(
            (actual.as_u16(), reply["error"]["code"].as_i64().unwrap_or_default()),
            (status, code),
            "{reply}"
        );
    }
}

#[tokio::test]
async fn what_is_no_message_is_refused_as_json() {
    let endpoint = endpoint();
    let post = |body: &str| {
        Ask::post(&Value::Null).header("mcp-protocol-version", "2026-07-28").body(body.to_owned())
    };
    for (ask, status, code) in [
        (post("{"), 400, -32700),
        (post(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), 400, -32600),
        (post(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#), 400, -32600),
        (post(r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#), 400, -32600),
        (post(&"[".repeat(100_000)), 400, -32600),
        (post("[]"), 400, -32600),
        (post(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), 400, -32600),
        (post("{}").header("content-type", "text/plain"), 415, -32600),
        (post("{}").without("content-type"), 415, -32600),
        (post("{}").header("content-encoding", "gzip"), 415, -32600),
        (post("{}").header("accept", "text/html"), 406, -32600),
        (post(&" ".repeat(4 * 1024 * 1024 + 1)), 413, -32600),
        (post("{}").header("origin", "http://evil.com"), 403, -32600),
        (post("{}").header("origin", "null"), 403, -32600),
        (post("{}").header("host", "user@127.0.0.1"), 400, -32600),
        (post("{}").header("host", "evil.com"), 403, -32600),
        (Ask::new(Method::PUT), 405, -32600),
        (Ask::new(Method::OPTIONS).header("origin", "http://localhost:8080"), 405, -32600),
    ] {
        let told = ask.send(&endpoint).await;
        let actual = told.status;
        assert!(!told.headers.contains_key("access-control-allow-origin"));
        let reply = told.json().await;
        assert_eq!(
            (actual.as_u16(), reply["error"]["code"].as_i64().unwrap_or_default()),
            (status, code),
            "{reply}"
        );
    }
    let accepted = post(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .send(&endpoint)
        .await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_listen_stream_stays_open_and_ends_with_its_result() {
    let (endpoint, registry) = endpoint_with_registry();
    let mut told =
        Ask::modern("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }))
            .send(&endpoint)
            .await;
    assert!(told.is_stream());
    let (_, acknowledged) = told.message().await.unwrap();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    registry.add_tool(Tool::new("late").handler(|| "ok")).unwrap();
    let (_, changed) = told.message().await.unwrap();
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    endpoint.end();
    let (_, result) = told.message().await.unwrap();
    assert_eq!(result["result"]["resultType"], "complete", "{result}");
    assert!(told.message().await.is_none());
    let refused = Ask::modern("tools/list", json!({})).send(&endpoint).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
}

/// Tells when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_its_call() {
    let dropped = Arc::new(AtomicBool::new(false));
    let tool = {
        let dropped = Arc::clone(&dropped);
        Tool::new("slow").handler(move |ctx: Ctx| {
            let guard = Dropped(Arc::clone(&dropped));
            async move {
                ctx.progress(1.0, None);
                std::future::pending::<()>().await;
                drop(guard);
            }
        })
    };
    let endpoint = HttpService::new(Server::new("slow").tool(tool)).unwrap();
    let mut told = Ask::modern("tools/call", json!({ "name": "slow", "_meta": { "progressToken": 1 } }))
        .send(&endpoint)
        .await;
    assert!(told.message().await.is_some());
    assert!(!dropped.load(Ordering::Acquire));
    drop(told);
    assert!(dropped.load(Ordering::Acquire));
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_is_kept_alive() {
    let settings = Settings::new().keep_alive(Duration::from_secs(15));
    let endpoint = HttpService::with(server().build().unwrap(), settings);
    let mut told = Ask::modern("subscriptions/listen", json!({ "notifications": {} })).send(&endpoint).await;
    assert!(told.message().await.is_some());
    for _ in 0..3 {
        assert_eq!(told.event().await.unwrap(), ": keep-alive");
    }
}
