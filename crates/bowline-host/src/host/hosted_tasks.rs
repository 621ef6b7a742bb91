//! Calls that the host runs as tasks, because their servers made no tasks of them: those of this process, their limits, and their
//! claims in the store.

use super::{Inner, hosted_records::LEASE, task_records::TaskRecords, tasks::Tasks};
use bowline_proto::caller::user_of;
use bowline_proto::service::ClientView;
use bowline_store::{BusEvent, Key, NodeId};
use bowline_types::RpcError;
use futures_util::StreamExt as _;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, interval, sleep, timeout},
};

/// How many calls run as tasks in this process, in total and for one user. All callers without a user are one.
const MAX_RUNNING: usize = 1000;
const MAX_PER_USER: usize = 100;
/// How often the claims of this process are renewed.
const RENEWED_EVERY: Duration = Duration::from_secs(5);
/// How long the end of the host waits until its tasks are recorded as failed.
const STOPS_WITHIN: Duration = Duration::from_secs(3);
/// How often a task of another process is looked at by those who wait for its change.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(1);

/// The calls that this process runs as tasks.
#[derive(Debug)]
pub(super) struct HostedTasks {
    pub(super) node: NodeId,
    /// How long tasks may take, unless their callers wish otherwise.
    pub(super) ttl: Duration,
    /// Whether other processes may use the store.
    is_shared: bool,
    running: Arc<Mutex<HashMap<String, Arc<Running>>>>,
    is_stopping: AtomicBool,
    /// Notified when a task of this process is over.
    over: Arc<Notify>,
}

/// A call that runs as a task here.
#[derive(Debug)]
struct Running {
    user: Option<Arc<str>>,
    /// Counts changes of the record.
    changes: watch::Sender<u64>,
}

impl HostedTasks {
    pub(super) fn new(ttl: Duration, is_shared: bool) -> Self {
        Self {
            node: NodeId::random(),
            ttl,
            is_shared,
            running: Arc::default(),
            is_stopping: AtomicBool::new(false),
            over: Arc::default(),
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<Running>>> {
        lock(&self.running)
    }

    /// Returns whether the host ends, so that its tasks end, too.
    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Reserves a place for a task, unless there are too many.
    pub(super) fn reserve(&self, key: &str, client: &ClientView) -> Result<Place, RpcError> {
        let full = |reason: String| Err(RpcError::unavailable(format!("{reason}; try again later"), LEASE));
        if self.is_stopping() {
            return full("the gateway is shutting down".to_owned());
        }
        let user = client.principal.as_ref().map(user_of);
        let mut running = self.running();
        let of_user = running.values().filter(|other| other.user == user).count();
        if running.len() >= MAX_RUNNING || of_user >= MAX_PER_USER {
            return full(format!(
                "{} calls run as tasks here, {of_user} of them for this caller; at most {MAX_RUNNING} and {MAX_PER_USER} are allowed",
                running.len()
            ));
        }
        let changes = watch::Sender::new(0);
        let changed = changes.subscribe();
        running.insert(key.to_owned(), Arc::new(Running { user, changes }));
        let (all, over) = (Arc::downgrade(&self.running), Arc::clone(&self.over));
        Ok(Place { all, over, key: key.to_owned(), changed })
    }

    /// Tells whoever runs or waits for a task here that its record has changed.
    pub(super) fn signal(&self, key: &str) {
        if let Some(running) = self.running().get(key) {
            running.changes.send_modify(|count| *count += 1);
        }
    }

    /// Returns the changes of a task that runs here.
    pub(super) fn changes(&self, key: &Key) -> Changes {
        Changes(self.running().get(key.as_str()).map(|running| running.changes.subscribe()))
    }

    /// Ends all tasks of this process and waits until their records say so.
    pub(super) async fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        let stopped = async {
            loop {
                let over = self.over.notified();
                let keys: Vec<String> = self.running().keys().cloned().collect();
                if keys.is_empty() {
                    return;
                }
                for key in &keys {
                    self.signal(key);
                }
                over.await;
            }
        };
        let _ = timeout(STOPS_WITHIN, stopped).await;
    }

    /// Ends the tasks of processes that have died, and keeps those of this one, as long as the host exists.
    pub(super) fn keep(inner: &Arc<Inner>, tasks: &Tasks) {
        // Nobody else runs tasks of a store that this process has for itself.
        if !inner.hosted_tasks.is_shared {
            return;
        }
        let (weak, mut hints) = (Arc::downgrade(inner), inner.task_records.0.bus().subscribe());
        tasks.spawn(async move {
            let mut ticks = interval(RENEWED_EVERY);
            // Since when the store has answered without interruption.
            let mut available_since = None;
            let mut hears = true;
            loop {
                tokio::select! {
                    heard = hints.next(), if hears => {
                        let Some(inner) = weak.upgrade() else { return };
                        match heard {
                            Some(BusEvent::Message(message)) => {
                                if let Some(key) = TaskRecords::hosted_hint(&message) {
                                    inner.hosted_tasks.signal(key);
                                }
                            }
                            Some(_) => inner.hosted_tasks.signal_all(),
                            None => hears = false,
                        }
                    }
                    _ = ticks.tick() => {
                        let Some(inner) = weak.upgrade() else { return };
                        if inner.tend_hosted(available_since).await.is_ok() {
                            available_since.get_or_insert_with(Instant::now);
                        } else {
                            available_since = None;
                        }
                    }
                }
            }
        });
    }

    fn signal_all(&self) {
        for running in self.running().values() {
            running.changes.send_modify(|count| *count += 1);
        }
    }
}

impl Inner {
    async fn tend_hosted(&self, available_since: Option<Instant>) -> Result<(), RpcError> {
        let HostedTasks { node, .. } = self.hosted_tasks;
        let running: Vec<String> = self.hosted_tasks.running().keys().cloned().collect();
        if !running.is_empty() {
            let held = self.task_records.renew_hosted(node).await?;
            // Whoever runs a task that this process does not hold any more looks why.
            running.iter().filter(|key| !held.contains(*key)).for_each(|key| self.hosted_tasks.signal(key));
        }
        let takes_lapsed = available_since.is_some_and(|since| since.elapsed() >= LEASE);
        self.task_records.end_lapsed(node, takes_lapsed).await
    }
}

/// The place of a task among those of this process, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    all: Weak<Mutex<HashMap<String, Arc<Running>>>>,
    over: Arc<Notify>,
    key: String,
    changed: watch::Receiver<u64>,
}

impl Place {
    /// Completes when the record has changed since the last time.
    pub(super) async fn changed(&mut self) {
        if self.changed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(all) = self.all.upgrade() {
            let removed = lock(&all).remove(&self.key);
            if let Some(removed) = removed {
                removed.changes.send_modify(|count| *count += 1);
            }
        }
        self.over.notify_waiters();
    }
}

/// Changes of a task, for those who wait for it.
#[derive(Debug)]
pub(super) struct Changes(Option<watch::Receiver<u64>>);

impl Changes {
    /// Waits for a change. If another process runs the task, it waits for a moment.
    pub(super) async fn next(&mut self) {
        match &mut self.0 {
            Some(changes) => {
                if timeout(RENEWED_EVERY, changes.changed()).await.is_ok_and(|changed| changed.is_err()) {
                    self.0 = None;
                }
            }
            None => sleep(LOOKED_AT_EVERY).await,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
