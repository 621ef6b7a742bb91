//! Sessions: 2025-03-26 to 2025-11-25, and the transport of 2024-11-05.

mod first_revision;

use crate::wire::{Ask, HttpReply, late};
use bowline_http::{HttpOptions, HttpService};
use bowline_server::{Ctx, Result, Server, Tool};
use bowline_types::Revision;
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
use tokio::sync::Notify;

#[derive(Deserialize, JsonSchema)]
struct Who {
    name: String,
}

fn server(gate: Arc<Notify>) -> Server {
    Server::new("http")
        .tool(Tool::new("now").handler(|| "now"))
        .tool(Tool::new("greet").handler(|ctx: Ctx| async move {
            let Who { name } = ctx.ask("Who are you?").await?.accepted()?;
            Result::<_>::Ok(format!("hello {name}"))
        }))
        .tool(Tool::new("gated").handler(move |ctx: Ctx| {
            let gate = Arc::clone(&gate);
            async move {
                ctx.progress(1.0, 2.0);
                gate.notified().await;
                ctx.progress(2.0, 2.0);
                "through"
            }
        }))
}

fn endpoint() -> HttpService {
    HttpService::new(server(Arc::default())).unwrap()
}

fn hello(revision: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": revision,
        "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "c", "version": "1" },
    } })
}

/// A client's session.
struct Session<'a> {
    endpoint: &'a HttpService,
    id: String,
    revision: String,
}

impl<'a> Session<'a> {
    async fn open(endpoint: &'a HttpService, revision: &str) -> Self {
        let http_response = Ask::post(&hello(revision)).send(endpoint).await;
        assert_eq!(http_response.status, StatusCode::OK);
        let id = http_response.headers["mcp-session-id"].to_str().unwrap().to_owned();
        assert_eq!(http_response.json().await["result"]["protocolVersion"], revision);
        let session = Self { endpoint, id, revision: revision.to_owned() };
        let accepted =
            session.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        assert_eq!(accepted.status, StatusCode::ACCEPTED);
        session
    }

    fn with(&self, ask: Ask) -> Ask {
        let ask = ask.header("mcp-session-id", &self.id);
        if self.revision.as_str() >= "2025-06-18" {
            ask.header("mcp-protocol-version", &self.revision)
        } else {
            ask
        }
    }

    async fn post(&self, body: &Value) -> HttpReply {
        self.with(Ask::post(body)).send(self.endpoint).await
    }

    async fn call(&self, id: i64, tool: &str) -> HttpReply {
        let params = json!({ "name": tool, "_meta": { "progressToken": id } });
        self.post(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await
    }

    async fn get(&self, last: Option<&str>) -> HttpReply {
        let ask = self.with(Ask::new(Method::GET).header("accept", "text/event-stream"));
        let ask = match last {
            Some(last) => ask.header("last-event-id", last),
            None => ask,
        };
        ask.send(self.endpoint).await
    }
}

#[tokio::test]
async fn a_session_opens_serves_and_ends() {
    // proves: HTTP-16, HTTP-19, HTTP-53, HTTP-55, HTTP-59, SEC-24
    let mut ids = std::collections::HashSet::new();
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let endpoint = endpoint();
        let session = Session::open(&endpoint, revision).await;
        assert!(session.id.len() >= 32 && session.id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
        assert!(ids.insert(session.id.clone()));
        let http_response = session.call(1, "now").await;
        assert_eq!(http_response.headers["content-type"], "application/json");
        assert_eq!(http_response.json().await["result"]["content"][0]["text"], "now");
        let ended = session.with(Ask::new(Method::DELETE)).send(&endpoint).await;
        assert!(ended.status.is_success());
        assert_eq!(session.call(2, "now").await.status, StatusCode::NOT_FOUND);
        assert_eq!(endpoint.sessions(), 0);
    }
}

#[tokio::test]
async fn session_ids_have_nothing_in_common() {
    // proves: HTTP-54
    let endpoint = endpoint();
    let mut parts = std::collections::HashSet::new();
    for _ in 0..64 {
        let session = Session::open(&endpoint, "2025-11-25").await;
        // A counter or a time would be the same in some part of two ids.
        for (place, part) in session.id.as_bytes().chunks_exact(8).enumerate() {
            assert!(parts.insert((place, part.to_vec())), "{}", session.id);
        }
    }
    assert!(parts.len() >= 4 * 64, "{parts:?}");
}

#[tokio::test]
async fn a_request_without_its_session_is_refused() {
    // proves: HTTP-58
    // proves: HTTP-03, HTTP-04, HTTP-18, HTTP-63, HTTP-67
    let endpoint = endpoint();
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    assert_eq!(Ask::post(&ping).send(&endpoint).await.status, StatusCode::BAD_REQUEST);
    let unknown = Ask::post(&ping).header("mcp-session-id", "guess").send(&endpoint).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    let session = Session::open(&endpoint, "2025-06-18").await;
    let strange =
        session.with(Ask::post(&ping)).header("mcp-protocol-version", "1999-01-01").send(&endpoint).await;
    assert_eq!(strange.status, StatusCode::BAD_REQUEST);
    let shouted =
        Ask::post(&ping).header("MCP-SESSION-ID", &session.id).header("Mcp-Protocol-Version", "2025-06-18");
    assert_eq!(shouted.send(&endpoint).await.status, StatusCode::OK);
    let stray = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(Ask::post(&stray).send(&endpoint).await.status, StatusCode::BAD_REQUEST);
    let foreign = session.with(Ask::post(&ping)).header("origin", "http://evil.com").send(&endpoint).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_unsupported_version_is_refused_in_a_session_too() {
    let server = server(Arc::default()).revisions([Revision::V2025_06_18]);
    let endpoint = HttpService::new(server).unwrap();
    let session = Session::open(&endpoint, "2025-06-18").await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let other =
        session.with(Ask::post(&ping)).header("mcp-protocol-version", "2025-11-25").send(&endpoint).await;
    assert_eq!(other.status, StatusCode::BAD_REQUEST);
    assert_eq!(session.post(&ping).await.status, StatusCode::OK);
}

#[tokio::test]
async fn both_eras_share_one_endpoint() {
    let endpoint = endpoint();
    let session = Session::open(&endpoint, "2025-11-25").await;
    let modern = Ask::modern("tools/call", json!({ "name": "now" }))
        .header("mcp-session-id", &session.id)
        .send(&endpoint)
        .await;
    assert_eq!(modern.json().await["result"]["resultType"], "complete");
    let legacy = session.call(1, "now").await.json().await;
    assert!(legacy["result"].get("resultType").is_none(), "{legacy}");
}

#[tokio::test]
async fn a_question_travels_on_the_stream_of_its_call() {
    // proves: HTTP-22, HTTP-23, HTTP-24, HTTP-25, HTTP-27
    let endpoint = endpoint();
    let session = Session::open(&endpoint, "2025-06-18").await;
    let mut http_response = session.call(1, "greet").await;
    assert!(http_response.is_stream());
    let (_, question) = http_response.message().await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": { "name": "Ada" } } });
    assert_eq!(session.post(&answer).await.status, StatusCode::ACCEPTED);
    let (_, response) = http_response.message().await.unwrap();
    assert_eq!(response["result"]["content"][0]["text"], "hello Ada");
    assert!(http_response.message().await.is_none());
}

#[tokio::test]
async fn an_interrupted_stream_is_resumed_after_its_last_event() {
    // proves: HTTP-28, HTTP-31, HTTP-48
    // proves: HTTP-30, HTTP-46, HTTP-47, HTTP-51, HTTP-52
    let gate = Arc::new(Notify::new());
    let endpoint = HttpService::new(server(Arc::clone(&gate))).unwrap();
    for revision in ["2025-03-26", "2025-11-25"] {
        let session = Session::open(&endpoint, revision).await;
        let mut http_response = session.call(1, "gated").await;
        if revision == "2025-11-25" {
            let priming = http_response.event().await.unwrap();
            assert!(priming.contains("id:") && priming.contains("retry:"), "{priming}");
            let data: Vec<&str> = priming.lines().filter_map(|line| line.strip_prefix("data:")).collect();
            assert_eq!(data.concat().trim(), "", "{priming}");
        }
        let (id, progress) = http_response.message().await.unwrap();
        assert_eq!(progress["params"]["progress"], 1);
        // In these revisions a closed connection is not a cancellation. Another stream of the session has messages too.
        drop(http_response);
        drop(session.call(2, "greet").await);
        gate.notify_one();
        let mut resumed = session.get(id.as_deref()).await;
        assert!(resumed.is_stream());
        let (_, progress) = resumed.message().await.unwrap();
        assert_eq!(progress["params"]["progress"], 2);
        let (last, response) = resumed.message().await.unwrap();
        assert_eq!(response["result"]["content"][0]["text"], "through");
        assert!(resumed.message().await.is_none());
        let mut again = session.get(last.as_deref()).await;
        assert!(again.message().await.is_none());
    }
}

#[tokio::test]
async fn a_response_is_never_lost_after_notifications() {
    let gate = Arc::new(Notify::new());
    let opening = Arc::clone(&gate);
    let often = Tool::new("often").handler(|ctx: Ctx| async move {
        for step in 0..2000 {
            ctx.progress(f64::from(step), None);
        }
        "done"
    });
    let long = Tool::new("long").handler(move |ctx: Ctx| {
        let gate = Arc::clone(&gate);
        async move {
            ctx.progress(1.0, None);
            gate.notified().await;
            ctx.progress(2.0, None);
            "x".repeat(100_000)
        }
    });
    let settings = HttpOptions::new().event_log(1000, 80_000);
    let unhindered = bowline_server::Limits::default().progress_rate(u32::MAX);
    let server = Server::new("chatty").limits(unhindered).tool(often).tool(long).build().unwrap();
    let endpoint = HttpService::with_options(server, settings);
    let session = Session::open(&endpoint, "2025-06-18").await;
    for (id, name) in [(1, "often"), (2, "long")] {
        let mut http_response = session.call(id, name).await;
        assert_eq!(http_response.status, StatusCode::OK, "{name}");
        http_response.message().await.unwrap();
        opening.notify_one();
        let mut last = Value::Null;
        while let Some((_, message)) = http_response.message().await {
            last = message;
        }
        assert_eq!(last["id"], id, "{name}");
    }
}

#[tokio::test]
async fn a_silent_call_ends_with_its_session() {
    let started = Arc::new(Notify::new());
    let starting = Arc::clone(&started);
    let silent = Tool::new("silent").handler(move || {
        starting.notify_one();
        std::future::pending::<()>()
    });
    let endpoint = HttpService::new(Server::new("slow").tool(silent)).unwrap();
    let session = Session::open(&endpoint, "2025-06-18").await;
    let ending = async {
        started.notified().await;
        session.with(Ask::new(Method::DELETE)).send(&endpoint).await
    };
    let (http_response, ended) = tokio::join!(session.call(1, "silent"), ending);
    assert!(ended.status.is_success());
    assert!(!http_response.is_stream(), "there is nothing to wait for");
    assert_eq!(http_response.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_unknown_event_id_cannot_be_resumed_from() {
    let endpoint = endpoint();
    let session = Session::open(&endpoint, "2025-11-25").await;
    for last in ["0-18446744073709551615", "0-1", "7-0"] {
        assert_eq!(session.get(Some(last)).await.status, StatusCode::NOT_FOUND, "{last}");
    }
    assert_eq!(session.get(Some("0-0")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_session_stream_reopens_after_events_were_lost() {
    let server = server(Arc::default());
    let registry = server.registry();
    let settings = HttpOptions::new().event_log(2, 1_000_000);
    let endpoint = HttpService::with_options(server.build().unwrap(), settings);
    let session = Session::open(&endpoint, "2025-06-18").await;
    let mut reading = session.get(None).await;
    for number in 0..5 {
        let uri = format!("http://x/{number}");
        let subscribe = json!({ "jsonrpc": "2.0", "id": number, "method": "resources/subscribe", "params": { "uri": uri } });
        assert!(session.post(&subscribe).await.json().await.get("result").is_some());
        registry.resource_updated(uri);
    }
    // More came at once than is kept.
    while reading.message().await.is_some() {}
    let mut again = session.get(None).await;
    assert_eq!(again.status, StatusCode::OK);
    assert!(again.message().await.is_some());
}

#[tokio::test]
async fn unrelated_messages_are_sent_on_the_session_stream_once() {
    // proves: HTTP-41
    // proves: HTTP-01, HTTP-39, HTTP-40, HTTP-42, HTTP-45
    let server = server(Arc::default());
    let registry = server.registry();
    let endpoint = HttpService::new(server).unwrap();
    let session = Session::open(&endpoint, "2025-06-18").await;
    registry.add_tool(Tool::new("early").handler(|| "ok")).unwrap();
    let mut old = session.get(None).await;
    let (id, changed) = old.message().await.unwrap();
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    let mut new = session.get(id.as_deref()).await;
    // The response to a request is not sent on the GET stream.
    assert_eq!(session.call(5, "now").await.json().await["id"], 5);
    registry.add_tool(Tool::new("late").handler(|| "ok")).unwrap();
    let (_, changed) = new.message().await.unwrap();
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert!(old.message().await.is_none(), "the stream has one reader");
}

#[tokio::test(start_paused = true)]
async fn the_session_stream_does_not_delay_closing() {
    let endpoint = endpoint();
    let session = Session::open(&endpoint, "2025-06-18").await;
    let mut get_stream = session.get(None).await;
    let ending = async {
        tokio::task::yield_now().await;
        endpoint.end();
    };
    let reading = tokio::time::timeout(Duration::from_secs(60), get_stream.message());
    assert_eq!(tokio::join!(reading, ending).0, Ok(None));
}

#[tokio::test]
async fn a_batch_is_answered_as_one() {
    let endpoint = endpoint();
    let session = Session::open(&endpoint, "2025-03-26").await;
    let batch = json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }, { "jsonrpc": "2.0", "id": 2, "method": "ping" }]);
    let reply = session.post(&batch).await.json().await;
    assert_eq!(reply.as_array().map(Vec::len), Some(2), "{reply}");
    let other = Session::open(&endpoint, "2025-06-18").await;
    assert_eq!(other.post(&batch).await.json().await["error"]["code"], -32600);
}

#[tokio::test]
async fn a_streamed_batch_has_one_response_per_request() {
    // proves: HTTP-21
    let gate = Arc::new(Notify::new());
    gate.notify_one();
    let endpoint = HttpService::new(server(gate)).unwrap();
    let session = Session::open(&endpoint, "2025-03-26").await;
    let params = json!({ "name": "gated", "_meta": { "progressToken": 2 } });
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params },
    ]);
    let mut http_response = session.post(&batch).await;
    let mut ids = Vec::new();
    while let Some((_, message)) = http_response.message().await {
        let messages = message.as_array().cloned().unwrap_or_else(|| vec![message]);
        ids.extend(messages.iter().filter(|it| it.get("result").is_some()).map(|it| it["id"].as_i64()));
    }
    ids.sort_unstable();
    assert_eq!(ids, [Some(1), Some(2)]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_expires_ends_its_stream() {
    // proves: HTTP-26
    let endpoint = endpoint();
    let session = Session::open(&endpoint, "2025-11-25").await;
    let mut get_stream = session.get(None).await;
    let ended = tokio::time::timeout(Duration::from_secs(25 * 3600), get_stream.message()).await;
    assert_eq!(ended, Ok(None), "the stream ends with its session after a day");
    assert_eq!(session.call(1, "now").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn two_calls_of_the_same_id_are_both_answered() {
    let endpoint = endpoint();
    let session = Session::open(&endpoint, "2025-11-25").await;
    let mut first = session.call(1, "gated").await;
    let second = session.call(1, "now").await.json().await;
    assert_eq!(second["result"]["content"][0]["text"], "now", "{second}");
    assert!(first.message().await.is_some());
}

#[tokio::test]
async fn sessions_are_bounded_and_expire() {
    let settings = HttpOptions::new().max_sessions(2, 2).session_idle(Duration::from_millis(20));
    let endpoint = HttpService::with_options(server(Arc::default()).build().unwrap(), settings);
    let first = Session::open(&endpoint, "2025-06-18").await;
    let open = first.get(None).await;
    let _second = Session::open(&endpoint, "2025-06-18").await;
    let third = Ask::post(&hello("2025-06-18")).send(&endpoint).await;
    assert_eq!(third.status, StatusCode::SERVICE_UNAVAILABLE);
    // The one with an open stream is in use; the other goes.
    while endpoint.sessions() > 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(first.call(1, "now").await.status, StatusCode::OK);
    drop(open);
    while endpoint.sessions() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(first.call(2, "now").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn a_session_outlasts_a_night_without_requests() {
    let endpoint = endpoint();
    let session = Session::open(&endpoint, "2025-06-18").await;
    tokio::time::sleep(Duration::from_secs(10 * 3600)).await;
    assert_eq!(session.call(1, "now").await.status, StatusCode::OK);
    tokio::time::sleep(Duration::from_secs(12 * 3600 + 60)).await;
    assert_eq!(session.call(2, "now").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn the_session_idle_longest_is_replaced_by_a_new_one() {
    let settings = HttpOptions::new().max_sessions(3, 3);
    let endpoint = HttpService::with_options(server(Arc::default()).build().unwrap(), settings);
    let first = Session::open(&endpoint, "2025-06-18").await;
    let second = Session::open(&endpoint, "2025-06-18").await;
    let _stream = second.get(None).await;
    let third = Session::open(&endpoint, "2025-06-18").await;
    // Nobody is idle for long enough.
    let refused = Ask::post(&hello("2025-06-18")).send(&endpoint).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(third.call(1, "now").await.status, StatusCode::OK);
    tokio::time::sleep(Duration::from_secs(50)).await;
    Session::open(&endpoint, "2025-06-18").await;
    assert_eq!(endpoint.sessions(), 3);
    assert_eq!(first.call(1, "now").await.status, StatusCode::NOT_FOUND, "it was idle longest");
    assert_eq!(second.call(1, "now").await.status, StatusCode::OK, "its stream is open");
    assert_eq!(third.call(2, "now").await.status, StatusCode::OK);
}

#[tokio::test]
async fn sessions_without_a_principal_have_a_limit_of_their_own() {
    let settings = HttpOptions::new().max_sessions(10, 2).max_anonymous_sessions(3);
    let endpoint = HttpService::with_options(server(Arc::default()).build().unwrap(), settings);
    let open = async |principal: Option<&str>| {
        let ask = Ask::post(&hello("2025-06-18"));
        let ask = match principal {
            Some(principal) => ask.by(principal),
            None => ask,
        };
        ask.send(&endpoint).await.status.as_u16()
    };
    let mut statuses = Vec::new();
    for principal in [None, None, None, None, Some("ada"), Some("ada"), Some("ada"), Some("bob")] {
        statuses.push(open(principal).await);
    }
    assert_eq!(statuses, [200, 200, 200, 503, 200, 200, 503, 200]);
    // A user can have any number of clients; they share the limit.
    let grace = |client: &str| format!("[\"https://as.example\",\"grace\",\"{client}\"]");
    for (client, status) in [("one", 200), ("two", 200), ("three", 503)] {
        assert_eq!(open(Some(&grace(client))).await, status, "{client}");
    }
}

#[tokio::test]
async fn a_message_that_arrives_after_the_end_of_its_session_starts_nothing() {
    let begun = Arc::new(AtomicBool::new(false));
    let begins = Arc::clone(&begun);
    let endless = Tool::new("endless").handler(move || {
        begins.store(true, Ordering::SeqCst);
        std::future::pending::<()>()
    });
    let settings = HttpOptions::new().sse_path("/sse");
    let endpoint = HttpService::with_options(Server::new("first").tool(endless).build().unwrap(), settings);
    let mut http_response = Ask::new(Method::GET).path("/sse").send(&endpoint).await;
    let (_, address) = http_response.message().await.unwrap();
    let post = |body: &Value| Ask::post(body).path(&format!("/sse{}", address.as_str().unwrap()));
    assert_eq!(post(&hello("2024-11-05")).send(&endpoint).await.status, StatusCode::ACCEPTED);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "endless" } });
    let (arrives, body) = late();
    // The head of the message is there before the session ends, and its body after.
    let ending = async {
        drop(http_response);
        assert!(arrives.send(call.to_string().into()).is_ok());
    };
    let (answered, ()) = tokio::join!(biased; post(&call).send_with(body, &endpoint), ending);
    assert_eq!(answered.status, StatusCode::NOT_FOUND);
    assert!(!begun.load(Ordering::SeqCst), "nobody would ever end the call");
}

#[tokio::test]
async fn a_long_call_may_close_its_stream_and_be_resumed() {
    // proves: HTTP-33, HTTP-35
    let patient = Tool::new("patient").handler(|ctx: Ctx| async move {
        ctx.close_stream();
        tokio::task::yield_now().await;
        "worth the wait"
    });
    let endpoint = HttpService::new(Server::new("slow").tool(patient)).unwrap();
    let session = Session::open(&endpoint, "2025-11-25").await;
    let mut http_response = session.call(1, "patient").await;
    let priming = http_response.event().await.unwrap();
    assert!(priming.contains("retry:"), "{priming}");
    assert!(http_response.event().await.is_none(), "the server has closed the stream");
    let id = priming.lines().find_map(|line| line.strip_prefix("id:")).unwrap().trim().to_owned();
    let mut back = session.get(Some(&id)).await;
    let (_, reply) = back.message().await.unwrap();
    assert_eq!(reply["result"]["content"][0]["text"], "worth the wait");
    // A revision that does not know of it is answered at once.
    let older = Session::open(&endpoint, "2025-06-18").await;
    let reply = older.call(1, "patient").await.json().await;
    assert_eq!(reply["result"]["content"][0]["text"], "worth the wait");
}

#[tokio::test]
async fn a_question_can_still_be_answered_while_the_server_ends() {
    let endpoint = endpoint();
    let session = Session::open(&endpoint, "2025-06-18").await;
    let mut http_response = session.call(1, "greet").await;
    let (_, question) = http_response.message().await.unwrap();
    endpoint.end();
    assert_eq!(session.call(2, "now").await.status, StatusCode::SERVICE_UNAVAILABLE);
    let content = json!({ "name": "Ada" });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": content } });
    assert_eq!(session.post(&answer).await.status, StatusCode::ACCEPTED);
    let (_, response) = http_response.message().await.unwrap();
    assert_eq!(response["result"]["content"][0]["text"], "hello Ada");
}

#[tokio::test]
async fn a_handshake_in_a_session_is_refused_by_it() {
    let endpoint = endpoint();
    let session = Session::open(&endpoint, "2025-06-18").await;
    let again = session.post(&hello("2025-06-18")).await;
    assert!(!again.headers.contains_key("mcp-session-id"));
    assert_eq!(again.json().await["error"]["code"], -32600);
    assert_eq!(endpoint.sessions(), 1);
}
