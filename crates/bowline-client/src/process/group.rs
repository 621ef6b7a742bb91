//! A program and all processes that it starts, as one process group.
//!
//! On Unix the program joins its own process group. After its exit it is not reaped until the group has been killed: as
//! long as a member is not reaped, the system cannot reuse the id of the group. On other systems only the program
//! itself is known.

use std::fmt;
use std::io;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
#[cfg(unix)]
use {
    super::{placeholder::PlaceholderGroup, watchdog},
    rustix::process::{Pid, Signal, kill_process_group},
    tokio::signal::unix::{self, SignalKind},
};

use super::{error::Exit, limits::Limits};

pub(super) struct Group {
    /// The program. `None` after it was reaped; the group is never signaled again then.
    program: Option<tokio::process::Child>,
    exit: Option<Exit>,
    runtime: Handle,
    #[cfg(unix)]
    process: Pid,
    #[cfg(unix)]
    id: Pid,
    /// Signals that a child of this process changed. Subscribed before the start, so that no exit is missed.
    #[cfg(unix)]
    changes: unix::Signal,
}

/// This process's ends of the pipes.
pub(super) struct Pipes {
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

impl Group {
    pub(super) fn start(mut command: Command) -> io::Result<(Self, Pipes)> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        command.kill_on_drop(true);
        #[cfg(unix)]
        let changes = unix::signal(SignalKind::child())?;
        #[cfg(unix)]
        let (mut program, id) = start_in_group(command)?;
        #[cfg(not(unix))]
        let mut program = command.spawn()?;
        #[cfg(unix)]
        let process = process_id(&program)?;
        let pipes = Pipes {
            stdin: program.stdin.take(),
            stdout: program.stdout.take(),
            stderr: program.stderr.take(),
        };
        let group = Self {
            program: Some(program),
            exit: None,
            runtime,
            #[cfg(unix)]
            process,
            #[cfg(unix)]
            id,
            #[cfg(unix)]
            changes,
        };
        Ok((group, pipes))
    }

    /// Returns the process id, until the program is reaped.
    pub(super) fn id(&self) -> Option<u32> {
        self.program.as_ref().and_then(tokio::process::Child::id)
    }

    /// Sets resource limits on the running program.
    pub(super) fn limit(&self, limits: Limits) -> io::Result<()> {
        if limits == Limits::default() {
            return Ok(());
        }
        #[cfg(target_os = "linux")]
        return limits.apply(self.process);
        #[cfg(not(target_os = "linux"))]
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system cannot limit a program"))
    }

    /// Returns how the program exited, if it has.
    pub(super) fn exit(&mut self) -> Option<Exit> {
        if self.exit.is_none() {
            self.exit = self.peek();
        }
        self.exit
    }

    /// Waits until the program has exited. Dropping the future has no effect.
    pub(super) async fn exited(&mut self) -> Exit {
        loop {
            if let Some(exit) = self.exit() {
                return exit;
            }
            self.changed().await;
        }
    }

    /// Kills all processes of the group and reaps the program if it has exited.
    ///
    /// Otherwise it is reaped by a later call, or in the background after the drop.
    pub(super) fn kill(&mut self) {
        self.signal_kill();
        if self.exit().is_some() {
            self.reap();
        }
    }

    fn reap(&mut self) {
        #[cfg(unix)]
        if self.program.is_some() {
            watchdog::remove(self.id);
        }
        let Some(mut program) = self.program.take() else { return };
        if matches!(program.try_wait(), Ok(None)) {
            // SIGKILL was sent, so this task ends soon. Without a runtime, dropping the program adds it to the orphans
            // that the next runtime reaps.
            self.runtime.spawn(async move { program.wait().await });
        }
    }
}

/// Starts a program in a group that exists before the program does.
#[cfg(unix)]
fn start_in_group(mut command: Command) -> io::Result<(tokio::process::Child, Pid)> {
    let placeholder = match PlaceholderGroup::new() {
        Ok(placeholder) => placeholder,
        // Without a shell there is no watchdog, either.
        Err(error) => {
            tracing::debug!(%error, "cannot start the group leader; the program leads its own process group");
            let program = command.process_group(0).spawn()?;
            let group = process_id(&program)?;
            watchdog::add(group);
            return Ok((program, group));
        }
    };
    let group = placeholder.group();
    match command.process_group(group.as_raw_nonzero().get()).spawn() {
        Ok(program) => Ok((program, group)),
        Err(error) => {
            placeholder.abandon();
            Err(error)
        }
    }
}

#[cfg(unix)]
fn process_id(program: &tokio::process::Child) -> io::Result<Pid> {
    let id = program.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    id.ok_or_else(|| io::Error::other("the new process has no id"))
}

/// For systems with process groups, where an exited process can be inspected without reaping it.
#[cfg(all(unix, not(any(target_os = "openbsd", target_os = "netbsd"))))]
impl Group {
    fn peek(&mut self) -> Option<Exit> {
        use rustix::process::{WaitId, WaitIdOptions, waitid};

        self.program.as_ref()?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::Pid(self.process), options) {
                Ok(None) => return None,
                Ok(Some(status)) => {
                    let signal = || status.terminating_signal().map(Exit::Signal);
                    let exit = status.exit_status().map(Exit::Code).or_else(signal);
                    return Some(exit.unwrap_or(Exit::Unknown));
                }
                Err(rustix::io::Errno::INTR) => {}
                // Another part of this process reaped this child.
                Err(_) => return Some(Exit::Unknown),
            }
        }
    }
}

/// Without such an inspection, the program is reaped immediately, and the rest of its group is killed.
#[cfg(not(all(unix, not(any(target_os = "openbsd", target_os = "netbsd")))))]
impl Group {
    fn peek(&mut self) -> Option<Exit> {
        let exit = match self.program.as_mut()?.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => status.into(),
            Err(_) => Exit::Unknown,
        };
        self.signal_kill();
        self.reap();
        Some(exit)
    }
}

#[cfg(unix)]
impl Group {
    /// Sends SIGTERM to all processes of the group.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    fn signal_kill(&mut self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if self.program.is_none() {
            return;
        }
        // The group may be empty, or contain processes of another user.
        if let Err(error) = kill_process_group(self.id, signal) {
            tracing::debug!(%error, group = self.id.as_raw_nonzero().get(), "a process group was not signaled");
        }
    }

    async fn changed(&mut self) {
        if self.changes.recv().await.is_none() {
            // The runtime is shutting down, and with it this future.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(not(unix))]
impl Group {
    #[expect(clippy::unused_self, reason = "this system has no gentle way to end a process")]
    pub(super) fn terminate(&self) {}

    fn signal_kill(&mut self) {
        if let Some(program) = &mut self.program {
            // The only possible failure is that the process has exited.
            let _ = program.start_kill();
        }
    }

    async fn changed(&mut self) {
        if let Some(program) = &mut self.program {
            // The result is still available to the following check.
            let _ = program.wait().await;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal_kill();
        self.reap();
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("id", &self.id()).field("exit", &self.exit).finish_non_exhaustive()
    }
}
