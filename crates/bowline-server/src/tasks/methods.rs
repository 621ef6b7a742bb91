//! Answers `tasks/get`, `tasks/update`, `tasks/cancel`, `tasks/result` and `tasks/list`.

use super::{
    table::{Found, NotApplied, Table, unavailable},
    watch::{TaskWatcher, until_deadline},
};
use crate::{schema, scopes, transport};
use bowline_proto::{
    pagination::Cursor,
    seal::KeyRing,
    server::require_extension,
    service::{Call, Notifier, Outcome, Reply},
    task::{
        Body, Ending, Event, MAX_INLINE_BYTES, TaskQuestion, TaskRecord, TaskState, transition, view_2025,
        view_2026,
    },
};
use bowline_store::{Key, Put, PutError};
use bowline_types::{
    Adapt, CallToolResult, CreateMessageResult, ElicitAction, ElicitParams, ElicitResult, InputRequest,
    ListRootsResult, ListTasksResult, Method, RawJson, RawMap, ResultType, Revision, RpcError,
    TASKS_EXTENSION, TaskParams, UpdateTaskParams,
};
use futures_util::future::join_all;
use std::{sync::Arc, time::Duration};

/// How many tasks a page of `tasks/list` has.
const PAGE: usize = 50;

/// How long a connection has to put a question to its client before another one may put it as well. The first answer counts.
const ASK_LEASE: Duration = Duration::from_secs(20);

/// How old what is known of a job may be, in milliseconds.
const MAX_STATUS_AGE_MS: u64 = 1000;

/// How long a reader waits for the other system that does the work of a task.
const JOB_POLL_TIMEOUT: Duration = Duration::from_secs(2);

/// How many characters of an error are kept that a client answered with.
const MAX_ERROR_CHARS: usize = 500;

/// Returns whether a method is about tasks.
pub(crate) fn is_task_method(method: Method) -> bool {
    matches!(
        method,
        Method::GetTask | Method::UpdateTask | Method::CancelTask | Method::TaskResult | Method::ListTasks
    )
}

impl Table {
    /// Answers a method of tasks.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        method: Method,
        call: &Call,
        notifier: &Notifier,
        keys: &KeyRing,
    ) -> Result<Outcome, RpcError> {
        match method {
            Method::GetTask => self.get(call).await.map(Outcome::Complete),
            Method::CancelTask => self.cancel_for(call).await.map(Outcome::Complete),
            Method::UpdateTask => self.update(call).await.map(Outcome::Complete),
            Method::TaskResult => self.wait_for_result(call, notifier).await,
            Method::ListTasks => self.list(call, keys).await.map(Outcome::Complete),
            method => Err(RpcError::method_not_found(method.as_str())),
        }
    }

    /// Reads a task of this caller.
    async fn find(&self, id: &str, call: &Call) -> Result<Found, RpcError> {
        let is_modern = call.client.revision == Revision::V2026_07_28;
        let declared = if is_modern { require_extension(&call.client, TASKS_EXTENSION) } else { Ok(()) };
        let found = self.read(id).await?.filter(|found| is_callers(&found.record, call));
        if let Some(found) = &found {
            // The token may have fewer scopes than the one that made the call.
            scopes::check(&call.extensions, self.task_scopes(&found.record).as_ref())?;
        }
        match (found, declared) {
            (Some(found), Ok(())) => Ok(found),
            // A client of 2026-07-28 that knows only the older tasks may use those.
            (Some(found), Err(_)) if found.record.caller.revision == Revision::V2025_11_25 => Ok(found),
            (_, Err(missing)) => Err(missing),
            (None, Ok(())) => Err(unknown(id)),
        }
    }

    async fn get(self: &Arc<Self>, call: &Call) -> Result<Reply, RpcError> {
        let TaskParams { task_id, .. } = call.params.decode()?;
        let found = self.find(&task_id, call).await?;
        let record = self.refresh_job(found).await?;
        self.view(&record, call.client.revision).await
    }

    /// Polls the job of a task, if it has one, and returns the task as it is then. Returns
    /// what is known if that takes long.
    async fn refresh_job(self: &Arc<Self>, found: Found) -> Result<TaskRecord, RpcError> {
        let Found { record, version, owner } = found;
        let Some(job) = &record.job else { return Ok(record) };
        let age = self.clock.now().saturating_sub(job.polled_at);
        if record.is_terminal() || job.polled_at == 0 || age < MAX_STATUS_AGE_MS {
            return Ok(record);
        }
        let mut watcher = TaskWatcher::new(self, vec![record.id.clone()]);
        if owner.is_none()
            && let Some(key) = self.key(&record.id)
        {
            let due = Put::update(key, record.encode(), version).due_in(Duration::ZERO).relaxed();
            // If others were faster, they poll.
            if self.records().put(due).await.is_ok() {
                self.has_work();
            }
        }
        match watcher.next(JOB_POLL_TIMEOUT).await.pop() {
            Some((_, Ok(Some(record)))) => Ok(record),
            Some((_, Err(error))) => Err(error),
            // The record is gone meanwhile.
            Some((_, Ok(None))) | None => Ok(record),
        }
    }

    /// Returns a task as a reader of this revision sees it.
    async fn view(&self, record: &TaskRecord, reader: Revision) -> Result<Reply, RpcError> {
        let now = self.clock.now();
        let view = match reader {
            Revision::V2026_07_28 => {
                let result = match self.result(record).await? {
                    Some(result) => Some(plain_result(&result, reader)?),
                    None => None,
                };
                RawJson::of(&view_2026::task(record, result, now))
            }
            _ => RawJson::of(&view_2025::task(record, now)),
        };
        view.map(Reply::Raw).map_err(|error| RpcError::internal(error.to_string()))
    }

    async fn cancel_for(&self, call: &Call) -> Result<Reply, RpcError> {
        let TaskParams { task_id, .. } = call.params.decode()?;
        self.find(&task_id, call).await?;
        let is_modern = call.client.revision == Revision::V2026_07_28;
        match self.cancel(&task_id).await {
            // The extension acknowledges it also when the task has ended; 2025-11-25 refuses that.
            Ok(_) | Err(NotApplied::Refused(_)) if is_modern => Ok(acknowledged()),
            Ok(record) => self.view(&record, call.client.revision).await,
            Err(NotApplied::Refused(record)) => {
                let status = view_2025::status(&record);
                Err(RpcError::invalid_params(format!(
                    "the task has ended already: it is {}",
                    status.as_str()
                )))
            }
            Err(NotApplied::Unknown) => Err(unknown(&task_id)),
            Err(NotApplied::Failed(error)) => Err(error),
        }
    }

    async fn update(&self, call: &Call) -> Result<Reply, RpcError> {
        let UpdateTaskParams { task_id, input_responses, .. } = call.params.decode()?;
        let Found { record, .. } = self.find(&task_id, call).await?;
        let responses = record.responses(&input_responses);
        // All are checked before any is recorded.
        for (key, response) in &responses {
            if let Some(question) = record.question(key) {
                check_answer(question, response)?;
            }
        }
        let answers = responses.into_iter().map(|(key, response)| (key, Ok(response))).collect();
        self.record_answers(&record, answers).await?;
        Ok(acknowledged())
    }

    /// Records answers. Those to questions that were answered meanwhile are ignored.
    async fn record_answers(
        &self,
        record: &TaskRecord,
        answers: Vec<(String, Result<RawJson, RpcError>)>,
    ) -> Result<(), RpcError> {
        let mut bodies = Vec::new();
        for (key, answer) in answers {
            let body = match answer {
                Ok(answer) if answer.as_bytes().len() > MAX_INLINE_BYTES => {
                    self.store_answer(record, &key, &answer).await?;
                    Ok(Body::Stored)
                }
                Ok(answer) => Ok(Body::Inline(answer.compact())),
                Err(error) => Err(short(&error)),
            };
            bodies.push((key, body));
        }
        if bodies.is_empty() {
            return Ok(());
        }
        match self.apply(&record.id, &Event::Answer(bodies)).await {
            // What has ended or goes on without these answers does not need them.
            Ok(_) | Err(NotApplied::Refused(..)) => Ok(()),
            Err(NotApplied::Unknown) => Err(unknown(&record.id)),
            Err(NotApplied::Failed(error)) => Err(error),
        }
    }

    /// Writes a large answer before the record that refers to it. The first one counts.
    async fn store_answer(&self, record: &TaskRecord, key: &str, answer: &RawJson) -> Result<(), RpcError> {
        let left = record.created_at.saturating_add(record.ttl_ms).saturating_sub(self.clock.now());
        let part = self.part(&record.id, &format!("answer/{key}"));
        let put = Put::create(part, answer.as_bytes().to_vec(), Self::kept_for(Duration::from_millis(left)))
            .group(self.parts(&record.id));
        match self.records().put(put).await {
            Ok(_) | Err(PutError::Conflict) => Ok(()),
            Err(PutError::Store(error)) => Err(unavailable(&error)),
            Err(error) => Err(RpcError::internal(error.to_string())),
        }
    }

    /// Waits for the end of a task and returns what its call would have returned. Questions of the task go to the client
    /// meanwhile.
    async fn wait_for_result(
        self: &Arc<Self>,
        call: &Call,
        notifier: &Notifier,
    ) -> Result<Outcome, RpcError> {
        let TaskParams { task_id, .. } = call.params.decode()?;
        let mut watcher = TaskWatcher::new(self, vec![task_id.clone()]);
        let found = self.find(&task_id, call).await?;
        let mut record = self.refresh_job(found).await?;
        loop {
            match &record.state {
                TaskState::Done(Ending::Result { .. }) => {
                    let missing = || RpcError::internal("the result of the task is missing in the store");
                    let result = self.result(&record).await?.ok_or_else(missing)?;
                    let mut result: CallToolResult =
                        result.decode().map_err(|error| RpcError::internal(error.to_string()))?;
                    result.meta = Some(view_2025::related(&task_id, result.meta.take()));
                    return Ok(Outcome::Complete(Reply::Tool(Box::new(result))));
                }
                TaskState::Done(Ending::Error(error)) => return Err(error.clone()),
                TaskState::Cancelled => return Err(view_2025::cancelled()),
                TaskState::Asking => {
                    let now = self.clock.now();
                    let free = record.questions.iter().filter(|question| question.put_until <= now);
                    let free: Vec<TaskQuestion> = free.cloned().collect();
                    if !free.is_empty() {
                        self.ask_client(&record, free, call.client.revision, notifier).await?;
                        record = self.find(&task_id, call).await?.record;
                        continue;
                    }
                }
                TaskState::Working => {}
            }
            let wait = until_deadline(std::iter::once(&record), self.clock.now());
            record = match watcher.next(wait).await.pop() {
                Some((_, Ok(Some(record)))) if is_callers(&record, call) => record,
                Some((_, Err(error))) => return Err(error),
                _ => return Err(unknown(&task_id)),
            };
        }
    }

    /// Puts questions of a task to the client on the stream of its `tasks/result`.
    async fn ask_client(
        &self,
        record: &TaskRecord,
        questions: Vec<TaskQuestion>,
        revision: Revision,
        notifier: &Notifier,
    ) -> Result<(), RpcError> {
        let keys: Vec<String> = questions.iter().map(|question| question.key.clone()).collect();
        self.mark_asked(record, &keys, ASK_LEASE).await?;
        let id = &record.id;
        let ask = |question: TaskQuestion| async move {
            let answer = match request_of(&question, id, revision) {
                Some((method, params)) => notifier.request(method.as_str(), Some(params)).await,
                None => Err(RpcError::internal("this version does not know the question")),
            };
            (question.key, answer)
        };
        // The mark is not renewed: nobody may read this stream any more, and its client asks for the result again.
        let answers = join_all(questions.into_iter().map(ask)).await;
        let is_answer = |answer: &Result<RawJson, RpcError>| match answer {
            Ok(_) => true,
            Err(error) => !transport::is_unanswered(error),
        };
        let (answered, open): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|(_, answer)| is_answer(answer));
        if !answered.is_empty() {
            self.record_answers(record, answered).await?;
        }
        match open.into_iter().next() {
            // The client is gone or does not answer; the question stays for another connection.
            Some((_, Err(error))) => {
                self.mark_asked(record, &keys, Duration::ZERO).await?;
                Err(error)
            }
            _ => Ok(()),
        }
    }

    async fn mark_asked(&self, record: &TaskRecord, keys: &[String], time: Duration) -> Result<(), RpcError> {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let until = if millis == 0 { 0 } else { self.clock.now().saturating_add(millis) };
        match self.apply(&record.id, &Event::Put { keys: keys.to_vec(), until }).await {
            Ok(_) | Err(NotApplied::Refused(..)) => Ok(()),
            Err(NotApplied::Unknown) => Err(unknown(&record.id)),
            Err(NotApplied::Failed(error)) => Err(error),
        }
    }

    async fn list(&self, call: &Call, keys: &KeyRing) -> Result<Reply, RpcError> {
        let principal = call.client.principal.as_deref();
        if principal.is_none() && call.extensions.is_http() {
            // Callers that cannot be distinguished would see each other's tasks.
            return Err(RpcError::method_not_found(Method::ListTasks.as_str()));
        }
        let name = format!("tasks of {}", principal.unwrap_or_default());
        let wrong = |reason: String| RpcError::invalid_params(format!("`cursor`: {reason}"));
        let cursor = call.params.cursor()?.map(|cursor| Cursor::decode(keys, &name, &cursor)).transpose();
        let cursor = cursor.map_err(|error| wrong(error.to_string()))?;
        let after = cursor.as_ref().and_then(Cursor::key).map(Key::new).transpose();
        let after = after.map_err(|error| wrong(error.to_string()))?;
        let group = self.group(principal);
        let mut rows = self
            .records()
            .list(&group, after.as_ref(), PAGE + 1)
            .await
            .map_err(|error| unavailable(&error))?;
        let has_more = rows.len() > PAGE;
        rows.truncate(PAGE);
        let mut result = ListTasksResult::default();
        if has_more && let Some(last) = rows.last() {
            result.next_cursor = Some(Cursor::new(0, last.key.as_str()).encode(keys, &name));
        }
        for row in rows {
            let Ok(mut record) = TaskRecord::decode(&row.value) else { continue };
            if scopes::check(&call.extensions, self.task_scopes(&record).as_ref()).is_err() {
                continue;
            }
            let _ = transition(&mut record, Event::Refresh, row.read_at.as_millis());
            result.tasks.push(view_2025::task(&record, row.read_at.as_millis()));
        }
        RawJson::of(&result).map(Reply::Raw).map_err(|error| RpcError::internal(error.to_string()))
    }
}

/// An error that a client answered with, as it is kept in the record: what a handler gets of it.
fn short(error: &RpcError) -> RpcError {
    let message: String = error.message.chars().take(MAX_ERROR_CHARS).collect();
    RpcError::new(error.code, message)
}

/// A task is for its own caller only.
fn is_callers(record: &TaskRecord, call: &Call) -> bool {
    record.caller.principal.as_deref() == call.client.principal.as_deref()
}

/// The same for tasks that never existed, that have expired, and that belong to others.
fn unknown(id: &str) -> RpcError {
    let id: String = id.chars().take(64).collect();
    RpcError::invalid_params(format!("unknown task `{id}`; it may have expired"))
}

fn acknowledged() -> Reply {
    Reply::Raw(RawJson::empty_object())
}

/// The result of the call inside of a task: as a reader of this revision would get it, without the marks of a response.
fn plain_result(result: &RawJson, reader: Revision) -> Result<RawJson, RpcError> {
    let wrong = |error: serde_json::Error| {
        RpcError::internal(format!("the result of the task cannot be read: {error}"))
    };
    let mut result: CallToolResult = result.decode().map_err(wrong)?;
    result.adapt(reader);
    result.result_type = None::<ResultType>;
    RawJson::of(&result).map_err(wrong)
}

/// Checks an answer before it is recorded: a wrong one leaves the question open.
fn check_answer(question: &TaskQuestion, response: &RawJson) -> Result<(), RpcError> {
    let key = &question.key;
    let wrong = |reason: String| {
        #[cfg(feature = "tracing")]
        tracing::debug!(key, reason, "an answer does not fit its question");
        RpcError::invalid_params(format!("`inputResponses.{key}`: {reason}"))
    };
    let invalid = |error: serde_json::Error| wrong(error.to_string());
    match question.input_request() {
        Some(InputRequest::Elicit(params)) => {
            let result: ElicitResult = response.decode().map_err(invalid)?;
            if let (ElicitAction::Accept, ElicitParams::Form(form)) = (&result.action, &params) {
                let content = RawJson::of(&result.content.unwrap_or_default()).map_err(invalid)?;
                form.requested_schema.validate(&content).map_err(wrong)?;
                schema::check_patterns(&form.requested_schema, &content).map_err(wrong)?;
            }
            Ok(())
        }
        Some(InputRequest::CreateMessage(_)) => {
            response.decode::<CreateMessageResult>().map(drop).map_err(invalid)
        }
        Some(InputRequest::ListRoots) => response.decode::<ListRootsResult>().map(drop).map_err(invalid),
        None => Ok(()),
    }
}

/// Returns a question as a request of its own, marked as belonging to the task.
fn request_of(question: &TaskQuestion, task: &str, revision: Revision) -> Option<(Method, RawJson)> {
    let mut request = question.input_request()?;
    request.adapt(revision);
    let mut params: RawMap = match request.params() {
        Some(params) => params.decode().ok()?,
        None => RawMap::new(),
    };
    let own = params.get("_meta").and_then(|meta| meta.decode().ok());
    params.insert("_meta", RawJson::of(&view_2025::related(task, own)).ok()?);
    Some((request.method(), RawJson::of(&params).ok()?))
}
