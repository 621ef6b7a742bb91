//! A modern server asks back inside of results; the client answers and asks again.

use crate::support::*;
use bowline_client::{Answer, Client, ClientBuilder};
use bowline_types::{CreateMessageResult, Role, Root, RpcError};
use serde_json::{Value, json};

fn question(message: &str) -> Value {
    let schema =
        json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    json!({ "method": "elicitation/create", "params": { "message": message, "requestedSchema": schema } })
}

#[expect(clippy::needless_pass_by_value, reason = "the values are written where they are used")]
fn required(requests: Value, state: Option<&str>) -> Value {
    let mut result = json!({ "resultType": "input_required", "inputRequests": requests });
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    result
}

fn complete(text: &str) -> Value {
    let mut result = text_result(text);
    result["resultType"] = json!("complete");
    result
}

fn answering() -> ClientBuilder {
    Client::builder()
        .on_ask(|ask| async move { Answer::accept(json!({ "name": format!("re: {}", ask.message) })) })
        .on_sample(|_| async { CreateMessageResult::new(Role::Assistant, "hm", "model") })
        .roots([Root::new("file:///no-such-folder-at-all")])
}

fn without_meta(request: &Value) -> Value {
    let mut params = request["params"].clone();
    params.as_object_mut().unwrap().remove("_meta");
    params
}

#[tokio::test]
async fn questions_are_answered_and_the_request_made_again() {
    // proves: MRTR-20, MRTR-21, MRTR-23, MRTR-24, MRTR-26, MRTR-27, BASE-03, BASE-49
    let (client, mut peer) = connect(answering(), V2026_07_28, json!({ "tools": {} })).await;
    let state = "{\"looks\": \"like JSON\"} \u{7f}\n\"\\ ünïcode 🪢";
    let call = client.call("greet", json!({ "b": 1, "a": [1.0, null] })).meta("com.example/k", json!(1));
    let (result, ()) = both(call, async {
        let first = peer.expect("tools/call").await;
        let sample = json!({
            "method": "sampling/createMessage",
            "params": { "messages": [{ "role": "user", "content": { "type": "text", "text": "?" } }], "maxTokens": 5 },
        });
        let requests = json!({
            "who": question("who"), "model": sample, "roots": { "method": "roots/list" }, "and": question("and"),
        });
        peer.reply(&first, required(requests, Some(state))).await;
        let second = peer.expect("tools/call").await;
        assert_ne!(first["id"], second["id"]);
        assert_eq!(first["params"]["_meta"], second["params"]["_meta"]);
        assert_eq!(second["params"]["_meta"]["com.example/k"], 1);
        let mut expected = without_meta(&first);
        expected["requestState"] = json!(state);
        let words = json!({ "type": "text", "text": "hm" });
        expected["inputResponses"] = json!({
            "who": { "action": "accept", "content": { "name": "re: who" } },
            "model": { "role": "assistant", "content": words, "model": "model" },
            "roots": { "roots": [] },
            "and": { "action": "accept", "content": { "name": "re: and" } },
        });
        assert_eq!(without_meta(&second), expected);
        peer.reply(&second, complete("done")).await;
    })
    .await;
    assert_eq!(result.unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_state_is_sent_only_when_there_was_one() {
    // proves: MRTR-25, MRTR-22
    let (client, mut peer) = connect(answering(), V2026_07_28, json!({ "tools": {} })).await;
    let (result, ()) = both(client.call("a", ()), async {
        let request = peer.expect("tools/call").await;
        peer.reply(&request, required(json!({ "q": question("q") }), None)).await;
        let request = peer.expect("tools/call").await;
        assert!(request["params"].get("requestState").is_none());
        assert!(request["params"].get("inputResponses").is_some());
        // Only a state: nothing to answer, and the earlier answers are not repeated.
        peer.reply(&request, json!({ "resultType": "input_required", "requestState": "s2" })).await;
        let request = peer.expect("tools/call").await;
        assert_eq!(without_meta(&request), json!({ "name": "a", "requestState": "s2" }));
        peer.reply(&request, complete("done")).await;
    })
    .await;
    result.unwrap();
}

#[tokio::test(start_paused = true)]
async fn answers_go_to_no_other_request() {
    // proves: MRTR-28
    let (client, mut peer) = connect(answering(), V2026_07_28, json!({ "tools": {} })).await;
    let calls = async { tokio::join!(client.call("a", ()), client.call("b", ())) };
    both(calls, async {
        let (a, b) = (peer.next().await, peer.next().await);
        peer.reply(&a, required(json!({ "q": question("q") }), Some("of a"))).await;
        let retry = peer.next().await;
        assert_eq!(
            (&retry["params"]["name"], &retry["params"]["requestState"]),
            (&json!("a"), &json!("of a"))
        );
        peer.reply(&b, json!({ "resultType": "input_required", "requestState": "of b" })).await;
        let retry = peer.next().await;
        assert_eq!(without_meta(&retry), json!({ "name": "b", "requestState": "of b" }));
        let (_, ping) = both(client.ping().timeout(std::time::Duration::from_secs(1)), peer.next()).await;
        assert_eq!(without_meta(&ping), json!({}));
        // Nobody waits for what is left.
    })
    .await
    .0
    .0
    .unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn only_tools_prompts_and_resources_may_request_input() {
    let (client, mut peer) = connect(answering(), V2026_07_28, everything()).await;
    let (result, ()) = both(client.prompt("p", ()), async {
        let request = peer.expect("prompts/get").await;
        peer.reply(&request, required(json!({ "q": question("q") }), None)).await;
        let request = peer.expect("prompts/get").await;
        peer.reply(&request, json!({ "resultType": "complete", "messages": [] })).await;
    })
    .await;
    result.unwrap();
    let (result, ()) = both(client.read("a:b"), async {
        let request = peer.expect("resources/read").await;
        peer.reply(&request, required(json!({ "q": question("q") }), None)).await;
        let request = peer.expect("resources/read").await;
        peer.reply(&request, json!({ "resultType": "complete", "contents": [] })).await;
    })
    .await;
    result.unwrap();
    let (result, ()) = both(client.tools(), async {
        let request = peer.expect("tools/list").await;
        peer.reply(&request, required(json!({ "q": question("q") }), None)).await;
    })
    .await;
    assert!(result.unwrap_err().is_malformed());
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn results_with_input_requests_are_not_cached() {
    // proves: CACHE-06
    let (client, mut peer) = connect(answering(), V2026_07_28, everything()).await;
    for _ in 0..2 {
        let (result, ()) = both(client.read("a:b"), async {
            let request = peer.expect("resources/read").await;
            peer.reply(&request, required(json!({ "q": question("q") }), None)).await;
            let request = peer.expect("resources/read").await;
            let result =
                json!({ "resultType": "complete", "contents": [], "ttlMs": 60000, "cacheScope": "private" });
            peer.reply(&request, result).await;
        })
        .await;
        result.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_stops_asking_is_an_error() {
    // proves: MRTR-33
    let (client, mut peer) = connect(answering(), V2026_07_28, json!({ "tools": {} })).await;
    let (result, ()) = both(client.call("a", ()), async {
        for round in 0..11 {
            let request = peer.expect("tools/call").await;
            assert_eq!(request["params"].get("requestState").is_some(), round > 0);
            peer.reply(&request, json!({ "resultType": "input_required", "requestState": "again" })).await;
        }
        peer.quiet().await;
    })
    .await;
    assert!(result.unwrap_err().to_string().contains("more than 10 rounds"));
}

#[tokio::test(start_paused = true)]
async fn unanswerable_input_requests_are_not_retried() {
    // proves: MRTR-34, SAMP-38, SAMP-05
    let sample = |extra: Value| {
        let mut params = json!({ "messages": [], "maxTokens": 5 });
        params.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({ "method": "sampling/createMessage", "params": params })
    };
    let refusing = Client::builder().on_sample(|_| async { Err(RpcError::new(-1, "the user said no")) });
    let url = json!({ "method": "elicitation/create", "params": { "mode": "url", "message": "?", "url": "https://a.example/" } });
    for (builder, request, reason) in [
        (Client::builder(), question("q"), "method not found: elicitation/create"),
        (Client::builder(), sample(json!({})), "method not found: sampling/createMessage"),
        (Client::builder(), json!({ "method": "roots/list" }), "method not found: roots/list"),
        (answering(), sample(json!({ "tools": [] })), "sampling with tools was not declared"),
        (answering(), url, "the elicitation mode `url` was not declared"),
        (refusing, sample(json!({})), "the user said no"),
    ] {
        let (client, mut peer) = connect(builder, V2026_07_28, json!({ "tools": {} })).await;
        let (result, ()) = both(client.call("a", ()), async {
            let call = peer.expect("tools/call").await;
            peer.reply(&call, required(json!({ "q": request }), None)).await;
            peer.quiet().await;
        })
        .await;
        let error = result.unwrap_err();
        assert!(error.is_unanswerable() && error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_declined_form_is_an_answer() {
    let builder = Client::builder().on_ask(|_| async { Answer::Decline });
    let (client, mut peer) = connect(builder, V2026_07_28, json!({ "tools": {} })).await;
    let (result, ()) = both(client.call("a", ()), async {
        let request = peer.expect("tools/call").await;
        peer.reply(&request, required(json!({ "q": question("q") }), None)).await;
        let request = peer.expect("tools/call").await;
        assert_eq!(request["params"]["inputResponses"], json!({ "q": { "action": "decline" } }));
        peer.reply(&request, complete("as you like")).await;
    })
    .await;
    result.unwrap();
}

#[tokio::test(start_paused = true)]
async fn results_of_an_unknown_type_are_errors() {
    // proves: BASE-25, BASE-26, BASE-27, EXT-04
    let tasks = "io.modelcontextprotocol/tasks";
    let with_tasks = || Client::builder().extension(tasks, bowline_types::RawJson::empty_object());
    let plain = json!({ "tools": {} });
    let extended = json!({ "tools": {}, "extensions": { tasks: {} } });
    for (builder, capabilities, kind, fine) in [
        (Client::builder(), plain.clone(), json!("complete"), true),
        (Client::builder(), plain.clone(), json!(null), true),
        (Client::builder(), plain.clone(), json!("zzz"), false),
        (Client::builder(), plain.clone(), json!(7), false),
        (Client::builder(), extended.clone(), json!("task"), false),
        (with_tasks(), plain, json!("task"), false),
        // Negotiated, but without an id it is not a task.
        (with_tasks(), extended, json!("task"), false),
    ] {
        let (client, mut peer) = connect(builder, V2026_07_28, capabilities).await;
        let (result, ()) = both(client.call("a", ()), async {
            let request = peer.expect("tools/call").await;
            let mut result = text_result("x");
            if !kind.is_null() {
                result["resultType"] = kind.clone();
            }
            peer.reply(&request, result).await;
        })
        .await;
        assert_eq!(result.is_ok(), fine, "{kind}: {result:?}");
        assert!(fine || result.unwrap_err().is_malformed());
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_input_request_violates_the_protocol() {
    let (client, mut peer) = connect(answering(), V2026_07_28, json!({ "tools": {} })).await;
    let (result, ()) = both(client.call("a", ()), async {
        let request = peer.expect("tools/call").await;
        peer.reply(&request, json!({ "resultType": "input_required" })).await;
    })
    .await;
    assert!(result.unwrap_err().is_malformed());
}
