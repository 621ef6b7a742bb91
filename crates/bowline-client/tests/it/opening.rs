//! How a client detects which revisions a server supports.

use crate::support::*;
use bowline_client::{Client, memory};
use bowline_types::{Era, Revision};
use serde_json::json;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_legacy_server_gets_the_handshake() {
    // proves: LIFE-01, LIFE-02, LIFE-04, LIFE-05, LIFE-07, LIFE-08, BASE-02, BASE-22
    for revision in LEGACY {
        let builder = Client::builder().name("tester").version("7").revisions(LEGACY);
        let (end, server) = memory();
        let mut peer = Peer::new(server);
        let script = async {
            let greeting = peer.expect("initialize").await;
            assert_eq!(greeting["params"]["protocolVersion"], "2025-11-25");
            assert_eq!(greeting["params"]["capabilities"], json!({}));
            assert_eq!(greeting["params"]["clientInfo"], json!({ "name": "tester", "version": "7" }));
            // Nothing is sent before the answer.
            peer.quiet().await;
            let server = json!({ "name": "peer", "version": "1" });
            peer.reply(
                &greeting,
                json!({ "protocolVersion": revision, "capabilities": {}, "serverInfo": server }),
            )
            .await;
            assert_eq!(peer.next().await, json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        };
        let (client, ()) = both(builder.connect(end), script).await;
        let client = client.unwrap();
        assert_eq!(client.revision(), revision);
        assert_eq!(client.server().server_info.as_ref().unwrap().name, "peer");
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_is_probed_and_nothing_else() {
    // proves: VER-17, VER-10, META-09, META-10, META-11, META-12, META-13, VER-09
    let (client, mut peer, probe) =
        connect_seen(Client::builder(), V2026_07_28, json!({ "tools": {} })).await;
    assert_eq!(probe["method"], "server/discover");
    let meta = &probe["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "bowline");
    peer.quiet().await;
    assert_eq!(client.server().server_info.as_ref().unwrap().name, "peer");
    // The peer holds every request of this revision against the rules; here is one without arguments.
    let (tools, ()) = both(client.tools(), async {
        let request = peer.expect("tools/list").await;
        assert_eq!(request["params"].as_object().unwrap().keys().collect::<Vec<_>>(), ["_meta"]);
        peer.reply(&request, json!({ "resultType": "complete", "tools": [] })).await;
    })
    .await;
    assert_eq!(tools.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn any_reply_that_is_not_modern_leads_to_the_handshake() {
    // proves: VER-19, VER-20
    for code in [-32601, -32602, -32600, -32000, 1] {
        let (end, server) = memory();
        let mut peer = Peer::new(server);
        let script = async {
            let probe = peer.expect("server/discover").await;
            peer.fail(&probe, code, "what is this").await;
            peer.open(V2025_06_18, json!({})).await
        };
        let (client, _) = both(Client::connect(end), script).await;
        assert_eq!(client.unwrap().revision(), V2025_06_18, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_leads_to_the_handshake_and_a_late_answer_is_ignored() {
    // proves: VER-19, CANCEL-10
    let (end, server) = memory();
    let mut peer = Peer::new(server);
    let started = tokio::time::Instant::now();
    let script = async {
        let probe = peer.expect("server/discover").await;
        let greeting = peer.expect("initialize").await;
        assert_eq!(started.elapsed(), Duration::from_secs(3));
        let late =
            json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {} });
        peer.reply(&probe, late).await;
        let server = json!({ "name": "peer", "version": "1" });
        let result = json!({ "protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": server });
        peer.reply(&greeting, result).await;
        peer.expect("notifications/initialized").await;
    };
    let (client, ()) =
        both(Client::builder().probe_timeout(Duration::from_secs(3)).connect(end), script).await;
    assert_eq!(client.unwrap().revision(), V2025_03_26);
}

fn discovered() -> serde_json::Value {
    json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } })
}

async fn refuse_handshake(peer: &mut Peer, greeting: &serde_json::Value) {
    let data = json!({ "supported": ["2026-07-28"], "requested": "2025-11-25" });
    let error = json!({ "code": -32022, "message": "unsupported protocol version", "data": data });
    peer.send(json!({ "jsonrpc": "2.0", "id": greeting["id"], "error": error })).await;
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_that_starts_slowly_is_understood() {
    // The order in which its answers arrive does not matter.
    for probe_first in [true, false] {
        let (end, server) = memory();
        let mut peer = Peer::new(server);
        let script = async {
            let probe = peer.expect("server/discover").await;
            let greeting = peer.expect("initialize").await;
            tokio::time::advance(Duration::from_secs(20)).await;
            if probe_first {
                peer.reply(&probe, discovered()).await;
                refuse_handshake(&mut peer, &greeting).await;
            } else {
                refuse_handshake(&mut peer, &greeting).await;
                let again = peer.expect("server/discover").await;
                peer.reply(&again, discovered()).await;
            }
        };
        let (client, ()) = both(Client::connect(end), script).await;
        let client = client.unwrap();
        assert_eq!(client.revision(), V2026_07_28);
        let (tools, ()) = both(client.tools(), async {
            let request = peer.expect("tools/list").await;
            peer.reply(&request, json!({ "resultType": "complete", "tools": [] })).await;
        })
        .await;
        assert_eq!(tools.unwrap(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_response_to_the_probe_is_accepted_whatever_the_handshake_does() {
    // A server without the handshake may refuse it in its own words before it answers the probe, or not answer it at all.
    for refuses in [true, false] {
        let (end, server) = memory();
        let mut peer = Peer::new(server);
        let script = async {
            let probe = peer.expect("server/discover").await;
            let greeting = peer.expect("initialize").await;
            if refuses {
                peer.fail(&greeting, -32601, "method not found").await;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            peer.reply(&probe, discovered()).await;
        };
        let (client, ()) = both(Client::connect(end), script).await;
        assert_eq!(client.unwrap().revision(), V2026_07_28);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_nothing_is_a_timeout_after_the_fallback_too() {
    let (end, server) = memory();
    let mut peer = Peer::new(server);
    let script = async {
        peer.expect("server/discover").await;
        peer.expect("initialize").await;
        assert!(peer.closing().await.is_empty());
    };
    let (client, ()) = both(Client::builder().timeout(Duration::from_secs(9)).connect(end), script).await;
    let error = client.unwrap_err();
    assert!(error.is_timeout() && error.open().is_some(), "{error}");

    // A limit for all of it holds as well.
    let (end, server) = memory();
    let mut peer = Peer::new(server);
    let started = tokio::time::Instant::now();
    let connecting = Client::builder().connect_timeout(Duration::from_secs(7)).connect(end);
    let (client, _) = both(connecting, peer.closing()).await;
    let error = client.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(error.to_string(), "starting the server timed out after 7s");
    assert!(started.elapsed() >= Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn without_a_handshake_to_fall_back_to_a_slow_server_is_waited_for() {
    let modern = || Client::builder().revisions([V2026_07_28]).probe_timeout(Duration::from_secs(3));
    let (end, server) = memory();
    let mut peer = Peer::new(server);
    let script = async {
        let probe = peer.expect("server/discover").await;
        tokio::time::advance(Duration::from_secs(30)).await;
        let found =
            json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {} });
        peer.reply(&probe, found).await;
    };
    let (client, ()) = both(modern().connect(end), script).await;
    assert_eq!(client.unwrap().revision(), V2026_07_28);

    // One that never answers is silent, and nothing more is known of it.
    let (end, server) = memory();
    let mut peer = Peer::new(server);
    let script = async {
        peer.expect("server/discover").await;
        assert!(peer.closing().await.is_empty());
    };
    let (client, ()) = both(modern().timeout(Duration::from_secs(9)).connect(end), script).await;
    let error = client.unwrap_err();
    assert!(error.is_timeout(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_modern_refusal_is_not_met_with_a_handshake() {
    // proves: VER-18, VER-04
    let (end, server) = memory();
    let mut peer = Peer::new(server);
    let script = async {
        let probe = peer.expect("server/discover").await;
        let data = json!({ "supported": ["1900-01-01"], "requested": "2026-07-28" });
        let error = json!({ "code": -32022, "message": "unsupported", "data": data });
        peer.send(json!({ "jsonrpc": "2.0", "id": probe["id"], "error": error })).await;
        peer.ended().await;
    };
    let (client, ()) = both(Client::connect(end), script).await;
    let error = client.unwrap_err();
    assert!(error.open().is_some() && error.to_string().contains("1900-01-01"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_names_an_older_version_is_followed() {
    // proves: VER-03
    let (end, server) = memory();
    let mut peer = Peer::new(server);
    let script = async {
        let probe = peer.expect("server/discover").await;
        let data = json!({ "supported": ["2025-06-18"], "requested": "2026-07-28" });
        let error = json!({ "code": -32022, "message": "unsupported", "data": data });
        peer.send(json!({ "jsonrpc": "2.0", "id": probe["id"], "error": error })).await;
        peer.open(V2025_06_18, json!({})).await
    };
    let (client, greeting) = both(Client::connect(end), script).await;
    assert_eq!(client.unwrap().revision(), V2025_06_18);
    assert_eq!(greeting["params"]["protocolVersion"], "2025-06-18");
}

#[tokio::test(start_paused = true)]
async fn a_modern_only_client_probes_and_fails_plainly() {
    // proves: VER-21
    let (end, server) = memory();
    let mut peer = Peer::new(server);
    let script = async {
        let probe = peer.expect("server/discover").await;
        peer.fail(&probe, -32601, "method not found").await;
        peer.ended().await;
    };
    let (client, ()) = both(Client::builder().revisions([V2026_07_28]).connect(end), script).await;
    let error = client.unwrap_err().to_string();
    assert!(error.contains("the server named no modern revision"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_unoffered_version_ends_the_connection() {
    // proves: LIFE-12, LIFE-26
    let (end, server) = memory();
    let mut peer = Peer::new(server);
    let script = async {
        let greeting = peer.expect("initialize").await;
        let server = json!({ "name": "peer", "version": "1" });
        let result = json!({ "protocolVersion": "1900-01-01", "capabilities": {}, "serverInfo": server });
        peer.reply(&greeting, result).await;
        peer.ended().await;
    };
    let (client, ()) = both(Client::builder().revisions(LEGACY).connect(end), script).await;
    assert!(client.unwrap_err().to_string().contains("1900-01-01"));
}

#[tokio::test(start_paused = true)]
async fn an_error_that_names_supported_versions_is_reported() {
    // proves: LIFE-27
    let (end, server) = memory();
    let mut peer = Peer::new(server);
    let script = async {
        let greeting = peer.expect("initialize").await;
        let data = json!({ "supported": ["1900-01-01"], "requested": greeting["params"]["protocolVersion"] });
        let error = json!({ "code": -32602, "message": "unsupported protocol version", "data": data });
        peer.send(json!({ "jsonrpc": "2.0", "id": greeting["id"], "error": error })).await;
        peer.ended().await;
    };
    let (client, ()) = both(Client::builder().revisions(LEGACY).connect(end), script).await;
    let error = client.unwrap_err();
    assert!(error.open().is_some() && error.to_string().contains("the server 1900-01-01"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_handshake_fails_and_is_not_cancelled() {
    // proves: CANCEL-03, LIFE-26, LIFE-21
    let (end, server) = memory();
    let mut peer = Peer::new(server);
    let script = async {
        peer.expect("initialize").await;
        // Whatever comes until the end would have to be looked at here.
        assert!(peer.closing().await.is_empty());
    };
    let builder = Client::builder().revisions(LEGACY).timeout(Duration::from_secs(9));
    let (client, ()) = both(builder.connect(end), script).await;
    assert!(client.unwrap_err().to_string().contains("did not answer `initialize`"));
}

#[tokio::test(start_paused = true)]
async fn giving_up_the_handshake_sends_no_cancellation() {
    // proves: CANCEL-03
    let (end, server) = memory();
    let mut peer = Peer::new(server);
    let connecting = Client::builder().revisions(LEGACY).connect(end);
    let given_up = tokio::time::timeout(Duration::from_secs(1), connecting).await;
    assert!(given_up.is_err());
    peer.expect("initialize").await;
    assert!(peer.closing().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_known_era_saves_the_probe_and_is_found_out_again_when_it_is_wrong() {
    // proves: VER-16
    let (end, server) = memory();
    let mut peer = Peer::new(server);
    let builder = Client::builder().known_era(Era::Legacy);
    let (client, _) = both(builder.clone().connect(end), async {
        let greeting = peer.next().await;
        assert_eq!(greeting["method"], "initialize");
        peer.fail(&greeting, -32601, "method not found").await;
        peer.open(V2026_07_28, json!({})).await
    })
    .await;
    assert_eq!(client.unwrap().revision(), V2026_07_28);
}

#[tokio::test(start_paused = true)]
async fn unknown_capabilities_are_ignored() {
    // proves: LIFE-29
    for revision in Revision::ALL {
        let capabilities =
            json!({ "x-foo": { "a": 1 }, "tools": { "x": true }, "experimental": { "y": {} } });
        let (client, _peer) = connect(Client::builder(), revision, capabilities).await;
        assert!(client.server().capabilities.tools.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn capabilities_follow_from_the_handlers() {
    // proves: ROOT-01, ROOT-02, SAMP-01, SAMP-02, SAMP-03, ELIF-01, ELIF-02, ELIF-03, EXT-03, EXT-10, LIFE-30, EXT-07
    use bowline_client::Answer;
    use bowline_types::{RawJson, Root, RpcError};
    let builder = Client::builder()
        .on_ask(|_| async { Answer::Decline })
        .on_url(|_| async { Answer::Decline })
        .on_sample(|_| async { Err(RpcError::internal("no")) })
        .sample_with_tools()
        .roots([Root::new("file:///srv")])
        .extension("com.example/demo", json!({ "a": 1 }).into())
        .experimental("trial", RawJson::empty_object());
    let extras = |mut capabilities: serde_json::Value, extension: bool| {
        capabilities["experimental"] = json!({ "trial": {} });
        if extension {
            capabilities["extensions"] = json!({ "com.example/demo": { "a": 1 } });
        }
        capabilities
    };
    let old = json!({ "roots": { "listChanged": true }, "sampling": {} });
    let forms = json!({ "roots": { "listChanged": true }, "sampling": {}, "elicitation": {} });
    let full = |roots: serde_json::Value| json!({ "roots": roots, "sampling": { "tools": {} }, "elicitation": { "form": {}, "url": {} } });
    for (revision, expected) in [
        (V2024_11_05, extras(old.clone(), false)),
        (V2025_03_26, extras(old, false)),
        (V2025_06_18, extras(forms, false)),
        (V2025_11_25, extras(full(json!({ "listChanged": true })), true)),
        (V2026_07_28, extras(full(json!({})), true)),
    ] {
        let builder = builder.clone().revisions([revision]);
        let (client, mut peer, opening) = connect_seen(builder, revision, json!({ "tools": {} })).await;
        if revision.is_modern() {
            let declared = |frame: &serde_json::Value| {
                frame["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone()
            };
            assert_eq!(declared(&opening), expected, "{revision}");
            let call = client.call("x", ());
            let (_, request) = both(call, async {
                let request = peer.expect("tools/call").await;
                peer.reply(&request, text_result("done")).await;
                request
            })
            .await;
            assert_eq!(declared(&request), expected, "{revision}");
        } else {
            assert_eq!(opening["params"]["capabilities"], expected, "{revision}");
        }
    }
    let (_client, _peer, opening) = connect_seen(Client::builder(), V2025_11_25, json!({})).await;
    assert_eq!(opening["params"]["capabilities"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn wrong_settings_are_reported_at_connect() {
    // proves: ROOT-05, ROOT-10, EXT-01
    use bowline_types::{RawJson, Root};
    let attempt = async |builder: bowline_client::ClientBuilder| {
        let (end, _server) = memory();
        builder.connect(end).await.unwrap_err().to_string()
    };
    let text = attempt(Client::builder().roots([Root::new("file:///a/../b")])).await;
    assert_eq!(text, "expected a root without `..`, got `file:///a/../b`");
    let text = attempt(Client::builder().roots([Root::new("https://example.com")])).await;
    assert_eq!(text, "expected the root to be a `file://` URI, got `https://example.com`");
    let text = attempt(Client::builder().extension("demo", RawJson::empty_object())).await;
    assert!(text.starts_with("extension `demo`"), "{text}");
    let text = attempt(Client::builder().revisions([])).await;
    assert_eq!(text, "a client must support at least one revision");
}
