//! The client against the server, over sockets, in every revision and over both addresses.

use bowline_client::{Answer, Change, Client, ClientBuilder};
use bowline_http::{HttpOptions, HttpService, http};
use bowline_server::{CompletionRequest, Ctx, Json, Prompt, Registry, Resource, Server, Tool};
use bowline_types::{
    CreateMessageParams, CreateMessageResult, LoggingLevel, PromptArgument, Reference, Revision, Role, Root,
    SamplingMessage, SubscriptionFilter,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::{Arc, Mutex};
use tokio::{net::TcpListener, sync::Notify, task::JoinHandle};

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

#[derive(Deserialize, JsonSchema)]
struct Query {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
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
            let block = result.content.as_slice().first().and_then(|block| block.as_text());
            Ok::<_, bowline_server::Error>(block.unwrap_or_default().to_owned())
        }))
        .tool(Tool::new("where").handler(|ctx: Ctx| async move {
            let roots = ctx.roots().await?;
            Ok::<_, bowline_server::Error>(roots.iter().map(|root| root.uri.as_str()).collect::<String>())
        }))
        .tool(Tool::new("query").handler(|Query { region }: Query| region))
        .resource(Resource::new("note://one", "one").text("first"))
        .prompt(
            Prompt::new("ask")
                .argument(PromptArgument::new("topic").required(true))
                .complete("topic", |typing: CompletionRequest| vec![format!("{}!", typing.value)])
                .handler(|| "what about it?"),
        )
}

/// A server on a socket.
struct Site {
    endpoint: HttpService,
    registry: Registry,
    origin: String,
    serving: JoinHandle<()>,
}

impl Site {
    async fn open(server: Server) -> Self {
        let registry = server.registry();
        let settings = HttpOptions::new().sse_path("/sse");
        let endpoint = HttpService::with_options(server.build().unwrap(), settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let service = endpoint.clone();
        let serving = tokio::spawn(async move {
            service.serve(listener, std::future::pending()).await.unwrap();
        });
        Self { endpoint, registry, origin, serving }
    }

    async fn connect(&self, builder: ClientBuilder, way: Way) -> Client {
        let (Way(revision, path), origin) = (way, &self.origin);
        builder.revisions([revision]).connect(http(format!("{origin}{path}"))).await.unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A revision, and where it is spoken.
#[derive(Clone, Copy, Debug)]
struct Way(Revision, &'static str);

/// Every revision at the one endpoint, and the legacy ones at the two endpoints of 2024-11-05 too.
fn ways() -> Vec<Way> {
    let one = Revision::ALL.into_iter().map(|revision| Way(revision, "/mcp"));
    let two = Revision::ALL
        .into_iter()
        .filter(|revision| !revision.is_modern())
        .map(|revision| Way(revision, "/sse"));
    one.chain(two).collect()
}

#[tokio::test]
async fn everything_a_server_offers_can_be_used() {
    let site = Site::open(server()).await;
    for way in ways() {
        let client = site.connect(Client::builder(), way).await;
        let about = client.server();
        assert_eq!(about.revision, way.0);
        assert_eq!(about.server_info.as_ref().unwrap().name, "everything");
        assert_eq!(about.instructions.as_deref(), Some("Add things."));
        assert_eq!(client.tools().await.unwrap().len(), 7, "{way:?}");
        let sum: Sum = client.call_as("add", json!({ "a": 1, "b": 2 })).await.unwrap();
        assert_eq!(sum, Sum { sum: 3 });
        let failed = client.call("fail", ()).await.unwrap();
        assert!(failed.is_error() && failed.text() == "no luck", "{failed:?}");
        assert_eq!(client.call("no such tool", ()).await.unwrap_err().as_rpc().unwrap().code, -32602);
        for region in ["eu", "Zürich", " padded ", ""] {
            assert_eq!(client.call("query", json!({ "region": region })).await.unwrap().text(), region);
        }
        assert_eq!(client.resources().await.unwrap()[0].uri, "note://one");
        assert_eq!(client.read("note://one").await.unwrap().contents[0].uri(), "note://one");
        assert!(client.read("note://none").await.unwrap_err().is_resource_not_found(), "{way:?}");
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

#[tokio::test]
async fn the_era_is_found_by_itself() {
    let site = Site::open(server()).await;
    for (path, expected) in [("/mcp", Revision::V2026_07_28), ("/sse", Revision::V2025_11_25)] {
        let client = Client::connect(http(format!("{}{path}", site.origin))).await.unwrap();
        assert_eq!(client.revision(), expected, "{path}");
    }
}

#[tokio::test]
async fn a_session_is_ended_with_its_client() {
    let site = Site::open(server()).await;
    for revision in Revision::ALL.into_iter().filter(|revision| !revision.is_modern()) {
        let client = site.connect(Client::builder(), Way(revision, "/mcp")).await;
        assert_eq!(site.endpoint.sessions(), 1);
        client.close().await;
        assert_eq!(site.endpoint.sessions(), 0, "{revision}");
    }
}

#[tokio::test]
async fn progress_and_logs_arrive() {
    let site = Site::open(server()).await;
    for way in ways() {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (logs, steps) = (Arc::clone(&seen), Arc::clone(&seen));
        let builder = Client::builder()
            .log_level(LoggingLevel::Info)
            .on_log(move |message| logs.lock().unwrap().push(message.data.to_string()));
        let client = site.connect(builder, way).await;
        let call = client
            .call("steps", ())
            .progress(move |step| steps.lock().unwrap().push(step.progress.to_string()));
        assert_eq!(call.await.unwrap().text(), "done");
        assert_eq!(*seen.lock().unwrap(), ["1", "\"half way\"", "2"], "{way:?}");
    }
}

#[tokio::test]
async fn a_handler_that_asks_is_answered_in_every_revision_that_can() {
    let site = Site::open(server()).await;
    let folder = format!("file://{}", std::env::temp_dir().display());
    for way in ways() {
        let builder = Client::builder()
            .on_ask(|_| async { Answer::accept(json!({ "name": "Ada" })) })
            .on_sample(|_| async { CreateMessageResult::new(Role::Assistant, "hm", "model") })
            .roots([Root::new(folder.clone())]);
        let client = site.connect(builder, way).await;
        assert_eq!(client.call("think", ()).await.unwrap().text(), "hm", "{way:?}");
        assert_eq!(client.call("where", ()).await.unwrap().text(), folder, "{way:?}");
        let greeted = client.call("greet", ()).await;
        if way.0 >= Revision::V2025_06_18 {
            assert_eq!(greeted.unwrap().text(), "hello Ada", "{way:?}");
        } else {
            assert!(greeted.is_err() || greeted.is_ok_and(|greeted| greeted.is_error()));
        }
    }
}

#[tokio::test]
async fn changes_are_received_in_every_revision() {
    for way in ways() {
        let site = Site::open(server()).await;
        let client = site.connect(Client::builder(), way).await;
        let filter = SubscriptionFilter::new()
            .tools_list_changed(true)
            .resource_subscriptions(vec!["note://one".to_owned()]);
        let mut listen = client.listen(filter).await.unwrap();
        let before = client.tools().await.unwrap().len();
        site.registry.add_tool(Tool::new("new").handler(|| "x")).unwrap();
        assert_eq!(listen.next().await, Some(Change::Tools), "{way:?}");
        assert_eq!(client.tools().await.unwrap().len(), before + 1);
        site.registry.resource_updated("note://one");
        assert_eq!(listen.next().await, Some(Change::Resource("note://one".into())), "{way:?}");
    }
}

/// Tells when it is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn an_abandoned_call_is_dropped_at_the_server() {
    for way in ways() {
        let (started, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
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
        let site = Site::open(server).await;
        let client = site.connect(Client::builder(), way).await;
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
    let site = Site::open(server()).await;
    for way in ways() {
        let client = site.connect(Client::builder(), way).await;
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..100i64 {
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
        client.close().await;
    }
}

#[tokio::test]
async fn a_server_that_closes_the_stream_is_reconnected_to() {
    let patient = Tool::new("patient").handler(|ctx: Ctx| async move {
        ctx.close_stream();
        tokio::task::yield_now().await;
        "worth the wait"
    });
    let site = Site::open(Server::new("slow").tool(patient)).await;
    for way in ways() {
        let client = site.connect(Client::builder(), way).await;
        assert_eq!(client.call("patient", ()).await.unwrap().text(), "worth the wait", "{way:?}");
    }
}
