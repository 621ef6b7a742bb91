//! One handler that asks, for clients of every revision.

use crate::wire::Peer;
use bowline_server::{Ctx, Resource, Result, Server, Tool};
use bowline_types::CacheScope;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

#[derive(Deserialize, JsonSchema)]
struct Party {
    guests: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    ok: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Who {
    name: String,
}

/// A tool that asks once or twice, with work before the questions that must run once.
fn book(worked: Arc<AtomicUsize>) -> Tool {
    Tool::new("book").handler(move |ctx: Ctx, party: Party| find_table(ctx, party, Arc::clone(&worked)))
}

async fn find_table(ctx: Ctx, Party { guests }: Party, worked: Arc<AtomicUsize>) -> Result<String> {
    let reserve = async {
        worked.fetch_add(1, Ordering::Relaxed);
        Ok(7)
    };
    let table: u32 = ctx.once("table", reserve).await?;
    if guests > 8 && !ctx.ask::<Confirm>("A large party. Go on?").await?.accepted()?.ok {
        return Ok(format!("table {table} stays free"));
    }
    let Who { name } = ctx.ask("Under which name?").await?.accepted()?;
    Ok(format!("table {table} for {guests}, {name}"))
}

/// Answers every question the way a user would.
fn answer(question: &Value) -> Value {
    let params = &question["params"];
    match params["message"].as_str().unwrap() {
        "A large party. Go on?" => json!({ "action": "accept", "content": { "ok": true } }),
        _ => json!({ "action": "accept", "content": { "name": "Ada" } }),
    }
}

async fn book_legacy(revision: &str, server: Server) -> Value {
    let mut peer = Peer::new(server);
    peer.initialize(revision).await;
    let id = peer.start("tools/call", json!({ "name": "book", "arguments": { "guests": 10 } })).await;
    loop {
        let frame = peer.recv().await;
        if frame["method"] == "elicitation/create" {
            let reply = json!({ "jsonrpc": "2.0", "id": frame["id"], "result": answer(&frame) });
            peer.send(reply).await;
        } else {
            assert_eq!(frame["id"], id);
            return frame;
        }
    }
}

#[tokio::test]
async fn a_legacy_client_is_asked_over_its_connection() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let worked = Arc::new(AtomicUsize::new(0));
        let reply = book_legacy(revision, Server::new("inn").tool(book(Arc::clone(&worked)))).await;
        assert_eq!(reply["result"]["content"][0]["text"], "table 7 for 10, Ada", "{reply}");
        assert_eq!(worked.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_gets_a_failed_result() {
    for revision in ["2024-11-05", "2025-03-26"] {
        let reply = book_legacy(revision, Server::new("inn").tool(book(Arc::default()))).await;
        assert_eq!(reply["result"]["isError"], true, "{reply}");
        assert_eq!(reply["result"]["content"][0]["text"], "the client does not support elicitation");
    }
}

#[tokio::test]
async fn a_modern_client_answers_with_its_retry() {
    let worked = Arc::new(AtomicUsize::new(0));
    let mut peer = Peer::new(Server::new("inn").tool(book(Arc::clone(&worked))));
    let mut params = json!({ "name": "book", "arguments": { "guests": 10 } });
    for round in 0.. {
        let reply = peer.modern("tools/call", params.clone()).await;
        let result = &reply["result"];
        if result["resultType"] == "complete" {
            assert_eq!(result["content"][0]["text"], "table 7 for 10, Ada", "{reply}");
            assert_eq!(round, 2);
            break;
        }
        assert_eq!(result["resultType"], "input_required", "{reply}");
        let responses: serde_json::Map<_, _> = result["inputRequests"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, asked)| (key.clone(), answer(asked)))
            .collect();
        params["inputResponses"] = responses.into();
        params["requestState"] = result["requestState"].clone();
    }
    assert_eq!(worked.load(Ordering::Relaxed), 1);
}

/// Asks two things at once, then a third.
fn interview() -> Tool {
    Tool::new("interview").handler(|ctx: Ctx| async move {
        let (first, second) = tokio::join!(ctx.ask::<Who>("First?"), ctx.ask::<Who>("Second?"));
        let (first, second) = (first?.accepted()?, second?.accepted()?);
        let third = ctx.ask_as::<Who>("last", "Third?").await?.accepted()?;
        Result::<_>::Ok(format!("{} {} {}", first.name, second.name, third.name))
    })
}

/// The answer to a round: each question gets its own message as the name.
fn echo(result: &Value) -> Value {
    let requests = result["inputRequests"].as_object().unwrap();
    let reply =
        |asked: &Value| json!({ "action": "accept", "content": { "name": asked["params"]["message"] } });
    requests.iter().map(|(key, asked)| (key.clone(), reply(asked))).collect::<serde_json::Map<_, _>>().into()
}

// proves: CACHE-04
#[tokio::test]
async fn a_question_has_no_cache_hints() {
    let resource = Resource::new("h://asks", "asks").cache(Duration::from_secs(5), CacheScope::Public);
    let resource = resource.handler(|ctx: Ctx| async move {
        let _: Who = ctx.ask("Which?").await?.accepted()?;
        Result::<_>::Ok("x")
    });
    let mut peer = Peer::new(Server::new("hints").resource(resource));
    let mut params = json!({ "uri": "h://asks" });
    let asked = peer.modern("resources/read", params.clone()).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert!(asked["result"].get("ttlMs").is_none(), "{asked}");
    assert!(asked["result"].get("cacheScope").is_none(), "{asked}");
    params["inputResponses"] = json!({ "q0": { "action": "accept", "content": { "name": "Ada" } } });
    params["requestState"] = asked["result"]["requestState"].clone();
    let read = peer.modern("resources/read", params).await;
    assert_eq!(
        (&read["result"]["ttlMs"], &read["result"]["cacheScope"]),
        (&json!(5_000), &json!("public")),
        "{read}"
    );
}

#[tokio::test]
async fn questions_joined_go_out_in_one_round() {
    // proves: MRTR-04, MRTR-05, MRTR-06, MRTR-07, MRTR-09, BASE-24
    let mut peer = Peer::new(Server::new("press").tool(interview()));
    let mut params = json!({ "name": "interview" });
    let first = peer.modern("tools/call", params.clone()).await;
    let asked = first["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(asked.keys().collect::<Vec<_>>(), ["q0", "q1"], "{first}");
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    assert!(first["result"]["requestState"].is_string(), "{first}");
    for request in asked.values() {
        assert_eq!(request["method"], "elicitation/create");
        assert!(request.get("id").is_none() && request.get("jsonrpc").is_none(), "{request}");
    }
    params["inputResponses"] = echo(&first["result"]);
    params["requestState"] = first["result"]["requestState"].clone();
    let second = peer.modern("tools/call", params.clone()).await;
    let asked = second["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(asked.keys().collect::<Vec<_>>(), ["last"], "{second}");
    params["inputResponses"] = echo(&second["result"]);
    params["requestState"] = second["result"]["requestState"].clone();
    let third = peer.modern("tools/call", params).await;
    assert_eq!(third["result"]["content"][0]["text"], "First? Second? Third?", "{third}");
}

#[tokio::test]
async fn a_missing_answer_is_asked_for_again() {
    let mut peer = Peer::new(Server::new("press").tool(interview()));
    let mut params = json!({ "name": "interview" });
    let first = peer.modern("tools/call", params.clone()).await;
    params["inputResponses"] = echo(&first["result"]);
    params["inputResponses"].as_object_mut().unwrap().remove("q1");
    params["requestState"] = first["result"]["requestState"].clone();
    let second = peer.modern("tools/call", params).await;
    let asked = second["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(asked.keys().collect::<Vec<_>>(), ["q1"], "{second}");
}

#[tokio::test]
async fn joined_questions_reach_a_legacy_client_before_the_first_is_answered() {
    let mut peer = Peer::new(Server::new("press").tool(interview()));
    peer.initialize("2025-11-25").await;
    let id = peer.start("tools/call", json!({ "name": "interview" })).await;
    let asked = [peer.recv().await, peer.recv().await];
    assert_eq!(asked[0]["params"]["message"], "First?");
    assert_eq!(asked[1]["params"]["message"], "Second?");
    // Answered in the other order.
    for question in asked.iter().rev() {
        let content = json!({ "name": question["params"]["message"] });
        peer.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": content } }))
            .await;
    }
    let third = peer.recv().await;
    let content = json!({ "name": "Third?" });
    peer.send(
        json!({ "jsonrpc": "2.0", "id": third["id"], "result": { "action": "accept", "content": content } }),
    )
    .await;
    let reply = peer.response(id).await;
    assert_eq!(reply["result"]["content"][0]["text"], "First? Second? Third?", "{reply}");
}

#[tokio::test]
async fn a_declined_question_is_reported_to_the_model() {
    // proves: ELIF-35, ELIF-36
    for (action, text) in [("decline", "the user declined"), ("cancel", "the user cancelled")] {
        let mut modern = Peer::new(Server::new("inn").tool(book(Arc::default())));
        let mut params = json!({ "name": "book", "arguments": { "guests": 2 } });
        let asked = modern.modern("tools/call", params.clone()).await;
        params["inputResponses"] = json!({ "q0": { "action": action } });
        params["requestState"] = asked["result"]["requestState"].clone();
        let reply = modern.modern("tools/call", params).await;
        assert_eq!(reply["result"]["isError"], true, "{reply}");
        assert_eq!(reply["result"]["content"][0]["text"], text);

        let mut legacy = Peer::new(Server::new("inn").tool(book(Arc::default())));
        legacy.initialize("2025-06-18").await;
        let id = legacy.start("tools/call", json!({ "name": "book", "arguments": { "guests": 2 } })).await;
        let question = legacy.recv().await;
        legacy.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": action } })).await;
        let reply = legacy.response(id).await;
        assert_eq!(reply["result"]["content"][0]["text"], text, "{reply}");
    }
}

#[tokio::test]
async fn an_error_of_a_legacy_client_is_reported_to_the_model() {
    // proves: ELIF-36
    let mut peer = Peer::new(Server::new("inn").tool(book(Arc::default())));
    peer.initialize("2025-06-18").await;
    let id = peer.start("tools/call", json!({ "name": "book", "arguments": { "guests": 2 } })).await;
    let question = peer.recv().await;
    let error = json!({ "code": -32603, "message": "no window to ask in" });
    peer.send(json!({ "jsonrpc": "2.0", "id": question["id"], "error": error })).await;
    let reply = peer.response(id).await;
    let text = "the client answered with an error: no window to ask in";
    assert_eq!(reply["result"]["content"][0]["text"], text, "{reply}");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_its_form_is_refused() {
    let mut peer = Peer::new(Server::new("inn").tool(book(Arc::default())));
    let mut params = json!({ "name": "book", "arguments": { "guests": 2 } });
    let asked = peer.modern("tools/call", params.clone()).await;
    params["inputResponses"] = json!({ "q0": { "action": "accept", "content": { "name": 7 } } });
    params["requestState"] = asked["result"]["requestState"].clone();
    let reply = peer.modern("tools/call", params).await;
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    let message = reply["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("the answer does not match the form: "), "{message}");
}

/// What a state meets when it comes back the wrong way.
async fn refused(change: impl FnOnce(&mut Value, &str)) -> Value {
    let mut peer = Peer::new(Server::new("inn").tool(book(Arc::default())));
    let mut params = json!({ "name": "book", "arguments": { "guests": 2 } });
    let asked = peer.modern("tools/call", params.clone()).await;
    params["inputResponses"] = json!({ "q0": { "action": "accept", "content": { "name": "Ada" } } });
    change(&mut params, asked["result"]["requestState"].as_str().unwrap());
    let reply = peer.modern("tools/call", params).await;
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    reply["error"]["message"].clone()
}

#[tokio::test]
async fn a_state_that_was_altered_or_moved_is_refused() {
    // proves: MRTR-10, MRTR-11, MRTR-12
    let altered = refused(|params, state| {
        let last = if state.ends_with('A') { "B" } else { "A" };
        params["requestState"] = format!("{}{last}", &state[..state.len() - 1]).into();
    });
    let moved = refused(|params, state| {
        params["arguments"]["guests"] = 3.into();
        params["requestState"] = state.into();
    });
    let foreign = refused(|params, _| params["requestState"] = "bm90IG91cnM".into());
    assert!(altered.await.as_str().unwrap().contains("requestState"));
    assert_eq!(moved.await, "`requestState` was altered or belongs to another request");
    assert_eq!(foreign.await, "`requestState` was not created by this server");
}

#[tokio::test]
async fn a_state_is_valid_for_one_retry_of_its_user() {
    // proves: MRTR-14, MRTR-17, ELIF-37, ELIF-39
    let server = Server::new("inn").tool(book(Arc::default())).build().unwrap();
    let (mut ada, mut bob) = (Peer::of(&server, Some("ada")), Peer::of(&server, Some("bob")));
    let mut params = json!({ "name": "book", "arguments": { "guests": 2 } });
    let asked = ada.modern("tools/call", params.clone()).await;
    params["inputResponses"] = json!({ "q0": { "action": "accept", "content": { "name": "Ada" } } });
    params["requestState"] = asked["result"]["requestState"].clone();
    let stolen = bob.modern("tools/call", params.clone()).await;
    assert_eq!(stolen["error"]["message"], "`requestState` was altered or belongs to another request");
    let used = ada.modern("tools/call", params.clone()).await;
    assert_eq!(used["result"]["content"][0]["text"], "table 7 for 2, Ada", "{used}");
    let again = ada.modern("tools/call", params).await;
    assert_eq!(again["error"]["message"], "`requestState` was used before; start the call again");
}

#[tokio::test]
async fn a_state_expires() {
    // proves: MRTR-15
    let limits = bowline_server::Limits::default().question(std::time::Duration::ZERO);
    let mut peer = Peer::new(Server::new("inn").tool(book(Arc::default())).limits(limits));
    let mut params = json!({ "name": "book", "arguments": { "guests": 2 } });
    let asked = peer.modern("tools/call", params.clone()).await;
    params["requestState"] = asked["result"]["requestState"].clone();
    let reply = peer.modern("tools/call", params).await;
    assert_eq!(reply["error"]["message"], "`requestState` has expired; start the call again", "{reply}");
}

#[tokio::test]
async fn a_question_may_stay_answerable_for_ever() {
    let limits = bowline_server::Limits::default().question(std::time::Duration::MAX);
    let mut peer = Peer::new(Server::new("inn").tool(book(Arc::default())).limits(limits));
    let mut params = json!({ "name": "book", "arguments": { "guests": 2 } });
    let asked = peer.modern("tools/call", params.clone()).await;
    params["requestState"] = asked["result"]["requestState"].clone();
    let reply = peer.modern("tools/call", params).await;
    assert_eq!(reply["result"]["resultType"], "input_required", "{reply}");
}

#[tokio::test]
async fn a_handler_that_never_stops_asking_is_stopped() {
    let endless = Tool::new("endless").handler(|ctx: Ctx| async move {
        for _ in 0.. {
            ctx.ask::<Who>("And?").await?;
        }
        Result::<_>::Ok("never")
    });
    let mut peer = Peer::new(Server::new("loop").tool(endless));
    peer.initialize("2025-06-18").await;
    let id = peer.start("tools/call", json!({ "name": "endless" })).await;
    let mut questions = 0;
    let reply = loop {
        let frame = peer.recv().await;
        if frame["id"] == id && frame.get("method").is_none() {
            break frame;
        }
        questions += 1;
        let result = json!({ "action": "decline" });
        peer.send(json!({ "jsonrpc": "2.0", "id": frame["id"], "result": result })).await;
    };
    assert_eq!(questions, 10);
    assert_eq!(reply["error"]["code"], -32603, "{reply}");
}

#[tokio::test]
async fn a_modern_client_that_cannot_be_asked_gets_the_missing_capability() {
    // proves: META-18, META-19, META-20, MRTR-08, BASE-36
    let mut peer = Peer::new(Server::new("inn").tool(book(Arc::default())));
    let params = json!({ "name": "book", "arguments": { "guests": 2 } });
    let asked = peer.modern("tools/call", params.clone()).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    // What an earlier request declared does not count.
    peer.capabilities = json!({});
    let reply = peer.modern("tools/call", params).await;
    assert_eq!(reply["error"]["code"], -32021, "{reply}");
    assert_eq!(reply["error"]["data"], json!({ "requiredCapabilities": { "elicitation": { "form": {} } } }));
}

#[tokio::test]
async fn a_question_asked_from_another_task_ends_the_round_as_well() {
    let spawned = Tool::new("spawned").handler(|ctx: Ctx| async move {
        let asking = tokio::spawn(async move { ctx.ask::<Who>("Spawned?").await });
        Result::<_>::Ok(asking.await??.accepted()?.name)
    });
    let mut peer = Peer::new(Server::new("tasks").tool(spawned));
    let mut params = json!({ "name": "spawned" });
    let asked = peer.modern("tools/call", params.clone()).await;
    params["inputResponses"] = echo(&asked["result"]);
    params["requestState"] = asked["result"]["requestState"].clone();
    let reply = peer.modern("tools/call", params).await;
    assert_eq!(reply["result"]["content"][0]["text"], "Spawned?", "{reply}");
}

#[tokio::test]
async fn a_question_with_a_name_can_be_answered_ahead() {
    // proves: MRTR-29, MRTR-30, MRTR-31
    let greet = Tool::new("greet").handler(|ctx: Ctx| async move {
        let Who { name } = ctx.ask_as("who", "Who are you?").await?.accepted()?;
        let Confirm { ok } = ctx.ask(format!("Greet {name}?")).await?.accepted()?;
        Ok::<_, bowline_server::Error>(format!("{name}: {ok}"))
    });
    let mut peer = Peer::new(Server::new("t").tool(greet));
    let accept = |content: Value| json!({ "action": "accept", "content": content });
    let early =
        json!({ "who": accept(json!({ "name": "Ada" })), "q0": accept(json!({ "ok": true })), "else": {} });
    let asked = peer.modern("tools/call", json!({ "name": "greet", "inputResponses": early })).await;
    // A place in the order of questions is no name.
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["q0"]);
    let retry = json!({
        "name": "greet",
        "requestState": asked["result"]["requestState"],
        "inputResponses": { "q0": accept(json!({ "ok": false })) },
    });
    let done = peer.modern("tools/call", retry).await;
    assert_eq!(done["result"]["content"][0]["text"], "Ada: false");

    for wrong in [json!({ "who": 5 }), json!({ "who": { "action": "maybe" } }), json!([]), json!("who")] {
        let reply = peer.modern("tools/call", json!({ "name": "greet", "inputResponses": wrong })).await;
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_before_the_handshake_is_complete() {
    // proves: LIFE-06
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Name {
        name: String,
    }
    let greet = || {
        bowline_server::Tool::new("greet").handler(|ctx: bowline_server::Ctx| async move {
            ctx.progress(1.0, None);
            ctx.log(bowline_types::LoggingLevel::Error, "about to ask");
            let Name { name } = ctx.ask("Who are you?").await?.accepted()?;
            Ok::<_, bowline_server::Error>(format!("hello {name}"))
        })
    };
    let opening = json!({
        "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "early", "version": "1" },
    });
    let mut peer = Peer::new(Server::new("shop").tool(greet()));
    peer.request("initialize", opening.clone()).await;
    let call = peer.start("tools/call", json!({ "name": "greet", "_meta": { "progressToken": 1 } })).await;
    // Log messages and pings may pass; the question and the progress wait.
    let log = peer.recv().await;
    assert_eq!(log["method"], "notifications/message", "{log}");
    let early = tokio::time::timeout(std::time::Duration::from_secs(5), peer.recv()).await;
    assert!(early.is_err(), "sent before `notifications/initialized`: {early:?}");
    peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    let question = peer.recv().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    peer.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer })).await;
    let reply = peer.response(call).await;
    assert_eq!(reply["result"]["content"][0]["text"], "hello Ada");

    // A client that never completes the handshake is not asked at all.
    let mut peer = Peer::new(Server::new("shop").tool(greet()));
    peer.request("initialize", opening).await;
    let reply = peer.request("tools/call", json!({ "name": "greet" })).await;
    let text = reply["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("has not sent `notifications/initialized`"), "{reply}");
}

#[tokio::test]
async fn answers_are_checked_against_the_pattern_of_their_field() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Code {
        #[schemars(regex(pattern = "^[A-Z]{3}$"))]
        code: String,
    }
    let tool = bowline_server::Tool::new("code").handler(|ctx: bowline_server::Ctx| async move {
        let Code { code } = ctx.ask("Which currency?").await?.accepted()?;
        Ok::<_, bowline_server::Error>(code)
    });
    let server = Server::new("shop").tool(tool).build().unwrap();
    for (given, fits) in [("EUR", true), ("euro", false), ("EUR ", false)] {
        let mut peer = Peer::of(&server, None);
        peer.initialize("2025-11-25").await;
        let call = peer.start("tools/call", json!({ "name": "code" })).await;
        let question = peer.recv().await;
        let field = &question["params"]["requestedSchema"]["properties"]["code"];
        assert_eq!(field["pattern"], "^[A-Z]{3}$", "{question}");
        let answer = json!({ "action": "accept", "content": { "code": given } });
        peer.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer })).await;
        let reply = peer.response(call).await;
        let shown = reply.to_string();
        if fits {
            assert_eq!(reply["result"]["content"][0]["text"], given, "{shown}");
        } else {
            assert!(shown.contains("`code`: expected text that matches the pattern"), "{shown}");
        }
    }
}

#[tokio::test]
async fn a_user_is_not_sent_to_an_unencrypted_url() {
    // proves: ELIU-29
    let visit = |name: &'static str, url: &'static str| {
        Tool::new(name).handler(move |ctx: Ctx| async move {
            ctx.ask_url("Sign in.", url).await?;
            Result::<_>::Ok("signed in")
        })
    };
    let server = Server::new("s")
        .tool(visit("open", "http://example.com/sign-in"))
        .tool(visit("secure", "https://example.com/sign-in"));
    let mut peer = Peer::new(server);
    peer.capabilities = json!({ "elicitation": { "url": {} } });
    let refused = peer.modern("tools/call", json!({ "name": "open" })).await;
    assert!(refused["result"].get("inputRequests").is_none(), "{refused}");
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    let asked = peer.modern("tools/call", json!({ "name": "secure" })).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
}
