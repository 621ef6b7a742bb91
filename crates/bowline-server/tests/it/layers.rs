//! Middleware around calls.

use crate::wire::Peer;
use bowline_server::{
    BoxFuture, Call, CompletionRequest, Middleware, Next, Notifier, Outcome, Prompt, Reply, Server, Tool,
    middleware::{ConcurrencyLimit, RateLimit, Timeout},
};
use bowline_types::{ContentBlock, Method, RpcError};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// Notes every call, refuses one tool, and signs every result.
struct Notary(Arc<Mutex<Vec<String>>>);

impl Middleware for Notary {
    fn call<'a>(&'a self, call: Call, notifier: Notifier, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        self.0.lock().unwrap().push(call.label());
        if call.method == Method::CallTool && call.params.name().is_ok_and(|name| name == "secret") {
            return Box::pin(std::future::ready(Outcome::Failed(RpcError::invalid_params("not for you"))));
        }
        Box::pin(async move {
            let mut outcome = next.run(call, notifier).await;
            if let Outcome::Complete(Reply::Tool(result)) = &mut outcome {
                result.content.push(ContentBlock::text("signed"));
            }
            outcome
        })
    }
}

#[tokio::test]
async fn a_middleware_sees_changes_and_refuses() {
    // proves: CACHE-25
    let seen = Arc::new(Mutex::new(Vec::new()));
    let server = Server::new("office")
        .tool(Tool::new("stamp").handler(|| "stamped"))
        .tool(Tool::new("secret").handler(|| "hidden"))
        .layer(Notary(Arc::clone(&seen)));
    let mut peer = Peer::new(server);
    peer.initialize("2025-11-25").await;
    let stamped = peer.request("tools/call", json!({ "name": "stamp" })).await;
    assert_eq!(stamped["result"]["content"][1]["text"], "signed", "{stamped}");
    let refused = peer.request("tools/call", json!({ "name": "secret" })).await;
    assert_eq!(refused["error"]["message"], "not for you");
    peer.request("tools/list", json!({})).await;
    assert_eq!(*seen.lock().unwrap(), ["tools/call stamp", "tools/call secret", "tools/list"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_times_out() {
    let server = Server::new("slow")
        .tool(Tool::new("wait").handler(|| async { std::future::pending::<()>().await }))
        .layer(Timeout(Duration::from_secs(3)));
    let mut peer = Peer::new(server);
    peer.initialize("2025-11-25").await;
    let reply = peer.request("tools/call", json!({ "name": "wait" })).await;
    assert_eq!(reply["error"]["message"], "tools/call wait took longer than 3s");
}

// proves: COMP-10, COMP-18
#[tokio::test]
async fn a_flood_of_completions_is_refused() {
    let prompt = Prompt::new("plan")
        .argument(bowline_types::PromptArgument::new("step"))
        .complete("step", |_: CompletionRequest| vec!["dig"])
        .handler(|| "dig");
    let server = Server::new("busy").prompt(prompt).layer(RateLimit::new(2, Duration::from_secs(3600)));
    let mut peer = Peer::new(server);
    peer.initialize("2025-11-25").await;
    let typed = json!({ "ref": { "type": "ref/prompt", "name": "plan" }, "argument": { "name": "step", "value": "" } });
    for _ in 0..2 {
        let reply = peer.request("completion/complete", typed.clone()).await;
        assert_eq!(reply["result"]["completion"]["values"], json!(["dig"]), "{reply}");
    }
    let refused = peer.request("completion/complete", typed).await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
}

#[tokio::test]
async fn a_flood_is_refused_with_the_time_to_wait() {
    let server = Server::new("busy")
        .tool(Tool::new("hit").handler(|| "ok"))
        .layer(RateLimit::new(2, Duration::from_secs(3600)));
    let mut peer = Peer::new(server);
    peer.initialize("2025-11-25").await;
    for _ in 0..2 {
        let reply = peer.request("tools/call", json!({ "name": "hit" })).await;
        assert_eq!(reply["result"]["content"][0]["text"], "ok");
    }
    let refused = peer.request("tools/call", json!({ "name": "hit" })).await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    assert!(refused["error"]["data"]["retryAfterMs"].as_u64().is_some_and(|wait| wait > 0), "{refused}");
    let list = peer.request("tools/list", json!({})).await;
    assert!(list.get("result").is_some());
}

#[tokio::test]
async fn concurrent_calls_are_limited() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let running = Arc::new(Mutex::new((0, 0)));
    let tool = {
        let (gate, running) = (Arc::clone(&gate), Arc::clone(&running));
        Tool::new("enter").handler(move || {
            let (gate, running) = (Arc::clone(&gate), Arc::clone(&running));
            async move {
                {
                    let mut running = running.lock().unwrap();
                    running.0 += 1;
                    running.1 = running.0.max(running.1);
                }
                gate.acquire().await.unwrap().forget();
                running.lock().unwrap().0 -= 1;
            }
        })
    };
    let mut peer = Peer::new(Server::new("door").tool(tool).layer(ConcurrencyLimit::new(2)));
    peer.initialize("2025-11-25").await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(peer.start("tools/call", json!({ "name": "enter" })).await);
    }
    peer.request("ping", json!({})).await;
    gate.add_permits(5);
    for id in ids {
        peer.response(id).await;
    }
    assert_eq!(running.lock().unwrap().1, 2);
}

/// Panics before, or while, it has the call run.
struct Clumsy;

impl Middleware for Clumsy {
    fn call<'a>(&'a self, call: Call, notifier: Notifier, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let name = call.params.name().unwrap_or_default().into_owned();
        assert_ne!(name, "before");
        Box::pin(async move {
            tokio::task::yield_now().await;
            assert_ne!(name, "while");
            next.run(call, notifier).await
        })
    }
}

#[tokio::test]
async fn a_panic_in_middleware_is_an_error_response_and_the_connection_continues() {
    let guarded = || Tool::new("guarded").guard(|_| panic!("in the guard")).handler(|| "seen");
    let layered = Server::new("bang").tool(Tool::new("fine").handler(|| "fine")).layer(Clumsy);
    for (server, names) in
        [(layered, &["before", "while"][..]), (Server::new("bang").tool(guarded()), &["guarded"])]
    {
        let mut peer = Peer::new(server);
        peer.initialize("2025-11-25").await;
        for name in names {
            let reply = peer.request("tools/call", json!({ "name": name })).await;
            assert_eq!(reply["error"]["code"], -32603, "{reply}");
        }
        assert_eq!(peer.request("ping", json!({})).await["result"], json!({}));
    }
}
