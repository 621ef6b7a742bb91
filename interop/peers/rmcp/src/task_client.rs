//! Checks the tasks of a server with the Rust SDK: see the contract for tasks in interop/README.md.
//!
//! Usage: `rmcp-task_client 2026-07-28 (URL | PROGRAM ARGUMENTS…)`. The SDK has tasks in no other revision.

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceError,
    model::*,
    service::RunningService,
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};
use std::{fmt::Debug, future::Future, time::Duration};
use tokio::{
    process::Command,
    time::{sleep, timeout},
};

const PATIENCE: Duration = Duration::from_secs(15);

type Error = Box<dyn std::error::Error>;
type Found = Result<(), Error>;

struct Handler;

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::builder().enable_tasks().build();
        capabilities.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(capabilities, Implementation::new("rmcp", "1.0.0"))
    }
}

/// What the user answers to each open question.
fn answers(requests: &InputRequests) -> Result<InputResponses, Error> {
    let mut responses = InputResponses::new();
    for (key, request) in requests {
        let InputRequest::Elicitation(request) = request else {
            return Err(format!("expected a form, got {request:?}").into());
        };
        let message = serde_json::to_value(&request.params)?["message"].take();
        let is_name = message.as_str().is_some_and(|message| message.contains("name"));
        let content = if is_name { json!({ "name": "Ada" }) } else { json!({ "confirm": true }) };
        responses.insert(key.clone(), json!({ "action": "accept", "content": content }));
    }
    Ok(responses)
}

/// How a task ended.
struct End {
    payload: TaskPayload,
    /// How many questions there were at once, at most.
    asked: usize,
    /// Whether the SDK understood each acknowledgement of an answer. It is looked at last, so that everything else is
    /// known to work.
    acknowledged: Result<(), ServiceError>,
}

impl End {
    fn result(&self) -> Result<CallToolResult, Error> {
        match &self.payload {
            TaskPayload::Completed { result } => Ok(serde_json::from_value(Value::Object(result.clone()))?),
            other => Err(format!("expected a result, got {other:?}").into()),
        }
    }
}

fn understood(acknowledgement: Result<(), ServiceError>) -> Found {
    acknowledgement.map_err(|error| format!("all is well but the acknowledgement: {error}").into())
}

struct Demo {
    client: RunningService<RoleClient, Handler>,
}

impl Demo {
    /// Calls a tool, and gives the id of the task that it must become.
    async fn start(&self, name: &'static str, arguments: Value) -> Result<String, Error> {
        let arguments = serde_json::from_value(arguments)?;
        let params = CallToolRequestParams::new(name).with_arguments(arguments);
        match self.client.call_tool_once(params).await? {
            CallToolResponse::Task(created) => Ok(created.task.task_id),
            other => Err(format!("the call did not become a task: {other:?}").into()),
        }
    }

    async fn state(&self, id: &str) -> Result<DetailedTask, ServiceError> {
        Ok(self.client.get_task(GetTaskParams::new(id)).await?.task)
    }

    /// Polls until the task has ended, and answers what it asks.
    async fn end(&self, id: &str) -> Result<End, Error> {
        let (mut asked, mut acknowledged) = (0, Ok(()));
        loop {
            let state = self.state(id).await?;
            if let TaskPayload::InputRequired { input_requests } = &state.payload {
                asked = asked.max(input_requests.len());
                let answers = answers(input_requests)?;
                let update = self.client.update_task(UpdateTaskParams::new(id, answers)).await;
                acknowledged = acknowledged.and(update);
            }
            if state.status().is_terminal() {
                return Ok(End { payload: state.payload, asked, acknowledged });
            }
            sleep(Duration::from_millis(state.task.poll_interval_ms.unwrap_or(100))).await;
        }
    }

    /// Waits for a task without questions, and gives its result.
    async fn completed(&self, id: &str) -> Result<CallToolResult, Error> {
        self.end(id).await?.result()
    }

    async fn create(&self) -> Found {
        let id = self.start("slow_compute", json!({ "seconds": 600.0, "label": "a nap" })).await?;
        let state = self.state(&id).await?;
        same(&state.task.task_id, &id)?;
        same(&state.status(), &TaskStatus::Working)
    }

    async fn result(&self) -> Found {
        let id = self.start("slow_compute", json!({ "seconds": 0.5, "label": "a nap" })).await?;
        same(&first(&self.completed(&id).await?).as_str(), &"a nap took 0.5 s")?;
        same(&first(&self.completed(&id).await?).as_str(), &"a nap took 0.5 s")
    }

    async fn error(&self) -> Found {
        let id = self.start("failing_job", json!({})).await?;
        let called = self.completed(&id).await?;
        same(&called.is_error, &Some(true))?;
        same(&first(&called).contains("the job failed"), &true)
    }

    async fn failure(&self) -> Found {
        let id = self.start("protocol_error_job", json!({})).await?;
        match self.end(&id).await?.payload {
            TaskPayload::Failed { error } => same(&error.get("code"), &Some(&json!(-32603))),
            other => Err(format!("expected an error, got {other:?}").into()),
        }
    }

    async fn cancel(&self) -> Found {
        let id = self.start("slow_compute", json!({ "seconds": 600.0 })).await?;
        let acknowledgement = self.client.cancel_task(CancelTaskParams::new(id.as_str())).await;
        same(&self.end(&id).await?.payload, &TaskPayload::Cancelled)?;
        understood(acknowledgement)
    }

    async fn question(&self) -> Found {
        let id = self.start("confirm_delete", json!({ "filename": "a.txt" })).await?;
        let end = self.end(&id).await?;
        same(&first(&end.result()?).as_str(), &"deleted a.txt")?;
        understood(end.acknowledged)
    }

    async fn questions(&self) -> Found {
        let id = self.start("multi_input", json!({})).await?;
        let end = self.end(&id).await?;
        same(&end.asked, &2)?;
        same(&first(&end.result()?).as_str(), &"Ada is sure")?;
        understood(end.acknowledged)
    }

    async fn unknown(&self) -> Found {
        match self.state("nothing").await {
            Err(ServiceError::McpError(error)) => same(&error.code, &ErrorCode::INVALID_PARAMS),
            other => Err(format!("expected an error, got {other:?}").into()),
        }
    }
}

fn same<T: PartialEq + Debug>(found: &T, expected: &T) -> Found {
    if found == expected { Ok(()) } else { Err(format!("expected {expected:?}, got {found:?}").into()) }
}

fn first(result: &CallToolResult) -> String {
    result.content.first().and_then(ContentBlock::as_text).map(|text| text.text.clone()).unwrap_or_default()
}

async fn report(feature: &str, check: impl Future<Output = Found>) {
    let found = timeout(PATIENCE, check).await;
    let line = match found.unwrap_or_else(|_| Err(format!("nothing within {PATIENCE:?}").into())) {
        Ok(()) => json!({ "feature": feature, "status": "ok" }),
        Err(error) => json!({ "feature": feature, "status": "fail", "detail": error.to_string() }),
    };
    println!("{line}");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Found {
    let mut words = std::env::args().skip(1);
    let (Some("2026-07-28"), Some(target)) = (words.next().as_deref(), words.next()) else {
        return Err("usage: rmcp-task_client 2026-07-28 (URL | PROGRAM ARGUMENTS…)".into());
    };
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let client = if target.starts_with("http") {
        Handler.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(target), lifecycle).await?
    } else {
        let mut command = Command::new(target);
        command.args(words);
        Handler.serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
    };
    let revision = client.peer_info().map(|info| info.protocol_version.to_string());
    println!("{}", json!({ "revision": revision }));
    let demo = Demo { client };
    report("create", demo.create()).await;
    report("result", demo.result()).await;
    report("error", demo.error()).await;
    report("failure", demo.failure()).await;
    report("cancel", demo.cancel()).await;
    report("question", demo.question()).await;
    report("questions", demo.questions()).await;
    report("unknown", demo.unknown()).await;
    demo.client.cancel().await?;
    Ok(())
}
