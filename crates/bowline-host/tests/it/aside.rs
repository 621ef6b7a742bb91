//! What a server cannot get at by going around what calls go through.

use bowline_client::{BoxFuture, Connect, Inbox, Stream, Transport};
use bowline_host::{Host, Start, Upstream};
use bowline_policy::{Action, ArgumentTest, Guard, Policy, Question, Rule, Scripted, Verdict};
use bowline_server::Server;
use bowline_testing::Peer;
use bowline_types::{Revision, Root};
use serde_json::{Value, json};
use std::{path::Path, sync::Arc, time::Duration};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A server that asks for folders as soon as it has started, and passes on whatever it is told.
struct Curious(UnboundedSender<Value>);

impl Connect for Curious {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, bowline_client::Result<Box<dyn Transport>>> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(ours);
        tokio::spawn(serve(Peer::over(read, write), self.0.clone()));
        let (read, write) = tokio::io::split(theirs);
        Box::pin(async move { Stream::new(read, write).connect(inbox).await })
    }
}

async fn serve(mut peer: Peer, told: UnboundedSender<Value>) {
    while let Ok(frame) = peer.recv().await {
        let result = match frame["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "curious", "version": "1" },
            }),
            Some("notifications/initialized") => {
                let asked = json!({ "jsonrpc": "2.0", "id": "folders", "method": "roots/list" });
                let _ = peer.send(asked).await;
                continue;
            }
            Some("notifications/roots/list_changed") => {
                let asked = json!({ "jsonrpc": "2.0", "id": "folders again", "method": "roots/list" });
                let _ = peer.send(asked).await;
                continue;
            }
            Some("tools/list") => {
                json!({ "tools": [{ "name": "read", "inputSchema": { "type": "object" } }] })
            }
            Some("tools/call") => {
                let _ = told.send(frame.clone());
                json!({ "content": [] })
            }
            None => {
                let _ = told.send(frame);
                continue;
            }
            Some(_) => {
                let error = json!({ "code": -32601, "message": "method not found" });
                let _ = peer.send(json!({ "jsonrpc": "2.0", "id": frame["id"], "error": error })).await;
                continue;
            }
        };
        let _ = peer.reply(&frame, result).await;
    }
}

fn host(rules: impl IntoIterator<Item = Rule>) -> (Host, UnboundedReceiver<Value>) {
    let (curious, hears) = curious(&std::env::temp_dir());
    let guard = Guard::builder().policy(Policy::new(rules)).build();
    (Host::builder().add("curious", curious).guard(guard).build(), hears)
}

/// A server that receives this folder as a root.
fn curious(folder: &Path) -> (Upstream, UnboundedReceiver<Value>) {
    let (told, hears) = unbounded_channel();
    (
        Upstream::to(Curious(told)).start(Start::Eager).roots([Root::of_path(&folder.display().to_string())]),
        hears,
    )
}

#[tokio::test]
async fn roots_are_sent_outside_of_calls_only_after_consent() {
    for (verdict, is_told) in
        [(Verdict::allow(), true), (Verdict::decline(), false), (Verdict::Cancel, false)]
    {
        let (curious, mut hears) = curious(&std::env::temp_dir());
        let gate = Arc::new(Scripted::new([verdict]));
        let guard = Guard::builder().gate(Arc::clone(&gate)).build();
        let host = Host::builder().add("curious", curious).guard(guard).attended().build();
        let _handle = host.open(Server::new("gateway")).unwrap();
        let answer = hears.recv().await.unwrap();
        assert_eq!(answer.get("result").is_some(), is_told, "{answer}");
        assert!(matches!(&gate.take_asked()[..], [Question::Roots { server, .. }] if server == "curious"));
        host.close().await;
    }
}

#[tokio::test]
async fn without_a_gate_a_rule_that_asks_withholds_roots() {
    let (host, mut hears) = host([Rule::ask().action(Action::Roots)]);
    let _handle = host.open(Server::new("gateway")).unwrap();
    let answer = hears.recv().await.unwrap();
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("rule: ask") && message.contains("action = \"roots\""), "{answer}");
    host.close().await;
}

#[tokio::test]
async fn a_server_is_notified_when_a_root_disappears_and_reappears() {
    // proves: ROOT-09, ROOT-12
    let folder = std::env::temp_dir().join(format!("bowline-roots-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (curious, mut hears) = curious(&folder);
    let host = Host::builder().add("curious", curious).build();
    let _handle = host.open(Server::new("gateway")).unwrap();
    let mut roots = async || {
        let heard = tokio::time::timeout(Duration::from_secs(60), hears.recv()).await;
        heard.expect("the server is told of the change").unwrap()["result"]["roots"].as_array().map(Vec::len)
    };
    assert_eq!(roots().await, Some(1));
    std::fs::remove_dir(&folder).unwrap();
    assert_eq!(roots().await, Some(0));
    std::fs::create_dir(&folder).unwrap();
    assert_eq!(roots().await, Some(1));
    std::fs::remove_dir(&folder).unwrap();
    host.close().await;
}

#[tokio::test]
async fn denied_roots_are_not_sent_outside_of_calls_either() {
    // V-105
    for (rules, is_told) in [(vec![], true), (vec![Rule::deny().action(Action::Roots)], false)] {
        let (host, mut hears) = host(rules);
        let _handle = host.open(Server::new("gateway")).unwrap();
        let answer = hears.recv().await.unwrap();
        assert_eq!(answer["result"]["roots"][0]["uri"].is_string(), is_told, "{answer}");
        assert_eq!(answer.get("error").is_some(), !is_told, "{answer}");
        host.close().await;
    }
}

#[tokio::test]
async fn arguments_that_rules_cannot_read_are_refused() {
    // V-105
    let deny = Rule::deny().any_argument(ArgumentTest::Matches("/etc*".into()));
    let (host, mut hears) = host([deny, Rule::allow()]);
    let mut peer = Peer::memory(host.open(Server::new("gateway")).unwrap()).unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    assert!(hears.recv().await.unwrap().get("result").is_some(), "the folders");
    for arguments in [json!(["/etc/passwd"]), json!("/etc/passwd")] {
        let params = json!({ "name": "curious__read", "arguments": arguments });
        let answer = peer.request("tools/call", params).await.unwrap();
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    assert!(hears.try_recv().is_err(), "it was called");
    host.close().await;
}
