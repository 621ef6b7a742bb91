//! A process group that the watchdog knows before the program joins it.
//!
//! The id of a group is that of its first process, which is unknown before it runs. If the program led its own group,
//! this process could be killed before the watchdog knows the group. So a shell creates the group, and exits by itself
//! when its input ends. The program joins the group. From then on the program keeps the id of the group from being
//! reused, and the shell is stopped.

use std::io;
use std::process::Child;

use rustix::process::Pid;

use super::watchdog::{self, SHELL};

/// A group that contains only the shell.
pub(super) struct PlaceholderGroup {
    holder: Child,
    group: Pid,
}

impl PlaceholderGroup {
    /// Creates a group. Fails if there is no shell, or the system lacks resources.
    pub(super) fn new() -> io::Result<Self> {
        watchdog::start();
        let holder = watchdog::spawn(SHELL, &["read -r _"])?;
        let group = i32::try_from(holder.id()).ok().and_then(Pid::from_raw);
        let group = group.ok_or_else(|| io::Error::other("the new process has no id"))?;
        watchdog::add(group);
        Ok(Self { holder, group })
    }

    pub(super) fn group(&self) -> Pid {
        self.group
    }

    /// Removes an unused group.
    pub(super) fn abandon(self) {
        watchdog::remove(self.group);
    }
}

impl Drop for PlaceholderGroup {
    fn drop(&mut self) {
        // The shell only waits for its input, so it can be reaped immediately after the kill. It may also have exited.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
