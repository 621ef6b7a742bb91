//! Resource limits of a program.

use std::time::Duration;

/// Resource limits of a program and of each process that it starts. They apply right after the start.
///
/// Only Linux can limit a running process. On other systems a program with limits is not started; see
/// [`Limits::SUPPORTED`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Writable memory in bytes. Further allocations fail.
    pub memory: Option<u64>,
    /// CPU time in whole seconds. A process that uses more is killed.
    pub cpu_time: Option<Duration>,
    /// Open files. Opening more fails.
    pub files: Option<u64>,
}

impl Limits {
    /// Whether this system supports limits.
    pub const SUPPORTED: bool = cfg!(target_os = "linux");

    /// Creates limits without any restriction.
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
        /// Applies the limits to a running program.
        pub(in crate::process) fn apply(self, program: Pid) -> io::Result<()> {
            let seconds = self.cpu_time.map(|time| time.as_secs().max(1));
            for (resource, limit, grace) in [
                (Resource::Data, self.memory, 0),
                (Resource::Cpu, seconds, 1),
                (Resource::Nofile, self.files, 0),
            ] {
                let Some(limit) = limit else { continue };
                // A limit cannot exceed the hard limit of this process.
                let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
                let (current, maximum) = (limit.min(most), limit.saturating_add(grace).min(most));
                prlimit(Some(program), resource, Rlimit { current: Some(current), maximum: Some(maximum) })?;
            }
            Ok(())
        }
    }
}
