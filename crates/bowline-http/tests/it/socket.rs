//! The endpoint on a real socket.

use bowline_http::{HttpOptions, HttpService, PeerAddress};
use bowline_server::{Ctx, Server, Tool};
use serde_json::{Value, json};
use std::{net::SocketAddr, sync::Arc};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, oneshot},
    task::JoinHandle,
};

/// An endpoint on a port of its own, until the test ends it.
struct Running {
    address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

async fn serve(server: Server) -> Running {
    let service = HttpService::with_options(server.build().unwrap(), HttpOptions::new().peer_address(true));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (end, ended) = oneshot::channel::<()>();
    let served = tokio::spawn(async move {
        service.serve(listener, async { drop(ended.await) }).await.unwrap();
    });
    Running { address, end: Some(end), served }
}

fn request(address: SocketAddr, method: &str, name: Option<&str>, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n\
         {name}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn read_until(stream: &mut TcpStream, needle: &str) -> String {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&seen).into_owned();
        if text.contains(needle) {
            return text;
        }
        let length = stream.read(&mut buffer).await.unwrap();
        assert!(length > 0, "the connection ended before `{needle}`: {text}");
        seen.extend_from_slice(&buffer[..length]);
    }
}

#[tokio::test]
async fn one_connection_serves_request_after_request() {
    let running = serve(Server::new("s").tool(Tool::new("now").handler(|| "now"))).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    for _ in 0..3 {
        let call = request(running.address, "tools/call", Some("now"), json!({ "name": "now" }));
        stream.write_all(call.as_bytes()).await.unwrap();
        let reply = read_until(&mut stream, "serverInfo").await;
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
        assert!(reply.contains("content-length: "), "a reply in one piece has its length: {reply}");
    }
    stream.write_all(b"GET /elsewhere HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    assert!(read_until(&mut stream, "not found").await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn a_server_that_ends_lets_calls_finish_and_closes_streams_with_their_result() {
    let (started, gate) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = {
        let (started, gate) = (Arc::clone(&started), Arc::clone(&gate));
        Tool::new("slow").handler(move || {
            let (started, gate) = (Arc::clone(&started), Arc::clone(&gate));
            async move {
                started.notify_one();
                gate.notified().await;
                "finished all the same"
            }
        })
    };
    let mut running = serve(Server::new("s").tool(slow)).await;
    let mut call = TcpStream::connect(running.address).await.unwrap();
    call.write_all(
        request(running.address, "tools/call", Some("slow"), json!({ "name": "slow" })).as_bytes(),
    )
    .await
    .unwrap();
    let mut listen = TcpStream::connect(running.address).await.unwrap();
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    listen
        .write_all(request(running.address, "subscriptions/listen", None, filter).as_bytes())
        .await
        .unwrap();
    read_until(&mut listen, "acknowledged").await;
    started.notified().await;

    let _ = running.end.take().map(|end| end.send(()));
    let farewell = read_until(&mut listen, "\"result\"").await;
    assert!(farewell.contains("\"resultType\":\"complete\""), "{farewell}");
    gate.notify_one();
    let reply = read_until(&mut call, "finished all the same").await;
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
    running.served.await.unwrap();
    assert!(TcpStream::connect(running.address).await.is_err(), "nobody is there any more");
}

#[tokio::test]
async fn a_client_that_hangs_up_before_the_reply_cancels_its_call() {
    struct Dropped(Arc<Notify>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (started, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = {
        let (started, dropped) = (Arc::clone(&started), Arc::clone(&dropped));
        Tool::new("slow").handler(move || {
            let (started, guard) = (Arc::clone(&started), Dropped(Arc::clone(&dropped)));
            async move {
                let _guard = guard;
                started.notify_one();
                std::future::pending::<()>().await;
            }
        })
    };
    let running = serve(Server::new("s").tool(slow)).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let call = request(running.address, "tools/call", Some("slow"), json!({ "name": "slow" }));
    stream.write_all(call.as_bytes()).await.unwrap();
    started.notified().await;
    drop(stream);
    dropped.notified().await;
}

// proves: HDR-29
#[tokio::test]
async fn a_header_with_a_control_character_is_rejected() {
    let running = serve(Server::new("s").tool(Tool::new("now").handler(|| "now"))).await;
    let good = request(running.address, "tools/call", Some("now"), json!({ "name": "now" }));
    let bad = good.replacen("now\r\n", "no\u{1}w\r\n", 1);
    assert_ne!(good, bad, "the header is there: {good}");
    for (request, status) in [(good, "HTTP/1.1 200"), (bad, "HTTP/1.1 400")] {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = vec![0; status.len()];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&head), status);
    }
}

#[tokio::test]
async fn a_handler_sees_the_address_that_its_request_came_from() {
    let peer =
        |ctx: Ctx| ctx.extension::<PeerAddress>().map(|PeerAddress(address)| format!("peer {address}"));
    let tool = Tool::new("peer").handler(move |ctx: Ctx| peer(ctx).unwrap_or_default());
    let running = serve(Server::new("s").tool(tool)).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let call = request(running.address, "tools/call", Some("peer"), json!({ "name": "peer" }));
    // A header says nothing about the address.
    let call = call.replacen("Content-Length", "X-Forwarded-For: 192.0.2.1\r\nContent-Length", 1);
    stream.write_all(call.as_bytes()).await.unwrap();
    let reply = read_until(&mut stream, "}}").await;
    assert!(reply.contains("peer 127.0.0.1"), "{reply}");
}
