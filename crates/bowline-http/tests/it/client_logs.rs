//! What the client leaves in the log of its program, and what not.

use crate::client_peer::{Peer, modern, text};
use bowline_client::Client;
use bowline_testing::Log;
use serde_json::json;

#[tokio::test]
async fn an_omitted_tool_is_reported_with_the_reason() {
    // proves: HDR-16
    let (log, _guard) = Log::start();
    let (client, mut peer) = modern(Client::builder(), json!({ "tools": {} })).await;
    let properties = json!({ "a": { "type": "string", "x-mcp-header": "no good" } });
    let schema = json!({ "type": "object", "properties": properties });
    let (tools, ()) = tokio::join!(client.tools(), async {
        let tools = json!([{ "name": "misfit", "inputSchema": schema }]);
        peer.post("tools/list").await.result(&json!({ "tools": tools })).await;
    });
    assert!(tools.unwrap().is_empty());
    assert_eq!(log.count(&["WARN", "misfit", "no good"]), 1, "{:?}", log.lines());
}

#[tokio::test]
async fn session_ids_are_not_logged() {
    // proves: HTTP-56
    let (log, _guard) = Log::start();
    let mut peer = Peer::new().await;
    let target = peer
        .target()
        .header("X-Key", "key-nobody-knows")
        .authorize(|_| async { Ok(Some("Bearer token-nobody-knows".into())) });
    let opening = peer.open_legacy("2025-11-25", "session-nobody-knows");
    let (client, (initialize, _, _get_stream)) = tokio::join!(Client::connect(target), opening);
    let client = client.unwrap();
    assert_eq!(initialize.header("authorization"), Some("Bearer token-nobody-knows"));
    let (called, ()) = tokio::join!(client.call("t", ()), async {
        let asked = peer.post("tools/call").await;
        assert_eq!(asked.header("mcp-session-id"), Some("session-nobody-knows"));
        asked.result(&text("ok")).await;
    });
    called.unwrap();
    let (error, ()) = tokio::join!(client.call("t", ()), async {
        peer.post("tools/call").await.status(500, "text/plain", "oops").await;
    });
    assert!(!error.unwrap_err().to_string().contains("nobody-knows"));
    assert!(!format!("{client:?}").contains("nobody-knows"));
    let ((), ()) = tokio::join!(client.close(), async { peer.verb("DELETE").await.accepted().await });
    assert!(log.count(&[]) > 0, "something is logged");
    assert_eq!(log.count(&["nobody-knows"]), 0, "{:?}", log.lines());
}
