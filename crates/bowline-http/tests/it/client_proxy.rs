//! Servers behind a proxy.

use crate::client_peer::{Peer, discovery};
use bowline_client::Client;
use bowline_http::{Proxy, http};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn a_proxy_receives_the_address_of_the_server() {
    let mut peer = Peer::new().await;
    let proxy = Proxy::at(format!("http://ann:secret@{}", peer.address));
    let target = http("http://tickets.invalid:8080/mcp").proxy(proxy);
    assert!(!format!("{target:?}").contains("secret"));
    let (client, ()) = tokio::join!(Client::connect(target), async {
        let asked = peer.post("server/discover").await;
        assert_eq!(asked.path, "http://tickets.invalid:8080/mcp");
        assert_eq!(asked.header("host"), Some("tickets.invalid:8080"));
        assert_eq!(asked.header("proxy-authorization"), Some("Basic YW5uOnNlY3JldA=="));
        asked.result(&discovery(&json!({}))).await;
    });
    client.unwrap();
}

#[tokio::test]
async fn a_proxy_is_asked_to_let_tls_through() {
    let mut peer = Peer::new().await;
    let proxy = || Proxy::at(format!("http://ann:secret@{}", peer.address));
    let (through, refused) =
        (http("https://tickets.invalid/mcp").proxy(proxy()), http("https://h/").proxy(proxy()));
    let (client, ()) = tokio::join!(Client::connect(through), async {
        let mut asked = peer.verb("CONNECT").await;
        assert_eq!(asked.path, "tickets.invalid:443");
        assert_eq!(asked.header("proxy-authorization"), Some("Basic YW5uOnNlY3JldA=="));
        assert_eq!(asked.header("mcp-method"), None);
        asked.stream.write_all(b"HTTP/1.1 200 Connection established\r\nVia: me\r\n\r\n").await.unwrap();
        // What follows is TLS: a handshake record.
        assert_eq!(asked.stream.read_u8().await.unwrap(), 22);
    });
    assert!(client.unwrap_err().is_closed());
    let (client, ()) = tokio::join!(Client::connect(refused), async {
        peer.verb("CONNECT").await.raw(b"HTTP/1.1 403 Not to that one\r\n\r\n").await;
    });
    let error = client.unwrap_err();
    assert!(error.is_unreachable() && error.to_string().contains("Not to that one"), "{error}");
}

#[tokio::test]
async fn a_proxy_of_another_kind_is_refused() {
    let error = Client::connect(http("http://h/").proxy(Proxy::at("socks5://h"))).await.unwrap_err();
    assert!(error.to_string().contains("socks5"), "{error}");
}
