//! A connection cut at any byte: every request settles, none waits for its timeout.

use crate::client_peer::{Peer, greeting, text};
use bowline_client::Client;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::{sync::Semaphore, task::JoinSet};

/// The ways to write a reply. Those that end with the connection cannot tell a cut from their end.
const FORMS: [&str; 6] =
    ["length", "chunks", "json to the end", "events", "chunked events", "events with ids"];

fn reply(form: &str, response: &str) -> String {
    let head = |kind: &str, more: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{more}\r\n");
    let chunked = |body: &str| format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let (json, events) = ("application/json", "text/event-stream");
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    let body = format!("event: message\ndata: {progress}\n\ndata: {response}\n\n");
    match form {
        "length" => head(json, &format!("Content-Length: {}\r\n", response.len())) + response,
        "chunks" => head(json, "Transfer-Encoding: chunked\r\n") + &chunked(response),
        "json to the end" => head(json, "Connection: close\r\n") + response,
        "events" => head(events, "Connection: close\r\n") + &body,
        "chunked events" => head(events, "Transfer-Encoding: chunked\r\n") + &chunked(&body),
        _ => head(events, "Connection: close\r\n") + "id: 1\nretry: 1\ndata:\n\n" + &format!("id: 2\n{body}"),
    }
}

/// Answers calls with as much of a reply as their arguments say, and everything else so that it does no harm.
async fn answer(mut peer: Peer, form: &'static str, resumable: bool) {
    loop {
        let mut asked = peer.next().await;
        if asked.body["method"] != "tools/call" {
            // Nothing is kept here that could be come back to.
            tokio::spawn(asked.status(405, "text/plain", "no"));
            continue;
        }
        let cut = asked.body["params"]["arguments"]["cut"].as_u64().unwrap();
        let whole = reply(form, &asked.response_to(&text("whole")));
        let cut = usize::try_from(cut).unwrap().min(whole.len());
        assert!(resumable || asked.header("last-event-id").is_none());
        tokio::spawn(async move { asked.raw(&whole.as_bytes()[..cut]).await });
    }
}

async fn cut_everywhere(client: Client, peer: Peer, form: &'static str, resumable: bool) {
    let answering = tokio::spawn(answer(peer, form, resumable));
    let mut calls = JoinSet::new();
    let length =
        reply(form, &json!({ "jsonrpc": "2.0", "id": 1000, "result": text("whole") }).to_string()).len();
    // As many at once as wait in line for a socket without being turned away.
    let line = Arc::new(Semaphore::new(64));
    for cut in 0..length {
        let (client, line) = (client.clone(), Arc::clone(&line));
        calls.spawn(async move {
            let _place = line.acquire().await.unwrap();
            (cut, client.call("t", json!({ "cut": cut })).await)
        });
    }
    while let Some(done) = calls.join_next().await {
        let (cut, called) = done.unwrap();
        match called {
            // The last bytes may be such that nothing hangs on them.
            Ok(called) => assert!(called.text() == "whole" && cut + 10 > length, "{form} cut at {cut}"),
            Err(error) => assert!(!error.is_timeout(), "{form} cut at {cut}: {error}"),
        }
    }
    let whole = client.call("t", json!({ "cut": length + 1000 })).await.unwrap();
    assert_eq!(whole.text(), "whole", "{form}");
    answering.abort();
}

#[tokio::test]
async fn a_modern_reply_cut_at_any_byte_completes_or_fails() {
    for form in FORMS {
        let (client, peer) = crate::client_peer::modern(Client::builder(), json!({ "tools": {} })).await;
        cut_everywhere(client, peer, form, false).await;
    }
}

#[tokio::test]
async fn a_legacy_reply_cut_at_any_byte_completes_or_fails() {
    for form in FORMS {
        let (client, peer, _get_stream) = crate::client_peer::legacy(Client::builder(), "2025-11-25").await;
        cut_everywhere(client, peer, form, true).await;
    }
}

#[tokio::test]
async fn an_opening_cut_at_any_byte_completes_or_fails() {
    let opening =
        |id: &Value| json!({ "jsonrpc": "2.0", "id": id, "result": greeting("2025-06-18") }).to_string();
    let length = reply("length", &opening(&json!(1))).len();
    for cut in (0..length).step_by(7) {
        let mut peer = Peer::new().await;
        let target = peer.target();
        let answering = tokio::spawn(async move {
            loop {
                let mut asked = peer.next().await;
                if asked.body["method"] != "initialize" {
                    asked.status(400, "text/plain", "no").await;
                    continue;
                }
                let whole = reply("length", &opening(&asked.body["id"]));
                asked.raw(&whole.as_bytes()[..cut]).await;
            }
        });
        let error = Client::connect(target).await.unwrap_err();
        assert!(!error.is_timeout(), "cut at {cut}: {error}");
        answering.abort();
    }
}
