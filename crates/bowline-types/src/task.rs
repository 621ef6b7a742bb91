//! Tasks: requests that are answered later. Two wire forms, one meaning.

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
    /// How a task is doing.
    pub enum TaskStatus {
        /// It is under way.
        Working = "working",
        /// It waits for an answer of the requestor.
        InputRequired = "input_required",
        /// It is done.
        Completed = "completed",
        /// It has failed. In 2025-11-25 this includes tool results marked as errors.
        Failed = "failed",
        /// It was given up.
        Cancelled = "cancelled",
    }
}

impl TaskStatus {
    /// Whether the task will not change any more.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A task, whatever revision speaks of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Names the task.
    pub task_id: String,
    /// How it is doing.
    pub status: TaskStatus,
    /// The same in words.
    pub status_message: Option<String>,
    /// When it was created, in ISO 8601.
    pub created_at: String,
    /// When it last changed, in ISO 8601.
    pub last_updated_at: String,
    /// For how many milliseconds after its creation it is kept; `None` means without limit.
    pub ttl_ms: Option<u64>,
    /// How many milliseconds to wait between questions about it.
    pub poll_interval_ms: Option<u64>,
}

record! {
    /// A task as 2025-11-25 writes it.
    pub struct TaskV2025 {
        /// Names the task.
        required task_id: String = "taskId",
        /// How it is doing.
        required status: TaskStatus = "status",
        /// The same in words.
        optional status_message: String = "statusMessage",
        /// When it was created, in ISO 8601.
        required created_at: String = "createdAt",
        /// When it last changed, in ISO 8601.
        required last_updated_at: String = "lastUpdatedAt",
        /// For how many milliseconds after its creation it is kept; `None` means without limit.
        explicit ttl: u64 = "ttl",
        /// How many milliseconds to wait between questions about it.
        whole poll_interval: u64 = "pollInterval",
        /// Metadata, where the task itself is the result or the params.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// A task as the extension writes it: a result, or the params of `notifications/tasks`.
    pub struct TaskExt {
        /// What the result is: `task` on creation, `complete` as the answer of `tasks/get`.
        optional result_type: ResultType = "resultType",
        /// Names the task.
        required task_id: String = "taskId",
        /// How it is doing.
        required status: TaskStatus = "status",
        /// The same in words.
        optional status_message: String = "statusMessage",
        /// When it was created, in ISO 8601.
        required created_at: String = "createdAt",
        /// When it last changed, in ISO 8601.
        required last_updated_at: String = "lastUpdatedAt",
        /// For how many milliseconds after its creation it is kept; `None` means without limit.
        explicit ttl_ms: u64 = "ttlMs",
        /// How many milliseconds to wait between questions about it.
        whole poll_interval_ms: u64 = "pollIntervalMs",
        /// The questions it waits for, when it requires input.
        optional input_requests: InputRequests = "inputRequests",
        /// What it gave, when it is completed.
        optional result: RawJson = "result",
        /// Why it failed, when it has.
        optional error: RpcError = "error",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

/// What a call that became a task is answered with in the extension: the task itself, marked as such.
pub type CreateTaskResultExt = TaskExt;

record! {
    /// What a call that became a task is answered with in 2025-11-25.
    pub struct CreateTaskResultV2025 {
        /// What the result is.
        optional result_type: ResultType = "resultType",
        /// The task.
        required task: TaskV2025 = "task",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// The wish to have a request run as a task (2025-11-25 only).
    #[derive(Default)]
    pub struct TaskMetadata {
        /// For how many milliseconds the task should be kept.
        whole ttl: u64 = "ttl",
    }
}

record! {
    /// Names the task a message belongs to (2025-11-25 only).
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
        /// Answers to questions of the task.
        required input_responses: InputResponses = "inputResponses",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// One page of tasks (2025-11-25 only).
    #[derive(Default)]
    pub struct ListTasksResult {
        /// What the result is.
        optional result_type: ResultType = "resultType",
        /// The tasks.
        lenient tasks: Vec<TaskV2025> = "tasks",
        /// Where the next page begins; absent on the last one.
        optional next_cursor: String = "nextCursor",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

impl TaskExt {
    /// Marks the task as the answer of the call that created it.
    pub fn into_creation(self) -> Self {
        Self { result_type: Some(ResultType::Task), ..self }
    }

    /// Marks the task as the answer of `tasks/get`.
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
