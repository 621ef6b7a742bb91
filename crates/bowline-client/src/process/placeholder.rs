//! A process group that the watchdog knows before there is a program in it.
//!
//! The number of a group is that of its first process, which nobody knows before it runs. A program that led its own group
//! could so be running and on nobody's list when this process is killed. Therefore a shell goes first, which ends by itself
//! when its input does, and the program joins its group. Once it has, its membership is what keeps the number of the group
//! from meaning a stranger, and the shell makes way.

use std::io;
use std::process::Child;

use rustix::process::Pid;

use super::watchdog::{self, SHELL};

/// A group with nothing in it but what holds its place.
pub(super) struct PlaceholderGroup {
    holder: Child,
    group: Pid,
}

impl PlaceholderGroup {
    /// Makes a group. Fails when there is no shell, or no room for it.
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

    /// The group has come to nothing.
    pub(super) fn abandon(self) {
        watchdog::remove(self.group);
    }
}

impl Drop for PlaceholderGroup {
    fn drop(&mut self) {
        // It waits for nothing else, so that it can be reaped at once. One that has ended is as good.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
