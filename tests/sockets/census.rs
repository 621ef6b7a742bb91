//! What a server holds, counted by itself.

use crate::{Result, clients::Connection};
use bowline::data;
use serde_json::json;
use std::{fmt, fs};

/// What a server holds.
#[data]
#[derive(Clone, Debug)]
pub(crate) struct Census {
    /// Sessions that are open.
    pub(crate) sessions: u64,
    /// Tasks that are alive.
    pub(crate) tasks: u64,
    /// Sockets that are open.
    pub(crate) sockets: u64,
    /// Memory in use, in KiB.
    pub(crate) memory: u64,
}

impl Census {
    /// Counts in this process.
    pub(crate) fn take(sessions: usize) -> Result<Self> {
        let mut sockets = 0;
        for entry in fs::read_dir("/proc/self/fd")? {
            // One that is closed meanwhile, such as that of the folder itself, leads nowhere.
            let target = fs::read_link(entry?.path()).unwrap_or_default();
            sockets += u64::from(target.to_string_lossy().starts_with("socket:"));
        }
        Ok(Self {
            sessions: u64::try_from(sessions)?,
            tasks: u64::try_from(tokio::runtime::Handle::current().metrics().num_alive_tasks())?,
            sockets,
            memory: memory_of(std::process::id())?,
        })
    }

    /// Asks a server. The connection for it is among what is counted, each time.
    pub(crate) async fn ask(address: &str) -> Result<Self> {
        let mut connection = Connection::open(address).await?;
        let reply = connection.modern("tools/call", Some("census"), json!({ "name": "census" })).await?;
        Ok(serde_json::from_value(reply["result"]["structuredContent"].clone())?)
    }

    /// Whether there is as much of everything but memory.
    pub(crate) fn is_as_full_as(&self, start: &Self) -> bool {
        (self.sessions, self.tasks, self.sockets) == (start.sessions, start.tasks, start.sockets)
    }
}

/// Resident memory of a process, in KiB.
pub(crate) fn memory_of(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    Ok(memory.ok_or("the kernel does not report resident memory")?.parse()?)
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sessions, tasks, sockets, memory } = self;
        write!(f, "{sessions} sessions, {tasks} tasks, {sockets} sockets, {} MiB", memory / 1024)
    }
}
