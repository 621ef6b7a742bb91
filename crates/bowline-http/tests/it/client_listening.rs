//! Streams of changes in the modern era: what breaks off is asked for again.

use crate::client_peer::{Asked, Events, modern};
use bowline_client::{Change, Client, Notification};
use bowline_types::SubscriptionFilter;
use serde_json::{Value, json};
use tokio::sync::mpsc;

fn capabilities() -> Value {
    json!({ "tools": { "listChanged": true }, "resources": { "subscribe": true } })
}

fn notification(asked: &Asked, method: &str) -> Value {
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": asked.body["id"] });
    json!({ "jsonrpc": "2.0", "method": method, "params": { "_meta": meta } })
}

/// Opens a stream and grants all that is asked for.
async fn grant(asked: Asked) -> Events {
    assert_eq!(asked.header("last-event-id"), None, "streams of this era cannot be resumed");
    let mut acknowledged = notification(&asked, "notifications/subscriptions/acknowledged");
    acknowledged["params"]["notifications"] = asked.body["params"]["notifications"].clone();
    let mut events = asked.events(&[]).await;
    events.message(&acknowledged).await;
    events
}

#[tokio::test]
async fn a_broken_stream_is_reopened() {
    // proves: HTTP-89, SUB-18
    let (client, mut peer) = modern(Client::builder(), capabilities()).await;
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let (listen, mut events) =
        tokio::join!(client.listen(filter), async { grant(peer.post("subscriptions/listen").await).await });
    let mut listen = listen.unwrap();
    let changed = notification(&events.asked, "notifications/tools/list_changed");
    events.message(&changed).await;
    assert_eq!(listen.next().await, Some(Change::Tools));
    let first = events.asked.body["id"].clone();
    drop(events);
    // A server that is away for a moment is asked again.
    let asked = peer.post("subscriptions/listen").await;
    assert_ne!(asked.body["id"], first);
    asked.status(503, "text/plain", "in a moment").await;
    drop(peer.post("subscriptions/listen").await);
    let mut events = grant(peer.post("subscriptions/listen").await).await;
    // Anything may have changed meanwhile.
    assert_eq!(listen.next().await, Some(Change::Tools));
    let changed = notification(&events.asked, "notifications/tools/list_changed");
    events.message(&changed).await;
    assert_eq!(listen.next().await, Some(Change::Tools));
    drop(listen);
    events.closed().await;
    assert!(peer.unseen().is_empty(), "{:?}", peer.unseen());
}

#[tokio::test]
async fn a_stream_that_ends_in_order_stays_ended() {
    let (client, mut peer) = modern(Client::builder(), capabilities()).await;
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let (listen, events) = tokio::join!(client.listen(filter.clone()), async {
        grant(peer.post("subscriptions/listen").await).await
    });
    let mut listen = listen.unwrap();
    events.result(&json!({ "resultType": "complete" })).await;
    assert_eq!(listen.next().await, None);
    assert!(listen.error().is_none());
    // One that is refused is not asked for again either.
    let (refused, ()) = tokio::join!(client.listen(filter), async {
        let asked = peer.post("subscriptions/listen").await;
        asked.error(200, json!({ "code": -32603, "message": "too many" })).await;
    });
    assert_eq!(refused.unwrap_err().as_rpc().unwrap().code, -32603);
    assert!(peer.unseen().is_empty(), "{:?}", peer.unseen());
}

#[tokio::test]
async fn internal_subscriptions_are_reopened_too() {
    let (sender, mut heard) = mpsc::unbounded_channel();
    let builder = Client::builder().on_notification(move |notification| drop(sender.send(notification)));
    let (_client, mut peer) = modern(builder, capabilities()).await;
    for _ in 0..2 {
        let mut events = grant(peer.post("subscriptions/listen").await).await;
        let changed = notification(&events.asked, "notifications/tools/list_changed");
        events.message(&changed).await;
        assert!(matches!(heard.recv().await, Some(Notification::ToolsChanged)));
    }
}
