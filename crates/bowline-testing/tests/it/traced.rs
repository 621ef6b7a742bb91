//! `tracing` events of a server, and which of them its caller receives.

use bowline_server::{
    Ctx, Error, Server, Tool,
    middleware::{LogEvents, Trace},
};
use bowline_testing::{Log, Peer};
use bowline_types::Revision;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Notify;

#[tokio::test]
async fn a_trace_records_how_each_call_ended() {
    let (log, _guard) = Log::start();
    let running = Arc::new(Notify::new());
    let waits = {
        let running = Arc::clone(&running);
        Tool::new("waits").handler(move || {
            running.notify_one();
            std::future::pending::<String>()
        })
    };
    let server = Server::new("s")
        .tool(Tool::new("fine").handler(|| "fine"))
        .tool(Tool::new("fails").handler(|| Err::<String, _>(Error::tool("no luck"))))
        .tool(Tool::new("refuses").handler(|| Err::<String, _>(Error::invalid_params("no"))))
        .tool(waits)
        .layer(Trace);
    let mut peer = Peer::memory(server).unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    for name in ["fine", "fails", "refuses"] {
        peer.request("tools/call", json!({ "name": name })).await.unwrap();
    }
    let id = peer.start("tools/call", json!({ "name": "waits" })).await.unwrap();
    running.notified().await;
    peer.notify("notifications/cancelled", json!({ "requestId": id })).await.unwrap();
    peer.request("ping", json!({})).await.unwrap();
    let ended: Vec<_> = log.lines().into_iter().filter(|line| line.starts_with(" outcome=")).collect();
    let expected = ["complete", "tool error", "failed", "cancelled"].map(|kind| format!(" outcome={kind:?}"));
    assert_eq!(ended, expected);
}

#[tokio::test]
async fn events_of_a_handler_reach_its_caller_and_the_subscriber_in_place() {
    let (log, _guard) = Log::start();
    let server = || {
        Server::new("s")
            .tool(Tool::new("work").handler(|ctx: Ctx| async move {
                tracing::debug!("too much");
                tracing::info!("started");
                tokio::task::yield_now().await;
                tracing::warn!(files = 3, "slow");
                ctx.info("by hand");
                "done"
            }))
            .layer(LogEvents::new())
    };
    let mut peer = Peer::memory(server()).unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    tracing::error!("outside of a call");
    peer.request("tools/call", json!({ "name": "work" })).await.unwrap();
    let received: Vec<_> = peer.notifications().iter().map(|frame| frame["params"].clone()).collect();
    let logger = "it::traced";
    let expected = [
        json!({ "level": "info", "logger": logger, "data": "started" }),
        json!({ "level": "warning", "logger": logger, "data": { "files": 3, "message": "slow" } }),
        json!({ "level": "info", "data": "by hand" }),
    ];
    assert_eq!(received, expected);
    for event in ["too much", "started", "slow"] {
        assert_eq!(log.count(&[event]), 1, "{event}: {:?}", log.lines());
    }
    // A modern caller that names no level wants none.
    let mut modern = Peer::memory(server()).unwrap();
    modern.modern("tools/call", json!({ "name": "work" })).await.unwrap();
    assert!(modern.notifications().is_empty());
}
