//! Runs a task with a crash at each of its steps.
//!
//! The handler of a task runs again after a crash, and skips the steps that are recorded. Whether it then ends as it would
//! have without the crash depends on its code. [`crash_each_step`] tries all of it:
//!
//! ```
//! use bowline_server::{Ctx, Result, Server, Task, Tool};
//! use bowline_testing::crash_each_step;
//!
//! async fn publish(ctx: Ctx) -> Result<String> {
//!     let draft: String = ctx.once("draft", async { Ok("draft 1".to_owned()) }).await?;
//!     let page: String = ctx.once("upload", async { Ok(format!("{draft}, uploaded")) }).await?;
//!     Ok(page)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), bowline_testing::Error> {
//! let server = || Server::new("site").tool(Tool::new("publish").idempotent().task(Task::now()).handler(publish));
//! let report = crash_each_step("publish", server).run().await?;
//! assert_eq!(report.result()["content"][0]["text"], "draft 1, uploaded");
//! // At the start, before and after the record of each step, and before the end.
//! assert_eq!(report.points().len(), 6);
//! # Ok(())
//! # }
//! ```

mod process;
mod records;

use crate::{Error, Result};
use bowline_server::Server;
use process::{Process, ProcessReport};
use records::World;
use serde_json::{Value, json};
use std::{
    fmt::{self, Write as _},
    sync::Arc,
    time::Duration,
};

/// How long one run may take by default.
const TIME: Duration = Duration::from_secs(30);

/// Calls `tool` as a task again and again, each time with a crash at another point, and checks that every task ends with the
/// same result. See the [module](self) for an example.
///
/// `server` makes the server. It is called for each process that is simulated: one for the first run, and two for every crash.
/// A process is a tokio runtime of its own. A crash drops it with everything that runs in it, at once; only what other threads
/// do continues. The tasks are kept in a store that outlives the crash, so the settings of
/// [`Server::tasks`](bowline_server::Server::tasks) are replaced.
///
/// What is outside of the processes, such as the files or the database that the handler changes, must be shared by all
/// servers that `server` makes, or start over with each run: the effects of several runs follow each other there.
///
/// Longer waits of [`Ctx::sleep`](bowline_server::Ctx::sleep) take no time; those up to 5 s do.
pub fn crash_each_step(tool: impl Into<String>, server: impl Fn() -> Server + Send + 'static) -> CrashTest {
    CrashTest {
        plan: Plan {
            tool: tool.into(),
            server: Box::new(server),
            arguments: json!({}),
            answers: Vec::new(),
            time: TIME,
        },
        same: Box::new(|expected, actual| expected == actual),
    }
}

/// A test of a task under construction. See [`crash_each_step`].
#[must_use = "nothing is called before `run`"]
pub struct CrashTest {
    plan: Plan,
    same: Same,
}

type Same = Box<dyn Fn(&Value, &Value) -> bool + Send>;

/// What every run does.
pub(crate) struct Plan {
    pub(crate) tool: String,
    pub(crate) server: Box<dyn Fn() -> Server + Send>,
    pub(crate) arguments: Value,
    /// The answers to questions, in the order in which they are asked.
    pub(crate) answers: Vec<Value>,
    pub(crate) time: Duration,
}

/// Where a process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CrashPoint {
    /// Before the first line of the handler.
    Start,
    /// After the work of this step, before its value is recorded: the step runs again.
    BeforeRecording(String),
    /// After the value of this step is recorded, before the handler gets it.
    AfterRecording(String),
    /// After the handler asked, for the first time, the second time, and so on.
    AfterAsking(u32),
    /// After the handler ended, before its result is recorded.
    BeforeEnd,
}

impl fmt::Display for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("before the first line of the handler"),
            Self::BeforeRecording(step) => write!(f, "before step `{step}` was recorded"),
            Self::AfterRecording(step) => write!(f, "after step `{step}` was recorded"),
            Self::AfterAsking(round) => write!(f, "after question round {round}"),
            Self::BeforeEnd => f.write_str("before the result was recorded"),
        }
    }
}

/// What happened in a test that passed. See [`crash_each_step`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CrashReport {
    result: Value,
    points: Vec<CrashPoint>,
}

impl CrashReport {
    /// Returns the result of the tool: `content`, `structuredContent`, `isError`. For a task that failed, its error.
    pub fn result(&self) -> &Value {
        &self.result
    }

    /// Returns the points at which processes ended, in the order in which the first run passed them.
    pub fn points(&self) -> &[CrashPoint] {
        &self.points
    }
}

impl CrashTest {
    /// Sets the arguments of the call. Default: an empty object.
    pub fn arguments(mut self, arguments: impl Into<Value>) -> Self {
        self.plan.arguments = arguments.into();
        self
    }

    /// Accepts the next form with this content, or the next page to visit.
    pub fn accept(self, content: impl Into<Value>) -> Self {
        self.answer(json!({ "action": "accept", "content": content.into() }))
    }

    /// Declines the next form or page.
    pub fn decline(self) -> Self {
        self.answer(json!({ "action": "decline" }))
    }

    /// Gives this result to the next question: for sampling, roots, and forms that are cancelled.
    pub fn answer(mut self, result: impl Into<Value>) -> Self {
        self.plan.answers.push(result.into());
        self
    }

    /// Sets how results are compared, for those that contain a time or something random. The first is that of the run without a
    /// crash. Default: they are equal.
    pub fn same(mut self, same: impl Fn(&Value, &Value) -> bool + Send + 'static) -> Self {
        self.same = Box::new(same);
        self
    }

    /// Limits the time of each process. Default: 30 s.
    pub fn time(mut self, time: Duration) -> Self {
        self.plan.time = time;
        self
    }

    /// Runs the tests.
    ///
    /// Fails if a task ends with another result than the one of the first run, which had no crash, or does not end. The error
    /// names all the points where that was so. Fails, too, if the tool's tasks do not run again after a crash, or if its
    /// calls do not become tasks.
    ///
    /// If the returned future is dropped, the current run is the last one.
    pub async fn run(self) -> Result<CrashReport> {
        let (send, receive) = tokio::sync::oneshot::channel();
        // A thread of its own: the runtimes of the processes cannot run inside of the one that runs the test.
        std::thread::spawn(move || {
            let outcome = self.run_all(|| send.is_closed());
            let _ = send.send(outcome);
        });
        receive
            .await
            .unwrap_or_else(|_| Err(Error::unexpected("the function that builds the server panicked")))
    }

    fn run_all(self, is_given_up: impl Fn() -> bool) -> Result<CrashReport> {
        let Self { plan, same } = self;
        let world = Arc::new(World::default());
        let ProcessReport { end, .. } = Process::new(&plan, &world, None).run()?;
        let Some(expected) = end else { return Err(Error::unexpected("the first run crashed")) };
        let points = world.passed();
        let mut problems = String::new();
        for point in &points {
            if is_given_up() {
                return Err(Error::unexpected("the test was aborted"));
            }
            if let Err(problem) = run_once(&plan, point, &expected, &same) {
                let _ = write!(problems, "\n- a crash {point}: {problem}");
            }
        }
        if problems.is_empty() {
            return Ok(CrashReport { result: expected, points });
        }
        Err(Error::unexpected(format!(
            "a task of `{}` does not survive every crash:{problems}\nwithout a crash it ends with {expected}",
            plan.tool
        )))
    }
}

/// One process that crashes, and one that continues.
fn run_once(plan: &Plan, point: &CrashPoint, expected: &Value, same: &Same) -> Result<(), String> {
    let world = Arc::new(World::default());
    let crashed = Process::new(plan, &world, Some(point.clone())).run().map_err(|error| error.to_string())?;
    if crashed.end.is_some() {
        return Err("the handler did not reach this point again; its steps depend on something that changes"
            .to_owned());
    }
    world.end_leases();
    let ProcessReport { end, .. } = Process::new(plan, &world, None)
        .continuing(crashed.plain_answers)
        .run()
        .map_err(|error| error.to_string())?;
    match end {
        Some(actual) if same(expected, &actual) => Ok(()),
        Some(actual) => Err(format!("the task ended with {actual}")),
        None => Err("the task did not end".to_owned()),
    }
}

impl fmt::Debug for CrashTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrashTest").field("tool", &self.plan.tool).finish_non_exhaustive()
    }
}
