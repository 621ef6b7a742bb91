//! Polls one task: at the interval that the server suggests, and again after failures that may pass.

use super::{TaskState, watch::Watch};
use crate::{
    Backoff, Error, Result,
    core::Core,
    request::Options,
    shared::{now, random},
};
use bowline_types::error_code;
use std::time::{Duration, Instant};

/// The bounds of the delay after a failure.
const SHORTEST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// Polls one task.
pub(super) struct Poller {
    task_id: String,
    options: Options,
    watch: Watch,
    backoff: Backoff,
    /// The time of the next `tasks/get`.
    next_get: Instant,
    /// The interval if it is longer than the suggested one, because the server sends notifications.
    at_least: Duration,
    interval: Duration,
}

impl Poller {
    /// Creates a poller. `known` is the state that the server sent last, if any: its interval counts from now.
    pub(super) fn new(core: &Core, task_id: &str, known: Option<&TaskState>, options: &Options) -> Self {
        // A task that has ended, or of which nothing is known, is asked for at once.
        let interval =
            known.filter(|state| !state.is_done()).map_or(Duration::ZERO, TaskState::poll_interval);
        Self {
            task_id: task_id.to_owned(),
            options: Options { progress: None, ..options.clone() },
            watch: core.shared.tasks.watch(task_id),
            backoff: Backoff::new().delays(SHORTEST_RETRY, LONGEST_RETRY),
            next_get: now() + interval,
            at_least: Duration::ZERO,
            interval,
        }
    }

    /// Polls rarely, because the server sends notifications.
    pub(super) fn slow_down(&mut self, at_least: Duration) {
        self.at_least = at_least;
    }

    /// Waits for the next state. Failures that may pass are retried until the client is closed.
    ///
    /// If the future is dropped, the next one continues where it was.
    pub(super) async fn next(&mut self, core: &Core) -> Result<TaskState> {
        loop {
            let state = tokio::select! {
                biased;
                state = self.watch.next() => Ok(state),
                () = tokio::time::sleep_until(self.next_get.into()) => {
                    // If the future is dropped during the request, it must not be repeated at once.
                    self.next_get = now() + self.interval.max(SHORTEST_RETRY);
                    core.get_task(&self.task_id, &self.options).await
                }
            };
            match state {
                Ok(state) => {
                    self.backoff.succeeded();
                    self.interval = state.poll_interval().max(self.at_least);
                    self.next_get = now() + self.interval;
                    return Ok(state);
                }
                Err(error) if passes(&error) && !core.is_closed() => {
                    let delay = self.backoff.next_delay(random()).max(self.interval);
                    tracing::debug!(%error, task = self.task_id, ?delay, "cannot get the state of a task; retrying");
                    self.next_get = now() + delay;
                }
                Err(error) => return Err(error.of_task(&self.task_id)),
            }
        }
    }
}

/// Returns whether a failed `tasks/` request may succeed later.
pub(super) fn passes(error: &Error) -> bool {
    error.is_passing() || error.as_rpc().is_some_and(|error| error.code == error_code::INTERNAL_ERROR)
}
