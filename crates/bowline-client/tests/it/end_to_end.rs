//! The client against the server, over memory, in every revision.

use crate::support::both;
use bowline_client::{Answer, Change, Client, ClientBuilder, memory};
use bowline_server::{CompletionRequest, Ctx, Json, Prompt, Resource, Server, Tool};
use bowline_types::{
    CreateMessageParams, CreateMessageResult, LoggingLevel, PromptArgument, Reference, Revision, Role,
    SamplingMessage, SubscriptionFilter,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::{Arc, Mutex};

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
struct Sum {
    sum: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

fn server() -> Server {
    Server::new("everything")
        .version("9")
        .instructions("Add things.")
        .page_size(2)
        .tool(Tool::new("add").handler(|Add { a, b }: Add| Json(Sum { sum: a + b })))
        .tool(
            Tool::new("fail").handler(|| -> bowline_server::Result<String> {
                Err(bowline_server::Error::tool("no luck"))
            }),
        )
        .tool(Tool::new("steps").handler(|ctx: Ctx| async move {
            ctx.progress(1.0, 2.0);
            ctx.log(LoggingLevel::Error, "half way");
            ctx.progress(2.0, 2.0);
            "done"
        }))
        .tool(Tool::new("greet").handler(|ctx: Ctx| async move {
            let Name { name } = ctx.ask("Who are you?").await?.accepted()?;
            Ok::<_, bowline_server::Error>(format!("hello {name}"))
        }))
        .tool(Tool::new("think").handler(|ctx: Ctx| async move {
            let request = CreateMessageParams::new(vec![SamplingMessage::user("think")], 10u64);
            let result = ctx.sample(request).await?;
            let text = result
                .content
                .as_slice()
                .first()
                .and_then(|block| block.as_text())
                .unwrap_or_default()
                .to_owned();
            Ok::<_, bowline_server::Error>(text)
        }))
        .resource(Resource::new("note://one", "one").text("first"))
        .prompt(
            Prompt::new("ask")
                .argument(PromptArgument::new("topic").required(true))
                .complete("topic", |typing: CompletionRequest| vec![format!("{}!", typing.value)])
                .handler(|| "what about it?"),
        )
}

async fn connected(builder: ClientBuilder, server: Server, revision: Revision) -> Client {
    let (end, theirs) = memory();
    let handle = server.build().unwrap();
    tokio::spawn(
        async move { handle.serve(theirs.read, theirs.write).await.map_err(|error| error.to_string()) },
    );
    builder.revisions([revision]).connect(end).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn everything_a_server_offers_can_be_used() {
    // proves: LIFE-28
    for revision in Revision::ALL {
        let client = connected(Client::builder(), server(), revision).await;
        let about = client.server();
        assert_eq!(about.revision, revision);
        assert_eq!(about.server_info.as_ref().unwrap().name, "everything");
        assert_eq!(about.instructions.as_deref(), Some("Add things."));
        let silent = connected(Client::builder(), Server::new("silent"), revision).await;
        assert_eq!(silent.server().instructions, None);
        let tools: Vec<_> = client.tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
        assert_eq!(tools.len(), 5, "{revision}");
        let sum: Sum = client.call_as("add", json!({ "a": 1, "b": 2 })).await.unwrap();
        assert_eq!(sum, Sum { sum: 3 });
        let failed = client.call("fail", ()).await.unwrap();
        assert!(failed.is_error() && failed.text() == "no luck", "{failed:?}");
        assert_eq!(client.call("no such tool", ()).await.unwrap_err().as_rpc().unwrap().code, -32602);
        assert_eq!(client.resources().await.unwrap()[0].uri, "note://one");
        assert_eq!(client.read("note://one").await.unwrap().contents[0].uri(), "note://one");
        assert!(client.read("note://none").await.unwrap_err().is_resource_not_found(), "{revision}");
        assert_eq!(client.prompts().await.unwrap()[0].name, "ask");
        let prompt = client.prompt("ask", json!({ "topic": 7 })).await.unwrap();
        assert_eq!(prompt.messages[0].content.as_text(), Some("what about it?"));
        client.ping().await.unwrap();
        let completion = client.complete(Reference::prompt("ask"), "topic", "x").await.unwrap();
        assert_eq!(completion.values, ["x!"]);
        client.close().await;
        assert!(client.ping().await.unwrap_err().is_closed());
    }
}

#[tokio::test(start_paused = true)]
async fn progress_and_logs_arrive() {
    for revision in Revision::ALL {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let note = |seen: &Arc<Mutex<Vec<String>>>| Arc::clone(seen);
        let (logs, steps) = (note(&seen), note(&seen));
        let builder = Client::builder()
            .log_level(LoggingLevel::Info)
            .on_log(move |message| logs.lock().unwrap().push(message.data.to_string()));
        let client = connected(builder, server(), revision).await;
        let call = client
            .call("steps", ())
            .progress(move |step| steps.lock().unwrap().push(step.progress.to_string()));
        assert_eq!(call.await.unwrap().text(), "done");
        assert_eq!(*seen.lock().unwrap(), ["1", "\"half way\"", "2"], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_asks_is_answered_in_every_revision_that_can() {
    for revision in Revision::ALL {
        let builder = Client::builder()
            .on_ask(|_| async { Answer::accept(json!({ "name": "Ada" })) })
            .on_sample(|_| async { CreateMessageResult::new(Role::Assistant, "hm", "model") });
        let client = connected(builder, server(), revision).await;
        assert_eq!(client.call("think", ()).await.unwrap().text(), "hm", "{revision}");
        let greeted = client.call("greet", ()).await;
        if revision >= Revision::V2025_06_18 {
            assert_eq!(greeted.unwrap().text(), "hello Ada", "{revision}");
        } else {
            assert!(greeted.is_err() || greeted.is_ok_and(|greeted| greeted.is_error()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn changes_are_received_in_every_revision() {
    for revision in Revision::ALL {
        let server = server();
        let registry = server.registry();
        let client = connected(Client::builder(), server, revision).await;
        let filter = SubscriptionFilter::new()
            .tools_list_changed(true)
            .resource_subscriptions(vec!["note://one".to_owned()]);
        let mut listen = client.listen(filter).await.unwrap();
        let before = client.tools().await.unwrap().len();
        registry.add_tool(Tool::new("new").handler(|| "x")).unwrap();
        assert_eq!(listen.next().await, Some(Change::Tools), "{revision}");
        assert_eq!(client.tools().await.unwrap().len(), before + 1);
        registry.resource_updated("note://one");
        assert_eq!(listen.next().await, Some(Change::Resource("note://one".into())), "{revision}");
    }
}

/// Where the connection is kept by another thread than the one that listens, both begin at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_immediate_listener_receives_no_spurious_change() {
    for _ in 0..50 {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let client = connected(Client::builder(), server(), revision).await;
            let filter = SubscriptionFilter::new().resource_subscriptions(vec!["note://one".to_owned()]);
            let mut listen = client.listen(filter).await.unwrap();
            client.tools().await.unwrap();
            tokio::select! {
                biased;
                received = listen.next() => panic!("{revision}: {received:?}"),
                () = std::future::ready(()) => {}
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_call_is_dropped_at_the_server() {
    struct Dropped(Arc<tokio::sync::Notify>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    for revision in Revision::ALL {
        let (started, dropped) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
        let server = Server::new("slow").tool(Tool::new("wait").handler({
            let (started, dropped) = (Arc::clone(&started), Arc::clone(&dropped));
            move || {
                let (started, guard) = (Arc::clone(&started), Dropped(Arc::clone(&dropped)));
                async move {
                    let _guard = guard;
                    started.notify_one();
                    std::future::pending::<String>().await
                }
            }
        }));
        let client = connected(Client::builder(), server, revision).await;
        let mut call = Box::pin(client.call("wait", ()));
        tokio::select! {
            _ = &mut call => panic!("it never ends"),
            () = started.notified() => {}
        }
        drop(call);
        dropped.notified().await;
        client.ping().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_calls_at_once_are_kept_apart() {
    for revision in Revision::ALL {
        let client = connected(Client::builder(), server(), revision).await;
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..200i64 {
            let client = client.clone();
            calls.spawn(async move {
                let sum: Sum = client.call_as("add", json!({ "a": number, "b": number })).await.unwrap();
                (number, sum.sum)
            });
        }
        while let Some(done) = calls.join_next().await {
            let (number, sum) = done.unwrap();
            assert_eq!(sum, number * 2);
        }
        let ((), ()) = both(client.close(), client.close()).await;
    }
}

#[derive(Debug, Deserialize, Serialize, PartialEq)]
struct Words {
    words: Vec<String>,
}

#[tokio::test]
async fn custom_methods_and_notifications_are_typed_on_both_sides() {
    for revision in Revision::ALL {
        let is_modern = revision.is_modern();
        let server =
            Server::new("custom").method("example.com/sort", |ctx: Ctx, mut params: Words| async move {
                ctx.notify("example.com/sorting", &params)?;
                if ctx.revision().is_modern() {
                    let refused = ctx.request::<Words>("example.com/more", ()).await.unwrap_err().to_string();
                    assert!(refused.contains("sends no requests"), "{refused}");
                } else {
                    let more: Words = ctx.request("example.com/more", &params).await?;
                    params.words.extend(more.words);
                }
                params.words.sort();
                Ok::<_, bowline_server::Error>(params)
            });
        let received = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&received);
        let builder = Client::builder()
            .method("example.com/more", async |asked: Words| {
                if asked.words.is_empty() {
                    Err("nothing to add to")
                } else {
                    Ok(Words { words: vec!["a".into()] })
                }
            })
            .notification("example.com/sorting", move |params: Words| noted.lock().unwrap().push(params));
        let client = connected(builder, server, revision).await;
        let given = Words { words: vec!["c".into(), "b".into()] };
        let sorted: Words = client.request("example.com/sort", &given).await.unwrap();
        let expected: &[&str] = if is_modern { &["b", "c"] } else { &["a", "b", "c"] };
        assert_eq!(sorted.words, expected, "{revision}");
        assert_eq!(*received.lock().unwrap(), [given], "{revision}");
        if !is_modern {
            let failed =
                client.request::<Words>("example.com/sort", Words { words: Vec::new() }).await.unwrap_err();
            assert!(failed.to_string().contains("nothing to add to"), "{failed}");
        }
        client.close().await;
    }
}

#[tokio::test]
async fn a_client_cannot_answer_methods_of_the_protocol() {
    let (end, _theirs) = memory();
    let builder = Client::builder().method("tools/call", async |_: Words| Ok::<_, std::fmt::Error>(()));
    let refused = builder.connect(end).await.unwrap_err().to_string();
    assert!(refused.contains("`tools/call`: it is a method of the protocol"), "{refused}");
}
