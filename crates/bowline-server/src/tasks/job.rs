//! Tasks whose work another system does: a workflow engine, a CI system, a cluster.

use super::attempt::{Attempt, NotWritten};
use crate::{
    Ctx, Error, IntoOutput, ProgressTotal, ProgressValue, Result,
    dispatch::{Core, RoundEnd, catch_panic},
    tool::Tool,
};
use bowline_proto::{
    service::{BoxFuture, Outcome},
    task::{Event, TaskState},
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::{fmt, future::Future, sync::Arc, time::Duration};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

/// The step that keeps the name of the job.
const STEP: &str = "bowline/job";

/// The shortest time between two polls.
const MIN_EVERY: Duration = Duration::from_secs(1);

/// How long a poll or a cancellation may take.
const CALL_TIME: Duration = Duration::from_secs(30);

/// How long to wait before a cancellation is tried again: doubled each time, up to the longest.
const CANCEL_AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));

/// How often a cancellation is tried that no record asks for.
const CANCEL_TRIES: u32 = 6;

/// Work that another system does: [`Tool::job`].
///
/// The other system starts the work, and names it. That name is all that the server keeps of it, in the store of its tasks. It
/// asks the other system how far the work is at an interval, and when a client reads the task, and cancels it when a client
/// cancels the task. Nothing of the job is in memory meanwhile, so any process that shares the store can poll it, and
/// the task survives a restart.
///
/// For callers that do not support tasks, the call waits for the end of the job.
///
/// ```
/// use bowline_server::{Ctx, Job, JobStatus, Result, Server, Tool};
///
/// # struct Ci;
/// # struct Run { is_done: bool, stage: String }
/// # impl Ci {
/// #     async fn submit(&self, branch: &str, key: &str) -> Result<String> { Ok(format!("{branch} {key}")) }
/// #     async fn run(&self, id: &str) -> Result<Run> { Ok(Run { is_done: true, stage: id.to_owned() }) }
/// #     async fn abort(&self, _id: &str) -> Result<()> { Ok(()) }
/// # }
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Branch {
///     name: String,
/// }
///
/// struct Build {
///     ci: Ci,
/// }
///
/// impl Job for Build {
///     type Arguments = Branch;
///     type Output = String;
///
///     async fn start(&self, ctx: Ctx, branch: Branch) -> Result<String> {
///         // The key lets the CI recognize a repetition: a process may die before the name is recorded.
///         self.ci.submit(&branch.name, &ctx.step_id("submit")).await
///     }
///
///     async fn status(&self, run: &str) -> Result<JobStatus<String>> {
///         let run = self.ci.run(run).await?;
///         Ok(if run.is_done { JobStatus::Done(run.stage) } else { JobStatus::running().message(run.stage) })
///     }
///
///     async fn cancel(&self, run: &str) -> Result<()> {
///         self.ci.abort(run).await
///     }
/// }
///
/// let server = Server::new("ci").tool(Tool::new("build").description("Build a branch").job(Build { ci: Ci }));
/// ```
pub trait Job: Send + Sync + 'static {
    /// The arguments of the tool.
    type Arguments: DeserializeOwned + JsonSchema + Send + 'static;

    /// What the work results in.
    type Output: IntoOutput + Send + 'static;

    /// Starts the work, and returns the name by which the other system knows it.
    ///
    /// The name is recorded once. If a process dies before that, the next one starts the work again, with the same
    /// [`Ctx::step_id`]: give it to the other system as an idempotency key. `start` may ask the user.
    fn start(&self, ctx: Ctx, arguments: Self::Arguments) -> impl Future<Output = Result<String>> + Send;

    /// Asks how far the work is. An error means that this is not known now: it is asked again at the next interval, until the
    /// time of the task is over.
    fn status(&self, job: &str) -> impl Future<Output = Result<JobStatus<Self::Output>>> + Send;

    /// Cancels the work in the other system. It may be called more than once, and for work that has ended.
    ///
    /// After an error it is called again, until the record of the task expires. The client does not wait for it. It is not
    /// called when the time of the task is over: the other system needs a limit of its own.
    fn cancel(&self, job: &str) -> impl Future<Output = Result<()>> + Send;

    /// Returns the time between two polls, at least 1 s. Default: 30 s.
    ///
    /// When a client asks for the task, the job is polled without waiting for this, but at most once per second.
    fn poll_interval(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// How far the work of a [`Job`] is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum JobStatus<T> {
    /// It waits or runs. See [`JobStatus::running`].
    Running(JobProgress),
    /// It is done, with this result.
    Done(T),
    /// It failed. The tool returns this text as an error.
    Failed(String),
    /// Somebody has cancelled it in the other system, or it does not know the work any more.
    Cancelled,
}

/// What is known of work that is not done.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct JobProgress {
    /// The status message.
    pub message: Option<String>,
    /// How much is done.
    pub done: Option<f64>,
    /// How much there is to do.
    pub total: Option<f64>,
}

impl<T> JobStatus<T> {
    /// The work waits or runs.
    pub fn running() -> Self {
        Self::Running(JobProgress::default())
    }

    /// Sets the status message of work that is not done. Other states are not changed.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        if let Self::Running(progress) = &mut self {
            progress.message = Some(message.into());
        }
        self
    }

    /// Sets how far work is that is not done. Other states are not changed.
    #[must_use]
    pub fn progress(mut self, done: impl ProgressValue, total: impl ProgressTotal) -> Self {
        if let Self::Running(progress) = &mut self {
            (progress.done, progress.total) = (Some(done.into_f64()), total.into_total());
        }
        self
    }
}

/// What is needed of a job without its types.
pub(crate) trait CancelJob: Send + Sync {
    fn cancel<'a>(&'a self, job: &'a str) -> BoxFuture<'a, Result<()>>;
}

impl<J: Job> CancelJob for J {
    fn cancel<'a>(&'a self, job: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(Job::cancel(self, job))
    }
}

impl Tool {
    /// Lets another system do the work. Calls become tasks at once; [`Tool::task`] changes that.
    ///
    /// A task of a job runs again after its process died, unless [`Task::resume`](crate::Task::resume) forbids it.
    #[cfg_attr(docsrs, doc(cfg(feature = "tasks")))]
    pub fn job<J: Job>(self, job: J) -> Self {
        let job = Arc::new(job);
        let runs = Arc::clone(&job);
        self.with_job(job)
            .handler(move |ctx: Ctx, arguments: J::Arguments| run(Arc::clone(&runs), ctx, arguments))
    }
}

/// Starts a job, if that has not happened, and polls it. In a task each poll ends the round.
async fn run<J: Job>(job: Arc<J>, ctx: Ctx, arguments: J::Arguments) -> Result<J::Output> {
    let mut untracked = UntrackedJob { job: Arc::clone(&job), ctx: ctx.clone(), state: State::Nothing };
    let name: String = ctx.once(STEP, untracked.start(arguments)).await?;
    // A task keeps the name. The job of a plain call is cancelled with the call.
    untracked.state = match ctx.task_id() {
        Some(_) => State::Nothing,
        None => State::Runs(name.clone()),
    };
    loop {
        let polled = timeout(CALL_TIME, job.status(&name)).await;
        match polled.unwrap_or_else(|_| Err(late())) {
            Ok(JobStatus::Running(progress)) => report(&ctx, progress),
            Ok(JobStatus::Done(output)) => {
                untracked.state = State::Nothing;
                return Ok(output);
            }
            Ok(JobStatus::Failed(reason)) => {
                untracked.state = State::Nothing;
                return Err(Error::tool(reason));
            }
            Ok(JobStatus::Cancelled) => {
                untracked.state = State::Nothing;
                if let Some(attempt) = ctx.log_of_round().attempt() {
                    attempt.cancelled_outside();
                }
                return Err(Error::tool("the job was cancelled"));
            }
            Err(error) => {
                #[cfg(feature = "tracing")]
                tracing::warn!(%error, job = name, "the state of a job is not known");
                let _ = error;
                ctx.status("the state of the job is not known at the moment");
            }
        }
        ctx.pause(job.poll_interval().max(MIN_EVERY)).await?;
    }
}

fn late() -> Error {
    Error::internal(format!("the other system did not answer within {CALL_TIME:?}"))
}

fn report(ctx: &Ctx, JobProgress { message, done, total }: JobProgress) {
    match (done, message) {
        (Some(done), Some(message)) => ctx.progress_with(done, total, message),
        (Some(done), None) => ctx.progress(done, total),
        (None, Some(message)) => ctx.status(message),
        (None, None) => {}
    }
}

/// The work in the other system that nobody would cancel if the handler were dropped.
struct UntrackedJob<J: Job> {
    job: Arc<J>,
    ctx: Ctx,
    state: State,
}

enum State {
    /// Nothing, or the store knows it.
    Nothing,
    /// It is being started.
    Starts(JoinHandle<Result<String>>),
    /// It has this name, and the store does not know it.
    Runs(String),
}

impl<J: Job> UntrackedJob<J> {
    /// Starts the work. A start is not interrupted: nobody would know whether the work runs.
    async fn start(&mut self, arguments: J::Arguments) -> Result<String> {
        let (job, ctx) = (Arc::clone(&self.job), self.ctx.clone());
        self.state = State::Starts(tokio::spawn(async move { job.start(ctx, arguments).await }));
        let State::Starts(starting) = &mut self.state else {
            return Err(Error::internal("it is being started"));
        };
        let started = joined(starting.await);
        self.state = match &started {
            Ok(name) => State::Runs(name.clone()),
            Err(_) => State::Nothing,
        };
        started
    }
}

/// A panic goes on where it is reported with the name of the tool.
fn joined(started: Result<Result<String>, tokio::task::JoinError>) -> Result<String> {
    match started {
        Ok(started) => started,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Error::internal("the runtime is shutting down")),
        },
    }
}

impl<J: Job> Drop for UntrackedJob<J> {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut self.state, State::Nothing);
        let (job, ctx) = (Arc::clone(&self.job), self.ctx.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        match state {
            State::Nothing => {}
            // Both end by themselves: the start has ended or ends as it would have, and a cancellation has a limit.
            State::Runs(name) => {
                drop(runtime.spawn(async move { cancel_unless_task(&*job, &ctx, &name).await }));
            }
            State::Starts(starting) => drop(runtime.spawn(async move {
                if let Ok(Ok(name)) = starting.await {
                    cancel_unless_task(&*job, &ctx, &name).await;
                }
            })),
        }
    }
}

/// Cancels the job of a call that was dropped. A task goes on elsewhere, unless it was cancelled.
async fn cancel_unless_task<J: Job>(job: &J, ctx: &Ctx, name: &str) {
    if let Some(attempt) = ctx.log_of_round().attempt() {
        let found = attempt.table().read(attempt.id()).await;
        let is_cancelled =
            matches!(found, Ok(Some(found)) if matches!(found.record.state, TaskState::Cancelled));
        if !is_cancelled {
            return;
        }
    }
    // The record does not know the name, so nobody else repeats it.
    for tries in 0..CANCEL_TRIES {
        if cancel(job, name).await.is_ok() {
            return;
        }
        sleep(CANCEL_AGAIN.0.saturating_mul(1 << tries)).await;
    }
}

async fn cancel(job: &dyn CancelJob, name: &str) -> Result<()> {
    let cancelled = match timeout(CALL_TIME, catch_panic(job.cancel(name))).await {
        Ok(Some(cancelled)) => cancelled,
        Ok(None) => Err(Error::internal("the cancellation panicked")),
        Err(_) => Err(late()),
    };
    #[cfg(feature = "tracing")]
    if let Err(error) = &cancelled {
        tracing::warn!(%error, job = name, "a job cannot be cancelled now");
    }
    cancelled
}

impl Core {
    /// Cancels the job of a task that was cancelled.
    pub(crate) async fn cancel_job(self: Arc<Self>, attempt: Arc<Attempt>) -> RoundEnd {
        let loaded = match attempt.load().await {
            Ok(loaded) => loaded,
            Err(error) => return RoundEnd::Outcome(Outcome::Failed(error)),
        };
        let kept = loaded.replay.kept(STEP).cloned().or_else(|| attempt.recorded(STEP));
        let name: Option<String> = kept.and_then(|kept| kept.decode().ok());
        let tool = self.registry.snapshot().tools.get(&loaded.record.tool).map(Arc::clone);
        let job = tool.as_ref().and_then(|tool| tool.job.as_ref());
        let cancelled = match (&name, job) {
            (Some(name), Some(job)) => cancel(&**job, name).await,
            // It never started; or whoever was starting it cancels it.
            _ => Ok(()),
        };
        let event = if cancelled.is_ok() {
            Event::CancelledOutside
        } else {
            let tries = loaded.record.job.as_ref().map_or(0, |job| job.tries);
            let (first, longest) = CANCEL_AGAIN;
            Event::CancelOutsideLater(first.saturating_mul(1 << tries.min(10)).min(longest))
        };
        if let Err(NotWritten::Invalid(reason)) = attempt.write(&event).await {
            #[cfg(feature = "tracing")]
            tracing::warn!(task = attempt.id(), reason, "the cancellation of a job cannot be recorded");
            #[cfg(not(feature = "tracing"))]
            let _ = reason;
        }
        RoundEnd::Written
    }
}

impl fmt::Debug for dyn CancelJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Job")
    }
}
