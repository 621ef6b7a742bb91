//! What the client leaves in the log of its program.

use crate::support::*;
use bowline_client::{Answer, Client};
use bowline_testing::Log;
use bowline_types::{CreateMessageResult, Role};
use serde_json::json;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn cancellations_are_logged_with_their_reasons() {
    let (log, _guard) = Log::of("bowline_client");
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, json!({ "tools": {} })).await;
    peer.notify("notifications/cancelled", json!({ "requestId": "x", "reason": "changed my mind" })).await;
    let (result, _) =
        both(client.call("slow", ()).timeout(Duration::from_secs(1)), peer.expect("tools/call")).await;
    assert!(result.unwrap_err().is_timeout());
    assert_eq!(log.count(&["the server cancelled", "changed my mind"]), 1);
    assert_eq!(log.count(&["cancelling a request", "no answer in time"]), 1);
}

#[tokio::test]
async fn a_server_logs_why_a_client_cancelled() {
    // proves: CANCEL-12
    use bowline_server::{Server, Tool};
    use std::sync::Arc;
    use tokio::sync::Notify;
    struct Gone(Arc<Notify>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (log, _guard) = Log::of("bowline_server");
    let (started, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let tool = Tool::new("slow").handler({
        let (started, dropped) = (Arc::clone(&started), Arc::clone(&dropped));
        move || {
            let (started, gone) = (Arc::clone(&started), Gone(Arc::clone(&dropped)));
            async move {
                let _gone = gone;
                started.notify_one();
                std::future::pending::<&str>().await
            }
        }
    });
    for revision in [V2025_11_25, V2026_07_28] {
        let server = Server::new("slow").tool(tool.clone()).build().unwrap();
        let (end, far) = bowline_client::memory();
        tokio::spawn(async move { server.serve(far.read, far.write).await });
        let client = Client::builder().revisions([revision]).connect(end).await.unwrap();
        let call = tokio::spawn(client.call("slow", ()));
        started.notified().await;
        call.abort();
        dropped.notified().await;
        client.close().await;
    }
    assert_eq!(
        log.count(&["the client cancelled a call", "the caller cancelled the request"]),
        2,
        "{:?}",
        log.lines()
    );
}

#[tokio::test(start_paused = true)]
async fn tool_calls_are_logged() {
    // proves: TOOL-53
    let (log, _guard) = Log::of("bowline_client");
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, json!({ "tools": {} })).await;
    let (result, ()) = both(client.call("delete-everything", ()), async {
        let request = peer.expect("tools/call").await;
        peer.reply(&request, text_result("done")).await;
    })
    .await;
    result.unwrap();
    assert_eq!(log.count(&["called a tool", "delete-everything", "failed=false"]), 1);
}

#[tokio::test(start_paused = true)]
async fn a_ping_that_fails_is_logged() {
    // proves: PING-07
    let (log, _guard) = Log::of("bowline_client");
    let builder = Client::builder().keep_alive(Duration::from_secs(10));
    let (client, _peer) = connect(builder, V2025_11_25, json!({})).await;
    assert!(client.closed().await.is_closed());
    assert_eq!(log.count(&["WARN", "a ping failed"]), 1);
}

#[tokio::test(start_paused = true)]
async fn deprecated_features_are_reported_once() {
    // proves: BASE-50, BASE-49
    let (log, _guard) = Log::of("bowline_client");
    let builder =
        Client::builder().on_sample(|_| async { CreateMessageResult::new(Role::Assistant, "hm", "model") });
    let (client, mut peer) = connect(builder, V2026_07_28, json!({ "tools": {} })).await;
    for _ in 0..2 {
        let (result, ()) = both(client.call("think", ()), async {
            let request = peer.expect("tools/call").await;
            let params = json!({ "messages": [], "maxTokens": 5 });
            let requests = json!({ "q": { "method": "sampling/createMessage", "params": params } });
            peer.reply(&request, json!({ "resultType": "input_required", "inputRequests": requests })).await;
            let request = peer.expect("tools/call").await;
            assert_eq!(request["params"]["inputResponses"]["q"]["model"], "model");
            peer.reply(&request, text_result("done")).await;
        })
        .await;
        result.unwrap();
    }
    assert_eq!(log.count(&["WARN", "sampling", "deprecates"]), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_its_form_is_warned_of() {
    let (log, _guard) = Log::of("bowline_client");
    let builder = Client::builder().on_ask(|_| async { Answer::accept(json!({})) });
    let (_client, mut peer) = connect(builder, V2025_11_25, json!({})).await;
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
    peer.ask(1, "elicitation/create", json!({ "message": "?", "requestedSchema": schema })).await;
    assert_eq!(peer.next().await["result"]["action"], "decline");
    assert_eq!(log.count(&["WARN", "does not match the form; declined", "`a`"]), 1);
}
