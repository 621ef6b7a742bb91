//! The work on a task under one claim.

use super::{
    steps::Steps,
    table::{Table, backoff, put},
};
use crate::dispatch::RoundEnd;
use bowline_proto::{
    replay::Replay,
    service::{BoxFuture, CallNotification, NotificationSink, Outcome, Reply},
    task::{
        Body, Ending, Event, KEPT_AFTER_END, MAX_INLINE_BYTES, Refused, TaskProgress, TaskRecord, transition,
    },
};
use bowline_store::{ClaimId, ErrorKind, Key, Owner, Put, PutError, Version};
use bowline_types::{CallToolResult, RawJson, RpcError};
use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};

/// How often the progress of a task is written at most.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// How many parts of a task are read at a time.
const PARTS_PER_READ: usize = 100;

/// One attempt: a claim of a task, and the handler that runs under it.
pub(crate) struct Attempt {
    table: Arc<Table>,
    key: Key,
    id: String,
    owner: Owner,
    expires: u64,
    /// Whether the task is cancelled, and only the job in the other system has to be cancelled.
    only_cancels: bool,
    /// Locked while it is written, so that writes of one attempt follow each other.
    record: tokio::sync::Mutex<(TaskRecord, Version)>,
    steps: Mutex<Steps>,
    /// From when the lease counts: when the last successful renewal was sent.
    lease_from: Mutex<Instant>,
    renewed: Notify,
    stopped: AtomicBool,
    /// The job was cancelled in the other system, so the task is.
    cancelled_outside: AtomicBool,
    stop: Notify,
    /// What the handler reported last and is not written yet.
    report: Mutex<Report>,
    reported: Notify,
}

#[derive(Debug, Default)]
struct Report {
    status: Option<String>,
    progress: Option<TaskProgress>,
}

/// Why an attempt did not write.
#[derive(Debug)]
pub(crate) enum NotWritten {
    /// The task is no longer this attempt's.
    Lost,
    /// The event does not apply.
    Refused(Refused),
    /// The store refuses the value for good.
    Invalid(String),
}

/// What a round needs to run.
pub(crate) struct Loaded {
    pub(crate) record: TaskRecord,
    pub(crate) input: RawJson,
    pub(crate) replay: Replay,
}

impl Attempt {
    pub(crate) fn new(
        table: &Arc<Table>,
        record: TaskRecord,
        version: Version,
        owner: Owner,
        lease_from: Instant,
    ) -> Option<Arc<Self>> {
        let key = table.key(&record.id)?;
        Some(Arc::new(Self {
            table: Arc::clone(table),
            key,
            id: record.id.clone(),
            owner,
            expires: record.created_at.saturating_add(record.ttl_ms),
            only_cancels: record.cancels_outside(),
            record: tokio::sync::Mutex::new((record, version)),
            steps: Mutex::default(),
            lease_from: Mutex::new(lease_from),
            renewed: Notify::new(),
            stopped: AtomicBool::new(false),
            cancelled_outside: AtomicBool::new(false),
            stop: Notify::new(),
            report: Mutex::default(),
            reported: Notify::new(),
        }))
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    pub(crate) fn claim(&self) -> ClaimId {
        self.owner.claim
    }

    pub(crate) fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the task has ended, and only the other system that did its work has to cancel it.
    pub(crate) fn only_cancels(&self) -> bool {
        self.only_cancels
    }

    /// The other system has cancelled the work: however the handler ends, the task is cancelled.
    pub(crate) fn cancelled_outside(&self) {
        self.cancelled_outside.store(true, Ordering::Release);
    }

    /// How long parts of the task are kept.
    pub(crate) fn kept_for(&self) -> Duration {
        let left = self.expires.saturating_sub(self.table.clock.now());
        Duration::from_millis(left).saturating_add(KEPT_AFTER_END)
    }

    /// From when the lease counts.
    pub(crate) fn lease_from(&self) -> Instant {
        *self.lease_from.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The claim was renewed by a request that was sent at `sent`.
    pub(crate) fn renew(&self, sent: Instant) {
        *self.lease_from.lock().unwrap_or_else(PoisonError::into_inner) = sent;
        self.renewed.notify_waiters();
    }

    /// Waits until the claim is certain, or lost: no new work starts while the lease may have ended. The caller then checks
    /// whether the attempt is stopped.
    pub(crate) async fn await_lease(&self) {
        loop {
            let renewed = self.renewed.notified();
            if self.is_stopped() || self.lease_from().elapsed() < self.table.settings.lease * 2 / 3 {
                return;
            }
            renewed.await;
        }
    }

    /// The task is no longer this attempt's, or it was cancelled: the handler is dropped.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.stop.notify_waiters();
        // No renewal will come for writes that wait for one.
        self.renewed.notify_waiters();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    async fn stopped(&self) {
        loop {
            let stop = self.stop.notified();
            if self.is_stopped() {
                return;
            }
            stop.await;
        }
    }

    /// Stops the attempt from inside of its handler, which is dropped.
    pub(crate) async fn abandon(&self) {
        self.stop();
        std::future::pending::<()>().await;
    }

    /// Reports where the handler is. Written once per second, or with the next write.
    pub(crate) fn report(&self, status: Option<String>, progress: Option<TaskProgress>) {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        if status.is_some() {
            report.status = status;
        }
        // Progress never goes back, although the handler runs again.
        if let Some(progress) = progress
            && report.progress.as_ref().is_none_or(|known| progress.progress > known.progress)
        {
            report.progress = Some(progress);
        }
        drop(report);
        self.reported.notify_one();
    }

    fn take_report(&self) -> Event {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        // The progress stays, to compare later reports with it.
        Event::Report { status: report.status.take(), progress: report.progress.clone() }
    }

    /// Applies an event to the record, together with what was reported.
    pub(crate) async fn write(&self, event: &Event) -> Result<(), NotWritten> {
        let mut current = self.record.lock().await;
        let report = self.take_report();
        let mut tries = 0;
        loop {
            self.await_lease().await;
            if self.is_stopped() {
                return Err(NotWritten::Lost);
            }
            let (mut record, version) = current.clone();
            let now = self.table.clock.now();
            let reported =
                transition(&mut record, report.clone(), now).is_ok_and(|effects| effects.is_visible);
            let mut effects = transition(&mut record, event.clone(), now).map_err(NotWritten::Refused)?;
            effects.is_visible |= reported;
            if !effects.is_changed && !reported {
                return Ok(());
            }
            let mut write =
                put(self.key.clone(), &record, version, effects).under_claim(self.key.clone(), self.claim());
            if matches!(event, Event::Refresh) {
                write = write.relaxed();
            }
            match self.table.records().put(write).await {
                Ok(version) => {
                    self.table.announce(&record, effects);
                    *current = (record, version);
                    return Ok(());
                }
                Err(PutError::Conflict | PutError::ClaimLost) => match self.table.read(&self.id).await {
                    // Somebody answered a question or the like; the claim is still ours.
                    Ok(Some(found)) if found.owner == Some(self.owner) => {
                        *current = (found.record, found.version);
                    }
                    Ok(_) => {
                        self.stop();
                        return Err(NotWritten::Lost);
                    }
                    Err(_) => {}
                },
                Err(PutError::Store(error)) if error.kind() == ErrorKind::Invalid => {
                    return Err(NotWritten::Invalid(error.to_string()));
                }
                // Not available, or not confirmed: repeated until there is a definite answer.
                Err(_) => {}
            }
            sleep(backoff(tries)).await;
            tries += 1;
        }
    }

    /// Reads the parts of the task: arguments, answers and steps.
    pub(crate) async fn load(&self) -> Result<Loaded, RpcError> {
        let (group, prefix) = (self.table.parts(&self.id), format!("{}/", self.key.as_str()));
        let mut parts: HashMap<String, RawJson> = HashMap::new();
        let (mut after, mut tries) = (None, 0);
        loop {
            let page = match self.table.records().list(&group, after.as_ref(), PARTS_PER_READ).await {
                Ok(page) => page,
                Err(error) if error.kind() == ErrorKind::Invalid => {
                    return Err(RpcError::internal(error.to_string()));
                }
                Err(_) => {
                    sleep(backoff(tries)).await;
                    tries += 1;
                    continue;
                }
            };
            let is_last = page.len() < PARTS_PER_READ;
            after = page.last().map(|row| row.key.clone());
            for row in page {
                let Some(part) = row.key.as_str().strip_prefix(&prefix) else { continue };
                if part.starts_with("step/") {
                    self.steps().load(&row.value);
                } else if let Ok(value) = RawJson::parse(row.value.clone()) {
                    parts.insert(part.to_owned(), value);
                }
            }
            if is_last {
                break;
            }
        }
        let record = self.record.lock().await.0.clone();
        let input = match &record.input {
            Body::Inline(input) => Some(input.clone()),
            Body::Stored => parts.get("input").cloned(),
        };
        let input =
            input.ok_or_else(|| RpcError::internal("the arguments of the task are missing in the store"))?;
        let replay = record.replay(|key| parts.get(&format!("answer/{key}")).cloned());
        Ok(Loaded { record, input, replay })
    }

    /// Polls the handler to the end of its round and writes how it ended.
    pub(crate) async fn run(self: Arc<Self>, round: BoxFuture<'static, RoundEnd>) {
        let limit = self.table.settings.attempt_time;
        let reporting = async {
            loop {
                self.reported.notified().await;
                let _ = self.write(&Event::Refresh).await;
                sleep(REPORT_EVERY).await;
            }
        };
        let end = tokio::select! {
            biased;
            () = self.stopped() => return,
            end = timeout(limit, round) => end.unwrap_or_else(|_| {
                let reason = format!("the task ran longer than {limit:?} without a question or a pause");
                RoundEnd::Outcome(Outcome::Failed(RpcError::internal(reason)))
            }),
            () = reporting => return,
        };
        let event = match end {
            RoundEnd::Written => return,
            RoundEnd::Outcome(_) if self.cancelled_outside.load(Ordering::Acquire) => {
                Ok(Event::CancelledOutside)
            }
            RoundEnd::Outcome(Outcome::Complete(Reply::Tool(result))) => self.result(&result).await,
            RoundEnd::Outcome(Outcome::NeedsInput(asked)) => {
                let kept = kept(&asked.replay);
                Ok(Event::Ask { questions: asked.questions, kept })
            }
            RoundEnd::Outcome(Outcome::Failed(error)) => Ok(Event::Finish(Ending::Error(error))),
            RoundEnd::Outcome(Outcome::Complete(_)) => Err(RpcError::internal(
                "the handler of a task returned something else than the result of a tool",
            )),
            RoundEnd::Sleeps { time, replay } => Ok(Event::Sleep { time, kept: kept(&replay) }),
            // It is in the background already; `ctx.task` does not end the round of a task.
            RoundEnd::Detaches(replay) => Ok(Event::Sleep { time: Duration::ZERO, kept: kept(&replay) }),
        };
        let event = event.unwrap_or_else(|error| Event::Finish(Ending::Error(error)));
        match self.write(&event).await {
            Ok(()) | Err(NotWritten::Lost | NotWritten::Refused(Refused::Ended | Refused::NotAsking)) => {}
            Err(NotWritten::Refused(refused)) => self.fail(refused.to_string()).await,
            Err(NotWritten::Invalid(reason)) => self.fail(reason).await,
        }
    }

    /// Ends the task with an error of the server.
    pub(crate) async fn fail(&self, reason: String) {
        // What ended meanwhile stays as it is.
        let _ = self.write(&Event::Finish(Ending::Error(RpcError::internal(reason)))).await;
    }

    async fn result(&self, result: &CallToolResult) -> Result<Event, RpcError> {
        let is_error = result.is_error == Some(true);
        let value = RawJson::of(result).map_err(|error| RpcError::internal(error.to_string()))?;
        let (length, limit) = (value.as_bytes().len(), self.table.settings.result_bytes);
        if length > limit {
            return Err(RpcError::internal(format!(
                "the result of the task has {length} bytes, more than the {limit} allowed; return a `resource_link` to it instead"
            )));
        }
        if length <= MAX_INLINE_BYTES {
            return Ok(Event::Finish(Ending::Result { is_error, body: Body::Inline(value) }));
        }
        let is_error = self.store_result(value, is_error).await?;
        Ok(Event::Finish(Ending::Result { is_error, body: Body::Stored }))
    }

    /// Writes a large result before the record that refers to it. Returns whether the result is marked as an error.
    async fn store_result(&self, value: RawJson, is_error: bool) -> Result<bool, RpcError> {
        let key = self.table.part(&self.id, "result");
        let mut tries = 0;
        loop {
            self.await_lease().await;
            if self.is_stopped() {
                return Err(RpcError::internal("the task runs elsewhere"));
            }
            let put = Put::create(key.clone(), value.as_bytes().to_vec(), self.kept_for())
                .under_claim(self.key.clone(), self.claim())
                .group(self.table.parts(&self.id));
            match self.table.records().put(put).await {
                Ok(_) => return Ok(is_error),
                // An attempt that died before its last write, or an earlier try, has left a result: that one counts.
                Err(PutError::Conflict) => {
                    match self.table.body(&self.id, &Body::Stored, "result").await {
                        Ok(Some(known)) => {
                            let known = known.decode::<CallToolResult>();
                            return Ok(known.is_ok_and(|known| known.is_error == Some(true)));
                        }
                        // It cannot be read, now or later.
                        Err(error) if error.retry_after().is_none() => return Err(error),
                        _ => {}
                    }
                }
                Err(PutError::ClaimLost) => {
                    self.stop();
                    return Err(RpcError::internal("the task runs elsewhere"));
                }
                Err(PutError::Store(error)) if error.kind() == ErrorKind::Invalid => {
                    return Err(RpcError::internal(error.to_string()));
                }
                Err(_) => {}
            }
            sleep(backoff(tries)).await;
            tries += 1;
        }
    }
}

fn kept(replay: &Replay) -> Vec<(String, RawJson)> {
    replay.kept_values().map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

/// Takes what a handler sends while it runs. Only progress reaches a client, as the status of the task.
impl NotificationSink for Attempt {
    fn emit(&self, notice: CallNotification) {
        if let CallNotification::Progress { progress, total, message } = notice
            && progress.is_finite()
        {
            let total = total.filter(|total| total.is_finite());
            self.report(message, Some(TaskProgress { progress, total }));
        }
    }

    fn is_cancelled(&self) -> bool {
        self.is_stopped()
    }

    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.stopped())
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("id", &self.id).field("owner", &self.owner).finish_non_exhaustive()
    }
}
