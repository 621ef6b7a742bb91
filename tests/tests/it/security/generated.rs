//! Every method with every parameter absent, null, of another type, empty, extreme or unknown: answered, and survived.

use super::support::{Endpoint, Request, Watch, describe, server};
use bowline_http::HttpOptions;
use bowline_server::{Resource, Server};
use bowline_testing::Peer;
use bowline_tests::fixture;
use bowline_types::Revision;
use serde_json::{Value, json};

/// The methods of all revisions, each with every parameter it may have.
fn requests() -> Vec<(&'static str, Value)> {
    let info = json!({ "name": "c", "version": "1", "title": "C", "icons": [{ "src": "data:,", "mimeType": "image/png", "sizes": ["1x1"] }] });
    vec![
        ("ping", json!({ "_meta": { "progressToken": 1 } })),
        ("server/discover", json!({})),
        (
            "initialize",
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "roots": { "listChanged": true }, "sampling": {}, "elicitation": { "form": {} } },
                "clientInfo": info,
            }),
        ),
        ("tools/list", json!({ "cursor": "c" })),
        (
            "tools/call",
            json!({
                "name": "echo", "arguments": { "message": "m" }, "requestState": "s", "task": { "ttl": 1 },
                "inputResponses": { "q0": { "action": "accept", "content": { "name": "x" } } },
                "_meta": {
                    "progressToken": "t", "io.modelcontextprotocol/logLevel": "info",
                    "io.modelcontextprotocol/clientInfo": info, "traceparent": "00-0-0-0",
                },
            }),
        ),
        ("resources/list", json!({ "cursor": "c" })),
        ("resources/templates/list", json!({ "cursor": "c" })),
        ("resources/read", json!({ "uri": "http://x/y" })),
        ("resources/subscribe", json!({ "uri": "http://x/y" })),
        ("resources/unsubscribe", json!({ "uri": "http://x/y" })),
        ("prompts/list", json!({ "cursor": "c" })),
        ("prompts/get", json!({ "name": "greet", "arguments": { "name": "x" } })),
        (
            "completion/complete",
            json!({
                "ref": { "type": "ref/prompt", "name": "greet" }, "argument": { "name": "name", "value": "v" },
                "context": { "arguments": { "other": "o" } },
            }),
        ),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/resource", "uri": "http://x/{y}" }, "argument": { "name": "y", "value": "" } }),
        ),
        ("logging/setLevel", json!({ "level": "info" })),
        ("tasks/get", json!({ "taskId": "t" })),
        ("tasks/list", json!({ "cursor": "c" })),
        ("sampling/createMessage", json!({ "messages": [], "maxTokens": 1 })),
        ("elicitation/create", json!({ "message": "m", "requestedSchema": {} })),
        ("roots/list", json!({})),
    ]
}

fn notifications() -> Vec<(&'static str, Value)> {
    vec![
        ("notifications/cancelled", json!({ "requestId": 1, "reason": "r" })),
        ("notifications/progress", json!({ "progressToken": 1, "progress": 1, "total": 2, "message": "m" })),
        ("notifications/initialized", json!({})),
        ("notifications/roots/list_changed", json!({})),
        ("notifications/message", json!({ "level": "info", "data": 1 })),
        ("notifications/elicitation/complete", json!({ "elicitationId": "e" })),
        ("notifications/tasks/status", json!({ "taskId": "t" })),
    ]
}

/// The places of every value within, the whole included.
fn places(value: &Value, here: &str, into: &mut Vec<String>) {
    into.push(here.to_owned());
    let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                places(value, &format!("{here}/{}", escape(key)), into);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{here}/{index}"), into);
            }
        }
        _ => {}
    }
}

/// What a value is replaced with.
fn replacements() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(f64::MAX),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("x"),
        json!("\u{0}\r\n\u{1b}"),
        json!("x".repeat(70_000)),
        json!([]),
        json!([null]),
        json!({}),
        json!({ "": { "unknown": [1] } }),
    ]
}

/// `whole` with each of its values in turn replaced, removed, or given an unknown member.
fn spoiled(whole: &Value) -> Vec<Value> {
    let mut all = vec![whole.clone()];
    let mut found = Vec::new();
    places(whole, "", &mut found);
    for place in found {
        for replacement in replacements() {
            let mut spoiled = whole.clone();
            *spoiled.pointer_mut(&place).unwrap() = replacement;
            all.push(spoiled);
        }
        let mut extended = whole.clone();
        if let Some(Value::Object(members)) = extended.pointer_mut(&place) {
            members.insert("unknown".into(), json!({ "a": [1] }));
            all.push(extended);
        }
        if let Some((parent, key)) = place.rsplit_once('/') {
            let mut without = whole.clone();
            let key = key.replace("~1", "/").replace("~0", "~");
            if let Some(Value::Object(members)) = without.pointer_mut(parent) {
                members.remove(&key);
                all.push(without);
            }
        }
    }
    all
}

/// A response has a result or an error with a code of the protocol, and no panic behind it.
fn is_sound(response: &Value, request: &Value) {
    assert_ne!(response.get("result").is_some(), response.get("error").is_some(), "{request}: {response}");
    let Some(error) = response.get("error") else { return };
    let code = error["code"].as_i64().unwrap();
    assert!((-32700..=-32000).contains(&code), "{request}: {response}");
    let message = error["message"].as_str().unwrap();
    assert!(!message.contains("panicked"), "{request}: {response}");
}

#[tokio::test]
async fn v20_any_request_is_answered() {
    let mut peer = Peer::memory(fixture("everything").unwrap()).unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    let mut count = 0;
    for (method, params) in requests() {
        for params in spoiled(&params) {
            count += 1;
            let id = json!(format!("s{count}"));
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            peer.send(request.clone()).await.unwrap();
            is_sound(&peer.response(&id).await.unwrap(), &request);
        }
    }
    for (method, params) in notifications() {
        for params in spoiled(&params) {
            peer.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await.unwrap();
        }
        assert_eq!(peer.request("ping", json!({})).await.unwrap()["result"], json!({}));
    }
    assert!(count > 1000, "{count} requests are too few");
}

#[tokio::test]
async fn v20_any_modern_request_is_answered_over_http() {
    let server = fixture("everything").unwrap().tool(
        // The call that tells whether the server is alive.
        bowline_server::Tool::new("hit").handler(|| "hit"),
    );
    let endpoint = Endpoint::serve(server, Watch::default(), HttpOptions::new()).await;
    let mut wire = endpoint.connect().await;
    for (method, mut params) in requests() {
        describe(&mut params);
        for params in spoiled(&params) {
            let subject = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str);
            let plain = subject.filter(|text| text.len() < 1000 && !text.contains(char::is_control));
            let subject = plain.unwrap_or("x").to_owned();
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            let mut request =
                Request::post(&body).set("MCP-Protocol-Version", "2026-07-28").set("Mcp-Method", method);
            if ["tools/call", "resources/read", "prompts/get"].contains(&method) {
                request = request.set("Mcp-Name", &subject);
            }
            wire.write(&request.bytes(endpoint.address)).await;
            let reply = wire.reply().await;
            assert!([200, 400, 404].contains(&reply.status), "{body}: {reply:?}");
            let response = match reply.header("content-type") {
                Some("text/event-stream") => reply.messages().pop().unwrap_or_default(),
                _ => reply.json(),
            };
            // Without what makes a request modern it belongs to a session that is not there.
            is_sound(&response, &body);
        }
    }
    let reply = endpoint.send(&Request::call("hit", json!({}))).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "hit");
}

#[tokio::test]
async fn v20_any_listen_is_answered() {
    let endpoint = Endpoint::new().await;
    let mut params = json!({ "notifications": {
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": ["http://x/y"],
    } });
    describe(&mut params);
    for params in spoiled(&params) {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params });
        let request = Request::post(&body)
            .set("MCP-Protocol-Version", "2026-07-28")
            .set("Mcp-Method", "subscriptions/listen");
        let mut wire = endpoint.connect().await;
        wire.write(&request.bytes(endpoint.address)).await;
        let reply = wire.head().await;
        assert!([200, 400].contains(&reply.status), "{body}: {reply:?}");
        if reply.header("content-type") == Some("text/event-stream") {
            wire.until("acknowledged").await;
        }
    }
    endpoint.is_alive().await;
}

#[tokio::test]
async fn v20_any_envelope_leaves_the_next_one_answered() {
    let endpoint = Endpoint::new().await;
    let session = endpoint.open("2025-11-25").await;
    let mut peer = Peer::memory(server(&Watch::default())).unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    for whole in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": {} }),
        json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
        json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": 1, "message": "m", "data": {} } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized", "params": {} }),
    ] {
        for message in spoiled(&whole) {
            let reply = endpoint.send(&Request::post(&message).set("Mcp-Session-Id", &session)).await;
            assert!([200, 202, 400].contains(&reply.status), "{message}: {reply:?}");
            peer.send(message).await.unwrap();
            // Replies to these come before; only what asks for one has one.
            let pong = peer.request("ping", json!({})).await.unwrap();
            assert_eq!(pong["result"], json!({}));
        }
    }
    endpoint.is_alive().await;
}

#[tokio::test]
async fn v20_cancelling_before_the_start_or_after_the_end_has_no_effect() {
    let watch = Watch::default();
    let mut peer = Peer::memory(server(&watch)).unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    for id in [json!(7), json!("7"), json!(0)] {
        peer.notify("notifications/cancelled", json!({ "requestId": id })).await.unwrap();
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "hit" } });
        peer.send(call).await.unwrap();
        assert_eq!(peer.response(&id).await.unwrap()["result"]["content"][0]["text"], "hit");
        for _ in 0..3 {
            peer.notify("notifications/cancelled", json!({ "requestId": id })).await.unwrap();
        }
    }
    assert_eq!(peer.request("ping", json!({})).await.unwrap()["result"], json!({}));
    assert_eq!(peer.close().await.unwrap(), [Value::Null; 0]);
    assert_eq!(watch.ran(), 3);
}

#[tokio::test]
async fn v20_a_client_may_disconnect_at_any_byte() {
    let endpoint = Endpoint::new().await;
    let session = endpoint.open("2025-11-25").await;
    for request in [
        Request::call("hit", json!({})),
        Request::in_session(&session, &json!(1), "hit", json!({})),
        Request::stream(&session, None),
    ] {
        let bytes = request.bytes(endpoint.address);
        for end in 0..bytes.len() {
            let mut wire = endpoint.connect().await;
            wire.write(&bytes[..end]).await;
        }
    }
    // What was not sent whole was not done.
    assert_eq!(endpoint.ran(), 0);
    endpoint.is_alive().await;
    let reply = endpoint.send(&Request::in_session(&session, &json!(1), "hit", json!({}))).await;
    assert_eq!(reply.status, 200, "and the session is as it was");
}

#[tokio::test]
async fn v20_a_stream_may_end_at_any_byte() {
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hit"}}"#;
    let watch = Watch::default();
    let handle = server(&watch).build().unwrap();
    for end in 0..call.len() {
        let input = format!("{hello}\n{}", &call[..end]);
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        handle.serve(input.as_bytes(), theirs).await.unwrap();
        drop(ours);
    }
    assert_eq!(watch.ran(), 0);
}

#[tokio::test]
async fn v20_a_panic_is_the_failure_of_one_call() {
    let endpoint = Endpoint::new().await;
    let (one, other) = (endpoint.open("2025-11-25").await, endpoint.open("2025-11-25").await);
    let mut waiting = endpoint.connect().await;
    waiting.write(&Request::in_session(&one, &json!(1), "gated", json!({})).bytes(endpoint.address)).await;
    endpoint.watch.begun().await;
    for session in [&one, &other] {
        let reply = endpoint.send(&Request::in_session(session, &json!(2), "panic", json!({}))).await;
        assert_eq!(reply.code(), -32603, "{reply:?}");
        // What a panic says is for the log, not for the client.
        assert!(!String::from_utf8_lossy(&reply.body).contains("on purpose"));
    }
    assert_eq!(endpoint.send(&Request::call("panic", json!({}))).await.code(), -32603);
    endpoint.watch.gate.notify_one();
    let reply = waiting.reply().await;
    assert_eq!(reply.messages().last().unwrap()["result"]["content"][0]["text"], "through");
}

#[tokio::test]
async fn v21_uris_made_for_backtracking_are_answered() {
    let watch = Watch::default();
    let template = |uri: &str| Resource::new(uri, "t").text("found");
    let server: Server = server(&watch)
        .resource(template("http://x/users{/id*}"))
        .resource(template("http://x/search{?tags*}"))
        .resource(template("http://x/{a}/{b}/{c}/{d}/end"));
    let endpoint = Endpoint::serve(server, watch, HttpOptions::new()).await;
    let mut told = Vec::new();
    for uri in [
        format!("http://x/users/{}FAIL/ ", "user1,user2,user3,".repeat(15)),
        format!("http://x/users{}", "/user1,user2,user3".repeat(3000)),
        format!("http://x/search?tags={}&FAIL", "a,".repeat(30_000)),
        format!("http://x/{}", "a/".repeat(30_000)),
        format!("http://x/users/{}", "x".repeat(1024 * 1024)),
        format!("http://x/{}/end", "%41".repeat(20_000)),
    ] {
        let body = json!({ "uri": uri });
        // The URI is too long for a header, so that the legacy era has to do.
        let session = endpoint.open("2025-11-25").await;
        let read = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": body });
        let reply = endpoint.send(&Request::post(&read).set("Mcp-Session-Id", &session)).await;
        told.push(reply.code());
    }
    assert!(told.iter().all(|code| [0, -32002, -32602].contains(code)), "{told:?}");
    assert_ne!(told[4], 0, "a URI of a mebibyte is of nothing: {told:?}");
}
