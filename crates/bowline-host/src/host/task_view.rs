//! A task as a caller sees it: the state at its server, and what the host knows in addition.

use super::{
    Inner, REFUSED,
    route::Route,
    task_ids::{Creation, KEYS_KEPT, TaskRef, capped_ttl, unknown_task},
    task_records::TaskNote,
    upstream_task::{Detail, UpstreamTask, invalid_task},
};
use bowline_client::TaskHandle;
use bowline_proto::service::{Call, Outcome, Reply};
use bowline_server::transport::random_id;
use bowline_text::rfc3339;
use bowline_types::{
    CallToolResult, CreateTaskResultV2025, RawJson, ResultType, RpcError, Task, TaskExt, TaskStatus,
    TaskV2025,
};
use std::time::{Duration, SystemTime};

/// How long the result of a call that ended at once is kept, unless the caller wishes otherwise.
const ENDED_KEPT: Duration = Duration::from_secs(3600);
/// The shortest time that it is kept.
pub(super) const ENDED_KEPT_AT_LEAST: Duration = Duration::from_secs(15 * 60);

impl Inner {
    /// Passes on a task that a server created, with a sealed id. Returns a digest of the task, too.
    pub(super) async fn pass_on_task(
        &self,
        route: &Route,
        call: &Call,
        created: &RawJson,
    ) -> Result<(Outcome, String), RpcError> {
        let server = &route.instance.name;
        let invalid = |error: serde_json::Error| invalid_task(server, &error);
        let mut task: TaskExt = if created.members().map_err(invalid)?.contains_key("task") {
            let created: CreateTaskResultV2025 = created.decode().map_err(invalid)?;
            Task::from(created.task).into()
        } else {
            created.decode().map_err(invalid)?
        };
        let reference = TaskRef {
            server: server.to_string(),
            tool: call.params.name()?.into_owned(),
            id: task.task_id,
            is_legacy: !call.client.revision.is_modern(),
            is_ended: false,
            is_hosted: false,
            creation: Creation::by(&call.client),
        };
        let ttl = capped_ttl(task.ttl_ms);
        task.ttl_ms = Some(ttl);
        // If it is not recorded, or the caller has gone, nobody can ask for its result.
        let running = route.instance.running();
        let unrecorded = Unrecorded(running.map(|client| client.task(reference.id.clone())));
        let sealed = self.task_ids.seal(&call.client, &reference)?;
        if reference.is_legacy {
            let ttl = Duration::from_millis(ttl).max(ENDED_KEPT_AT_LEAST);
            self.task_records.add(&call.client, &reference, &TaskNote::new(&sealed), ttl).await?;
        }
        unrecorded.recorded();
        task.task_id = sealed;
        Ok((created_reply(call, task)?, reference.digest()))
    }

    /// Keeps the result of a call that was to become a task and ended at once.
    pub(super) async fn keep_result(
        &self,
        call: &Call,
        result: CallToolResult,
        ttl: Option<u64>,
    ) -> Result<Outcome, RpcError> {
        if result.meta.as_ref().is_some_and(|meta| meta.get(REFUSED).is_some()) {
            let reason = result.content.iter().find_map(|block| block.as_text()).unwrap_or("refused");
            return Err(RpcError::internal(reason.to_owned()).with_data(serde_json::json!({ REFUSED: true })));
        }
        let Ok(route) = self.router.route(call).await else {
            // An approval of a server is not a call of a tool.
            return Ok(Outcome::Complete(Reply::Tool(Box::new(result))));
        };
        let reference = TaskRef {
            server: route.instance.name.to_string(),
            tool: call.params.name()?.into_owned(),
            id: random_id(),
            is_legacy: true,
            is_ended: true,
            is_hosted: false,
            creation: Creation::by(&call.client),
        };
        let sealed = self.task_ids.seal(&call.client, &reference)?;
        let now = rfc3339(SystemTime::now());
        let mut task = TaskExt::new(sealed.clone(), TaskStatus::Completed, now.clone(), now);
        let ttl = ttl.map_or(ENDED_KEPT, Duration::from_millis).clamp(ENDED_KEPT_AT_LEAST, KEYS_KEPT);
        task.ttl_ms = u64::try_from(ttl.as_millis()).ok();
        task.result = Some(RawJson::of(&result).map_err(|error| RpcError::internal(error.to_string()))?);
        let note = TaskNote { ended: Some(task.clone()), ..TaskNote::new(&sealed) };
        let kept = self.task_records.add_ended(&call.client, &reference, &note, ttl).await;
        kept.map_err(|error| {
            let RpcError { message, .. } = &error;
            let reason = format!(
                "the tool `{}` has run, but its result is lost, because it cannot be kept for a task: {message}; call it without `task` if it may run again",
                reference.tool
            );
            // No advice when to try again: the tool would run again.
            RpcError::internal(reason)
        })?;
        created_reply(call, task)
    }

    /// Returns the state of a task as a caller may see it.
    pub(super) async fn task_state(
        &self,
        call: &Call,
        (reference, route): (&TaskRef, &Route),
        sealed: &str,
        detail: Detail,
    ) -> Result<TaskExt, RpcError> {
        let note = if reference.is_legacy && !reference.is_hosted {
            self.task_records.get(&call.client, reference).await?
        } else {
            None
        };
        if reference.is_hosted {
            return self.hosted_state(call, reference, sealed).await;
        }
        if reference.is_ended {
            return note.and_then(|note| note.ended).ok_or_else(unknown_task);
        }
        let client = route.instance.client().await?;
        let task = UpstreamTask { inner: self, route, call, client, id: &reference.id };
        let mut task = task.get(sealed, detail, reference.creation.abilities).await?;
        if note.is_some_and(|note| note.is_cancelled) {
            // Its server may have completed it nevertheless.
            task.status = TaskStatus::Cancelled;
            (task.input_requests, task.result, task.error) = (None, None, None);
        }
        Ok(task)
    }
}

/// A task of a server that no caller knows yet. It is cancelled when dropped.
struct Unrecorded(Option<TaskHandle>);

impl Unrecorded {
    fn recorded(mut self) {
        self.0 = None;
    }
}

impl Drop for Unrecorded {
    fn drop(&mut self) {
        drop(self.0.take().map(TaskHandle::cancel_on_drop));
    }
}

/// Returns the reply to a call that became a task.
pub(super) fn created_reply(call: &Call, mut task: TaskExt) -> Result<Outcome, RpcError> {
    // Only `tasks/get` says these.
    (task.input_requests, task.result, task.error) = (None, None, None);
    let reply = if call.client.revision.is_modern() {
        task.result_type = Some(ResultType::Task);
        RawJson::of(&task)
    } else {
        // 2025-11-25 begins every task as working.
        task.status = TaskStatus::Working;
        RawJson::of(&CreateTaskResultV2025::from(Task::from(task)))
    };
    let reply = reply.map_err(|error| RpcError::internal(error.to_string()))?;
    Ok(Outcome::Complete(Reply::Accepted(reply)))
}

/// Writes the state of a task for a caller.
pub(super) fn shown(call: &Call, task: TaskExt) -> Result<RawJson, RpcError> {
    let written =
        if call.client.revision.is_modern() { RawJson::of(&task) } else { RawJson::of(&to_2025(task)) };
    written.map_err(|error| RpcError::internal(error.to_string()))
}

/// Converts a task to 2025-11-25, where a result that is marked as an error is a failure.
pub(super) fn to_2025(task: TaskExt) -> TaskV2025 {
    Task::from(with_failure(task)).into()
}

/// Marks a task as failed if its result is marked as an error.
pub(super) fn with_failure(mut task: TaskExt) -> TaskExt {
    let is_error = |result: &RawJson| result.decode::<CallToolResult>().is_ok_and(|result| result.failed());
    let failure = match (&task.result, &task.error) {
        (Some(result), _) if is_error(result) => Some("the tool returned an error".to_owned()),
        (_, Some(error)) => Some(error.message.to_string()),
        _ => None,
    };
    if let Some(failure) = failure {
        task.status = TaskStatus::Failed;
        task.status_message.get_or_insert(failure);
    }
    task
}
