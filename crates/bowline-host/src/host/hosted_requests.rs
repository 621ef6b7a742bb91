//! Requests about tasks that the host runs itself. Every process that shares the store answers them.

use super::{
    Inner,
    hosted_records::{Change, Ending, HostedState},
    hosted_run::answer_or_cancelled,
    task_ids::{TaskRef, unknown_task},
    task_records::key as record_key,
    task_result::{put, unanswered},
};
use bowline_proto::{
    service::{Call, Notifier},
    task::view_2025,
};
use bowline_types::{
    Adapt as _, CallToolResult, InputRequests, RawJson, RawMap, RpcError, TaskExt, TaskStatus,
};
use futures_util::future::join_all;
use std::time::Duration;

/// A task of the host, and the id that its caller knows.
pub(super) struct HostedRequest<'a> {
    pub(super) call: &'a Call,
    pub(super) reference: &'a TaskRef,
    pub(super) sealed: &'a str,
}

impl Inner {
    /// Returns the state of a task as its caller may see it.
    pub(super) async fn hosted_state(
        &self,
        call: &Call,
        reference: &TaskRef,
        sealed: &str,
    ) -> Result<TaskExt, RpcError> {
        let key = record_key(&call.client, reference)?;
        let mut state = self.task_records.hosted(&key).await?.ok_or_else(unknown_task)?;
        expire(&mut state);
        let poll_interval = state.poll_interval_ms();
        let mut task = state.task;
        sealed.clone_into(&mut task.task_id);
        task.poll_interval_ms = poll_interval;
        if let Some(requests) = task.input_requests.take() {
            let mut shown = InputRequests::default();
            for (key, request) in &requests {
                let mut request = request.clone();
                request.adapt(call.client.revision);
                shown.insert(key, request);
            }
            task.input_requests = Some(shown);
        }
        Ok(task)
    }

    /// Answers questions. Keys that are unknown or have an answer are ignored.
    pub(super) async fn update_hosted(
        &self,
        call: &Call,
        reference: &TaskRef,
        answers: &RawMap,
    ) -> Result<(), RpcError> {
        self.change_hosted(call, reference, |state| {
            let Some(open) = &mut state.task.input_requests else { return Change::None };
            let mut left = InputRequests::default();
            let mut is_changed = false;
            for (key, request) in &*open {
                match answers.get(key) {
                    Some(answer) => {
                        state.answers.insert(key, answer.clone());
                        is_changed = true;
                    }
                    None => drop(left.insert(key, request.clone())),
                }
            }
            if !is_changed {
                return Change::None;
            }
            let is_answered = left.is_empty();
            *open = left;
            if is_answered {
                (state.task.status, state.task.input_requests) = (TaskStatus::Working, None);
            }
            Change::Write
        })
        .await
    }

    /// Cancels a task, unless it has ended. Its call is cancelled where it runs.
    pub(super) async fn cancel_hosted(&self, call: &Call, reference: &TaskRef) -> Result<(), RpcError> {
        self.change_hosted(call, reference, |state| state.end(Ending::Cancelled)).await
    }

    async fn change_hosted(
        &self,
        call: &Call,
        reference: &TaskRef,
        change: impl FnMut(&mut HostedState) -> Change + Send,
    ) -> Result<(), RpcError> {
        let key = record_key(&call.client, reference)?;
        self.task_records.change_hosted(&key, change).await?.ok_or_else(unknown_task)?;
        self.hosted_tasks.signal(key.as_str());
        self.task_records.publish_hosted(&key);
        Ok(())
    }

    /// Waits for the end of a task, for a caller of 2025-11-25, and asks it what the task asks.
    pub(super) async fn hosted_result(
        &self,
        request: &HostedRequest<'_>,
        notifier: &Notifier,
    ) -> Result<CallToolResult, RpcError> {
        let HostedRequest { call, reference, sealed } = *request;
        let mut changes = self.hosted_tasks.changes(&record_key(&call.client, reference)?);
        loop {
            let state = self.hosted_state(call, reference, sealed).await?;
            match state.status {
                TaskStatus::Cancelled => return Err(view_2025::cancelled()),
                TaskStatus::InputRequired => {
                    // Another request for the same result may be asking already.
                    let ended = self.asking.ended.notified();
                    let digest = reference.digest();
                    let Some(_asking) = self.asking.begin(&digest) else {
                        ended.await;
                        continue;
                    };
                    // It may have got the answers meanwhile.
                    let state = self.hosted_state(call, reference, sealed).await?;
                    let answers = ask(request, notifier, state.input_requests.unwrap_or_default()).await?;
                    self.update_hosted(call, reference, &answers).await?;
                }
                status if status.is_terminal() => {
                    if let Some(error) = state.error {
                        return Err(error);
                    }
                    let result = state.result.unwrap_or_else(RawJson::empty_object);
                    let mut result: CallToolResult =
                        result.decode().map_err(|error| RpcError::internal(error.to_string()))?;
                    result.meta = Some(view_2025::related(sealed, result.meta.take()));
                    return Ok(result);
                }
                _ => changes.next().await,
            }
        }
    }
}

/// Asks the caller on the stream of its request.
async fn ask(
    request: &HostedRequest<'_>,
    notifier: &Notifier,
    questions: InputRequests,
) -> Result<RawMap, RpcError> {
    let revision = request.call.client.revision;
    let asked = questions.iter().map(|(key, question)| async move {
        let answer = put(notifier, request.sealed, revision, question.clone()).await;
        if let Some(error) = unanswered(&answer) {
            return Err(error);
        }
        Ok((key.to_owned(), answer_or_cancelled(question, answer)?))
    });
    let mut answers = RawMap::new();
    for answer in join_all(asked).await {
        let (key, answer) = answer?;
        answers.insert(key, answer);
    }
    Ok(answers)
}

/// Applies an elapsed `ttl`, in case that the process which runs the task has not done so.
fn expire(state: &mut HostedState) {
    let ttl = state.task.ttl_ms.map_or(Duration::MAX, Duration::from_millis);
    if state.age() > ttl {
        state.end(Ending::Failed(RpcError::internal("the task has expired: it took longer than its `ttl`")));
    }
}
