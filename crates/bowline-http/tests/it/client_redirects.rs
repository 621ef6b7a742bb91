//! Redirections: followed within the origin, and not beyond it.

use crate::client_peer::{Asked, Peer, discovery, modern, text};
use bowline_client::Client;
use serde_json::json;

async fn redirect(asked: Asked, status: u16, location: &str) {
    asked.reply(status, &[("Location", location)], "").await;
}

#[tokio::test]
async fn a_request_is_sent_on_as_it_is() {
    let (client, mut peer) = modern(Client::builder(), json!({ "tools": {} })).await;
    let whole = format!("http://{}/whole", peer.address);
    for (status, location, path) in [(307, "/mcp/", "/mcp/"), (308, "v2", "/v2"), (307, &*whole, "/whole")] {
        let (called, ()) = tokio::join!(client.call("t", json!({ "a": 1 })), async {
            let asked = peer.post("tools/call").await;
            assert_eq!(asked.path, "/mcp");
            let body = asked.body.clone();
            redirect(asked, status, location).await;
            let again = peer.post("tools/call").await;
            assert_eq!((again.path.as_str(), &again.body), (path, &body));
            assert_eq!(again.header("mcp-name"), Some("t"));
            again.result(&text("there")).await;
        });
        assert_eq!(called.unwrap().text(), "there");
    }
}

#[tokio::test]
async fn nothing_is_sent_to_another_origin() {
    let mut elsewhere = Peer::new().await;
    let mut peer = Peer::new().await;
    let target = peer.target().header("X-Key", "secret");
    let (client, ()) = tokio::join!(Client::connect(target), async {
        peer.post("server/discover").await.result(&discovery(&json!({ "tools": {} }))).await;
    });
    let client = client.unwrap();
    let https = format!("https://{}/mcp", peer.address);
    for location in [&*elsewhere.url(), &*https, "//example.invalid/", "ftp://h/", "http://user@h/"] {
        for status in [307, 308] {
            let (called, ()) = tokio::join!(client.call("t", ()), async {
                redirect(peer.post("tools/call").await, status, location).await;
            });
            let error = called.unwrap_err();
            assert_eq!(error.http_status(), Some(status), "{error}");
        }
    }
    assert!(elsewhere.unseen().is_empty());
}

#[tokio::test]
async fn other_redirections_of_a_message_are_refusals() {
    let (client, mut peer) = modern(Client::builder(), json!({ "tools": {} })).await;
    for status in [300, 301, 302, 303, 304] {
        let (called, ()) = tokio::join!(client.call("t", ()), async {
            redirect(peer.post("tools/call").await, status, "/other").await;
        });
        assert_eq!(called.unwrap_err().http_status(), Some(status));
    }
    let (called, ()) = tokio::join!(client.call("t", ()), async {
        peer.post("tools/call").await.status(307, "text/plain", "but where to?").await;
    });
    assert_eq!(called.unwrap_err().http_status(), Some(307));
    assert!(peer.unseen().is_empty());
}

#[tokio::test]
async fn redirects_are_limited() {
    let (client, mut peer) = modern(Client::builder(), json!({ "tools": {} })).await;
    let (called, ()) = tokio::join!(client.call("t", ()), async {
        for _ in 0..4 {
            redirect(peer.post("tools/call").await, 307, "/round").await;
        }
    });
    assert_eq!(called.unwrap_err().http_status(), Some(307));
    let (called, ()) = tokio::join!(client.call("t", ()), async {
        for _ in 0..3 {
            redirect(peer.post("tools/call").await, 307, "/round").await;
        }
        peer.post("tools/call").await.result(&text("there")).await;
    });
    assert_eq!(called.unwrap().text(), "there");
    assert!(peer.unseen().is_empty());
}
