//! Decides whether a call becomes a task, and creates tasks.

use super::{
    Task, When,
    attempt::Attempt,
    table::{NotApplied, Table, backoff, unavailable},
};
use crate::{
    Ctx,
    dispatch::{Core, RoundEnd},
    random,
    tool::ReadyTool,
};
use bowline_proto::{
    replay::Replay,
    server::require_extension,
    service::{BoxFuture, Call, Outcome, Reply},
    task::{
        Body, Event, MAX_INLINE_BYTES, TaskCaller, TaskJob, TaskRecord, transition, view_2025, view_2026,
    },
};
use bowline_store::{ClaimId, ErrorKind, Group, Key, Put, PutError, StoreError};
use bowline_types::{Id, RawJson, RawMap, Revision, RpcError, TASKS_EXTENSION, TaskMetadata};
use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, sleep},
};

/// How old the count of a caller's tasks may be.
const COUNT_EVERY: Duration = Duration::from_secs(5);

/// How many tasks of one caller are kept, finished ones included.
const MAX_KEPT: u64 = 10_000;

/// How many callers are counted at a time.
const MAX_COUNTS: usize = 10_000;

/// The longest progress token that a task keeps, in bytes. Progress is not sent for longer ones.
const MAX_TOKEN_BYTES: usize = 512;

/// The largest record of a new task, in bytes.
const MAX_RECORD_BYTES: usize = 256 * 1024;

/// How a call of a tool runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// As a plain call.
    Inline,
    /// As a task from the start. The caller asked for this ttl.
    AtOnce(Option<Duration>),
    /// As a plain call that becomes a task if it takes longer.
    After(Duration),
    /// As a plain call that becomes a task when the handler says so.
    Later,
}

impl Admission {
    /// Decides how a call runs. Fails if this caller cannot call the tool that way.
    pub(crate) fn decide(tool: &ReadyTool, call: &Call, has_tasks: bool) -> Result<Self, RpcError> {
        let Some(task) = &tool.task else { return Self::decide_plain(tool, call, has_tasks) };
        match call.client.revision {
            Revision::V2026_07_28 => match require_extension(&call.client, TASKS_EXTENSION) {
                Ok(()) => Ok(match task.when {
                    When::AtOnce => Self::AtOnce(None),
                    When::After(time) => Self::After(time),
                    When::Later => Self::Later,
                }),
                Err(missing) if task.required => Err(missing),
                Err(_) => Ok(Self::Inline),
            },
            Revision::V2025_11_25 => match call.params.task()? {
                Some(asked) => {
                    let asked: TaskMetadata = asked
                        .decode()
                        .map_err(|error| RpcError::invalid_params(format!("`task`: {error}")))?;
                    Ok(Self::AtOnce(asked.ttl.map(Duration::from_millis)))
                }
                None if task.required => Err(RpcError::new(
                    bowline_types::error_code::METHOD_NOT_FOUND,
                    format!("the tool `{}` runs only as a task; call it with `task`", tool.name),
                )),
                None => Ok(Self::Inline),
            },
            _ if task.required => Err(RpcError::invalid_params(format!("unknown tool `{}`", tool.name))),
            _ => Ok(Self::Inline),
        }
    }

    fn decide_plain(tool: &ReadyTool, call: &Call, has_tasks: bool) -> Result<Self, RpcError> {
        // A server that has not declared tasks ignores the member.
        if has_tasks && call.client.revision == Revision::V2025_11_25 && call.params.task()?.is_some() {
            return Err(RpcError::new(
                bowline_types::error_code::METHOD_NOT_FOUND,
                format!("the tool `{}` does not run as a task; call it without `task`", tool.name),
            ));
        }
        Ok(Self::Inline)
    }
}

/// A task that is to be created.
#[derive(Clone, Copy)]
pub(crate) struct Submission<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) tool: &'a ReadyTool,
    pub(crate) task: &'a Task,
    pub(crate) call: &'a Call,
    /// The ttl that the caller asked for.
    pub(crate) ttl: Option<Duration>,
}

impl Table {
    /// Creates a task and returns what its caller gets. `running` is its handler, if it runs already.
    pub(crate) async fn submit(
        self: &Arc<Self>,
        submission: Submission<'_>,
        replay: &Replay,
        running: Option<Handover>,
    ) -> Result<Outcome, RpcError> {
        self.start();
        let call = submission.call;
        self.admit(call.client.principal.as_deref()).await?;
        let (mut record, input) = self.record(&submission, replay)?;
        let length = record.encode().len();
        if length > MAX_RECORD_BYTES {
            return Err(RpcError::invalid_params(format!(
                "the task cannot be kept: it has {length} bytes, more than the {MAX_RECORD_BYTES} allowed; send less"
            )));
        }
        let id = record.id.clone();
        let unknown = || RpcError::internal("the id of the task is invalid");
        let key = self.key(&id).ok_or_else(unknown)?;
        let kept = Self::kept_for(Duration::from_millis(record.ttl_ms));
        if let Some(input) = input {
            record.input = Body::Stored;
            let put =
                Put::create(self.part(&id, "input"), input.as_bytes().to_vec(), kept).group(self.parts(&id));
            self.records().put(put).await.map_err(|error| refused(&error))?;
        }
        let group = self.group(call.client.principal.as_deref());
        // If the caller goes away before it has the id, the task is cancelled.
        let fence = Fence { key: key.clone(), group: group.clone(), record: cancelled(&record), kept };
        let mut guard = CancelOnDrop { table: Arc::clone(self), fence: Some(fence) };
        // Before the write, because the task may end elsewhere before this process knows that it was written.
        self.opened(&record);
        let slot = self.free_slot(running.is_some());
        let owner = (slot.is_some() || running.is_some()).then(|| self.new_owner());
        let _submitting = owner.map(|owner| Submitting::new(self, owner.claim));
        let sent = Instant::now();
        let mut put = Put::create(key, record.encode(), kept).queue(self.queue(&record.queue())).group(group);
        put = match owner {
            Some(owner) => put.take(owner, self.settings.lease),
            None => put.due_in(Duration::ZERO),
        };
        let version = match self.records().put(put).await {
            Ok(version) => version,
            Err(error) => {
                let may_exist =
                    matches!(&error, PutError::Store(error) if error.kind() == ErrorKind::Unknown);
                if !may_exist {
                    guard.fence = None;
                    self.closed(&id);
                }
                return Err(refused(&error));
            }
        };
        let accepted = accepted(&record, call.client.revision, self.clock.now());
        match owner.and_then(|owner| Attempt::new(self, record, version, owner, sent)) {
            Some(attempt) => {
                let round = running.map(|handover| handover(&attempt));
                self.spawn(submission.core, &attempt, round, slot);
            }
            None => self.has_work(),
        }
        #[cfg(feature = "tracing")]
        tracing::info!(task = id, tool = submission.tool.name, "a call became a task");
        guard.fence = None;
        accepted
    }

    /// Builds the record, and returns the arguments if they are too large for it.
    fn record(
        &self,
        submission: &Submission<'_>,
        replay: &Replay,
    ) -> Result<(TaskRecord, Option<RawJson>), RpcError> {
        let Submission { tool, task, call, ttl, .. } = submission;
        let arguments = call.params.arguments()?.unwrap_or_else(RawJson::empty_object);
        let is_large = arguments.as_bytes().len() > MAX_INLINE_BYTES;
        let inline = if is_large { Body::Stored } else { Body::Inline(arguments.compact()) };
        let declared = call.client.raw_capabilities().as_bytes().len();
        if declared > MAX_INLINE_BYTES {
            // Later rounds need them as they were declared.
            return Err(RpcError::invalid_params(format!(
                "a task keeps the capabilities of its client: they have {declared} bytes, more than the {MAX_INLINE_BYTES} allowed"
            )));
        }
        let mut caller = TaskCaller::of(&call.client, call.caller());
        let is_short = |token: &&Id| !matches!(token, Id::String(text) if text.len() > MAX_TOKEN_BYTES);
        caller.progress_token = call.progress_token.as_ref().filter(is_short).cloned();
        caller.meta = own_meta(call);
        let mut record = TaskRecord::new(Self::new_id(), tool.name.clone(), caller, inline, replay);
        record.version = task.version;
        record.resumes = task.resume.unwrap_or_else(|| tool.is_repeatable());
        record.job = tool.job.is_some().then(TaskJob::default);
        let ttl = ttl.or(task.ttl).unwrap_or(self.settings.ttl).min(self.settings.max_ttl);
        record.ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1);
        record.created_at = self.clock.now();
        record.updated_at = record.created_at;
        Ok((record, is_large.then_some(arguments)))
    }

    /// 128 random bits, in characters that a header can carry.
    fn new_id() -> String {
        random::id()
    }

    fn free_slot(&self, is_running: bool) -> Option<OwnedSemaphorePermit> {
        let runs = self.settings.run || is_running;
        if !runs || self.draining.load(Ordering::Acquire) {
            return None;
        }
        Arc::clone(&self.slots).try_acquire_owned().ok()
    }

    /// Refuses more tasks than allowed.
    async fn admit(&self, principal: Option<&str>) -> Result<(), RpcError> {
        let later = |reason: String| {
            let wait = Duration::from_secs(5) + backoff(9).mul_f64(9.0);
            RpcError::unavailable(format!("{reason}; wait for one to end"), wait)
        };
        if self.is_full() {
            return Err(later(format!("this server has {} unfinished tasks", self.settings.open)));
        }
        let limit = self.settings.per_principal;
        let unfinished = self.count(principal, limit).await.map_err(|error| unavailable(&error))?;
        if unfinished >= limit {
            return Err(later(format!("you have {limit} unfinished tasks")));
        }
        Ok(())
    }

    /// Counts the unfinished tasks of a caller, this one included from now on. The count is up to 5 s old.
    async fn count(&self, principal: Option<&str>, limit: usize) -> Result<usize, StoreError> {
        let group = self.group(principal);
        {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((counted, count)) = counts.get_mut(group.as_str())
                && counted.elapsed() < COUNT_EVERY
                && *count < limit
            {
                *count += 1;
                return Ok(*count - 1);
            }
        }
        let kept = self.records().count(&group).await?;
        let mut unfinished = usize::try_from(kept).unwrap_or(usize::MAX);
        if kept >= MAX_KEPT {
            unfinished = usize::MAX;
        } else if unfinished >= limit {
            unfinished = 0;
            let mut after = None;
            loop {
                let page = self.records().list(&group, after.as_ref(), 200).await?;
                let is_open = |row: &bowline_store::Record| {
                    TaskRecord::decode(&row.value).is_ok_and(|mut record| {
                        // What has expired is written as such only when somebody changes it.
                        let _ = transition(&mut record, Event::Refresh, row.read_at.as_millis());
                        !record.is_terminal()
                    })
                };
                unfinished += page.iter().filter(|row| is_open(row)).count();
                after = page.last().map(|row| row.key.clone());
                if page.len() < 200 || unfinished >= limit {
                    break;
                }
            }
        }
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.retain(|_, (counted, _)| counted.elapsed() < COUNT_EVERY);
        if counts.len() < MAX_COUNTS {
            counts.insert(group.as_str().to_owned(), (Instant::now(), unfinished.saturating_add(1)));
        }
        Ok(unfinished)
    }
}

impl Table {
    /// Turns a call that runs into a task. Returns the handler if that is not possible.
    pub(crate) async fn hand_over(
        self: &Arc<Self>,
        submission: Submission<'_>,
        ctx: &Ctx,
        round: BoxFuture<'static, RoundEnd>,
    ) -> Result<Outcome, BoxFuture<'static, RoundEnd>> {
        if self.draining.load(Ordering::Acquire) {
            // A task would be interrupted at once; as a call it has the time that the connection has.
            return Err(round);
        }
        // Shared, so that the handler comes back if the record cannot be written.
        let round = Arc::new(Mutex::new(Some(round)));
        let take = |round: &Mutex<Option<BoxFuture<'static, RoundEnd>>>| {
            round.lock().unwrap_or_else(PoisonError::into_inner).take()
        };
        let (replay, entering, shared) = (ctx.log_of_round().replay(), ctx.clone(), Arc::clone(&round));
        let handover: Handover = Box::new(move |attempt| {
            entering.log_of_round().enter(attempt);
            take(&shared).unwrap_or_else(|| Box::pin(std::future::pending()))
        });
        let name = submission.tool.name.clone();
        match self.submit(submission, &replay, Some(handover)).await {
            Ok(accepted) => Ok(accepted),
            Err(error) => {
                #[cfg(feature = "tracing")]
                tracing::warn!(%error, tool = name, "a call cannot become a task and goes on");
                let _ = name;
                let failed = || -> BoxFuture<'static, RoundEnd> {
                    Box::pin(std::future::ready(RoundEnd::Outcome(Outcome::Failed(error))))
                };
                Err(take(&round).unwrap_or_else(failed))
            }
        }
    }
}

/// Makes the round of a handler that runs already, under its attempt.
pub(crate) type Handover = Box<dyn FnOnce(&Arc<Attempt>) -> BoxFuture<'static, RoundEnd> + Send>;

/// The `_meta` of a call without what the protocol put there.
fn own_meta(call: &Call) -> Option<RawJson> {
    let meta: RawMap = call.params.meta().ok().flatten()?.decode().ok()?;
    let own = |key: &str| key != "progressToken" && !key.starts_with("io.modelcontextprotocol/");
    let kept: RawMap =
        meta.iter().filter(|(key, _)| own(key)).map(|(key, value)| (key.to_owned(), value.clone())).collect();
    let kept = RawJson::of(&kept).ok()?;
    let fits = kept.as_bytes().len() > 2 && kept.as_bytes().len() <= MAX_INLINE_BYTES;
    fits.then_some(kept)
}

fn accepted(record: &TaskRecord, revision: Revision, now: u64) -> Result<Outcome, RpcError> {
    let result = match revision {
        Revision::V2026_07_28 => RawJson::of(&view_2026::created(record, now)),
        _ => RawJson::of(&view_2025::created(record, now)),
    };
    let result = result.map_err(|error| RpcError::internal(error.to_string()))?;
    Ok(Outcome::Complete(Reply::Accepted(result)))
}

fn refused(error: &PutError) -> RpcError {
    match error {
        PutError::Store(error) => unavailable(error),
        error => RpcError::internal(format!("the task cannot be created: {error}")),
    }
}

/// A task as it is when it was cancelled before it began.
fn cancelled(record: &TaskRecord) -> TaskRecord {
    let mut record = record.clone();
    record.input = Body::Inline(RawJson::empty_object());
    // Nothing has started.
    record.job = None;
    // Cannot be refused: the task has just been made.
    let created_at = record.created_at;
    let _ = transition(&mut record, Event::Cancel, created_at);
    record
}

/// What keeps a task from being created by a write that arrives late.
struct Fence {
    key: Key,
    group: Group,
    record: TaskRecord,
    kept: Duration,
}

impl Fence {
    /// Writes a cancelled task in the place of the one that may be created late, or cancels that one. Repeated until one of
    /// both is certain, or the task would have expired.
    async fn write(self, table: &Table) {
        let (id, ttl) = (self.record.id.as_str(), Duration::from_millis(self.record.ttl_ms));
        let started = Instant::now();
        let mut attempt = 0;
        while started.elapsed() < ttl {
            let put =
                Put::create(self.key.clone(), self.record.encode(), self.kept).group(self.group.clone());
            match table.records().put(put).await {
                Ok(_) => break,
                // It was created, or an earlier write of the fence has arrived.
                Err(PutError::Conflict) => match table.cancel(id).await {
                    Ok(_) | Err(NotApplied::Unknown | NotApplied::Refused(_)) => break,
                    Err(NotApplied::Failed(_)) => {}
                },
                Err(PutError::Store(error)) if error.kind() == ErrorKind::Invalid => break,
                Err(_) => {}
            }
            sleep(Duration::from_millis(200) + backoff(attempt)).await;
            attempt += 1;
        }
        // Until now it counts as unfinished, which limits how many fences there are.
        table.closed(id);
    }
}

/// Keeps the claim of a task that is being created, until its attempt is listed.
struct Submitting {
    table: Arc<Table>,
    claim: ClaimId,
}

impl Submitting {
    fn new(table: &Arc<Table>, claim: ClaimId) -> Self {
        table.submitting().push(claim);
        Self { table: Arc::clone(table), claim }
    }
}

impl Drop for Submitting {
    fn drop(&mut self) {
        self.table.submitting().retain(|claim| *claim != self.claim);
    }
}

/// Cancels a task that nobody knows the id of.
struct CancelOnDrop {
    table: Arc<Table>,
    fence: Option<Fence>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(fence) = self.fence.take() else { return };
        let table = Arc::clone(&self.table);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move { fence.write(&table).await });
    }
}

impl Table {
    /// Cancels a task and stops its attempt.
    pub(crate) async fn cancel(&self, id: &str) -> Result<TaskRecord, NotApplied> {
        let applied = self.apply(id, &Event::Cancel).await;
        // Also if it had ended already: elsewhere, or because its time is over.
        if matches!(applied, Ok(_) | Err(NotApplied::Refused(_)))
            && let Some(running) = self.running().get(id)
            && !running.attempt.only_cancels()
        {
            running.attempt.stop();
        }
        applied
    }
}
