//! Peers: frames, deadlines, silence.

use bowline_server::{Ctx, Server, Tool};
use bowline_testing::Peer;
use bowline_types::Revision;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, sink};

fn server() -> Server {
    Server::new("demo")
        .tool(Tool::new("hello").handler(|| "hello"))
        .tool(Tool::new("long").handler(|| "x".repeat(100_000)))
        .tool(Tool::new("count").handler(|ctx: Ctx| async move {
            ctx.progress(1.0, 2.0);
            ctx.progress(2.0, 2.0);
            "counted"
        }))
}

#[tokio::test]
async fn a_request_gets_its_response_and_earlier_frames_are_kept() {
    let mut peer = Peer::memory(server()).unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    let params = json!({ "name": "count", "_meta": { "progressToken": "t" } });
    let answer = peer.request("tools/call", params).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "counted");
    let progress: Vec<_> =
        peer.notifications().iter().map(|notice| notice["params"]["progress"].clone()).collect();
    assert_eq!(progress, [1, 2]);
    assert_eq!(peer.close().await.unwrap(), [json!(null); 0]);
}

#[tokio::test]
async fn a_modern_request_describes_itself() {
    let handle = server().build().unwrap();
    let mut peer = Peer::memory(&handle).unwrap();
    let answer = peer.modern("server/discover", json!({})).await.unwrap();
    assert_eq!(answer["result"]["resultType"], "complete");
    assert!(peer.transcript().contains("io.modelcontextprotocol/clientCapabilities"));
}

#[tokio::test]
async fn many_frames_at_once_block_neither_side() {
    let mut peer = Peer::memory(server()).unwrap();
    let mut frames = String::new();
    for id in 0..200 {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "name": "long", "_meta": meta });
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        frames += &frame.to_string();
        frames.push('\n');
    }
    peer.send_raw(frames).await.unwrap();
    assert_eq!(peer.close().await.unwrap().len(), 200);
}

#[tokio::test]
async fn frames_after_closing_are_returned() {
    let mut peer = Peer::memory(server()).unwrap();
    peer.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).await.unwrap();
    assert_eq!(peer.close().await.unwrap(), [json!({ "jsonrpc": "2.0", "id": 1, "result": {} })]);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_shows_the_conversation() {
    let (mut peer, _other) = Peer::pair();
    peer = peer.deadline(Duration::from_secs(3));
    let error = peer.request("ping", json!({})).await.unwrap_err();
    assert!(error.is_timeout());
    let error = error.to_string();
    assert!(error.contains("expected the response to request 1, got nothing within 3s"), "{error}");
    assert!(error.contains(r#"> {"jsonrpc":"2.0","#), "{error}");
}

#[tokio::test]
async fn a_closed_connection_differs_from_a_silent_one() {
    let mut peer = Peer::over(&b"{\"jsonrpc\":\"2.0\"}\n"[..], sink());
    assert_eq!(peer.recv().await.unwrap(), json!({ "jsonrpc": "2.0" }));
    assert!(peer.recv().await.unwrap_err().is_closed());
}

#[tokio::test]
async fn a_line_that_is_not_json_is_reported() {
    let mut peer = Peer::over(&b"welcome!\n"[..], sink());
    let error = peer.recv().await.unwrap_err().to_string();
    assert!(error.contains("expected a frame of JSON, got `welcome!`"), "{error}");
}

#[tokio::test]
async fn a_peer_can_play_the_server() {
    let (mut peer, mut client) = Peer::pair();
    client.write_all(b"{\"id\":\"a\",\"method\":\"ping\"}\n").await.unwrap();
    let request = peer.recv_method("ping").await.unwrap();
    peer.reply(&request, json!({})).await.unwrap();
    peer.close_sending().await;
    let mut written = String::new();
    client.read_to_string(&mut written).await.unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&written).unwrap(),
        json!({ "jsonrpc": "2.0", "id": "a", "result": {} })
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_failed_child_is_reported_with_its_standard_error() {
    let mut peer = Peer::spawn("sh", ["-c", "cat > /dev/null; echo out of luck >&2; exit 3"]).unwrap();
    let error = peer.close().await.unwrap_err().to_string();
    assert!(error.contains("exit status: 3"), "{error}");
    assert!(error.contains("out of luck"), "{error}");
    let mut peer = Peer::spawn("cat", [""; 0]).unwrap();
    peer.send(json!({ "echo": 1 })).await.unwrap();
    assert_eq!(peer.close().await.unwrap(), [json!({ "echo": 1 })]);
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_reported() {
    let error = Peer::spawn("no-such-program-anywhere", [""; 0]).unwrap_err().to_string();
    assert!(error.contains("cannot start `no-such-program-anywhere`"), "{error}");
}
