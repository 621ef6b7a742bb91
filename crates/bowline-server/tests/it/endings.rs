//! How a connection ends: what is still written, and that it does end.

use bowline_server::{Limits, Server};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::io::{AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, duplex};

const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";

#[tokio::test(start_paused = true)]
async fn a_client_that_disconnects_with_unread_data_ends_the_connection() {
    let limits = Limits::default().backlog(64);
    let server = Server::new("s").limits(limits).build().unwrap();
    let (mut requests, read) = duplex(1 << 16);
    let (replies, write) = duplex(16);
    let serving = tokio::spawn(async move { server.serve(read, write).await });
    for _ in 0..20 {
        requests.write_all(PING).await.unwrap();
    }
    // By now the pipe is full, and no further frame is read until there is room.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    drop(replies);
    let ended = tokio::time::timeout(Duration::from_secs(60), serving).await.expect("the connection ends");
    assert!(ended.unwrap().is_err());
}

/// An output whose flush takes a while, as that of a file does.
struct SlowFlush {
    inner: DuplexStream,
    left: usize,
}

impl AsyncWrite for SlowFlush {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.left = 1000;
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return Poll::Ready(Ok(()));
        }
        self.left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[tokio::test]
async fn the_last_reply_is_written_although_the_client_closes_at_once() {
    let server = Server::new("s").build().unwrap();
    let (mut requests, read) = duplex(1 << 16);
    let (replies, inner) = duplex(1 << 16);
    let serving = tokio::spawn(async move { server.serve(read, SlowFlush { inner, left: 0 }).await });
    let mut replies = BufReader::new(replies).lines();
    requests.write_all(PING).await.unwrap();
    assert!(replies.next_line().await.unwrap().is_some());
    requests.write_all(PING).await.unwrap();
    drop(requests);
    assert!(replies.next_line().await.unwrap().is_some(), "the second reply is lost");
    assert_eq!(replies.next_line().await.unwrap(), None);
    serving.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_legacy_client_that_answers_no_pings_is_disconnected() {
    // proves: PING-02, PING-03, PING-04
    use serde_json::{Value, json};
    let limits = Limits::default().ping(Some(Duration::from_secs(10)));
    for modern in [false, true] {
        let server = Server::new("shop").limits(limits).build().unwrap();
        let (ours, theirs) = duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let serving = tokio::spawn(async move { server.serve(read, write).await });
        let (read, mut write) = tokio::io::split(ours);
        let mut lines = BufReader::new(read).lines();
        if modern {
            // A client without a handshake knows no pings.
            let waited = tokio::time::timeout(Duration::from_secs(3600), lines.next_line()).await;
            assert!(waited.is_err(), "{waited:?}");
            continue;
        }
        let info = json!({ "name": "peer", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        for frame in [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        ] {
            write.write_all(format!("{frame}\n").as_bytes()).await.unwrap();
        }
        lines.next_line().await.unwrap().expect("the handshake is answered");
        let started = tokio::time::Instant::now();
        for round in 1..=2 {
            let ping: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
            assert_eq!(ping["method"], "ping", "{ping}");
            assert_eq!(started.elapsed(), Duration::from_secs(10 * round));
            let pong = json!({ "jsonrpc": "2.0", "id": ping["id"], "result": {} });
            write.write_all(format!("{pong}\n").as_bytes()).await.unwrap();
        }
        lines.next_line().await.unwrap().expect("a third ping");
        assert_eq!(lines.next_line().await.unwrap(), None);
        let error = serving.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("does not answer pings"), "{error}");
    }
}
