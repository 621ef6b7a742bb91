//! What the client makes of replies, good and bad. Whatever comes, every request settles.

use crate::client_peer::{Asked, modern, text};
use bowline_client::{Client, Error};
use bowline_http::http;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

async fn replied<F: Future<Output = ()>>(reply: impl FnOnce(Asked) -> F) -> Result<String, Error> {
    let (client, mut peer) = modern(Client::builder(), json!({ "tools": {} })).await;
    let (called, ()) =
        tokio::join!(client.call("t", ()), async { reply(peer.post("tools/call").await).await });
    // Whatever happened to one request, the next is none the worse for it.
    let (next, ()) = tokio::join!(client.call("t", ()), async {
        peer.post("tools/call").await.result(&text("next")).await;
    });
    assert_eq!(next.unwrap().text(), "next");
    assert!(peer.unseen().is_empty(), "{:?}", peer.unseen());
    called.map(|called| called.text())
}

#[tokio::test]
async fn both_kinds_of_replies_are_accepted() {
    // proves: HTTP-20
    let json = replied(|asked| async move { asked.result(&text("json")).await }).await;
    assert_eq!(json.unwrap(), "json");
    let charset = replied(|asked| async move {
        let body = asked.response_to(&text("charset"));
        asked.status(200, "Application/JSON; charset=utf-8", &format!("\n{body}\n")).await;
    });
    assert_eq!(charset.await.unwrap(), "charset");
    let events = replied(|asked| async move { asked.events(&[]).await.result(&text("events")).await });
    assert_eq!(events.await.unwrap(), "events");
}

// proves: HTTP-85
#[tokio::test]
async fn every_end_of_line_ends_a_line_of_an_event() {
    for end in ["\n", "\r", "\r\n"] {
        let returned = replied(|asked| async move {
            let response = asked.response_to(&text("done"));
            let (first, second) = response.split_at(response.find(',').unwrap() + 1);
            let mut events = asked.events(&[]).await;
            // The data is of two lines, with a field between them that nobody knows.
            let lines = [
                "event: message",
                &format!("data: {first}"),
                "unknown: field",
                &format!("data: {second}"),
                "",
                "",
            ];
            events.write(&lines.join(end)).await;
        });
        assert_eq!(returned.await.unwrap(), "done", "{end:?}");
    }
}

#[tokio::test]
async fn events_are_read_as_the_standard_says() {
    // proves: HTTP-84
    let returned = replied(|asked| async move {
        let response = asked.response_to(&text("done"));
        let (first, second) = response.split_at(response.find(',').unwrap() + 1);
        let mut events = asked.events(&[]).await;
        events.write(":\r\n: keep-alive\n\n:\r").await;
        events.write("unknown: field\rretry: soon\r\rid\ndata\n\n").await;
        events.write("event: other\ndata: {\"jsonrpc\":\"2.0\"}\n\n").await;
        // Cut into pieces at places that mean nothing.
        for piece in ["\u{feff}no: mark here\r\n", "da", "ta: ", first, "\r", "\ndata:", second, "\n", "\r\n"]
        {
            events.write(piece).await;
            events.asked.stream.flush().await.unwrap();
        }
    });
    assert_eq!(returned.await.unwrap(), "done");
}

#[tokio::test]
async fn a_stream_without_its_response_fails_the_request_at_once() {
    let silent = replied(|asked| async move { drop(asked.events(&[]).await) }).await;
    assert!(silent.unwrap_err().is_closed());
    let progress = replied(|asked| async move {
        let mut events = asked.events(&[]).await;
        events.message(&json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": {} })).await;
    });
    assert!(progress.await.unwrap_err().is_closed());
    let foreign = replied(|asked| async move {
        let mut events = asked.events(&[]).await;
        events
            .message(&json!({ "jsonrpc": "2.0", "id": "another", "result": text("for someone else") }))
            .await;
    });
    assert!(foreign.await.unwrap_err().is_closed());
    let cut = replied(|asked| async move {
        let response = asked.response_to(&text("cut"));
        let mut events = asked.events(&[]).await;
        // Without the blank line there is no event.
        events.write(&format!("data: {response}\n")).await;
    });
    assert!(cut.await.unwrap_err().is_closed());
}

#[tokio::test]
async fn an_invalid_reply_is_reported() {
    for (status, kind, body) in [
        (200, "text/html", "<h1>Welcome</h1>"),
        (200, "", ""),
        (200, "application/json", ""),
        (200, "application/json", "{"),
        (200, "application/json", "[]"),
        (200, "application/json", r#"{"jsonrpc":"2.0","id":"another","result":{}}"#),
        (200, "application/json", r#"{"jsonrpc":"1.0","result":{}}"#),
        (202, "", ""),
        (204, "", ""),
    ] {
        let error = replied(|asked| asked.status(status, kind, body)).await.unwrap_err();
        assert!(error.is_malformed(), "{status} {kind} {body}: {error}");
        if kind == "text/html" {
            assert!(
                error.to_string().contains("Welcome") && error.to_string().contains("text/html"),
                "{error}"
            );
        }
    }
    let encoded = replied(|asked| async move {
        let body = asked.response_to(&text("x"));
        let headers = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")];
        asked.reply(200, &headers, &body).await;
    });
    assert!(encoded.await.unwrap_err().to_string().contains("gzip"));
    let garbage = replied(|mut asked| async move { asked.raw(b"SSH-2.0-OpenSSH_9.6\r\n").await });
    assert!(garbage.await.unwrap_err().is_malformed());
}

#[tokio::test]
async fn a_refusal_is_the_error_in_its_body_or_its_status() {
    // proves: HTTP-99
    let error = |code: i64| json!({ "code": code, "message": "no" });
    for (status, code) in [(400, -32602), (404, -32601), (400, -32021), (500, -32603), (200, -32000)] {
        let refused = replied(|asked| async move { asked.error(status, error(code)).await }).await;
        assert_eq!(refused.unwrap_err().as_rpc().unwrap().code, code);
    }
    // An error that names no request is about the one it replies to.
    for id in [json!(null), Value::Bool(true)] {
        let mut body = json!({ "jsonrpc": "2.0", "error": error(-7) });
        if id.is_null() {
            body["id"] = id;
        }
        for status in [200, 400] {
            let body = body.to_string();
            let refused =
                replied(|asked| async move { asked.status(status, "application/json", &body).await });
            assert_eq!(refused.await.unwrap_err().as_rpc().unwrap().code, -7);
        }
    }
    for (status, body) in [
        (413, "too long"),
        (431, "headers too long"),
        (429, "slow down"),
        (502, "<html>\n<h1>Bad\u{7} gateway</h1>"),
        (503, ""),
        (302, ""),
    ] {
        let refused = replied(|asked| asked.status(status, "text/plain", body)).await.unwrap_err();
        assert_eq!(refused.http_status(), Some(status));
        assert!(!refused.is_closed());
        let shown = refused.to_string();
        assert!(shown.contains(&status.to_string()) && !shown.contains(['\n', '\u{7}']), "{shown}");
    }
}

#[tokio::test]
async fn too_long_values_are_not_read() {
    let big = "x".repeat(5000);
    for frame_limit in [true, false] {
        let mut peer = crate::client_peer::Peer::new().await;
        let (target, builder) = if frame_limit {
            (peer.target(), Client::builder().max_frame(4000))
        } else {
            (peer.target().max_message(4000), Client::builder())
        };
        let (client, ()) = tokio::join!(builder.connect(target), peer.open_modern(json!({ "tools": {} })));
        let client = client.unwrap();
        for kind in ["length", "chunks", "event", "event without end", "head"] {
            let (called, ()) = tokio::join!(client.call("t", ()), async {
                let mut asked = peer.post("tools/call").await;
                let body = asked.response_to(&text(&big));
                match kind {
                    "length" => asked.status(200, "application/json", &body).await,
                    "chunks" => {
                        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
                        let size = body.len();
                        asked.raw(format!("{head}{size:x}\r\n{body}\r\n0\r\n\r\n").as_bytes()).await;
                    }
                    "event" => asked.events(&[]).await.result(&text(&big)).await,
                    "event without end" => {
                        let mut events = asked.events(&[]).await;
                        events.write(&format!("data: {body}")).await;
                        events.closed().await;
                    }
                    _ => {
                        let head = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(200_000));
                        asked.raw(head.as_bytes()).await;
                    }
                }
            });
            let error = called.unwrap_err();
            // A head may be too long to be read at all, or the connection be gone before that is noticed.
            assert!(error.is_malformed() || (kind == "head" && error.is_closed()), "{kind}: {error}");
        }
        let (called, ()) = tokio::join!(client.call("t", ()), async {
            peer.post("tools/call").await.result(&text("short")).await;
        });
        assert_eq!(called.unwrap().text(), "short");
    }
}

#[tokio::test]
async fn a_missing_server_differs_from_a_lost_one() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Client::connect(http(format!("http://{free}/mcp"))).await.unwrap_err();
    assert!(error.is_unreachable() && error.is_closed(), "{error}");
    for url in ["localhost:8080", "ftp://h/", "http://user:pass@h/", ""] {
        let error = Client::connect(http(url)).await.unwrap_err();
        assert!(!error.is_closed() && !error.to_string().contains("pass"), "{error}");
    }
}

#[tokio::test]
async fn headers_of_the_caller_travel_along_and_may_not_be_the_protocols() {
    let mut peer = crate::client_peer::Peer::new().await;
    let target = peer.target().header("X-Tenant", "blue").header("Authorization", "Bearer fixed");
    assert!(!format!("{target:?}").contains("fixed"));
    let (client, ()) = tokio::join!(Client::connect(target), async {
        let asked = peer.post("server/discover").await;
        assert_eq!(asked.header("x-tenant"), Some("blue"));
        assert_eq!(asked.header("authorization"), Some("Bearer fixed"));
        assert!(asked.header("user-agent").unwrap().starts_with("bowline/"));
        asked.result(&crate::client_peer::discovery(&json!({}))).await;
    });
    client.unwrap();
    for (name, value) in
        [("Mcp-Session-Id", "s"), ("accept", "x"), ("Host", "h"), ("bad name", "x"), ("x", "a\nb")]
    {
        let error = Client::connect(peer.target().header(name, value)).await.unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[tokio::test]
async fn an_abandoned_request_closes_its_stream_and_sends_nothing() {
    // proves: HTTP-15
    let (client, mut peer) = modern(Client::builder(), json!({ "tools": {} })).await;
    let mut call = Box::pin(client.call("slow", ()));
    let events = tokio::select! {
        _ = &mut call => panic!("it has no answer yet"),
        events = async { peer.post("tools/call").await.events(&[]).await } => events,
    };
    drop(call);
    events.closed().await;
    let (next, ()) = tokio::join!(client.call("t", ()), async {
        let asked = peer.next().await;
        assert_eq!(asked.kind(), "POST tools/call", "a closed reply is all there is to a cancellation");
        let mut events = asked.events(&[]).await;
        // A request of the server, which this era does not have, is not answered either.
        events.message(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).await;
        events.result(&text("ok")).await;
    });
    next.unwrap();
    client.close().await;
    assert!(peer.unseen().is_empty(), "{:?}", peer.unseen());
}
