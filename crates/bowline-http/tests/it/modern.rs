//! 2026-07-28: every request on its own.

use crate::wire::Ask;
use bowline_http::{HttpOptions, HttpService};
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

#[derive(Deserialize, JsonSchema)]
struct Limited {
    #[schemars(extend("x-mcp-header" = "Limit"))]
    #[expect(dead_code, reason = "only mirrored into a header")]
    limit: i64,
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
        .tool(Tool::new("report_and_greet").handler(|ctx: Ctx| async move {
            ctx.progress(1.0, 2.0);
            tokio::task::yield_now().await;
            let Who { name } = ctx.ask("Who are you?").await?.accepted()?;
            Result::<_>::Ok(format!("hello {name}"))
        }))
        .tool(Tool::new("log").handler(|ctx: Ctx| async move {
            ctx.log(bowline_types::LoggingLevel::Error, "large");
            "logged"
        }))
        .tool(Tool::new("query").handler(|_: Query| "rows"))
        .tool(Tool::new("limited").handler(|_: Limited| "rows"))
        .tool(Tool::new("think").handler(|ctx: Ctx| async move {
            let params = bowline_types::CreateMessageParams::new(vec![], 10_u64);
            Result::<_>::Ok(ctx.sample(params).await?.model)
        }))
        .tool(Tool::new("panic").handler(|| -> String { panic!("on purpose") }))
        .prompt(Prompt::new("p").handler(|| "hi"))
        .resource(Resource::new("http://x/y", "y").text("why"))
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
    // proves: HTTP-02, HTTP-19, VER-06
    let http_response =
        Ask::modern("tools/call", json!({ "name": "echo", "arguments": { "message": "hi" } }))
            .send(&endpoint())
            .await;
    assert_eq!(http_response.status, StatusCode::OK);
    assert_eq!(http_response.headers["content-type"], "application/json");
    assert!(!http_response.headers.contains_key("mcp-session-id"));
    let reply = http_response.json().await;
    assert_eq!(reply["result"]["content"][0]["text"], "hi", "{reply}");
    assert_eq!(reply["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_call_that_reports_becomes_a_stream() {
    // proves: HTTP-77, HTTP-80, HTTP-82
    // proves: HTTP-19, HTTP-78, HTTP-90
    let mut http_response =
        Ask::modern("tools/call", json!({ "name": "count", "_meta": { "progressToken": "t" } }))
            .send(&endpoint())
            .await;
    assert!(http_response.is_stream());
    assert_eq!(http_response.headers["x-accel-buffering"], "no");
    for step in 1..=3 {
        let (id, message) = http_response.message().await.unwrap();
        assert_eq!(id, None, "streams of this revision cannot be resumed");
        assert_eq!(message["params"], json!({ "progressToken": "t", "progress": step, "total": 3 }));
    }
    let (_, response) = http_response.message().await.unwrap();
    assert_eq!(response["result"]["content"][0]["text"], "counted");
    assert!(http_response.message().await.is_none());
}

#[tokio::test]
async fn a_response_is_never_lost_after_notifications() {
    let long = Tool::new("long").handler(|ctx: Ctx| async move {
        ctx.progress(1.0, 1.0);
        "x".repeat(2 * 1024 * 1024)
    });
    let often = Tool::new("often").handler(|ctx: Ctx| async move {
        for step in 0..2000 {
            ctx.progress(f64::from(step), None);
        }
        "done"
    });
    let unhindered = bowline_server::Limits::default().progress_rate(u32::MAX);
    let server = Server::new("chatty").limits(unhindered).tool(long).tool(often);
    let endpoint = HttpService::new(server).unwrap();
    for name in ["long", "often"] {
        let mut http_response =
            Ask::modern("tools/call", json!({ "name": name, "_meta": { "progressToken": "t" } }))
                .send(&endpoint)
                .await;
        let mut last = Value::Null;
        while let Some((_, message)) = http_response.message().await {
            last = message;
        }
        assert_eq!(last["result"]["resultType"], "complete", "{name}");
    }
}

// proves: HTTP-79
#[tokio::test]
async fn a_question_on_a_stream_is_in_the_result_and_no_request() {
    let ask = json!({ "name": "report_and_greet", "_meta": { "progressToken": "t" } });
    let mut http_response = Ask::modern("tools/call", ask).send(&endpoint()).await;
    assert!(http_response.is_stream());
    let mut messages = Vec::new();
    while let Some((_, message)) = http_response.message().await {
        assert!(message.get("method").is_none() || message.get("id").is_none(), "a request: {message}");
        messages.push(message);
    }
    let result = &messages.last().unwrap()["result"];
    assert_eq!(result["inputRequests"]["q0"]["method"], "elicitation/create", "{messages:?}");
    assert_eq!(messages[0]["method"], "notifications/progress", "{messages:?}");
}

#[tokio::test]
async fn a_question_is_answered_by_a_retry() {
    // proves: HTTP-81
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
async fn errors_are_reported_in_order_with_their_status() {
    // proves: HTTP-70, HTTP-71, HTTP-72, HTTP-73, HTTP-74, HTTP-76, META-15, META-17, META-21, HDR-23, HDR-25
    // proves: HDR-26, HDR-27, HDR-28, HDR-30, HDR-31, HDR-32, HDR-34, HDR-35
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
        (discover(json!({ capabilities: {} })), 400, -32602),
        (
            discover(json!({ capabilities: {}, version: "1900-01-01" }))
                .header("mcp-protocol-version", "1900-01-01"),
            400,
            -32022,
        ),
        (Ask::modern("no/such", json!({})), 404, -32601),
        (Ask::modern("ping", json!({})), 404, -32601),
        (Ask::modern("logging/setLevel", json!({ "level": "info" })), 404, -32601),
        (Ask::modern("resources/subscribe", json!({ "uri": "http://x/y" })), 404, -32601),
        (Ask::modern("resources/unsubscribe", json!({ "uri": "http://x/y" })), 404, -32601),
        (Ask::modern("initialize", json!({})), 404, -32601),
        (call().header("mcp-method", "TOOLS/CALL"), 400, -32020),
        (call().header("mcp-name", "=?BASE64?ZWNobw==?="), 400, -32020),
        (call().header("mcp-name", "ech\u{f6}"), 400, -32020),
        (call().header("mcp-name", "=?base64?SGVs!!!?="), 400, -32020),
        (call().without("mcp-name").header("MCP-Name", "echo"), 200, 0),
        (Ask::modern("tools/call", json!({ "name": "think" })), 400, -32021),
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
        let http_response = ask.send(&endpoint).await;
        let actual = http_response.status;
        let reply = http_response.json().await;
        assert_eq!(
            (actual.as_u16(), reply["error"]["code"].as_i64().unwrap_or_default()),
            (status, code),
            "{reply}"
        );
        assert!(reply["id"] == 1 || reply["id"] == 7, "every fault names its request: {reply}");
        if code == -32022 {
            assert_eq!(reply["error"]["data"]["supported"][0], "2026-07-28");
        }
    }
}

#[tokio::test]
async fn a_parameter_too_long_for_a_header_is_refused() {
    // proves: HDR-12
    let endpoint = endpoint();
    for (limit, status) in [(9_007_199_254_740_991_i64, 200), (9_007_199_254_740_992, 400)] {
        let params = json!({ "name": "limited", "arguments": { "limit": limit } });
        let http_response = Ask::modern("tools/call", params)
            .header("mcp-param-limit", &limit.to_string())
            .send(&endpoint)
            .await;
        assert_eq!(http_response.status.as_u16(), status);
    }
}

#[test]
fn a_tool_whose_headers_cannot_work_is_refused_before_serving() {
    // proves: HDR-07, HDR-08, HDR-09, HDR-10, HDR-11, HDR-13, HDR-14
    let build = |properties: &Value| {
        let schema =
            bowline_types::RawJson::of(&json!({ "type": "object", "properties": properties })).unwrap();
        Server::new("s").tool(Tool::new("t").input_schema(schema).handler(|| "ok")).build().map(drop)
    };
    let header = |kind: &str, name: &str| json!({ "type": kind, "x-mcp-header": name });
    let deep = json!({ "type": "object", "properties": { "c": header("integer", "Deep") } });
    assert!(build(&json!({ "a": header("string", "Region"), "b": deep })).is_ok());
    for wrong in [
        json!({ "a": header("string", "") }),
        json!({ "a": header("string", "My Region") }),
        json!({ "a": header("string", "Region:1") }),
        json!({ "a": header("string", "Région") }),
        json!({ "a": header("string", "Region\t1") }),
        json!({ "a": header("string", "Region"), "b": header("string", "REGION") }),
        json!({ "a": header("number", "Region") }),
        json!({ "a": header("object", "Region") }),
        json!({ "a": { "type": "array", "items": header("string", "Region") } }),
        json!({ "a": { "anyOf": [header("string", "Region")] } }),
    ] {
        let error = build(&wrong).unwrap_err().to_string();
        assert!(error.starts_with("tool `t`: "), "{wrong}: {error}");
    }
}

#[tokio::test]
async fn a_modern_server_names_its_revisions_to_a_legacy_client() {
    // proves: HTTP-91, HTTP-92, HTTP-93
    let server = server().revisions([bowline_types::Revision::V2026_07_28]);
    let endpoint = HttpService::new(server).unwrap();
    let client = json!({ "name": "c", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let http_response = Ask::post(&hello).send(&endpoint).await;
    assert_eq!(http_response.status, StatusCode::BAD_REQUEST);
    let reply = http_response.json().await;
    let expected = json!({ "supported": ["2026-07-28"], "requested": "2025-06-18" });
    assert_eq!(reply["error"]["data"], expected, "{reply}");
    for method in [Method::GET, Method::DELETE] {
        let http_response = Ask::new(method).header("mcp-session-id", "x").send(&endpoint).await;
        assert_eq!(http_response.status, StatusCode::METHOD_NOT_ALLOWED);
    }
    let call = json!({ "name": "echo", "arguments": { "message": "hi" } });
    let stale = Ask::modern("tools/call", call).header("mcp-session-id", "x").header("last-event-id", "7");
    let http_response = stale.send(&endpoint).await;
    assert_eq!(http_response.status, StatusCode::OK);
    assert!(!http_response.headers.contains_key("mcp-session-id"));
    assert_eq!(http_response.json().await["result"]["content"][0]["text"], "hi");
}

#[tokio::test]
async fn an_invalid_message_is_refused_with_json() {
    // proves: HTTP-03, HTTP-04, HTTP-05, HTTP-17, HTTP-18
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
        let http_response = ask.send(&endpoint).await;
        let actual = http_response.status;
        assert!(!http_response.headers.contains_key("access-control-allow-origin"));
        let reply = http_response.json().await;
        assert_eq!(
            (actual.as_u16(), reply["error"]["code"].as_i64().unwrap_or_default()),
            (status, code),
            "{reply}"
        );
        if status == 403 {
            assert!(reply.get("id").is_none_or(serde_json::Value::is_null), "{reply}");
        }
    }
    let accepted = post(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .send(&endpoint)
        .await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_listen_stream_stays_open_and_ends_with_its_result() {
    // proves: SUB-13, HTTP-94
    let (endpoint, registry) = endpoint_with_registry();
    let mut http_response =
        Ask::modern("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }))
            .send(&endpoint)
            .await;
    assert!(http_response.is_stream());
    let (_, acknowledged) = http_response.message().await.unwrap();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    // What another request reports stays on the stream of that request.
    let mut other = Ask::modern("tools/call", json!({ "name": "count", "_meta": { "progressToken": "t" } }))
        .send(&endpoint)
        .await;
    while other.message().await.is_some() {}
    let log = json!({ "name": "log", "_meta": { "io.modelcontextprotocol/logLevel": "debug" } });
    let mut other = Ask::modern("tools/call", log).send(&endpoint).await;
    let (_, logged) = other.message().await.unwrap();
    assert_eq!(logged["method"], "notifications/message", "{logged}");
    while other.message().await.is_some() {}
    registry.add_tool(Tool::new("late").handler(|| "ok")).unwrap();
    let (_, changed) = http_response.message().await.unwrap();
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    endpoint.end();
    let (_, result) = http_response.message().await.unwrap();
    assert_eq!(result["result"]["resultType"], "complete", "{result}");
    assert!(http_response.message().await.is_none());
    let refused = Ask::modern("tools/list", json!({})).send(&endpoint).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_burst_of_changes_does_not_end_a_listen_stream() {
    let (endpoint, registry) = endpoint_with_registry();
    let uris: Vec<_> = (0..500).map(|number| format!("http://x/{number}")).collect();
    let mut http_response =
        Ask::modern("subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": uris } }))
            .send(&endpoint)
            .await;
    http_response.message().await.unwrap();
    for uri in &uris {
        registry.resource_updated(uri);
    }
    for _ in &uris {
        let (_, updated) = http_response.message().await.expect("the stream goes on");
        assert_eq!(updated["method"], "notifications/resources/updated");
    }
    endpoint.end();
    let (_, result) = http_response.message().await.expect("the stream ends with its result");
    assert_eq!(result["result"]["resultType"], "complete", "{result}");
}

/// Tells when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[tokio::test]
async fn a_client_that_disconnects_cancels_its_call() {
    // proves: HTTP-88
    // proves: HTTP-86, HTTP-87
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
    let mut http_response =
        Ask::modern("tools/call", json!({ "name": "slow", "_meta": { "progressToken": 1 } }))
            .send(&endpoint)
            .await;
    assert!(http_response.message().await.is_some());
    assert!(!dropped.load(Ordering::Acquire));
    drop(http_response);
    assert!(dropped.load(Ordering::Acquire));
}

#[tokio::test]
async fn no_silence_timeout_is_too_long() {
    let settings = HttpOptions::new().keep_alive(Duration::MAX).stream_after(Duration::MAX);
    let endpoint = HttpService::with_options(server().build().unwrap(), settings);
    let mut http_response =
        Ask::modern("tools/call", json!({ "name": "count", "_meta": { "progressToken": "t" } }))
            .send(&endpoint)
            .await;
    let mut last = Value::Null;
    while let Some((_, message)) = http_response.message().await {
        last = message;
    }
    assert_eq!(last["result"]["content"][0]["text"], "counted");
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_is_kept_alive() {
    // proves: HTTP-83
    let settings = HttpOptions::new().keep_alive(Duration::from_secs(15));
    let endpoint = HttpService::with_options(server().build().unwrap(), settings);
    let mut http_response =
        Ask::modern("subscriptions/listen", json!({ "notifications": {} })).send(&endpoint).await;
    assert!(http_response.message().await.is_some());
    for _ in 0..3 {
        assert_eq!(http_response.event().await.unwrap(), ": keep-alive");
    }
}
