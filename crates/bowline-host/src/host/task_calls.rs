//! Tasks of servers for callers that know tasks: ids are sealed, and every request passes the policy again.

use super::{
    Inner,
    asker::{Answerer, CallerView, with_origin},
    result,
    route::{Route, Subject},
    task_ids::{TaskRef, unknown_task},
};
use crate::bridge::{for_caller, or_cancelled};
use bowline_client::{Client, RelayWith, Relayed};
use bowline_proto::{
    params::Params,
    service::{Call, Outcome, Reply},
};
use bowline_types::{
    InputRequest, InputRequests, Method, RawJson, RawMap, ResultType, RpcError, TASKS_EXTENSION, TaskExt,
    UpdateTaskParams,
};

/// Returns whether the caller handles tasks itself: it declares the extension with this request.
pub(super) fn tasks_of_caller(call: &Call) -> bool {
    call.client.revision.is_modern() && call.client.capabilities().has_extension(TASKS_EXTENSION)
}

impl Inner {
    /// Passes on a task that a server created, with a sealed id.
    pub(super) fn pass_on_task(
        &self,
        route: &Route,
        call: &Call,
        created: &RawJson,
    ) -> Result<Outcome, RpcError> {
        let server = &route.instance.name;
        let invalid = |error: serde_json::Error| {
            RpcError::internal(format!("the server `{server}` sent an invalid task: {error}"))
        };
        let mut task: TaskExt = created.decode().map_err(invalid)?;
        let tool = call.params.name()?.into_owned();
        let reference = TaskRef { server: server.to_string(), tool, id: task.task_id };
        task.task_id = self.task_ids.seal(&call.client, &reference)?;
        task.result_type = Some(ResultType::Task);
        // Only `tasks/get` says these.
        (task.input_requests, task.result, task.error) = (None, None, None);
        Ok(Outcome::Complete(Reply::Accepted(RawJson::of(&task).map_err(invalid)?)))
    }

    /// Answers a request about a task.
    pub(super) async fn route_task(&self, call: Call) -> Outcome {
        match self.task_request(&call).await {
            Ok(result) => Outcome::Complete(Reply::Raw(result)),
            Err(error) => Outcome::Failed(error),
        }
    }

    async fn task_request(&self, call: &Call) -> Result<RawJson, RpcError> {
        let members = call.params.raw().members().map_err(invalid)?;
        let sealed: Option<String> = members.decode("taskId").map_err(invalid)?;
        let sealed = sealed.ok_or_else(|| RpcError::invalid_params("missing `taskId`"))?;
        let reference = self.task_ids.open(&call.client, &sealed)?;
        let route = self.route_of_task(call, &reference).await?;
        let client = route.instance.client().await?;
        let upstream = UpstreamTask { inner: self, route: &route, call, client: &client, id: &reference.id };
        match call.method.known() {
            Some(Method::GetTask) => upstream.get(&sealed).await,
            Some(Method::UpdateTask) => {
                let answers: Option<RawMap> = members.decode("inputResponses").map_err(invalid)?;
                let answers = answers.ok_or_else(|| RpcError::invalid_params("missing `inputResponses`"))?;
                upstream.update(answers).await?;
                Ok(RawJson::empty_object())
            }
            _ => {
                upstream.relay(Method::CancelTask, task_params(&reference.id)).await?;
                Ok(RawJson::empty_object())
            }
        }
    }

    /// Finds the server of a task. A tool that is gone has no tasks, and a rule may deny the tool by now.
    async fn route_of_task(&self, call: &Call, task: &TaskRef) -> Result<Route, RpcError> {
        let mut looked_up = call.clone();
        looked_up.method = Method::CallTool.into();
        looked_up.params = Params::parse(serde_json::json!({ "name": task.tool }).into())?;
        let route = self.router.route(&looked_up).await.map_err(|_| unknown_task())?;
        if *route.instance.name != *task.server {
            return Err(unknown_task());
        }
        let Subject::Tool(definition) = &route.subject else { return Err(unknown_task()) };
        let facts = self.asker.facts(&route.instance, CallerView::of(call));
        if let Some(refusal) = self.asker.guard.denied_calling(&facts, definition) {
            return Err(RpcError::internal(refusal.reason().to_owned())
                .with_data(serde_json::json!({ super::REFUSED: true })));
        }
        Ok(route)
    }
}

/// A task at its server, and the caller who asks about it.
struct UpstreamTask<'a> {
    inner: &'a Inner,
    route: &'a Route,
    call: &'a Call,
    client: &'a Client,
    id: &'a str,
}

impl UpstreamTask<'_> {
    async fn relay(&self, method: Method, params: RawJson) -> Result<RawJson, RpcError> {
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
            Ok(Relayed::Complete(result)) => Ok(result),
            Ok(Relayed::InputRequired { .. } | Relayed::Task(_)) => {
                Err(RpcError::internal(format!("the server `{}` sent an invalid result", instance.name)))
            }
            Err(error) => Err(if let Some(error) = error.as_rpc() {
                for_caller(&instance.name, error)
            } else {
                let reason = instance.spec.describe_error(&error);
                RpcError::internal(format!("the server `{}`: {reason}", instance.name))
            }),
        }
    }

    async fn update(&self, answers: RawMap) -> Result<(), RpcError> {
        let params = RawJson::of(&UpdateTaskParams::new(self.id, answers)).map_err(invalid)?;
        self.relay(Method::UpdateTask, params).await.map(drop)
    }

    /// Gets the state of the task, as the caller may see it.
    async fn get(&self, sealed: &str) -> Result<RawJson, RpcError> {
        let got = self.relay(Method::GetTask, task_params(self.id)).await?;
        let server = &self.route.instance.name;
        let wrong = |error: serde_json::Error| {
            RpcError::internal(format!("the server `{server}` sent an invalid task: {error}"))
        };
        let mut task: TaskExt = got.decode().map_err(wrong)?;
        sealed.clone_into(&mut task.task_id);
        task.result_type = None;
        if let Some(requests) = task.input_requests.take() {
            task.input_requests = Some(self.questions(&requests).await?);
        }
        if let Some(found) = task.result.take() {
            task.result = match result::outcome(self.route, &Method::CallTool.into(), &found) {
                Outcome::Complete(Reply::Tool(found)) => Some(RawJson::of(&*found).map_err(wrong)?),
                Outcome::Failed(error) => return Err(error),
                _ => Some(found),
            };
        }
        if let Some(error) = task.error.take() {
            task.error = Some(for_caller(server, &error));
        }
        RawJson::of(&task).map_err(wrong)
    }

    /// Returns the questions that the caller answers. An elicitation that it cannot or may not see counts as cancelled.
    async fn questions(&self, requests: &InputRequests) -> Result<InputRequests, RpcError> {
        let instance = &self.route.instance;
        let (mut shown, mut cancelled) = (InputRequests::default(), RawMap::new());
        for (key, request) in requests {
            let error = match self.inner.asker.answerer(instance, CallerView::of(self.call), request) {
                Answerer::Caller => {
                    shown.insert(key, with_origin(instance, request.clone()));
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
}

fn task_params(id: &str) -> RawJson {
    serde_json::json!({ "taskId": id }).into()
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn invalid(error: serde_json::Error) -> RpcError {
    RpcError::invalid_params(error.to_string())
}
