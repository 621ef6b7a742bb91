//! Requests beside the protocol.

use crate::client_peer::Peer;
use bowline_http::{Post, PostAnswer, PostError, Poster, Proxy};
use bytes::Bytes;
use http::HeaderMap;
use serde_json::json;
use tokio::{io::AsyncReadExt, net::TcpListener};

async fn post(poster: &Poster, url: &str) -> Result<PostAnswer, PostError> {
    let headers = HeaderMap::from_iter([("x-key".parse().unwrap(), "secret".parse().unwrap())]);
    poster.post(url, headers, Bytes::from_static(br#"{"a":1}"#)).await
}

#[tokio::test]
async fn a_request_is_sent_as_it_is_and_any_answer_given() {
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
        for told in [true, false] {
            let body = "x".repeat(length);
            let (answer, ()) = tokio::join!(post(&poster, &url), async {
                let mut asked = peer.next().await;
                if told {
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
async fn a_failure_is_sorted_by_what_went_wrong() {
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
async fn a_proxy_is_told_which_server_a_request_is_for() {
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
