//! Tasks on the wire of 2025-11-25.

use super::{Ending, TaskRecord, TaskState, rfc3339};
use bowline_types::{
    CreateTaskResultV2025, Meta, RawJson, RelatedTaskMetadata, RpcError, TaskStatus, TaskV2025,
};

/// Returns the task without its payload: the result of `tasks/get` and `tasks/cancel`, an entry of `tasks/list`, and the params
/// of `notifications/tasks/status`.
///
/// A result that is marked as an error makes the task `failed`.
pub fn task(record: &TaskRecord, now: u64) -> TaskV2025 {
    let mut task = TaskV2025::new(
        record.id.clone(),
        status(record),
        rfc3339(record.created_at),
        rfc3339(record.updated_at),
    );
    task.ttl = Some(record.ttl_ms);
    task.status_message = status_message(record);
    if !record.is_terminal() {
        task.poll_interval = Some(record.poll_interval_ms(now));
    }
    task
}

/// Returns the result of a call that became a task.
pub fn created(record: &TaskRecord, now: u64) -> CreateTaskResultV2025 {
    CreateTaskResultV2025::new(task(record, now))
}

/// Returns the status.
pub fn status(record: &TaskRecord) -> TaskStatus {
    match &record.state {
        TaskState::Working => TaskStatus::Working,
        TaskState::Asking => TaskStatus::InputRequired,
        TaskState::Done(Ending::Result { is_error: false, .. }) => TaskStatus::Completed,
        TaskState::Done(_) => TaskStatus::Failed,
        TaskState::Cancelled => TaskStatus::Cancelled,
    }
}

/// A failed task has a message.
fn status_message(record: &TaskRecord) -> Option<String> {
    match &record.state {
        TaskState::Done(Ending::Result { is_error: true, .. }) => {
            Some(record.status.clone().unwrap_or_else(|| "the tool returned an error".to_owned()))
        }
        _ => record.status.clone(),
    }
}

/// Returns the error with which `tasks/result` answers for a cancelled task, for which the protocol defines no result.
pub fn cancelled() -> RpcError {
    RpcError::internal("the task was cancelled")
}

/// Marks a message as belonging to the task.
pub fn related(id: &str, meta: Option<Meta>) -> Meta {
    let mut meta = meta.unwrap_or_default();
    if let Ok(related) = RawJson::of(&RelatedTaskMetadata::new(id)) {
        meta.insert(bowline_types::meta::key::RELATED_TASK, related);
    }
    meta
}
