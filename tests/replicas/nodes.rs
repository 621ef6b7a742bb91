//! The processes, their balancer, and what is between them and their store.

use crate::{
    proxy::{Link, Proxy},
    wire,
};
use std::{
    fmt::Write as _,
    net::{SocketAddr, ToSocketAddrs as _},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::{
    process::{Child, Command},
    sync::Mutex,
    time::sleep,
};

/// How the processes are started.
pub(crate) struct Settings {
    /// The URL of the store. FOLDER stands for a folder of this run.
    pub(crate) store: String,
    /// After which time another process takes over a task.
    pub(crate) lease: Duration,
    /// What the processes do wrong on purpose.
    pub(crate) broken: String,
    /// Commands of a shell that kill and start the store.
    pub(crate) kill_store: Option<String>,
    pub(crate) start_store: Option<String>,
}

struct Node {
    port: u16,
    store: String,
    proxy: Option<Proxy>,
    child: Mutex<Option<Child>>,
}

pub(crate) struct Nodes {
    folder: Folder,
    program: PathBuf,
    settings: Settings,
    balancer_port: u16,
    all: Vec<Node>,
    _balancer: Child,
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A port that nobody listens on, below those that connections are given.
fn free_port(taken: &mut Vec<u16>) -> Result<u16, String> {
    for port in 21000..30000 {
        let port = port + u16::try_from(std::process::id() % 1000).unwrap_or(0);
        if !taken.contains(&port) && std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            taken.push(port);
            return Ok(port);
        }
    }
    Err("no free port".into())
}

/// Splits a URL of a server into what comes before its address, the address, and what comes after it. `None` for a file.
fn address(url: &str) -> Option<(&str, &str, &str)> {
    let start = url.find("://")? + 3;
    let end = url[start..].find(['/', '?']).map_or(url.len(), |end| start + end);
    let start = url[start..end].rfind('@').map_or(start, |at| start + at + 1);
    Some((&url[..start], &url[start..end], &url[end..]))
}

impl Nodes {
    pub(crate) async fn new(count: usize, settings: Settings) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let program = std::env::current_exe().map_err(text)?.with_file_name("replica");
        let folder = Folder(std::env::temp_dir().join(format!("bowline-replicas-{}", std::process::id())));
        std::fs::create_dir_all(&folder.0).map_err(text)?;
        let url = settings.store.replace("FOLDER", &folder.0.to_string_lossy());
        let mut taken = Vec::new();
        let balancer_port = free_port(&mut taken)?;
        let mut all = Vec::new();
        let mut servers = String::new();
        for number in 0..count {
            let port = free_port(&mut taken)?;
            let check = "check inter 500 on-marked-down shutdown-sessions";
            writeln!(servers, "    server node{number} 127.0.0.1:{port} {check}")
                .expect("a string can be written to");
            let (mut store, mut proxy) = (url.clone(), None);
            if let Some((before, address, after)) = address(&url) {
                let mut found = address.to_socket_addrs().map_err(|error| format!("{address}: {error}"))?;
                let to: SocketAddr = found.next().ok_or_else(|| format!("{address} has no address"))?;
                let port = free_port(&mut taken)?;
                proxy = Some(Proxy::new(port, to).await?);
                store = format!("{before}127.0.0.1:{port}{after}");
            }
            all.push(Node { port, store, proxy, child: Mutex::new(None) });
        }
        // Round robin, and nothing that binds a session to a process.
        let config = format!(
            "defaults\n    mode http\n    option http-no-delay\n    option redispatch 1\n    retries 3\n    timeout connect 2s\n    \
             timeout client 100s\n    timeout server 100s\n    timeout check 2s\n\nfrontend in\n    bind 127.0.0.1:{balancer_port}\n    \
             default_backend out\n\nbackend out\n    balance roundrobin\n    option httpchk GET /livez\n{servers}"
        );
        let path = folder.0.join("haproxy.cfg");
        std::fs::write(&path, config).map_err(text)?;
        let haproxy = if Path::new("/usr/sbin/haproxy").exists() { "/usr/sbin/haproxy" } else { "haproxy" };
        let balancer = Command::new(haproxy).args(["-q", "-db", "-f"]).arg(&path).kill_on_drop(true).spawn();
        let balancer = balancer.map_err(|error| format!("cannot start haproxy: {error}"))?;
        let nodes = Self { folder, program, settings, balancer_port, all, _balancer: balancer };
        for node in 0..count {
            nodes.start(node).await?;
        }
        // Until the balancer knows all of them.
        sleep(Duration::from_secs(2)).await;
        nodes.answers(balancer_port).await?;
        Ok(nodes)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn port(&self) -> u16 {
        self.balancer_port
    }

    pub(crate) fn lease(&self) -> Duration {
        self.settings.lease
    }

    pub(crate) fn history(&self) -> PathBuf {
        self.folder.0.join("history")
    }

    async fn answers(&self, port: u16) -> Result<(), String> {
        for _ in 0..300 {
            if wire::send(port, "DELETE", &[], None).await.is_ok_and(|reply| reply.status == 400) {
                return Ok(());
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err(format!("nothing answers on port {port}"))
    }

    pub(crate) async fn start(&self, number: usize) -> Result<(), String> {
        let node = &self.all[number];
        let mut command = Command::new(&self.program);
        command.arg(node.port.to_string()).arg(&node.store).arg(self.history()).arg(format!("node{number}"));
        command.arg(self.settings.lease.as_millis().to_string()).arg(&self.settings.broken);
        let started = command.stdin(Stdio::null()).kill_on_drop(true).spawn();
        *node.child.lock().await =
            Some(started.map_err(|error| format!("cannot start {}: {error}", self.program.display()))?);
        self.answers(node.port).await
    }

    /// Ends a process without a word. Returns its name in the history.
    pub(crate) async fn kill(&self, number: usize) -> Result<Option<String>, String> {
        let Some(mut child) = self.all[number].child.lock().await.take() else { return Ok(None) };
        let name = child.id().map(|process| format!("node{number}.{process}"));
        child.kill().await.map_err(|error| error.to_string())?;
        Ok(name)
    }

    /// Ends a process in its own time.
    pub(crate) async fn terminate(&self, node: usize) -> Result<(), String> {
        self.signal(node, "TERM")?;
        let Some(mut child) = self.all[node].child.lock().await.take() else { return Ok(()) };
        child.wait().await.map_err(|error| error.to_string()).map(drop)
    }

    pub(crate) fn signal(&self, node: usize, signal: &str) -> Result<(), String> {
        let child = self.all[node].child.try_lock().map_err(|error| error.to_string())?;
        let Some(process) = child.as_ref().and_then(Child::id) else { return Ok(()) };
        let sent =
            std::process::Command::new("kill").arg(format!("-{signal}")).arg(process.to_string()).status();
        sent.map_err(|error| error.to_string()).map(drop)
    }

    /// Changes what is between one process, or all of them, and the store.
    pub(crate) fn link(&self, node: Option<usize>, link: Link) -> Result<(), String> {
        for (number, known) in self.all.iter().enumerate() {
            if node.is_none_or(|node| node == number) {
                known.proxy.as_ref().ok_or("a store in a file has no connection to break")?.set(link);
            }
        }
        Ok(())
    }

    pub(crate) async fn kill_store(&self) -> Result<(), String> {
        shell(self.settings.kill_store.as_deref()).await
    }

    pub(crate) async fn start_store(&self) -> Result<(), String> {
        shell(self.settings.start_store.as_deref()).await
    }
}

async fn shell(command: Option<&str>) -> Result<(), String> {
    let command = command.ok_or("nobody said how to kill and start the store")?;
    let status = Command::new("bash").arg("-c").arg(command).stdin(Stdio::null()).status().await;
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{command}` failed: {status}")),
        Err(error) => Err(format!("`{command}` failed: {error}")),
    }
}
