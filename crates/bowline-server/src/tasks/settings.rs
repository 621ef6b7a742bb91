//! How a tool becomes a task, and how a server runs its tasks.

use bowline_store::Store;
use std::time::Duration;

/// When and how a call of a tool becomes a task: [`Tool::task`](crate::Tool::task).
///
/// ```
/// use bowline_server::{Task, Tool};
/// use std::time::Duration;
///
/// let backup = Tool::new("backup")
///     .task(Task::after(Duration::from_secs(2)).ttl(Duration::from_secs(6 * 3600)))
///     .handler(async || "done");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it does nothing until it is given to `Tool::task`"]
pub struct Task {
    pub(crate) when: When,
    pub(crate) required: bool,
    pub(crate) ttl: Option<Duration>,
    pub(crate) version: u32,
    pub(crate) resume: Option<bool>,
}

/// When a call becomes a task, if the caller supports tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    AtOnce,
    After(Duration),
    Later,
}

impl Default for Task {
    /// A call becomes a task at once, if the caller supports tasks.
    fn default() -> Self {
        Self { when: When::AtOnce, required: false, ttl: None, version: 1, resume: None }
    }
}

impl Task {
    /// A call becomes a task at once, if the caller supports tasks. The same as `#[tool(task)]`.
    pub fn now() -> Self {
        Self::default()
    }

    /// A call becomes a task if it runs longer than `time`.
    ///
    /// In 2025-11-25 the caller decides instead, before the call.
    pub fn after(time: Duration) -> Self {
        Self { when: When::After(time), ..Self::default() }
    }

    /// A call becomes a task when the handler calls [`Ctx::task`](crate::Ctx::task). Questions before that are answered in
    /// the call itself.
    ///
    /// In 2025-11-25 the caller decides instead, before the call.
    pub fn later() -> Self {
        Self { when: When::Later, ..Self::default() }
    }

    /// Refuses callers that do not support tasks.
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Sets how long a task may take and is kept. Default: that of [`Tasks::ttl`].
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets the version of the handler's code. Default: 1.
    ///
    /// A process runs only tasks of the version that it has. Change it when steps or questions of running tasks no longer fit.
    pub fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// Sets whether the task runs again after the process that ran it has died. Default: if the tool is `read_only` or
    /// `idempotent`. Other tasks fail then.
    pub fn resume(mut self, resume: bool) -> Self {
        self.resume = Some(resume);
        self
    }
}

/// How a server runs its tasks: [`Server::tasks`](crate::Server::tasks).
///
/// ```
/// use bowline_server::{Server, Tasks};
/// use bowline_store::Store;
///
/// let server = Server::new("ci").tasks(Tasks::new(Store::memory()).concurrency(8));
/// ```
#[derive(Clone, Debug)]
#[must_use = "it does nothing until it is given to `Server::tasks`"]
pub struct Tasks {
    pub(crate) store: Store,
    pub(crate) space: Option<String>,
    pub(crate) ttl: Duration,
    pub(crate) max_ttl: Duration,
    pub(crate) concurrency: usize,
    pub(crate) run: bool,
    pub(crate) attempt_time: Duration,
    pub(crate) lease: Duration,
    pub(crate) per_principal: usize,
    pub(crate) open: usize,
    pub(crate) result_bytes: usize,
}

impl Tasks {
    /// Keeps tasks in `store`.
    pub fn new(store: impl Into<Store>) -> Self {
        Self {
            store: store.into(),
            space: None,
            ttl: Duration::from_secs(3600),
            max_ttl: Duration::from_secs(24 * 3600),
            concurrency: 64,
            run: true,
            attempt_time: Duration::from_secs(3600),
            lease: Duration::from_secs(15),
            per_principal: 100,
            open: 10_000,
            result_bytes: 4 << 20,
        }
    }

    /// Sets which servers share their tasks: those that use one store and have the same space.
    ///
    /// Default: the name of the server. In a store of one machine also its arguments and its working directory, because another
    /// window of the same program may have other credentials or another folder.
    pub fn space(mut self, space: impl Into<String>) -> Self {
        self.space = Some(space.into());
        self
    }

    /// Sets how long a task may take and is kept, if its tool does not say. Default: 1 hour.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Limits how long a task may take and is kept. Default: 24 hours.
    pub fn max_ttl(mut self, ttl: Duration) -> Self {
        self.max_ttl = ttl;
        self
    }

    /// Sets how many tasks run at once in this process. Default: 64. Others wait, or run in another process.
    pub fn concurrency(mut self, tasks: usize) -> Self {
        self.concurrency = tasks.max(1);
        self
    }

    /// Sets whether this process runs tasks. Default: true. One that does not still accepts them, for other processes.
    pub fn run(mut self, run: bool) -> Self {
        self.run = run;
        self
    }

    /// Limits how long a task runs without a question or a [`Ctx::sleep`](crate::Ctx::sleep). Default: 1 hour.
    pub fn attempt_time(mut self, time: Duration) -> Self {
        self.attempt_time = time;
        self
    }

    /// Sets after which time without a sign of life another process takes over a task. Default: 15 s. A process renews its
    /// claims three times in this time.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.max(Duration::from_millis(100));
        self
    }

    /// Limits how many unfinished tasks one caller has. Default: 100. The count is up to 5 s old.
    pub fn per_principal(mut self, tasks: usize) -> Self {
        self.per_principal = tasks;
        self
    }

    /// Limits how many unfinished tasks this process has accepted. Default: 10,000.
    pub fn open(mut self, tasks: usize) -> Self {
        self.open = tasks;
        self
    }

    /// Limits the result of a task in bytes. Default: 4 MiB, which is also the most.
    pub fn result_bytes(mut self, bytes: usize) -> Self {
        self.result_bytes = bytes.min(4 << 20);
        self
    }
}
