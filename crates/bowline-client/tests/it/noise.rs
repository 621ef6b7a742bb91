//! What comes in and is no message, or none that is due.

use crate::support::*;
use bowline_client::Client;
use bowline_types::Revision;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn invalid_lines_are_skipped_and_counted() {
    // V-73
    for revision in Revision::ALL {
        let (client, mut peer) = connect(Client::builder(), revision, json!({ "tools": {} })).await;
        let (result, ()) = both(client.call("a", ()), async {
            let request = peer.expect("tools/call").await;
            for noise in ["Server listening on stdio", "{\"half\":", "true", "\u{1b}[31mred", "", "   "] {
                peer.text(noise).await;
            }
            peer.reply(&request, text_result("done")).await;
        })
        .await;
        assert_eq!(result.unwrap().text(), "done");
        let noise = client.noise();
        assert_eq!(noise.count, 4, "{revision} {noise:?}");
        assert_eq!(noise.last[0], "Server listening on stdio");
        assert_eq!(noise.last[3], "[31mred");
        peer.quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_over_the_limit_is_skipped() {
    let builder = Client::builder().max_frame(1000);
    let (client, mut peer) = connect(builder, V2025_11_25, json!({ "tools": {} })).await;
    let frame = |id: &serde_json::Value, length: usize| {
        let text = |pad: &str| json!({ "jsonrpc": "2.0", "id": id, "result": text_result(pad) }).to_string();
        text(&"x".repeat(length - text("").len()))
    };
    let (result, ()) = both(client.call("a", ()), async {
        let request = peer.expect("tools/call").await;
        peer.text(&frame(&request["id"], 1001)).await;
        peer.text(&frame(&request["id"], 1000)).await;
    })
    .await;
    assert!(result.is_ok());
    assert_eq!(client.noise().count, 1);
}

#[tokio::test(start_paused = true)]
async fn unknown_and_malformed_notifications_are_met_with_silence() {
    // V-73
    // proves: BASE-14, CANCEL-08, CANCEL-09, META-05
    for revision in Revision::ALL {
        let (_client, mut peer) =
            connect(Client::builder().on_notification(|_| {}), revision, json!({})).await;
        for (method, params) in [
            ("notifications/nonsense", json!({})),
            ("notifications/cancelled", json!({ "requestId": 77 })),
            ("notifications/cancelled", json!({ "requestId": { "a": 1 } })),
            ("notifications/cancelled", json!({})),
            ("notifications/progress", json!({ "progress": "x" })),
            ("notifications/message", json!({ "level": 7 })),
            ("notifications/resources/updated", json!({ "uri": 1 })),
            (
                "notifications/subscriptions/acknowledged",
                json!({ "_meta": { "io.modelcontextprotocol/subscriptionId": [] } }),
            ),
            (
                "notifications/tools/list_changed",
                json!({ "_meta": { "io.modelcontextprotocol/subscriptionId": 9 } }),
            ),
        ] {
            peer.notify(method, params).await;
        }
        peer.text(r#"{"jsonrpc":"2.0","method":"notifications/x","params":[1]}"#).await;
        peer.text(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
        peer.quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_of_the_wrong_shape_fails_its_request() {
    // V-73
    let (client, mut peer) = connect(Client::builder(), V2025_06_18, json!({ "tools": {} })).await;
    let (result, ()) = both(client.call("a", ()), async {
        let request = peer.expect("tools/call").await;
        let error = json!({ "code": 1, "message": "x" });
        peer.send(json!({ "jsonrpc": "2.0", "id": request["id"], "result": {}, "error": error })).await;
    })
    .await;
    let error = result.unwrap_err();
    assert!(error.is_malformed(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn batches_are_accepted_only_in_the_revision_that_has_them() {
    // proves: BASE-20, BASE-23, STDIO-05
    for revision in Revision::ALL {
        let (client, mut peer) = connect(Client::builder(), revision, json!({ "tools": {} })).await;
        let batch = json!([
            { "jsonrpc": "2.0", "id": "p", "method": "ping" },
            { "jsonrpc": "2.0", "method": "notifications/whatever" },
            { "jsonrpc": "2.0", "id": 2, "method": "ping" },
        ]);
        peer.send(batch).await;
        if revision <= V2025_03_26 {
            assert_eq!(peer.next().await, json!({ "jsonrpc": "2.0", "id": "p", "result": {} }));
            assert_eq!(peer.next().await, json!({ "jsonrpc": "2.0", "id": 2, "result": {} }));
            let calls = async { tokio::join!(client.call("a", ()), client.call("b", ())) };
            let ((a, b), ()) = both(calls, async {
                let ids = [peer.next().await["id"].clone(), peer.next().await["id"].clone()];
                let answer = |id| json!({ "jsonrpc": "2.0", "id": id, "result": text_result("done") });
                peer.send(json!([answer(&ids[1]), answer(&ids[0])])).await;
            })
            .await;
            assert!(a.is_ok() && b.is_ok());
        } else if revision.is_legacy() {
            assert_eq!(peer.next().await["error"]["code"], -32600);
        }
        peer.quiet().await;
        assert_eq!(client.noise().count, u64::from(revision > V2025_03_26));
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_that_asks_is_not_answered() {
    // V-73
    // proves: BASE-29, BASE-47, STDIO-10
    let builder = Client::builder().on_ask(|_| async { bowline_client::Answer::Decline });
    let (_client, mut peer) = connect(builder, V2026_07_28, json!({})).await;
    peer.ask(1, "ping", json!({})).await;
    peer.ask(2, "elicitation/create", json!({ "message": "?", "requestedSchema": { "type": "object" } }))
        .await;
    peer.ask(3, "nonsense", json!({})).await;
    peer.text(r#"{"jsonrpc":"2.0","id":4,"method":"ping","params":[1]}"#).await;
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn unreadable_requests_of_a_legacy_server_are_refused_by_their_id() {
    // proves: BASE-15
    let (_client, mut peer) = connect(Client::builder(), V2025_11_25, json!({})).await;
    peer.text(r#"{"jsonrpc":"2.0","id":"x","method":"ping","params":[1]}"#).await;
    let refusal = peer.next().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!("x"), &json!(-32602)));
    peer.text(r#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#).await;
    let refusal = peer.next().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(5), &json!(-32600)));
}

#[tokio::test(start_paused = true)]
async fn text_of_any_script_survives_and_stays_on_one_line() {
    // proves: BASE-19, STDIO-01
    for revision in Revision::ALL {
        let (client, mut peer) = connect(Client::builder(), revision, json!({ "tools": {} })).await;
        let odd = "line one\nline two\r\n\u{2028}日本語 🪢 \u{0}";
        // Arguments that were pretty printed elsewhere.
        let pretty = serde_json::value::RawValue::from_string("{\n  \"text\":\r\n \"a\"\n}".into()).unwrap();
        let (result, ()) = both(client.call("a", json!({ "text": odd })), async {
            let request = peer.expect("tools/call").await;
            assert_eq!(request["params"]["arguments"]["text"], odd);
            peer.reply(&request, text_result(odd)).await;
        })
        .await;
        assert_eq!(result.unwrap().text(), odd);
        let (result, ()) = both(client.call("b", pretty), async {
            let request = peer.expect("tools/call").await;
            assert_eq!(request["params"]["arguments"], json!({ "text": "a" }));
            peer.reply(&request, text_result("")).await;
        })
        .await;
        result.unwrap();
    }
}
