//! Tells waiters and subscribers of changes. The record is read when something is sent.

use super::table::Table;
use crate::scopes;
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
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The same for tasks in memory, where no hint gets lost.
const LOOK_EVERY_IN_MEMORY: Duration = Duration::from_secs(30);

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
    watched: Mutex<HashMap<String, Watched>>,
    /// The tasks that are to be read.
    wanted: Mutex<Wanted>,
}

#[derive(Debug, Default)]
struct Wanted {
    ids: BTreeSet<String>,
    /// The number of the read that is under way, and its tasks.
    reading: Option<(u64, Vec<String>)>,
    /// Whether somebody reads what is wanted.
    has_reader: bool,
}

/// A task that somebody waits for.
#[derive(Debug)]
struct Watched {
    waiting: Vec<Weak<Notify>>,
    /// The number of its last change that this process has heard of.
    changed: u64,
    seen: Option<Seen>,
}

/// What was read last.
#[derive(Clone, Debug)]
struct Seen {
    /// The number of the read. Later changes may be missing.
    began: u64,
    read: Read,
}

impl Watched {
    fn tell(&self) -> Vec<Arc<Notify>> {
        self.waiting.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Watchers {
    fn next_event(&self) -> u64 {
        self.events.fetch_add(1, Ordering::AcqRel) + 1
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<String, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells those who wait for a task that it changed.
    pub(crate) fn tell(&self, id: &str) {
        let mut told = Vec::new();
        if let Some(watched) = self.watched().get_mut(id) {
            watched.changed = self.next_event();
            told = watched.tell();
        }
        for notify in told {
            notify.notify_one();
        }
    }

    /// Hints may have been lost: everybody looks again.
    pub(crate) fn tell_all(&self) {
        let mut told = Vec::new();
        for watched in self.watched().values_mut() {
            watched.changed = self.next_event();
            told.extend(watched.tell());
        }
        for notify in told {
            notify.notify_one();
        }
    }

    /// Takes what was read.
    fn saw(&self, reads: impl Iterator<Item = (String, Read)>, began: u64) {
        let mut told = Vec::new();
        let mut all = self.watched();
        for (id, read) in reads {
            if let Some(watched) = all.get_mut(&id) {
                watched.seen = Some(Seen { began, read });
                told.extend(watched.tell());
            }
        }
        drop(all);
        for notify in told {
            notify.notify_one();
        }
    }
}

impl Table {
    /// Lets tasks be read for those who wait for them, each by a read that begins after an event.
    fn want(self: &Arc<Self>, tasks: Vec<(String, u64)>) {
        let mut wanted = self.watchers.wanted();
        for (id, event) in tasks {
            let is_being_read = wanted
                .reading
                .as_ref()
                .is_some_and(|(began, reading)| *began > event && reading.contains(&id));
            if !is_being_read {
                wanted.ids.insert(id);
            }
        }
        if wanted.ids.is_empty() || std::mem::replace(&mut wanted.has_reader, true) {
            return;
        }
        drop(wanted);
        // Ends when nothing is wanted any more.
        tokio::spawn(Reader { table: Arc::clone(self), is_done: false }.run());
    }
}

/// Reads what is wanted, several tasks at a time and not too often.
struct Reader {
    table: Arc<Table>,
    is_done: bool,
}

impl Reader {
    async fn run(mut self) {
        while let Some((began, ids)) = self.take() {
            let reads = self.table.read_all(&ids).await;
            self.table.watchers.saw(ids.into_iter().zip(reads), began);
            sleep(READ_EVERY).await;
        }
    }

    /// Returns what is to be read now.
    fn take(&mut self) -> Option<(u64, Vec<String>)> {
        let mut wanted = self.table.watchers.wanted();
        let ids: Vec<String> = wanted.ids.iter().take(MAX_READ).cloned().collect();
        for id in &ids {
            wanted.ids.remove(id);
        }
        if ids.is_empty() {
            (wanted.has_reader, wanted.reading, self.is_done) = (false, None, true);
            return None;
        }
        let began = self.table.watchers.next_event();
        wanted.reading = Some((began, ids.clone()));
        Some((began, ids))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // If a read panicked: others must not wait for it for ever.
        if !self.is_done {
            let mut wanted = self.table.watchers.wanted();
            (wanted.has_reader, wanted.reading) = (false, None);
        }
    }
}

/// Waits for changes of tasks, for as long as it lives.
pub(crate) struct Watching {
    table: Arc<Table>,
    ids: Vec<String>,
    notify: Arc<Notify>,
    /// Later changes are news.
    known: u64,
}

impl Watching {
    pub(crate) fn new(table: &Arc<Table>, ids: Vec<String>) -> Self {
        let notify = Arc::new(Notify::new());
        let known = table.watchers.next_event();
        let mut watched = table.watchers.watched();
        for id in &ids {
            let unknown = || Watched { waiting: Vec::new(), changed: known, seen: None };
            watched.entry(id.clone()).or_insert_with(unknown).waiting.push(Arc::downgrade(&notify));
        }
        drop(watched);
        Self { table: Arc::clone(table), ids, notify, known }
    }

    /// Stops to wait for a task.
    pub(crate) fn forget(&mut self, id: &str) {
        self.ids.retain(|known| known != id);
        self.leave(id);
    }

    /// Waits for a change since the last call, or until it is time to look again: hints may get lost. Then returns all the
    /// tasks, as somebody has just read them.
    pub(crate) async fn next(&mut self, at_most: Duration) -> Vec<(String, Read)> {
        let _ = timeout(self.look_every().min(at_most), self.changed()).await;
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

    /// Returns the tasks by reads that began after the last call, and after the last change.
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
                    match &watched.seen {
                        Some(seen) if seen.began > event => reads.push((id.clone(), seen.read.clone())),
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
                        let _ = transition(record, Event::Look, now);
                    }
                }
                return reads;
            }
            table.want(missing);
            notified.await;
        }
    }

    /// The more tasks are waited for, the less often each is read.
    fn look_every(&self) -> Duration {
        if self.table.is_volatile() {
            return LOOK_EVERY_IN_MEMORY;
        }
        let reads = self.table.watchers.watched().len().div_ceil(MAX_READ);
        LOOK_EVERY.max(READ_EVERY.saturating_mul(u32::try_from(reads).unwrap_or(u32::MAX)))
    }

    fn leave(&self, id: &str) {
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

impl Drop for Watching {
    fn drop(&mut self) {
        for id in &self.ids {
            self.leave(id);
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
        let mut watching = Watching::new(&self.table, ids.clone());
        let mut last: HashMap<String, Told> = HashMap::new();
        let mut wait = Duration::ZERO;
        while !ids.is_empty() {
            let mut records = Vec::new();
            let mut ended = Vec::new();
            for (id, read) in watching.next(wait).await {
                match read {
                    Ok(Some(record)) => records.push(record),
                    Ok(None) => ended.push(id),
                    // It is not available or not readable now, which does not mean that it has ended.
                    Err(_) => {}
                }
            }
            wait = until_deadline(records.iter(), self.table.clock.now());
            for record in records {
                let now = told(&record);
                if last.get(&record.id) == Some(&now) {
                    continue;
                }
                let (id, is_terminal) = (record.id.clone(), record.is_terminal());
                let needed = self.table.task_scopes(&record);
                // The tool may have been replaced by one that needs more.
                let is_visible = self.subscriber.check(needed.as_deref()).is_ok();
                if is_visible {
                    // What cannot be read now is told when it can.
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
                watching.forget(&id);
                ids.retain(|known| *known != id);
            }
        }
    }
}
