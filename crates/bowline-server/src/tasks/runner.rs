//! Claims due tasks, runs them, renews the claims, and removes what has expired.

use super::{
    attempt::Attempt,
    table::{RunningAttempt, Table, backoff, put},
};
use crate::dispatch::{Core, RoundEnd};
use bowline_proto::{
    service::{BoxFuture, Outcome},
    task::{Ending, Event, TaskRecord, transition},
};
use bowline_store::{BusEvent, ClaimRequest, Key, Owner, Put, Record};
use bowline_types::RpcError;
use futures_util::{StreamExt, future::join_all};
use std::{
    sync::{Arc, PoisonError, Weak, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, sleep, timeout},
};

/// A task whose process died this often is not run again.
const MAX_LAPSES: u32 = 3;

/// How many claims lapse at a time that nobody works on.
const MAX_ORPHANS: usize = 100;

/// How often a process with free places polls for work without a hint.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

impl Table {
    /// Starts to run tasks, if that has not happened. Does nothing outside of a runtime.
    pub(crate) fn start(self: &Arc<Self>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.started.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        let table = Arc::downgrade(self);
        if self.settings.run {
            loops.push(runtime.spawn(claim_loop(Weak::clone(&table))).abort_handle());
            loops
                .push(runtime.spawn(renew_loop(Weak::clone(&table), self.settings.lease / 3)).abort_handle());
        }
        if !self.is_volatile() {
            loops.push(runtime.spawn(listen_loop(Weak::clone(&table))).abort_handle());
        }
        loops.push(runtime.spawn(sweep_loop(table)).abort_handle());
    }

    /// Starts to run tasks that an earlier process has left, if the store outlives the process.
    pub(crate) fn start_if_durable(self: &Arc<Self>) {
        if !self.is_volatile() {
            self.start();
        }
    }

    /// Claims due tasks for the free places, and starts them.
    async fn claim(self: &Arc<Self>, core: &Arc<Core>, lapsed: bool) -> Result<(), ()> {
        let free = self.slots.available_permits();
        if free == 0 || self.draining.load(Ordering::Acquire) {
            return Ok(());
        }
        let queues = self.queues(&core.registry);
        if queues.is_empty() {
            return Ok(());
        }
        let _claiming = self.claiming.lock().await;
        let sent = Instant::now();
        let request =
            ClaimRequest::new(self.node, queues).limit(free).lease(self.settings.lease).lapsed(lapsed);
        let rows = self.records().claim(request).await.map_err(drop)?;
        for row in rows {
            // Without a free place the task still starts: it is claimed.
            let slot = Arc::clone(&self.slots).try_acquire_owned().ok();
            self.start_claimed(core, row, sent, slot).await;
        }
        Ok(())
    }

    async fn start_claimed(
        self: &Arc<Self>,
        core: &Arc<Core>,
        row: Record,
        sent: Instant,
        slot: Option<OwnedSemaphorePermit>,
    ) {
        self.clock.observe(row.read_at);
        let Some(owner) = row.owner else { return };
        let mut record = match TaskRecord::decode(&row.value) {
            Ok(record) => record,
            Err(error) => {
                // Perhaps a newer version of this program can read it.
                #[cfg(feature = "tracing")]
                tracing::warn!(%error, key = %row.key, "a task is left alone");
                let _ = error;
                let release =
                    Put::update(row.key, row.value, row.version).release().due_in(self.settings.lease * 4);
                let _ = self.records().put(release).await;
                return;
            }
        };
        if let Ok(effects) = transition(&mut record, Event::Refresh, row.read_at.as_millis())
            && effects.is_changed
        {
            if self.records().put(put(row.key, &record, row.version, effects)).await.is_ok() {
                self.announce(&record, effects);
            }
            return;
        }
        // A job that was started is only polled, whichever process died meanwhile.
        let is_started = record.job.as_ref().is_some_and(|job| job.polled_at > 0);
        let cancels = record.cancels_outside();
        let reason = if record.is_terminal() && !cancels {
            return;
        } else if cancels {
            None
        } else if row.lapses >= MAX_LAPSES && !is_started {
            Some(format!("the task was given up: {} processes ended while they ran it", row.lapses))
        } else if row.lapses > 0 && !record.resumes {
            Some(INTERRUPTED.to_owned())
        } else {
            None
        };
        #[cfg(feature = "tracing")]
        tracing::debug!(task = record.id, lapses = row.lapses, "a task is claimed");
        let Some(attempt) = Attempt::new(self, record, row.version, owner, sent) else { return };
        // What must not run again ends like any attempt: only those that are listed as running have their claim renewed, and
        // other claims need not wait for this write.
        let ended = reason.map(|reason| -> BoxFuture<'static, RoundEnd> {
            Box::pin(std::future::ready(RoundEnd::Outcome(Outcome::Failed(RpcError::internal(reason)))))
        });
        let round = if cancels {
            Some(Box::pin(Arc::clone(core).cancel_job(Arc::clone(&attempt))) as BoxFuture<'static, RoundEnd>)
        } else {
            ended
        };
        self.spawn(core, &attempt, round, slot);
    }

    /// Runs an attempt in a task of the runtime. `running` is a handler that runs already.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        core: &Arc<Core>,
        attempt: &Arc<Attempt>,
        running: Option<BoxFuture<'static, RoundEnd>>,
        slot: Option<OwnedSemaphorePermit>,
    ) {
        let round = running.unwrap_or_else(|| {
            let (core, attempt) = (Arc::clone(core), Arc::clone(attempt));
            Box::pin(async move {
                match attempt.load().await {
                    Ok(loaded) => core.run_round(&attempt, loaded).await,
                    Err(error) => RoundEnd::Outcome(Outcome::Failed(error)),
                }
            })
        });
        let entry = RunningAttempt { attempt: Arc::clone(attempt), polled_by: None };
        let replaced = self.running().insert(attempt.id().to_owned(), entry);
        if let Some(replaced) = replaced {
            // Its claim has lapsed: the task was claimed again.
            replaced.attempt.stop();
        }
        #[cfg(feature = "tracing")]
        tracing::debug!(task = attempt.id(), "a task runs");
        let (table, attempt) = (Arc::clone(self), Arc::clone(attempt));
        let id = attempt.id().to_owned();
        let polled = tokio::spawn(async move {
            // Also removed if the task of the runtime is aborted.
            let _guard = AttemptGuard { table: Arc::clone(&table), attempt: Arc::clone(&attempt), slot };
            attempt.run(round).await;
        });
        if let Some(entry) = self.running().get_mut(&id) {
            entry.polled_by = Some(polled.abort_handle());
        }
    }

    /// Renews all claims of this process, and stops the attempts whose claim it no longer has.
    async fn renew(&self) {
        if self.running().is_empty() {
            return;
        }
        // While tasks are being claimed, some are claimed whose attempts are not listed yet.
        let not_claiming = self.claiming.try_lock().ok();
        let sent = Instant::now();
        let Ok(claims) = self.records().renew(self.node, self.settings.lease).await else {
            // A process without a free place claims nothing and notices an outage only here.
            self.mark_reconnected();
            return;
        };
        for running in self.running().values() {
            let attempt = &running.attempt;
            if attempt.lease_from() > sent {
                // Claimed after the request was sent.
                continue;
            }
            if claims.iter().any(|(key, owner)| key == attempt.key() && owner.claim == attempt.claim()) {
                attempt.renew(sent);
            } else {
                attempt.stop();
            }
        }
        if not_claiming.is_some() && !self.draining.load(Ordering::Acquire) {
            self.lapse_orphans(claims).await;
        }
    }

    /// Lets the claims lapse that nobody works on, such as those of a claim whose reply was lost: they were renewed with the
    /// others. The tasks go on, or fail, as if the process had ended.
    async fn lapse_orphans(&self, claims: Vec<(Key, Owner)>) {
        let mut orphans = claims;
        {
            let (running, submitting) = (self.running(), self.submitting());
            orphans.retain(|(_, owner)| {
                !submitting.contains(&owner.claim)
                    && !running.values().any(|running| running.attempt.claim() == owner.claim)
            });
        }
        orphans.truncate(MAX_ORPHANS);
        if orphans.is_empty() {
            return;
        }
        let keys: Vec<Key> = orphans.iter().map(|(key, _)| key.clone()).collect();
        let Ok(rows) = self.records().get(&keys).await else { return };
        for (row, (key, owner)) in rows.into_iter().zip(orphans) {
            let Some(row) = row.filter(|row| row.owner == Some(owner)) else { continue };
            // The owner stays, so that whoever takes the task counts a lapse. If this fails, the next renewal repeats it.
            let lapse = Put::update(key.clone(), row.value, row.version).due_in(Duration::ZERO);
            let _ = self.records().put(lapse.under_claim(key, owner.claim)).await;
        }
        self.work.notify_one();
    }

    /// Stops to run tasks: those that run get `grace` to end. Then those that may run again are given back, and the others fail.
    pub(crate) async fn stop(self: &Arc<Self>, grace: Duration) {
        self.draining.store(true, Ordering::Release);
        let all_ended = async {
            loop {
                let ended = self.attempt_ended.notified();
                if self.running().is_empty() {
                    return;
                }
                ended.await;
            }
        };
        if timeout(grace, all_ended).await.is_ok() {
            return;
        }
        let running: Vec<_> = self.running().drain().map(|(_, running)| running).collect();
        let give_back = running.into_iter().map(|RunningAttempt { attempt, polled_by }| async move {
            if let Some(polled_by) = polled_by {
                polled_by.abort();
            }
            let give_back = async {
                let resumes = match self.read(attempt.id()).await {
                    Ok(Some(found)) => found.record.resumes,
                    _ => false,
                };
                let event = if resumes {
                    Event::Release
                } else {
                    Event::Finish(Ending::Error(RpcError::internal(INTERRUPTED)))
                };
                let _ = attempt.write(&event).await;
            };
            let _ = timeout(Duration::from_secs(2), give_back).await;
        });
        // At once: the process ends soon, however many there are.
        join_all(give_back).await;
    }

    pub(crate) fn new_owner(&self) -> Owner {
        Owner { node: self.node, claim: bowline_store::ClaimId::random() }
    }
}

/// What a task ends with whose process died or stopped, if it may not run again.
const INTERRUPTED: &str =
    "the task was interrupted: the process that ran it has ended; it may have had effects";

/// Ends an attempt, however it ends.
struct AttemptGuard {
    table: Arc<Table>,
    attempt: Arc<Attempt>,
    slot: Option<OwnedSemaphorePermit>,
}

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        let mut running = self.table.running();
        if running.get(self.attempt.id()).is_some_and(|known| Arc::ptr_eq(&known.attempt, &self.attempt)) {
            running.remove(self.attempt.id());
        }
        drop(running);
        drop(self.slot.take());
        self.table.attempt_ended.notify_waiters();
        self.table.work.notify_one();
    }
}

async fn claim_loop(table: Weak<Table>) {
    if let Some(table) = table.upgrade() {
        table.mark_reconnected();
    }
    loop {
        let Some(strong) = table.upgrade() else { return };
        let Some(core) = strong.core() else { return };
        // Rows whose owner died are taken only after a whole lease of connection: after an outage living owners renew first.
        let lapsed = strong.connected_for() >= strong.settings.lease;
        if strong.claim(&core, lapsed).await.is_err() {
            strong.mark_reconnected();
        }
        drop(core);
        let jitter = backoff(9).mul_f64(0.1);
        let next_poll = (POLL_INTERVAL + jitter).min(strong.settings.lease);
        let _ = timeout(next_poll, strong.work.notified()).await;
    }
}

async fn renew_loop(table: Weak<Table>, every: Duration) {
    loop {
        sleep(every).await;
        let Some(table) = table.upgrade() else { return };
        table.renew().await;
    }
}

/// Receives hints of other processes.
async fn listen_loop(table: Weak<Table>) {
    let Some(strong) = table.upgrade() else { return };
    let (mut events, topic) = (strong.settings.store.bus().subscribe(), strong.topic().clone());
    drop(strong);
    while let Some(event) = events.next().await {
        let Some(table) = table.upgrade() else { return };
        match event {
            BusEvent::Message(message) if *message.topic() == topic => {
                let Ok(hint) = std::str::from_utf8(message.hint()) else { continue };
                if let Some(id) = hint.strip_prefix(['c', 'e']) {
                    if hint.starts_with('e') {
                        table.closed(id);
                    }
                    table.changed(id);
                    table.check(id);
                } else {
                    table.work.notify_one();
                }
            }
            BusEvent::Gap => {
                table.watchers.notify_all();
                table.work.notify_one();
            }
            _ => {}
        }
    }
}

impl Table {
    /// Stops the attempt of a task that another process has changed, if the task has ended.
    fn check(self: &Arc<Self>, id: &str) {
        let Some(attempt) = self.running().get(id).map(|running| Arc::clone(&running.attempt)) else {
            return;
        };
        let table = Arc::clone(self);
        tokio::spawn(async move {
            if let Ok(Some(found)) = table.read(attempt.id()).await
                && found.record.is_terminal()
                && !attempt.only_cancels()
            {
                attempt.stop();
            }
        });
    }
}

async fn sweep_loop(table: Weak<Table>) {
    loop {
        // Not all processes at the same time: every 30 to 90 s.
        sleep(Duration::from_secs(30) + backoff(9).mul_f64(11.7)).await;
        let Some(table) = table.upgrade() else { return };
        let _ = table.records().sweep(500).await;
    }
}
