//! A gateway as its users meet it: files in, servers behind it, clients in front.

mod approvals;
mod auth;
mod connect;
mod consent;
mod credentials;
mod disclosure;
mod edge;
mod reload;
mod settings;
mod telemetry;

use bowline_config::{Config, Environment, Loader, Scope, Source};
use bowline_host::Gateway;
use bowline_http::{Body, HttpOptions, HttpService, RequestFilter};
use bowline_server::{BoxFuture, Ctx, Server, ServerHandle, Tool};
use bowline_testing::Peer;
use bowline_types::Revision;
use http::{Response, request::Parts};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    net::TcpListener,
    sync::{Notify, oneshot},
};

/// A server behind the gateway, until it is dropped.
struct Far {
    url: String,
    /// A call of `slow` has come.
    started: Arc<Notify>,
    /// Lets a call of `slow` go on.
    release: Arc<Notify>,
    end: oneshot::Sender<()>,
    served: tokio::task::JoinHandle<()>,
}

impl Far {
    /// One with the tools `fast`, `slow` and `trace`.
    async fn start() -> Self {
        Self::with(Server::new("far")).await
    }

    /// One with further tools.
    async fn with(server: Server) -> Self {
        Self::served(server, HttpOptions::new()).await
    }

    async fn served(server: Server, settings: HttpOptions) -> Self {
        Self::listening(server, settings, TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    /// One at an address where another one was.
    async fn at(server: Server, address: SocketAddr) -> Self {
        Self::listening(server, HttpOptions::new(), TcpListener::bind(address).await.unwrap())
    }

    /// Stops it, and gives its address.
    async fn stop(self) -> SocketAddr {
        drop(self.end);
        self.served.await.unwrap();
        let address = self.url.trim_start_matches("http://").trim_end_matches("/mcp");
        address.parse().unwrap()
    }

    fn listening(server: Server, settings: HttpOptions, listener: TcpListener) -> Self {
        let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let slow = {
            let (started, release) = (Arc::clone(&started), Arc::clone(&release));
            Tool::new("slow").handler(move || {
                let (started, release) = (Arc::clone(&started), Arc::clone(&release));
                async move {
                    started.notify_one();
                    release.notified().await;
                    "slow is done"
                }
            })
        };
        let trace = Tool::new("trace").handler(|ctx: Ctx| {
            ctx.meta().trace_context().map_or_else(|| "none".to_owned(), |context| context.traceparent)
        });
        let server = server.tool(Tool::new("fast").handler(|| "fast is done")).tool(slow).tool(trace);
        let service = HttpService::with_options(server.build().unwrap(), settings);
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (end, told) = oneshot::channel::<()>();
        let served = tokio::spawn(async move {
            let _ = service.serve(listener, async { drop(told.await) }).await;
        });
        Self { url, started, release, end, served }
    }
}

/// Writes down the headers of every request.
#[derive(Clone, Debug, Default)]
struct Headers(Arc<Mutex<String>>);

impl Headers {
    /// Those of each request on a line.
    fn all(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

impl RequestFilter for Headers {
    fn check<'a>(&'a self, request: &'a mut Parts) -> BoxFuture<'a, Option<Response<Body>>> {
        let line = format!("{:?}\n", request.headers);
        self.0.lock().unwrap().push_str(&line);
        Box::pin(std::future::ready(None))
    }
}

fn environment() -> Environment {
    Environment::new([("HOME", "/srv/ada"), ("GATE_TOKEN", "s3cret-token")])
}

/// The user's own file.
fn config(text: &str) -> Config {
    config_of(&[("bowline.toml", Scope::User, text)])
}

fn config_of(files: &[(&str, Scope, &str)]) -> Config {
    let texts: BTreeMap<PathBuf, String> =
        files.iter().map(|(path, _, text)| (PathBuf::from(path), (*text).to_owned())).collect();
    let sources = files.iter().map(|(path, scope, _)| Source::new(*path, *scope));
    Loader::new(environment()).sources(sources).load(&texts)
}

fn gateway(text: &str) -> Gateway {
    let config = config(text);
    assert_eq!(config.errors, []);
    Gateway::builder(config).environment(environment()).build().unwrap()
}

/// A file with one server, where everything is allowed.
fn open_file(far: &Far) -> String {
    format!("[[rules]]\neffect = \"allow\"\n\n[servers.far]\nurl = \"{}\"\n", far.url)
}

async fn client(handle: ServerHandle) -> Peer {
    let mut peer = Peer::memory(handle).unwrap().deadline(Duration::from_secs(20));
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    peer
}

async fn call(peer: &mut Peer, name: &str, arguments: Value) -> Value {
    let response = peer.request("tools/call", json!({ "name": name, "arguments": arguments })).await.unwrap();
    assert!(response.get("error").is_none(), "{response}");
    response["result"].clone()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

async fn tools(peer: &mut Peer) -> Vec<String> {
    let listed = peer.request("tools/list", json!({})).await.unwrap();
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bowline-gateway-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
