//! The tasks of a server in their store: reads, writes, and what is shared by everything that uses them.

use super::{
    Tasks,
    attempt::Attempt,
    clock::Clock,
    watch::{Read, Watchers},
};
use crate::{dispatch::Core, registry::Registry};
use bowline_proto::{
    seal::digest,
    task::{Body, Claim, Due, Effects, Ending, Event, KEPT_AFTER_END, TaskRecord, TaskState, transition},
};
use bowline_store::{
    ClaimId, ErrorKind, Group, Key, Message, NodeId, Owner, Put, PutError, Queue, Reach, Records, StoreError,
    Topic, Version,
};
use bowline_text::hex;
use bowline_types::{RawJson, RpcError};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak, atomic::AtomicBool},
    time::Duration,
};
use tokio::{
    sync::{Notify, Semaphore},
    task::AbortHandle,
    time::{Instant, sleep},
};

/// How often a write that conflicts or stays unconfirmed is repeated before the caller gets an error.
const MAX_TRIES: u32 = 8;

/// How long a client should wait before it asks a store again that is not available.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The tasks of one server.
pub(crate) struct Table {
    pub(crate) settings: Tasks,
    pub(crate) clock: Clock,
    pub(crate) node: NodeId,
    pub(crate) watchers: Watchers,
    /// The free places for attempts.
    pub(crate) slots: Arc<Semaphore>,
    /// Wakes the runner.
    pub(crate) work: Notify,
    /// The attempts of this process, by task.
    pub(crate) attempts: Mutex<HashMap<String, RunningAttempt>>,
    /// Notified when an attempt ends.
    pub(crate) attempt_ended: Notify,
    pub(crate) draining: AtomicBool,
    /// Locked while tasks are claimed whose attempts are not listed yet.
    pub(crate) claiming: tokio::sync::Mutex<()>,
    /// The claims of tasks that are being created here.
    submitting: Mutex<Vec<ClaimId>>,
    /// The unfinished tasks that this process accepted, each with the time at which it has ended in any case.
    open: Mutex<HashMap<String, u64>>,
    /// Since when the store has answered every claim and renewal.
    connected_since: Mutex<Instant>,
    pub(crate) counts: Mutex<HashMap<String, (Instant, usize)>>,
    pub(crate) core: OnceLock<Weak<Core>>,
    pub(crate) loops: Mutex<Vec<AbortHandle>>,
    pub(crate) started: AtomicBool,
    space: String,
    topic: Topic,
}

/// An attempt and the task of the runtime that polls it.
pub(crate) struct RunningAttempt {
    pub(crate) attempt: Arc<Attempt>,
    pub(crate) polled_by: Option<AbortHandle>,
}

/// A task as it was read.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) record: TaskRecord,
    pub(crate) version: Version,
    pub(crate) owner: Option<Owner>,
}

/// Why a task was not changed.
#[derive(Debug)]
pub(crate) enum NotApplied {
    /// There is no such task.
    Unknown,
    /// The event does not apply to the task, which is as here.
    Refused(Box<TaskRecord>),
    /// The store failed.
    Failed(RpcError),
}

impl Table {
    pub(crate) fn new(settings: Tasks, server: &str) -> Arc<Self> {
        let space = settings.space.clone();
        let space = space.unwrap_or_else(|| default_space(server, settings.store.reach()));
        let name = digest(&[b"tasks", space.as_bytes()]);
        let space = hex(&name[..12]);
        let topic = Topic::new(format!("tasks/{space}")).expect("hexadecimal digits are a name");
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(settings.concurrency)),
            settings,
            clock: Clock::new(),
            node: NodeId::random(),
            watchers: Watchers::default(),
            work: Notify::new(),
            attempts: Mutex::default(),
            attempt_ended: Notify::new(),
            draining: AtomicBool::new(false),
            claiming: tokio::sync::Mutex::default(),
            submitting: Mutex::default(),
            open: Mutex::default(),
            connected_since: Mutex::new(Instant::now()),
            counts: Mutex::default(),
            core: OnceLock::new(),
            loops: Mutex::default(),
            started: AtomicBool::new(false),
            space,
            topic,
        })
    }

    pub(crate) fn records(&self) -> &Arc<dyn Records> {
        self.settings.store.records()
    }

    pub(crate) fn core(&self) -> Option<Arc<Core>> {
        self.core.get()?.upgrade()
    }

    pub(crate) fn topic(&self) -> &Topic {
        &self.topic
    }

    /// Whether tasks end with this process.
    pub(crate) fn is_volatile(&self) -> bool {
        self.settings.store.reach() == Reach::Process
    }

    /// The record of a task. `None` if this cannot be the id of one.
    pub(crate) fn key(&self, id: &str) -> Option<Key> {
        let fits = !id.is_empty()
            && id.len() <= 64
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        fits.then(|| Key::new(format!("task/{}/{id}", self.space)).ok()).flatten()
    }

    /// What the parts of a task are listed by.
    pub(crate) fn parts(&self, id: &str) -> Group {
        Group::new(format!("task/{}/{id}", self.space)).expect("an id is a name")
    }

    /// The record of a part of a task.
    pub(crate) fn part(&self, id: &str, part: &str) -> Key {
        Key::new(format!("task/{}/{id}/{part}", self.space)).expect("ids and parts are names")
    }

    /// What the tasks of a caller are listed by.
    pub(crate) fn group(&self, principal: Option<&str>) -> Group {
        let name = match principal {
            Some(principal) => format!("{}/as/{principal}", self.space),
            None => format!("{}/anonymous", self.space),
        };
        self.settings.store.group_of("tasks", &name)
    }

    pub(crate) fn queue(&self, name: &str) -> Queue {
        Queue::new(format!("{}/{name}", self.space)).expect("names of tools are names")
    }

    /// The queues of the tools that this server has.
    pub(crate) fn queues(&self, registry: &Registry) -> Vec<Queue> {
        let snapshot = registry.snapshot();
        let tools = snapshot.tools.as_slice().iter();
        tools
            .filter_map(|tool| Some(self.queue(&format!("{}@{}", tool.name, tool.task.as_ref()?.version))))
            .collect()
    }

    pub(crate) fn running(&self) -> MutexGuard<'_, HashMap<String, RunningAttempt>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a task. A time that has elapsed is applied, but not written.
    pub(crate) async fn read(&self, id: &str) -> Result<Option<Found>, RpcError> {
        let Some(key) = self.key(id) else { return Ok(None) };
        let mut read =
            self.records().get(std::slice::from_ref(&key)).await.map_err(|error| unavailable(&error))?;
        let Some(row) = read.pop().flatten() else { return Ok(None) };
        let (version, owner) = (row.version, row.owner);
        Ok(self.decode(Some(row))?.map(|record| Found { record, version, owner }))
    }

    /// Reads several tasks at once, in their order. One that cannot be read does not hide the others.
    pub(crate) async fn read_all(&self, ids: &[String]) -> Vec<Read> {
        // An id that cannot be one is looked up under a name that no task has.
        let keys: Vec<Key> =
            ids.iter().map(|id| self.key(id).unwrap_or_else(|| self.part("none", "none"))).collect();
        match self.records().get(&keys).await {
            Ok(rows) => rows.into_iter().map(|row| self.decode(row)).collect(),
            // One of them cannot be opened.
            Err(error) if error.kind() == ErrorKind::Invalid && keys.len() > 1 => {
                let mut reads = Vec::with_capacity(keys.len());
                for key in &keys {
                    let read = self.records().get(std::slice::from_ref(key)).await;
                    let row = read.map(|mut rows| rows.pop().flatten());
                    reads.push(row.map_err(|error| unavailable(&error)).and_then(|row| self.decode(row)));
                }
                reads
            }
            Err(error) => {
                let error = unavailable(&error);
                ids.iter().map(|_| Err(error.clone())).collect()
            }
        }
    }

    fn decode(&self, row: Option<bowline_store::Record>) -> Read {
        let Some(row) = row else { return Ok(None) };
        self.clock.observe(row.read_at);
        let mut record =
            TaskRecord::decode(&row.value).map_err(|error| RpcError::internal(error.to_string()))?;
        // Cannot be refused: a refresh changes nothing but the time.
        let _ = transition(&mut record, Event::Refresh, row.read_at.as_millis());
        Ok(Some(record))
    }

    /// Applies an event to a task and writes it. A record that others change meanwhile is read again.
    pub(crate) async fn apply(&self, id: &str, event: &Event) -> Result<TaskRecord, NotApplied> {
        let mut last = None;
        for attempt in 0..MAX_TRIES {
            let found = self.read(id).await.map_err(NotApplied::Failed)?;
            let Some(Found { mut record, version, .. }) = found else { return Err(NotApplied::Unknown) };
            let now = self.clock.now();
            let Ok(effects) = transition(&mut record, event.clone(), now) else {
                return Err(NotApplied::Refused(Box::new(record)));
            };
            if !effects.is_changed {
                return Ok(record);
            }
            let Some(key) = self.key(id) else { return Err(NotApplied::Unknown) };
            match self.records().put(put(key, &record, version, effects)).await {
                Ok(_) => {
                    self.announce(&record, effects);
                    return Ok(record);
                }
                // An unconfirmed write may have arrived: the next read shows it, and events can be repeated.
                Err(PutError::Store(error)) if error.kind() == ErrorKind::Invalid => {
                    return Err(NotApplied::Failed(unavailable(&error)));
                }
                Err(PutError::Store(error)) => last = Some(error),
                // Somebody else was faster.
                Err(_) => {}
            }
            sleep(backoff(attempt)).await;
        }
        let error = last.unwrap_or_else(|| StoreError::unavailable("the record changed again and again"));
        Err(NotApplied::Failed(unavailable(&error)))
    }

    /// Notifies those who wait for a task, and those who run tasks.
    pub(crate) fn announce(&self, record: &TaskRecord, effects: Effects) {
        let is_terminal = record.is_terminal();
        if is_terminal {
            self.closed(&record.id);
            #[cfg(feature = "tracing")]
            tracing::info!(
                task = record.id,
                tool = record.tool,
                status = bowline_proto::task::view_2026::status(record).as_str(),
                "a task ended"
            );
        }
        // Whoever asks for a job waits for the poll, also if it brought nothing new.
        if effects.is_visible || record.job.is_some() {
            self.changed(&record.id);
            self.publish(format!("{}{}", if is_terminal { 'e' } else { 'c' }, record.id));
        }
        if effects.due == Due::In(Duration::ZERO) {
            self.has_work();
        }
    }

    /// Notifies the waiters of this process that a task changed, and stops its attempt if it ended.
    pub(crate) fn changed(&self, id: &str) {
        self.watchers.notify(id);
    }

    /// There is a task to run.
    pub(crate) fn has_work(&self) {
        self.work.notify_one();
        self.publish("w".to_owned());
    }

    fn publish(&self, hint: String) {
        // Nobody else sees a store of this process.
        if !self.is_volatile()
            && let Ok(message) = Message::new(self.topic.clone(), hint)
        {
            self.settings.store.bus().publish(message);
        }
    }

    /// How long the store has answered every claim and renewal.
    pub(crate) fn connected_for(&self) -> Duration {
        self.connected_since.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// The store answers from now on, or did not answer.
    pub(crate) fn mark_reconnected(&self) {
        *self.connected_since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// The claims of tasks that are being created here.
    pub(crate) fn submitting(&self) -> MutexGuard<'_, Vec<ClaimId>> {
        self.submitting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This process accepts a task.
    pub(crate) fn opened(&self, record: &TaskRecord) {
        self.open().insert(record.id.clone(), record.created_at.saturating_add(record.ttl_ms));
    }

    /// A task has ended, here or elsewhere.
    pub(crate) fn closed(&self, id: &str) {
        self.open().remove(id);
    }

    /// Returns whether this process has accepted all the tasks that it may.
    pub(crate) fn is_full(&self) -> bool {
        let (mut open, limit) = (self.open(), self.settings.open);
        if open.len() >= limit {
            // What ended elsewhere while its hint got lost, and what nobody has ended.
            let now = self.clock.now();
            open.retain(|_, end| *end > now);
        }
        open.len() >= limit
    }

    /// Reads a value that may have a record of its own.
    pub(crate) async fn body(&self, id: &str, body: &Body, part: &str) -> Result<Option<RawJson>, RpcError> {
        match body {
            Body::Inline(value) => Ok(Some(value.clone())),
            Body::Stored => {
                let key = self.part(id, part);
                let mut read = self
                    .records()
                    .get(std::slice::from_ref(&key))
                    .await
                    .map_err(|error| unavailable(&error))?;
                let Some(row) = read.pop().flatten() else { return Ok(None) };
                let value = RawJson::parse(row.value);
                value.map(Some).map_err(|error| {
                    RpcError::internal(format!("a part of the task cannot be read: {error}"))
                })
            }
        }
    }

    /// Returns the result of a finished task, if it has one.
    pub(crate) async fn result(&self, record: &TaskRecord) -> Result<Option<RawJson>, RpcError> {
        match &record.state {
            TaskState::Done(Ending::Result { body, .. }) => self.body(&record.id, body, "result").await,
            TaskState::Done(Ending::Error(_))
            | TaskState::Working
            | TaskState::Asking
            | TaskState::Cancelled => Ok(None),
        }
    }

    /// How long a record is kept that has just been created with this ttl.
    pub(crate) fn kept_for(ttl: Duration) -> Duration {
        ttl.saturating_add(KEPT_AFTER_END)
    }
}

/// The write that a transition leads to.
pub(crate) fn put(key: Key, record: &TaskRecord, version: Version, effects: Effects) -> Put {
    let mut put = Put::update(key, record.encode(), version);
    if effects.claim == Claim::Release {
        put = put.release();
    }
    put = match effects.due {
        Due::Keep => put,
        Due::Never => put.never_due(),
        Due::In(time) => put.due_in(time),
    };
    match effects.expires_in {
        Some(time) => put.ttl(time),
        None => put,
    }
}

/// How long to wait before a repetition: longer each time, at random.
pub(crate) fn backoff(attempt: u32) -> Duration {
    let most = 10_u64 << attempt.min(9);
    let random = u64::from_be_bytes(crate::random::bytes());
    Duration::from_millis(random % most.max(1))
}

/// Returns the error that a client gets when the store failed.
pub(crate) fn unavailable(error: &StoreError) -> RpcError {
    #[cfg(feature = "tracing")]
    tracing::warn!(%error, "the store of tasks failed");
    match error.kind() {
        ErrorKind::Invalid => RpcError::internal(error.to_string()),
        _ => RpcError::unavailable("the tasks are not available now; try again", RETRY_AFTER),
    }
}

fn default_space(server: &str, reach: Reach) -> String {
    let mut space = server.to_owned();
    if reach == Reach::Machine {
        for argument in std::env::args_os() {
            space.push('\0');
            space.push_str(&argument.to_string_lossy());
        }
        space.push('\0');
        space.push_str(&std::env::current_dir().unwrap_or_default().to_string_lossy());
    }
    space
}

impl Drop for Table {
    fn drop(&mut self) {
        for running in self.loops.get_mut().unwrap_or_else(PoisonError::into_inner) {
            running.abort();
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("space", &self.space).field("node", &self.node).finish_non_exhaustive()
    }
}
