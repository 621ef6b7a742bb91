//! Methods and notifications that are not part of the protocol.

use crate::wire::Peer;
use bowline_server::{Ctx, Error, Result, Server, Tool, middleware::from_fn};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    future::ready,
    sync::{Arc, Mutex},
};
use tokio::sync::mpsc;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lookup {
    word: String,
}

#[derive(Serialize)]
struct Entry {
    length: usize,
}

async fn lookup(params: Lookup) -> Result<Entry> {
    if params.word.is_empty() {
        return Err(Error::invalid_params("`word` is empty"));
    }
    Ok(Entry { length: params.word.len() })
}

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Makes the same request in every revision.
async fn in_every_revision(server: impl Fn() -> Server, method: &str, params: Value) -> Vec<Value> {
    let mut replies = Vec::new();
    for revision in LEGACY {
        let mut peer = Peer::new(server());
        peer.initialize(revision).await;
        replies.push(peer.request(method, params.clone()).await);
    }
    replies.push(Peer::new(server()).modern(method, params).await);
    replies
}

#[tokio::test]
async fn a_custom_method_is_answered_in_every_revision() {
    let server = || Server::new("dictionary").method("example.com/lookup", lookup);
    for reply in in_every_revision(server, "example.com/lookup", json!({ "word": "bowline" })).await {
        assert_eq!(reply["result"]["length"], 7, "{reply}");
    }
    for reply in in_every_revision(server, "example.com/lookup", json!({ "word": "" })).await {
        assert_eq!(
            (&reply["error"]["code"], &reply["error"]["message"]),
            (&json!(-32602), &json!("`word` is empty"))
        );
    }
    for reply in in_every_revision(server, "example.com/lookup", json!({ "words": 1 })).await {
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
    }
    for reply in in_every_revision(server, "example.com/other", json!({})).await {
        assert_eq!(reply["error"]["code"], -32601, "{reply}");
    }
}

#[tokio::test]
async fn a_modern_result_of_a_custom_method_has_what_every_result_has() {
    let server = Server::new("dictionary").method("example.com/nothing", async || Ok::<_, Error>(()));
    let reply = Peer::new(server).modern("example.com/nothing", json!({})).await;
    assert_eq!(reply["result"]["resultType"], "complete", "{reply}");
    assert_eq!(reply["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "dictionary");
}

#[tokio::test]
async fn a_result_that_is_not_an_object_is_an_error() {
    let server = Server::new("dictionary").method("example.com/number", async || Ok::<_, Error>(7));
    let reply = Peer::new(server).modern("example.com/number", json!({})).await;
    assert_eq!(
        reply["error"]["message"], "expected a reply that serializes to an object, got `7`",
        "{reply}"
    );
}

#[tokio::test]
async fn middleware_sees_custom_methods_and_notifications() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (received, mut receiver) = mpsc::unbounded_channel();
    let noted = Arc::clone(&seen);
    let server = Server::new("dictionary")
        .method("example.com/lookup", lookup)
        .notification("example.com/opened", move |_: Ctx, params: Lookup| {
            received.send(params.word).unwrap();
            ready(())
        })
        .layer(from_fn(move |call, next| {
            noted.lock().unwrap().push((call.method.to_string(), call.is_notification));
            next.run(call)
        }));
    let mut peer = Peer::new(server);
    peer.initialize("2025-11-25").await;
    peer.send(json!({ "jsonrpc": "2.0", "method": "example.com/opened", "params": { "word": "a" } })).await;
    peer.request("example.com/lookup", json!({ "word": "b" })).await;
    assert_eq!(receiver.recv().await.unwrap(), "a");
    let expected = [("example.com/opened".to_owned(), true), ("example.com/lookup".to_owned(), false)];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_custom_notification_is_accepted_in_both_eras() {
    for revision in [Some("2024-11-05"), Some("2025-11-25"), None] {
        let (received, mut receiver) = mpsc::unbounded_channel();
        let server = Server::new("dictionary").notification("example.com/opened", move |params: Lookup| {
            received.send(params.word).unwrap();
            ready(())
        });
        let mut peer = Peer::new(server);
        if let Some(revision) = revision {
            peer.initialize(revision).await;
        }
        // One that cannot be read, one that nobody takes, and one that is fine.
        for (method, params) in [
            ("example.com/opened", json!({})),
            ("example.com/x", json!({})),
            ("example.com/opened", json!({ "word": "a" })),
        ] {
            peer.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
        }
        assert_eq!(receiver.recv().await.unwrap(), "a", "{revision:?}");
    }
}

#[tokio::test]
async fn notifications_beyond_the_limit_are_dropped() {
    let running = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&running);
    let server = Server::new("busy").notification("example.com/wait", move || {
        *counted.lock().unwrap() += 1;
        std::future::pending::<()>()
    });
    let mut peer = Peer::new(server);
    peer.initialize("2025-11-25").await;
    for _ in 0..150 {
        peer.send(json!({ "jsonrpc": "2.0", "method": "example.com/wait" })).await;
    }
    assert_eq!(peer.request("ping", json!({})).await["result"], json!({}));
    assert_eq!(*running.lock().unwrap(), 100);
}

#[tokio::test]
async fn reserved_names_are_refused_before_serving() {
    let refused = |server: Server| server.build().unwrap_err().to_string();
    let method = |name: &str| Server::new("s").method(name, async || Ok::<_, Error>(()));
    let notification = |name: &str| Server::new("s").notification(name, async || {});
    for (server, part) in [
        (method("tools/call"), "method `tools/call`: it is a method of the protocol"),
        (method("rpc.x"), "reserved by JSON-RPC"),
        (notification("notifications/x"), "names that start with `notifications/` are reserved"),
        (notification("x"), "expected a prefix of your own"),
        (method("a/b").method("a/b", lookup), "two methods are named `a/b`"),
    ] {
        let error = refused(server);
        assert!(error.contains(part), "{error}");
    }
}

#[tokio::test]
async fn a_method_of_an_extension_is_for_clients_that_declare_it() {
    // proves: EXT-04, EXT-06
    let server =
        || Server::new("s").extension_method("com.example/words", "com.example/words/lookup", lookup);
    let word = json!({ "word": "abc" });
    let mut bare = Peer::new(server());
    let declared = bare.modern("server/discover", json!({})).await;
    assert_eq!(declared["result"]["capabilities"]["extensions"]["com.example/words"], json!({}));
    let refused = bare.modern("com.example/words/lookup", word.clone()).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    assert_eq!(
        refused["error"]["data"]["requiredCapabilities"],
        json!({ "extensions": { "com.example/words": {} } })
    );
    let mut able = Peer::new(server());
    able.capabilities = json!({ "extensions": { "com.example/words": {} } });
    assert_eq!(able.modern("com.example/words/lookup", word.clone()).await["result"]["length"], 3);

    let mut legacy = Peer::new(server());
    legacy.initialize("2025-11-25").await;
    assert_eq!(legacy.request("com.example/words/lookup", word.clone()).await["error"]["code"], -32601);
    let mut legacy = Peer::new(server());
    legacy.capabilities = json!({ "extensions": { "com.example/words": {} } });
    legacy.initialize("2025-11-25").await;
    assert_eq!(legacy.request("com.example/words/lookup", word).await["result"]["length"], 3);
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

#[tokio::test]
async fn a_custom_method_asks_in_legacy_revisions_and_cannot_in_2026_07_28() {
    let server = || {
        Server::new("s").method("example.com/greet", async |ctx: Ctx| {
            let Name { name } = ctx.ask("Who are you?").await?.accepted()?;
            Ok::<_, Error>(json!({ "text": format!("hello {name}") }))
        })
    };
    let mut legacy = Peer::new(server());
    legacy.initialize("2025-11-25").await;
    let id = legacy.start("example.com/greet", json!({})).await;
    let question = legacy.recv().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    legacy.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer })).await;
    assert_eq!(legacy.response(id).await["result"]["text"], "hello Ada");

    let refused = Peer::new(server()).modern("example.com/greet", json!({})).await;
    assert_eq!(
        refused["error"]["message"],
        "`example.com/greet` cannot ask in 2026-07-28; only tools, resources and prompts can",
        "{refused}"
    );
}

#[tokio::test]
async fn a_handler_sends_custom_notifications_and_requests() {
    let server = || {
        Server::new("s").tool(Tool::new("work").handler(|ctx: Ctx| async move {
            ctx.notify("example.com/step", json!({ "number": 1 }))?;
            let reserved = ctx.notify("notifications/message", ()).unwrap_err().to_string();
            let theme: Value = ctx.request("example.com/theme", ()).await?;
            Ok::<_, Error>(format!(
                "{} {}",
                theme["color"],
                reserved.contains("it is a method of the protocol")
            ))
        }))
    };
    let mut peer = Peer::new(server());
    peer.initialize("2025-11-25").await;
    let id = peer.start("tools/call", json!({ "name": "work" })).await;
    let step = peer.recv().await;
    assert_eq!(step, json!({ "jsonrpc": "2.0", "method": "example.com/step", "params": { "number": 1 } }));
    let asked = peer.recv().await;
    assert_eq!(asked["method"], "example.com/theme", "{asked}");
    peer.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "color": "blue" } })).await;
    assert_eq!(peer.response(id).await["result"]["content"][0]["text"], "\"blue\" true");

    let reply = Peer::new(server()).modern("tools/call", json!({ "name": "work" })).await;
    assert_eq!(
        reply["error"]["message"],
        "cannot send `example.com/theme`: a server of 2026-07-28 sends no requests",
        "{reply}"
    );
}
