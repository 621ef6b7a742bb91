//! Takes a server through the contract of interop/README.md with the Rust SDK.
//!
//! Usage: `rmcp-client REVISION (URL | PROGRAM ARGUMENTS…)`. A legacy revision is for the server to choose; `any`
//! is for both to find.

#![allow(deprecated, reason = "the contract has what newer revisions deprecate")]

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient, ServiceError,
    model::*,
    service::{NotificationContext, RequestContext, RunningService},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};
use std::{fmt::Debug, future::Future, time::Duration};
use tokio::{
    process::Command,
    sync::mpsc::{self, Receiver, Sender},
    time::{sleep, timeout},
};

const PATIENCE: Duration = Duration::from_secs(10);
const TOOLS: [&str; 10] =
    ["add", "ask", "bump", "cancelled", "echo", "fail", "log", "slow", "think", "where"];

type Found = Result<(), Box<dyn std::error::Error>>;

/// Answers what the server asks, and passes on what it tells.
struct Handler {
    step: Sender<(f64, Option<f64>)>,
    log: Sender<Value>,
    update: Sender<String>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::builder().enable_roots().enable_sampling().build();
        capabilities.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(capabilities, Implementation::new("rmcp", "1.0.0"))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let answer = SamplingMessage::assistant_text("42");
        Ok(CreateMessageResult::new(answer, "deep-thought".into()))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new("file:///tmp")]))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "name": "Ada" })))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self.step.send((params.progress, params.total)).await;
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.log.send(params.data).await;
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.update.send(params.uri).await;
    }
}

struct Demo {
    client: RunningService<RoleClient, Handler>,
    revision: String,
    steps: Receiver<(f64, Option<f64>)>,
    logged: Receiver<Value>,
    updated: Receiver<String>,
}

fn same<T: PartialEq + Debug>(found: T, expected: T) -> Found {
    if found == expected { Ok(()) } else { Err(format!("expected {expected:?}, got {found:?}").into()) }
}

fn first(result: &CallToolResult) -> String {
    result.content.first().and_then(ContentBlock::as_text).map(|text| text.text.clone()).unwrap_or_default()
}

impl Demo {
    fn is_modern(&self) -> bool {
        self.revision.as_str() >= "2026-07-28"
    }

    async fn call_with(
        &self,
        name: &'static str,
        arguments: Value,
        meta: Option<RequestMetaObject>,
    ) -> Result<CallToolResult, ServiceError> {
        let arguments = serde_json::from_value(arguments).expect("written as an object");
        let mut params = CallToolRequestParams::new(name).with_arguments(arguments);
        params.meta = meta;
        self.client.call_tool(params).await
    }

    async fn call_tool(&self, name: &'static str, arguments: Value) -> Result<CallToolResult, ServiceError> {
        self.call_with(name, arguments, None).await
    }

    async fn text(&self, name: &'static str, arguments: Value) -> Result<String, Box<dyn std::error::Error>> {
        let result = self.call_tool(name, arguments).await?;
        if result.is_error == Some(true) { Err(first(&result).into()) } else { Ok(first(&result)) }
    }

    async fn reads(&self, uri: &str, expected: &str) -> Found {
        let result = self.client.read_resource(ReadResourceRequestParams::new(uri)).await?;
        same(serde_json::to_value(&result.contents)?[0]["text"].as_str(), Some(expected))
    }

    async fn list(&mut self) -> Found {
        let tools = self.client.list_all_tools().await?;
        let mut names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        names.sort_unstable();
        same(names, TOOLS.to_vec())
    }

    async fn call(&mut self) -> Found {
        same(self.text("echo", json!({ "message": "hé, 世界" })).await?.as_str(), "hé, 世界")
    }

    /// Revisions before 2025-06-18 have the same as text.
    async fn structured(&mut self) -> Found {
        let result = self.call_tool("add", json!({ "a": 2, "b": 3 })).await?;
        let found = if self.revision.as_str() >= "2025-06-18" {
            result.structured_content
        } else {
            serde_json::from_str(&first(&result)).ok()
        };
        same(found, Some(json!({ "sum": 5 })))
    }

    async fn error(&mut self) -> Found {
        let result = self.call_tool("fail", json!({})).await?;
        same((result.is_error, first(&result).contains("it failed")), (Some(true), true))?;
        let read = self.client.read_resource(ReadResourceRequestParams::new("demo://nothing")).await;
        same(matches!(read, Err(ServiceError::McpError(_))), true)
    }

    async fn progress(&mut self) -> Found {
        same(self.text("slow", json!({ "steps": 3 })).await?.as_str(), "done")?;
        let mut heard = Vec::new();
        while heard.len() < 3 {
            heard.extend(self.steps.recv().await);
        }
        same(heard, vec![(1.0, Some(3.0)), (2.0, Some(3.0)), (3.0, Some(3.0))])
    }

    async fn cancel(&mut self) -> Found {
        let before: u32 = self.text("cancelled", json!({})).await?.parse()?;
        let mut steps = std::mem::replace(&mut self.steps, mpsc::channel(1).1);
        tokio::select! {
            called = self.call_tool("slow", json!({ "steps": 1, "hold": true })) => {
                return Err(format!("it was not to end: {called:?}").into());
            }
            _ = steps.recv() => {}
        }
        // It was dropped above. The server has the time limit of this feature to notice.
        while self.text("cancelled", json!({})).await?.parse::<u32>()? != before + 1 {
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    async fn log(&mut self) -> Found {
        let mut meta = None;
        if self.is_modern() {
            meta.get_or_insert_with(RequestMetaObject::new).set_log_level(LoggingLevel::Info);
        } else {
            self.client.set_level(SetLevelRequestParams::new(LoggingLevel::Info)).await?;
        }
        same(first(&self.call_with("log", json!({}), meta).await?).as_str(), "logged")?;
        same(self.logged.recv().await, Some(json!("a word")))
    }

    async fn resources(&mut self) -> Found {
        let resources = self.client.list_all_resources().await?;
        let mut uris: Vec<_> = resources.iter().map(|resource| resource.uri.as_str()).collect();
        uris.sort_unstable();
        same(uris, vec!["demo://counter", "demo://text"])?;
        self.reads("demo://text", "Hello, resource!").await
    }

    async fn templates(&mut self) -> Found {
        let templates = self.client.list_all_resource_templates().await?;
        let templates: Vec<_> = templates.iter().map(|template| template.uri_template.as_str()).collect();
        same(templates, vec!["demo://item/{id}"])?;
        self.reads("demo://item/7", "item 7").await
    }

    async fn subscribe(&mut self) -> Found {
        let uri = "demo://counter";
        let counter = if self.is_modern() {
            let filter = SubscriptionFilter::builder().resource_subscriptions([uri]).build();
            let mut subscription = self.client.listen(filter).await?;
            let counter = self.text("bump", json!({})).await?;
            match subscription.next().await? {
                Some(ServerNotification::ResourceUpdatedNotification(changed)) => {
                    same(changed.params.uri.as_str(), uri)?;
                }
                other => return Err(format!("expected a change, got {other:?}").into()),
            }
            subscription.cancel().await?;
            counter
        } else {
            self.client.subscribe(SubscribeRequestParams::new(uri)).await?;
            let counter = self.text("bump", json!({})).await?;
            same(self.updated.recv().await.as_deref(), Some(uri))?;
            self.client.unsubscribe(UnsubscribeRequestParams::new(uri)).await?;
            counter
        };
        self.reads(uri, &counter).await
    }

    async fn prompts(&mut self) -> Found {
        let prompts = self.client.list_all_prompts().await?;
        same(prompts.iter().map(|prompt| prompt.name.as_str()).collect(), vec!["greet"])?;
        let arguments = serde_json::from_value(json!({ "name": "Ada" }))?;
        let params = GetPromptRequestParams::new("greet").with_arguments(arguments);
        let filled = serde_json::to_value(self.client.get_prompt(params).await?.messages)?;
        same(filled[0]["content"]["text"].as_str(), Some("Hello, Ada!"))
    }

    async fn completion(&mut self) -> Found {
        let proposals = self.client.complete_prompt_argument("greet", "name", "A", None).await?;
        same(proposals.values, vec!["Ada".to_owned(), "Alan".to_owned()])
    }

    async fn sampling(&mut self) -> Found {
        same(self.text("think", json!({})).await?.as_str(), "deep-thought: 42")
    }

    async fn elicitation(&mut self) -> Found {
        same(self.text("ask", json!({})).await?.as_str(), "accept Ada")
    }

    async fn roots(&mut self) -> Found {
        same(self.text("where", json!({})).await?.as_str(), "file:///tmp")
    }
}

async fn report(feature: &str, check: impl Future<Output = Found>) {
    let found = timeout(PATIENCE, check).await;
    let line = match found.unwrap_or_else(|_| Err(format!("nothing within {PATIENCE:?}").into())) {
        Ok(()) => json!({ "feature": feature, "status": "ok" }),
        Err(error) => json!({ "feature": feature, "status": "fail", "detail": error.to_string() }),
    };
    println!("{line}");
}

async fn connect(
    wanted: &str,
    target: String,
    words: impl Iterator<Item = String>,
) -> Result<Demo, Box<dyn std::error::Error>> {
    let (step, steps) = mpsc::channel(16);
    let (log, logged) = mpsc::channel(16);
    let (update, updated) = mpsc::channel(16);
    let handler = Handler { step, log, update };
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match wanted {
        "any" => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
        "2026-07-28" => ClientLifecycleMode::Discover { preferred_versions },
        _ => ClientLifecycleMode::Initialize,
    };
    let client = if target.starts_with("http") {
        handler.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(target), lifecycle).await?
    } else {
        let mut command = Command::new(target);
        command.args(words);
        handler.serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
    };
    let revision = client.peer_info().map(|info| info.protocol_version.to_string()).unwrap_or_default();
    Ok(Demo { client, revision, steps, logged, updated })
}

// The SDK runs the handler of each notification as a task of its own; on one thread they at least start in order.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Found {
    let mut words = std::env::args().skip(1);
    let (Some(wanted), Some(target)) = (words.next(), words.next()) else {
        return Err("usage: rmcp-client REVISION (URL | PROGRAM ARGUMENTS…)".into());
    };
    let mut demo = connect(&wanted, target, words).await?;
    println!("{}", json!({ "revision": demo.revision }));
    report("list", demo.list()).await;
    report("call", demo.call()).await;
    report("structured", demo.structured()).await;
    report("error", demo.error()).await;
    report("progress", demo.progress()).await;
    report("cancel", demo.cancel()).await;
    report("log", demo.log()).await;
    report("resources", demo.resources()).await;
    report("templates", demo.templates()).await;
    report("subscribe", demo.subscribe()).await;
    report("prompts", demo.prompts()).await;
    report("completion", demo.completion()).await;
    report("sampling", demo.sampling()).await;
    report("elicitation", demo.elicitation()).await;
    report("roots", demo.roots()).await;
    demo.client.cancel().await?;
    Ok(())
}
