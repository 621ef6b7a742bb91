//! A server on a socket, a proxy before it, and a count of everything they hold.

use bowline_client::{Answer, Client, ClientBuilder};
use bowline_http::{HttpOptions, HttpService, http};
use bowline_server::{CompletionRequest, Ctx, Error, Prompt, Registry, Resource, Server, Tool};
use bowline_testing::fault::FaultProxy;
use bowline_types::{PromptArgument, Revision};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::{
    collections::HashMap,
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{net::TcpListener, runtime::Handle, task::JoinHandle};

/// How long anything may take before it counts as hanging, on a machine that is busy with other work.
pub(super) const GUARD: Duration = Duration::from_secs(20);

/// How many tasks an idle client may have, with its connections, the proxy's and the server's.
const A_FEW: usize = 24;

/// What the handlers of the server have done.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    runs: Mutex<HashMap<u64, u32>>,
    running: AtomicUsize,
}

/// A handler that runs.
#[derive(Debug)]
pub(super) struct Running(Arc<Ledger>);

impl Ledger {
    /// A handler works on the call of this number.
    fn run(self: &Arc<Self>, number: u64) -> Running {
        *self.runs.lock().expect("nothing panics with the lock").entry(number).or_default() += 1;
        self.running.fetch_add(1, Ordering::SeqCst);
        Running(Arc::clone(self))
    }

    pub(super) fn runs(&self, number: u64) -> u32 {
        self.runs.lock().expect("nothing panics with the lock").remove(&number).unwrap_or(0)
    }

    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    number: u64,
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Numbered {
    number: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Serves every shape of message. Tools take the number of their call, and the ledger says how often each was run.
fn server(ledger: &Arc<Ledger>) -> Server {
    let book = || Arc::clone(ledger);
    let (echo, fail, steps, greet, wait) = (book(), book(), book(), book(), book());
    Server::new("swept")
        .tool(Tool::new("echo").handler(move |Echo { number, text }: Echo| {
            let _running = echo.run(number);
            text
        }))
        .tool(Tool::new("fail").handler(move |Numbered { number }: Numbered| {
            let _running = fail.run(number);
            Err::<String, _>(Error::tool("no luck"))
        }))
        .tool(Tool::new("steps").handler(move |ctx: Ctx, Numbered { number }: Numbered| {
            let running = steps.run(number);
            async move {
                let _running = running;
                ctx.progress(1.0, 2.0);
                tokio::task::yield_now().await;
                ctx.progress(2.0, 2.0);
                "done"
            }
        }))
        .tool(Tool::new("greet").handler(move |ctx: Ctx, Numbered { number }: Numbered| {
            let ledger = Arc::clone(&greet);
            async move {
                let Name { name } = ctx.ask("Who are you?").await?.accepted()?;
                // What comes behind the question is what must not happen twice.
                let _running = ledger.run(number);
                Ok::<_, Error>(format!("hello {name}"))
            }
        }))
        .tool(Tool::new("wait").handler(move |ctx: Ctx, Numbered { number }: Numbered| {
            let running = wait.run(number);
            async move {
                let _running = running;
                ctx.progress(1.0, None);
                std::future::pending::<String>().await
            }
        }))
        .resource(Resource::new("note://one", "one").text("first"))
        .prompt(
            Prompt::new("about")
                .argument(PromptArgument::new("topic").required(true))
                .complete("topic", |typing: CompletionRequest| vec![format!("{}!", typing.value)])
                .handler(|| "what about it?"),
        )
}

/// What is held: everything that could leak.
#[derive(Clone, Debug)]
pub(super) struct Held {
    sessions: usize,
    tasks: usize,
    handlers: usize,
    proxied: u64,
    /// Sockets of this process to or from the server and the proxy, where the system tells.
    sockets: Option<usize>,
}

impl Held {
    /// Whether it is no more than at the start, when what was before may not have gone yet.
    fn is_within(&self, start: &Self) -> bool {
        self.sessions <= start.sessions
            && self.tasks <= start.tasks
            && self.handlers <= start.handlers
            && self.proxied <= start.proxied
            && self.sockets <= start.sockets
    }
}

/// A server and the way to it.
pub(super) struct Site {
    pub(super) ledger: Arc<Ledger>,
    pub(super) registry: Registry,
    pub(super) proxy: FaultProxy,
    endpoint: HttpService,
    serving: JoinHandle<()>,
    ports: [u16; 2],
}

impl Site {
    pub(super) async fn open() -> Self {
        let ledger = Arc::new(Ledger::default());
        let server = server(&ledger);
        let registry = server.registry();
        // Sessions that clients leave behind are to show up as leaks, or to be gone soon; those that are used must not expire on
        // a slow machine.
        let settings = HttpOptions::new()
            .session_idle(Duration::from_secs(4))
            .session_opening(Duration::from_secs(4))
            .retry(Duration::from_millis(1));
        let endpoint = HttpService::with_options(server.build().expect("the server is in order"), settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        let addr = listener.local_addr().expect("a listener has an address");
        let service = endpoint.clone();
        let serving = tokio::spawn(async move {
            service.serve(listener, std::future::pending()).await.expect("nothing ends it");
        });
        let proxy = FaultProxy::to(addr).start().await.expect("there is a free port");
        let ports = [addr.port(), proxy.addr().port()];
        Self { ledger, registry, proxy, endpoint, serving, ports }
    }

    /// A client that speaks one revision only.
    pub(super) async fn connect(&self, revision: Revision) -> bowline_client::Result<Client> {
        client(revision).connect(http(self.proxy.url("/mcp"))).await
    }

    pub(super) fn held(&self) -> Held {
        Held { sockets: sockets(self.ports), ..self.held_here() }
    }

    /// What can be counted without asking the system.
    fn held_here(&self) -> Held {
        Held {
            sessions: self.endpoint.sessions(),
            tasks: Handle::current().metrics().num_alive_tasks(),
            handlers: self.ledger.running(),
            proxied: self.proxy.traffic().sockets,
            sockets: None,
        }
    }

    /// Waits until no more is held than at the start; else what is held too much.
    pub(super) async fn settle(&self, start: &Held) -> Result<(), String> {
        let start_here = Held { sockets: None, ..start.clone() };
        let begun = Instant::now();
        loop {
            if self.held_here().is_within(&start_here) && self.held().is_within(start) {
                return Ok(());
            }
            if begun.elapsed() > GUARD {
                return Err(format!("held {:?} at the end, {start:?} at the start", self.held()));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until the server works on nothing; else on how much it does.
    ///
    /// A client with nothing under way has a few tasks at either end, and a server one for each call it works on.
    pub(super) async fn rest(&self, start: &Held) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let tasks = self.held_here().tasks.saturating_sub(start.tasks);
            if tasks <= A_FEW && self.ledger.running() == 0 {
                return Ok(());
            }
            if begun.elapsed() > GUARD {
                return Err(format!("{tasks} tasks are still there although no call is"));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Waits for an answer longer than anything is given here: no call may be saved by its timeout.
fn client(revision: Revision) -> ClientBuilder {
    Client::builder()
        .revisions([revision])
        .timeout(GUARD * 4)
        .on_ask(|_| async { Answer::accept(json!({ "name": "Ada" })) })
}

/// How many sockets are open that have one of these ports on either end.
fn sockets(ports: [u16; 2]) -> Option<usize> {
    let table = fs::read_to_string("/proc/self/net/tcp").ok()?;
    let port = |address: &str| u16::from_str_radix(address.rsplit(':').next()?, 16).ok();
    let is_ours = |line: &&str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, remote, .., inode] = fields.get(..10).unwrap_or_default() else { return false };
        // What the system keeps of a closed socket belongs to no file.
        let is_open = *inode != "0";
        is_open && [local, remote].iter().any(|end| port(end).is_some_and(|port| ports.contains(&port)))
    };
    Some(table.lines().filter(is_ours).count())
}
