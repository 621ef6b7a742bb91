//! Waits for the end of a task, and answers its questions.

use super::{
    TaskState, has_tasks,
    poll::{Poller, passes},
};
use crate::{
    Backoff, Error, Result, answering,
    core::Core,
    error::Kind,
    handlers::{OnProgress, guarded},
    request::Options,
    shared::{lock, random},
};
use bowline_proto::{client::Negotiated, pending::Timeouts};
use bowline_types::{
    Id, InputRequest, InputResponses, Method, ProgressParams, RawJson, RpcError, TASKS_EXTENSION, TaskStatus,
    UpdateTaskParams,
};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::task::JoinSet;

/// The keys of the questions of one task that were answered. Keys are unique for the life of a task.
pub(super) type Answered = Mutex<BTreeSet<String>>;

/// The maximum number of questions of one task that are answered.
const MAX_ANSWERS: usize = 1000;
/// How often an update is repeated if it fails in a way that may pass.
const MAX_UPDATES: u32 = 10;

impl Core {
    /// Waits until a task has ended, and returns the result of the call.
    pub(super) async fn wait_for_task(
        &self,
        task_id: &str,
        known: Option<TaskState>,
        answered: &Answered,
        options: &Options,
    ) -> Result<RawJson> {
        let negotiated = self.connection().await?.negotiated().cloned();
        let Some(negotiated) = negotiated else {
            return Err(Error::closed("the handshake is not complete"));
        };
        if !options.profile(&self.shared).capabilities.has_extension(TASKS_EXTENSION) {
            return Err(Error::misuse("tasks are off; turn them on with `Client::builder().tasks()`"));
        }
        if !has_tasks(&negotiated) {
            return Err(Error::unsupported("tasks"));
        }
        if negotiated.revision.is_modern() {
            self.wait_modern(&negotiated, task_id, known, answered, options).await
        } else {
            self.wait_2025(task_id, known, options).await
        }
    }

    async fn wait_modern(
        &self,
        negotiated: &Arc<Negotiated>,
        task_id: &str,
        known: Option<TaskState>,
        answered: &Answered,
        options: &Options,
    ) -> Result<RawJson> {
        let mut poller = Poller::new(self, task_id, known.as_ref(), options);
        let mut state = known;
        let mut questions = Questions::default();
        let mut report = Report::new(options);
        loop {
            if let Some(state) = &state {
                report.state(state);
                if let Some(outcome) = outcome_of(task_id, state) {
                    return outcome;
                }
                questions.ask(self, negotiated, state, &lock(answered))?;
            }
            tokio::select! {
                biased;
                next = poller.next(self) => state = Some(next?),
                answers = questions.answers() => {
                    let answers = answers.map_err(|error| error.of_task(task_id))?;
                    self.update_task(task_id, answers, answered, options).await?;
                }
            }
        }
    }

    /// Answers the open questions of a state with the handlers of the client.
    pub(super) async fn answers_to(
        &self,
        state: &TaskState,
        answered: &Answered,
        options: &Options,
    ) -> Result<InputResponses> {
        let negotiated = self.connection().await?.negotiated().cloned();
        let Some(negotiated) = negotiated else {
            return Err(Error::closed("the handshake is not complete"));
        };
        if !options.profile(&self.shared).capabilities.has_extension(TASKS_EXTENSION) {
            return Err(Error::misuse("tasks are off; turn them on with `Client::builder().tasks()`"));
        }
        let mut questions = Questions::default();
        questions.ask(self, &negotiated, state, &lock(answered))?;
        if questions.shown.is_empty() {
            return Ok(InputResponses::new());
        }
        questions.answers().await.map_err(|error| error.of_task(&state.task.task_id))
    }

    /// Follows a task until it ends or asks a question that is not in `answered`.
    pub(crate) async fn follow_task(
        &self,
        task_id: &str,
        known: Option<TaskState>,
        answered: &BTreeSet<String>,
        options: &Options,
    ) -> Result<TaskState> {
        let modern = self.connection().await?.is_modern();
        let mut poller = Poller::new(self, task_id, known.as_ref(), options);
        let mut report = Report::new(options);
        let mut state = known;
        loop {
            if let Some(mut state) = state.take() {
                if modern {
                    report.state(&state);
                }
                let asks = state.questions.iter().any(|(key, _)| !answered.contains(key));
                let ended = state.task.status == TaskStatus::Cancelled || state.outcome.is_some();
                if asks || ended {
                    return Ok(state);
                }
                let has_result = state.task.status == TaskStatus::InputRequired || state.is_done();
                if !modern
                    && has_result
                    && let Some(outcome) = self.task_result(&state, options).await?
                {
                    // It blocks until the end, whatever the state was before.
                    if !state.is_done() {
                        state.task.status =
                            if outcome.is_ok() { TaskStatus::Completed } else { TaskStatus::Failed };
                    }
                    state.outcome = Some(outcome);
                    return Ok(state);
                }
            }
            state = Some(poller.next(self).await?);
        }
    }

    /// Gets the outcome of a task of 2025-11-25: the result, or the error of the call. Waits for the end of the task.
    /// Returns `None` if the request was interrupted.
    async fn task_result(
        &self,
        state: &TaskState,
        options: &Options,
    ) -> Result<Option<Result<RawJson, RpcError>>> {
        let task_id = &*state.task.task_id;
        // The server may ask meanwhile, so it takes as long as the user does.
        let mut blocking = Options { progress: None, ..options.clone() };
        blocking.timeouts = Timeouts { silence: Duration::MAX, total: Duration::MAX };
        let params = super::about(task_id);
        match self.task_request(Method::TaskResult, task_id, &params, &blocking).await {
            Ok((result, _)) => Ok(Some(Ok(result))),
            // An internal error may be the result of the task. If the task has not ended, it is not.
            Err(error)
                if !self.is_closed() && (error.is_passing() || (passes(&error) && !state.is_done())) =>
            {
                tracing::debug!(%error, task_id, "`tasks/result` was interrupted; polling");
                Ok(None)
            }
            Err(error) => match error.as_rpc() {
                Some(error) => Ok(Some(Err(error.clone()))),
                None => Err(error),
            },
        }
    }

    /// Sends answers. Repeating them is safe: the server ignores keys that are already answered.
    pub(super) async fn update_task(
        &self,
        task_id: &str,
        answers: InputResponses,
        answered: &Answered,
        options: &Options,
    ) -> Result<()> {
        if answers.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = answers.keys().map(ToOwned::to_owned).collect();
        let params = RawJson::of(&UpdateTaskParams::new(task_id, answers))
            .map_err(|error| Error::misuse(format!("cannot serialize an answer: {error}")))?;
        let mut backoff = Backoff::new();
        for attempt in 1.. {
            match self.task_request(Method::UpdateTask, task_id, &params, options).await {
                Ok(_) => break,
                Err(error) if attempt < MAX_UPDATES && passes(&error) && !self.is_closed() => {
                    tracing::debug!(%error, task_id, "cannot send the answers to a task; retrying");
                    tokio::time::sleep(backoff.next_delay(random())).await;
                }
                Err(error) => return Err(error.of_task(task_id)),
            }
        }
        lock(answered).extend(keys);
        Ok(())
    }

    async fn wait_2025(&self, task_id: &str, known: Option<TaskState>, options: &Options) -> Result<RawJson> {
        let state = self.follow_task(task_id, known, &BTreeSet::new(), options).await?;
        outcome_of(task_id, &state).unwrap_or_else(|| Err(cancelled(task_id)))
    }
}

/// Returns the outcome of a task that has ended.
fn outcome_of(task_id: &str, state: &TaskState) -> Option<Result<RawJson>> {
    match (&state.task.status, &state.outcome) {
        (TaskStatus::Cancelled, _) => Some(Err(cancelled(task_id))),
        (_, Some(Ok(result))) => Some(Ok(result.clone())),
        (_, Some(Err(error))) => Some(Err(error.clone().into())),
        (_, None) => None,
    }
}

fn cancelled(task_id: &str) -> Error {
    Kind::TaskCancelled(task_id.to_owned()).into()
}

/// Reports the status messages of a task as progress: in 2026-07-28 tasks have no other.
pub(super) struct Report {
    progress: Option<OnProgress>,
    last: Option<String>,
    count: f64,
}

impl Report {
    pub(super) fn new(options: &Options) -> Self {
        Self { progress: options.progress.clone(), last: None, count: 0.0 }
    }

    pub(super) fn state(&mut self, state: &TaskState) {
        let Some(progress) = &self.progress else { return };
        let message = &state.task.status_message;
        if message.is_none() || *message == self.last {
            return;
        }
        self.last.clone_from(message);
        self.count += 1.0;
        let mut params = ProgressParams::new(Id::from(state.task.task_id.as_str()), self.count);
        params.message.clone_from(message);
        guarded(|| progress(params));
    }
}

/// The questions of one task that handlers are answering. Dropping it stops them.
#[derive(Default)]
struct Questions {
    running: JoinSet<(String, Result<RawJson>)>,
    /// Keys that a handler has received.
    shown: BTreeSet<String>,
    /// Keys that are still open, as the server said last.
    open: BTreeSet<String>,
    answers: InputResponses,
}

impl Questions {
    /// Passes on what the server asks, each key once.
    fn ask(
        &mut self,
        core: &Core,
        negotiated: &Arc<Negotiated>,
        state: &TaskState,
        answered: &BTreeSet<String>,
    ) -> Result<()> {
        self.open = state.questions.iter().map(|(key, _)| key.to_owned()).collect();
        for (key, request) in &state.questions {
            if answered.contains(key) || self.shown.contains(key) {
                continue;
            }
            if self.shown.len() >= MAX_ANSWERS || answered.len() >= MAX_ANSWERS {
                let reason = format!("the task asked more than {MAX_ANSWERS} questions");
                return Err(Error::from(Kind::Unanswerable(reason)).of_task(&state.task.task_id));
            }
            self.shown.insert(key.to_owned());
            let (shared, negotiated) = (Arc::clone(&core.shared), Arc::clone(negotiated));
            let (key, request): (String, InputRequest) = (key.to_owned(), request.clone());
            self.running.spawn(async move {
                let answer = answering::answer_one(&shared, &negotiated, request).await;
                (key, answer)
            });
        }
        Ok(())
    }

    /// Waits until every question that was passed on is answered. Never completes if there is none.
    ///
    /// Answers to questions that the server no longer asks are dropped.
    async fn answers(&mut self) -> Result<InputResponses> {
        loop {
            match self.running.join_next().await {
                Some(Ok((key, answer))) => {
                    self.answers.insert(key, answer?);
                }
                Some(Err(error)) => return Err(Kind::Unanswerable(error.to_string()).into()),
                None if self.answers.is_empty() => std::future::pending::<()>().await,
                None => {
                    let mut answers = std::mem::take(&mut self.answers);
                    answers.retain(|key, _| self.open.contains(key));
                    return Ok(answers);
                }
            }
        }
    }
}
