//! A running program: its streams, its end, and how it is made to end.

use std::fmt;
use std::time::Duration;

use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::timeout;

use super::error::{Exit, Kind, ProcessError};
use super::group::{Group, Pipes};
use super::stderr::{Drain, Stderr, StderrMode};

/// How long a killed program may take to disappear before it is left to the background.
const KILL_LIMIT: Duration = Duration::from_secs(2);
/// How long the rest of standard error may take to arrive after a program has ended.
const STDERR_LIMIT: Duration = Duration::from_millis(500);

/// A running program with every process it starts; made by [`Command::spawn`](crate::Command::spawn).
///
/// [`shutdown`](Self::shutdown) ends it in good order. Dropping it kills the whole process group at once and
/// reaps the program in the background. If this process is killed, the group is killed too, even while the program is being
/// started; only a process that moves itself to another group gets away.
pub struct Child {
    program: String,
    group: Group,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Drain,
    grace: Duration,
    terminate_grace: Duration,
}

impl Child {
    pub(super) fn new(
        program: String,
        (group, pipes): (Group, Pipes),
        stderr: &StderrMode,
        grace: Duration,
        terminate_grace: Duration,
    ) -> Self {
        let Pipes { stdin, stdout, stderr: pipe } = pipes;
        Self { program, group, stdin, stdout, stderr: Drain::start(pipe, stderr), grace, terminate_grace }
    }

    /// Takes the pipe to the program's standard input; `None` when it was taken before.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Takes the pipe from the program's standard output; `None` when it was taken before.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// Returns the process id until the program is reaped.
    pub fn id(&self) -> Option<u32> {
        self.group.id()
    }

    /// Returns how the program ended, if it has ended.
    pub fn exit(&mut self) -> Option<Exit> {
        self.group.exit()
    }

    /// Waits until the program ends by itself and returns how, as often as it is called.
    ///
    /// Processes it started may still run; [`shutdown`](Self::shutdown) or dropping ends them. Standard input
    /// stays open. Dropping the future changes nothing.
    pub async fn wait(&mut self) -> Exit {
        self.group.exited().await
    }

    /// Ends the program and everything it started, and returns how the program ended.
    ///
    /// Standard input is closed and the program has its grace to exit; then the group receives SIGTERM and has
    /// the second grace; then it is killed. What is left of the group after the program has exited is killed as
    /// well. A pipe that was taken has to be dropped by its owner first, or the first grace passes for nothing.
    /// Elsewhere than on Unix the program is killed after the first grace.
    ///
    /// This takes no longer than both graces and three seconds. Calling it again returns the same. Dropping the
    /// future leaves the program where it was in that order; it can be called again, and dropping the `Child` kills.
    pub async fn shutdown(&mut self) -> Exit {
        drop(self.stdin.take());
        if timeout(self.grace, self.group.exited()).await.is_err() && cfg!(unix) {
            self.group.terminate();
            // Not ending in time is answered by the next step.
            let _ = timeout(self.terminate_grace, self.group.exited()).await;
        }
        self.group.kill();
        let exit = timeout(KILL_LIMIT, self.group.exited()).await.unwrap_or(Exit::Unknown);
        self.group.kill();
        drop(self.stdout.take());
        self.stderr.settle(STDERR_LIMIT).await;
        self.stderr.stop();
        exit
    }

    /// Explains why the program stopped answering; to be called when its output ended or its input broke.
    ///
    /// Waits for the end of the program, but no longer than the grace, and for the rest of its standard error.
    /// The program is not ended by this.
    pub async fn failure(&mut self) -> ProcessError {
        let kind = timeout(self.grace, self.group.exited()).await.map_or(Kind::OutputClosed, Kind::Exited);
        self.stderr.settle(STDERR_LIMIT).await;
        ProcessError::lost(self.program.clone(), kind, self.stderr_tail())
    }

    /// Returns the last of what the program wrote to standard error, at most 64 KiB; see [`Stderr::tail`].
    pub fn stderr_tail(&self) -> String {
        self.stderr().tail()
    }

    /// Returns the kept standard error, which can be cloned and outlives the program.
    pub fn stderr(&self) -> &Stderr {
        self.stderr.stderr()
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("program", &self.program)
            .field("group", &self.group)
            .field("stderr", &self.stderr)
            .finish_non_exhaustive()
    }
}
