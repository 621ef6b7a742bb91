//! Tasks: requests with a deferred result, in two wire formats.

use crate::RawMap;
use crate::adapt::{Adapt, adapt_message_meta, adapt_only_meta};
use crate::input::{InputRequests, InputResponses};
use crate::meta::Meta;
use crate::record::{open_enum, record};
use crate::result::ResultType;
use crate::revision::Revision;
use crate::rpc::RpcError;
use bowline_json::RawJson;

open_enum! {
    /// Status of a task.
    pub enum TaskStatus {
        /// The task is running.
        Working = "working",
        /// The task waits for input from the requestor.
        InputRequired = "input_required",
        /// The task completed.
        Completed = "completed",
        /// The task failed. In 2025-11-25 this includes tool results marked as errors.
        Failed = "failed",
        /// The task was cancelled.
        Cancelled = "cancelled",
    }
}

impl TaskStatus {
    /// Returns whether the status is final.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A task, independent of the revision.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Task {
    /// Id of the task.
    pub task_id: String,
    /// Status.
    pub status: TaskStatus,
    /// Status message.
    pub status_message: Option<String>,
    /// Time of creation, in ISO 8601.
    pub created_at: String,
    /// Time of the last change, in ISO 8601.
    pub last_updated_at: String,
    /// How long the task is kept after its creation, in milliseconds; `None` means without limit.
    pub ttl_ms: Option<u64>,
    /// Suggested polling interval in milliseconds.
    pub poll_interval_ms: Option<u64>,
}

record! {
    /// A task in the format of 2025-11-25.
    pub struct TaskV2025 {
        /// Id of the task.
        required task_id: String = "taskId",
        /// Status.
        required status: TaskStatus = "status",
        /// Status message.
        optional status_message: String = "statusMessage",
        /// Time of creation, in ISO 8601.
        required created_at: String = "createdAt",
        /// Time of the last change, in ISO 8601.
        required last_updated_at: String = "lastUpdatedAt",
        /// How long the task is kept after its creation, in milliseconds; `None` means without limit.
        explicit ttl: u64 = "ttl",
        /// Suggested polling interval in milliseconds.
        whole poll_interval: u64 = "pollInterval",
        /// Metadata, if the task is the result or the params.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// A task in the format of the extension: a result, or the params of `notifications/tasks`.
    pub struct TaskExt {
        /// Type of the result: `task` on creation, `complete` for `tasks/get`.
        optional result_type: ResultType = "resultType",
        /// Id of the task.
        required task_id: String = "taskId",
        /// Status.
        required status: TaskStatus = "status",
        /// Status message.
        optional status_message: String = "statusMessage",
        /// Time of creation, in ISO 8601.
        required created_at: String = "createdAt",
        /// Time of the last change, in ISO 8601.
        required last_updated_at: String = "lastUpdatedAt",
        /// How long the task is kept after its creation, in milliseconds; `None` means without limit.
        explicit ttl_ms: u64 = "ttlMs",
        /// Suggested polling interval in milliseconds.
        whole poll_interval_ms: u64 = "pollIntervalMs",
        /// Input requests, if the task requires input.
        optional input_requests: InputRequests = "inputRequests",
        /// The result, if the task completed.
        optional result: RawJson = "result",
        /// The error, if the task failed.
        optional error: RpcError = "error",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

/// Result of a call that became a task, in the extension: the task itself, marked as such.
pub type CreateTaskResultExt = TaskExt;

record! {
    /// Result of a call that became a task, in 2025-11-25.
    pub struct CreateTaskResultV2025 {
        /// Type of the result.
        optional result_type: ResultType = "resultType",
        /// The task.
        required task: TaskV2025 = "task",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Requests that a request runs as a task (2025-11-25 only).
    #[derive(Default)]
    pub struct TaskMetadata {
        /// How long the task should be kept, in milliseconds.
        whole ttl: u64 = "ttl",
    }
}

record! {
    /// Refers to the task that a message belongs to (2025-11-25 only).
    pub struct RelatedTaskMetadata {
        /// The task.
        required task_id: String = "taskId",
    }
}

record! {
    /// Params of `tasks/get`, `tasks/result` and `tasks/cancel`.
    pub struct TaskParams {
        /// The task.
        required task_id: String = "taskId",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Params of `tasks/update` (tasks extension).
    pub struct UpdateTaskParams {
        /// The task.
        required task_id: String = "taskId",
        /// Responses to the input requests of the task.
        required input_responses: InputResponses = "inputResponses",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Result of `tasks/list` (2025-11-25 only).
    #[derive(Default)]
    pub struct ListTasksResult {
        /// Type of the result.
        optional result_type: ResultType = "resultType",
        /// The tasks.
        lenient tasks: Vec<TaskV2025> = "tasks",
        /// Cursor of the next page; absent on the last page.
        optional next_cursor: String = "nextCursor",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

impl TaskExt {
    /// Marks the task as the result of the call that created it.
    pub fn into_creation(self) -> Self {
        Self { result_type: Some(ResultType::Task), ..self }
    }

    /// Marks the task as the result of `tasks/get`.
    pub fn into_answer(self) -> Self {
        Self { result_type: Some(ResultType::Complete), ..self }
    }
}

impl From<Task> for TaskV2025 {
    fn from(task: Task) -> Self {
        Self {
            task_id: task.task_id,
            status: task.status,
            status_message: task.status_message,
            created_at: task.created_at,
            last_updated_at: task.last_updated_at,
            ttl: task.ttl_ms,
            poll_interval: task.poll_interval_ms,
            meta: None,
            extra: RawMap::new(),
        }
    }
}

impl From<TaskV2025> for Task {
    fn from(task: TaskV2025) -> Self {
        Self {
            task_id: task.task_id,
            status: task.status,
            status_message: task.status_message,
            created_at: task.created_at,
            last_updated_at: task.last_updated_at,
            ttl_ms: task.ttl,
            poll_interval_ms: task.poll_interval,
        }
    }
}

impl From<Task> for TaskExt {
    fn from(task: Task) -> Self {
        Self {
            result_type: None,
            task_id: task.task_id,
            status: task.status,
            status_message: task.status_message,
            created_at: task.created_at,
            last_updated_at: task.last_updated_at,
            ttl_ms: task.ttl_ms,
            poll_interval_ms: task.poll_interval_ms,
            input_requests: None,
            result: None,
            error: None,
            meta: None,
            extra: RawMap::new(),
        }
    }
}

impl From<TaskExt> for Task {
    fn from(task: TaskExt) -> Self {
        Self {
            task_id: task.task_id,
            status: task.status,
            status_message: task.status_message,
            created_at: task.created_at,
            last_updated_at: task.last_updated_at,
            ttl_ms: task.ttl_ms,
            poll_interval_ms: task.poll_interval_ms,
        }
    }
}

impl From<Task> for CreateTaskResultV2025 {
    fn from(task: Task) -> Self {
        Self::new(TaskV2025::from(task))
    }
}

impl Adapt for CreateTaskResultV2025 {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        // The wrapped form is of 2025-11-25, which has no `resultType`.
        self.result_type = None;
    }
}

impl Adapt for ListTasksResult {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        // `tasks/list` is of 2025-11-25, which has no `resultType`.
        self.result_type = None;
    }
}

adapt_only_meta! { TaskParams, UpdateTaskParams, TaskV2025, TaskExt }
