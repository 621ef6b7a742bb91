//! Tool calls of a client with tasks: when a call asks for a task, and what happens if it becomes one.

use super::{Started, TaskHandle, TaskState, has_tasks};
use crate::{
    Error, Request, Result, ToolResult,
    client::Client,
    handlers::guarded,
    request::{Options, Plan},
};
use bowline_proto::client::Fulfilled;
use bowline_types::{
    CreateTaskResultV2025, Method, RawJson, Revision, TaskExt, TaskSupport, error_code, meta,
};
use serde::Deserialize;
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// Whether the caller wants a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// It waits for the result.
    Result,
    /// It takes a task if the server makes one.
    Task,
}

/// What a call became.
#[expect(clippy::large_enum_variant, reason = "it is matched at once and never stored")]
enum Called {
    Result(RawJson),
    Task(TaskState),
}

/// Calls a tool, and waits for the task if it becomes one. Dropping the future cancels the task, unless a handler was told
/// of it.
pub(crate) async fn call_and_wait(
    client: &Client,
    params: &RawJson,
    mut options: Options,
) -> Result<RawJson> {
    let total = options.timeouts.total;
    let state = match call(client, params, &mut options, Wanted::Result).await? {
        Called::Result(result) => return Ok(result),
        Called::Task(state) => state,
    };
    let on_task = options.on_task.take();
    if let Some(handler) = &on_task {
        guarded(|| handler(&state));
    }
    let task = TaskHandle::new(client, state.task.task_id.clone(), Some(state), None, options);
    // If nobody else knows the task, it ends with the call.
    let task = if on_task.is_some() { task } else { task.cancel_on_drop() };
    match tokio::time::timeout(total, task.result()).await {
        Ok(result) => result,
        Err(_) => Err(Error::timeout(Method::CallTool.as_str(), total).of_task(task.id())),
    }
}

/// Calls a tool. In 2025-11-25 the client decides whether the call becomes a task, in 2026-07-28 the server does.
async fn call(client: &Client, params: &RawJson, options: &mut Options, wanted: Wanted) -> Result<Called> {
    let core = client.core();
    let negotiated = core.connection().await?.negotiated().cloned();
    let Some(negotiated) = negotiated else { return Err(Error::closed("the handshake is not complete")) };
    if negotiated.revision != Revision::V2025_11_25 || !has_tasks(&negotiated) {
        return plain(client, params, options).await;
    }
    let name = tool_name(params)?;
    // Only the tool list says whether a tool can run as a task.
    let mut support = core.shared.tools.task_support(&name);
    if support.is_none() && wanted == Wanted::Task {
        support = looked_up(client, &name).await?;
    }
    match (support, wanted) {
        (Some(TaskSupport::Required), _) | (Some(TaskSupport::Optional), Wanted::Task) => {
            augmented(client, params, options).await
        }
        (Some(_), _) => plain(client, params, options).await,
        (None, _) => match plain(client, params, options).await {
            // The tool was not listed yet, and may need a task. The server has done nothing.
            Err(error) if is_method_not_found(&error) => match looked_up(client, &name).await? {
                Some(TaskSupport::Required) => augmented(client, params, options).await,
                _ => Err(error),
            },
            called => called,
        },
    }
}

fn is_method_not_found(error: &Error) -> bool {
    error.as_rpc().is_some_and(|error| error.code == error_code::METHOD_NOT_FOUND)
}

/// Lists the tools, and returns whether one can run as a task.
async fn looked_up(client: &Client, name: &str) -> Result<Option<TaskSupport>> {
    let tools = client.tools().await?;
    let tool = tools.iter().find(|tool| tool.name == name);
    Ok(tool.map(|tool| {
        let support = tool.execution.as_ref().and_then(|execution| execution.task_support.clone());
        support.unwrap_or(TaskSupport::Forbidden)
    }))
}

async fn plain(client: &Client, params: &RawJson, options: &Options) -> Result<Called> {
    let method = Method::CallTool.as_str();
    let (fulfilled, _) = client.core().ask_until(method, params, options).await?;
    match fulfilled {
        Fulfilled::Extension(_, result) => {
            let task: TaskExt =
                result.decode().map_err(|error| Error::malformed("the created task", error))?;
            tracing::debug!(task = task.task_id, "the call became a task");
            Ok(Called::Task(TaskState::from_ext(task)))
        }
        Fulfilled::Complete(result) => Ok(Called::Result(result)),
        Fulfilled::InputRequired(_) => Err(Error::malformed("the result", "it requests input")),
    }
}

/// Makes a call with `params.task`.
async fn augmented(client: &Client, params: &RawJson, options: &mut Options) -> Result<Called> {
    let invalid =
        |error: serde_json::Error| Error::misuse(format!("cannot serialize the parameters: {error}"));
    let mut members = params.members().map_err(invalid)?;
    let ttl = options.task_ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    members.insert("task", ttl.map_or_else(RawJson::empty_object, |ttl| json!({ "ttl": ttl }).into()));
    let params = RawJson::of(&members).map_err(invalid)?;
    let core = client.core();
    if let Some(handler) = options.progress.take() {
        // The token must outlive the request.
        let kept = core.shared.tasks.keep_progress(handler);
        options.meta.set_progress_token(kept.token());
        options.task_progress = Some(Arc::new(kept));
    }
    let (result, _) = core.ask(Method::CallTool.as_str(), &params, options.clone()).await?;
    // Only the call has a token.
    options.meta.remove(meta::key::PROGRESS_TOKEN);
    if result.members().is_ok_and(|members| !members.contains_key("task")) {
        // The server ignored the wish, which it may if it does not support tasks for this request.
        return Ok(Called::Result(result));
    }
    let created: CreateTaskResultV2025 =
        result.decode().map_err(|error| Error::malformed("the created task", error))?;
    tracing::debug!(task = created.task.task_id, "the call became a task");
    Ok(Called::Task(TaskState::from_2025(created.task)))
}

fn tool_name(params: &RawJson) -> Result<String> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    params.decode::<Named>().map(|named| named.name).map_err(|error| Error::misuse(error.to_string()))
}

impl Request<ToolResult> {
    /// Starts the call. If the server runs it as a task, the result is a handle to the task instead of the task's
    /// result.
    ///
    /// The client must be built with [`tasks`](crate::ClientBuilder::tasks). In 2025-11-25 this requests a task if the
    /// listed tool supports one. In 2026-07-28 the server decides.
    pub async fn start(self) -> Result<Started> {
        let Some(plan) = self.into_plan() else {
            return Err(Error::misuse("the call was already started"));
        };
        let Plan { client, params, mut options, finish, .. } = plan;
        let params = params?;
        let core = client.core();
        if !core.uses_tasks() {
            return Err(Error::misuse("tasks are off; turn them on with `Client::builder().tasks()`"));
        }
        core.gate(Method::CallTool.as_str()).await?;
        match call(&client, &params, &mut options, Wanted::Task).await? {
            Called::Result(result) => finish(result).map(Started::Done),
            Called::Task(state) => {
                let id = state.task.task_id.clone();
                Ok(Started::Task(TaskHandle::new(&client, id, Some(state), Some(finish), options)))
            }
        }
    }

    /// Sets a handler that is called if the call becomes a task. The call still waits for the result.
    ///
    /// From then on, dropping the request leaves the task running, because its caller knows the id. Without this
    /// handler it cancels the task, like any other call.
    pub fn on_task(self, handler: impl Fn(&TaskState) + Send + Sync + 'static) -> Self {
        self.with(|options| options.on_task = Some(Arc::new(handler)))
    }

    /// Sets how long the server should keep the task after its creation, in 2025-11-25. The server may choose another
    /// time, and in 2026-07-28 it always does.
    pub fn task_ttl(self, ttl: Duration) -> Self {
        self.with(|options| options.task_ttl = Some(ttl))
    }
}
