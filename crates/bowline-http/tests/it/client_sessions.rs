//! Sessions, from 2025-03-26 to 2025-11-25: what they contain, how streams are resumed, and what happens when they end.

use crate::client_peer::{Asked, Events, Peer, greeting, legacy, text};
use bowline_client::{Answer, Client};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const REVISIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// What every request of a session carries.
fn look_at(asked: &Asked, session: &str, revision: &str) {
    assert_eq!(asked.header("mcp-session-id"), Some(session), "{}", asked.kind());
    let version = (revision >= "2025-06-18").then_some(revision);
    assert_eq!(asked.header("mcp-protocol-version"), version, "{}", asked.kind());
    assert_eq!(asked.header("mcp-method"), None);
    if asked.method == "POST" {
        let accept = asked.header("accept").unwrap();
        assert!(accept.contains("application/json") && accept.contains("text/event-stream"), "{accept}");
        assert!(asked.body.is_object(), "a body is one message");
    }
}

#[tokio::test]
async fn every_request_names_its_session_and_revision() {
    // proves: HTTP-10, HTTP-11, HTTP-12, HTTP-13, HTTP-37, HTTP-38, HTTP-57, HTTP-61, HTTP-62, HTTP-64, HTTP-65
    for revision in REVISIONS {
        let mut peer = Peer::new().await;
        let target = peer.target();
        let opening = peer.open_legacy(revision, "se$$ion~1");
        let (client, (initialize, initialized, get_stream)) = tokio::join!(Client::connect(target), opening);
        let client = client.unwrap();
        assert_eq!(initialize.header("mcp-session-id"), None);
        assert_eq!(initialize.header("mcp-protocol-version"), None);
        look_at(&initialized, "se$$ion~1", revision);
        look_at(&get_stream.asked, "se$$ion~1", revision);
        assert_eq!(get_stream.asked.header("accept"), Some("text/event-stream"));
        assert_eq!(get_stream.asked.header("last-event-id"), None);
        let (called, ()) = tokio::join!(client.call("t", ()), async {
            let asked = peer.post("tools/call").await;
            look_at(&asked, "se$$ion~1", revision);
            asked.result(&text("ok")).await;
        });
        called.unwrap();
        assert!(!format!("{client:?}").contains("se$$ion"));
        let ((), ()) = tokio::join!(client.close(), async {
            let asked = peer.verb("DELETE").await;
            look_at(&asked, "se$$ion~1", revision);
            // A server need not let its clients end sessions.
            asked.status(405, "text/plain", "no").await;
        });
        get_stream.closed().await;
        assert!(peer.unseen().is_empty(), "{:?}", peer.unseen());
    }
}

#[tokio::test]
async fn a_server_without_sessions_or_get_stream_is_served_as_well() {
    let mut peer = Peer::new().await;
    let target = peer.target();
    let (client, ()) = tokio::join!(Client::connect(target), async {
        peer.post("server/discover").await.status(404, "text/html", "<h1>Not found</h1>").await;
        // The greeting may come as an event, too.
        peer.post("initialize").await.events(&[]).await.result(&greeting("2025-03-26")).await;
        peer.post("notifications/initialized").await.accepted().await;
        peer.verb("GET").await.status(405, "text/plain", "no").await;
    });
    let client = client.unwrap();
    let (called, ()) = tokio::join!(client.call("t", ()), async {
        let asked = peer.post("tools/call").await;
        assert_eq!(asked.header("mcp-session-id"), None);
        asked.result(&text("ok")).await;
    });
    assert_eq!(called.unwrap().text(), "ok");
    // Without a session, a status means no more than it says.
    let (called, ()) = tokio::join!(client.call("t", ()), async {
        peer.post("tools/call").await.status(404, "text/plain", "gone").await;
    });
    assert_eq!(called.unwrap_err().http_status(), Some(404));
    client.close().await;
    assert!(peer.unseen().is_empty(), "{:?}", peer.unseen());
}

fn progress(token: &Value, step: u32) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": token, "progress": step } })
}

async fn event(events: &mut Events, id: &str, message: &Value) {
    events.write(&format!("id: {id}\ndata: {message}\n\n")).await;
}

#[tokio::test]
async fn a_broken_stream_is_resumed_without_duplicates() {
    // proves: HTTP-32, HTTP-34, HTTP-44, HTTP-49, HTTP-50
    for revision in REVISIONS {
        let (client, mut peer, _get_stream) = legacy(Client::builder(), revision).await;
        let steps: Arc<Mutex<Vec<String>>> = Arc::default();
        let received = Arc::clone(&steps);
        let call = client
            .call("t", ())
            .progress(move |step| received.lock().unwrap().push(step.progress.to_string()));
        let (called, ()) = tokio::join!(call, async {
            let asked = peer.post("tools/call").await;
            let (token, response) = (asked.body["id"].clone(), asked.response_to(&text("done")));
            let mut events = asked.events(&[]).await;
            // An event without data only says where the stream begins.
            events.write("id: a-0\nretry: 1\ndata:\n\n").await;
            drop(events);
            let back = peer.verb("GET").await;
            look_at(&back, "s-1", revision);
            assert_eq!(back.header("last-event-id"), Some("a-0"));
            assert_eq!(back.header("accept"), Some("text/event-stream"));
            let mut events = back.events(&[]).await;
            event(&mut events, "a-1", &progress(&token, 1)).await;
            event(&mut events, "a-2", &progress(&token, 2)).await;
            // Cut within an event, which then counts as not seen.
            events.write(&format!("id: a-3\ndata: {}", progress(&token, 3))).await;
            drop(events);
            // A server that is away for a moment is asked again.
            let back = peer.verb("GET").await;
            assert_eq!(back.header("last-event-id"), Some("a-2"));
            back.status(503, "text/plain", "in a moment").await;
            let back = peer.verb("GET").await;
            assert_eq!(back.header("last-event-id"), Some("a-2"));
            let mut events = back.events(&[]).await;
            event(&mut events, "a-3", &progress(&token, 3)).await;
            event(&mut events, "a-4", &serde_json::from_str(&response).unwrap()).await;
        });
        assert_eq!(called.unwrap().text(), "done", "{revision}");
        assert_eq!(*steps.lock().unwrap(), ["1", "2", "3"]);
        assert!(peer.unseen().is_empty(), "{:?}", peer.unseen());
    }
}

#[tokio::test]
async fn a_server_can_ask_for_more_time() {
    // proves: HTTP-36
    let (client, mut peer, _get_stream) = legacy(Client::builder(), "2025-11-25").await;
    let mut waiting = Box::pin(client.call("later", ()));
    tokio::select! {
        _ = &mut waiting => panic!("it has no answer yet"),
        () = async {
            let mut events = peer.post("tools/call").await.events(&[]).await;
            events.write("id: later\nretry: 3600000\ndata:\n\n").await;
        } => {}
    }
    // Meanwhile another stream, whose server asks for next to none, breaks off again and again.
    let (called, _) = tokio::join!(client.call("soon", ()), async {
        let asked = peer.post("tools/call").await;
        let (token, response) = (asked.body["id"].clone(), asked.response_to(&text("done")));
        let mut events = asked.events(&[]).await;
        for round in 0..10 {
            events.write(&format!("id: soon-{round}\nretry: 1\ndata: {}\n\n", progress(&token, round))).await;
            drop(events);
            let back = peer.verb("GET").await;
            assert_eq!(back.header("last-event-id"), Some(&*format!("soon-{round}")));
            events = back.events(&[]).await;
        }
        events.write(&format!("data: {response}\n\n")).await;
        events
    });
    assert_eq!(called.unwrap().text(), "done");
    assert!(peer.unseen().is_empty(), "it came back too early: {:?}", peer.unseen());
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_fails_its_request_alone() {
    let (client, mut peer, _get_stream) = legacy(Client::builder(), "2025-11-25").await;
    // Without ids there is nothing to come back to.
    let (called, id) = tokio::join!(client.call("t", ()), async {
        let asked = peer.post("tools/call").await;
        let id = asked.body["id"].clone();
        asked.events(&[]).await.write("id: 1\ndata:\n\nid:\ndata:\n\n").await;
        id
    });
    assert!(called.unwrap_err().is_closed());
    is_given_up(&mut peer, &id).await;
    for status in [400, 404, 405] {
        let (called, id) = tokio::join!(client.call("t", ()), async {
            let asked = peer.post("tools/call").await;
            let id = asked.body["id"].clone();
            asked.events(&[]).await.write("id: 1\nretry: 0\ndata:\n\n").await;
            peer.verb("GET").await.status(status, "text/plain", "what was it?").await;
            id
        });
        let error = called.unwrap_err();
        assert!(
            error.is_closed() && !error.is_expired() && error.to_string().contains("what was it?"),
            "{error}"
        );
        is_given_up(&mut peer, &id).await;
    }
    let (called, ()) = tokio::join!(client.call("t", ()), async {
        peer.post("tools/call").await.result(&text("fine")).await;
    });
    assert_eq!(called.unwrap().text(), "fine");
    assert!(peer.unseen().is_empty());
}

/// The server is notified that nobody waits for a call any more whose reply was lost.
async fn is_given_up(peer: &mut Peer, id: &Value) {
    let cancelled = peer.post("notifications/cancelled").await;
    look_at(&cancelled, "s-1", "2025-11-25");
    assert_eq!(cancelled.body["params"]["requestId"], *id);
    cancelled.accepted().await;
}

#[tokio::test]
async fn the_session_stream_is_kept_open() {
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    let received = Arc::new(tokio::sync::Semaphore::new(0));
    let notified = Arc::clone(&received);
    let builder = Client::builder().on_notification(move |_| notified.add_permits(1));
    let (_client, mut peer, mut get_stream) = legacy(builder, "2025-06-18").await;
    event(&mut get_stream, "s-1", &changed).await;
    received.acquire().await.unwrap().forget();
    drop(get_stream);
    let back = peer.verb("GET").await;
    assert_eq!(back.header("last-event-id"), Some("s-1"));
    // What followed is no longer kept: then the stream begins anew.
    back.status(404, "text/plain", "gone").await;
    let back = peer.verb("GET").await;
    assert_eq!(back.header("last-event-id"), None);
    look_at(&back, "s-1", "2025-06-18");
    let mut get_stream = back.events(&[]).await;
    event(&mut get_stream, "s-9", &changed).await;
    received.acquire().await.unwrap().forget();
    drop(get_stream);
    for _ in 0..2 {
        let back = peer.verb("GET").await;
        assert_eq!(back.header("last-event-id"), Some("s-9"));
        back.status(503, "text/plain", "in a moment").await;
    }
}

#[tokio::test]
async fn a_session_that_ends_during_its_stream_is_reopened() {
    let (client, mut peer, mut get_stream) = legacy(Client::builder(), "2025-06-18").await;
    get_stream.write("id: 1\ndata:\n\n").await;
    drop(get_stream);
    let resumed = peer.verb("GET").await;
    assert_eq!(resumed.header("last-event-id"), Some("1"));
    resumed.status(404, "text/plain", "").await;
    peer.verb("GET").await.status(404, "text/plain", "").await;
    let (initialize, _, _get_stream) = peer.open_legacy("2025-06-18", "s-2").await;
    assert_eq!(initialize.body["method"], "initialize");
    let (called, ()) = tokio::join!(client.call("t", ()), async {
        let asked = peer.post("tools/call").await;
        look_at(&asked, "s-2", "2025-06-18");
        asked.result(&text("ok")).await;
    });
    assert_eq!(called.unwrap().text(), "ok");
}

#[tokio::test]
async fn an_expired_session_is_reopened_and_no_call_runs_twice() {
    // proves: HTTP-60
    let (client, mut peer, _get_stream) = legacy(Client::builder(), "2025-11-25").await;
    let (ok, ()) = tokio::join!(client.call("t", ()), async {
        peer.post("tools/call").await.result(&text("ok")).await;
    });
    ok.unwrap();
    let (called, (initialize, _, _get_stream)) = tokio::join!(client.call("delete", ()), async {
        peer.post("tools/call").await.status(404, "text/plain", "session not found").await;
        peer.open_legacy("2025-11-25", "s-2").await
    });
    let error = called.unwrap_err();
    assert!(error.is_expired() && error.is_closed() && error.to_string().contains("session"), "{error}");
    assert_eq!(initialize.body["method"], "initialize");
    assert_eq!(initialize.header("mcp-session-id"), None);
    assert!(
        peer.unseen().is_empty(),
        "a call is not repeated, an expired session not ended: {:?}",
        peer.unseen()
    );
    let (called, ()) = tokio::join!(client.call("t", ()), async {
        let asked = peer.post("tools/call").await;
        look_at(&asked, "s-2", "2025-11-25");
        asked.result(&text("again")).await;
    });
    assert_eq!(called.unwrap().text(), "again");
}

#[tokio::test]
async fn a_request_that_changes_nothing_survives_the_end_of_its_session() {
    let (client, mut peer, _get_stream) = legacy(Client::builder(), "2025-06-18").await;
    let page = json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] });
    let (tools, _get_stream) = tokio::join!(client.tools(), async {
        peer.post("tools/list").await.status(404, "application/json", "{}").await;
        let (_, _, get_stream) = peer.open_legacy("2025-06-18", "s-2").await;
        let asked = peer.post("tools/list").await;
        look_at(&asked, "s-2", "2025-06-18");
        asked.result(&page).await;
        get_stream
    });
    assert_eq!(tools.unwrap()[0].name, "t");
    // Once: a server that forgets its sessions again and again is not asked for ever.
    let (tools, ()) = tokio::join!(client.tools(), async {
        peer.post("tools/list").await.status(404, "application/json", "{}").await;
        let (_, _, _get_stream) = peer.open_legacy("2025-06-18", "s-3").await;
        peer.post("tools/list").await.status(404, "application/json", "{}").await;
    });
    assert!(tools.unwrap_err().is_expired());
}

#[tokio::test]
async fn requests_of_the_server_are_answered_by_a_post() {
    let builder = Client::builder().on_ask(|_| async { Answer::accept(json!({ "name": "Ada" })) });
    let (client, mut peer, mut get_stream) = legacy(builder, "2025-06-18").await;
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
        "params": { "message": "Who?", "requestedSchema": schema } });
    let (called, ()) = tokio::join!(client.call("greet", ()), async {
        let mut events = peer.post("tools/call").await.events(&[]).await;
        events.message(&question).await;
        let answer = peer.response().await;
        look_at(&answer, "s-1", "2025-06-18");
        assert_eq!(answer.body["id"], "q");
        assert_eq!(answer.body["result"]["content"]["name"], "Ada");
        answer.accepted().await;
        events.result(&text("hello")).await;
    });
    assert_eq!(called.unwrap().text(), "hello");
    get_stream.message(&json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" })).await;
    let pong = peer.response().await;
    assert_eq!(pong.body, json!({ "jsonrpc": "2.0", "id": 7, "result": {} }));
    pong.accepted().await;
}

#[tokio::test]
async fn messages_without_a_response_are_resent_when_the_connection_breaks() {
    let builder = Client::builder().on_ask(|_| async { Answer::accept(json!({})) });
    let (client, mut peer, _get_stream) = legacy(builder, "2025-11-25").await;
    let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
        "params": { "message": "Sure?", "requestedSchema": { "type": "object", "properties": {} } } });
    let (called, ()) = tokio::join!(client.call("greet", ()), async {
        let mut events = peer.post("tools/call").await.events(&[]).await;
        events.message(&question).await;
        let lost = peer.response().await.body;
        let again = peer.response().await;
        assert_eq!((&again.body, &again.body["id"]), (&lost, &json!("q")));
        again.accepted().await;
        events.result(&text("hello")).await;
    });
    assert_eq!(called.unwrap().text(), "hello");
    // What hearing something of an extension twice would do is not known.
    client.notify("example.com/count", ()).await.unwrap();
    drop(peer.post("example.com/count").await);
    let (pinged, ()) =
        tokio::join!(client.ping(), async { peer.post("ping").await.result(&json!({})).await });
    pinged.unwrap();
    assert!(peer.unseen().is_empty());
}

#[tokio::test]
async fn an_abandoned_request_sends_a_cancellation() {
    // proves: HTTP-29
    for revision in REVISIONS {
        let (client, mut peer, _get_stream) = legacy(Client::builder(), revision).await;
        let mut call = Box::pin(client.call("slow", ()));
        let asked = tokio::select! {
            _ = &mut call => panic!("it has no answer yet"),
            asked = peer.post("tools/call") => asked,
        };
        drop(call);
        let cancelled = peer.post("notifications/cancelled").await;
        look_at(&cancelled, "s-1", revision);
        assert_eq!(cancelled.body["params"]["requestId"], asked.body["id"]);
        cancelled.accepted().await;
        assert!(peer.unseen().is_empty());
    }
}

#[tokio::test]
async fn names_of_headers_are_compared_without_case() {
    // proves: HTTP-63
    for name in ["MCP-SESSION-ID", "mcp-session-id", "Mcp-Session-Id"] {
        let mut peer = Peer::new().await;
        let target = peer.target();
        let (client, ()) = tokio::join!(Client::connect(target), async {
            peer.post("server/discover").await.status(400, "text/plain", "").await;
            let asked = peer.post("initialize").await;
            let body = asked.response_to(&greeting("2025-06-18"));
            asked.reply(200, &[("content-TYPE", "application/json"), (name, "s-1")], &body).await;
            let initialized = peer.post("notifications/initialized").await;
            assert_eq!(initialized.header("mcp-session-id"), Some("s-1"));
            initialized.accepted().await;
        });
        client.unwrap();
    }
}

#[tokio::test]
async fn a_notification_is_handled_before_the_next_request() {
    let builder = Client::builder().log_level(bowline_types::LoggingLevel::Info);
    let mut peer = Peer::new().await;
    let target = peer.target();
    let (client, ()) = tokio::join!(builder.connect(target), async {
        peer.post("server/discover").await.status(400, "text/plain", "").await;
        let mut result = greeting("2025-06-18");
        result["capabilities"]["logging"] = json!({});
        peer.post("initialize").await.result(&result).await;
        // Whatever comes next, it is not the request that follows.
        let initialized = peer.next().await;
        assert_eq!(initialized.kind(), "POST notifications/initialized");
        initialized.accepted().await;
        peer.post("logging/setLevel").await.result(&json!({})).await;
    });
    client.unwrap();
}
