//! A connection that is lost and restored, in memory.

use crate::support::*;
use bowline_client::{
    Backoff, BoxFuture, Change, Client, ClientBuilder, ClientEnd, Connect, Inbox, Restart, Result, Transport,
    memory,
};
use bowline_types::{Revision, SubscriptionFilter};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

/// Connects to one end after the other, and then never again.
struct Several(Mutex<VecDeque<Arc<ClientEnd>>>);

impl Connect for Several {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        let end = self.0.lock().unwrap().pop_front();
        Box::pin(async move {
            match end {
                Some(end) => end.connect(inbox).await,
                None => std::future::pending().await,
            }
        })
    }

    fn restart(&self) -> Restart {
        Restart::AfterExit(Backoff::new())
    }
}

/// A client, its open connection, and the server of the next one.
async fn twice(builder: ClientBuilder, revision: Revision) -> (Client, Peer, Peer) {
    let ((first, one), (second, two)) = (memory(), memory());
    let target = Several(Mutex::new([Arc::new(first), Arc::new(second)].into()));
    let (mut one, two) = (Peer::new(one), Peer::new(two));
    let (client, _) = both(builder.connect(target), one.open(revision, everything())).await;
    (client.unwrap(), one, two)
}

/// Hangs up, and lets the client notice: a stopped clock moves on only when nothing else does.
async fn lose(peer: Peer) {
    peer.hang_up();
    tokio::time::sleep(Duration::from_nanos(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_made_meanwhile_waits_and_the_era_is_known() {
    // proves: VER-15, PAGE-03
    for revision in Revision::ALL {
        let (client, mut one, mut two) = twice(Client::builder(), revision).await;
        // A list half read: its cursor belongs to the connection that is lost.
        let (half, ()) = both(client.tools_page(None), async {
            let request = one.expect("tools/list").await;
            one.reply(&request, json!({ "tools": [], "nextCursor": "of the first" })).await;
        })
        .await;
        half.unwrap();
        lose(one).await;
        let (called, ()) = both(async { (client.call("x", ()).await, client.tools().await) }, async {
            let opening = two.open(revision, everything()).await;
            let expected = if revision.is_modern() { "server/discover" } else { "initialize" };
            assert_eq!(opening["method"], expected);
            // Neither a probe nor a second one came before.
            assert_eq!(opening["id"], 1, "{revision}");
            let call = two.expect("tools/call").await;
            two.reply(&call, text_result("here again")).await;
            let list = two.expect("tools/list").await;
            assert!(list["params"].get("cursor").is_none());
            two.reply(&list, json!({ "tools": [] })).await;
        })
        .await;
        assert_eq!(called.0.unwrap().text(), "here again");
        called.1.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn running_requests_fail_and_are_not_resent() {
    let (client, mut one, mut two) = twice(Client::builder(), V2025_11_25).await;
    let (result, ()) = both(client.call("transfer-money", ()), async {
        one.expect("tools/call").await;
        one.hang_up();
    })
    .await;
    assert!(result.unwrap_err().is_closed());
    two.open(V2025_11_25, everything()).await;
    two.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_connection_has_an_end() {
    let builder = Client::builder().timeout(Duration::from_secs(20));
    let (client, one, two) = twice(builder, V2025_11_25).await;
    two.hang_up();
    lose(one).await;
    let started = tokio::time::Instant::now();
    let error = client.call("x", ()).await.unwrap_err();
    assert_eq!(error.to_string(), "reconnecting timed out after 20s");
    assert_eq!(started.elapsed(), Duration::from_secs(20));
    client.close().await;
    assert!(client.call("x", ()).await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_changed_its_era_is_found_out() {
    // proves: VER-16
    let (client, one, mut two) = twice(Client::builder(), V2025_11_25).await;
    one.hang_up();
    let greeting = two.expect("initialize").await;
    two.fail(&greeting, -32601, "method not found").await;
    two.open(V2026_07_28, everything()).await;
    two.quiet().await;
    assert_eq!(client.revision(), V2026_07_28);
}

/// Grants a subscription as it was asked for.
async fn granted(peer: &mut Peer) -> Value {
    let listen = peer.expect("subscriptions/listen").await;
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": listen["id"] });
    let params = json!({ "_meta": meta, "notifications": listen["params"]["notifications"] });
    peer.notify("notifications/subscriptions/acknowledged", params).await;
    listen
}

#[tokio::test(start_paused = true)]
async fn subscriptions_are_asked_for_again() {
    // proves: SUB-19
    let (client, mut one, mut two) = twice(Client::builder(), V2026_07_28).await;
    let (subscribed, _) = both(client.subscribe("a:b"), granted(&mut one)).await;
    subscribed.unwrap();
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let (listen, _) = both(client.listen(filter), granted(&mut one)).await;
    let mut listen = listen.unwrap();
    one.hang_up();
    two.open(V2026_07_28, everything()).await;
    let own = granted(&mut two).await;
    assert_eq!(own["params"]["notifications"], json!({ "toolsListChanged": true }));
    let managed = granted(&mut two).await;
    assert_eq!(managed["params"]["notifications"], json!({ "resourceSubscriptions": ["a:b"] }));
    assert_eq!(listen.next().await, Some(Change::Tools));
    // The stream goes on with the new subscription, and ends with it.
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": own["id"] });
    two.notify("notifications/tools/list_changed", json!({ "_meta": meta })).await;
    assert_eq!(listen.next().await, Some(Change::Tools));
    drop(listen);
    assert_eq!(two.expect("notifications/cancelled").await["params"]["requestId"], own["id"]);
}

#[tokio::test(start_paused = true)]
async fn legacy_subscriptions_and_levels_are_set_again() {
    let builder = Client::builder().log_level(bowline_types::LoggingLevel::Error);
    let ((first, one), (second, two)) = (memory(), memory());
    let target = Several(Mutex::new([Arc::new(first), Arc::new(second)].into()));
    let (mut one, mut two) = (Peer::new(one), Peer::new(two));
    let level = async |peer: &mut Peer| {
        peer.open(V2025_11_25, everything()).await;
        let request = peer.expect("logging/setLevel").await;
        assert_eq!(request["params"], json!({ "level": "error" }));
        peer.reply(&request, json!({})).await;
    };
    let (client, ()) = both(builder.connect(target), level(&mut one)).await;
    let client = client.unwrap();
    let (subscribed, ()) = both(client.subscribe("a:b"), async {
        let request = one.expect("resources/subscribe").await;
        one.reply(&request, json!({})).await;
    })
    .await;
    subscribed.unwrap();
    one.hang_up();
    level(&mut two).await;
    let request = two.expect("resources/subscribe").await;
    assert_eq!(request["params"], json!({ "uri": "a:b" }));
}
