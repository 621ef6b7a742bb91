//! The contract of interop/README.md, served by the Rust SDK. Usage: `rmcp-server [--http PORT]`.

#![allow(deprecated, reason = "the contract has what newer revisions deprecate")]

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::*,
    service::{Peer, RequestContext, SubscriptionContext},
    transport::{
        stdio,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};
use serde_json::{Value, json};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};
use tokio::sync::watch;

type Result<T> = std::result::Result<T, ErrorData>;

#[derive(Clone)]
struct Demo {
    cancelled: Arc<AtomicU32>,
    /// What `bump` raises; listeners of the modern era watch it.
    counter: watch::Sender<u32>,
    /// A view of the counter for the next call of `listen`.
    watched: Arc<Mutex<Option<watch::Receiver<u32>>>>,
    /// Who asked, in a legacy era, to hear of it.
    subscribed: Arc<Mutex<Option<Peer<RoleServer>>>>,
}

fn object(value: Value) -> JsonObject {
    serde_json::from_value(value).expect("written as an object")
}

fn tools() -> Vec<Tool> {
    let plain = |name: &'static str| Tool::new(name, name, object(json!({ "type": "object" })));
    let with = |name: &'static str, properties: Value| {
        Tool::new(name, name, object(json!({ "type": "object", "properties": properties })))
    };
    let number = json!({ "type": "integer" });
    let mut add = with("add", json!({ "a": number, "b": number }));
    let sum = json!({ "type": "object", "properties": { "sum": number }, "required": ["sum"] });
    add.output_schema = Some(Arc::new(object(sum)));
    let mut tools = vec![
        with("echo", json!({ "message": { "type": "string" } })),
        add,
        with("slow", json!({ "steps": number, "hold": { "type": "boolean" } })),
    ];
    tools.extend(["fail", "cancelled", "log", "ask", "think", "where", "bump"].map(plain));
    tools
}

fn text(text: impl Into<String>) -> Result<CallToolResponse> {
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn person() -> ElicitRequestParams {
    let schema = json!({
        "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"]
    });
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: "Who are you?".into(),
        requested_schema: serde_json::from_value(schema).expect("written as a form"),
    }
}

fn question() -> CreateMessageRequestParams {
    CreateMessageRequestParams::new(vec![SamplingMessage::user_text("What is six times seven?")], 100)
}

/// Asks, in the way of the revision, for what the tool needs: by a request of its own, or by a result that the client
/// answers with another call.
async fn answer(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<std::result::Result<Value, InputRequiredResult>> {
    let input = match request.name.as_ref() {
        "ask" => InputRequest::Elicitation(ElicitRequest::new(person())),
        "think" => InputRequest::CreateMessage(CreateMessageRequest::new(question())),
        _ => InputRequest::ListRoots(ListRootsRequest::default()),
    };
    if context.protocol_version().is_some_and(|version| !version.has_initialize()) {
        let given = request.input_responses.as_ref().and_then(|responses| responses.get("input"));
        return Ok(match given {
            Some(given) => Ok(serde_json::to_value(given).map_err(internal)?),
            None => {
                let mut inputs = InputRequests::new();
                inputs.insert("input".to_owned(), input);
                Err(InputRequiredResult::new(Some(inputs), None))
            }
        });
    }
    let peer = &context.peer;
    let given = match request.name.as_ref() {
        "ask" => serde_json::to_value(peer.create_elicitation(person()).await.map_err(internal)?),
        "think" => serde_json::to_value(peer.create_message(question()).await.map_err(internal)?),
        _ => serde_json::to_value(peer.list_roots().await.map_err(internal)?),
    };
    Ok(Ok(given.map_err(internal)?))
}

impl Demo {
    async fn slow(
        &self,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse> {
        let steps = arguments["steps"].as_u64().unwrap_or_default() as u32;
        for step in 1..=steps {
            if let Some(token) = context.meta.get_progress_token() {
                let step = ProgressNotificationParam::new(token, step.into()).with_total(steps.into());
                context.peer.notify_progress(step).await.map_err(internal)?;
            }
        }
        if arguments["hold"] == true {
            context.ct.cancelled().await;
            self.cancelled.fetch_add(1, Ordering::Relaxed);
        }
        text("done")
    }

    async fn bump(&self) -> Result<CallToolResponse> {
        self.counter.send_modify(|counter| *counter += 1);
        let counter = *self.counter.borrow();
        let subscribed = self.subscribed.lock().expect("nothing panics with it").clone();
        if let Some(peer) = subscribed {
            let changed = ResourceUpdatedNotificationParam::new("demo://counter");
            peer.notify_resource_updated(changed).await.map_err(internal)?;
        }
        text(counter.to_string())
    }
}

impl ServerHandler for Demo {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("rmcp", "1.0.0"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse> {
        let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
        match request.name.as_ref() {
            "echo" => text(arguments["message"].as_str().unwrap_or_default()),
            "add" => {
                let sum = arguments["a"].as_i64().zip(arguments["b"].as_i64()).map(|(a, b)| a + b);
                Ok(CallToolResult::structured(json!({ "sum": sum })).into())
            }
            "fail" => Ok(CallToolResult::error(vec![ContentBlock::text("it failed")]).into()),
            "slow" => self.slow(&arguments, &context).await,
            "cancelled" => text(self.cancelled.load(Ordering::Relaxed).to_string()),
            "log" => {
                let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!("a word"));
                context.peer.notify_logging_message(message.with_logger("demo")).await.map_err(internal)?;
                text("logged")
            }
            "ask" => match answer(&request, &context).await? {
                Ok(answer) if answer["action"] == "accept" => {
                    text(format!("accept {}", answer["content"]["name"].as_str().unwrap_or_default()))
                }
                Ok(answer) => text(answer["action"].as_str().unwrap_or_default()),
                Err(required) => Ok(required.into()),
            },
            "think" => match answer(&request, &context).await? {
                Ok(answer) => {
                    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    text(format!("{}: {}", word(&answer["model"]), word(&answer["content"]["text"])))
                }
                Err(required) => Ok(required.into()),
            },
            "where" => match answer(&request, &context).await? {
                Ok(answer) => {
                    let uris = answer["roots"].as_array().into_iter().flatten();
                    text(uris.filter_map(|root| root["uri"].as_str()).collect::<Vec<_>>().join(" "))
                }
                Err(required) => Ok(required.into()),
            },
            "bump" => self.bump().await,
            _ => Err(ErrorData::invalid_params("there is no such tool", None)),
        }
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<()> {
        Ok(())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult> {
        let resource = |name| Resource::new(format!("demo://{name}"), name);
        Ok(ListResourcesResult::with_all_items(["text", "counter"].map(resource).into()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult> {
        let item = ResourceTemplate::new("demo://item/{id}", "item");
        Ok(ListResourceTemplatesResult::with_all_items(vec![item]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse> {
        let text = match request.uri.as_str() {
            "demo://text" => "Hello, resource!".to_owned(),
            "demo://counter" => self.counter.borrow().to_string(),
            uri => match uri.strip_prefix("demo://item/") {
                Some(id) => format!("item {id}"),
                None => return Err(ErrorData::resource_not_found("there is no such resource", None)),
            },
        };
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, request.uri)]).into())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<()> {
        *self.subscribed.lock().expect("nothing panics with it") = Some(context.peer);
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<()> {
        *self.subscribed.lock().expect("nothing panics with it") = None;
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // The client is told of the subscription before `listen` is called; what changes in between counts.
        *self.watched.lock().expect("nothing panics with it") = Some(self.counter.subscribe());
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<()> {
        let watched = self.watched.lock().expect("nothing panics with it").take();
        let mut counter = watched.unwrap_or_else(|| self.counter.subscribe());
        loop {
            tokio::select! {
                Ok(()) = counter.changed() => {
                    context.sink().notify_resource_updated("demo://counter").await.map_err(internal)?;
                }
                () = context.cancelled() => return Ok(()),
            }
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult> {
        let name = PromptArgument::new("name").with_required(true);
        let greet = Prompt::new("greet", Some("Greet somebody."), Some(vec![name]));
        Ok(ListPromptsResult::with_all_items(vec![greet]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse> {
        let arguments = serde_json::to_value(request.arguments).map_err(internal)?;
        let text = format!("Hello, {}!", arguments["name"].as_str().unwrap_or_default());
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult> {
        let names = ["Ada", "Alan", "Grace"].into_iter();
        let names = names.filter(|name| name.starts_with(&request.argument.value)).map(str::to_owned);
        let proposals = CompletionInfo::with_all_values(names.collect()).map_err(internal)?;
        Ok(CompleteResult::new(proposals))
    }
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let demo = Demo {
        cancelled: Arc::default(),
        counter: watch::Sender::new(0),
        watched: Arc::default(),
        subscribed: Arc::default(),
    };
    let mut words = std::env::args().skip(1);
    if let (Some("--http"), Some(port)) = (words.next().as_deref(), words.next()) {
        let settings = StreamableHttpServerConfig::default().with_legacy_session_mode(true);
        let service: StreamableHttpService<Demo, LocalSessionManager> =
            StreamableHttpService::new(move || Ok(demo.clone()), Default::default(), settings);
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
        axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    } else {
        demo.serve(stdio()).await?.waiting().await?;
    }
    Ok(())
}
