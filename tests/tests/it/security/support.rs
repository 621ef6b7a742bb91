//! A server to attack.

pub(crate) use super::wire::{DEADLINE, Reply, Request, Wire, describe, find};
use bowline_http::{HttpOptions, HttpService};
use bowline_server::{Ctx, Prompt, Registry, Resource, Result, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
};

#[derive(Deserialize, JsonSchema)]
struct Echo {
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Who {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Region {
    #[schemars(extend("x-mcp-header" = "Region"))]
    #[expect(dead_code, reason = "only mirrored into a header")]
    region: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Limit {
    #[schemars(extend("x-mcp-header" = "Limit"))]
    #[expect(dead_code, reason = "only mirrored into a header")]
    limit: Option<f64>,
}

/// How often tools ran, and how to hold one up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    pub(crate) ran: Arc<AtomicUsize>,
    /// `gated` has begun.
    started: Arc<Notify>,
    /// Lets one `gated` go on.
    pub(crate) gate: Arc<Notify>,
}

impl Watch {
    pub(crate) fn ran(&self) -> usize {
        self.ran.load(Ordering::SeqCst)
    }

    /// Waits until `gated` has begun once more.
    pub(crate) async fn begun(&self) {
        tokio::time::timeout(DEADLINE, self.started.notified()).await.expect("the tool has begun");
    }

    fn count(&self) {
        self.ran.fetch_add(1, Ordering::SeqCst);
    }
}

/// A server whose every tool counts.
pub(crate) fn server(watch: &Watch) -> Server {
    let counted = || watch.clone();
    let (hit, echo, who, report, gated, greet) =
        (counted(), counted(), counted(), counted(), counted(), counted());
    let (region, limit) = (counted(), counted());
    let integer = bowline_types::RawJson::of(&json!({
        "type": "object", "properties": { "limit": { "type": "integer", "x-mcp-header": "Limit" } },
    }));
    Server::new("target")
        .tool(Tool::new("hit").handler(move || {
            hit.count();
            "hit"
        }))
        .tool(Tool::new("echo").handler(move |Echo { message }: Echo| {
            echo.count();
            message
        }))
        .tool(Tool::new("who").handler(move |ctx: Ctx| {
            who.count();
            ctx.client().principal.as_deref().unwrap_or("nobody").to_owned()
        }))
        .tool(Tool::new("report").handler(move |ctx: Ctx, Echo { message }: Echo| {
            report.count();
            ctx.progress_with(1.0, None, message.clone());
            message
        }))
        .tool(Tool::new("gated").handler(move |ctx: Ctx| {
            let watch = gated.clone();
            async move {
                watch.count();
                ctx.progress(1.0, 2.0);
                watch.started.notify_one();
                watch.gate.notified().await;
                "through"
            }
        }))
        .tool(Tool::new("greet").handler(move |ctx: Ctx| {
            let watch = greet.clone();
            async move {
                let Who { name } = ctx.ask("Who are you?").await?.accepted()?;
                watch.count();
                Result::<_>::Ok(format!("hello {name}"))
            }
        }))
        .tool(Tool::new("region").handler(move |_: Region| {
            region.count();
            "rows"
        }))
        .tool(Tool::new("limit").input_schema(integer.unwrap()).handler(move |_: Limit| {
            limit.count();
            "rows"
        }))
        .tool(Tool::new("panic").handler(|| -> String { panic!("on purpose") }))
        .prompt(Prompt::new("greet").handler(|| "hi"))
        .resource(Resource::new("http://x/y", "y").text("why"))
}

/// A server on a port of its own.
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) service: HttpService,
    pub(crate) watch: Watch,
    pub(crate) registry: Registry,
    serving: JoinHandle<()>,
}

impl Endpoint {
    /// With the defaults.
    pub(crate) async fn new() -> Self {
        Self::with(HttpOptions::new()).await
    }

    pub(crate) async fn with(settings: HttpOptions) -> Self {
        let watch = Watch::default();
        let server = server(&watch);
        Self::serve(server, watch, settings).await
    }

    pub(crate) async fn serve(server: Server, watch: Watch, settings: HttpOptions) -> Self {
        let registry = server.registry();
        let service = HttpService::with_options(server.build().unwrap(), settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = {
            let service = service.clone();
            tokio::spawn(async move { service.serve(listener, std::future::pending()).await.unwrap() })
        };
        Self { address, service, watch, registry, serving }
    }

    pub(crate) fn ran(&self) -> usize {
        self.watch.ran()
    }

    pub(crate) async fn connect(&self) -> Wire {
        Wire::new(TcpStream::connect(self.address).await.unwrap())
    }

    /// Sends one request on a connection of its own.
    pub(crate) async fn send(&self, request: &Request) -> Reply {
        self.send_raw(&request.bytes(self.address)).await
    }

    /// Sends bytes on a connection of their own.
    pub(crate) async fn send_raw(&self, bytes: &[u8]) -> Reply {
        let mut wire = self.connect().await;
        wire.write(bytes).await;
        wire.reply().await
    }

    /// The server still does what it is asked to.
    pub(crate) async fn is_alive(&self) {
        let before = self.ran();
        let reply = self.send(&Request::call("hit", json!({}))).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], "hit", "{reply:?}");
        assert_eq!(self.ran(), before + 1);
    }

    /// Opens a session of this revision and completes its handshake.
    pub(crate) async fn open(&self, revision: &str) -> String {
        let opened = self.send(&Request::hello(revision)).await;
        let id = opened.header("mcp-session-id").unwrap().to_owned();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let accepted = self.send(&Request::post(&ready).set("Mcp-Session-Id", &id)).await;
        assert_eq!(accepted.status, 202, "{accepted:?}");
        id
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
