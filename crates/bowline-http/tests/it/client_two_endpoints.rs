//! Servers of 2024-11-05, which have one address to listen at and another to talk to.

use crate::client_peer::{Events, Peer, greeting, text};
use bowline_client::Client;
use bowline_types::Revision;
use serde_json::{Value, json};

fn response(asked: &crate::client_peer::Asked, result: &Value) -> Value {
    serde_json::from_str(&asked.response_to(result)).unwrap()
}

/// Opens a connection, from the first POST on.
async fn open(peer: &mut Peer, status: u16, endpoint: &str, path: &str) -> Events {
    peer.post("server/discover").await.status(status, "text/plain", "").await;
    let refused = peer.post("initialize").await;
    assert_eq!(refused.path, "/mcp");
    refused.status(status, "text/html", "<h1>Cannot POST</h1>").await;
    let get = peer.verb("GET").await;
    assert_eq!((get.path.as_str(), get.header("accept")), ("/mcp", Some("text/event-stream")));
    let mut stream = get.events(&[]).await;
    stream.write(&format!("event: endpoint\ndata: {endpoint}\n\n")).await;
    let asked = peer.post("initialize").await;
    assert_eq!(asked.path, path);
    let greeted = response(&asked, &greeting("2024-11-05"));
    asked.accepted().await;
    stream.message(&greeted).await;
    let initialized = peer.post("notifications/initialized").await;
    assert_eq!(initialized.path, path);
    initialized.accepted().await;
    stream
}

#[tokio::test]
async fn messages_go_to_the_endpoint_of_the_stream() {
    // proves: SSE-03, HTTP-95
    for status in [400, 404, 405] {
        for (endpoint, path) in [
            ("/messages?sessionId=1", "/messages?sessionId=1"),
            ("messages?sessionId=1", "/messages?sessionId=1"),
            ("?sessionId=1", "/mcp?sessionId=1"),
        ] {
            let mut peer = Peer::new().await;
            let (client, mut stream) =
                tokio::join!(Client::connect(peer.target()), open(&mut peer, status, endpoint, path));
            let client = client.unwrap();
            assert_eq!(client.revision(), Revision::V2024_11_05);
            let (called, ()) = tokio::join!(client.call("t", ()), async {
                let asked = peer.post("tools/call").await;
                assert_eq!(asked.path, path);
                let answer = response(&asked, &text("ok"));
                asked.status(200, "text/plain", "Accepted").await;
                stream.message(&answer).await;
            });
            assert_eq!(called.unwrap().text(), "ok");
            stream.message(&json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" })).await;
            let pong = peer.response().await;
            assert_eq!(pong.path, path);
            pong.accepted().await;
            client.close().await;
            stream.closed().await;
            assert!(peer.unseen().is_empty(), "{:?}", peer.unseen());
        }
    }
}

#[tokio::test]
async fn an_absolute_url_of_the_same_origin_is_accepted() {
    let mut peer = Peer::new().await;
    let endpoint = format!("http://{}/m", peer.address);
    let (client, _stream) =
        tokio::join!(Client::connect(peer.target()), open(&mut peer, 405, &endpoint, "/m"));
    client.unwrap();
}

#[tokio::test]
async fn an_address_elsewhere_is_refused() {
    // proves: SSE-05
    let elsewhere = Peer::new().await;
    for endpoint in [
        elsewhere.url(),
        "//evil.example/m".into(),
        "https://127.0.0.1/m".into(),
        "http://user@127.0.0.1/m".into(),
        "file:///etc/passwd".into(),
    ] {
        let mut peer = Peer::new().await;
        let (client, ()) = tokio::join!(Client::connect(peer.target()), async {
            peer.post("server/discover").await.status(404, "text/plain", "").await;
            peer.post("initialize").await.status(404, "text/plain", "").await;
            let mut stream = peer.verb("GET").await.events(&[]).await;
            stream.write(&format!("event: endpoint\ndata: {endpoint}\n\n")).await;
        });
        let error = client.unwrap_err();
        assert!(error.is_malformed() && error.to_string().contains("endpoint"), "{error}");
        assert!(peer.unseen().is_empty(), "{:?}", peer.unseen());
    }
}

#[tokio::test]
async fn other_refusals_are_returned_unchanged() {
    // proves: HTTP-96, HTTP-97
    for (status, body) in [
        (401, ""),
        (403, ""),
        (500, ""),
        (404, r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no"}}"#),
    ] {
        let mut peer = Peer::new().await;
        let target = peer.target().known_era(bowline_types::Era::Legacy);
        let builder = Client::builder().revisions([Revision::V2025_11_25]);
        let (client, ()) = tokio::join!(builder.connect(target), async {
            for _ in 0..2 {
                let asked = peer.post("initialize").await;
                asked.status(status, "application/json", body).await;
                // Where the era was known, it is found out once more.
                if status == 401 || status == 500 {
                    break;
                }
            }
        });
        assert!(client.is_err());
        assert!(peer.unseen().is_empty(), "{status}: {:?}", peer.unseen());
    }
}

#[tokio::test]
async fn without_a_stream_the_first_refusal_counts() {
    for stream in [None, Some(""), Some("data: hello\n\n"), Some("event: message\ndata: {}\n\n")] {
        let mut peer = Peer::new().await;
        let (client, ()) = tokio::join!(Client::connect(peer.target()), async {
            peer.post("server/discover").await.status(404, "text/plain", "").await;
            peer.post("initialize").await.status(404, "text/plain", "nobody home").await;
            let get = peer.verb("GET").await;
            match stream {
                None => get.status(404, "text/plain", "").await,
                Some(text) => get.events(&[]).await.write(text).await,
            }
        });
        let error = client.unwrap_err();
        assert_eq!(error.http_status(), Some(404));
        assert!(error.to_string().contains("nobody home"), "{error}");
    }
}

#[tokio::test]
async fn the_end_of_the_stream_is_the_end_of_the_connection() {
    let mut peer = Peer::new().await;
    let (client, stream) = tokio::join!(Client::connect(peer.target()), open(&mut peer, 405, "/m", "/m"));
    let client = client.unwrap();
    let (called, ()) = tokio::join!(client.call("t", ()), async {
        peer.post("tools/call").await.accepted().await;
        drop(stream);
    });
    assert!(called.unwrap_err().is_closed());
    // It is opened again, without being asked.
    let again = peer.post("initialize").await;
    again.status(405, "text/plain", "").await;
    let mut stream = peer.verb("GET").await.events(&[]).await;
    stream.write("event: endpoint\ndata: /n\n\n").await;
    let asked = peer.post("initialize").await;
    assert_eq!(asked.path, "/n");
    let greeted = response(&asked, &greeting("2024-11-05"));
    asked.accepted().await;
    stream.message(&greeted).await;
    peer.post("notifications/initialized").await.accepted().await;
    let (called, ()) = tokio::join!(client.call("t", ()), async {
        let asked = peer.post("tools/call").await;
        let answer = response(&asked, &text("back"));
        asked.accepted().await;
        stream.message(&answer).await;
    });
    assert_eq!(called.unwrap().text(), "back");
}

#[tokio::test]
async fn a_rejected_message_fails_its_request() {
    let mut peer = Peer::new().await;
    let (client, _stream) = tokio::join!(Client::connect(peer.target()), open(&mut peer, 405, "/m", "/m"));
    let client = client.unwrap();
    let (called, ()) = tokio::join!(client.call("t", ()), async {
        peer.post("tools/call").await.status(500, "text/plain", "oops").await;
    });
    assert_eq!(called.unwrap_err().http_status(), Some(500));
}
