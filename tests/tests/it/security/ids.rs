//! Ids that collide, look like nothing, or belong to somebody else.

use super::support::{DEADLINE, Endpoint, Request, Watch, server};
use bowline_testing::Peer;
use bowline_types::Revision;
use serde_json::{Value, json};

/// Makes calls one after the other, all with the same id, and looks for its own words in each answer.
async fn repeat(endpoint: &Endpoint, session: Option<&str>, client: usize, calls: usize) {
    let mut wire = endpoint.connect().await;
    for call in 0..calls {
        let message = format!("{client}/{call}");
        let arguments = json!({ "message": message });
        let request = match session {
            Some(session) => Request::in_session(session, &json!(1), "echo", arguments),
            None => Request::call("echo", arguments),
        };
        wire.write(&request.bytes(endpoint.address)).await;
        let reply = wire.reply().await.json();
        assert_eq!((&reply["result"]["content"][0]["text"], &reply["id"]), (&json!(message), &json!(1)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v22_calls_of_one_id_are_answered_each_with_its_own_result() {
    let (clients, calls) = (64, 40);
    let endpoint = Endpoint::new().await;
    let session = endpoint.open("2025-11-25").await;
    // Half of them in one session, half of them without.
    let client = |client: usize| {
        let session = client.is_multiple_of(2).then_some(session.as_str());
        repeat(&endpoint, session, client, calls)
    };
    let all = futures_util::future::join_all((0..clients).map(client));
    tokio::time::timeout(6 * DEADLINE, all).await.expect("every call is answered");
    assert_eq!(endpoint.ran(), clients * calls);
}

#[tokio::test]
async fn v22_a_call_in_flight_keeps_its_answer_when_its_id_is_used_again() {
    let endpoint = Endpoint::new().await;
    let session = endpoint.open("2025-11-25").await;
    let gated = Request::in_session(&session, &json!(1), "gated", json!({}));
    let mut first = endpoint.connect().await;
    first.write(&gated.bytes(endpoint.address)).await;
    endpoint.watch.begun().await;
    let mut second = endpoint.connect().await;
    second.write(&gated.bytes(endpoint.address)).await;
    endpoint.watch.begun().await;
    let other =
        endpoint.send(&Request::in_session(&session, &json!(1), "echo", json!({ "message": "mine" }))).await;
    assert_eq!(other.json()["result"]["content"][0]["text"], "mine", "{other:?}");
    // Which of the two this is about nobody can tell, so that neither is harmed.
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let cancelled = endpoint.send(&Request::post(&cancel).set("Mcp-Session-Id", &session)).await;
    assert_eq!(cancelled.status, 202);
    for _ in 0..2 {
        endpoint.watch.gate.notify_one();
        tokio::task::yield_now().await;
    }
    for wire in [&mut first, &mut second] {
        let reply = wire.reply().await;
        let messages = reply.messages();
        assert_eq!(messages.last().unwrap()["result"]["content"][0]["text"], "through", "{reply:?}");
        endpoint.watch.gate.notify_one();
    }
}

#[tokio::test]
async fn v22_ids_are_returned_unchanged() {
    let endpoint = Endpoint::new().await;
    let session = endpoint.open("2025-11-25").await;
    let long = "x".repeat(64 * 1024);
    for id in [
        json!(0),
        json!(-1),
        json!(1),
        json!("1"),
        json!(""),
        json!(9_007_199_254_740_992_i64),
        json!(9_007_199_254_740_993_i64),
        json!(i64::MIN),
        json!(i64::MAX),
        json!(long),
        json!("null"),
        json!("\u{0}"),
    ] {
        let arguments = json!({ "message": "m" });
        let params = json!({ "name": "echo", "arguments": arguments });
        for request in [
            Request::modern(&id, "tools/call", params),
            Request::in_session(&session, &id, "echo", arguments),
        ] {
            let reply = endpoint.send(&request).await.json();
            assert_eq!((&reply["id"], &reply["result"]["content"][0]["text"]), (&id, &json!("m")));
        }
    }
    let before = endpoint.ran();
    for id in ["1.0", "1e0", "-0.0", "1.5", "null", "true", "[1]", "{}", "18446744073709551616"] {
        let call = Request::in_session(&session, &json!("ID"), "hit", json!({}));
        let body = String::from_utf8(call.body.clone()).unwrap().replace("\"ID\"", id);
        let reply = endpoint.send(&call.body(body)).await;
        // Either it names the request as it did, or it is refused without a name; never as another id.
        let told = reply.json();
        if told.get("result").is_some() {
            assert_eq!(told["id"].to_string(), id, "{reply:?}");
        } else {
            assert_eq!((reply.code(), told.get("id")), (-32600, None), "{id}: {reply:?}");
        }
    }
    assert!(endpoint.ran() - before <= 3);
}

#[tokio::test]
async fn v23_unusual_ids_identify_their_calls() {
    for id in [json!(0), json!("")] {
        let watch = Watch::default();
        let mut peer = Peer::memory(server(&watch)).unwrap();
        peer.initialize(Revision::V2025_11_25).await.unwrap();
        let params = json!({ "name": "gated", "_meta": { "progressToken": id } });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        // Progress under the token.
        peer.send(call.clone()).await.unwrap();
        let progress = peer.recv_method("notifications/progress").await.unwrap();
        assert_eq!(progress["params"]["progressToken"], id);
        // In use, it is refused to another.
        peer.send(call.clone()).await.unwrap();
        assert_eq!(peer.response(&id).await.unwrap()["error"]["code"], -32600);
        // Cancelled, it is free again.
        peer.notify("notifications/cancelled", json!({ "requestId": id })).await.unwrap();
        watch.begun().await;
        peer.send(call).await.unwrap();
        watch.begun().await;
        watch.gate.notify_one();
        assert_eq!(peer.response(&id).await.unwrap()["result"]["content"][0]["text"], "through");
        assert_eq!(watch.ran(), 2);
    }
}

#[tokio::test]
async fn v23_streams_and_subscriptions_with_unusual_ids_work() {
    let endpoint = Endpoint::new().await;
    for id in [json!(0), json!("")] {
        // A stream that broke off is read on.
        let session = endpoint.open("2025-11-25").await;
        let mut wire = endpoint.connect().await;
        wire.write(&Request::in_session(&session, &id, "gated", json!({})).bytes(endpoint.address)).await;
        let seen = wire.until("\"progress\":1").await;
        let last = seen.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().unwrap();
        drop(wire);
        endpoint.watch.gate.notify_one();
        let resumed = endpoint.send(&Request::stream(&session, Some(last))).await;
        assert_eq!(resumed.messages().last().unwrap()["id"], id, "{resumed:?}");
        // A subscription says whose it is.
        let mut wire = endpoint.connect().await;
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        wire.write(&Request::modern(&id, "subscriptions/listen", filter).bytes(endpoint.address)).await;
        wire.until("acknowledged").await;
        endpoint.registry.add_tool(bowline_server::Tool::new("late").handler(|| "ok")).unwrap();
        wire.until("list_changed").await;
        wire.until(&format!("\"io.modelcontextprotocol/subscriptionId\":{id}")).await;
    }
}

#[tokio::test]
async fn v24_a_message_is_of_one_kind() {
    let endpoint = Endpoint::new().await;
    let session = endpoint.open("2025-11-25").await;
    let call = r#""method":"tools/call","params":{"name":"hit"}"#;
    for (body, status) in [
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#.to_owned(), 400),
        (format!(r#"{{"jsonrpc":"2.0","id":1,{call},"result":{{}}}}"#), 400),
        (format!(r#"{{"jsonrpc":"2.0","id":1,{call},"error":{{"code":1,"message":"m"}}}}"#), 400),
        (format!(r#"{{"jsonrpc":"2.0",{call},"result":{{}}}}"#), 400),
        (r#"{"jsonrpc":"2.0"}"#.to_owned(), 400),
        (r#"{"jsonrpc":"2.0","id":1}"#.to_owned(), 400),
        // A call that wants no answer is none.
        (format!(r#"{{"jsonrpc":"2.0",{call}}}"#), 202),
        // Answers to nothing.
        (r#"{"jsonrpc":"2.0","id":99,"result":{}}"#.to_owned(), 202),
        (r#"{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"m"}}"#.to_owned(), 202),
        (r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#.to_owned(), 202),
    ] {
        let reply =
            endpoint.send(&Request::post_bytes(body.as_bytes()).set("Mcp-Session-Id", &session)).await;
        assert_eq!(reply.status, status, "{body}: {reply:?}");
    }
    // A notification with an id is a request for something that is none.
    let odd = json!({ "jsonrpc": "2.0", "id": 1, "method": "notifications/initialized" });
    let reply = endpoint.send(&Request::post(&odd).set("Mcp-Session-Id", &session)).await;
    assert_eq!(reply.code(), -32601, "{reply:?}");
    assert_eq!(endpoint.ran(), 0);
}

#[tokio::test]
async fn v24_a_modern_client_sends_no_responses_and_notifications_are_not_answered() {
    let endpoint = Endpoint::new().await;
    let modern = |body: &Value| Request::post(body).set("MCP-Protocol-Version", "2026-07-28");
    for response in [
        json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
        json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": 1, "message": "m" } }),
    ] {
        let reply = endpoint.send(&modern(&response)).await;
        assert_eq!((reply.status, reply.code()), (400, -32600), "{reply:?}");
    }
    for method in ["notifications/cancelled", "notifications/nothing", "tools/call"] {
        let params = json!({ "requestId": 1, "name": "hit" });
        let reply =
            endpoint.send(&modern(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))).await;
        assert_eq!((reply.status, reply.body.len()), (202, 0), "{reply:?}");
    }
    assert_eq!(endpoint.ran(), 0);
}
