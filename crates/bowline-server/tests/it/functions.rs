//! Middleware from functions, of single tools, and what it knows of the end of a call.

use crate::wire::Peer;
use bowline_server::{
    BoxFuture, Call, Ctx, Middleware, Next, Notifier, Outcome, OutcomeKind, Server, Tool, middleware::from_fn,
};
use bowline_types::RpcError;
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// Runs the call after a while.
struct Slow;

impl Middleware for Slow {
    fn call<'a>(&'a self, call: Call, notifier: Notifier, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            next.run(call, notifier).await
        })
    }
}

#[tokio::test]
async fn middleware_of_a_tool_runs_inside_that_of_the_server_and_only_for_this_tool() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let seen = Arc::clone(&seen);
        from_fn(move |call, next| {
            seen.lock().unwrap().push(format!("{name} {}", call.label()));
            next.run(call)
        })
    };
    let refuse = from_fn(|_, _| async { Outcome::Failed(RpcError::invalid_params("not today")) });
    let server = Server::new("s")
        .layer(note("server"))
        .tool(Tool::new("plain").handler(|| "plain"))
        .tool(Tool::new("layered").layer(note("outer")).layer(note("inner")).handler(|| "layered"))
        .tool(Tool::new("later").layer(note("outer")).handler(|| async { "later" }))
        .tool(Tool::new("closed").layer(refuse).handler(|| "never"))
        .tool(Tool::new("bang").layer(Slow).handler(|| -> String { panic!("in the tool") }));
    let mut peer = Peer::new(server);
    peer.initialize("2025-11-25").await;
    for name in ["plain", "layered", "later"] {
        let reply = peer.request("tools/call", json!({ "name": name })).await;
        assert_eq!(reply["result"]["content"][0]["text"], name, "{reply}");
    }
    let expected = [
        "server tools/call plain",
        "server tools/call layered",
        "outer tools/call layered",
        "inner tools/call layered",
        "server tools/call later",
        "outer tools/call later",
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
    let closed = peer.request("tools/call", json!({ "name": "closed" })).await;
    assert_eq!(closed["error"]["message"], "not today", "{closed}");
    let bang = peer.request("tools/call", json!({ "name": "bang" })).await;
    assert_eq!(bang["error"]["message"], "`bang` panicked", "{bang}");
}

tokio::task_local! {
    static USER: &'static str;
}

#[tokio::test]
async fn a_task_local_of_a_middleware_is_visible_in_every_handler() {
    let user = || USER.try_with(|user| *user).unwrap_or("nobody");
    for revision in ["2025-11-25", "2026-07-28"] {
        let scoped = |call: Call, next: bowline_server::NextCall| USER.scope("ada", next.run(call));
        let server = Server::new("s")
            .tool(Tool::new("at-once").handler(user))
            .tool(Tool::new("async").handler(move || async move { user() }))
            .tool(Tool::new("later").handler(move || async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                user()
            }))
            .tool(Tool::new("asks").handler(move |ctx: Ctx| async move {
                ctx.ask::<Sure>("Sure?").await?.accepted()?;
                bowline_server::Result::<_>::Ok(user())
            }))
            .layer(from_fn(scoped));
        let mut peer = Peer::new(server);
        let modern = revision == "2026-07-28";
        if !modern {
            peer.initialize(revision).await;
        }
        for name in ["at-once", "async", "later"] {
            let params = json!({ "name": name });
            let call = peer.call(modern, params).await;
            assert_eq!(call["result"]["content"][0]["text"], "ada", "{name} in {revision}");
        }
        let answered = json!({ "action": "accept", "content": { "sure": true } });
        let reply = if modern {
            let asked = peer.call(true, json!({ "name": "asks" })).await;
            let state = &asked["result"]["requestState"];
            let retry =
                json!({ "name": "asks", "inputResponses": { "q0": answered }, "requestState": state });
            peer.call(true, retry).await
        } else {
            let id = peer.start("tools/call", json!({ "name": "asks" })).await;
            let asked = peer.recv().await;
            peer.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answered })).await;
            peer.response(id).await
        };
        assert_eq!(reply["result"]["content"][0]["text"], "ada", "{revision}: {reply}");
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sure {
    #[expect(dead_code, reason = "only that it was answered counts")]
    sure: bool,
}

#[tokio::test]
async fn an_outcome_distinguishes_a_failed_tool_from_a_failed_call() {
    let kinds = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&kinds);
    let server = Server::new("s")
        .tool(Tool::new("fine").handler(|| "fine"))
        .tool(Tool::new("fails").handler(|| Err::<String, _>(bowline_server::Error::tool("no luck"))))
        .tool(Tool::new("refuses").handler(|| Err::<String, _>(bowline_server::Error::invalid_params("no"))))
        .tool(Tool::new("asks").handler(|ctx: Ctx| async move {
            ctx.ask::<Sure>("Sure?").await?.accepted()?;
            bowline_server::Result::<_>::Ok("sure")
        }))
        .layer(from_fn(move |call, next| {
            let noted = Arc::clone(&noted);
            async move {
                let outcome = next.run(call).await;
                noted.lock().unwrap().push(outcome.kind());
                outcome
            }
        }));
    let mut peer = Peer::new(server);
    for name in ["fine", "fails", "refuses", "asks"] {
        peer.modern("tools/call", json!({ "name": name })).await;
    }
    let expected =
        [OutcomeKind::Complete, OutcomeKind::ToolError, OutcomeKind::Failed, OutcomeKind::NeedsInput];
    assert_eq!(*kinds.lock().unwrap(), expected);
}
