//! Text that is not what it seems: encodings, marks, line ends.

use super::support::{Endpoint, Request, Watch, server};
use bowline_testing::Peer;
use bowline_types::Revision;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"é"}}}"#;

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(bytes).collect()
}

fn utf32(text: &str, bytes: fn(u32) -> [u8; 4]) -> Vec<u8> {
    text.chars().flat_map(|character| bytes(u32::from(character))).collect()
}

/// Frames that are not UTF-8, or no JSON for what else they hold.
fn unreadable() -> Vec<Vec<u8>> {
    let with = |from: &str, to: &[u8]| {
        let (before, after) = CALL.split_once(from).unwrap();
        [before.as_bytes(), to, after.as_bytes()].concat()
    };
    let mut frames = vec![
        utf16(CALL, u16::to_le_bytes),
        utf16(CALL, u16::to_be_bytes),
        utf16(&format!("\u{feff}{CALL}"), u16::to_le_bytes),
        utf16(&format!("\u{feff}{CALL}"), u16::to_be_bytes),
        utf32(CALL, u32::to_le_bytes),
        utf32(CALL, u32::to_be_bytes),
        format!("\u{feff}{CALL}").into_bytes(),
        // Overlong, half of a surrogate pair, beyond the last character, cut short, Latin-1, a byte of no text.
        with("é", b"\xc0\xaf"),
        with("é", b"\xe0\x80\xaf"),
        with("é", b"\xed\xa0\x80"),
        with("é", b"\xf4\x90\x80\x80"),
        with("é", b"\xc3"),
        with("é", b"\xe9"),
        with("é", b"\xff"),
        // Bytes that JSON does not know in or between its tokens.
        with("é", b"\0"),
        with("\"id\"", b"\0\"id\""),
        with("\"id\"", b"\xc2\xa0\"id\""),
        with("\"id\"", "\u{2028}\"id\"".as_bytes()),
        with("\"id\"", b"\x0b\"id\""),
        [CALL.as_bytes(), b"\0"].concat(),
    ];
    frames.push(utf16("\"", u16::to_le_bytes));
    frames
}

#[tokio::test]
async fn v19_only_utf8_is_text_over_http() {
    let endpoint = Endpoint::new().await;
    let session = endpoint.open("2025-11-25").await;
    for frame in unreadable() {
        let reply = endpoint.send(&Request::post_bytes(&frame).set("Mcp-Session-Id", &session)).await;
        assert_eq!((reply.status, reply.code()), (400, -32700), "{frame:x?}: {reply:?}");
        let labeled = Request::post_bytes(&frame).set("Content-Type", "application/json; charset=utf-16");
        let reply = endpoint.send(&labeled).await;
        assert_eq!((reply.status, reply.code()), (400, -32700), "{frame:x?}: {reply:?}");
    }
    assert_eq!(endpoint.ran(), 0);
    endpoint.is_alive().await;
}

#[tokio::test]
async fn v19_an_invalid_frame_affects_only_itself() {
    let watch = Watch::default();
    let mut peer = Peer::memory(server(&watch)).unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    for frame in unreadable() {
        // UTF-16 and UTF-32 write other bytes that end a line; each line is a frame of its own.
        let lines = frame.split(|byte| *byte == b'\n').count();
        peer.send_raw([&frame[..], b"\n"].concat()).await.unwrap();
        for _ in 0..lines {
            let reply = peer.recv().await.unwrap();
            assert_eq!((&reply["error"]["code"], reply.get("id")), (&json!(-32700), None), "{frame:x?}");
        }
        assert_eq!(peer.request("ping", json!({})).await.unwrap()["result"], json!({}));
    }
    assert_eq!(peer.close().await.unwrap(), [Value::Null; 0]);
    assert_eq!(watch.ran(), 0);
}

#[tokio::test]
async fn v19_text_is_unchanged() {
    let endpoint = Endpoint::new().await;
    for message in
        ["\u{2028}\u{2029}\u{85}", "\u{0}", "\u{feff}", "\r\n\n", "\u{10ffff}\u{202e}", "\u{1b}[31m"]
    {
        let reply = endpoint.send(&Request::call("echo", json!({ "message": message }))).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], message);
        // On one line, without control characters.
        assert!(!reply.body.iter().any(u8::is_ascii_control), "{reply:?}");
    }
    // Half of a pair is no text: the tool is not called with something else.
    let body = CALL.replace('é', "\\ud800");
    let before = endpoint.ran();
    let session = endpoint.open("2025-11-25").await;
    let reply = endpoint.send(&Request::post_bytes(body.as_bytes()).set("Mcp-Session-Id", &session)).await;
    let told = reply.json();
    assert!(told.get("error").is_some() || told["result"]["isError"] == true, "{told}");
    assert_eq!(endpoint.ran(), before);
}

#[tokio::test]
async fn v19_frames_end_at_line_feeds_wherever_reads_end() {
    let watch = Watch::default();
    let (mut ours, theirs) = tokio::io::duplex(64);
    let handle = server(&watch).build().unwrap();
    let serving = tokio::spawn(async move {
        let (read, write) = tokio::io::split(theirs);
        handle.serve(read, write).await
    });
    // A lone carriage return is a blank, not the end of a line; characters are split between reads.
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"é","version":"1"}}}"#;
    let calls = format!("{hello}\r\n{}\r\r\n\r\n", CALL.replace(',', ",\r"));
    let mut reply = Vec::new();
    let (mut read, mut write) = tokio::io::split(&mut ours);
    let writing = async {
        for byte in calls.as_bytes() {
            write.write_all(&[*byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let reading = async {
        while reply.split(|byte| *byte == b'\n').count() <= 2 {
            let mut buffer = [0; 256];
            let length = read.read(&mut buffer).await.unwrap();
            assert!(length > 0);
            reply.extend_from_slice(&buffer[..length]);
        }
    };
    tokio::join!(writing, reading);
    let reply: Value = serde_json::from_slice(reply.split(|byte| *byte == b'\n').nth(1).unwrap()).unwrap();
    assert_eq!(reply["result"]["content"][0]["text"], "é", "{reply}");
    drop(ours);
    serving.await.unwrap().unwrap();
}
