//! A program and everything it starts, as one group: is its first process alive, and how are all of them ended.
//!
//! On Unix the program leads a process group. When it exits, it is looked at but not reaped until the group has
//! been killed: as long as the leader is not reaped, the number of the group cannot come to mean a stranger.
//! Elsewhere only the program itself is known.

use std::fmt;
use std::io;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
#[cfg(unix)]
use {
    super::watchdog,
    rustix::process::{Pid, Signal, kill_process_group},
    tokio::signal::unix::{self, SignalKind},
};

use super::error::Exit;

pub(super) struct Group {
    /// The leader; none once it is reaped, and then the group is never signaled again.
    leader: Option<tokio::process::Child>,
    exit: Option<Exit>,
    runtime: Handle,
    #[cfg(unix)]
    id: Pid,
    /// Tells that some child of this process changed. Subscribed before the start, so that no end is missed.
    #[cfg(unix)]
    changes: unix::Signal,
}

/// This process's ends of a program's standard streams.
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
        let changes = {
            command.process_group(0);
            watchdog::start();
            unix::signal(SignalKind::child())?
        };
        let mut leader = command.spawn()?;
        #[cfg(unix)]
        let id = {
            let id = leader.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
            id.ok_or_else(|| io::Error::other("the new process has no id"))?
        };
        #[cfg(unix)]
        watchdog::add(id);
        let pipes =
            Pipes { stdin: leader.stdin.take(), stdout: leader.stdout.take(), stderr: leader.stderr.take() };
        let group = Self {
            leader: Some(leader),
            exit: None,
            runtime,
            #[cfg(unix)]
            id,
            #[cfg(unix)]
            changes,
        };
        Ok((group, pipes))
    }

    /// The process id of the leader, until it is reaped.
    pub(super) fn id(&self) -> Option<u32> {
        self.leader.as_ref().and_then(tokio::process::Child::id)
    }

    /// How the leader ended, if it did.
    pub(super) fn exit(&mut self) -> Option<Exit> {
        if self.exit.is_none() {
            self.exit = self.peek();
        }
        self.exit
    }

    /// Waits until the leader has ended. Dropping the future changes nothing.
    pub(super) async fn exited(&mut self) -> Exit {
        loop {
            if let Some(exit) = self.exit() {
                return exit;
            }
            self.changed().await;
        }
    }

    /// Kills every process of the group and reaps the leader if it is dead.
    ///
    /// A leader that is still dying is reaped by a later call or in the background after the drop.
    pub(super) fn kill(&mut self) {
        self.signal_kill();
        if self.exit().is_some() {
            self.reap();
        }
    }

    fn reap(&mut self) {
        #[cfg(unix)]
        if self.leader.is_some() {
            watchdog::remove(self.id);
        }
        let Some(mut leader) = self.leader.take() else { return };
        if matches!(leader.try_wait(), Ok(None)) {
            // SIGKILL was sent, so this task ends soon. Without a runtime to run it, dropping the leader hands it
            // to the list of orphans that the next runtime reaps.
            self.runtime.spawn(async move { leader.wait().await });
        }
    }
}

/// With process groups, and with a look at an ended process that does not reap it.
#[cfg(all(unix, not(any(target_os = "openbsd", target_os = "netbsd"))))]
impl Group {
    fn peek(&mut self) -> Option<Exit> {
        use rustix::process::{WaitId, WaitIdOptions, waitid};

        self.leader.as_ref()?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::Pid(self.id), options) {
                Ok(None) => return None,
                Ok(Some(status)) => {
                    let signal = || status.terminating_signal().map(Exit::Signal);
                    let exit = status.exit_status().map(Exit::Code).or_else(signal);
                    return Some(exit.unwrap_or(Exit::Unknown));
                }
                Err(rustix::io::Errno::INTR) => {}
                // Another part of this process waits for all children and took this one.
                Err(_) => return Some(Exit::Unknown),
            }
        }
    }
}

/// Without such a look, the leader is reaped at once and the rest of its group is killed together with it.
#[cfg(not(all(unix, not(any(target_os = "openbsd", target_os = "netbsd")))))]
impl Group {
    fn peek(&mut self) -> Option<Exit> {
        let exit = match self.leader.as_mut()?.try_wait() {
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
    /// Asks every process of the group to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    fn signal_kill(&mut self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if self.leader.is_none() {
            return;
        }
        // A group can be empty already, or hold processes of another user; neither can be helped.
        if let Err(error) = kill_process_group(self.id, signal) {
            tracing::debug!(%error, group = self.id.as_raw_nonzero().get(), "a process group was not signaled");
        }
    }

    async fn changed(&mut self) {
        if self.changes.recv().await.is_none() {
            // The runtime is shutting down, and this future with it.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(not(unix))]
impl Group {
    #[expect(clippy::unused_self, reason = "this system has no gentle way to end a process")]
    pub(super) fn terminate(&self) {}

    fn signal_kill(&mut self) {
        if let Some(leader) = &mut self.leader {
            // The only failure is a process that has ended.
            let _ = leader.start_kill();
        }
    }

    async fn changed(&mut self) {
        if let Some(leader) = &mut self.leader {
            // The result stays available to the look that follows.
            let _ = leader.wait().await;
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
