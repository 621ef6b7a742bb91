//! Who waits for which task: a notification of the server wakes them before their next poll.

use super::TaskState;
use crate::{Listen, Result, client::Client, handlers::OnProgress, shared::lock};
use bowline_types::{Id, SubscriptionFilter};
use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::watch;

/// The tasks that are waited for. A server cannot add any.
#[derive(Default)]
pub(crate) struct Watches {
    tasks: Mutex<HashMap<String, watch::Sender<Option<TaskState>>>>,
    /// The handlers for progress of tasks of 2025-11-25, by token.
    progress: Mutex<HashMap<Id, OnProgress>>,
    next_token: AtomicU64,
}

impl Watches {
    /// Starts to watch a task.
    pub(super) fn watch(self: &Arc<Self>, task_id: &str) -> Watch {
        let mut tasks = lock(&self.tasks);
        let sender = tasks.entry(task_id.to_owned()).or_insert_with(|| watch::Sender::new(None));
        let states = sender.subscribe();
        Watch { watches: Arc::clone(self), task_id: task_id.to_owned(), states }
    }

    /// Passes on the state of a task that the server sent. Returns `false` if nobody waits for the task.
    pub(crate) fn publish(&self, state: TaskState) -> bool {
        match lock(&self.tasks).get(&state.task.task_id) {
            Some(sender) => {
                sender.send_replace(Some(state));
                true
            }
            None => false,
        }
    }

    /// Registers a handler for the progress of a task. Its token is a string, unlike those of requests.
    pub(super) fn keep_progress(self: &Arc<Self>, handler: OnProgress) -> TaskProgress {
        let token = Id::from(format!("task-{}", self.next_token.fetch_add(1, Ordering::Relaxed)));
        lock(&self.progress).insert(token.clone(), handler);
        TaskProgress { watches: Arc::clone(self), token }
    }

    /// Returns the handler for progress with this token.
    pub(crate) fn progress_handler(&self, token: &Id) -> Option<OnProgress> {
        lock(&self.progress).get(token).cloned()
    }
}

impl fmt::Debug for Watches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watches").field("tasks", &lock(&self.tasks).len()).finish_non_exhaustive()
    }
}

/// A registered progress handler. Dropping it ends the registration.
#[derive(Debug)]
pub(crate) struct TaskProgress {
    watches: Arc<Watches>,
    token: Id,
}

impl TaskProgress {
    /// Returns the token.
    pub(super) fn token(&self) -> &Id {
        &self.token
    }
}

impl Drop for TaskProgress {
    fn drop(&mut self) {
        lock(&self.watches.progress).remove(&self.token);
    }
}

/// Receives the states of one task that the server sends on its own.
#[derive(Debug)]
pub(super) struct Watch {
    watches: Arc<Watches>,
    task_id: String,
    states: watch::Receiver<Option<TaskState>>,
}

impl Watch {
    /// Waits for a state that the server sends. The receiver remembers what was seen, so nothing is lost if the future
    /// is dropped.
    pub(super) async fn next(&mut self) -> TaskState {
        loop {
            if self.states.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            if let Some(state) = self.states.borrow_and_update().clone() {
                return state;
            }
        }
    }
}

/// Notices when a server of 2026-07-28 sends the state of a task, from [`Client::watch_tasks`].
#[derive(Debug)]
pub struct TaskWatch {
    watch: Watch,
    /// Shared by all tasks of one subscription. Dropping the last one ends it.
    listen: Arc<Listen>,
}

impl TaskWatch {
    /// Returns the id of the task.
    pub fn task_id(&self) -> &str {
        &self.watch.task_id
    }

    /// Returns whether the subscription is open. Otherwise nothing is noticed any more.
    pub fn is_open(&self) -> bool {
        self.listen.is_open()
    }

    /// Waits until the server sends a state. One that was sent since the last call counts.
    pub async fn changed(&mut self) -> TaskState {
        self.watch.next().await
    }
}

impl Client {
    /// Subscribes to tasks of a server of 2026-07-28, with one subscription for all of them. Returns those whose changes the
    /// server sends; the others have to be polled.
    pub async fn watch_tasks(&self, ids: Vec<String>) -> Result<Vec<TaskWatch>> {
        // Registered before the server may send anything.
        let watches: Vec<Watch> = ids.iter().map(|id| self.core().shared.tasks.watch(id)).collect();
        let listen = Arc::new(self.listen(SubscriptionFilter::new().task_ids(ids)).await?);
        let is_granted =
            |watch: &Watch| listen.granted().task_ids.iter().flatten().any(|id| *id == watch.task_id);
        let granted = watches.into_iter().filter(is_granted);
        Ok(granted.map(|watch| TaskWatch { watch, listen: Arc::clone(&listen) }).collect())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut tasks = lock(&self.watches.tasks);
        // This receiver is still counted.
        if tasks.get(&self.task_id).is_some_and(|sender| sender.receiver_count() <= 1) {
            tasks.remove(&self.task_id);
        }
    }
}
