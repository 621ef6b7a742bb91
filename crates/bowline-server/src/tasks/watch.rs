//! Tells waiters and subscribers of changes. The record is read when something is sent.

use super::table::Table;
use bowline_proto::{
    encode,
    subscribe::subscription_meta,
    task::{TaskRecord, view_2025, view_2026},
};
use bowline_types::{Id, Meta, Method, ProgressParams, TaskStatus};
use bytes::Bytes;
use std::{
    collections::HashMap,
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::{sync::Notify, time::timeout};

/// Who waits for changes of which task.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Mutex<HashMap<String, Vec<Weak<Notify>>>>);

impl Watchers {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Weak<Notify>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells those who wait for a task that it changed.
    pub(crate) fn tell(&self, id: &str) {
        let waiting: Vec<_> = self.lock().get(id).into_iter().flatten().filter_map(Weak::upgrade).collect();
        for notify in waiting {
            notify.notify_one();
        }
    }

    /// Hints may have been lost: everybody looks again.
    pub(crate) fn tell_all(&self) {
        let waiting: Vec<_> = self.lock().values().flatten().filter_map(Weak::upgrade).collect();
        for notify in waiting {
            notify.notify_one();
        }
    }
}

/// Waits for changes of tasks, for as long as it lives.
pub(crate) struct Watching {
    table: Arc<Table>,
    ids: Vec<String>,
    notify: Arc<Notify>,
}

impl Watching {
    pub(crate) fn new(table: &Arc<Table>, ids: Vec<String>) -> Self {
        let notify = Arc::new(Notify::new());
        let mut watchers = table.watchers.lock();
        for id in &ids {
            watchers.entry(id.clone()).or_default().push(Arc::downgrade(&notify));
        }
        drop(watchers);
        Self { table: Arc::clone(table), ids, notify }
    }

    /// Completes at a change since the last call, or when it is time to look again: hints may get lost.
    pub(crate) async fn changed(&self, at_most: Duration) {
        let look_again =
            if self.table.is_volatile() { Duration::from_secs(30) } else { Duration::from_secs(1) };
        let _ = timeout(look_again.min(at_most), self.notify.notified()).await;
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut watchers = self.table.watchers.lock();
        for id in &self.ids {
            let Some(waiting) = watchers.get_mut(id) else { continue };
            waiting.retain(|known| {
                known.strong_count() > 0 && !std::ptr::eq(known.as_ptr(), Arc::as_ptr(&self.notify))
            });
            if waiting.is_empty() {
                watchers.remove(id);
            }
        }
    }
}

/// The longest wait until the time of one of these tasks elapses.
pub(crate) fn until_deadline<'a>(records: impl Iterator<Item = &'a TaskRecord>, now: u64) -> Duration {
    let left = |record: &TaskRecord| record.created_at.saturating_add(record.ttl_ms).saturating_sub(now);
    let next = records.filter(|record| !record.is_terminal()).map(left).min().unwrap_or(60_000);
    Duration::from_millis(next.saturating_add(1))
}

/// What a follower last told of a task.
type Told = (u64, TaskStatus, Option<String>, usize);

fn told(record: &TaskRecord) -> Told {
    (record.updated_at, view_2026::status(record), record.status.clone(), record.questions.len())
}

/// Sends the changes of tasks to one client.
pub(crate) struct Follower {
    table: Arc<Table>,
    principal: Option<Arc<str>>,
}

impl Follower {
    pub(crate) fn new(table: &Arc<Table>, principal: Option<Arc<str>>) -> Self {
        Self { table: Arc::clone(table), principal }
    }

    /// Returns the tasks among these that the client may see.
    pub(crate) async fn visible(&self, ids: &[String]) -> Vec<String> {
        let read = self.table.read_all(ids).await.unwrap_or_default();
        let is_callers =
            |record: &TaskRecord| record.caller.principal.as_deref() == self.principal.as_deref();
        let mut visible: Vec<String> = Vec::new();
        for (id, read) in ids.iter().zip(read) {
            if read.as_ref().is_some_and(is_callers) && !visible.contains(id) {
                visible.push(id.clone());
            }
        }
        visible
    }

    /// Sends `notifications/tasks` for the changes of these tasks, at first for all of them, until all have ended. They belong to
    /// the subscription `subscription`.
    pub(crate) async fn follow_2026(
        self,
        ids: Vec<String>,
        subscription: Id,
        send: impl Fn(Bytes) + Send + Sync,
    ) {
        let meta: Option<Meta> = serde_json::from_str(&subscription_meta(&subscription)).ok();
        self.follow(
            ids,
            |record| {
                let meta = meta.clone();
                let table = Arc::clone(&self.table);
                async move {
                    let result = table.result(&record).await.ok()?;
                    let mut task = view_2026::notification(&record, result, table.clock.now());
                    task.meta = meta;
                    Some(vec![(Method::TaskChanged, encode::notify(Method::TaskChanged, &task))])
                }
            },
            |_, frame| send(frame),
        )
        .await;
    }

    /// Sends `notifications/tasks/status`, and progress if the caller wants it, until the task has ended.
    pub(crate) async fn follow_2025(self, id: String, send: impl Fn(Method, Bytes) + Send + Sync) {
        self.follow(
            vec![id],
            |record| {
                let now = self.table.clock.now();
                let mut frames = vec![(
                    Method::TaskStatus,
                    encode::notify(Method::TaskStatus, &view_2025::task(&record, now)),
                )];
                if let (Some(token), Some(progress)) = (&record.caller.progress_token, &record.progress)
                    && !record.is_terminal()
                {
                    let mut params = ProgressParams::new(token.clone(), progress.progress);
                    params.total = progress.total;
                    params.message.clone_from(&record.status);
                    params.meta = Some(view_2025::related(&record.id, None));
                    frames.push((Method::Progress, encode::notify(Method::Progress, &params)));
                }
                async move { Some(frames) }
            },
            send,
        )
        .await;
    }

    async fn follow<F: Future<Output = Option<Vec<(Method, Bytes)>>> + Send>(
        &self,
        mut ids: Vec<String>,
        write: impl Fn(TaskRecord) -> F + Send + Sync,
        send: impl Fn(Method, Bytes) + Send + Sync,
    ) {
        let watching = Watching::new(&self.table, ids.clone());
        let mut last: HashMap<String, Told> = HashMap::new();
        while !ids.is_empty() {
            let mut records = Vec::new();
            let mut ended = Vec::new();
            // If the store is not available, it looks again when it is time to.
            for (id, read) in ids.iter().zip(self.table.read_all(&ids).await.unwrap_or_default()) {
                match read {
                    Some(record) => records.push(record),
                    None => ended.push(id.clone()),
                }
            }
            let wait = until_deadline(records.iter(), self.table.clock.now());
            for record in records {
                let now = told(&record);
                if last.get(&record.id) == Some(&now) {
                    continue;
                }
                let (id, is_terminal) = (record.id.clone(), record.is_terminal());
                let frames = pin!(write(record)).await;
                for (method, frame) in frames.into_iter().flatten() {
                    send(method, frame);
                }
                if is_terminal {
                    ended.push(id.clone());
                }
                last.insert(id, now);
            }
            ids.retain(|id| !ended.contains(id));
            if !ids.is_empty() {
                watching.changed(wait).await;
            }
        }
    }
}
