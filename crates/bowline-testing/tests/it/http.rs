//! Peers over HTTP: the same frames as over any connection, in the form of each revision.

use bowline_server::{Ctx, Server, Tool};
use bowline_testing::{Peer, Transcript};
use bowline_types::Revision;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::sync::Notify;

fn server() -> Server {
    Server::new("demo")
        .tool(Tool::new("hello").handler(|| "hello"))
        .tool(Tool::new("count").handler(|ctx: Ctx| async move {
            ctx.progress(1.0, 2.0);
            ctx.progress(2.0, 2.0);
            "counted"
        }))
        .tool(Tool::new("patient").handler(|ctx: Ctx| async move {
            ctx.close_stream();
            tokio::task::yield_now().await;
            "worth the wait"
        }))
}

fn progress(peer: &mut Peer) -> Vec<Value> {
    peer.notifications().iter().map(|notice| notice["params"]["progress"].clone()).collect()
}

#[tokio::test]
async fn every_legacy_revision_has_its_form() {
    for revision in Revision::ALL.into_iter().filter(|revision| revision.is_legacy()) {
        let mut peer = Peer::http(server()).unwrap();
        let agreed = peer.initialize(revision).await.unwrap();
        assert_eq!(agreed["protocolVersion"], revision.as_str());
        let params = json!({ "name": "count", "_meta": { "progressToken": "t" } });
        let answer = peer.request("tools/call", params).await.unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "counted");
        assert_eq!(progress(&mut peer), [1, 2]);
        assert_eq!(peer.close().await.unwrap(), [json!(null); 0]);
        assert!(peer.send(json!({})).await.unwrap_err().is_closed());
    }
}

#[tokio::test]
async fn a_call_whose_stream_closes_is_resumed() {
    let mut peer = Peer::http(server()).unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    let answer = peer.request("tools/call", json!({ "name": "patient" })).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "worth the wait");
    assert!(peer.close().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_modern_request_needs_no_session() {
    let mut peer = Peer::http(server()).unwrap();
    let params = json!({ "name": "count", "_meta": { "progressToken": "t" } });
    let answer = peer.modern("tools/call", params).await.unwrap();
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(progress(&mut peer), [1, 2]);
    let unknown = peer.modern("bogus/method", json!({})).await.unwrap();
    assert_eq!(unknown["error"]["code"], -32601);
    assert!(peer.close().await.unwrap().is_empty());
}

/// Tells when it is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn to_cancel_a_modern_request_is_to_close_its_stream() {
    let over = Arc::new(Notify::new());
    let observed = Arc::clone(&over);
    let endless = Tool::new("endless").handler(move |ctx: Ctx| {
        let dropped = Dropped(Arc::clone(&observed));
        async move {
            ctx.progress(1.0, None);
            std::future::pending::<()>().await;
            drop(dropped);
        }
    });
    let mut peer = Peer::http(Server::new("demo").tool(endless)).unwrap();
    let meta = json!({
        "progressToken": "t",
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let id = peer.start("tools/call", json!({ "name": "endless", "_meta": meta })).await.unwrap();
    peer.recv_method("notifications/progress").await.unwrap();
    peer.notify("notifications/cancelled", json!({ "requestId": id })).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), over.notified()).await;
    assert!(ended.is_ok(), "the call goes on");
    assert!(peer.close().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_subscription_ends_with_the_server() {
    let mut peer = Peer::http(server()).unwrap();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta });
    let id = peer.start("subscriptions/listen", params).await.unwrap();
    peer.recv_method("notifications/subscriptions/acknowledged").await.unwrap();
    let rest = peer.close().await.unwrap();
    assert_eq!(rest.iter().map(|frame| &frame["id"]).collect::<Vec<_>>(), [&id]);
}

#[tokio::test]
async fn invalid_messages_of_any_form_are_refused() {
    for revision in [Revision::V2024_11_05, Revision::V2025_06_18] {
        let mut peer = Peer::http(server()).unwrap();
        peer.initialize(revision).await.unwrap();
        peer.send_raw("{\n").await.unwrap();
        assert_eq!(peer.recv().await.unwrap()["error"]["code"], -32700);
        assert!(peer.close().await.unwrap().is_empty());
    }
}

/// A conversation with a server whose tool says more than its response.
async fn run(revisions: &str, said: &str) -> Result<(), String> {
    let text = format!(
        "It is as written.\n\nserver: any\nrevision: {revisions}\n\n-- client --\n\
         {{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"grow\"}}}}\n-- server --\n{said}"
    );
    let connect =
        || {
            let server = Server::new("any");
            let registry = server.registry();
            Peer::http(server.tool(
                Tool::new("grow").handler(move || {
                    registry.add_tool(Tool::new("grown").handler(|| "new")).map(|()| "grown")
                }),
            ))
        };
    let transcript = Transcript::parse("t.txtar", &text).unwrap();
    transcript.run(None, connect).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn frames_on_another_stream_are_not_missed() {
    let response = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"<any>\"}\n";
    let changed = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n";
    for revision in Revision::ALL.into_iter().filter(|revision| revision.is_legacy()) {
        // Which of the two streams is read first is a matter of chance, which of them is silent is not.
        for both in [format!("{response}{changed}"), format!("{changed}{response}")] {
            if revision > Revision::V2024_11_05 {
                run(revision.as_str(), &both).await.unwrap();
            }
        }
        let error = run(revision.as_str(), response).await.unwrap_err();
        assert!(error.contains("list_changed"), "{error}");
    }
    run("2026-07-28", response).await.unwrap();
}
