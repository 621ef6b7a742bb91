//! Members that one reader of JSON sees and another does not.

use super::support::{Endpoint, Reply, Request, Watch, server};
use bowline_testing::Peer;
use bowline_types::Revision;
use serde_json::{Value, json};

const MODERN: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
const LEGACY: &str = r#""x":1"#;

/// Whether a reply says that the call was made.
fn succeeded(reply: &Value) -> bool {
    reply.get("result").is_some_and(|result| result["isError"] != true)
}

/// Sends a frame, whose `META` stands for what belongs into `_meta`, in both eras over HTTP and over a byte stream.
/// What came back, of each that answered.
async fn everywhere(frame: &str) -> (Vec<Value>, usize) {
    let endpoint = Endpoint::new().await;
    let session = endpoint.open("2025-11-25").await;
    let modern = Request::call("hit", json!({}));
    let modern = modern.body(frame.replace("META", MODERN));
    let named = if frame.contains("echo") { modern.set("Mcp-Name", "echo") } else { modern };
    let legacy =
        Request::post_bytes(frame.replace("META", LEGACY).as_bytes()).set("Mcp-Session-Id", &session);
    let mut answers = Vec::new();
    for request in [named, legacy] {
        let reply: Reply = endpoint.send(&request).await;
        assert!([200, 202, 400].contains(&reply.status), "{frame}: {reply:?}");
        if reply.status != 202 {
            answers.push(reply.json());
        }
    }

    let watch = Watch::default();
    let mut peer = Peer::memory(server(&watch)).unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    peer.send_raw(format!("{}\n", frame.replace("META", LEGACY))).await.unwrap();
    let pong = peer.request("ping", json!({})).await.unwrap();
    assert_eq!(pong["result"], json!({}), "{frame}: {pong}");
    answers.extend(peer.close().await.unwrap());
    (answers, endpoint.ran() + watch.ran())
}

/// A frame that must have no effect anywhere; where it is answered, with one of `codes`.
async fn check(frame: &str, codes: &[i64]) {
    let (answers, ran) = everywhere(frame).await;
    assert_eq!(ran, 0, "{frame}: {answers:?}");
    for answer in answers {
        assert!(!succeeded(&answer), "{frame}: {answer}");
        if let Some(code) = answer["error"]["code"].as_i64() {
            assert!(codes.contains(&code), "{frame}: {answer}");
        }
    }
}

#[tokio::test]
async fn v10_keys_are_matched_exactly() {
    let valid = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hit","arguments":{},"_meta":{META}}}"#;
    let (answers, ran) = everywhere(valid).await;
    assert_eq!((answers.iter().filter(|answer| succeeded(answer)).count(), ran), (3, 3), "{answers:?}");
    for (key, look_alikes) in [
        (
            "method",
            &["Method", "METHOD", "method ", " method", "ｍethod", "m\u{435}thod", "method\\u0000"][..],
        ),
        ("id", &["ID", "Id", "\u{131}d", "i\u{dc}d", "ｉｄ"]),
        ("jsonrpc", &["jsonRPC", "JSONRPC", "jsonrpc\\u0000"]),
        ("params", &["Params", "PARAMS", "param", "params\\u0000"]),
        ("name", &["Name", "NAME", "n\u{430}me", "name\\u0000"]),
    ] {
        for look_alike in look_alikes {
            let frame = valid.replace(&format!("\"{key}\":"), &format!("\"{look_alike}\":"));
            assert_ne!(frame, valid);
            check(&frame, &[-32600, -32602, -32020]).await;
        }
    }
    let echo = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"MESSAGE":"x"},"_meta":{META}}}"#;
    check(echo, &[-32602]).await;
    check(&valid.replace("\"hit\"", "\"HIT\""), &[-32602, -32020]).await;
    check(&valid.replace("\"hit\"", "\"hit\\u0000\""), &[-32602, -32020]).await;
    check(&valid.replace("tools/call", "Tools/Call"), &[-32601, -32020]).await;
    check(&valid.replace("\"2.0\"", "\"2.0\\u0000\""), &[-32600]).await;
}

#[tokio::test]
async fn v11_a_member_that_occurs_twice_is_refused() {
    for frame in [
        // The envelope.
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"hit","_meta":{META}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"hit","_meta":{META}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","\u006dethod":"tools/call","params":{"name":"hit","_meta":{META}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"hit","_meta":{META}}}"#,
        r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hit","_meta":{META}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{},"params":{"name":"hit","_meta":{META}}}"#,
        // The parameters.
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who","name":"hit","_meta":{META}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hit","n\u0061me":"hit","_meta":{META}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hit","arguments":{},"arguments":{},"_meta":{META}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hit","_meta":{META},"_meta":{META}}}"#,
        // The metadata.
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hit","_meta":{META,"progressToken":1,"progressToken":2}}}"#,
        // The arguments.
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"a","message":"b"},"_meta":{META}}}"#,
    ] {
        check(frame, &[-32600, -32602]).await;
    }
    let twice = format!("{MODERN},{MODERN}");
    let frame = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hit","_meta":{META}}}"#;
    let endpoint = Endpoint::new().await;
    let call = Request::call("hit", json!({}));
    let reply = endpoint.send(&call.body(frame.replace("META", &twice))).await;
    assert_eq!((reply.status, reply.code(), endpoint.ran()), (400, -32602, 0), "{reply:?}");
}

#[tokio::test]
async fn v11_unread_members_may_occur_twice() {
    // Members that mean nothing to the server cannot mean two things to it.
    for frame in [
        r#"{"jsonrpc":"2.0","x":1,"x":2,"id":1,"method":"tools/call","params":{"name":"hit","_meta":{META}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hit","x":1,"x":2,"_meta":{META}}}"#,
    ] {
        let (answers, ran) = everywhere(frame).await;
        assert_eq!((answers.iter().filter(|answer| succeeded(answer)).count(), ran), (3, 3), "{answers:?}");
    }
}
