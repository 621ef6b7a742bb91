//! Input that no client should send, to a server in a process of its own: what is answered, and that it goes on serving.

use bowline_testing::{Peer, Result};
use bowline_types::Revision;
use serde_json::{Value, json};

/// A server with a handshake behind it, or one that has heard nothing yet.
async fn connect(revision: Revision) -> Result<Peer> {
    let mut peer = Peer::spawn(env!("CARGO_BIN_EXE_fixture"), ["everything"])?;
    if revision.is_legacy() {
        peer.initialize(revision).await?;
    }
    Ok(peer)
}

async fn alive(peer: &mut Peer, revision: Revision) -> Result {
    let pong = if revision.is_legacy() {
        peer.request("ping", json!({})).await?
    } else {
        peer.modern("server/discover", json!({})).await?
    };
    assert!(pong["result"].is_object(), "{pong}\n{}", peer.transcript());
    Ok(())
}

/// Sends `bytes` in both eras. Each of `replies` is the code and the id of an error that has to come; then the server has
/// to answer as usual, and to end well with nothing more to say.
async fn check(bytes: impl AsRef<[u8]>, replies: &[(i64, Option<Value>)]) -> Result {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut peer = connect(revision).await?;
        peer.send_raw(&bytes).await?;
        for (code, id) in replies {
            let reply = peer.recv().await?;
            assert_eq!(reply["error"]["code"], *code, "{revision}: {reply}");
            assert_eq!(reply.get("id"), id.as_ref(), "{revision}: {reply}");
            assert!(reply["error"]["message"].is_string(), "{revision}: {reply}");
        }
        alive(&mut peer, revision).await?;
        assert_eq!(peer.close().await?, [Value::Null; 0], "{revision}");
    }
    Ok(())
}

#[tokio::test]
async fn invalid_json_is_reported() -> Result {
    // proves: BASE-16
    check("hello\n", &[(-32700, None)]).await?;
    check("{'jsonrpc': '2.0'}\n", &[(-32700, None)]).await?;
    check("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} trailing\n", &[(-32700, None)]).await?;
    check("\"text\"\n5\nnull\n", &[(-32600, None), (-32600, None), (-32600, None)]).await?;
    check("\u{feff}{}\n", &[(-32700, None)]).await
}

#[tokio::test]
async fn blank_lines_and_spaces_around_a_message_are_ignored() -> Result {
    check("\n\r\n   \n\t\n", &[]).await?;
    check("  {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}  \r\n", &[(-32600, Some(json!(1)))]).await
}

#[tokio::test]
async fn a_truncated_message_is_reported() -> Result {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut peer = connect(revision).await?;
        alive(&mut peer, revision).await?;
        peer.send_raw(r#"{"jsonrpc":"2.0","id":1,"method":"pi"#).await?;
        let rest = peer.close().await?;
        assert_eq!(rest.len(), 1, "{rest:?}");
        assert_eq!((&rest[0]["error"]["code"], rest[0].get("id")), (&json!(-32700), None));
    }
    Ok(())
}

#[tokio::test]
async fn a_line_of_five_mebibytes_is_refused_without_being_kept() -> Result {
    let mut line = vec![b'x'; 5 * 1024 * 1024];
    line.push(b'\n');
    check(&line, &[(-32600, None)]).await?;
    let text = "y".repeat(5 * 1024 * 1024);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "text": text } });
    check(format!("{call}\n"), &[(-32600, None)]).await
}

#[tokio::test]
async fn a_hundred_thousand_brackets_are_refused() -> Result {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    let deep = format!(r#"{{"jsonrpc":"2.0","id":"deep","method":"ping","params":{{"x":{open}{close}}}}}"#);
    check(format!("{deep}\n"), &[(-32600, Some(json!("deep")))]).await?;
    check(format!("{open}\n"), &[(-32600, None)]).await?;
    let (open, close) = (r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    check(format!("{open}1{close}\n"), &[(-32600, None)]).await
}

#[tokio::test]
async fn invalid_utf8_is_reported() -> Result {
    // proves: BASE-19
    check(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xffng\"}\n", &[(-32700, None)]).await?;
    check(b"\xff\xfe{\x00}\x00\n", &[(-32700, None)]).await
}

#[tokio::test]
async fn ids_that_are_neither_text_nor_integer_are_refused() -> Result {
    // proves: BASE-15
    for id in ["null", "1.5", "true", "[1]", "{}", "1e999"] {
        check(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n"), &[(-32600, None)])
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn members_that_occur_twice_are_refused() -> Result {
    check("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}\n", &[(-32600, None)]).await?;
    let twice = "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\",\"method\":\"tools/list\"}\n";
    check(twice, &[(-32600, Some(json!(3)))]).await?;
    let twice = "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\",\"params\":{},\"params\":{}}\n";
    check(twice, &[(-32600, Some(json!(4)))]).await
}

#[tokio::test]
async fn a_duplicate_id_is_refused_and_the_running_call_continues() -> Result {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut peer = connect(revision).await?;
        let mut params = json!({ "name": "slow", "_meta": { "progressToken": 1 } });
        if revision.is_modern() {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(revision.as_str());
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let call = json!({ "jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": params });
        peer.send(call.clone()).await?;
        peer.recv_method("notifications/progress").await?;
        peer.send(call).await?;
        let refused = peer.response(&json!("same")).await?;
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        // The first call still runs, and is the one that a cancellation ends.
        peer.notify("notifications/cancelled", json!({ "requestId": "same" })).await?;
        alive(&mut peer, revision).await?;
        assert_eq!(peer.close().await?, [Value::Null; 0], "{revision}");
    }
    Ok(())
}

#[tokio::test]
async fn batches_are_refused_in_other_revisions() -> Result {
    // proves: BASE-23, STDIO-04
    check("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]\n", &[(-32600, None)]).await?;
    check("[]\n", &[(-32600, None)]).await?;
    check("[1,2\n", &[(-32700, None)]).await
}

#[tokio::test]
async fn unknown_methods_are_reported() -> Result {
    // proves: BASE-17
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut peer = connect(revision).await?;
        for method in ["bogus/method", "", "tools", "\u{0}", "notifications/initialized"] {
            let answer = peer.modern(method, json!({})).await?;
            assert_eq!(answer["error"]["code"], -32601, "{revision}: {answer}");
        }
        alive(&mut peer, revision).await?;
        assert_eq!(peer.close().await?, [Value::Null; 0], "{revision}");
    }
    Ok(())
}

#[tokio::test]
async fn params_that_are_not_an_object_are_refused() -> Result {
    for params in ["[1]", "\"text\"", "5", "null", "true"] {
        let frame = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{params}}}\n");
        check(frame, &[(-32602, Some(json!(1)))]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn params_of_the_wrong_shape_are_refused() -> Result {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut peer = connect(revision).await?;
        for (method, params) in [
            ("tools/call", json!({})),
            ("tools/call", json!({ "name": 5 })),
            ("tools/call", json!({ "name": "echo", "arguments": [1] })),
            ("resources/read", json!({ "uri": {} })),
            ("prompts/get", json!({ "name": "greet", "arguments": { "name": 5 } })),
            ("tools/list", json!({ "cursor": 5 })),
            ("completion/complete", json!({ "ref": 1, "argument": {} })),
        ] {
            let answer = peer.modern(method, params.clone()).await?;
            assert_eq!(answer["error"]["code"], -32602, "{revision}, {method} {params}: {answer}");
        }
        alive(&mut peer, revision).await?;
        assert_eq!(peer.close().await?, [Value::Null; 0], "{revision}");
    }
    Ok(())
}

#[tokio::test]
async fn responses_to_nothing_are_ignored() -> Result {
    check("{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n", &[]).await?;
    check("{\"jsonrpc\":\"2.0\",\"id\":\"99\",\"error\":{\"code\":1,\"message\":\"no\"}}\n", &[]).await?;
    check("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"no\"}}\n", &[]).await
}

#[tokio::test]
async fn invalid_responses_are_ignored() -> Result {
    let both = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{\"code\":1,\"message\":\"no\"}}\n";
    check(both, &[]).await?;
    check("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"no\"}\n", &[]).await?;
    let everything = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"result\":{}}\n";
    check(everything, &[(-32600, Some(json!(1)))]).await
}

#[tokio::test]
async fn an_id_of_a_mebibyte_is_returned_unchanged() -> Result {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut peer = connect(revision).await?;
        let id = json!("x\u{e9}\n".repeat(256 * 1024));
        peer.send(json!({ "jsonrpc": "2.0", "id": id, "method": "bogus", "params": { "_meta": "wrong" } }))
            .await?;
        let answer = peer.response(&id).await?;
        assert_eq!(answer["error"]["code"], -32602);
        alive(&mut peer, revision).await?;
        assert_eq!(peer.close().await?, [Value::Null; 0], "{revision}");
    }
    Ok(())
}
