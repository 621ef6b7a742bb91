//! The store that outlives the processes, and the connection of one process to it, which ends with a crash.

use super::CrashPoint;
use bowline_proto::task::{Ending, TaskRecord, TaskState};
use bowline_store::{
    ClaimChange, ClaimRequest, DueChange, Expect, Group, Key, Memory, NodeId, Owner, Put, PutError, Record,
    Records, StoreError, Version,
};
use futures_core::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use std::{
    future::pending,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Notify, futures::Notified};

/// The time after which the claims of a dead process have lapsed, in milliseconds.
const LEASE: i64 = 20_000;

/// What outlives the processes of one run.
#[derive(Debug, Default)]
pub(super) struct World {
    memory: Memory,
    seen: Mutex<Seen>,
    changed: Notify,
}

/// What was seen of the task.
#[derive(Debug, Default)]
struct Seen {
    task: Option<String>,
    resumes: bool,
    passed: Vec<CrashPoint>,
}

impl World {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the task, once it exists.
    pub(super) fn task(&self) -> Option<Value> {
        self.seen().task.clone().map(Value::from)
    }

    /// Whether the task fails when the process ends that runs it.
    pub(super) fn task_ends_with_its_process(&self) -> bool {
        let seen = self.seen();
        seen.task.is_some() && !seen.resumes
    }

    /// The points where a process could have crashed so far.
    pub(super) fn passed(&self) -> Vec<CrashPoint> {
        self.seen().passed.clone()
    }

    /// Completes at the next write after this call.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Lets the claims of dead processes lapse.
    pub(super) fn end_leases(&self) {
        self.memory.move_clock(LEASE);
    }

    /// Connects a process, which ends at `crash`.
    pub(super) fn connect(world: &Arc<Self>, crash: Option<CrashPoint>) -> Arc<Connection> {
        Arc::new(Connection {
            world: Arc::clone(world),
            crash,
            has_crashed: AtomicBool::new(false),
            crashed: Arc::new(Notify::new()),
        })
    }
}

/// The connection of one process.
#[derive(Debug)]
pub(super) struct Connection {
    world: Arc<World>,
    crash: Option<CrashPoint>,
    /// The process has crashed: nothing that it still sends arrives, and nothing is answered.
    has_crashed: AtomicBool,
    crashed: Arc<Notify>,
}

impl Connection {
    /// Notified when the process crashes.
    pub(super) fn crashed(&self) -> Arc<Notify> {
        Arc::clone(&self.crashed)
    }

    fn has_crashed(&self) -> bool {
        self.has_crashed.load(Ordering::Acquire)
    }

    /// Notes that the process is at a point. Returns whether it crashes there.
    fn passes(&self, point: CrashPoint) -> bool {
        let crashes = self.crash.as_ref() == Some(&point);
        let mut seen = self.world.seen();
        if !seen.passed.contains(&point) {
            seen.passed.push(point);
        }
        crashes
    }

    /// The process crashes: the caller never gets an answer.
    async fn crash<T>(&self) -> T {
        self.has_crashed.store(true, Ordering::Release);
        self.crashed.notify_one();
        pending().await
    }

    /// Runs an operation of a process that has not crashed.
    async fn alive<T>(&self, operation: BoxFuture<'_, T>) -> T {
        if self.has_crashed() {
            return pending().await;
        }
        let answer = operation.await;
        self.world.changed.notify_waiters();
        answer
    }

    async fn write(&self, put: Put) -> Result<Version, PutError> {
        if self.has_crashed() {
            return pending().await;
        }
        match Write::of(&put) {
            Write::Step(name) => {
                if self.passes(CrashPoint::BeforeRecording(name.clone())) {
                    return self.crash().await;
                }
                let written = self.apply(put).await?;
                if self.passes(CrashPoint::AfterRecording(name)) {
                    return self.crash().await;
                }
                Ok(written)
            }
            Write::Asks(round) => {
                let written = self.apply(put).await?;
                if self.passes(CrashPoint::AfterAsking(round)) {
                    return self.crash().await;
                }
                Ok(written)
            }
            Write::Ends => {
                if self.passes(CrashPoint::BeforeEnd) {
                    return self.crash().await;
                }
                self.apply(put).await
            }
            Write::Creates { id, resumes } => {
                let written = self.apply(put).await?;
                let mut seen = self.world.seen();
                (seen.task, seen.resumes) = (Some(id), resumes);
                Ok(written)
            }
            Write::Other => self.apply(put).await,
        }
    }

    async fn apply(&self, mut put: Put) -> Result<Version, PutError> {
        // The task waits: the time passes at once.
        let mut passes = None;
        if let (Some(_), ClaimChange::Release, DueChange::In(time)) =
            (&put.required_claim, put.claim, put.due)
        {
            passes = i64::try_from(time.as_millis()).ok();
            put.due = DueChange::In(Duration::ZERO);
        }
        let written = self.world.memory.put(put).await;
        if let (Ok(_), Some(passes)) = (&written, passes) {
            self.world.memory.move_clock(passes);
        }
        self.world.changed.notify_waiters();
        written
    }
}

/// What a write does to the task.
enum Write {
    Creates { id: String, resumes: bool },
    Step(String),
    Asks(u32),
    Ends,
    Other,
}

impl Write {
    fn of(put: &Put) -> Self {
        #[derive(Deserialize)]
        struct Step {
            name: String,
        }
        if put.key.as_str().contains("/step/") {
            let step = serde_json::from_slice(&put.value);
            return step.map_or(Self::Other, |Step { name }| Self::Step(name));
        }
        let Ok(record) = TaskRecord::decode(&put.value) else { return Self::Other };
        match (&put.expect, &put.required_claim, &record.state) {
            (Expect::Absent, None, TaskState::Working) => {
                Self::Creates { id: record.id, resumes: record.resumes }
            }
            (_, Some(_), TaskState::Asking) => Self::Asks(record.rounds),
            (_, Some(_), TaskState::Done(Ending::Result { .. } | Ending::Error(_))) => Self::Ends,
            _ => Self::Other,
        }
    }
}

impl Records for Connection {
    fn get<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        // Not `alive`: a read is no change.
        Box::pin(async move {
            if self.has_crashed() { pending().await } else { self.world.memory.get(keys).await }
        })
    }

    fn put(&self, put: Put) -> BoxFuture<'_, Result<Version, PutError>> {
        Box::pin(self.write(put))
    }

    fn remove<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.alive(self.world.memory.remove(keys)))
    }

    fn list<'a>(
        &'a self,
        group: &'a Group,
        after: Option<&'a Key>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            if self.has_crashed() {
                return pending().await;
            }
            // The parts of a task are read before its handler runs.
            if self.world.task().is_some() && self.passes(CrashPoint::Start) {
                return self.crash().await;
            }
            self.world.memory.list(group, after, limit).await
        })
    }

    fn count<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(self.alive(self.world.memory.count(group)))
    }

    fn claim(&self, claim: ClaimRequest) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        // The process that held the task is known to be dead, so nobody waits for it.
        Box::pin(self.alive(self.world.memory.claim(claim.lapsed(true))))
    }

    fn renew(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Vec<(Key, Owner)>, StoreError>> {
        Box::pin(self.alive(self.world.memory.renew(node, lease)))
    }

    fn touch<'a>(&'a self, keys: &'a [Key], ttl: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.alive(self.world.memory.touch(keys, ttl)))
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.alive(self.world.memory.sweep(limit)))
    }
}
