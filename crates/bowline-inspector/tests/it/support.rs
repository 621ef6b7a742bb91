//! A host with one server, its inspector, and a browser that has a key.

use bowline_host::{Host, Start, Upstream};
use bowline_inspector::{
    Inspector, InspectorOptions, InspectorService,
    query::{Grade, Mode},
};
use bowline_policy::{Gate, Guard, GuardBuilder, Policy, Question, Rule, Verdict};
use bowline_server::{BoxFuture, Ctx, Server, ServerHandle, Task, Tool};
use bowline_types::{Revision, ToolAnnotations};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tower_service::Service as _;

/// The address that requests name. Nothing listens there: requests go to the service directly.
pub(crate) const HOST: &str = "127.0.0.1:7338";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
    #[serde(default)]
    api_key: Option<String>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sure {
    sure: bool,
}

pub(crate) struct Site {
    pub(crate) inspector: Inspector,
    pub(crate) host: Host,
    pub(crate) handle: ServerHandle,
    pub(crate) service: InspectorService,
    pub(crate) key: String,
}

/// A terminal at which nobody answers.
pub(crate) struct Silent;

impl Gate for Silent {
    fn ask(&self, _: Question) -> BoxFuture<'_, Verdict> {
        Box::pin(std::future::pending())
    }
}

fn server() -> Server {
    let read_only = ToolAnnotations::new().read_only_hint(true);
    let destructive = ToolAnnotations::new().destructive_hint(true);
    let echo = |Echo { text, api_key }: Echo| format!("{text} {}", api_key.unwrap_or_default());
    Server::new("demo")
        .tool(Tool::new("echo").description("Says it again").annotations(read_only).handler(echo))
        .tool(
            Tool::new("erase")
                .annotations(destructive)
                .handler(|Echo { text, .. }: Echo| format!("erased {text}")),
        )
        .tool(Tool::new("ask").handler(async |ctx: Ctx, Echo { text, .. }: Echo| {
            let answer = ctx.ask::<Sure>(format!("Really {text}?")).await?;
            let is_sure = matches!(answer, bowline_server::Answer::Accept(Sure { sure: true }));
            Ok::<_, bowline_server::Error>(format!("answered {is_sure}"))
        }))
        .tool(Tool::new("job").task(Task::now().required()).handler(
            async |ctx: Ctx, Echo { text, .. }: Echo| {
                ctx.status(format!("works on {text}"));
                ctx.sleep(Duration::from_millis(20)).await?;
                Ok::<_, bowline_server::Error>(format!("made {text}"))
            },
        ))
        .tool(Tool::new("wait").handler(async |_: Echo| -> String { std::future::pending().await }))
}

/// Starts a host whose server speaks `revision`, with questions in the page and at a silent terminal.
pub(crate) async fn site(revision: Option<Revision>) -> Site {
    let policy = Policy::new([Rule::ask().tool("erase"), Rule::allow().tool("*")]);
    site_with(revision, policy, |options| options).await
}

pub(crate) async fn site_with(
    revision: Option<Revision>,
    policy: Policy,
    change: impl FnOnce(InspectorOptions) -> InspectorOptions,
) -> Site {
    site_guarded(revision, |guard| guard.policy(policy), change).await
}

/// Starts a host with this guard.
pub(crate) async fn site_guarded(
    revision: Option<Revision>,
    guard: impl FnOnce(GuardBuilder) -> GuardBuilder,
    change: impl FnOnce(InspectorOptions) -> InspectorOptions,
) -> Site {
    let mut options = InspectorOptions::new(Mode::Up);
    options.secrets = vec!["hunter2-secret".into()];
    let inspector = Inspector::new(change(options)).unwrap();
    site_at(revision, inspector, Arc::new(Silent), guard).await
}

/// Starts a host with this inspector, terminal and guard.
pub(crate) async fn site_at(
    revision: Option<Revision>,
    inspector: Inspector,
    terminal: Arc<dyn Gate>,
    guard: impl FnOnce(GuardBuilder) -> GuardBuilder,
) -> Site {
    let guard = guard(Guard::builder().gate(inspector.gate(Some(terminal)))).build();
    let mut upstream = Upstream::from(server().build().unwrap()).start(Start::Eager);
    if let Some(revision) = revision {
        upstream = upstream.revision(revision);
    }
    let host = Host::builder().add("demo", upstream).guard(guard).attended().tap(inspector.tap()).build();
    let handle = host.open(Server::new("gateway")).unwrap();
    inspector.attach_host(&host, &handle);
    // Queries do not wait for servers that start.
    host.start_server("demo").await;
    let service = inspector.service();
    let mut site = Site { inspector, host, handle, service, key: String::new() };
    site.key = site.key(Grade::Control).await;
    site
}

impl Site {
    /// Opens a link of this grade and returns the key.
    pub(crate) async fn key(&self, grade: Grade) -> String {
        let code = self.inspector.link(grade).unwrap();
        let (status, entered) = self.send(post("/api/enter", None, &json!({"code":code.expose()}))).await;
        assert_eq!(status, StatusCode::OK, "{entered}");
        entered["key"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn raw(&self, request: Request<Full<Bytes>>) -> Response<bowline_http::Body> {
        self.service.clone().call(request).await.unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> (StatusCode, Value) {
        let response = self.raw(request).await;
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    pub(crate) async fn query(&self, query: Value) -> Value {
        let (status, reply) = self.send(post("/api/query", Some(&self.key), &query)).await;
        assert_eq!(status, StatusCode::OK, "{query}: {reply}");
        reply
    }

    pub(crate) async fn act(&self, action: Value) -> (StatusCode, Value) {
        self.send(post("/api/act", Some(&self.key), &action)).await
    }

    /// Calls a tool from the page and returns the number of the call.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> u64 {
        let params = json!({"name":tool,"arguments":arguments});
        let action = json!({"action":"send","server":"demo","method":"tools/call","params":params});
        let (status, sent) = self.act(action).await;
        assert_eq!(status, StatusCode::OK, "{sent}");
        sent["call"].as_u64().unwrap()
    }

    /// Repeats a query until the reply is as wanted, woken by the event stream.
    pub(crate) async fn until(&self, query: Value, is_there: impl Fn(&Value) -> bool) -> Value {
        let mut stream = self.raw(get("/api/events?after=0", Some(&self.key))).await.into_body();
        loop {
            let reply = self.query(query.clone()).await;
            if is_there(&reply) {
                return reply;
            }
            stream.frame().await.expect("the stream ended").unwrap();
        }
    }

    /// Waits for the result of a call.
    pub(crate) async fn result(&self, call: u64) -> Value {
        self.until(json!({"query":"result","call":call}), |view| view["verdict"] != "running").await
    }
}

pub(crate) fn post(path: &str, key: Option<&str>, body: &Value) -> Request<Full<Bytes>> {
    let mut request = Request::post(path).header("host", HOST).header("content-type", "application/json");
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    request.body(Full::from(body.to_string())).unwrap()
}

pub(crate) fn get(path: &str, key: Option<&str>) -> Request<Full<Bytes>> {
    let mut request = Request::get(path).header("host", HOST);
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    request.body(Full::default()).unwrap()
}
