//! Questions that change between rounds, and what a handler sends and keeps around them.

use crate::wire::Peer;
use bowline_server::{Ctx, Result, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    ok: bool,
}

/// Calls a tool that asks, and accepts every question with `content`. Returns all frames and the response.
async fn converse(server: Server, revision: &str, name: &str, content: &Value) -> (Vec<Value>, Value) {
    let mut peer = Peer::new(server);
    let (mut frames, mut params) = (Vec::new(), json!({ "name": name }));
    let accepted = json!({ "action": "accept", "content": content });
    if revision != "2026-07-28" {
        peer.initialize(revision).await;
        let id = peer.start("tools/call", params).await;
        loop {
            let frame = peer.recv().await;
            if frame.get("method").is_none() && frame["id"] == id {
                return (frames, frame);
            }
            if frame["method"] == "elicitation/create" {
                peer.send(json!({ "jsonrpc": "2.0", "id": frame["id"], "result": accepted })).await;
            }
            frames.push(frame);
        }
    }
    loop {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
            "io.modelcontextprotocol/logLevel": "debug",
        });
        let id = peer.start("tools/call", params.clone()).await;
        let response = loop {
            let frame = peer.recv().await;
            if frame["id"] == id {
                break frame;
            }
            frames.push(frame);
        };
        if response["result"]["resultType"] != "input_required" {
            return (frames, response);
        }
        let asked = response["result"]["inputRequests"].as_object().unwrap();
        let answers =
            asked.keys().map(|key| (key.clone(), accepted.clone())).collect::<serde_json::Map<_, _>>();
        params["inputResponses"] = Value::Object(answers);
        params["requestState"] = response["result"]["requestState"].clone();
        frames.push(json!({ "method": "elicitation/create" }));
    }
}

const ASKING: [&str; 3] = ["2025-06-18", "2025-11-25", "2026-07-28"];

#[tokio::test]
async fn a_question_whose_text_keeps_changing_is_explained() {
    for revision in ASKING {
        for (name, key) in [("plain", "q0"), ("named", "confirm")] {
            let runs = Arc::new(AtomicUsize::new(0));
            let tool = Tool::new(name).handler(move |ctx: Ctx| {
                let run = runs.fetch_add(1, Ordering::Relaxed);
                async move {
                    let text = format!("Delete at 10:0{run}?");
                    let answer = if key == "q0" { ctx.ask(text).await } else { ctx.ask_as(key, text).await };
                    let Confirm { ok } = answer?.accepted()?;
                    Result::<_>::Ok(format!("{ok}"))
                }
            });
            let server = Server::new("s").tool(tool);
            let (frames, reply) = converse(server, revision, name, &json!({ "ok": true })).await;
            let asked = frames.iter().filter(|frame| frame["method"] == "elicitation/create").count();
            assert_eq!(asked, 2, "{revision}");
            let message = reply["error"]["message"].as_str().unwrap();
            for part in [&*format!("question `{key}`"), "Delete at 10:01?", "Delete at 10:02?", "`ctx.once`"]
            {
                assert!(message.contains(part), "{revision}: {message}");
            }
        }
    }
}

#[tokio::test]
async fn a_question_may_change_its_text_once() {
    for revision in ASKING {
        let tool = Tool::new("guess").handler(|ctx: Ctx| async move {
            // The same key with another text, which is a question of its own.
            for text in ["Guess", "Wrong, guess again", "Wrong again"] {
                ctx.ask_as::<Confirm>("guess", text).await?.accepted()?;
            }
            Result::<_>::Ok("done")
        });
        let (_, reply) =
            converse(Server::new("s").tool(tool), revision, "guess", &json!({ "ok": true })).await;
        assert_eq!(reply["result"]["content"][0]["text"], "done", "{revision}: {reply}");

        let runs = Arc::new(AtomicUsize::new(0));
        let tool = Tool::new("count").handler(move |ctx: Ctx| {
            let files = if runs.fetch_add(1, Ordering::Relaxed) == 0 { 5 } else { 6 };
            async move {
                ctx.ask::<Confirm>(format!("Delete {files} files?")).await?.accepted()?;
                Result::<_>::Ok(format!("{files}"))
            }
        });
        let (_, reply) =
            converse(Server::new("s").tool(tool), revision, "count", &json!({ "ok": true })).await;
        assert_eq!(reply["result"]["content"][0]["text"], "6", "{revision}: {reply}");
    }
}

#[tokio::test]
async fn what_a_handler_logs_before_a_question_is_sent_once() {
    for revision in ASKING {
        let tool = Tool::new("work").handler(|ctx: Ctx| async move {
            ctx.info("first");
            ctx.ask::<Confirm>("Go on?").await?.accepted()?;
            ctx.notify("example.com/step", json!({ "step": 2 }))?;
            ctx.ask::<Confirm>("And on?").await?.accepted()?;
            ctx.warning("last");
            Result::<_>::Ok("done")
        });
        let (frames, reply) =
            converse(Server::new("s").tool(tool), revision, "work", &json!({ "ok": true })).await;
        assert_eq!(reply["result"]["content"][0]["text"], "done", "{revision}: {reply}");
        let sent: Vec<_> = frames.iter().map(|frame| frame["method"].as_str().unwrap()).collect();
        let (log, ask, step) = ("notifications/message", "elicitation/create", "example.com/step");
        assert_eq!(sent, [log, ask, step, ask, log], "{revision}");
    }
}

#[tokio::test]
async fn the_state_between_rounds_has_one_limit_in_every_revision() {
    for revision in ASKING {
        let tool = Tool::new("work").handler(|ctx: Ctx| async move {
            ctx.once("page", async { Ok("x".repeat(20_000)) }).await?;
            ctx.ask::<Confirm>("Go on?").await?.accepted()?;
            Result::<_>::Ok("done")
        });
        let (frames, reply) =
            converse(Server::new("s").tool(tool), revision, "work", &json!({ "ok": true })).await;
        assert!(frames.is_empty(), "{revision}: {frames:?}");
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("more than the 16384 allowed") && message.contains("`ctx.once`"),
            "{message}"
        );
    }
}
