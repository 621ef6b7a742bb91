//! Connections on real sockets: how long they are kept, and how many.

use bowline_http::{HttpOptions, HttpService};
use bowline_server::{Ctx, Server, Tool};
use bowline_testing::Log;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

async fn serve(settings: HttpOptions) -> SocketAddr {
    let server = Server::new("s").tool(Tool::new("now").handler(|| "now")).tool(Tool::new("steps").handler(
        |ctx: Ctx| async move {
            ctx.progress(1.0, None);
            tokio::task::yield_now().await;
            "done in steps"
        },
    ));
    let service = HttpService::with_options(server.build().unwrap(), settings);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { service.serve(listener, std::future::pending()).await });
    address
}

fn request(method: &str, name: &str) -> (String, Vec<(&'static str, String)>) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let filter = json!({ "toolsListChanged": true });
    let params = if method == "tools/call" {
        json!({ "name": name, "_meta": meta, "arguments": {} })
    } else {
        json!({ "notifications": filter, "_meta": meta })
    };
    let mut params = params;
    params["_meta"]["progressToken"] = json!(1);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut headers = vec![
        ("content-type", "application/json".to_owned()),
        ("accept", "application/json, text/event-stream".to_owned()),
        ("mcp-protocol-version", "2026-07-28".to_owned()),
        ("mcp-method", method.to_owned()),
    ];
    if method == "tools/call" {
        headers.push(("mcp-name", name.to_owned()));
    }
    (body, headers)
}

fn text(method: &str, name: &str) -> String {
    use std::fmt::Write;
    let (body, headers) = request(method, name);
    let mut text = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n".to_owned();
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    write!(text, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    text
}

// proves: HDR-44
#[tokio::test]
async fn too_many_or_too_long_headers_are_refused_before_the_body_is_read() {
    let address = serve(HttpOptions::new()).await;
    for headers in ["X-A: b\r\n".repeat(10_000), format!("Mcp-Name: =?base64?{}?=\r\n", "A".repeat(1 << 20))]
    {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head =
            format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n{headers}\r\n");
        // The server may close the connection while the head is written. The body is never sent.
        let _ = stream.write_all(head.as_bytes()).await;
        let mut reply = Vec::new();
        let _ = timeout(Duration::from_secs(60), stream.read_to_end(&mut reply)).await.unwrap();
        let reply = String::from_utf8_lossy(&reply);
        assert!(reply.is_empty() || reply.starts_with("HTTP/1.1 431"), "{reply}");
    }
}

/// Reads until something stands there, or the connection ends.
async fn read_until(stream: &mut TcpStream, needle: &str) -> Option<String> {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let length = stream.read(&mut buffer).await.unwrap_or(0);
        seen.extend_from_slice(&buffer[..length]);
        let text = String::from_utf8_lossy(&seen).into_owned();
        if text.contains(needle) {
            return Some(text);
        }
        if length == 0 {
            return None;
        }
    }
}

async fn call(stream: &mut TcpStream) -> Option<String> {
    stream.write_all(text("tools/call", "now").as_bytes()).await.ok()?;
    read_until(stream, "serverInfo").await
}

/// Moves the clock on. A clock that stands still otherwise would move on by itself whenever a socket is waited for.
async fn pass(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

/// Waits until the server closes a connection.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    timeout(Duration::from_secs(60), stream.read_to_end(&mut rest)).await.is_ok()
}

#[tokio::test]
async fn an_idle_connection_is_kept_for_longer_than_load_balancers_keep_theirs() {
    let address = serve(HttpOptions::new()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    for pause in [0, 61, 120, 170] {
        pass(pause).await;
        assert!(call(&mut stream).await.is_some(), "after {pause} s");
    }
    pass(181).await;
    assert!(is_closed(&mut stream).await);
}

#[tokio::test]
async fn an_incomplete_head_has_ten_seconds_on_a_kept_connection_too() {
    let address = serve(HttpOptions::new()).await;
    let request = text("tools/call", "now");
    let (start, rest) = request.split_at(30);
    for (before, pause) in [(0, 9), (1, 9), (0, 11), (1, 11)] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        for _ in 0..before {
            call(&mut stream).await.unwrap();
            pass(60).await;
        }
        stream.write_all(start.as_bytes()).await.unwrap();
        // Another connection is served after the first bytes have come.
        call(&mut TcpStream::connect(address).await.unwrap()).await.unwrap();
        pass(pause).await;
        if pause < 10 {
            stream.write_all(rest.as_bytes()).await.unwrap();
            assert!(read_until(&mut stream, "serverInfo").await.is_some(), "after {before} requests");
        } else {
            assert!(is_closed(&mut stream).await, "after {before} requests");
        }
    }
}

#[tokio::test]
async fn a_reply_in_events_leaves_its_connection_open() {
    let address = serve(HttpOptions::new()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    for _ in 0..3 {
        stream.write_all(text("tools/call", "steps").as_bytes()).await.unwrap();
        let reply = read_until(&mut stream, "\r\n0\r\n\r\n").await.expect("the last chunk");
        assert!(
            reply.contains("transfer-encoding: chunked") && reply.contains("text/event-stream"),
            "{reply}"
        );
        assert!(reply.contains("notifications/progress") && reply.contains("done in steps"), "{reply}");
    }
}

#[tokio::test]
async fn an_idle_connection_of_http2_is_closed() {
    let address = serve(HttpOptions::new()).await;
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let send = |method: &str, name: &str| {
        let (body, headers) = request(method, name);
        let mut request = http::Request::post(format!("http://localhost:{}/mcp", address.port()));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.body(Full::new(Bytes::from(body))).unwrap()
    };
    for _ in 0..3 {
        let reply = client.send_request(send("tools/call", "now")).await.unwrap();
        assert_eq!(reply.status(), 200);
        reply.into_body().collect().await.unwrap();
        pass(100).await;
    }
    // A stream keeps it open.
    let mut listening = client.send_request(send("subscriptions/listen", "")).await.unwrap().into_body();
    for _ in 0..3 {
        pass(181).await;
        assert!(listening.frame().await.unwrap().is_ok());
    }
    drop(listening);
    let reply = client.send_request(send("tools/call", "now")).await.unwrap();
    reply.into_body().collect().await.unwrap();
    pass(181).await;
    timeout(Duration::from_secs(60), connection).await.expect("it is closed").unwrap().unwrap();
}

#[tokio::test]
async fn connections_are_bounded_and_the_one_idle_longest_is_closed_first() {
    let (log, _guard) = Log::start();
    let address = serve(HttpOptions::new().max_connections(3)).await;
    let connect = || async { TcpStream::connect(address).await.unwrap() };
    let mut busy = connect().await;
    busy.write_all(text("subscriptions/listen", "").as_bytes()).await.unwrap();
    assert!(read_until(&mut busy, "acknowledged").await.is_some());
    let (mut older, mut newer) = (connect().await, connect().await);
    assert!(call(&mut older).await.is_some());
    pass(1).await;
    assert!(call(&mut newer).await.is_some());
    let mut fourth = connect().await;
    assert!(call(&mut fourth).await.is_some());
    assert!(is_closed(&mut older).await);
    // All of them are busy: there is nothing to close but the new ones, and one line says so.
    for stream in [&mut newer, &mut fourth] {
        stream.write_all(text("subscriptions/listen", "").as_bytes()).await.unwrap();
        assert!(read_until(stream, "acknowledged").await.is_some());
    }
    for _ in 0..20 {
        assert_eq!(call(&mut connect().await).await, None);
    }
    assert_eq!(log.count(&["WARN", "3 are open"]), 1, "{:?}", log.lines());
    drop(fourth);
    // The server needs a moment to notice.
    while call(&mut connect().await).await.is_none() {}
}

#[tokio::test]
async fn a_client_that_does_not_read_its_reply_is_disconnected() {
    let huge = Tool::new("huge").handler(|| "x".repeat(64 * 1024 * 1024));
    let now = Tool::new("now").handler(|| "now");
    let server = Server::new("s").tool(huge).tool(now).build().unwrap();
    let service = HttpService::with_options(server, HttpOptions::new().max_connections(1));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { service.serve(listener, std::future::pending()).await });
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text("tools/call", "huge").as_bytes()).await.unwrap();
    stream.readable().await.unwrap();
    // The only connection there may be is busy until it is given up.
    assert_eq!(call(&mut TcpStream::connect(address).await.unwrap()).await, None);
    for _ in 0..1000 {
        pass(100).await;
        if call(&mut TcpStream::connect(address).await.unwrap()).await.is_some() {
            return;
        }
    }
    panic!("the connection was not given up");
}
