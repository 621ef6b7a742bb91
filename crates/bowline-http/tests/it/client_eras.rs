//! How the client detects which revisions a server supports, and what it remembers.

use crate::client_peer::{Peer, discovery};
use bowline_client::{Client, ClientBuilder, Error, OpenError};
use bowline_http::HttpTarget;
use bowline_types::{Era, Revision};
use serde_json::{Value, json};

/// Connects to a server that answers the probe with this, and returns what else it was asked.
async fn probed(
    builder: ClientBuilder,
    status: u16,
    kind: &str,
    body: &str,
) -> (Result<Client, Error>, Vec<String>) {
    let mut peer = Peer::new().await;
    let connecting = tokio::spawn(builder.connect(peer.target()));
    peer.post("server/discover").await.status(status, kind, body).await;
    let mut asked = Vec::new();
    loop {
        let next = peer.next().await;
        asked.push(next.kind());
        match next.body["method"].as_str() {
            Some("initialize") => next.result(&crate::client_peer::greeting("2025-06-18")).await,
            Some("notifications/initialized") => {
                next.accepted().await;
                return (connecting.await.unwrap(), asked);
            }
            _ => panic!("unexpected {asked:?}"),
        }
    }
}

#[tokio::test]
async fn a_reply_that_is_not_modern_leads_to_the_handshake() {
    // proves: VER-22, VER-23, VER-24
    let rpc = |code: i64| json!({ "jsonrpc": "2.0", "error": { "code": code, "message": "no" } }).to_string();
    let unexplained =
        json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32022, "message": "no" } }).to_string();
    for (status, kind, body) in [
        (400, "text/plain", String::new()),
        (400, "text/plain", "Bad Request: no valid session ID provided".into()),
        (400, "application/json", rpc(-32000)),
        (400, "application/json", rpc(-32600)),
        (400, "application/json", rpc(-32602)),
        // Without the list of versions, anyone may have sent this.
        (400, "application/json", unexplained),
        (403, "text/plain", String::new()),
        (404, "text/html", "<h1>Not Found</h1>".into()),
        (405, "text/plain", String::new()),
        (406, "application/json", rpc(-32000)),
        (415, "text/plain", String::new()),
        (422, "application/json", r#"{"detail":"session"}"#.into()),
        (500, "text/plain", "oops".into()),
        (200, "text/html", "<h1>It works</h1>".into()),
        (200, "application/json", rpc(-32601)),
        (202, "text/plain", String::new()),
    ] {
        let (client, asked) = probed(Client::builder(), status, kind, &body).await;
        assert_eq!(client.unwrap().revision(), Revision::V2025_06_18, "{status} {body}");
        assert_eq!(asked, ["POST initialize", "POST notifications/initialized"], "{status} {body}");
    }
}

#[tokio::test]
async fn a_modern_error_never_leads_to_the_legacy_handshake() {
    // proves: VER-25
    for error in [
        json!({ "code": -32020, "message": "no", }),
        json!({ "code": -32021, "message": "no", "data": { "requiredCapabilities": { "sampling": {} } } }),
        json!({ "code": -32022, "message": "no", "data": { "supported": ["2099-01-01"], "requested": "2026-07-28" } }),
    ] {
        let mut peer = Peer::new().await;
        let (client, ()) = tokio::join!(Client::connect(peer.target()), async {
            peer.post("server/discover").await.error(400, error).await;
        });
        assert!(client.unwrap_err().open().is_some());
        assert!(peer.unseen().is_empty(), "{:?}", peer.unseen());
    }
}

#[tokio::test]
async fn a_version_that_the_server_names_is_used() {
    let mut peer = Peer::new().await;
    let (client, ()) = tokio::join!(Client::connect(peer.target()), async {
        let data = json!({ "supported": ["2025-06-18"], "requested": "2026-07-28" });
        let discover = peer.post("server/discover").await;
        discover.error(400, json!({ "code": -32022, "message": "no", "data": data })).await;
        let asked = peer.post("initialize").await;
        assert_eq!(asked.body["params"]["protocolVersion"], "2025-06-18");
        asked.result(&crate::client_peer::greeting("2025-06-18")).await;
        peer.post("notifications/initialized").await.accepted().await;
    });
    assert_eq!(client.unwrap().revision(), Revision::V2025_06_18);
}

#[tokio::test]
async fn a_client_of_one_era_reports_the_missing_revision() {
    let modern = || Client::builder().revisions([Revision::V2026_07_28]);
    for (status, shown) in [(404, "404"), (503, "503"), (401, "401")] {
        let mut peer = Peer::new().await;
        let (client, ()) = tokio::join!(modern().connect(peer.target()), async {
            peer.post("server/discover").await.status(status, "text/plain", "").await;
        });
        let error = client.unwrap_err();
        assert!(error.to_string().contains(shown), "{error}");
        assert!(peer.unseen().is_empty(), "{:?}", peer.unseen());
    }
    let mut peer = Peer::new().await;
    let (client, ()) = tokio::join!(modern().connect(peer.target()), async {
        let discover = peer.post("server/discover").await;
        discover.error(200, json!({ "code": -32601, "message": "no" })).await;
    });
    assert!(matches!(client.unwrap_err().open(), Some(OpenError::NoCommonRevision { .. })));
}

#[tokio::test]
async fn a_server_that_requires_credentials_does_not_reveal_its_era() {
    let mut peer = Peer::new().await;
    let (client, ()) = tokio::join!(Client::connect(peer.target()), async {
        peer.post("server/discover").await.status(401, "text/plain", "who are you?").await;
    });
    let error = client.unwrap_err();
    assert_eq!(error.http_status(), Some(401));
    assert!(error.to_string().contains("who are you?"), "{error}");
    assert!(peer.unseen().is_empty(), "{:?}", peer.unseen());
}

async fn connect_legacy(peer: &mut Peer, target: HttpTarget) -> (Client, Value) {
    let (client, (initialize, _, _)) =
        tokio::join!(Client::connect(target), peer.open_legacy("2025-06-18", "s"));
    (client.unwrap(), initialize.body["method"].clone())
}

#[tokio::test]
async fn the_era_is_remembered_with_the_target() {
    // proves: VER-15
    let mut peer = Peer::new().await;
    let target = peer.target();
    let (first, _) = connect_legacy(&mut peer, target.clone()).await;
    let connecting = tokio::spawn(Client::connect(target));
    let asked = peer.next().await;
    assert_eq!(asked.kind(), "POST initialize", "an old server is not probed again");
    drop(asked);
    assert!(connecting.await.unwrap().is_err());
    drop(first);
    let named = peer.target().known_era(Era::Legacy);
    let connecting = tokio::spawn(Client::connect(named));
    assert_eq!(peer.post("initialize").await.kind(), "POST initialize");
    connecting.abort();
}

#[tokio::test]
async fn a_wrong_remembered_era_is_detected() {
    // proves: VER-16
    for (status, kind, body) in [
        (
            404,
            "application/json",
            json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32601, "message": "no" } }),
        ),
        (
            400,
            "application/json",
            json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32020, "message": "no" } }),
        ),
        (400, "text/plain", json!("no")),
    ] {
        let mut peer = Peer::new().await;
        let target = peer.target().known_era(Era::Legacy);
        let (client, ()) = tokio::join!(Client::connect(target), async {
            peer.post("initialize").await.status(status, kind, &body.to_string()).await;
            if kind == "text/plain" {
                // It could have been a server with two endpoints.
                peer.verb("GET").await.status(405, "text/plain", "no").await;
            }
            peer.post("server/discover").await.result(&discovery(&json!({}))).await;
        });
        assert_eq!(client.unwrap().revision(), Revision::V2026_07_28);
    }
    let mut peer = Peer::new().await;
    let target = peer.target().known_era(Era::Modern);
    let (client, _) = connect_legacy(&mut peer, target).await;
    assert_eq!(client.revision(), Revision::V2025_06_18);
}

#[tokio::test]
async fn a_modern_server_that_starts_slowly_is_understood() {
    use std::time::Duration;
    // It answers nothing before `initialize` has arrived too. Then it answers the probe, or refuses the handshake first.
    for probe_first in [true, false] {
        let mut peer = Peer::new().await;
        let builder = Client::builder().probe_timeout(Duration::from_millis(50));
        let connecting = tokio::spawn(builder.connect(peer.target()));
        let probe = peer.post("server/discover").await;
        let greeting = peer.post("initialize").await;
        let data = json!({ "supported": ["2026-07-28"], "requested": "2025-11-25" });
        let refusal = json!({ "code": -32022, "message": "unsupported protocol version", "data": data });
        let again = if probe_first {
            probe.result(&discovery(&json!({ "tools": {} }))).await;
            greeting.error(400, refusal).await;
            None
        } else {
            greeting.error(400, refusal).await;
            peer.post("server/discover").await.result(&discovery(&json!({ "tools": {} }))).await;
            Some(probe)
        };
        let client = connecting.await.unwrap().unwrap();
        assert_eq!(client.revision(), Revision::V2026_07_28);
        let listing = tokio::spawn(async move { client.tools().await });
        let request = peer.post("tools/list").await;
        assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
        request.result(&json!({ "resultType": "complete", "tools": [] })).await;
        assert_eq!(listing.await.unwrap().unwrap(), []);
        drop(again);
    }
}
