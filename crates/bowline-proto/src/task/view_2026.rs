//! Tasks on the wire of the extension of 2026-07-28.

use super::{Ending, TaskRecord, TaskState, rfc3339};
use bowline_types::{Adapt, InputRequests, RawJson, Revision, TaskExt, TaskStatus};

/// Returns the task without its payload, marked as the result of the call that created it.
pub fn created(record: &TaskRecord, now: u64) -> TaskExt {
    plain(record, now).into_creation()
}

/// Returns the task with everything that belongs to its status: the result of `tasks/get`. `result` is the result of the call, if
/// it has one.
pub fn task(record: &TaskRecord, result: Option<RawJson>, now: u64) -> TaskExt {
    detailed(record, result, now).into_answer()
}

/// Returns the params of `notifications/tasks`: what `tasks/get` would return, without the marks of a result.
pub fn notification(record: &TaskRecord, result: Option<RawJson>, now: u64) -> TaskExt {
    detailed(record, result, now)
}

/// Returns the status. A result that is marked as an error is a result.
pub fn status(record: &TaskRecord) -> TaskStatus {
    match &record.state {
        TaskState::Working => TaskStatus::Working,
        TaskState::Asking => TaskStatus::InputRequired,
        TaskState::Done(Ending::Result { .. }) => TaskStatus::Completed,
        TaskState::Done(Ending::Error(_)) => TaskStatus::Failed,
        TaskState::Cancelled => TaskStatus::Cancelled,
    }
}

fn plain(record: &TaskRecord, now: u64) -> TaskExt {
    let mut task = TaskExt::new(
        record.id.clone(),
        status(record),
        rfc3339(record.created_at),
        rfc3339(record.updated_at),
    );
    task.ttl_ms = Some(record.ttl_ms);
    task.status_message.clone_from(&record.status);
    if !record.is_terminal() {
        task.poll_interval_ms = Some(record.poll_interval_ms(now));
    }
    task
}

fn detailed(record: &TaskRecord, result: Option<RawJson>, now: u64) -> TaskExt {
    let mut task = plain(record, now);
    match &record.state {
        TaskState::Asking => {
            let mut requests = InputRequests::default();
            for question in &record.questions {
                if let Some(mut request) = question.input_request() {
                    request.adapt(Revision::V2026_07_28);
                    requests.insert(question.key.clone(), request);
                }
            }
            task.input_requests = Some(requests);
        }
        TaskState::Done(Ending::Result { .. }) => task.result = result,
        TaskState::Done(Ending::Error(error)) => {
            let mut error = error.clone();
            error.adapt(Revision::V2026_07_28);
            task.error = Some(error);
        }
        TaskState::Working | TaskState::Cancelled => {}
    }
    task
}
