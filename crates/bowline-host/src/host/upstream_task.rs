//! A task at its server, on behalf of the caller who asks about it.

use super::{
    Inner,
    asker::{Answerer, CallerView, with_origin},
    call_record::CallRecord,
    held_results::HeldKey,
    result,
    route::Route,
    task_ids::{capped_ttl, unknown_task},
};
use crate::bridge::{Follow, for_caller, or_cancelled};
use bowline_client::{Client, RelayWith, Relayed};
use bowline_proto::{
    caller::user_of,
    service::{Call, Notifier, Outcome, Reply},
};
use bowline_types::{
    Adapt as _, InputRequest, InputRequests, Method, RawJson, RawMap, RpcError, TASKS_EXTENSION, Task,
    TaskExt, TaskStatus, TaskV2025, UpdateTaskParams, error_code, meta::key,
};
use std::collections::BTreeSet;

/// How much of a task is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// The status. A server of 2026-07-28 sends everything nevertheless.
    Status,
    /// Also the questions and the result, which a server of 2025-11-25 has to be asked for.
    Whole,
}

impl Detail {
    /// Returns what the caller of `tasks/get` expects.
    pub(super) fn of(call: &Call) -> Self {
        if call.client.revision.is_modern() { Self::Whole } else { Self::Status }
    }
}

/// A task at its server, and the caller who asks about it.
pub(super) struct UpstreamTask<'a> {
    pub(super) inner: &'a Inner,
    pub(super) route: &'a Route,
    pub(super) call: &'a Call,
    pub(super) client: Client,
    /// The id at the server.
    pub(super) id: &'a str,
}

impl UpstreamTask<'_> {
    fn is_2025(&self) -> bool {
        !self.client.revision().is_modern()
    }

    /// Sends a request about the task.
    async fn relay(&self, method: Method, params: RawJson) -> Result<RawJson, RpcError> {
        match self.send(method, params).await? {
            Ok(result) => Ok(result),
            // The text of the server would name its own id.
            Err(error) if method == Method::GetTask && error.code == error_code::INVALID_PARAMS => {
                Err(unknown_task())
            }
            Err(error) => Err(for_caller(&self.route.instance.name, &error)),
        }
    }

    /// Sends a request about the task. The inner error is the one that the server answered with.
    async fn send(&self, method: Method, params: RawJson) -> Result<Result<RawJson, RpcError>, RpcError> {
        let instance = &self.route.instance;
        let mut capabilities = self.inner.asker.capabilities(instance, &self.call.client);
        capabilities.extensions.insert(TASKS_EXTENSION, RawJson::empty_object());
        let mut with = RelayWith::default();
        with.capabilities = Some(capabilities);
        with.client_info = self.call.client.info().cloned();
        with.timeout = Some(instance.spec.timeout);
        let relayed = self.client.relay(method, params, with).await;
        instance.count(relayed.is_err());
        match relayed {
            Ok(Relayed::Complete(result)) => Ok(Ok(result)),
            Ok(Relayed::InputRequired { .. } | Relayed::Task(_)) => {
                Err(RpcError::internal(format!("the server `{}` sent an invalid result", instance.name)))
            }
            Err(error) => {
                if let Some(error) = error.as_rpc() {
                    return Ok(Err(error.clone()));
                }
                let reason = instance.describe_error(&error);
                Err(RpcError::internal(format!("the server `{}`: {reason}", instance.name)))
            }
        }
    }

    /// Answers questions of the task.
    pub(super) async fn update(&self, answers: RawMap) -> Result<(), RpcError> {
        if self.is_2025() {
            // If another process waits for the result, `tasks/get` asks again under other keys.
            if let Some(held) = self.inner.held_results.find(&self.held_key()) {
                held.answer(&answers);
            }
            return Ok(());
        }
        let params =
            RawJson::of(&UpdateTaskParams::new(self.id, answers)).map_err(|error| self.invalid(&error))?;
        self.relay(Method::UpdateTask, params).await.map(drop)
    }

    /// Returns the open questions of a task of 2026-07-28, as its server asks them.
    pub(super) async fn open_questions(&self) -> Result<InputRequests, RpcError> {
        let got = self.relay(Method::GetTask, task_params(self.id)).await?;
        let task: TaskExt = got.decode().map_err(|error| self.invalid(&error))?;
        Ok(task.input_requests.unwrap_or_default())
    }

    /// Cancels the task. That it has ended is not an error.
    pub(super) async fn cancel(&self) -> Result<(), RpcError> {
        match self.send(Method::CancelTask, task_params(self.id)).await? {
            Ok(_) => Ok(()),
            // Either it has ended, or the server does not know it.
            Err(error) if error.code == error_code::INVALID_PARAMS => {
                self.relay(Method::GetTask, task_params(self.id)).await.map(drop)
            }
            Err(error) => Err(for_caller(&self.route.instance.name, &error)),
        }
    }

    /// Gets the state of the task as the caller may see it, under the id that the caller knows.
    pub(super) async fn get(&self, sealed: &str, detail: Detail) -> Result<TaskExt, RpcError> {
        let got = self.relay(Method::GetTask, task_params(self.id)).await?;
        let mut task = if self.is_2025() {
            self.complete(&got, detail).await?
        } else {
            let mut task: TaskExt = got.decode().map_err(|error| self.invalid(&error))?;
            if let Some(requests) = task.input_requests.take().filter(|_| detail == Detail::Whole) {
                task.input_requests = Some(self.questions(&requests).await?);
            }
            task
        };
        sealed.clone_into(&mut task.task_id);
        task.result_type = None;
        task.ttl_ms = Some(capped_ttl(task.ttl_ms));
        if let Some(found) = task.result.take() {
            task.result = match result::outcome(self.route, &Method::CallTool.into(), &found) {
                Outcome::Complete(Reply::Tool(mut found)) => {
                    // It names the task by the id of the server.
                    if let Some(meta) = &mut found.meta {
                        meta.remove(key::RELATED_TASK);
                    }
                    found.meta = found.meta.filter(|meta| !meta.is_empty());
                    Some(RawJson::of(&*found).map_err(|error| self.invalid(&error))?)
                }
                Outcome::Failed(error) => return Err(error),
                _ => Some(found),
            };
        }
        if let Some(error) = task.error.take() {
            task.error = Some(for_caller(&self.route.instance.name, &error));
        }
        Ok(task)
    }

    /// Completes the state that a server of 2025-11-25 sent by what it does not say: the result, and open questions.
    async fn complete(&self, got: &RawJson, detail: Detail) -> Result<TaskExt, RpcError> {
        let task: TaskV2025 = got.decode().map_err(|error| self.invalid(&error))?;
        let mut task = TaskExt::from(Task::from(task));
        if detail == Detail::Status {
            return Ok(task);
        }
        match task.status {
            TaskStatus::Completed | TaskStatus::Failed => {
                // A tool that failed has a result; only an error of the protocol makes a task of 2026-07-28 fail.
                match self.send(Method::TaskResult, task_params(self.id)).await? {
                    Ok(result) => (task.status, task.result) = (TaskStatus::Completed, Some(result)),
                    Err(error) => (task.status, task.error) = (TaskStatus::Failed, Some(error)),
                }
            }
            TaskStatus::InputRequired => {
                let questions = self.held_questions().await?;
                if questions.is_empty() {
                    // What was asked is answered, or has not arrived yet.
                    task.status = TaskStatus::Working;
                } else {
                    task.input_requests = Some(questions);
                }
            }
            _ => {}
        }
        Ok(task)
    }

    fn held_key(&self) -> HeldKey {
        (self.route.instance.id, self.id.to_owned())
    }

    /// Returns the open questions of a task of 2025-11-25. Its server asks while this process waits for the result.
    async fn held_questions(&self) -> Result<InputRequests, RpcError> {
        let Self { inner, route, call, .. } = self;
        let user = call.client.principal.as_ref().map(user_of);
        let held = inner.held_results.hold(self.held_key(), user, &inner.tasks, || {
            let (task_id, answered, answers) = (self.id.to_owned(), BTreeSet::new(), RawMap::new());
            let follow = Follow { task_id, known: None, answered, answers, cancels: false };
            inner.follow(route, call, &Notifier::closed(), follow, &mut CallRecord::new(&inner.telemetry))
        })?;
        let mut questions = InputRequests::default();
        for (key, request) in &held.questions().await {
            let mut request = request.clone();
            request.adapt(call.client.revision);
            questions.insert(key, request);
        }
        Ok(questions)
    }

    /// Returns the questions that the caller answers. An elicitation that it cannot or may not see counts as cancelled.
    async fn questions(&self, requests: &InputRequests) -> Result<InputRequests, RpcError> {
        let instance = &self.route.instance;
        let (mut shown, mut cancelled) = (InputRequests::default(), RawMap::new());
        for (key, request) in requests {
            let error = match self.inner.asker.answerer(instance, CallerView::of(self.call), request) {
                Answerer::Caller => {
                    let mut request = with_origin(instance, request.clone());
                    // A question that is shown again must not differ, such as by a new id of its URL.
                    request.adapt(self.call.client.revision);
                    shown.insert(key, request);
                    continue;
                }
                Answerer::Host => RpcError::internal("the caller of the task cannot answer"),
                Answerer::Nobody(error) => error,
            };
            tracing::debug!(server = &*instance.name, %error, "a question of a task is not passed on");
            if matches!(request, InputRequest::Elicit(_)) {
                cancelled.insert(key, or_cancelled(error)?);
            }
        }
        if !cancelled.is_empty() {
            self.update(cancelled).await?;
        }
        Ok(shown)
    }

    fn invalid(&self, error: &serde_json::Error) -> RpcError {
        invalid_task(&self.route.instance.name, error)
    }
}

/// Returns the error about a task of a server that cannot be read.
pub(super) fn invalid_task(server: &str, error: &serde_json::Error) -> RpcError {
    RpcError::internal(format!("the server `{server}` sent an invalid task: {error}"))
}

fn task_params(id: &str) -> RawJson {
    serde_json::json!({ "taskId": id }).into()
}
