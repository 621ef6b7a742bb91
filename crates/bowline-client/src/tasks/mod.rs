//! Tasks: calls that the server runs in the background.
//!
//! 2025-11-25 and the extension for 2026-07-28 have different messages. Both become a [`TaskState`] here, and nothing
//! outside of this module depends on which of them a server has.

mod call;
mod handle;
mod poll;
mod updates;
mod wait;
mod watch;

pub(crate) use call::call_and_wait;
pub use handle::TaskHandle;
pub use updates::TaskUpdates;
pub use watch::TaskWatch;
pub(crate) use watch::{TaskProgress, Watches};

use crate::{Error, Result, ToolResult, client::Client, core::Core, error::Kind, request::Options};
use bowline_proto::client::{Negotiated, ResultError};
use bowline_types::{
    CreateTaskResultV2025, InputRequests, ListTasksResult, Method, RawJson, Revision, RpcError,
    TASKS_EXTENSION, Task, TaskExt, TaskStatus, TaskV2025,
};
use serde::Deserialize;
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// The polling interval if the server suggests none.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);
/// The shortest polling interval, whatever the server suggests.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);
/// The longest polling interval, whatever the server suggests.
const LONGEST_INTERVAL: Duration = Duration::from_secs(24 * 3600);
/// The maximum number of tasks that [`Client::list_tasks`] returns.
const MAX_LISTED: usize = 10_000;

/// The outcome of a call that was started: see [`Request::start`](crate::Request::start).
#[derive(Debug)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "it is matched at once, and users name the handle")]
pub enum Started {
    /// The call is complete; the server did not make it a task.
    Done(ToolResult),
    /// The server runs the call as a task.
    Task(TaskHandle),
}

/// The state of a task at one moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TaskState {
    /// Id, status and times.
    pub task: Task,
    /// The questions that wait for an answer, by key. Always empty in 2025-11-25, whose servers send them as requests
    /// while [`TaskHandle::wait`] runs.
    pub questions: InputRequests,
    /// The result of the call, or its error, if the task ended and the server includes it. In 2025-11-25 only
    /// [`TaskHandle::wait`] gets it.
    pub outcome: Option<Result<RawJson, RpcError>>,
}

impl TaskState {
    /// Returns whether the task has ended.
    pub fn is_done(&self) -> bool {
        self.task.status.is_terminal()
    }

    /// Returns how long to wait before the next `tasks/get`.
    pub fn poll_interval(&self) -> Duration {
        let suggested = self.task.poll_interval_ms.map_or(DEFAULT_INTERVAL, Duration::from_millis);
        suggested.clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL)
    }

    /// Reads the result of a call that became a task, in the format of either revision: see
    /// [`Relayed::Task`](crate::Relayed::Task).
    pub fn from_created(result: &RawJson) -> serde_json::Result<Self> {
        if result.members()?.contains_key("task") {
            let created: CreateTaskResultV2025 = result.decode()?;
            return Ok(Self::from_2025(created.task));
        }
        result.decode().map(Self::from_ext)
    }

    /// Reads the extension's format: the result of `tools/call` or `tasks/get`, or a notification.
    fn from_ext(task: TaskExt) -> Self {
        let mut task = task;
        let questions = task.input_requests.take().unwrap_or_default();
        let outcome = match task.status {
            TaskStatus::Completed => task.result.take().map(Ok),
            TaskStatus::Failed => Some(Err(task.error.take().unwrap_or_else(|| {
                let reason = task.status_message.clone();
                RpcError::internal(
                    reason.unwrap_or_else(|| "the task failed without an error message".into()),
                )
            }))),
            _ => None,
        };
        let questions =
            if task.status == TaskStatus::InputRequired { questions } else { InputRequests::default() };
        Self { task: task.into(), questions, outcome }
    }

    fn from_2025(task: TaskV2025) -> Self {
        Self { task: task.into(), questions: InputRequests::default(), outcome: None }
    }

    /// Reads the result of `tasks/get`, or the parameters of a notification.
    pub(crate) fn read(revision: Revision, result: &RawJson) -> serde_json::Result<Self> {
        if revision.is_modern() {
            result.decode().map(Self::from_ext)
        } else {
            result.decode().map(Self::from_2025)
        }
    }
}

/// Adds the id of a task that was not negotiated to the error about its result, so that the caller can still cancel it.
pub(crate) fn unexpected(error: ResultError, result: &RawJson) -> Error {
    #[derive(Deserialize)]
    struct Created {
        #[serde(rename = "taskId")]
        task_id: String,
    }
    if !matches!(&error, ResultError::UnknownType(kind) if kind == "task") {
        return error.into();
    }
    let error = Error::malformed("the result", "the server made the call a task, which was not negotiated");
    match result.decode::<Created>() {
        Ok(created) => error.of_task(created.task_id),
        Err(_) => error,
    }
}

/// Returns whether a server makes tasks of tool calls in a way that this client can use.
fn has_tasks(negotiated: &Negotiated) -> bool {
    match negotiated.revision {
        Revision::V2026_07_28 => negotiated.capabilities.has_extension(TASKS_EXTENSION),
        Revision::V2025_11_25 => {
            let requests = negotiated.capabilities.tasks.as_ref().and_then(|tasks| tasks.requests.as_ref());
            requests.and_then(|requests| requests.tools.as_ref()).is_some_and(|tools| tools.call.is_some())
        }
        _ => false,
    }
}

fn about(task_id: &str) -> RawJson {
    json!({ "taskId": task_id }).into()
}

impl Core {
    /// Returns whether the client was built with tasks. A relay decides for each call.
    pub(crate) fn uses_tasks(&self) -> bool {
        self.shared.profile.capabilities.has_extension(TASKS_EXTENSION)
    }

    /// Sends one of the `tasks/` requests. The first error that names a task says that it is gone.
    async fn task_request(
        &self,
        method: Method,
        task_id: &str,
        params: &RawJson,
        options: &Options,
    ) -> Result<(RawJson, Arc<Negotiated>)> {
        use bowline_proto::client::Fulfilled;
        self.gate(method.as_str()).await?;
        let (fulfilled, negotiated) =
            self.round(method.as_str(), params, options).await.map_err(|error| {
                let gone = method == Method::GetTask
                    && error
                        .as_rpc()
                        .is_some_and(|error| error.code == bowline_types::error_code::INVALID_PARAMS);
                if gone { Kind::TaskGone(task_id.to_owned(), error).into() } else { error }
            })?;
        match fulfilled {
            Fulfilled::Complete(result) | Fulfilled::Extension(_, result) => Ok((result, negotiated)),
            Fulfilled::InputRequired(_) => {
                let reason = format!("the result of `{method}` must not request input");
                Err(Error::malformed("the result", reason))
            }
        }
    }

    /// Asks for the state of a task once.
    async fn get_task(&self, task_id: &str, options: &Options) -> Result<TaskState> {
        let (result, negotiated) =
            self.task_request(Method::GetTask, task_id, &about(task_id), options).await?;
        let malformed =
            |reason: &dyn std::fmt::Display| Error::malformed("the result of `tasks/get`", reason);
        let state = TaskState::read(negotiated.revision, &result).map_err(|error| malformed(&error))?;
        if state.task.task_id != task_id {
            return Err(malformed(&format!("expected task `{task_id}`, got `{}`", state.task.task_id)));
        }
        if negotiated.revision.is_modern()
            && state.task.status == TaskStatus::Completed
            && state.outcome.is_none()
        {
            return Err(malformed(&"the task is completed, but `result` is missing"));
        }
        Ok(state)
    }

    /// Cancels a task.
    async fn cancel_task(&self, task_id: &str, options: &Options) -> Result<()> {
        self.task_request(Method::CancelTask, task_id, &about(task_id), options).await.map(drop)
    }

    /// Cancels a task without waiting, if the connection is open.
    fn cancel_task_in_passing(&self, task_id: &str, options: &Options) {
        let crate::core::State::Open(connection) = &*self.state.borrow() else { return };
        let Some(negotiated) = connection.negotiated() else { return };
        let can = negotiated.revision.is_modern()
            || negotiated.capabilities.has(bowline_types::Capability::TasksCancel);
        if !can {
            return;
        }
        let profile = options.profile(&self.shared);
        let params = profile.params(negotiated.revision, about(task_id).as_bytes(), options.for_proto(None));
        tracing::debug!(task_id, "cancelling a task that nobody waits for");
        connection.send_and_forget(Method::CancelTask.as_str(), params);
    }
}

impl Client {
    /// Returns a handle to a task of this server, for example one that an earlier process started.
    ///
    /// Sends nothing. The client must be built with [`tasks`](crate::ClientBuilder::tasks).
    pub fn task(&self, id: impl Into<String>) -> TaskHandle {
        TaskHandle::new(self, id.into(), None, None, Options::new(&self.core().shared))
    }

    /// Returns the tasks of this client that the server knows. Only 2025-11-25 has such a list.
    ///
    /// Fails with [`is_unsupported`](Error::is_unsupported) if the server does not offer the list.
    pub async fn list_tasks(&self) -> Result<Vec<Task>> {
        let core = self.core();
        core.gate(Method::ListTasks.as_str()).await?;
        let mut tasks = Vec::new();
        let mut budget = crate::ListBudget::new(core.shared.settings.lists);
        let mut cursor: Option<String> = None;
        loop {
            let params = cursor
                .as_ref()
                .map_or_else(RawJson::empty_object, |cursor| json!({ "cursor": cursor }).into());
            let (result, _) =
                core.ask(Method::ListTasks.as_str(), &params, Options::new(&core.shared)).await?;
            budget.take(Method::ListTasks, &result)?;
            let page: ListTasksResult = crate::client::decode(Method::ListTasks, &result)?;
            tasks.extend(page.tasks.into_iter().map(Task::from));
            if tasks.len() > MAX_LISTED {
                return Err(Error::too_large("the list of tasks", format!("{MAX_LISTED} entries")));
            }
            match page.next_cursor {
                Some(next) => {
                    budget.follow(&next)?;
                    cursor = Some(next);
                }
                None => return Ok(tasks),
            }
        }
    }
}
