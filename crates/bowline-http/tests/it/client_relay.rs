//! What a relay receives over HTTP, where every request has a stream of its own.

use crate::client_peer::{Events, Peer, greeting, legacy, modern, text};
use bowline_client::{
    BoxFuture, CallKey, Client, ClientBuilder, Notification, Relay, RelayWith, Relayed, Result,
};
use bowline_types::{ClientCapabilities, InputRequest, LogMessageParams, Method, RawJson, RpcError};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;

const REVISIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// Passes what it receives to the test, and answers questions with the keys of their calls.
struct Telling(mpsc::UnboundedSender<(Option<u64>, Value)>);

impl Relay for Telling {
    fn ask(
        &self,
        call: Option<CallKey>,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>> {
        let key = call.map(|CallKey(key)| key);
        self.0.send((key, json!(request.method().as_str()))).unwrap();
        let root = format!("file:///{}", key.unwrap_or_default());
        Box::pin(async move { Ok(json!({ "roots": [{ "uri": root, "later": 1 }] }).into()) })
    }

    fn log(&self, call: Option<CallKey>, message: LogMessageParams) {
        self.0.send((call.map(|CallKey(key)| key), message.data.to_value().unwrap())).unwrap();
    }

    fn notify(&self, _: Notification) {}
}

fn relaying() -> (ClientBuilder, mpsc::UnboundedReceiver<(Option<u64>, Value)>) {
    let (sender, heard) = mpsc::unbounded_channel();
    let capabilities: ClientCapabilities = serde_json::from_value(json!({ "roots": {} })).unwrap();
    (Client::builder().relay(Arc::new(Telling(sender))).capabilities(capabilities), heard)
}

fn call(client: &Client, key: u64) -> BoxFuture<'static, Result<Relayed>> {
    let mut with = RelayWith::default();
    with.key = Some(CallKey(key));
    client.relay(Method::CallTool, json!({ "name": key.to_string() }).into(), with)
}

fn log(text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": text } })
}

fn question(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" })
}

/// The streams of two calls, by the keys of the calls, whichever comes first.
async fn two_streams(peer: &mut Peer) -> (Events, Events) {
    let one = peer.post("tools/call").await;
    let other = peer.post("tools/call").await;
    let (first, second) = if one.body["params"]["name"] == "1" { (one, other) } else { (other, one) };
    (first.events(&[]).await, second.events(&[]).await)
}

/// Takes the answer to a question.
async fn answered(peer: &mut Peer, id: u64, root: &str) {
    let answer = peer.response().await;
    let result = json!({ "roots": [{ "uri": root, "later": 1 }] });
    assert_eq!(answer.body, json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    answer.accepted().await;
}

#[tokio::test]
async fn each_question_belongs_to_the_call_of_its_stream() {
    for revision in REVISIONS {
        let (builder, mut heard) = relaying();
        let (client, mut peer, mut get_stream) = legacy(builder, revision).await;
        let calls = async { tokio::join!(call(&client, 1), call(&client, 2)) };
        let (results, ()) = tokio::join!(calls, async {
            let (mut first, mut second) = two_streams(&mut peer).await;
            second.message(&question(20)).await;
            answered(&mut peer, 20, "file:///2").await;
            first.message(&question(10)).await;
            answered(&mut peer, 10, "file:///1").await;
            for expected in [Some(2), Some(1)] {
                assert_eq!(heard.recv().await.unwrap(), (expected, json!("roots/list")), "{revision}");
            }
            first.message(&log("one")).await;
            assert_eq!(heard.recv().await.unwrap(), (Some(1), json!("one")));
            second.message(&log("two")).await;
            assert_eq!(heard.recv().await.unwrap(), (Some(2), json!("two")));
            // On the GET stream it may be about either.
            get_stream.message(&question(30)).await;
            answered(&mut peer, 30, "file:///0").await;
            assert_eq!(heard.recv().await.unwrap().0, None);
            first.result(&text("done")).await;
            second.result(&text("done")).await;
        });
        assert!(results.0.is_ok() && results.1.is_ok());
    }
}

#[tokio::test]
async fn on_the_session_stream_a_question_has_no_call() {
    for revision in REVISIONS {
        let (builder, mut heard) = relaying();
        let (client, mut peer, mut get_stream) = legacy(builder, revision).await;
        let (result, ()) = tokio::join!(call(&client, 1), async {
            let asked = peer.post("tools/call").await;
            get_stream.message(&question(10)).await;
            answered(&mut peer, 10, "file:///0").await;
            get_stream.message(&log("one")).await;
            assert_eq!(heard.recv().await.unwrap(), (None, json!("roots/list")), "{revision}");
            assert_eq!(heard.recv().await.unwrap(), (None, json!("one")), "{revision}");
            asked.result(&text("done")).await;
        });
        assert!(result.is_ok());
    }
}

#[tokio::test]
async fn a_resumed_stream_still_belongs_to_its_call() {
    for revision in REVISIONS {
        let (builder, mut heard) = relaying();
        let (client, mut peer, _get_stream) = legacy(builder, revision).await;
        let calls = async { tokio::join!(call(&client, 1), call(&client, 2)) };
        let (results, ()) = tokio::join!(calls, async {
            let (first, mut second) = two_streams(&mut peer).await;
            let response = second.asked.response_to(&text("done"));
            second.write("id: s-1\nretry: 1\ndata:\n\n").await;
            drop(second);
            let back = peer.verb("GET").await;
            assert_eq!(back.header("last-event-id"), Some("s-1"));
            let mut second = back.events(&[]).await;
            second.message(&question(20)).await;
            answered(&mut peer, 20, "file:///2").await;
            assert_eq!(heard.recv().await.unwrap().0, Some(2), "{revision}");
            second.write(&format!("data: {response}\n\n")).await;
            first.result(&text("done")).await;
        });
        assert!(results.0.is_ok() && results.1.is_ok());
    }
}

#[tokio::test]
async fn logs_of_a_modern_server_belong_to_their_calls() {
    let (builder, mut heard) = relaying();
    let (client, mut peer) = modern(builder, json!({ "tools": {} })).await;
    let calls = async { tokio::join!(call(&client, 1), call(&client, 2)) };
    let (results, ()) = tokio::join!(calls, async {
        let (mut first, mut second) = two_streams(&mut peer).await;
        second.message(&log("two")).await;
        assert_eq!(heard.recv().await.unwrap(), (Some(2), json!("two")));
        first.message(&log("one")).await;
        assert_eq!(heard.recv().await.unwrap(), (Some(1), json!("one")));
        second.result(&text("done")).await;
        first.result(&text("done")).await;
    });
    assert!(results.0.is_ok() && results.1.is_ok());
}

#[tokio::test]
async fn on_the_2024_11_05_stream_a_question_has_no_call() {
    let (builder, mut heard) = relaying();
    let mut peer = Peer::new().await;
    let target = peer.target();
    let (client, mut stream) = tokio::join!(builder.connect(target), async {
        peer.post("server/discover").await.status(404, "text/plain", "").await;
        peer.post("initialize").await.status(404, "text/plain", "").await;
        let mut stream = peer.verb("GET").await.events(&[]).await;
        stream.write("event: endpoint\ndata: /messages\n\n").await;
        let asked = peer.post("initialize").await;
        let greeted = asked.response_to(&greeting("2024-11-05"));
        asked.accepted().await;
        stream.write(&format!("data: {greeted}\n\n")).await;
        peer.post("notifications/initialized").await.accepted().await;
        stream
    });
    let client = client.unwrap();
    let (result, ()) = tokio::join!(call(&client, 1), async {
        let asked = peer.post("tools/call").await;
        let done = asked.response_to(&text("done"));
        asked.accepted().await;
        stream.message(&question(1)).await;
        answered(&mut peer, 1, "file:///0").await;
        stream.write(&format!("data: {done}\n\n")).await;
    });
    assert!(result.is_ok());
    assert_eq!(heard.recv().await.unwrap().0, None);
}

#[tokio::test]
async fn a_relayed_call_is_not_repeated_when_its_session_has_ended_but_a_list_is() {
    let (builder, _heard) = relaying();
    let (client, mut peer, _get_stream) = legacy(builder, "2025-11-25").await;
    let (called, _get_stream) = tokio::join!(call(&client, 1), async {
        peer.post("tools/call").await.status(404, "text/plain", "session not found").await;
        peer.open_legacy("2025-11-25", "s-2").await.2
    });
    assert!(called.unwrap_err().is_expired());
    assert!(peer.unseen().is_empty(), "{:?}", peer.unseen());
    let list = client.relay(Method::ListTools, RawJson::empty_object(), RelayWith::default());
    let page = json!({ "tools": [], "later": 1 });
    let (listed, _get_stream) = tokio::join!(list, async {
        peer.post("tools/list").await.status(404, "text/plain", "session not found").await;
        let (_, _, get_stream) = peer.open_legacy("2025-11-25", "s-3").await;
        let asked = peer.post("tools/list").await;
        assert_eq!(asked.header("mcp-session-id"), Some("s-3"));
        asked.result(&page).await;
        get_stream
    });
    let Relayed::Complete(listed) = listed.unwrap() else { panic!("expected a list") };
    assert_eq!(listed.to_value().unwrap(), page);
}
