//! What runs: how a `bowline up` tells the other commands of the same user where it is.
//!
//! Each has a file of its own, named by its port, in a folder that nobody else can write. What it says is believed for the
//! address only as long as its process is there.

use crate::{folders, surroundings::Surroundings};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    time::SystemTime,
};

/// The port that is used unless another one is asked for.
pub(crate) const PORT: u16 = 7337;

/// An address to listen on, as it is typed: a port alone is one of this machine.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    let here = port.parse().ok().map(|port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    here.or_else(|| text.parse().ok())
        .ok_or_else(|| "expected a port, or an address and a port such as 127.0.0.1:8080".to_owned())
}

/// The endpoint, as clients on this machine reach it.
pub(crate) fn url(address: SocketAddr, path: &str) -> String {
    let mut reached = address;
    if address.ip().is_unspecified() {
        reached.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{reached}{path}")
}

/// A host that runs.
#[derive(Clone, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Running {
    /// The endpoint.
    pub(crate) url: String,
    /// The process.
    pub(crate) pid: u32,
    /// What clients have to send, where it wants something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("url", &self.url).field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl Running {
    /// One that has not told that it runs, where it would be.
    pub(crate) fn usual() -> Self {
        Self { url: url(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)), "/mcp"), pid: 0, token: None }
    }

    /// The one that commands without a target mean: at the usual port, or else the one that was started last.
    pub(crate) fn find(surroundings: &Surroundings) -> Option<Self> {
        let folders = folders::runtime(surroundings);
        let usual = folders.iter().find_map(|folder| read(&folder.join(name(PORT))));
        usual.or_else(|| {
            let mut all: Vec<(SystemTime, Self)> = folders.iter().flat_map(|folder| all(folder)).collect();
            all.sort_by_key(|(since, _)| *since);
            all.pop().map(|(_, running)| running)
        })
    }

    /// The one at a port.
    pub(crate) fn at(surroundings: &Surroundings, port: u16) -> Option<Self> {
        folders::runtime(surroundings).iter().find_map(|folder| read(&folder.join(name(port))))
    }

    /// Tells the other commands, until what comes back is dropped. Fails where no folder can be used.
    pub(crate) fn tell(self, surroundings: &Surroundings, port: u16) -> io::Result<Told> {
        let text = serde_json::to_string(&self).map_err(io::Error::from)?;
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for folder in folders::runtime(surroundings) {
            let path = folder.join(name(port));
            match folders::make_private(&folder)
                .and_then(|()| folders::replace(&path, |new| write(new, &text)))
            {
                Ok(()) => return Ok(Told { path, running: self }),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// What was told. It is taken back when this is dropped.
#[derive(Debug)]
pub(crate) struct Told {
    path: PathBuf,
    running: Running,
}

impl Drop for Told {
    fn drop(&mut self) {
        // Another one may have come in the place of this one.
        if read(&self.path).is_some_and(|running| running == self.running) {
            let _: io::Result<()> = fs::remove_file(&self.path);
        }
    }
}

fn name(port: u16) -> String {
    format!("up-{port}.json")
}

/// Writes the file for the user alone.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file =
        folders::private(fs::OpenOptions::new().write(true).create(true).truncate(true)).open(path)?;
    file.write_all(text.as_bytes())
}

fn all(folder: &Path) -> Vec<(SystemTime, Running)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let told = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let file = entry.file_name();
        let file = file.to_str()?;
        let is_ours = file.starts_with("up-") && Path::new(file).extension().is_some_and(|end| end == "json");
        let since = entry.metadata().ok()?.modified().ok()?;
        is_ours.then(|| Some((since, read(&entry.path())?))).flatten()
    });
    told.collect()
}

/// What a file tells, if its process is still there.
fn read(path: &Path) -> Option<Running> {
    if !path.parent().is_some_and(folders::is_private) {
        return None;
    }
    let running: Running = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    is_there(running.pid).then_some(running)
}

#[cfg(unix)]
fn is_there(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    // One of another user cannot be asked, and is there.
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
fn is_there(_: u32) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_host::config::Environment;

    fn surroundings(folder: &Path) -> Surroundings {
        let variables = [("XDG_RUNTIME_DIR", folder.display().to_string())];
        let mut surroundings = Surroundings::of_this_process(&[]);
        surroundings.environment = Environment::new(variables);
        surroundings
    }

    fn at(port: u16, pid: u32) -> Running {
        Running { url: format!("http://127.0.0.1:{port}/mcp"), pid, token: Some("s3cret".to_owned()) }
    }

    #[test]
    fn a_port_alone_is_one_of_this_machine() {
        let read = |text| address(text).map(|address| address.to_string());
        assert_eq!(read("8099").as_deref(), Ok("127.0.0.1:8099"));
        assert_eq!(read("localhost:8099").as_deref(), Ok("127.0.0.1:8099"));
        assert_eq!(read("[::1]:0").as_deref(), Ok("[::1]:0"));
        assert!(read("example.com:80").is_err());
        assert!(read("99999").is_err());
    }

    #[test]
    fn an_address_for_everybody_is_reached_on_this_machine() {
        let check = |address: &str, expected: &str| {
            assert_eq!(url(address.parse().expect("an address"), "/mcp"), expected);
        };
        check("127.0.0.1:7337", "http://127.0.0.1:7337/mcp");
        check("0.0.0.0:80", "http://127.0.0.1:80/mcp");
        check("[::]:80", "http://[::1]:80/mcp");
    }

    #[test]
    fn who_runs_is_found_until_it_ends() {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let surroundings = surroundings(folder.path());
        let me = std::process::id();
        let other = at(9000, me).tell(&surroundings, 9000).expect("the folder can be written");
        assert_eq!(Running::find(&surroundings), Some(at(9000, me)));
        let usual = at(PORT, me).tell(&surroundings, PORT).expect("the folder can be written");
        assert_eq!(Running::find(&surroundings), Some(at(PORT, me)));
        assert_eq!(Running::at(&surroundings, 9000), Some(at(9000, me)));
        assert_eq!(Running::at(&surroundings, 9001), None);
        drop(usual);
        assert_eq!(Running::find(&surroundings), Some(at(9000, me)));
        drop(other);
        assert_eq!(Running::at(&surroundings, 9000), None);
        assert!(!format!("{:?}", at(1, 1)).contains("s3cret"));
    }

    #[cfg(unix)]
    #[test]
    fn what_a_process_left_behind_that_is_gone_counts_for_nothing() {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let surroundings = surroundings(folder.path());
        // More than any system numbers its processes with.
        let _left = at(PORT, 0x7fff_fff0).tell(&surroundings, PORT).expect("the folder can be written");
        assert_eq!(Running::at(&surroundings, PORT), None);
    }
}
