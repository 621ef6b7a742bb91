//! Changes at the server, and who is notified of them.

use crate::support::*;
use bowline_client::{Change, Client, ClientBuilder, Notification};
use bowline_types::{Revision, SubscriptionFilter};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const ID: &str = "io.modelcontextprotocol/subscriptionId";

fn tag(listen: &Value) -> Value {
    json!({ ID: listen["id"] })
}

/// Grants a subscription, or a part of it.
async fn grant(peer: &mut Peer, listen: &Value, granted: &Value) {
    let params = json!({ "_meta": tag(listen), "notifications": granted });
    peer.notify("notifications/subscriptions/acknowledged", params).await;
}

/// Takes the next listen and grants all of it.
async fn granted(peer: &mut Peer) -> Value {
    let listen = peer.expect("subscriptions/listen").await;
    let filter = listen["params"]["notifications"].clone();
    assert!(filter.is_object());
    grant(peer, &listen, &filter).await;
    listen
}

async fn changed(peer: &mut Peer, listen: &Value, what: &str) {
    peer.notify(&format!("notifications/{what}/list_changed"), json!({ "_meta": tag(listen) })).await;
}

async fn updated(peer: &mut Peer, listen: &Value, uri: &str) {
    peer.notify("notifications/resources/updated", json!({ "uri": uri, "_meta": tag(listen) })).await;
}

fn uris(uris: &[&str]) -> SubscriptionFilter {
    SubscriptionFilter::new()
        .resource_subscriptions(uris.iter().map(|uri| (*uri).to_owned()).collect::<Vec<_>>())
}

/// A client that records its notifications.
fn noting() -> (ClientBuilder, Arc<Mutex<Vec<String>>>) {
    let received: Arc<Mutex<Vec<String>>> = Arc::default();
    let builder = Client::builder().on_notification({
        let received = Arc::clone(&received);
        move |notification| {
            received.lock().unwrap().push(match notification {
                Notification::ToolsChanged => "tools".into(),
                Notification::PromptsChanged => "prompts".into(),
                Notification::ResourcesChanged => "resources".into(),
                Notification::ResourceUpdated(updated) => updated.uri,
                Notification::Other { method, .. } => method.into(),
                other => format!("{other:?}"),
            });
        }
    });
    (builder, received)
}

fn take(received: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut received.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_listen_is_one_long_request() {
    // proves: SUB-01, SUB-08
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, everything()).await;
    let filter = uris(&["file:///a", "file:///b"]).tools_list_changed(true).prompts_list_changed(true);
    let (listen, request) = both(client.listen(filter), async {
        let request = peer.expect("subscriptions/listen").await;
        let wanted = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["file:///a", "file:///b"],
        });
        assert_eq!(request["params"]["notifications"], wanted);
        grant(&mut peer, &request, &json!({ "toolsListChanged": true, "resourceSubscriptions": ["file:///a"] })).await;
        request
    })
    .await;
    let mut listen = listen.unwrap();
    assert_eq!(listen.granted(), &uris(&["file:///a"]).tools_list_changed(true));
    // Longer than any request may take.
    tokio::time::sleep(std::time::Duration::from_secs(100_000)).await;
    changed(&mut peer, &request, "tools").await;
    assert_eq!(listen.next().await, Some(Change::Tools));
    // What happens again before it was looked at is reported once; a resource below counts.
    for _ in 0..3 {
        changed(&mut peer, &request, "tools").await;
        updated(&mut peer, &request, "file:///a/below").await;
    }
    changed(&mut peer, &request, "resources").await;
    updated(&mut peer, &request, "file:///elsewhere").await;
    peer.quiet().await;
    assert_eq!(listen.next().await, Some(Change::Tools));
    assert_eq!(listen.next().await, Some(Change::Resource("file:///a/below".into())));
    drop(listen);
    let cancelled = peer.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn several_subscriptions_share_one_channel_without_mixing() {
    // proves: SUB-11, SUB-12, STDIO-12
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, everything()).await;
    let all = SubscriptionFilter::new().tools_list_changed(true).prompts_list_changed(true);
    let listens = async { tokio::join!(client.listen(all.clone()), client.listen(all)) };
    let ((first, second), (one, two)) = both(listens, async {
        let (one, two) = (peer.next().await, peer.next().await);
        // The acknowledgments may come in any order.
        grant(&mut peer, &two, &two["params"]["notifications"]).await;
        grant(&mut peer, &one, &one["params"]["notifications"]).await;
        (one, two)
    })
    .await;
    let (mut first, mut second) = (first.unwrap(), second.unwrap());
    changed(&mut peer, &one, "tools").await;
    changed(&mut peer, &two, "prompts").await;
    // Neither an id of another type nor a stranger's is ours.
    let text = json!({ "id": one["id"].to_string() });
    changed(&mut peer, &text, "prompts").await;
    changed(&mut peer, &json!({ "id": 999 }), "prompts").await;
    peer.notify("notifications/prompts/list_changed", json!({})).await;
    peer.quiet().await;
    assert_eq!(first.next().await, Some(Change::Tools));
    assert_eq!(second.next().await, Some(Change::Prompts));
    for (listen, request) in [(&mut first, &one), (&mut second, &two)] {
        let ended = json!({ "resultType": "complete", "_meta": tag(request) });
        peer.reply(request, ended).await;
        assert_eq!(listen.next().await, None);
        assert!(listen.error().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_may_end_a_listen_in_any_of_its_ways() {
    for way in ["result", "cancelled", "both", "error"] {
        let (client, mut peer) = connect(Client::builder(), V2026_07_28, everything()).await;
        let filter = SubscriptionFilter::new().tools_list_changed(true);
        let (listen, request) = both(client.listen(filter), granted(&mut peer)).await;
        let mut listen = listen.unwrap();
        if matches!(way, "cancelled" | "both") {
            peer.notify("notifications/cancelled", json!({ "requestId": request["id"] })).await;
        }
        if matches!(way, "result" | "both") {
            peer.reply(&request, json!({ "resultType": "complete", "_meta": tag(&request) })).await;
        }
        if way == "error" {
            peer.fail(&request, -32603, "no more").await;
        }
        assert_eq!(listen.next().await, None);
        assert_eq!(listen.error().is_some(), way == "error");
        drop(listen);
        peer.quiet().await;
    }
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, everything()).await;
    let (listen, _) = both(client.listen(uris(&["a:b"])), granted(&mut peer)).await;
    let mut listen = listen.unwrap();
    peer.hang_up();
    assert_eq!(listen.next().await, None);
    assert!(listen.error().unwrap().is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_listen_that_is_refused_or_never_granted_fails() {
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, everything()).await;
    let (listen, ()) = both(client.listen(uris(&["a:b"])), async {
        let request = peer.expect("subscriptions/listen").await;
        peer.fail(&request, -32601, "no").await;
    })
    .await;
    assert_eq!(listen.unwrap_err().as_rpc().unwrap().code, -32601);
    let (listen, ()) = both(client.listen(uris(&["a:b"])), async {
        let request = peer.expect("subscriptions/listen").await;
        peer.reply(&request, json!({ "resultType": "complete" })).await;
    })
    .await;
    assert!(listen.unwrap_err().is_malformed());
    let (listen, cancelled) = both(client.listen(uris(&["a:b"])), async {
        peer.expect("subscriptions/listen").await;
        peer.expect("notifications/cancelled").await
    })
    .await;
    assert!(listen.unwrap_err().is_timeout());
    assert!(cancelled["params"]["requestId"].is_i64());
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_is_subscribed_to_by_uri() {
    // proves: RES-21
    for revision in LEGACY {
        let (client, mut peer) = connect(Client::builder(), revision, everything()).await;
        let filter = uris(&["file:///a"]).tools_list_changed(true);
        let (listen, ()) = both(client.listen(filter), async {
            let request = peer.expect("resources/subscribe").await;
            assert_eq!(request["params"], json!({ "uri": "file:///a" }));
            peer.reply(&request, json!({})).await;
        })
        .await;
        let mut listen = listen.unwrap();
        for what in ["tools", "prompts"] {
            peer.send(json!({ "jsonrpc": "2.0", "method": format!("notifications/{what}/list_changed") }))
                .await;
        }
        peer.notify("notifications/resources/updated", json!({ "uri": "file:///a/b" })).await;
        assert_eq!(listen.next().await, Some(Change::Tools));
        assert_eq!(listen.next().await, Some(Change::Resource("file:///a/b".into())));
        // A second listener of the same resource needs no second subscription.
        let other = client.listen(uris(&["file:///a"])).await.unwrap();
        drop(listen);
        peer.settle().await;
        drop(other);
        let request = peer.expect("resources/unsubscribe").await;
        assert_eq!(request["params"], json!({ "uri": "file:///a" }));
        peer.reply(&request, json!({})).await;
        peer.quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_is_not_asked_for_what_it_does_not_declare() {
    // proves: RES-17
    for revision in LEGACY {
        let (client, mut peer) =
            connect(Client::builder(), revision, json!({ "resources": {}, "tools": {} })).await;
        let listen = client.listen(uris(&["a:b"]).tools_list_changed(true)).await.unwrap();
        assert!(listen.granted().is_empty());
        assert!(client.subscribe("a:b").await.unwrap_err().is_unsupported());
        drop(listen);
        peer.quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn resources_are_subscribed_to_one_by_one() {
    for revision in LEGACY {
        let (builder, received) = noting();
        let (client, mut peer) = connect(builder, revision, everything()).await;
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            let request = async {
                if method.ends_with("/subscribe") {
                    client.subscribe("a:b").await
                } else {
                    client.unsubscribe("a:b").await
                }
            };
            let (done, ()) = both(request, async {
                let request = peer.expect(method).await;
                assert_eq!(request["params"], json!({ "uri": "a:b" }));
                peer.reply(&request, json!({})).await;
                peer.notify("notifications/resources/updated", json!({ "uri": "a:b" })).await;
                peer.settle().await;
            })
            .await;
            done.unwrap();
        }
        assert_eq!(take(&received), ["a:b", "a:b"]);
        // Nothing to take back.
        client.unsubscribe("a:b").await.unwrap();
        peer.quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_has_one_subscription_that_changes() {
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, everything()).await;
    peer.quiet().await;
    let wanted = |listen: &Value| listen["params"]["notifications"]["resourceSubscriptions"].clone();
    let (done, first) = both(client.subscribe("a:1"), granted(&mut peer)).await;
    done.unwrap();
    assert_eq!(wanted(&first), json!(["a:1"]));
    let (done, second) = both(client.subscribe("a:2"), async {
        let listen = granted(&mut peer).await;
        // The one before is given up only now, so that no change falls between the two.
        let cancelled = peer.expect("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], first["id"]);
        listen
    })
    .await;
    done.unwrap();
    assert_eq!(wanted(&second), json!(["a:1", "a:2"]));
    client.subscribe("a:2").await.unwrap();
    let (done, third) = both(client.unsubscribe("a:1"), async {
        let listen = granted(&mut peer).await;
        peer.expect("notifications/cancelled").await;
        listen
    })
    .await;
    done.unwrap();
    assert_eq!(wanted(&third), json!(["a:2"]));
    let (done, cancelled) = both(client.unsubscribe("a:2"), peer.expect("notifications/cancelled")).await;
    done.unwrap();
    assert_eq!(cancelled["params"]["requestId"], third["id"]);
    // What is not granted is not subscribed.
    let (done, ()) = both(client.subscribe("a:3"), async {
        let listen = peer.expect("subscriptions/listen").await;
        grant(&mut peer, &listen, &json!({})).await;
    })
    .await;
    assert!(done.unwrap_err().is_unsupported());
}

#[tokio::test(start_paused = true)]
async fn every_era_notifies_the_handler_of_changes() {
    for revision in Revision::ALL {
        let (builder, received) = noting();
        let (client, mut peer) = connect(builder, revision, everything()).await;
        let listen = if revision.is_modern() {
            let listen = granted(&mut peer).await;
            let lists =
                json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true });
            assert_eq!(listen["params"]["notifications"], lists);
            listen
        } else {
            json!({})
        };
        for what in ["tools", "resources", "prompts"] {
            changed(&mut peer, &listen, what).await;
        }
        peer.notify("notifications/com.example", json!({})).await;
        peer.quiet().await;
        assert_eq!(
            take(&received),
            ["tools", "resources", "prompts", "notifications/com.example"],
            "{revision}"
        );
        drop(client);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_does_not_end_the_connection() {
    let builder = Client::builder().on_notification(|_| panic!("this handler is broken"));
    let (_client, mut peer) = connect(builder, V2025_11_25, everything()).await;
    peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })).await;
    peer.settle().await;
}
