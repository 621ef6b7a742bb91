//! Which processes of a run there are, as `/proc` has them.

use crate::{MARK, Result};
use std::{fs, io};
use tokio::process::Command;

/// What the watchdog of child processes is called in a list of processes.
const WATCHDOG: &str = "bowline-watchdog";

/// The processes of one run.
pub(crate) struct Census {
    /// Those that bear the mark. What has ended and was not yet waited for bears none.
    pub(crate) marked: Vec<u32>,
    /// The watchdog of the host, which has an environment of its own and so no mark.
    pub(crate) watchdog: Option<u32>,
}

impl Census {
    pub(crate) fn take(mark: &str, host: u32) -> Result<Self> {
        let wanted = format!("{MARK}={mark}");
        let (mut marked, mut watchdog) = (Vec::new(), None);
        for entry in fs::read_dir("/proc")? {
            let Some(id) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if read(id, "environ")?.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()) {
                marked.push(id);
            }
            if watchdog.is_none() && is_watchdog(id) && parent(id)? == Some(host) {
                watchdog = Some(id);
            }
        }
        Ok(Self { marked, watchdog })
    }

    /// Ends what is left.
    pub(crate) async fn end_all(&self) -> Result<()> {
        for id in &self.marked {
            // One that has ended meanwhile is as good.
            let _ = Command::new("kill").args(["-KILL", &id.to_string()]).status().await?;
        }
        Ok(())
    }
}

/// Whether the process of this number is a watchdog.
pub(crate) fn is_watchdog(id: u32) -> bool {
    read(id, "cmdline")
        .is_ok_and(|line| line.split(|byte| *byte == 0).any(|word| word == WATCHDOG.as_bytes()))
}

/// A file of a process; empty when the process is gone, or is not ours to look into.
fn read(id: u32, name: &str) -> Result<Vec<u8>> {
    match fs::read(format!("/proc/{id}/{name}")) {
        Ok(bytes) => Ok(bytes),
        // The last is told of a process that ends while it is looked at.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
                || error.raw_os_error() == Some(NO_SUCH_PROCESS) =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(error.into()),
    }
}

const NO_SUCH_PROCESS: i32 = 3;

/// The parent of a process.
fn parent(id: u32) -> Result<Option<u32>> {
    let status = String::from_utf8_lossy(&read(id, "status")?).into_owned();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    Ok(line.and_then(|parent| parent.trim().parse().ok()))
}
