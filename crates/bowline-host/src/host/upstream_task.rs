//! A task at its server, on behalf of the caller who asks about it.

use super::{
    Inner,
    asker::{Answerer, Asker, CallerView, with_origin},
    call_record::CallRecord,
    held_results::HeldKey,
    result,
    route::Route,
    task_answers::HostAnswers,
    task_ids::{Abilities, capped_ttl, unknown_task},
    task_result::asking_key,
};
use crate::{
    bridge::{Follow, for_caller, or_cancelled},
    tap::{current_call, within},
    upstream::Instance,
};
use bowline_client::{Client, RelayWith, Relayed};
use bowline_proto::{
    caller::user_of,
    service::{Call, Notifier, Outcome, Reply},
};
use bowline_types::{
    Adapt as _, InputRequest, InputRequests, Method, RawJson, RawMap, RpcError, TASKS_EXTENSION, Task,
    TaskExt, TaskStatus, TaskV2025, UpdateTaskParams, error_code, meta::key,
};
use std::{collections::BTreeSet, sync::Arc};

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
        let (asker, instance) = (&self.inner.asker, &self.route.instance);
        send(asker, instance, self.call, &self.client, method, params).await
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
    /// `creator` is what the client that created it could answer.
    pub(super) async fn get(
        &self,
        sealed: &str,
        detail: Detail,
        creator: Abilities,
    ) -> Result<TaskExt, RpcError> {
        let got = self.relay(Method::GetTask, task_params(self.id)).await?;
        let mut task = if self.is_2025() {
            self.complete(&got, detail).await?
        } else {
            let mut task: TaskExt = got.decode().map_err(|error| self.invalid(&error))?;
            if let Some(requests) = task.input_requests.take().filter(|_| detail == Detail::Whole) {
                let (shown, is_left) = self.questions(&requests, creator).await?;
                if shown.is_empty() && !is_left && !requests.is_empty() {
                    // The host answers all of them.
                    task.status = TaskStatus::Working;
                } else {
                    task.input_requests = Some(shown);
                }
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

    /// Returns the questions that the caller answers, and whether there are others that the client which created the task answers.
    ///
    /// The host begins to answer its own. An elicitation that nobody can or may answer counts as cancelled, and any other such
    /// request ends the task.
    async fn questions(
        &self,
        requests: &InputRequests,
        creator: Abilities,
    ) -> Result<(InputRequests, bool), RpcError> {
        let instance = &self.route.instance;
        let reader = Abilities::of(self.call.client.capabilities());
        let (mut shown, mut of_host, mut cancelled) =
            (InputRequests::default(), InputRequests::default(), RawMap::new());
        let mut is_left = false;
        for (key, request) in requests {
            let error = match self.inner.asker.answerer(instance, CallerView::of(self.call), request) {
                Answerer::Caller => {
                    let mut request = with_origin(instance, request.clone());
                    // A question that is shown again must not differ, such as by a new id of its URL.
                    request.adapt(self.call.client.revision);
                    shown.insert(key, request);
                    continue;
                }
                // This client only looks at a task that another client of the same user created.
                Answerer::Host | Answerer::Nobody(_)
                    if creator.can_answer(request) && !reader.can_answer(request) =>
                {
                    is_left = true;
                    continue;
                }
                Answerer::Host => {
                    of_host.insert(key, request.clone());
                    continue;
                }
                Answerer::Nobody(error) => error,
            };
            if !matches!(request, InputRequest::Elicit(_)) {
                let (server, method) = (&*instance.name, request.method().as_str());
                tracing::warn!(server, method, %error, "a request of a task cannot be answered, so the task is cancelled");
                self.cancel().await?;
                return Ok((InputRequests::default(), false));
            }
            tracing::debug!(server = &*instance.name, %error, "a question of a task is not passed on");
            cancelled.insert(key, or_cancelled(error)?);
        }
        if !cancelled.is_empty() {
            self.update(cancelled).await?;
        }
        if !of_host.is_empty() {
            self.answer_by_host(of_host);
        }
        Ok((shown, is_left))
    }

    /// Begins to answer questions in the background, because a user or a model may take long. Whoever asks for the state of the
    /// task does not wait.
    fn answer_by_host(&self, questions: InputRequests) {
        let Self { inner, route, call, client, id } = self;
        // If somebody answers already, the next request for the state finds what is left.
        let Some(asking) = inner.asking.begin(&asking_key(&route.instance, id)) else { return };
        let answers = HostAnswers {
            asker: Arc::clone(&inner.asker),
            instance: Arc::clone(&route.instance),
            call: Call::clone(call),
            client: client.clone(),
            id: (*id).to_owned(),
        };
        let answering = async move {
            let _asking = asking;
            if let Err(error) = answers.answer(questions).await {
                let server = &*answers.instance.name;
                tracing::warn!(server, %error, "the questions of a task were not answered");
            }
        };
        match current_call() {
            Some(origin) => inner.tasks.spawn(within(origin, answering)),
            None => inner.tasks.spawn(answering),
        }
    }

    fn invalid(&self, error: &serde_json::Error) -> RpcError {
        invalid_task(&self.route.instance.name, error)
    }
}

/// Returns the error about a task of a server that cannot be read.
pub(super) fn invalid_task(server: &str, error: &serde_json::Error) -> RpcError {
    RpcError::internal(format!("the server `{server}` sent an invalid task: {error}"))
}

/// Sends a request about a task. The inner error is the one that the server answered with.
pub(super) async fn send(
    asker: &Asker,
    instance: &Instance,
    call: &Call,
    client: &Client,
    method: Method,
    params: RawJson,
) -> Result<Result<RawJson, RpcError>, RpcError> {
    let mut capabilities = asker.capabilities(instance, &call.client);
    capabilities.extensions.insert(TASKS_EXTENSION, RawJson::empty_object());
    let mut with = RelayWith::default();
    with.capabilities = Some(capabilities);
    with.client_info = call.client.info().cloned();
    with.timeout = Some(instance.spec.timeout);
    let relayed = client.relay(method, params, with).await;
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

pub(super) fn task_params(id: &str) -> RawJson {
    serde_json::json!({ "taskId": id }).into()
}
