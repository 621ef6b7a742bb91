//! Records what runs, so that other commands of the same user find a gateway and know the token of a server.
//!
//! Each process writes its own file, named by kind and port, into a folder that nobody else can write to. A file counts only
//! while its process holds the lock beside it. Commands send a token nowhere else: another user can take a free port.

use crate::{
    context::Context, environment::ProcessEnvironment, gateway_setup::GatewaySetup,
    inspector_setup::InspectorAccess, paths, token::Access,
};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// The default port.
pub(crate) const PORT: u16 = 7337;

/// Parses an address to listen on. A port alone means 127.0.0.1.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    let here = port.parse().ok().map(|port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    here.or_else(|| text.parse().ok())
        .ok_or_else(|| "expected a port, or an address and a port such as 127.0.0.1:8080".to_owned())
}

/// Returns the URL of the endpoint for clients on this machine.
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

/// What kind of process wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `bowline up` or `bowline gateway`: what commands without a target mean.
    Gateway,
    /// `bowline serve --http`: found by its URL only.
    Server,
}

impl Kind {
    fn file(self, port: u16) -> String {
        match self {
            Self::Gateway => format!("up-{port}.json"),
            Self::Server => format!("serve-{port}.json"),
        }
    }

    fn of_file(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(".json")?;
        if stem.starts_with("up-") {
            Some(Self::Gateway)
        } else if stem.starts_with("serve-") {
            Some(Self::Server)
        } else {
            None
        }
    }
}

/// A gateway or server that runs.
#[derive(Clone, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct RunningGateway {
    /// The URL of the endpoint.
    pub(crate) url: String,
    /// The process id.
    pub(crate) pid: u32,
    /// The token that clients must send, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// Its inspector, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) inspector: Option<InspectorAccess>,
}

impl std::fmt::Debug for RunningGateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningGateway")
            .field("url", &self.url)
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

impl RunningGateway {
    /// Finds the default gateway: the one on the default port, or else the one started last.
    pub(crate) fn find(environment: &ProcessEnvironment) -> Option<Self> {
        Self::at(environment, PORT).or_else(|| {
            let mut all = all(environment, &[Kind::Gateway]);
            all.sort_by_key(|(since, _)| *since);
            all.pop().map(|(_, running)| running)
        })
    }

    /// Finds the gateway on a port.
    pub(crate) fn at(environment: &ProcessEnvironment, port: u16) -> Option<Self> {
        paths::runtime_dirs(environment)
            .iter()
            .find_map(|folder| read(&folder.join(Kind::Gateway.file(port))))
    }

    /// The gateway or server at a URL, if it belongs to this user.
    pub(crate) fn at_url(environment: &ProcessEnvironment, url: &str) -> Option<Self> {
        // The path does not matter: the process that has the port wrote the file.
        let origin = |url: &str| {
            let url = url.replacen("//localhost:", "//127.0.0.1:", 1);
            url.split('/').take(3).map(str::to_owned).collect::<Vec<_>>()
        };
        let mut all =
            all(environment, &[Kind::Gateway, Kind::Server]).into_iter().map(|(_, running)| running);
        all.find(|running| origin(&running.url) == origin(url))
    }

    /// Makes it known to the other commands until the returned value is dropped. Fails if no folder can be used.
    ///
    /// Drop the value before closing the socket: whoever finds the file relies on the port being ours.
    pub(crate) fn announce(
        self,
        environment: &ProcessEnvironment,
        kind: Kind,
        port: u16,
    ) -> io::Result<Announcement> {
        let text = serde_json::to_string(&self).map_err(io::Error::from)?;
        let folders = paths::runtime_dirs(environment);
        let Some((last, best)) = folders.split_last() else { return Err(io::ErrorKind::NotFound.into()) };
        // Other commands may know only one of the directories: a service has no login session.
        let mut files = Vec::new();
        let mut error = None;
        for folder in best {
            match AnnouncementFile::take(folder, &kind.file(port), &text) {
                Ok(file) => files.push(file),
                // Another gateway uses this port on another address. It stays the one that is found.
                Err(failed) if failed.kind() == io::ErrorKind::WouldBlock => return Err(failed),
                Err(failed) => error = error.or(Some(failed)),
            }
        }
        if files.is_empty() {
            files.push(
                AnnouncementFile::take(last, &kind.file(port), &text)
                    .map_err(|failed| error.unwrap_or(failed))?,
            );
        }
        Ok(Announcement { _files: files })
    }
}

/// The announcement of a gateway. Dropping it removes the files.
#[derive(Debug)]
pub(crate) struct Announcement {
    _files: Vec<AnnouncementFile>,
}

/// A file and a lock that proves that the process which wrote the file is still running.
///
/// A process id is not sufficient proof: ids are reused.
#[derive(Debug)]
struct AnnouncementFile {
    path: PathBuf,
    lock: File,
}

impl AnnouncementFile {
    fn take(folder: &Path, name: &str, text: &str) -> io::Result<Self> {
        paths::create_private_dir(folder)?;
        let path = folder.join(name);
        let lock = acquire(&path.with_extension("lock"))?;
        bowline_files::replace(&path, text.as_bytes())?;
        Ok(Self { path, lock })
    }
}

impl Drop for AnnouncementFile {
    fn drop(&mut self) {
        for path in [&self.path, &self.path.with_extension("lock")] {
            let _: io::Result<()> = fs::remove_file(path);
        }
        let _: io::Result<()> = self.lock.unlock();
    }
}

/// How often locking is tried: commands that check the lock hold it for a moment.
const TRIES: usize = 50;

/// Locks a file. Fails if another process holds the lock.
fn acquire(path: &Path) -> io::Result<File> {
    for _ in 0..TRIES {
        let lock = bowline_files::private(OpenOptions::new().write(true).create(true)).open(path)?;
        match lock.try_lock() {
            // The previous owner may have removed the file after it was opened here.
            Ok(()) if is_at(&lock, path) => return Ok(lock),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    let message = format!("another process has locked `{}`", path.display());
    Err(io::Error::new(io::ErrorKind::WouldBlock, message))
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(open), Ok(there)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (open.dev(), open.ino()) == (there.dev(), there.ino())
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.is_file()
}

/// Returns whether a running process holds the lock of a file.
fn is_locked(path: &Path) -> bool {
    let Ok(lock) = File::open(path) else { return false };
    matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Returns the gateway on a port, or the default one, and the file that it keeps locked until it exits.
pub(crate) fn attach(environment: &ProcessEnvironment, port: Option<u16>) -> Option<(RunningGateway, File)> {
    let running = match port {
        Some(port) => RunningGateway::at(environment, port),
        None => RunningGateway::find(environment),
    }?;
    let port = port.or_else(|| running.url.parse::<http::Uri>().ok()?.port_u16())?;
    let paths =
        paths::runtime_dirs(environment).into_iter().map(|folder| folder.join(Kind::Gateway.file(port)));
    let path = paths.into_iter().find(|path| read(path).as_ref() == Some(&running))?;
    Some((running, File::open(path.with_extension("lock")).ok()?))
}

/// Announces a gateway to other commands of this user.
pub(crate) fn announce(
    context: &Context,
    setup: &GatewaySetup,
    access: &Access,
    address: SocketAddr,
    inspector: Option<InspectorAccess>,
) -> io::Result<Announcement> {
    let url = url(address, &setup.gateway.config().gateway.path);
    let token = access.token().map(str::to_owned);
    RunningGateway { url, pid: std::process::id(), token, inspector }.announce(
        &context.environment,
        Kind::Gateway,
        address.port(),
    )
}

/// Makes a server of `bowline serve --http` known to the other commands of this user.
pub(crate) fn announce_server(
    context: &Context,
    access: &Access,
    address: SocketAddr,
    path: &str,
) -> io::Result<Announcement> {
    let running = RunningGateway {
        url: url(address, path),
        pid: std::process::id(),
        token: access.token().map(str::to_owned),
        inspector: None,
    };
    running.announce(&context.environment, Kind::Server, address.port())
}

fn all(environment: &ProcessEnvironment, kinds: &[Kind]) -> Vec<(SystemTime, RunningGateway)> {
    paths::runtime_dirs(environment).iter().flat_map(|folder| all_in(folder, kinds)).collect()
}

fn all_in(folder: &Path, kinds: &[Kind]) -> Vec<(SystemTime, RunningGateway)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let gateways = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let file = entry.file_name();
        Kind::of_file(file.to_str()?).filter(|kind| kinds.contains(kind))?;
        let since = entry.metadata().ok()?.modified().ok()?;
        Some((since, read(&entry.path())?))
    });
    gateways.collect()
}

/// Reads a file, if the process that wrote it is still running.
fn read(path: &Path) -> Option<RunningGateway> {
    if !path.parent().is_some_and(paths::is_private_dir) || !is_locked(&path.with_extension("lock")) {
        return None;
    }
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(folder: &Path) -> ProcessEnvironment {
        let login = folder.join("login").display().to_string();
        ProcessEnvironment::for_test(folder, &[("XDG_RUNTIME_DIR", &login)])
    }

    fn at(port: u16, pid: u32) -> RunningGateway {
        RunningGateway {
            url: format!("http://127.0.0.1:{port}/mcp"),
            pid,
            token: Some("s3cret".to_owned()),
            inspector: None,
        }
    }

    #[test]
    fn a_port_alone_means_loopback() {
        // proves: HTTP-07
        let read = |text| address(text).map(|address| address.to_string());
        assert_eq!(read("8099").as_deref(), Ok("127.0.0.1:8099"));
        assert_eq!(read("localhost:8099").as_deref(), Ok("127.0.0.1:8099"));
        assert_eq!(read("[::1]:0").as_deref(), Ok("[::1]:0"));
        assert!(read("example.com:80").is_err());
        assert!(read("99999").is_err());
    }

    #[test]
    fn an_unspecified_address_is_reached_over_loopback() {
        let check = |address: &str, expected: &str| {
            assert_eq!(url(address.parse().expect("an address"), "/mcp"), expected);
        };
        check("127.0.0.1:7337", "http://127.0.0.1:7337/mcp");
        check("0.0.0.0:80", "http://127.0.0.1:80/mcp");
        check("[::]:80", "http://[::1]:80/mcp");
    }

    #[test]
    fn a_gateway_is_found_until_it_exits() {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let environment = environment(folder.path());
        let me = std::process::id();
        let other =
            at(9000, me).announce(&environment, Kind::Gateway, 9000).expect("the folder can be written");
        assert_eq!(RunningGateway::find(&environment), Some(at(9000, me)));
        let usual =
            at(PORT, me).announce(&environment, Kind::Gateway, PORT).expect("the folder can be written");
        assert_eq!(RunningGateway::find(&environment), Some(at(PORT, me)));
        assert_eq!(RunningGateway::at(&environment, 9000), Some(at(9000, me)));
        assert_eq!(RunningGateway::at(&environment, 9001), None);
        drop(usual);
        assert_eq!(RunningGateway::find(&environment), Some(at(9000, me)));
        drop(other);
        assert_eq!(RunningGateway::at(&environment, 9000), None);
        assert!(!format!("{:?}", at(1, 1)).contains("s3cret"));
    }

    #[test]
    fn a_server_is_found_by_its_url_only() {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let environment = environment(folder.path());
        let server =
            at(PORT, 1).announce(&environment, Kind::Server, PORT).expect("the folder can be written");
        assert_eq!(RunningGateway::find(&environment), None);
        assert_eq!(RunningGateway::at(&environment, PORT), None);
        assert_eq!(RunningGateway::at_url(&environment, &at(PORT, 1).url), Some(at(PORT, 1)));
        drop(server);
        assert_eq!(RunningGateway::at_url(&environment, &at(PORT, 1).url), None);
    }

    #[test]
    fn a_file_is_trusted_only_while_its_process_holds_the_lock() {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let environment = environment(folder.path());
        let running = at(PORT, std::process::id());
        drop(running.clone().announce(&environment, Kind::Gateway, PORT).expect("the folder can be written"));
        // What a process that was killed leaves: its files, without a lock. Its id may be somebody else's by now.
        for file in paths::runtime_dirs(&environment).iter().filter(|file| file.is_dir()) {
            let text = serde_json::to_string(&running).expect("it is JSON");
            fs::write(file.join(Kind::Gateway.file(PORT)), text).expect("it is ours");
            fs::write(file.join(Kind::Gateway.file(PORT)).with_extension("lock"), "").expect("it is ours");
        }
        assert_eq!(RunningGateway::at(&environment, PORT), None);
        assert_eq!(RunningGateway::find(&environment), None);
        assert_eq!(RunningGateway::at_url(&environment, &running.url), None);
        // The next gateway replaces the files.
        let announcement =
            running.clone().announce(&environment, Kind::Gateway, PORT).expect("nobody holds the lock");
        assert_eq!(RunningGateway::at_url(&environment, "http://localhost:7337/mcp"), Some(running.clone()));
        assert!(running.announce(&environment, Kind::Gateway, PORT).is_err(), "one holds it");
        drop(announcement);
    }

    #[test]
    fn a_gateway_is_found_through_any_of_its_directories() {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let _announcement = at(PORT, 1)
            .announce(&environment(folder.path()), Kind::Gateway, PORT)
            .expect("the folder can be written");
        let without_login = ProcessEnvironment::for_test(folder.path(), &[]);
        assert_eq!(RunningGateway::find(&without_login), Some(at(PORT, 1)));
    }

    #[cfg(unix)]
    #[test]
    fn announcements_are_readable_only_by_the_user() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let environment = environment(folder.path());
        let _announcement =
            at(PORT, 1).announce(&environment, Kind::Gateway, PORT).expect("the folder can be written");
        let file = folder.path().join("login/bowline").join(Kind::Gateway.file(PORT));
        let mode = fs::metadata(&file).expect("it was written").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
