//! Requests about tasks: ids are sealed, and every request passes the policy again.

use super::{
    Inner, REFUSED,
    asker::CallerView,
    hosted_requests::HostedRequest,
    route::{Route, Subject},
    task_ids::{TaskRef, digest_of_unknown, unknown_task},
    task_result::ResultRequest,
    task_view::shown,
    upstream_task::{Detail, UpstreamTask},
};
use bowline_policy::{Definition, Ended, Permit, Refusal, TaskFacts};
use bowline_proto::{
    params::Params,
    server::require_extension,
    service::{Call, Notifier, Outcome, Reply},
    task::view_2025,
};
use bowline_types::{
    CallToolResult, Method, RawJson, RawMap, Revision, RpcError, TASKS_EXTENSION, TaskExt, TaskMetadata,
    TaskStatus,
};

/// Returns whether the caller handles tasks itself: it declares the extension with this request.
pub(super) fn tasks_of_caller(call: &Call) -> bool {
    call.client.revision.is_modern() && call.client.capabilities().has_extension(TASKS_EXTENSION)
}

/// Returns the wish of a caller of 2025-11-25 that its call becomes a task.
pub(super) fn wanted_task(call: &Call) -> Result<Option<TaskMetadata>, RpcError> {
    if call.client.revision != Revision::V2025_11_25 || call.method != Method::CallTool {
        return Ok(None);
    }
    let Some(wish) = call.params.task()? else { return Ok(None) };
    wish.decode().map(Some).map_err(|error| RpcError::invalid_params(format!("`task`: {error}")))
}

/// A task that a caller may ask about.
pub(super) struct AllowedTask {
    pub(super) reference: TaskRef,
    pub(super) route: Route,
    pub(super) permit: Permit,
}

impl Inner {
    /// Answers a request about a task.
    pub(super) async fn route_task(&self, call: Call, notifier: Notifier) -> Outcome {
        let answer = match call.method.known() {
            Some(Method::ListTasks) => self.list_tasks(&call).await.map(Reply::Raw),
            _ => self.task_request(&call, &notifier).await,
        };
        answer.into()
    }

    async fn task_request(&self, call: &Call, notifier: &Notifier) -> Result<Reply, RpcError> {
        let members = call.params.raw().members().map_err(invalid)?;
        let sealed: Option<String> = members.decode("taskId").map_err(invalid)?;
        let sealed = sealed.ok_or_else(|| RpcError::invalid_params("missing `taskId`"))?;
        if call.client.revision.is_modern() && !tasks_of_caller(call) {
            // It may look after the tasks that it created in 2025-11-25.
            let is_older = self.task_ids.open(&call.client, &sealed).is_ok_and(|task| task.is_legacy);
            if !is_older {
                require_extension(&call.client, TASKS_EXTENSION)?;
            }
        }
        let AllowedTask { reference, route, permit } =
            self.allowed_task(call, call.method.as_str(), &sealed).await?;
        let task = (&reference, &route);
        let answer = match call.method.known() {
            Some(Method::TaskResult) => {
                let result = self.task_result(call, notifier, task, &sealed).await;
                result.map(|result| Reply::Tool(Box::new(result)))
            }
            Some(Method::GetTask) => {
                let state = self.task_state(call, task, &sealed, Detail::of(call)).await;
                state.and_then(|state| shown(call, state)).map(Reply::Raw)
            }
            Some(Method::UpdateTask) => {
                let answers = members.decode("inputResponses").map_err(invalid);
                let answered = match answers {
                    Ok(Some(answers)) => self.update_task(call, task, answers).await,
                    Ok(None) => Err(RpcError::invalid_params("missing `inputResponses`")),
                    Err(error) => Err(error),
                };
                answered.map(|()| Reply::Raw(RawJson::empty_object()))
            }
            _ => self.cancel_task(call, task, &sealed).await.map(Reply::Raw),
        };
        finish(permit, &answer);
        answer
    }

    async fn update_task(
        &self,
        call: &Call,
        (reference, route): (&TaskRef, &Route),
        answers: RawMap,
    ) -> Result<(), RpcError> {
        if reference.is_ended {
            return Ok(());
        }
        if reference.is_hosted {
            return self.update_hosted(call, reference, &answers).await;
        }
        let client = route.instance.client().await?;
        UpstreamTask { inner: self, route, call, client, id: &reference.id }.update(answers).await
    }

    async fn cancel_task(
        &self,
        call: &Call,
        (reference, route): (&TaskRef, &Route),
        sealed: &str,
    ) -> Result<RawJson, RpcError> {
        let is_modern = call.client.revision.is_modern();
        // The extension acknowledges it also when the task has ended; 2025-11-25 refuses that, and returns the task.
        let mut state: Option<TaskExt> = None;
        if !is_modern || reference.is_legacy {
            let found = self.task_state(call, (reference, route), sealed, Detail::Status).await?;
            if found.status.is_terminal() && is_modern {
                // It stays as it is: a record would say that it was cancelled.
                return Ok(RawJson::empty_object());
            }
            if found.status.is_terminal() {
                let status = found.status.as_str();
                return Err(RpcError::invalid_params(format!("the task has ended already: it is {status}")));
            }
            state = Some(found);
        }
        if reference.is_hosted {
            self.cancel_hosted(call, reference).await?;
        } else if !reference.is_ended {
            let client = route.instance.client().await?;
            UpstreamTask { inner: self, route, call, client, id: &reference.id }.cancel().await?;
            if reference.is_legacy {
                self.task_records.cancel(&call.client, reference, sealed).await?;
                self.asking.tell_cancelled(sealed);
            }
        }
        match state.filter(|_| !is_modern) {
            Some(mut task) => {
                task.status = TaskStatus::Cancelled;
                task.input_requests = None;
                shown(call, task)
            }
            None => Ok(RawJson::empty_object()),
        }
    }

    /// Waits for the end of a task, for a caller of 2025-11-25.
    async fn task_result(
        &self,
        call: &Call,
        notifier: &Notifier,
        (reference, route): (&TaskRef, &Route),
        sealed: &str,
    ) -> Result<CallToolResult, RpcError> {
        if reference.is_hosted {
            return self.hosted_result(&HostedRequest { call, reference, sealed }, notifier).await;
        }
        let mut cancellations = self.asking.cancellations();
        let state = self.task_state(call, (reference, route), sealed, Detail::Status).await?;
        if state.status == TaskStatus::Cancelled {
            return Err(view_2025::cancelled());
        }
        if reference.is_ended {
            let result = state.result.unwrap_or_else(RawJson::empty_object);
            let mut result: CallToolResult =
                result.decode().map_err(|error| RpcError::internal(error.to_string()))?;
            result.meta = Some(view_2025::related(sealed, result.meta.take()));
            return Ok(result);
        }
        let request = ResultRequest { call, notifier, route, sealed, id: &reference.id };
        let is_cancelled = async || {
            let note = self.task_records.get(&call.client, reference).await?;
            Ok::<_, RpcError>(note.is_some_and(|note| note.is_cancelled))
        };
        // Its server may ignore the cancellation, so nobody waits for it.
        let cancelled =
            async { while !cancellations.next(sealed).await && !is_cancelled().await.unwrap_or(false) {} };
        let waited = tokio::select! {
            waited = self.wait_for_task(&request) => waited,
            () = cancelled => return Err(view_2025::cancelled()),
        };
        if is_cancelled().await? { Err(view_2025::cancelled()) } else { waited }
    }

    /// Finds the task of a sealed id, unless it is not the caller's, or a rule denies its tool by now. The end of the request has to
    /// be reported to the permit.
    pub(super) async fn allowed_task(
        &self,
        call: &Call,
        method: &str,
        sealed: &str,
    ) -> Result<AllowedTask, RpcError> {
        let caller = CallerView::of(call);
        let (reference, route, definition) = self.find_task(call, sealed).await.inspect_err(|_| {
            let digest = Some(digest_of_unknown(sealed));
            self.asker.guard.log_task_request(&caller.describe(), method, digest, "unknown task");
        })?;
        let facts = self.asker.facts(&route.instance, caller);
        let request = TaskFacts { facts, method, definition: &definition, task: &reference.digest() };
        let permit = self.asker.guard.check_task(&request).await.map_err(|refusal| refused(&refusal))?;
        Ok(AllowedTask { reference, route, permit })
    }

    /// Returns the state of a task without a request about it, such as for a subscription. No line of the audit log.
    pub(super) async fn look_at_task(
        &self,
        call: &Call,
        sealed: &str,
        detail: Detail,
    ) -> Result<TaskExt, RpcError> {
        let (reference, route, definition) = self.find_task(call, sealed).await?;
        let facts = self.asker.facts(&route.instance, CallerView::of(call));
        if let Some(refusal) = self.asker.guard.denied_task(&facts, &definition) {
            return Err(refused(&refusal));
        }
        self.task_state(call, (&reference, &route), sealed, detail).await
    }

    /// Finds the task of a sealed id, and the tool whose call it is. A tool that is gone has no tasks.
    pub(super) async fn find_task(
        &self,
        call: &Call,
        sealed: &str,
    ) -> Result<(TaskRef, Route, Definition), RpcError> {
        let reference = self.task_ids.open(&call.client, sealed)?;
        let mut looked_up = call.clone();
        looked_up.method = Method::CallTool.into();
        looked_up.params = Params::parse(serde_json::json!({ "name": reference.tool }).into())?;
        let route = self.router.route(&looked_up).await.map_err(|_| unknown_task())?;
        match &route.subject {
            Subject::Tool(definition) if *route.instance.name == *reference.server => {
                let definition = definition.clone();
                Ok((reference, route, definition))
            }
            _ => Err(unknown_task()),
        }
    }
}

fn refused(refusal: &Refusal) -> RpcError {
    RpcError::internal(refusal.reason().to_owned()).with_data(serde_json::json!({ REFUSED: true }))
}

/// Returns whether an error says that the policy refused a request about a task.
pub(super) fn is_refused(error: &RpcError) -> bool {
    let data = error.data.as_ref().and_then(|data| data.members().ok());
    data.is_some_and(|data| data.contains_key(REFUSED))
}

/// Writes the end of a request about a task to the audit log.
pub(super) fn finish(permit: Permit, answer: &Result<Reply, RpcError>) {
    match answer {
        Ok(Reply::Tool(result)) if result.failed() => permit.finish(Ended::ToolFailed, 0),
        Ok(Reply::Raw(result)) => permit.finish(Ended::Completed, result.as_bytes().len() as u64),
        Ok(_) => permit.finish(Ended::Completed, 0),
        Err(error) => {
            permit.finish(Ended::Failed { code: error.code, message: error.message.to_string() }, 0);
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn invalid(error: serde_json::Error) -> RpcError {
    RpcError::invalid_params(error.to_string())
}
