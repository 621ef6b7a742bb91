//! A running program: its pipes, its exit, and its shutdown.

use std::fmt;
use std::time::Duration;

use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::timeout;

use super::error::{Exit, Kind, ProcessError};
use super::group::{Group, Pipes};
use super::stderr::{Drain, Stderr, StderrMode};

/// The time for a killed program to exit, before it is reaped in the background.
const KILL_LIMIT: Duration = Duration::from_secs(2);
/// The time to read the rest of standard error after a program has exited.
const STDERR_LIMIT: Duration = Duration::from_millis(500);

/// A running program with all processes that it starts. Created by [`Command::spawn`](crate::Command::spawn).
///
/// [`shutdown`](Self::shutdown) stops it gracefully. Dropping it kills the whole process group immediately and reaps
/// the program in the background. If this process is killed, the group is killed too, even while the program is being
/// started. Only a process that moves itself to another group survives.
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

    /// Takes the pipe to standard input. Returns `None` if it was already taken.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Takes the pipe from standard output. Returns `None` if it was already taken.
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

    /// Waits until the program exits and returns how. Can be called repeatedly.
    ///
    /// Processes that it started may still run; [`shutdown`](Self::shutdown) or dropping stops them. Standard input
    /// stays open. Dropping the future has no effect.
    pub async fn wait(&mut self) -> Exit {
        self.group.exited().await
    }

    /// Stops the program and all processes that it started, and returns how the program exited.
    ///
    /// Closes standard input and waits for the grace period. Then sends SIGTERM to the group and waits for the second
    /// grace period. Then kills the group, including processes that are left after the program has exited. If the pipe
    /// to standard input was taken, drop it first; otherwise the first grace period has no effect. On other systems
    /// than Unix the program is killed after the first grace period.
    ///
    /// This takes at most both grace periods and three seconds. Calling it again returns the same result. Dropping the
    /// future stops the shutdown at its current step; it can be called again, and dropping the `Child` kills the group.
    pub async fn shutdown(&mut self) -> Exit {
        drop(self.stdin.take());
        if timeout(self.grace, self.group.exited()).await.is_err() && cfg!(unix) {
            self.group.terminate();
            // After a timeout, the next step follows.
            let _ = timeout(self.terminate_grace, self.group.exited()).await;
        }
        self.group.kill();
        let exit = timeout(KILL_LIMIT, self.group.exited()).await.unwrap_or(Exit::Unknown);
        self.group.kill();
        drop(self.stdout.take());
        self.stderr.wait_until_read(STDERR_LIMIT).await;
        self.stderr.stop();
        exit
    }

    /// Returns why the program stopped responding. Call this when its output ended or writing to its input failed.
    ///
    /// Waits for the exit of the program, at most for the grace period, and for the rest of its standard error. Does
    /// not stop the program.
    pub async fn failure(&mut self) -> ProcessError {
        let kind = timeout(self.grace, self.group.exited()).await.map_or(Kind::OutputClosed, Kind::Exited);
        self.stderr.wait_until_read(STDERR_LIMIT).await;
        ProcessError::lost(self.program.clone(), kind, self.stderr_tail())
    }

    /// Returns the end of the program's standard error, at most 64 KiB; see [`Stderr::tail`].
    pub fn stderr_tail(&self) -> String {
        self.stderr().tail()
    }

    /// Returns the captured standard error, which can be cloned and outlives the program.
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
