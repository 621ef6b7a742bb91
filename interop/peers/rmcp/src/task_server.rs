//! The contract for tasks of interop/README.md, served by the Rust SDK. Usage: `rmcp-task_server [--http PORT]`.

#![allow(deprecated, reason = "the contract has what newer revisions deprecate")]

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::*,
    service::RequestContext,
    task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions},
    transport::{
        stdio,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};
use serde_json::{Value, json};
use std::time::Duration;

type Result<T> = std::result::Result<T, ErrorData>;
type Ended = std::result::Result<CallToolResult, TaskExit>;

#[derive(Clone, Default)]
struct Jobs {
    tasks: TaskManager,
}

fn object(value: Value) -> JsonObject {
    serde_json::from_value(value).expect("written as an object")
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

async fn slow_compute(task: TaskContext, arguments: Value) -> Ended {
    let seconds = arguments["seconds"].as_f64().unwrap_or_default();
    tokio::select! {
        () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => {}
        () = task.cancelled() => return Err(TaskExit::Cancelled),
    }
    Ok(text(format!("{} took {seconds} s", arguments["label"].as_str().unwrap_or("unnamed"))))
}

/// Asks for one value, and gives it.
async fn ask(
    task: &TaskContext,
    message: String,
    field: &str,
    kind: &str,
) -> std::result::Result<Value, TaskExit> {
    let schema = json!({ "type": "object", "properties": { field: { "type": kind } }, "required": [field] });
    let form = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: serde_json::from_value(schema).expect("written as a form"),
    };
    let request = InputRequest::Elicitation(ElicitRequest::new(form));
    Ok(task.request_input(field, request).await?["content"][field].take())
}

async fn confirm_delete(task: TaskContext, arguments: Value) -> Ended {
    let filename = arguments["filename"].as_str().unwrap_or_default();
    let sure = ask(&task, format!("Delete {filename}?"), "confirm", "boolean").await?;
    Ok(text(format!("{} {filename}", if sure == true { "deleted" } else { "kept" })))
}

async fn multi_input(task: TaskContext) -> Ended {
    let name = ask(&task, "Your name?".into(), "name", "string");
    let sure = ask(&task, "Are you sure?".into(), "confirm", "boolean");
    let (name, sure) = tokio::try_join!(name, sure)?;
    let name = name.as_str().unwrap_or_default();
    Ok(text(format!("{name} is {}", if sure == true { "sure" } else { "not sure" })))
}

impl ServerHandler for Jobs {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tasks().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("rmcp", "1.0.0"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult> {
        let names = ["slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input"];
        let tool = |name: &'static str| Tool::new(name, name, object(json!({ "type": "object" })));
        Ok(ListToolsResult::with_all_items(names.map(tool).into()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let options = TaskOptions::new().with_poll_interval_ms(100);
        let tasks = &self.tasks;
        let task = match request.name.as_ref() {
            "slow_compute" => tasks.spawn(options, |task| Box::pin(slow_compute(task, arguments))),
            "failing_job" => tasks.spawn(options, |_| {
                let failed = ContentBlock::text("the job failed, as it always does");
                Box::pin(async { Ok(CallToolResult::error(vec![failed])) })
            }),
            "protocol_error_job" => tasks.spawn(options, |_| {
                let error = ErrorData::internal_error("the job broke the protocol", None);
                Box::pin(async { Err(error.into()) })
            }),
            "confirm_delete" => tasks.spawn(options, |task| Box::pin(confirm_delete(task, arguments))),
            "multi_input" => tasks.spawn(options, |task| Box::pin(multi_input(task))),
            _ => return Err(ErrorData::invalid_params("there is no such tool", None)),
        };
        Ok(CreateTaskResult::new(task).into())
    }

    async fn get_task(&self, request: GetTaskParams, _: RequestContext<RoleServer>) -> Result<GetTaskResult> {
        self.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<()> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<()> {
        self.tasks.cancel_task(&request.task_id)
    }
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let jobs = Jobs::default();
    let mut words = std::env::args().skip(1);
    if let (Some("--http"), Some(port)) = (words.next().as_deref(), words.next()) {
        let settings = StreamableHttpServerConfig::default();
        let service: StreamableHttpService<Jobs, LocalSessionManager> =
            StreamableHttpService::new(move || Ok(jobs.clone()), Default::default(), settings);
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
        axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    } else {
        jobs.serve(stdio()).await?.waiting().await?;
    }
    Ok(())
}
