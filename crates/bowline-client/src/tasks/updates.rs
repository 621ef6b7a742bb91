//! The states of a task as a stream: sent by the server, or polled.

use super::{TaskState, poll::Poller};
use crate::{Error, Listen, Result, client::Client, request::Options, subscriptions};
use bowline_proto::service::BoxFuture;
use bowline_types::{SubscriptionFilter, TASKS_EXTENSION};
use futures_core::Stream;
use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

/// How often a task is polled while the server sends notifications, in case one is lost.
const BACKSTOP: Duration = Duration::from_secs(30);

/// The states of a task, from [`TaskHandle::updates`](crate::TaskHandle::updates).
///
/// The first is the state at the beginning. A state that does not differ from the one before is skipped. The stream
/// ends after the last state of the task, or after an error.
#[must_use = "a stream does nothing until it is polled"]
pub struct TaskUpdates {
    next: Option<BoxFuture<'static, (Result<TaskState>, Progress)>>,
}

/// What the stream keeps between two states.
struct Progress {
    client: Client,
    poller: Poller,
    last: Option<TaskState>,
    /// The subscription that makes the server send the states. Dropping it ends it.
    subscription: Option<Listen>,
}

impl TaskUpdates {
    pub(super) fn new(client: &Client, task_id: &str, known: Option<TaskState>, options: &Options) -> Self {
        let (client, task_id, options) = (client.clone(), task_id.to_owned(), options.clone());
        let first = async move {
            // What is known is the first state; otherwise the poller asks at once.
            let poller = Poller::new(client.core(), &task_id, known.as_ref(), &options);
            let mut progress = Progress { client, poller, last: None, subscription: None };
            if !known.as_ref().is_some_and(TaskState::is_done) {
                progress.subscribe(&task_id).await;
            }
            match known {
                Some(state) => {
                    progress.last = Some(state.clone());
                    (Ok(state), progress)
                }
                None => progress.next().await,
            }
        };
        Self { next: Some(Box::pin(first)) }
    }

    /// Returns the next state, or `None` after the last.
    pub async fn next(&mut self) -> Option<Result<TaskState>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl Progress {
    /// Subscribes to the task, if the server has subscriptions. Without one it is polled.
    async fn subscribe(&mut self, task_id: &str) {
        let core = self.client.core();
        let server = self.client.server();
        if !server.revision.is_modern() || !server.capabilities.has_extension(TASKS_EXTENSION) {
            return;
        }
        let filter = SubscriptionFilter::new().task_ids(vec![task_id.to_owned()]);
        match subscriptions::start(core, filter).await {
            Ok(listen) if listen.granted().task_ids.iter().flatten().any(|granted| granted == task_id) => {
                self.poller.slow_down(BACKSTOP);
                self.subscription = Some(listen);
            }
            Ok(_) => tracing::debug!(task_id, "the server sends no changes of the task; polling"),
            Err(error) => tracing::debug!(%error, task_id, "cannot subscribe to the task; polling"),
        }
    }

    async fn next(mut self) -> (Result<TaskState>, Self) {
        loop {
            let client = self.client.clone();
            match self.poller.next(client.core()).await {
                Ok(state) if self.last.as_ref() == Some(&state) => {}
                Ok(state) => {
                    self.last = Some(state.clone());
                    return (Ok(state), self);
                }
                Err(error) => return (Err(error), self),
            }
        }
    }
}

impl Stream for TaskUpdates {
    type Item = Result<TaskState, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        let Poll::Ready((state, progress)) = next.as_mut().poll(context) else { return Poll::Pending };
        let ended = state.as_ref().map_or(true, TaskState::is_done);
        self.next = if ended { None } else { Some(Box::pin(progress.next())) };
        Poll::Ready(Some(state))
    }
}

impl fmt::Debug for TaskUpdates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskUpdates").field("ended", &self.next.is_none()).finish_non_exhaustive()
    }
}
