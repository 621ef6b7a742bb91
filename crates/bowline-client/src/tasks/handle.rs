//! A handle to one task of the server.

use super::{TaskState, TaskUpdates, wait::Answered};
use crate::{
    Result, ToolResult,
    client::{Client, decode},
    request::{Finish, Options},
    shared::lock,
};
use bowline_types::{CallToolResult, InputResponses, Method, RawJson};
use std::{
    fmt,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

/// A task of the server: from [`Request::start`](crate::Request::start), or from [`Client::task`] with an id that was
/// stored.
///
/// The task runs on the server, whether or not the handle exists. Dropping the handle, or a future of it, leaves the
/// task running, unless [`cancel_on_drop`](Self::cancel_on_drop) is set.
pub struct TaskHandle {
    client: Client,
    id: String,
    options: Options,
    known: Mutex<Option<TaskState>>,
    answered: Answered,
    /// Checks the result of the call.
    finish: Mutex<Option<Finish<ToolResult>>>,
    cancel_on_drop: bool,
    /// Whether the task has ended, or was cancelled by this handle.
    ended: AtomicBool,
}

impl TaskHandle {
    pub(super) fn new(
        client: &Client,
        id: String,
        known: Option<TaskState>,
        finish: Option<Finish<ToolResult>>,
        options: Options,
    ) -> Self {
        Self {
            client: client.clone(),
            id,
            options,
            ended: AtomicBool::new(known.as_ref().is_some_and(TaskState::is_done)),
            known: Mutex::new(known),
            answered: Answered::default(),
            finish: Mutex::new(finish),
            cancel_on_drop: false,
        }
    }

    /// Returns the id. Together with the server it is all that is needed to continue in another process.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the state that the server sent last, without a request. `None` for a handle of [`Client::task`] that
    /// was not used yet.
    pub fn known(&self) -> Option<TaskState> {
        lock(&self.known).clone()
    }

    /// Asks the server for the state of the task, once.
    ///
    /// Fails with [`is_task_gone`](crate::Error::is_task_gone) if the server does not know the task.
    pub async fn status(&self) -> Result<TaskState> {
        let state = self.client.core().get_task(&self.id, &self.options).await?;
        self.note(&state);
        Ok(state)
    }

    /// Returns the states of the task as a stream, until it ends. It answers no questions.
    ///
    /// With a server of 2026-07-28 that supports it, the server sends the changes. Otherwise they are polled.
    pub fn updates(&self) -> TaskUpdates {
        TaskUpdates::new(&self.client, &self.id, self.known(), &self.options)
    }

    /// Waits until the task ends, and returns the result of the call. Questions are answered by the handlers of the
    /// client, each of them once.
    ///
    /// Failures that may pass are retried, also while the client reconnects. If the future is dropped, the task goes
    /// on, unless [`cancel_on_drop`](Self::cancel_on_drop) is set; another `wait` continues.
    pub async fn wait(&self) -> Result<ToolResult> {
        let result = self.result().await?;
        let finish = lock(&self.finish).take();
        match finish {
            Some(finish) => finish(result),
            None => decode::<CallToolResult>(Method::TaskResult, &result).map(ToolResult::from),
        }
    }

    /// Waits until the task ends, and returns the result as the server sent it.
    pub(crate) async fn result(&self) -> Result<RawJson> {
        let guard = CancelGuard(self.cancel_on_drop.then_some(self));
        let core = self.client.core();
        let result = core.wait_for_task(&self.id, self.known(), &self.answered, &self.options).await;
        // An error of the server is the end of the task. Other errors say nothing about the task.
        if result.is_ok() || result.as_ref().is_err_and(crate::Error::ends_task) {
            self.ended.store(true, Ordering::Relaxed);
        }
        drop(guard);
        result
    }

    /// Answers questions of the task: for callers that show them to a user themselves. See [`TaskState::questions`].
    ///
    /// Each answer is the result of the question's method, such as an `ElicitResult`. Only servers of 2026-07-28
    /// accept answers in this way.
    pub async fn answer(&self, answers: InputResponses) -> Result<()> {
        self.client.core().update_task(&self.id, answers, &self.answered, &self.options).await
    }

    /// Answers the questions that are open now with the handlers of the client, and returns how many there were. Does
    /// not wait for the end of the task.
    ///
    /// A server of 2025-11-25 asks only while [`wait`](Self::wait) runs.
    pub async fn answer_open(&self) -> Result<usize> {
        let state = self.status().await?;
        let core = self.client.core();
        let answers = core.answers_to(&state, &self.answered, &self.options).await?;
        let count = answers.len();
        core.update_task(&self.id, answers, &self.answered, &self.options).await?;
        Ok(count)
    }

    /// Cancels the task. A server of 2026-07-28 confirms the request, and may still complete the task.
    pub async fn cancel(&self) -> Result<()> {
        self.client.core().cancel_task(&self.id, &self.options).await?;
        self.ended.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Cancels the task if the handle, or the future of [`wait`](Self::wait), is dropped before the task has ended.
    ///
    /// The request is sent without waiting for the response.
    #[must_use]
    pub fn cancel_on_drop(mut self) -> Self {
        self.cancel_on_drop = true;
        self
    }

    fn note(&self, state: &TaskState) {
        if state.is_done() {
            self.ended.store(true, Ordering::Relaxed);
        }
        *lock(&self.known) = Some(state.clone());
    }

    fn cancel_in_passing(&self) {
        if !self.ended.swap(true, Ordering::Relaxed) {
            self.client.core().cancel_task_in_passing(&self.id, &self.options);
        }
    }
}

impl Drop for TaskHandle {
    fn drop(&mut self) {
        if self.cancel_on_drop {
            self.cancel_in_passing();
        }
    }
}

/// Cancels the task when dropped, unless it has ended.
struct CancelGuard<'a>(Option<&'a TaskHandle>);

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        if let Some(task) = self.0 {
            task.cancel_in_passing();
        }
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle").field("id", &self.id).finish_non_exhaustive()
    }
}
