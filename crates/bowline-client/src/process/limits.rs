//! What a program may use of the machine.

use std::time::Duration;

/// What a program, and each process that it starts, may use. They hold from right after its start.
///
/// Only Linux can limit a process that it has not made itself; elsewhere a program with limits is not started, see
/// [`Limits::SUPPORTED`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Memory that it writes to, in bytes. More of it is refused by the system.
    pub memory: Option<u64>,
    /// Time on the processor, in whole seconds. Who uses more is ended.
    pub cpu_time: Option<Duration>,
    /// Open files. More are refused by the system.
    pub files: Option<u64>,
}

impl Limits {
    /// Whether this system can hold a program to limits.
    pub const SUPPORTED: bool = cfg!(target_os = "linux");

    /// No limits.
    pub fn new() -> Self {
        Self::default()
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use super::Limits;
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    use std::io;

    impl Limits {
        /// Holds a running program to them.
        pub(in crate::process) fn apply(self, program: Pid) -> io::Result<()> {
            let seconds = self.cpu_time.map(|time| time.as_secs().max(1));
            for (resource, limit, grace) in [
                (Resource::Data, self.memory, 0),
                (Resource::Cpu, seconds, 1),
                (Resource::Nofile, self.files, 0),
            ] {
                let Some(limit) = limit else { continue };
                // What this process may not exceed itself cannot be given away either.
                let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
                let (current, maximum) = (limit.min(most), limit.saturating_add(grace).min(most));
                prlimit(Some(program), resource, Rlimit { current: Some(current), maximum: Some(maximum) })?;
            }
            Ok(())
        }
    }
}
