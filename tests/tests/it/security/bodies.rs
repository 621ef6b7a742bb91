//! Bodies that are too long, never end, or come all at once.

use super::support::{DEADLINE, Endpoint, Request, Watch, server};
use bowline_http::{HttpOptions, HttpService};
use bytes::Bytes;
use http_body_util::{Full, StreamBody};
use serde_json::json;
use std::{convert::Infallible, time::Duration};

const MEBIBYTE: usize = 1024 * 1024;

/// A call of `echo` whose body has exactly this length.
fn call_of(length: usize) -> Request {
    let empty = Request::call("echo", json!({ "message": "" }));
    let padding = "x".repeat(length - empty.body.len());
    Request::call("echo", json!({ "message": padding }))
}

#[tokio::test]
async fn v16_a_body_may_have_four_mebibytes_and_no_byte_more() {
    let endpoint = Endpoint::with(HttpOptions::new().sse_path("/sse")).await;
    let reply = endpoint.send(&call_of(4 * MEBIBYTE)).await;
    assert_eq!((reply.status, endpoint.ran()), (200, 1));
    let reply = endpoint.send(&call_of(4 * MEBIBYTE + 1)).await;
    assert_eq!((reply.status, endpoint.ran()), (413, 1));
    // In a session, and in the transport of 2024-11-05.
    let session = endpoint.open("2025-11-25").await;
    let reply = endpoint.send(&call_of(4 * MEBIBYTE + 1).set("Mcp-Session-Id", &session)).await;
    assert_eq!((reply.status, endpoint.ran()), (413, 1));
    let mut stream = endpoint.connect().await;
    let get = Request::new("GET").target("/sse").set("Accept", "text/event-stream");
    stream.write(&get.bytes(endpoint.address)).await;
    stream.until("data: ").await;
    let reference = stream.until("\n").await;
    let post = call_of(4 * MEBIBYTE + 1).target(&format!("/sse{}", reference.trim()));
    assert_eq!(endpoint.send(&post).await.status, 413);
    assert_eq!(endpoint.ran(), 1);
    endpoint.is_alive().await;
}

#[tokio::test]
async fn v16_an_impossible_length_is_refused_immediately() {
    let endpoint = Endpoint::new().await;
    for length in ["1000000000000", "4194305", "18446744073709551614", "18446744073709551616"] {
        let mut wire = endpoint.connect().await;
        let head = Request::call("hit", json!({})).set("Content-Length", length).body("");
        wire.write(&head.bytes(endpoint.address)).await;
        let reply = wire.reply().await;
        // What is no length at all is refused before it comes to the endpoint.
        let expected: &[u16] = if length.len() < 20 { &[413] } else { &[400, 413, 431] };
        assert!(expected.contains(&reply.status), "{length}: {reply:?}");
        assert_eq!(wire.end().await, b"", "the connection is closed");
    }
    assert_eq!(endpoint.ran(), 0);
}

#[tokio::test]
async fn v16_endless_chunks_are_refused_at_the_limit() {
    let endpoint = Endpoint::new().await;
    let mut wire = endpoint.connect().await;
    let head = Request::call("hit", json!({})).set("Transfer-Encoding", "chunked").body("");
    wire.write(&head.bytes(endpoint.address)).await;
    let chunk = [b"10000\r\n".to_vec(), vec![b' '; 0x10000], b"\r\n".to_vec()].concat();
    // Twice what is allowed; the server does not wait for the end, nor for ever.
    for _ in 0..128 {
        wire.write(&chunk).await;
    }
    let told = wire.end().await;
    // A connection closed over unread bytes may be reset before the reply is read.
    assert!(told.is_empty() || told.starts_with(b"HTTP/1.1 413"), "{}", String::from_utf8_lossy(&told));
    assert_eq!(endpoint.ran(), 0);
    endpoint.is_alive().await;
}

#[test]
fn v16_memory_for_a_body_is_limited() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let service = HttpService::new(server(&Watch::default())).unwrap();
    let chunk = Bytes::from(vec![b' '; 16 * 1024]);
    let counted = allocation_counter::measure(|| {
        let endless = std::iter::repeat_with(|| Ok::<_, Infallible>(http_body::Frame::data(chunk.clone())));
        let request = http::Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(StreamBody::new(futures_util::stream::iter(endless)))
            .unwrap();
        let reply = runtime.block_on(service.respond(request));
        assert_eq!(reply.status().as_u16(), 413);
    });
    // A buffer that grows holds its old half while it copies.
    let allowed = 2 * 4 * MEBIBYTE as u64 + 64 * 1024;
    assert!(counted.bytes_max <= allowed, "{} of {allowed} bytes", counted.bytes_max);
}

#[tokio::test]
async fn v16_a_slow_body_times_out() {
    let endpoint = Endpoint::with(HttpOptions::new().body_time(Duration::from_millis(200))).await;
    let mut wire = endpoint.connect().await;
    let head = Request::call("hit", json!({})).set("Content-Length", "100000").body("");
    wire.write(&head.bytes(endpoint.address)).await;
    // A byte now and then is not enough.
    let trickle = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        loop {
            tokio::select! {
                ready = wire.stream.readable() => break ready.unwrap(),
                _ = ticks.tick() => drop(wire.stream.try_write(b" ")),
            }
        }
    };
    tokio::time::timeout(DEADLINE, trickle).await.expect("the server gives up");
    assert_eq!(wire.reply().await.status, 408);
    assert_eq!(endpoint.ran(), 0);
    endpoint.is_alive().await;
}

#[tokio::test(start_paused = true)]
async fn v16_a_body_has_thirty_seconds() {
    let watch = Watch::default();
    let service = HttpService::new(server(&watch)).unwrap();
    let never =
        StreamBody::new(futures_util::stream::pending::<Result<http_body::Frame<Bytes>, Infallible>>());
    let request = http::Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(never)
        .unwrap();
    let began = tokio::time::Instant::now();
    assert_eq!(service.respond(request).await.status().as_u16(), 408);
    assert_eq!(began.elapsed().as_secs(), 30);
    assert_eq!(watch.ran(), 0);
}

#[tokio::test]
async fn v16_all_bodies_together_are_bounded() {
    // Room for two and a half; each is held up in its call.
    let watch = Watch::default();
    let settings = HttpOptions::new().max_body(MEBIBYTE).max_bodies(MEBIBYTE * 5 / 2);
    let service = HttpService::with_options(server(&watch).build().unwrap(), settings);
    let large = |id: u64, tool: &str| {
        let params = json!({ "name": tool, "padding": "x".repeat(MEBIBYTE - 1000) });
        Request::modern(&json!(id), "tools/call", params)
    };
    let held = |id| {
        let (service, request) = (service.clone(), large(id, "gated"));
        tokio::spawn(async move { request.send_as(None, &service).await })
    };
    let first = held(1);
    watch.begun().await;
    let second = held(2);
    watch.begun().await;
    let refused = large(3, "hit").send_as(None, &service).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")), "{refused:?}");
    assert_eq!(watch.ran(), 2, "what is refused runs nothing");
    let small = Request::call("hit", json!({})).send_as(None, &service).await;
    assert_eq!(small.status, 200, "there is room for small ones");
    watch.gate.notify_one();
    watch.gate.notify_one();
    let done = tokio::join!(first, second);
    assert_eq!((done.0.unwrap().status, done.1.unwrap().status), (200, 200));
    let again = large(3, "hit").send_as(None, &service).await;
    assert_eq!(again.status, 200, "and again for large ones: {again:?}");
}

#[tokio::test]
async fn v16_many_large_bodies_at_once_are_answered_or_refused() {
    let endpoint = Endpoint::with(HttpOptions::new().max_bodies(16 * MEBIBYTE)).await;
    let request = Bytes::from(call_of(MEBIBYTE).bytes(endpoint.address));
    let calls: Vec<_> = (0..60)
        .map(|_| {
            let (address, request) = (endpoint.address, request.clone());
            tokio::spawn(async move {
                use tokio::io::{AsyncReadExt, AsyncWriteExt};
                let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
                // A server that refuses may close before it has read everything.
                drop(stream.write_all(&request).await);
                let mut head = [0; 12];
                match stream.read_exact(&mut head).await {
                    Ok(_) => String::from_utf8_lossy(&head[9..]).into_owned(),
                    Err(_) => "closed".to_owned(),
                }
            })
        })
        .collect();
    let mut answered = 0;
    for call in calls {
        let status = tokio::time::timeout(DEADLINE, call).await.unwrap().unwrap();
        assert!(["200", "503", "closed"].contains(&status.as_str()), "{status}");
        answered += usize::from(status == "200");
    }
    assert_eq!(endpoint.ran(), answered);
    endpoint.is_alive().await;
    // Whatever came of them, they have left the room they took.
    let reply = endpoint.send(&call_of(4 * MEBIBYTE)).await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn v16_a_body_in_one_piece_is_judged_by_its_own_length() {
    let service = HttpService::new(server(&Watch::default())).unwrap();
    let request = http::Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("content-length", "2")
        .body(Full::new(Bytes::from(vec![b' '; 4 * MEBIBYTE + 1])))
        .unwrap();
    assert_eq!(service.respond(request).await.status().as_u16(), 413);
}
