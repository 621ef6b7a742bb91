//! Notifies waiters and subscribers of changes. The record is read when something is sent.

use super::table::Table;
use crate::{dispatch::catch_panic, scopes};
use bowline_proto::{
    encode,
    scope::Scopes,
    subscribe::{Subscriber, subscription_meta},
    task::{Event, TaskRecord, transition, view_2025, view_2026},
};
use bowline_types::{Id, Meta, Method, ProgressParams, RpcError, TaskStatus};
use bytes::Bytes;
use std::{
    collections::{BTreeSet, HashMap},
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

/// How often a task is read for those who wait for it, without a hint.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The same for tasks in memory, where no hint gets lost.
const POLL_INTERVAL_IN_MEMORY: Duration = Duration::from_secs(30);

/// The time between two reads for waiters: at most 200 per second.
const READ_EVERY: Duration = Duration::from_millis(5);

/// How many tasks are read at a time.
const MAX_READ: usize = 100;

/// What a read of a task found: `None` if it does not exist, an error if that is not known now.
pub(crate) type Read = Result<Option<TaskRecord>, RpcError>;

/// Who waits for changes of which task. All who wait for one task share its reads.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    /// Numbers changes and reads in their order. A clock would not do: two of them may happen at the same time.
    events: AtomicU64,
    watched: Mutex<HashMap<String, WatchedTask>>,
    /// The tasks that are to be read.
    pending: Mutex<PendingReads>,
}

#[derive(Debug, Default)]
struct PendingReads {
    ids: BTreeSet<String>,
    /// The number of the read that is under way, and its tasks.
    reading: Option<(u64, Vec<String>)>,
    /// Whether a `Reader` runs.
    has_reader: bool,
}

/// A task that somebody waits for.
#[derive(Debug)]
struct WatchedTask {
    waiting: Vec<Weak<Notify>>,
    /// The number of its last change that this process knows of.
    changed: u64,
    last_read: Option<LastRead>,
}

/// What was read last.
#[derive(Clone, Debug)]
struct LastRead {
    /// The number of the read. Later changes may be missing.
    number: u64,
    read: Read,
}

impl WatchedTask {
    fn waiters(&self) -> Vec<Arc<Notify>> {
        self.waiting.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Watchers {
    fn next_event(&self) -> u64 {
        self.events.fetch_add(1, Ordering::AcqRel) + 1
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<String, WatchedTask>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending(&self) -> MutexGuard<'_, PendingReads> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies those who wait for a task that it changed.
    pub(crate) fn notify(&self, id: &str) {
        let mut waiters = Vec::new();
        if let Some(watched) = self.watched().get_mut(id) {
            watched.changed = self.next_event();
            waiters = watched.waiters();
        }
        for notify in waiters {
            notify.notify_one();
        }
    }

    /// Hints may have been lost: everybody reads again.
    pub(crate) fn notify_all(&self) {
        let mut waiters = Vec::new();
        for watched in self.watched().values_mut() {
            watched.changed = self.next_event();
            waiters.extend(watched.waiters());
        }
        for notify in waiters {
            notify.notify_one();
        }
    }

    /// Stores the results of a read.
    fn store_reads(&self, reads: impl Iterator<Item = (String, Read)>, number: u64) {
        let mut waiters = Vec::new();
        let mut all = self.watched();
        for (id, read) in reads {
            if let Some(watched) = all.get_mut(&id) {
                watched.last_read = Some(LastRead { number, read });
                waiters.extend(watched.waiters());
            }
        }
        drop(all);
        for notify in waiters {
            notify.notify_one();
        }
    }
}

impl Table {
    /// Requests reads for those who wait, each by a read that starts after an event.
    fn request_reads(self: &Arc<Self>, tasks: Vec<(String, u64)>) {
        let mut pending = self.watchers.pending();
        for (id, event) in tasks {
            let is_being_read = pending
                .reading
                .as_ref()
                .is_some_and(|(number, reading)| *number > event && reading.contains(&id));
            if !is_being_read {
                pending.ids.insert(id);
            }
        }
        if pending.ids.is_empty() || std::mem::replace(&mut pending.has_reader, true) {
            return;
        }
        drop(pending);
        // Ends when no read is pending.
        tokio::spawn(Reader { table: Arc::clone(self), is_done: false }.run());
    }
}

/// Runs the pending reads, several tasks at a time and not too often.
struct Reader {
    table: Arc<Table>,
    is_done: bool,
}

impl Reader {
    async fn run(mut self) {
        while let Some((number, ids)) = self.take() {
            // Whoever waits for a read that panicked must not wait for ever.
            let failed = || vec![Err(RpcError::internal("the task cannot be read")); ids.len()];
            let reads = catch_panic(self.table.read_all(&ids)).await.unwrap_or_else(failed);
            self.table.watchers.store_reads(ids.into_iter().zip(reads), number);
            sleep(READ_EVERY).await;
        }
    }

    /// Returns what is to be read now.
    fn take(&mut self) -> Option<(u64, Vec<String>)> {
        let mut pending = self.table.watchers.pending();
        let ids: Vec<String> = pending.ids.iter().take(MAX_READ).cloned().collect();
        for id in &ids {
            pending.ids.remove(id);
        }
        if ids.is_empty() {
            (pending.has_reader, pending.reading, self.is_done) = (false, None, true);
            return None;
        }
        let number = self.table.watchers.next_event();
        pending.reading = Some((number, ids.clone()));
        Some((number, ids))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // If the runtime that ran it is gone, another one reads.
        if !self.is_done {
            let mut pending = self.table.watchers.pending();
            (pending.has_reader, pending.reading) = (false, None);
        }
    }
}

/// Waits for changes of tasks, for as long as it lives.
pub(crate) struct TaskWatcher {
    table: Arc<Table>,
    ids: Vec<String>,
    notify: Arc<Notify>,
    /// The number of the last event that the caller knows.
    known: u64,
}

impl TaskWatcher {
    pub(crate) fn new(table: &Arc<Table>, ids: Vec<String>) -> Self {
        let notify = Arc::new(Notify::new());
        let known = table.watchers.next_event();
        let mut watched = table.watchers.watched();
        for id in &ids {
            let unknown = || WatchedTask { waiting: Vec::new(), changed: known, last_read: None };
            watched.entry(id.clone()).or_insert_with(unknown).waiting.push(Arc::downgrade(&notify));
        }
        drop(watched);
        Self { table: Arc::clone(table), ids, notify, known }
    }

    /// Stops waiting for a task.
    pub(crate) fn remove(&mut self, id: &str) {
        self.ids.retain(|known| known != id);
        self.unregister(id);
    }

    /// Waits for a change since the last call, or until it is time to read again: hints may get lost. Then returns all the
    /// tasks, as somebody has just read them.
    pub(crate) async fn next(&mut self, at_most: Duration) -> Vec<(String, Read)> {
        let _ = timeout(self.poll_interval().min(at_most), self.changed()).await;
        self.read().await
    }

    /// Completes when one of the tasks has changed.
    async fn changed(&self) {
        loop {
            let notified = self.notify.notified();
            let has_changed = {
                let watched = self.table.watchers.watched();
                self.ids.iter().any(|id| watched.get(id).is_some_and(|watched| watched.changed > self.known))
            };
            if has_changed {
                return;
            }
            notified.await;
        }
    }

    /// Returns the tasks by reads that started after the last call, and after the last change.
    async fn read(&mut self) -> Vec<(String, Read)> {
        let (table, notify) = (Arc::clone(&self.table), Arc::clone(&self.notify));
        loop {
            let notified = notify.notified();
            let mut reads = Vec::with_capacity(self.ids.len());
            let mut missing = Vec::new();
            let now = {
                let watched = table.watchers.watched();
                for id in &self.ids {
                    let Some(watched) = watched.get(id) else { continue };
                    let event = watched.changed.max(self.known);
                    match &watched.last_read {
                        Some(last) if last.number > event => reads.push((id.clone(), last.read.clone())),
                        _ => missing.push((id.clone(), event)),
                    }
                }
                // With the lock, so that no change falls between what was read and this.
                table.watchers.next_event()
            };
            if missing.is_empty() {
                self.known = now;
                let now = table.clock.now();
                for (_, read) in &mut reads {
                    if let Ok(Some(record)) = read {
                        // Its time may have elapsed since it was read.
                        let _ = transition(record, Event::Refresh, now);
                    }
                }
                return reads;
            }
            table.request_reads(missing);
            notified.await;
        }
    }

    /// The more tasks are waited for, the less often each is read.
    fn poll_interval(&self) -> Duration {
        if self.table.is_volatile() {
            return POLL_INTERVAL_IN_MEMORY;
        }
        let reads = self.table.watchers.watched().len().div_ceil(MAX_READ);
        POLL_INTERVAL.max(READ_EVERY.saturating_mul(u32::try_from(reads).unwrap_or(u32::MAX)))
    }

    fn unregister(&self, id: &str) {
        let mut all = self.table.watchers.watched();
        let Some(watched) = all.get_mut(id) else { return };
        watched.waiting.retain(|known| {
            known.strong_count() > 0 && !std::ptr::eq(known.as_ptr(), Arc::as_ptr(&self.notify))
        });
        if watched.waiting.is_empty() {
            all.remove(id);
        }
    }
}

impl Drop for TaskWatcher {
    fn drop(&mut self) {
        for id in &self.ids {
            self.unregister(id);
        }
    }
}

/// The longest wait until the time of one of these tasks elapses.
pub(crate) fn until_deadline<'a>(records: impl Iterator<Item = &'a TaskRecord>, now: u64) -> Duration {
    let left = |record: &TaskRecord| record.created_at.saturating_add(record.ttl_ms).saturating_sub(now);
    let next = records.filter(|record| !record.is_terminal()).map(left).min().unwrap_or(60_000);
    Duration::from_millis(next.saturating_add(1))
}

/// What a follower last sent of a task.
type SentState = (u64, TaskStatus, Option<String>, usize);

fn sent_state(record: &TaskRecord) -> SentState {
    (record.updated_at, view_2026::status(record), record.status.clone(), record.questions.len())
}

/// Sends the changes of tasks to one client.
pub(crate) struct Follower {
    table: Arc<Table>,
    principal: Option<Arc<str>>,
    /// The token that must have the scopes of the tools.
    subscriber: Subscriber,
}

impl Follower {
    pub(crate) fn new(table: &Arc<Table>, principal: Option<Arc<str>>, subscriber: Subscriber) -> Self {
        Self { table: Arc::clone(table), principal, subscriber }
    }

    /// Returns the tasks among these that the client may see. Fails if the store is not available, and if its token lacks the
    /// scopes of one of their tools.
    pub(crate) async fn visible(&self, ids: &[String]) -> Result<Vec<String>, RpcError> {
        let read = self.table.read_all(ids).await;
        let is_callers =
            |record: &TaskRecord| record.caller.principal.as_deref() == self.principal.as_deref();
        let (mut visible, mut needed): (Vec<String>, _) = (Vec::new(), None);
        for (id, read) in ids.iter().zip(read) {
            let record = match read {
                Ok(Some(record)) => record,
                // Whoever listens to nothing because the store did not answer would wait for ever.
                Err(error) if error.retry_after().is_some() => return Err(error),
                Ok(None) | Err(_) => continue,
            };
            if !is_callers(&record) {
                continue;
            }
            if let Some(scopes) = self.table.task_scopes(&record) {
                needed = Some(scopes::union(needed, scopes));
            }
            if !visible.contains(id) {
                visible.push(id.clone());
            }
        }
        self.subscriber.check(needed.as_deref())?;
        Ok(visible)
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
            |_, frame, _| send(frame),
        )
        .await;
    }

    /// Sends `notifications/tasks/status`, and progress if the caller wants it, until the task has ended.
    ///
    /// Each comes with the scopes that the client needs to see it.
    pub(crate) async fn follow_2025(
        self,
        id: String,
        send: impl Fn(Method, Bytes, Option<Arc<Scopes>>) + Send + Sync,
    ) {
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
        send: impl Fn(Method, Bytes, Option<Arc<Scopes>>) + Send + Sync,
    ) {
        let mut watcher = TaskWatcher::new(&self.table, ids.clone());
        let mut last: HashMap<String, SentState> = HashMap::new();
        let mut wait = Duration::ZERO;
        while !ids.is_empty() {
            let mut records = Vec::new();
            let mut ended = Vec::new();
            for (id, read) in watcher.next(wait).await {
                match read {
                    Ok(Some(record)) => records.push(record),
                    Ok(None) => ended.push(id),
                    // It is not available or not readable now, which does not mean that it has ended.
                    Err(_) => {}
                }
            }
            wait = until_deadline(records.iter(), self.table.clock.now());
            for record in records {
                let now = sent_state(&record);
                if last.get(&record.id) == Some(&now) {
                    continue;
                }
                let (id, is_terminal) = (record.id.clone(), record.is_terminal());
                let needed = self.table.task_scopes(&record);
                // The tool may have been replaced by one that needs more.
                let is_visible = self.subscriber.check(needed.as_deref()).is_ok();
                if is_visible {
                    // What cannot be read now is sent when it can.
                    let Some(frames) = pin!(write(record)).await else { continue };
                    for (method, frame) in frames {
                        send(method, frame, needed.clone());
                    }
                }
                if is_terminal || !is_visible {
                    ended.push(id.clone());
                }
                last.insert(id, now);
            }
            for id in ended {
                watcher.remove(&id);
                ids.retain(|known| *known != id);
            }
        }
    }
}
