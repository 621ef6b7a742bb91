//! Questions and notifications of a server, when a relay handles them.

use crate::support::*;
use bowline_client::{
    BoxFuture, CallKey, CancelWay, Client, ClientBuilder, Connect, Inbox, Notification, Outgoing,
    OutgoingKind, Relay, RelayWith, Relayed, Result, Transport,
};
use bowline_types::{
    ClientCapabilities, Id, InputRequest, LogMessageParams, Method, RawJson, Revision, RpcError,
};
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, mpsc};

type Answered = Result<RawJson, RpcError>;
type Answering = Box<dyn Fn(&InputRequest) -> BoxFuture<'static, Answered> + Send + Sync>;

/// Records notifications and questions, and answers as the test wants.
struct Notes {
    asked: Mutex<Vec<(Option<u64>, Value)>>,
    logs: Mutex<Vec<(Option<u64>, Value)>>,
    notifications: Mutex<Vec<String>>,
    answer: Answering,
}

impl Notes {
    fn new(
        answer: impl Fn(&InputRequest) -> BoxFuture<'static, Answered> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let answer = Box::new(answer);
        Arc::new(Self {
            asked: Mutex::default(),
            logs: Mutex::default(),
            notifications: Mutex::default(),
            answer,
        })
    }

    /// Answers everything at once, with members nobody knows.
    fn answering() -> Arc<Self> {
        Self::new(|request| ready(Ok(answer_to(request))))
    }

    fn asked(&self) -> Vec<(Option<u64>, Value)> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn logs(&self) -> Vec<(Option<u64>, Value)> {
        std::mem::take(&mut self.logs.lock().unwrap())
    }

    fn notifications(&self) -> Vec<String> {
        std::mem::take(&mut self.notifications.lock().unwrap())
    }
}

impl Relay for Notes {
    fn ask(&self, call: Option<CallKey>, request: InputRequest) -> BoxFuture<'static, Answered> {
        let question = serde_json::to_value(&request).unwrap();
        self.asked.lock().unwrap().push((call.map(|CallKey(key)| key), question));
        (self.answer)(&request)
    }

    fn log(&self, call: Option<CallKey>, message: LogMessageParams) {
        let message = serde_json::to_value(&message).unwrap();
        self.logs.lock().unwrap().push((call.map(|CallKey(key)| key), message));
    }

    fn notify(&self, notification: Notification) {
        self.notifications.lock().unwrap().push(match notification {
            Notification::ToolsChanged => "tools".into(),
            Notification::PromptsChanged => "prompts".into(),
            Notification::ResourcesChanged => "resources".into(),
            Notification::ResourceUpdated(updated) => updated.uri,
            Notification::ElicitationComplete(complete) => format!("complete {}", complete.elicitation_id),
            Notification::Other { method, params } => format!("{method} {}", params.unwrap_or_default()),
            other => format!("{other:?}"),
        });
    }
}

fn ready(answer: Answered) -> BoxFuture<'static, Answered> {
    Box::pin(std::future::ready(answer))
}

fn answer_to(request: &InputRequest) -> RawJson {
    let answer = match request {
        InputRequest::Elicit(_) => json!({ "action": "accept", "content": { "name": "Ada" }, "later": [1] }),
        InputRequest::CreateMessage(_) => json!({
            "role": "assistant", "content": { "type": "text", "text": "hm", "later": 1 }, "model": "m", "later": {},
        }),
        InputRequest::ListRoots => json!({ "roots": [{ "uri": "file:///srv", "later": 1 }], "later": null }),
    };
    answer.into()
}

fn everything_declared() -> ClientCapabilities {
    let text = json!({
        "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": { "listChanged": true },
    });
    serde_json::from_value(text).unwrap()
}

fn relaying(notes: &Arc<Notes>) -> ClientBuilder {
    Client::builder().relay(Arc::clone(notes) as _).capabilities(everything_declared())
}

fn keyed(key: u64) -> RelayWith {
    let mut with = RelayWith::default();
    with.key = Some(CallKey(key));
    with
}

fn call(client: &Client, key: u64) -> BoxFuture<'static, Result<Relayed>> {
    client.relay(Method::CallTool, json!({ "name": "t" }).into(), keyed(key))
}

fn form() -> Value {
    let properties = json!({ "name": { "type": "string", "later": 1 } });
    json!({ "message": "?", "requestedSchema": { "type": "object", "properties": properties }, "later": 1 })
}

fn message() -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": "hi" }, "later": 1 });
    json!({ "messages": [message], "maxTokens": 10, "later": { "a": [1] } })
}

/// Every question that a server of this revision may ask.
fn questions(revision: Revision) -> Vec<(&'static str, Value)> {
    let mut questions = vec![("roots/list", json!({})), ("sampling/createMessage", message())];
    if revision >= V2025_06_18 {
        questions.push(("elicitation/create", form()));
    }
    if revision >= V2025_11_25 {
        let page = json!({ "mode": "url", "message": "?", "url": "https://a.example/", "elicitationId": "e", "later": 1 });
        questions.push(("elicitation/create", page));
    }
    questions
}

/// Asks, and gives the answer.
async fn ask(peer: &mut Peer, method: &str, params: Value) -> Value {
    peer.ask("q", method, params).await;
    let reply = peer.next().await;
    assert_eq!(reply["id"], "q", "{reply}");
    reply
}

#[tokio::test(start_paused = true)]
async fn questions_go_to_the_relay_and_its_answers_to_the_server_with_all_their_members() {
    for revision in LEGACY {
        let notes = Notes::answering();
        let (client, mut peer) = connect(relaying(&notes), revision, everything()).await;
        let (result, ()) = both(call(&client, 7), async {
            let request = peer.expect("tools/call").await;
            for (method, params) in questions(revision) {
                let reply = ask(&mut peer, method, params.clone()).await;
                let asked = notes.asked();
                let [(key, question)] = asked.as_slice() else {
                    panic!("expected a question, got {asked:?}")
                };
                assert_eq!((*key, &question["method"]), (None, &json!(method)), "{revision}");
                if method != "roots/list" {
                    assert_eq!(question["params"], params, "{revision}");
                }
                let request: InputRequest = serde_json::from_value(question.clone()).unwrap();
                assert_eq!(reply["result"], answer_to(&request).to_value().unwrap(), "{revision}");
            }
            peer.reply(&request, text_result("done")).await;
        })
        .await;
        assert!(matches!(result, Ok(Relayed::Complete(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn on_a_shared_channel_a_question_has_no_call() {
    // V-111
    for revision in LEGACY {
        let notes = Notes::answering();
        let (client, mut peer) = connect(relaying(&notes), revision, everything()).await;
        let whose = async |peer: &mut Peer| {
            ask(peer, "roots/list", json!({})).await;
            notes.asked().pop().unwrap().0
        };
        assert_eq!(whose(&mut peer).await, None, "no call is under way");
        let mut given_up = call(&client, 1);
        tokio::select! {
            _ = &mut given_up => panic!("nobody has answered"),
            request = peer.expect("tools/call") => drop(request),
        }
        assert_eq!(whose(&mut peer).await, None, "one call is under way");
        drop(given_up);
        let (result, ()) = both(call(&client, 2), async {
            peer.expect("notifications/cancelled").await;
            let request = peer.expect("tools/call").await;
            assert_eq!(
                whose(&mut peer).await,
                None,
                "one was given up, which the server need not have heeded"
            );
            peer.reply(&request, text_result("done")).await;
        })
        .await;
        assert!(result.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn logs_go_to_the_relay() {
    for revision in Revision::ALL {
        let notes = Notes::answering();
        let (client, mut peer) =
            connect(relaying(&notes), revision, json!({ "tools": {}, "logging": {} })).await;
        let log =
            |text: &str| json!({ "level": "info", "logger": "l", "data": { "text": text }, "later": 1 });
        let (result, ()) = both(call(&client, 1), async {
            let request = peer.expect("tools/call").await;
            peer.notify("notifications/message", log("a")).await;
            peer.notify("notifications/message", json!({ "level": "loud" })).await;
            peer.reply(&request, text_result("done")).await;
        })
        .await;
        assert!(result.is_ok());
        assert_eq!(notes.logs(), [(None, log("a"))], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_have_the_form_of_the_revision_of_the_server() {
    let notes = Notes::new(|request| {
        ready(Ok(match request {
            InputRequest::Elicit(_) => {
                json!({ "resultType": "complete", "action": "accept", "content": { "tags": ["a", "b"] } })
            }
            InputRequest::CreateMessage(_) => {
                let blocks = [json!({ "type": "text", "text": "a" }), json!({ "type": "text", "text": "b" })];
                json!({ "role": "assistant", "content": blocks, "model": "m", "stopReason": "toolUse" })
            }
            InputRequest::ListRoots => {
                json!({ "resultType": "complete", "roots": [{ "uri": "file:///a", "_meta": {} }] })
            }
        }
        .into()))
    });
    let (_client, mut peer) = connect(relaying(&notes), V2025_06_18, everything()).await;
    let reply = ask(&mut peer, "elicitation/create", form()).await;
    assert_eq!(reply["result"], json!({ "action": "accept", "content": { "tags": "a, b" } }));
    let reply = ask(&mut peer, "sampling/createMessage", message()).await;
    assert_eq!(reply["result"]["content"], json!({ "type": "text", "text": "a\nb" }));
    assert_eq!(reply["result"]["stopReason"], "endTurn");
    let (_client, mut peer) = connect(relaying(&notes), V2025_03_26, everything()).await;
    let reply = ask(&mut peer, "roots/list", json!({})).await;
    assert_eq!(reply["result"], json!({ "roots": [{ "uri": "file:///a" }] }));
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_fails_fails_its_question_alone() {
    let notes = Notes::new(|request| match request {
        InputRequest::ListRoots => {
            ready(Err(RpcError::new(-1, "the user went away").with_data(json!({ "a": 1 }))))
        }
        InputRequest::CreateMessage(_) => ready(Ok(json!({ "role": "assistant" }).into())),
        InputRequest::Elicit(_) => panic!("not at home"),
    });
    let (_client, mut peer) = connect(relaying(&notes), V2025_11_25, everything()).await;
    let reply = ask(&mut peer, "roots/list", json!({})).await;
    assert_eq!(reply["error"], json!({ "code": -1, "message": "the user went away", "data": { "a": 1 } }));
    let reply = ask(&mut peer, "sampling/createMessage", message()).await;
    assert_eq!(reply["error"]["code"], -32603);
    let reply = ask(&mut peer, "elicitation/create", form()).await;
    assert_eq!(reply["error"]["code"], -32603);
    peer.settle().await;
}

#[tokio::test(start_paused = true)]
async fn undeclared_requests_do_not_reach_the_relay() {
    let notes = Notes::answering();
    for revision in LEGACY {
        let builder = Client::builder().relay(Arc::clone(&notes) as _);
        let (_client, mut peer, opening) = connect_seen(builder, revision, everything()).await;
        assert_eq!(opening["params"]["capabilities"], json!({}));
        for (method, params) in questions(revision) {
            assert_eq!(ask(&mut peer, method, params).await["error"]["code"], -32601, "{revision} {method}");
        }
        assert_eq!(ask(&mut peer, "com.example/ask", json!({})).await["error"]["code"], -32601);
    }
    let declared: ClientCapabilities =
        serde_json::from_value(json!({ "elicitation": { "url": {} }, "sampling": {}, "later": {} })).unwrap();
    let builder = Client::builder().relay(Arc::clone(&notes) as _).capabilities(declared);
    let builder = builder.extension("com.example/e", json!({}).into()).experimental("x", json!({}).into());
    let (_client, mut peer, opening) = connect_seen(builder, V2025_11_25, everything()).await;
    let declared = json!({
        "elicitation": { "url": {} }, "sampling": {}, "extensions": { "com.example/e": {} },
        "experimental": { "x": {} }, "later": {},
    });
    assert_eq!(opening["params"]["capabilities"], declared);
    assert_eq!(ask(&mut peer, "elicitation/create", form()).await["error"]["code"], -32602);
    let mut with_tools = message();
    with_tools["tools"] = json!([]);
    assert_eq!(ask(&mut peer, "sampling/createMessage", with_tools).await["error"]["code"], -32602);
    assert!(notes.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_question_is_dropped() {
    struct OnDrop(Arc<Notify>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let notes = Notes::new({
        let (begun, dropped) = (Arc::clone(&begun), Arc::clone(&dropped));
        move |_| {
            begun.notify_one();
            let held = OnDrop(Arc::clone(&dropped));
            Box::pin(async move {
                std::future::pending::<()>().await;
                drop(held);
                Err(RpcError::internal("never"))
            })
        }
    });
    for revision in LEGACY {
        let (_client, mut peer) = connect(relaying(&notes), revision, everything()).await;
        peer.ask("q", "roots/list", json!({})).await;
        begun.notified().await;
        peer.notify("notifications/cancelled", json!({ "requestId": "q" })).await;
        dropped.notified().await;
        peer.settle().await;
        // So is one whose server is gone.
        peer.ask("r", "roots/list", json!({})).await;
        begun.notified().await;
        peer.hang_up();
        dropped.notified().await;
    }
}

#[tokio::test(start_paused = true)]
async fn notifications_go_to_the_relay() {
    for revision in LEGACY {
        let notes = Notes::answering();
        let (client, mut peer) = connect(relaying(&notes), revision, everything()).await;
        for list in ["tools", "prompts", "resources"] {
            peer.notify(&format!("notifications/{list}/list_changed"), json!({})).await;
        }
        peer.notify("notifications/resources/updated", json!({ "uri": "a:b" })).await;
        // Who was asked to visit the page is not known to this client.
        peer.notify("notifications/elicitation/complete", json!({ "elicitationId": "e" })).await;
        peer.notify("com.example/news", json!({ "a": 1 })).await;
        peer.settle().await;
        let expected = ["tools", "prompts", "resources", "a:b", "complete e", r#"com.example/news {"a":1}"#];
        assert_eq!(notes.notifications(), expected, "{revision}");
        // The roots are the relay's.
        assert_eq!(
            client.set_roots([]).unwrap_err().to_string(),
            "roots are not enabled; pass them to the builder with `roots`"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_is_subscribed_to_for_list_changes() {
    let notes = Notes::answering();
    let (client, mut peer) = connect(relaying(&notes), V2026_07_28, everything()).await;
    let listen = peer.expect("subscriptions/listen").await;
    let filter =
        json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true });
    assert_eq!(listen["params"]["notifications"], filter);
    let tag = json!({ "io.modelcontextprotocol/subscriptionId": listen["id"] });
    let granted = json!({ "_meta": tag, "notifications": filter });
    peer.notify("notifications/subscriptions/acknowledged", granted).await;
    peer.notify("notifications/tools/list_changed", json!({ "_meta": tag })).await;
    let (result, ()) = both(call(&client, 1), async {
        let request = peer.expect("tools/call").await;
        peer.notify("notifications/message", json!({ "level": "info", "data": 1 })).await;
        peer.reply(&request, text_result("done")).await;
    })
    .await;
    assert!(result.is_ok());
    assert_eq!(notes.notifications(), ["tools"]);
    assert_eq!(notes.logs(), [(None, json!({ "level": "info", "data": 1 }))]);
}

#[tokio::test(start_paused = true)]
async fn questions_about_requests_of_the_client_itself_go_to_the_relay_too() {
    let notes = Notes::answering();
    let (client, mut peer) = connect(relaying(&notes), V2026_07_28, json!({ "tools": {} })).await;
    let (result, ()) = both(client.call("t", ()), async {
        let request = peer.expect("tools/call").await;
        let requests = json!({ "q": { "method": "elicitation/create", "params": form() } });
        peer.reply(&request, json!({ "resultType": "input_required", "inputRequests": requests })).await;
        let request = peer.expect("tools/call").await;
        assert_eq!(request["params"]["inputResponses"]["q"]["content"], json!({ "name": "Ada" }));
        peer.reply(&request, text_result("done")).await;
    })
    .await;
    assert_eq!(result.unwrap().text(), "done");
    assert_eq!(notes.asked().pop().unwrap().0, None);
}

#[tokio::test(start_paused = true)]
async fn a_relay_and_handlers_exclude_each_other() {
    let relaying = || Client::builder().relay(Notes::answering() as _);
    let builders = [
        relaying().on_ask(|_| async { bowline_client::Answer::Decline }),
        relaying().on_url(|_| async { bowline_client::Answer::Decline }),
        relaying().on_sample(|_| async { Err(RpcError::internal("no")) }),
        relaying().sample_with_tools(),
        relaying().roots([]),
        relaying().on_log(|_| {}),
        relaying().on_notification(|_| {}),
        Client::builder().capabilities(everything_declared()),
        Client::builder().on_log(|_| {}).capabilities(ClientCapabilities::default()),
    ];
    for builder in builders {
        let (end, _server) = bowline_client::memory();
        let error = builder.connect(end).await.unwrap_err();
        assert!(error.to_string().contains("a relay"), "{error}");
    }
    let (_client, _peer) = connect(relaying().on_progress(|_| {}), V2025_11_25, json!({})).await;
}

/// A transport that knows on which stream a frame came.
#[derive(Clone)]
struct Streams {
    sent: mpsc::UnboundedSender<Outgoing>,
    inbox: Arc<Mutex<Option<Inbox>>>,
}

impl Streams {
    fn inbox(&self) -> Inbox {
        self.inbox.lock().unwrap().clone().unwrap()
    }

    fn on(&self, request: &Id, frame: &Value) {
        self.inbox().accept_on(request, &Bytes::from(frame.to_string()));
    }

    fn answer(&self, request: &Id, result: &Value) {
        self.on(request, &json!({ "jsonrpc": "2.0", "id": request, "result": result }));
    }
}

impl Connect for Streams {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        *self.inbox.lock().unwrap() = Some(inbox);
        Box::pin(async { Ok(Box::new(self.clone()) as _) })
    }
}

impl Transport for Streams {
    fn send(&self, outgoing: Outgoing) {
        self.sent.send(outgoing).unwrap();
    }

    fn cancel(&self, _: &Id) -> CancelWay {
        CancelWay::Notify
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// The next request that the client sends.
async fn sent(frames: &mut mpsc::UnboundedReceiver<Outgoing>, expected: &str) -> Id {
    loop {
        match frames.recv().await.unwrap().kind {
            OutgoingKind::Request { id, method, .. } => {
                assert_eq!(&*method, expected);
                return id;
            }
            OutgoingKind::Notification { .. } => {}
            OutgoingKind::Response { .. } => panic!("expected a request"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn messages_on_the_stream_of_a_call_belong_to_it() {
    for revision in Revision::ALL {
        let (sender, mut frames) = mpsc::unbounded_channel();
        let streams = Streams { sent: sender, inbox: Arc::default() };
        let notes = Notes::answering();
        let (client, ()) = both(relaying(&notes).revisions([revision]).connect(streams.clone()), async {
            let greeting = if revision.is_modern() {
                ("server/discover", json!({ "supportedVersions": [revision], "capabilities": {} }))
            } else {
                let server = json!({ "name": "peer", "version": "1" });
                (
                    "initialize",
                    json!({ "protocolVersion": revision, "capabilities": {}, "serverInfo": server }),
                )
            };
            let id = sent(&mut frames, greeting.0).await;
            streams.answer(&id, &greeting.1);
        })
        .await;
        let client = client.unwrap();
        let calls = async { tokio::join!(call(&client, 1), call(&client, 2), client.ping()) };
        let (results, ()) = both(calls, async {
            let first = sent(&mut frames, "tools/call").await;
            let second = sent(&mut frames, "tools/call").await;
            let ping = sent(&mut frames, if revision.is_modern() { "server/discover" } else { "ping" }).await;
            for (request, key) in [(&second, Some(2)), (&first, Some(1)), (&ping, None)] {
                let log = json!({ "level": "info", "data": key });
                streams.on(
                    request,
                    &json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": log }),
                );
                assert_eq!(notes.logs(), [(key, log)], "{revision}");
                if !revision.is_modern() {
                    streams.on(
                        request,
                        &json!({ "jsonrpc": "2.0", "id": key.unwrap_or(0), "method": "roots/list" }),
                    );
                    let answer = loop {
                        let frame = frames.recv().await.unwrap();
                        if let OutgoingKind::Response { id } = frame.kind {
                            break id;
                        }
                    };
                    assert_eq!(serde_json::to_value(answer).unwrap(), json!(key.unwrap_or(0)));
                    assert_eq!(notes.asked().pop().unwrap().0, key, "{revision}");
                }
            }
            streams.answer(&first, &text_result("done"));
            // What is left of the stream of a call that is over belongs to no other.
            let log = json!({ "level": "info", "data": 0 });
            streams
                .on(&first, &json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": log }));
            assert_eq!(notes.logs(), [(None, log)], "{revision}");
            streams.answer(&second, &text_result("done"));
            streams.answer(&ping, &json!({ "supportedVersions": [revision], "capabilities": {} }));
        })
        .await;
        assert!(results.0.is_ok() && results.1.is_ok() && results.2.is_ok(), "{results:?}");
    }
}
