//! Requests beside the protocol.

use crate::client_peer::Peer;
use bowline_client::BoxFuture;
use bowline_http::{Post, PostAnswer, PostError, Poster, Proxy, Reference, Resolve};
use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::json;
use std::{io, net::SocketAddr};
use tokio::{io::AsyncReadExt, net::TcpListener};

async fn post(poster: &Poster, url: &str) -> Result<PostAnswer, PostError> {
    let headers = HeaderMap::from_iter([("x-key".parse().unwrap(), "secret".parse().unwrap())]);
    poster.post(url, headers, Bytes::from_static(br#"{"a":1}"#)).await
}

#[tokio::test]
async fn a_request_is_sent_unchanged_and_any_response_is_returned() {
    let mut peer = Peer::new().await;
    let (poster, url) = (Poster::new(), format!("http://{}/v1/x?y=1", peer.address));
    for status in [200, 302, 307, 404, 500] {
        let (answer, ()) = tokio::join!(post(&poster, &url), async {
            let asked = peer.next().await;
            assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/v1/x?y=1"));
            assert_eq!(asked.header("x-key"), Some("secret"));
            assert_eq!(asked.body, json!({ "a": 1 }));
            asked.reply(status, &[("Location", "/elsewhere"), ("X-Id", "7")], "words").await;
        });
        let answer = answer.unwrap();
        assert_eq!((answer.status.as_u16(), answer.body.as_ref()), (status, &b"words"[..]));
        assert_eq!(answer.headers["x-id"], "7");
    }
    // No redirection was followed.
    assert!(peer.unseen().is_empty());
}

#[tokio::test]
async fn an_answer_has_a_longest_length() {
    let mut peer = Peer::new().await;
    let (poster, url) = (Poster::new().max_answer(10), format!("http://{}/", peer.address));
    for (length, fits) in [(10, true), (11, false)] {
        for expected in [true, false] {
            let body = "x".repeat(length);
            let (answer, ()) = tokio::join!(post(&poster, &url), async {
                let mut asked = peer.next().await;
                if expected {
                    asked.reply(200, &[], &body).await;
                } else {
                    asked.raw(format!("HTTP/1.1 200 OK\r\n\r\n{body}").as_bytes()).await;
                }
            });
            if fits {
                assert_eq!(answer.unwrap().body.len(), length);
            } else {
                assert_eq!(answer.unwrap_err(), PostError::TooLong(10));
            }
        }
    }
}

#[tokio::test]
async fn a_failure_is_classified_by_its_cause() {
    let mut peer = Peer::new().await;
    let (poster, url) = (Poster::new(), format!("http://{}/", peer.address));
    for (bytes, lost) in
        [(&b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"[..], true), (b"SSH-2.0\r\n", false)]
    {
        let (answer, ()) = tokio::join!(post(&poster, &url), async { peer.next().await.raw(bytes).await });
        let error = answer.unwrap_err();
        assert_eq!(matches!(error, PostError::Lost(_)), lost, "{error}");
        assert_eq!(matches!(error, PostError::Unreadable(_)), !lost, "{error}");
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    assert!(matches!(post(&poster, &nobody).await.unwrap_err(), PostError::Unreachable(_)));
    for url in ["", "ftp://h/", "http://ann:secret@h/"] {
        let error = post(&poster, url).await.unwrap_err();
        assert!(matches!(error, PostError::Misuse(_)) && !error.to_string().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn dropping_the_future_aborts_the_request() {
    let mut peer = Peer::new().await;
    let url = format!("http://{}/", peer.address);
    let asking = tokio::spawn(async move { post(&Poster::new(), &url).await });
    let mut asked = peer.next().await;
    asking.abort();
    let mut rest = Vec::new();
    // The end of the stream, or a reset.
    drop(asked.stream.read_to_end(&mut rest).await);
    assert!(rest.is_empty());
    assert!(asking.await.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn a_proxy_receives_the_address_of_the_server() {
    let mut peer = Peer::new().await;
    let poster = Poster::new().proxy(Proxy::at(format!("http://ann:secret@{}", peer.address)));
    assert!(!format!("{poster:?}").contains("secret"));
    let (answer, ()) = tokio::join!(post(&poster, "http://model.invalid/v1"), async {
        let asked = peer.next().await;
        assert_eq!(asked.path, "http://model.invalid/v1");
        assert_eq!(asked.header("proxy-authorization"), Some("Basic YW5uOnNlY3JldA=="));
        asked.accepted().await;
    });
    assert_eq!(answer.unwrap().status, 202);
}

/// Knows one host, and refuses all others.
#[derive(Debug)]
struct Book(SocketAddr);

impl Resolve for Book {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move {
            match (host, port) {
                // The first address is nobody's.
                ("known.example", 81) => Ok(vec!["127.0.0.1:1".parse().unwrap(), self.0]),
                ("empty.example", _) => Ok(Vec::new()),
                _ => Err(io::Error::other(format!("{host} and {port} are not in the book"))),
            }
        })
    }
}

#[tokio::test]
async fn only_addresses_of_the_resolver_are_used() {
    let mut peer = Peer::new().await;
    let poster = Poster::new().proxy(Proxy::none()).resolver(Book(peer.address));
    let get = |url: &'static str| poster.send(Method::GET, url, HeaderMap::new(), Bytes::new());
    let (answer, ()) = tokio::join!(get("http://known.example:81/x"), async {
        let asked = peer.next().await;
        assert_eq!((asked.method.as_str(), asked.path.as_str()), ("GET", "/x"));
        assert_eq!(asked.header("host"), Some("known.example:81"));
        asked.reply(200, &[], "words").await;
    });
    assert_eq!(answer.unwrap().body.as_ref(), b"words");
    // Addresses are asked for as well.
    for (url, expected) in [
        ("http://localhost/", "localhost and 80 are not in the book"),
        ("https://127.0.0.1/", "127.0.0.1 and 443 are not in the book"),
        ("http://[::1]:9/", "::1 and 9 are not in the book"),
        ("http://empty.example/", "`empty.example` has no address"),
    ] {
        match get(url).await {
            Err(PostError::Unreachable(reason)) => assert!(reason.contains(expected), "{reason}"),
            other => panic!("expected {expected}, got {other:?}"),
        }
    }
}

/// Refuses one host, and knows no other.
#[derive(Debug)]
struct Refusing;

impl Resolve for Refusing {
    fn resolve<'a>(&'a self, host: &'a str, _: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        let (kind, reason) = match host {
            "inside.example" => (io::ErrorKind::PermissionDenied, "inside.example is refused"),
            _ => (io::ErrorKind::Other, "not known here"),
        };
        Box::pin(async move { Err(io::Error::new(kind, reason)) })
    }
}

#[tokio::test]
async fn a_resolver_refuses_hosts_behind_a_proxy_too() {
    let mut peer = Peer::new().await;
    let proxy = Proxy::at(format!("http://{}", peer.address));
    let poster = Poster::new().proxy(proxy).resolver(Refusing);
    for url in ["http://inside.example/", "https://inside.example/"] {
        match post(&poster, url).await {
            Err(PostError::Unreachable(reason)) => assert!(reason.contains("is refused"), "{reason}"),
            other => panic!("expected a refusal, got {other:?}"),
        }
    }
    // The proxy may know a name that this machine does not.
    let (answer, ()) = tokio::join!(post(&poster, "http://outside.example/v1"), async {
        let asked = peer.next().await;
        assert_eq!(asked.path, "http://outside.example/v1");
        asked.accepted().await;
    });
    assert_eq!(answer.unwrap().status, 202);
}

#[test]
fn a_reply_names_the_redirect_target() {
    let redirect = |status: u16, location: &str| {
        let headers = HeaderMap::from_iter([("location".parse().unwrap(), location.parse().unwrap())]);
        let answer = PostAnswer { status: status.try_into().unwrap(), headers, body: Bytes::new() };
        answer.redirect("https://h/a/b")
    };
    let to = |url: &str, is_same_origin| Ok(Some(Reference { url: url.into(), is_same_origin }));
    assert_eq!(redirect(302, "../c#d"), to("https://h/c", true));
    assert_eq!(redirect(308, "http://h/c"), to("http://h/c", false));
    assert_eq!(redirect(301, "//other/c"), to("https://other/c", false));
    assert_eq!(redirect(200, "/c"), Ok(None));
    assert_eq!(redirect(304, "/c"), Ok(None));
    assert!(redirect(302, "file:///etc/passwd").is_err());
    assert!(redirect(302, "https://user@h/").is_err());
}
