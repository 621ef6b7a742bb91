//! Questions of a legacy server, and the answers that it receives.

mod roots;

use crate::support::*;
use bowline_client::{Answer, Ask, AskUrl, Client, ClientBuilder, Notification};
use bowline_types::{
    ContentBlock, CreateMessageParams, CreateMessageResult, OneOrMany, RawJson, Revision, Role, Root,
    RpcError, error_code,
};
use serde_json::{Value, json};
use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::Notify;

/// Asks a client of this revision, and gives its answer: the result, or the code of the error.
async fn answer(
    builder: ClientBuilder,
    revision: Revision,
    method: &str,
    params: Value,
) -> Result<Value, i64> {
    let (_client, mut peer) = connect(builder, revision, json!({})).await;
    peer.ask("q", method, params).await;
    let reply = peer.next().await;
    assert_eq!(reply["id"], "q");
    match reply.get("error") {
        Some(error) => Err(error["code"].as_i64().unwrap()),
        None => Ok(reply["result"].clone()),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the values are written where they are used")]
fn form(properties: Value, required: Value) -> Value {
    json!({ "message": "?", "requestedSchema": { "type": "object", "properties": properties, "required": required } })
}

fn accepting(content: Value) -> ClientBuilder {
    Client::builder().on_ask(move |_| {
        let content = content.clone();
        async move { Answer::accept(content) }
    })
}

fn sampling(text: &'static str) -> ClientBuilder {
    Client::builder()
        .on_sample(move |_| async move { CreateMessageResult::new(Role::Assistant, text, "model") })
}

fn message() -> Value {
    json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "hi" } }], "maxTokens": 10 })
}

#[tokio::test(start_paused = true)]
async fn pings_are_answered_with_an_empty_object() {
    // proves: PING-01, BASE-08, BASE-09
    for revision in LEGACY {
        let (_client, mut peer) = connect(Client::builder(), revision, json!({})).await;
        for id in [json!(7), json!("7"), json!(0), json!(-1), json!("")] {
            peer.send(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).await;
            assert_eq!(peer.next().await, json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_ping_before_the_handshake_is_over_is_answered() {
    let (end, server) = bowline_client::memory();
    let mut peer = Peer::new(server);
    let (client, ()) = both(Client::builder().revisions(LEGACY).connect(end), async {
        let greeting = peer.expect("initialize").await;
        peer.settle().await;
        let server = json!({ "name": "peer", "version": "1" });
        let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": server });
        // A hasty server asks before it received `notifications/initialized`.
        peer.ask(1, "roots/list", json!({})).await;
        peer.reply(&greeting, result).await;
        peer.expect("notifications/initialized").await;
        assert_eq!(peer.next().await["error"]["code"], -32601);
    })
    .await;
    client.unwrap();
}

#[tokio::test(start_paused = true)]
async fn undeclared_capabilities_do_not_exist() {
    // proves: LIFE-17, BASE-17, BASE-10, BASE-11
    for revision in LEGACY {
        for (method, params) in [
            ("roots/list", json!({})),
            ("sampling/createMessage", message()),
            ("elicitation/create", form(json!({}), json!([]))),
            ("elicitation/create", json!("not even parameters")),
            ("tasks/get", json!({ "taskId": "1" })),
            ("tools/list", json!({})),
            ("com.example/unknown", json!({})),
        ] {
            let params = if params.is_string() { json!({}) } else { params };
            assert_eq!(
                answer(Client::builder(), revision, method, params).await,
                Err(-32601),
                "{revision} {method}"
            );
        }
    }
    // Declared, but of a later revision.
    assert_eq!(
        answer(accepting(json!({})), V2025_03_26, "elicitation/create", form(json!({}), json!([]))).await,
        Err(-32601)
    );
}

#[tokio::test(start_paused = true)]
async fn forms_are_answered() {
    // proves: ELIF-08, ELIF-18, ELIF-19, ELIF-20
    let properties =
        json!({ "name": { "type": "string" }, "age": { "type": "integer" }, "ok": { "type": "boolean" } });
    let question = form(properties, json!(["name"]));
    let content = json!({ "name": "Ada", "age": 36, "ok": true });
    for revision in [V2025_06_18, V2025_11_25] {
        let expected = json!({ "action": "accept", "content": content });
        assert_eq!(
            answer(accepting(content.clone()), revision, "elicitation/create", question.clone()).await,
            Ok(expected)
        );
        let declining = Client::builder().on_ask(|_| async { Answer::Decline });
        assert_eq!(
            answer(declining, revision, "elicitation/create", question.clone()).await,
            Ok(json!({ "action": "decline" }))
        );
        let cancelling = Client::builder().on_ask(|_| async { Answer::Cancel });
        assert_eq!(
            answer(cancelling, revision, "elicitation/create", question.clone()).await,
            Ok(json!({ "action": "cancel" }))
        );
    }
    let mut explicit = question;
    explicit["mode"] = json!("form");
    let answered = answer(accepting(content.clone()), V2025_11_25, "elicitation/create", explicit).await;
    assert_eq!(answered.unwrap()["content"], content);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_pattern_is_not_enforced() {
    // proves: ELIF-17
    // Look-around is not part of every dialect; the server checks the answer anyway.
    let properties = json!({ "code": { "type": "string", "pattern": "^(?=x)[0-9]+$" } });
    let builder = accepting(json!({ "code": "abc" }));
    let answered =
        answer(builder, V2025_11_25, "elicitation/create", form(properties, json!(["code"]))).await;
    assert_eq!(answered.unwrap()["content"], json!({ "code": "abc" }));
}

#[tokio::test(start_paused = true)]
async fn metadata_of_tool_blocks_passes_through_both_ways() {
    // proves: SAMP-22
    let builder = Client::builder().sample_with_tools().on_sample(|params: CreateMessageParams| async move {
        let block = params.messages[0].content.as_slice()[0].clone();
        CreateMessageResult::new(Role::Assistant, block, "model")
    });
    let used =
        json!({ "type": "tool_use", "id": "a", "name": "t", "input": {}, "_meta": { "com.example/k": 1 } });
    let result =
        json!({ "type": "tool_result", "toolUseId": "a", "content": [], "_meta": { "com.example/k": 2 } });
    let messages =
        json!([{ "role": "assistant", "content": [used] }, { "role": "user", "content": [result] }]);
    let question = json!({ "messages": messages, "maxTokens": 1 });
    let answered = answer(builder, V2025_11_25, "sampling/createMessage", question).await;
    assert_eq!(answered.unwrap()["content"], used);
}

#[tokio::test(start_paused = true)]
async fn several_choices_are_a_list() {
    // proves: ELIF-20
    let colors =
        json!({ "colors": { "type": "array", "items": { "type": "string", "enum": ["red", "blue"] } } });
    let builder = accepting(json!({ "colors": ["red", "blue"] }));
    let answered = answer(builder, V2025_11_25, "elicitation/create", form(colors, json!([]))).await;
    assert_eq!(answered.unwrap()["content"], json!({ "colors": ["red", "blue"] }));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_is_not_sent() {
    // proves: ELIF-29, ELIF-19
    let properties = json!({ "age": { "type": "integer", "minimum": 18 }, "mail": { "type": "string", "format": "email" } });
    for wrong in [
        json!({}),
        json!({ "age": 17 }),
        json!({ "age": "old" }),
        json!({ "age": 20, "mail": "x" }),
        json!(3),
        json!(null),
    ] {
        let question = form(properties.clone(), json!(["age"]));
        let answered = answer(accepting(wrong.clone()), V2025_11_25, "elicitation/create", question).await;
        assert_eq!(answered, Ok(json!({ "action": "decline" })), "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn defaults_fill_fields_that_the_user_skipped() {
    // proves: ELIF-16
    let properties = json!({
        "name": { "type": "string", "default": "Ada" },
        "age": { "type": "integer", "default": 36 },
        "rate": { "type": "number", "default": 0.5 },
        "ok": { "type": "boolean", "default": true },
        "size": { "type": "string", "enum": ["s", "m"], "default": "m" },
    });
    let question = form(properties, json!(["name", "age", "rate", "ok", "size"]));
    let answered = answer(accepting(json!({ "age": 40 })), V2025_11_25, "elicitation/create", question).await;
    let content = json!({ "age": 40, "name": "Ada", "rate": 0.5, "ok": true, "size": "m" });
    assert_eq!(answered, Ok(json!({ "action": "accept", "content": content })));
}

#[tokio::test(start_paused = true)]
async fn the_handler_receives_the_question_and_the_server() {
    // proves: ELIF-15
    let seen: Arc<Mutex<Option<Ask>>> = Arc::default();
    let builder = Client::builder().on_ask({
        let seen = Arc::clone(&seen);
        move |ask| {
            *seen.lock().unwrap() = Some(ask);
            async { Answer::Decline }
        }
    });
    let properties =
        json!({ "size": { "type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"] } });
    answer(builder, V2025_11_25, "elicitation/create", form(properties, json!([]))).await.unwrap();
    let ask = seen.lock().unwrap().take().unwrap();
    assert_eq!((ask.message.as_str(), ask.server.unwrap().name.as_str()), ("?", "peer"));
    let size = serde_json::to_value(ask.schema.properties.get("size").unwrap()).unwrap();
    assert_eq!(size["enumNames"], json!(["Small", "Medium"]));
}

#[tokio::test(start_paused = true)]
async fn an_undeclared_mode_is_refused() {
    // proves: ELIF-05, ELIF-03
    let url =
        || json!({ "mode": "url", "message": "?", "url": "https://example.com/", "elicitationId": "e" });
    let forms = accepting(json!({}));
    assert_eq!(answer(forms.clone(), V2025_11_25, "elicitation/create", url()).await, Err(-32602));
    assert_eq!(answer(forms, V2025_06_18, "elicitation/create", url()).await, Err(-32602));
    let urls = Client::builder().on_url(|_| async { Answer::consent() });
    assert_eq!(
        answer(urls.clone(), V2025_11_25, "elicitation/create", form(json!({}), json!([]))).await,
        Err(-32602)
    );
    let mode = json!({ "mode": "telepathy", "message": "?" });
    assert_eq!(answer(urls, V2025_11_25, "elicitation/create", mode).await, Err(-32602));
}

#[tokio::test(start_paused = true)]
async fn urls_are_visited_only_with_consent() {
    // proves: ELIU-06, ELIU-05, ELIU-26
    let seen: Arc<Mutex<Vec<AskUrl>>> = Arc::default();
    let builder = |reply: Answer<()>| {
        let seen = Arc::clone(&seen);
        Client::builder().on_url(move |ask| {
            seen.lock().unwrap().push(ask);
            async move { reply }
        })
    };
    let ask =
        |url: &str| json!({ "mode": "url", "message": "log in", "url": url, "elicitationId": "?{odd} id" });
    let page = "https://login.example.com/x?y=z";
    for (reply, action) in
        [(Answer::consent(), "accept"), (Answer::Decline, "decline"), (Answer::Cancel, "cancel")]
    {
        let answered = answer(builder(reply), V2025_11_25, "elicitation/create", ask(page)).await;
        assert_eq!(answered, Ok(json!({ "action": action })));
        let asked = seen.lock().unwrap().pop().unwrap();
        assert_eq!(
            (asked.url.as_str(), asked.domain(), asked.is_suspicious()),
            (page, "login.example.com", false)
        );
        assert_eq!(asked.elicitation_id.as_deref(), Some("?{odd} id"));
        assert_eq!(asked.server.unwrap().name, "peer");
    }
    for bad in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https:///nowhere",
        "data:text/html,x",
        "ftp://example.com/",
    ] {
        let answered = answer(builder(Answer::consent()), V2025_11_25, "elicitation/create", ask(bad)).await;
        assert_eq!(answered, Ok(json!({ "action": "decline" })), "{bad}");
    }
    assert!(seen.lock().unwrap().is_empty(), "the user was shown a page of no web");
}

#[tokio::test(start_paused = true)]
async fn pages_are_neither_fetched_nor_opened() {
    // proves: ELIU-20
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/login", listener.local_addr().unwrap());
    for reply in [Answer::consent(), Answer::Decline] {
        let builder = Client::builder().on_url(move |_| async move { reply });
        let page = json!({ "mode": "url", "message": "?", "url": url, "elicitationId": "e" });
        answer(builder, V2025_11_25, "elicitation/create", page).await.unwrap();
    }
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test(start_paused = true)]
async fn completion_of_a_url_elicitation_is_reported_once_and_only_if_it_started() {
    // proves: ELIU-10
    let received: Arc<Mutex<Vec<String>>> = Arc::default();
    let builder = Client::builder().on_url(|_| async { Answer::consent() }).on_notification({
        let received = Arc::clone(&received);
        move |notification| {
            if let Notification::ElicitationComplete(complete) = notification {
                received.lock().unwrap().push(complete.elicitation_id);
            }
        }
    });
    let (_client, mut peer) = connect(builder, V2025_11_25, json!({})).await;
    let page = json!({ "mode": "url", "message": "?", "url": "https://example.com/", "elicitationId": "e1" });
    peer.ask(1, "elicitation/create", page).await;
    assert_eq!(peer.next().await["result"]["action"], "accept");
    for id in ["bogus", "e1", "e1", ""] {
        peer.notify("notifications/elicitation/complete", json!({ "elicitationId": id })).await;
    }
    peer.settle().await;
    assert_eq!(*received.lock().unwrap(), ["e1"]);
}

#[tokio::test(start_paused = true)]
async fn a_sampling_request_has_the_form_of_its_revision() {
    // proves: SAMP-09, SAMP-10, SAMP-11
    let words = json!({ "type": "text", "text": "hello" });
    for revision in LEGACY {
        let answered = answer(sampling("hello"), revision, "sampling/createMessage", message()).await;
        assert_eq!(
            answered,
            Ok(json!({ "role": "assistant", "content": words, "model": "model" })),
            "{revision}"
        );
    }
    let several = Client::builder().on_sample(|params: CreateMessageParams| async move {
        assert_eq!(params.messages[0].content.as_slice().len(), 2);
        let blocks = vec![ContentBlock::text("one"), ContentBlock::text("two")];
        CreateMessageResult::new(Role::Assistant, OneOrMany::Many(blocks), "model")
    });
    let mut question = message();
    question["messages"][0]["content"] =
        json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
    let answered =
        answer(several.clone(), V2025_11_25, "sampling/createMessage", question.clone()).await.unwrap();
    assert_eq!(answered["content"].as_array().unwrap().len(), 2);
    let answered = answer(several, V2025_06_18, "sampling/createMessage", question).await.unwrap();
    assert_eq!(answered["content"], json!({ "type": "text", "text": "one\ntwo" }));
}

#[tokio::test(start_paused = true)]
async fn tools_for_a_model_need_their_capability() {
    // proves: SAMP-05, SAMP-21
    let tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
    for extra in [json!({ "tools": [tool] }), json!({ "toolChoice": { "mode": "auto" } })] {
        let mut question = message();
        question.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        assert_eq!(
            answer(sampling("x"), V2025_11_25, "sampling/createMessage", question.clone()).await,
            Err(-32602)
        );
        let with_tools = sampling("x").sample_with_tools();
        assert!(
            answer(with_tools.clone(), V2025_11_25, "sampling/createMessage", question.clone()).await.is_ok()
        );
        // The revision before has no way to declare it.
        assert_eq!(answer(with_tools, V2025_06_18, "sampling/createMessage", question).await, Err(-32602));
    }
    // What the server chose reaches the handler.
    for mode in ["auto", "required", "none"] {
        let builder =
            Client::builder().sample_with_tools().on_sample(|params: CreateMessageParams| async move {
                let mode = params.tool_choice.and_then(|choice| choice.mode).unwrap();
                CreateMessageResult::new(Role::Assistant, mode.as_str(), "model")
            });
        let mut question = message();
        question["toolChoice"] = json!({ "mode": mode });
        let answered = answer(builder, V2025_11_25, "sampling/createMessage", question).await.unwrap();
        assert_eq!(answered["content"]["text"], mode);
    }
}

#[tokio::test(start_paused = true)]
async fn tool_results_must_follow_their_uses() {
    // proves: SAMP-18, SAMP-19
    let used = |id: &str| json!({ "type": "tool_use", "id": id, "name": "t", "input": {} });
    let result = |id: &str| json!({ "type": "tool_result", "toolUseId": id, "content": [] });
    let text = json!({ "type": "text", "text": "x" });
    let ask = |messages: Value| json!({ "messages": messages, "maxTokens": 1 });
    let says = |role: &str, content: Value| json!({ "role": role, "content": content });
    let builder = sampling("x").sample_with_tools();
    for (messages, expected) in [
        (json!([says("assistant", json!([used("a")])), says("user", json!([result("a")]))]), None),
        (
            json!([says("assistant", json!([used("a"), used("b")])), says("user", json!([result("a")]))]),
            Some(-32602),
        ),
        (
            json!([says("assistant", json!([used("a")])), says("user", json!([result("a"), text]))]),
            Some(-32602),
        ),
        (json!([says("assistant", json!([used("a")])), says("user", text.clone())]), Some(-32602)),
    ] {
        let answered =
            answer(builder.clone(), V2025_11_25, "sampling/createMessage", ask(messages.clone())).await;
        assert_eq!(answered.err(), expected, "{messages}");
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_and_failures_of_handlers_are_errors() {
    // proves: SAMP-20, BASE-16
    let refusing = Client::builder()
        .on_sample(|_| async { Err(RpcError::new(error_code::USER_REJECTED, "the user said no")) });
    assert_eq!(answer(refusing, V2025_06_18, "sampling/createMessage", message()).await, Err(-1));
    for missing in [json!({}), json!({ "messages": [] }), json!({ "messages": 1, "maxTokens": 1 })] {
        assert_eq!(answer(sampling("x"), V2025_06_18, "sampling/createMessage", missing).await, Err(-32602));
    }
    let broken = || -> Answer { panic!("this handler is broken") };
    let failing = Client::builder().on_sample(|_| async { Err(io::Error::other("no model")) });
    let (_client, mut peer) = connect(failing, V2025_11_25, json!({})).await;
    peer.ask(1, "sampling/createMessage", message()).await;
    assert_eq!(peer.next().await["error"], json!({ "code": -32603, "message": "no model" }));
    let failing = Client::builder().on_ask(|_| async { Err("no terminal") });
    let (_client, mut peer) = connect(failing, V2025_11_25, json!({})).await;
    peer.ask(1, "elicitation/create", form(json!({}), json!([]))).await;
    assert_eq!(peer.next().await["error"], json!({ "code": -32603, "message": "no terminal" }));
    let panicking = Client::builder().on_ask(move |_| async move { broken() });
    let (_client, mut peer) = connect(panicking, V2025_11_25, json!({})).await;
    peer.ask(1, "elicitation/create", form(json!({}), json!([]))).await;
    assert_eq!(peer.next().await["error"]["code"], -32603);
    peer.settle().await;
}

/// A folder of its own, gone at the end.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bowline-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn root(&self) -> Root {
        Root::new(format!("file://{}", self.0.to_str().unwrap()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A handler that waits to be let go, and counts.
#[derive(Default)]
struct Gate {
    started: AtomicUsize,
    ended: AtomicUsize,
    go: Notify,
}

impl Gate {
    fn builder(self: &Arc<Self>) -> ClientBuilder {
        let gate = Arc::clone(self);
        Client::builder().on_ask(move |_| {
            let gate = Arc::clone(&gate);
            async move {
                gate.started.fetch_add(1, Ordering::SeqCst);
                gate.go.notified().await;
                gate.ended.fetch_add(1, Ordering::SeqCst);
                Answer::accept(RawJson::empty_object())
            }
        })
    }

    fn counts(&self) -> (usize, usize) {
        (self.started.load(Ordering::SeqCst), self.ended.load(Ordering::SeqCst))
    }
}

#[tokio::test(start_paused = true)]
async fn questions_are_answered_at_the_same_time() {
    let gate = Arc::new(Gate::default());
    let (_client, mut peer) = connect(gate.builder(), V2025_11_25, json!({})).await;
    for id in 1..=3 {
        peer.ask(id, "elicitation/create", form(json!({}), json!([]))).await;
    }
    peer.settle().await;
    peer.quiet().await;
    assert_eq!(gate.counts(), (3, 0));
    gate.go.notify_waiters();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(peer.next().await["id"].as_i64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_question_gets_no_answer() {
    // proves: CANCEL-07
    let gate = Arc::new(Gate::default());
    let (_client, mut peer) = connect(gate.builder(), V2025_11_25, json!({})).await;
    peer.ask("a", "elicitation/create", form(json!({}), json!([]))).await;
    peer.ask("b", "elicitation/create", form(json!({}), json!([]))).await;
    peer.quiet().await;
    peer.notify("notifications/cancelled", json!({ "requestId": "a", "reason": "changed my mind" })).await;
    peer.settle().await;
    gate.go.notify_waiters();
    assert_eq!(peer.next().await["id"], "b");
    peer.quiet().await;
    assert_eq!(gate.counts(), (2, 1));
    // Too late for the one that is answered.
    peer.notify("notifications/cancelled", json!({ "requestId": "b" })).await;
    peer.settle().await;
}

#[tokio::test(start_paused = true)]
async fn questions_end_with_the_connection() {
    let gate = Arc::new(Gate::default());
    let (client, mut peer) = connect(gate.builder(), V2025_11_25, json!({})).await;
    peer.ask("a", "elicitation/create", form(json!({}), json!([]))).await;
    peer.quiet().await;
    client.close().await;
    gate.go.notify_waiters();
    peer.ended().await;
    assert_eq!(gate.counts(), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_questions_is_bounded() {
    let gate = Arc::new(Gate::default());
    let (_client, mut peer) = connect(gate.builder(), V2025_11_25, json!({})).await;
    for id in 0..101 {
        peer.ask(id, "elicitation/create", form(json!({}), json!([]))).await;
    }
    let refusal = peer.next().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(100), &json!(-32603)));
    peer.quiet().await;
    assert_eq!(gate.counts(), (100, 0));
    gate.go.notify_waiters();
    for _ in 0..100 {
        assert_eq!(peer.next().await["result"]["action"], "accept");
    }
    peer.ask(7, "elicitation/create", form(json!({}), json!([]))).await;
    peer.quiet().await;
    gate.go.notify_waiters();
    assert_eq!(peer.next().await["id"], 7);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_misses_the_pattern_of_its_field_is_not_sent() {
    for (given, action) in [("Ada", "accept"), ("ada1", "decline")] {
        let builder =
            Client::builder().on_ask(move |_| async move { Answer::accept(json!({ "name": given })) });
        let (_client, mut peer) = connect(builder, V2025_11_25, json!({})).await;
        let field = json!({ "type": "string", "pattern": "^[A-Za-z]+$" });
        let schema = json!({ "type": "object", "properties": { "name": field } });
        let params = json!({ "message": "Who?", "mode": "form", "requestedSchema": schema });
        peer.ask("q", "elicitation/create", params).await;
        let answer = peer.next().await;
        assert_eq!(answer["result"]["action"], action, "{answer}");
    }
}
