//! The processes and their balancer.

use crate::wire;
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::{
    process::{Child, Command},
    sync::Mutex,
    time::sleep,
};

pub(crate) struct Nodes {
    folder: PathBuf,
    program: PathBuf,
    store: String,
    balancer_port: u16,
    all: Vec<(u16, Mutex<Option<Child>>)>,
    _balancer: Child,
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

impl Nodes {
    pub(crate) async fn new(count: usize, store: &str) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let program = std::env::current_exe().map_err(text)?.with_file_name("replica");
        let folder = std::env::temp_dir().join(format!("bowline-replicas-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(text)?;
        let store = store.replace("FOLDER", &folder.to_string_lossy());
        let mut taken = Vec::new();
        let balancer_port = free_port(&mut taken)?;
        let mut all = Vec::new();
        let mut servers = String::new();
        for number in 0..count {
            let port = free_port(&mut taken)?;
            let check = "check inter 500 on-marked-down shutdown-sessions";
            writeln!(servers, "    server node{number} 127.0.0.1:{port} {check}")
                .expect("a string can be written to");
            all.push((port, Mutex::new(None)));
        }
        // Round robin, and nothing that binds a session to a process.
        let settings = format!(
            "defaults\n    mode http\n    option http-no-delay\n    option redispatch 1\n    retries 3\n    timeout connect 2s\n    \
             timeout client 100s\n    timeout server 100s\n    timeout check 2s\n\nfrontend in\n    bind 127.0.0.1:{balancer_port}\n    \
             default_backend out\n\nbackend out\n    balance roundrobin\n    option httpchk GET /livez\n{servers}"
        );
        let path = folder.join("haproxy.cfg");
        std::fs::write(&path, settings).map_err(text)?;
        let haproxy = if Path::new("/usr/sbin/haproxy").exists() { "/usr/sbin/haproxy" } else { "haproxy" };
        let balancer = Command::new(haproxy).args(["-q", "-db", "-f"]).arg(&path).kill_on_drop(true).spawn();
        let balancer = balancer.map_err(|error| format!("cannot start haproxy: {error}"))?;
        let nodes = Self { folder, program, store, balancer_port, all, _balancer: balancer };
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

    pub(crate) fn history(&self) -> PathBuf {
        self.folder.join("history")
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

    pub(crate) async fn start(&self, node: usize) -> Result<(), String> {
        let (port, child) = &self.all[node];
        let mut command = Command::new(&self.program);
        command.arg(port.to_string()).arg(&self.store).arg(self.history());
        let started = command.stdin(Stdio::null()).kill_on_drop(true).spawn();
        *child.lock().await =
            Some(started.map_err(|error| format!("cannot start {}: {error}", self.program.display()))?);
        self.answers(*port).await
    }

    /// Ends a process without a word.
    pub(crate) async fn kill(&self, node: usize) -> Result<(), String> {
        let Some(mut child) = self.all[node].1.lock().await.take() else { return Ok(()) };
        child.kill().await.map_err(|error| error.to_string())
    }

    /// Ends a process in its own time.
    pub(crate) async fn terminate(&self, node: usize) -> Result<(), String> {
        self.signal(node, "TERM")?;
        let Some(mut child) = self.all[node].1.lock().await.take() else { return Ok(()) };
        child.wait().await.map_err(|error| error.to_string()).map(drop)
    }

    pub(crate) fn signal(&self, node: usize, signal: &str) -> Result<(), String> {
        let child = self.all[node].1.try_lock().map_err(|error| error.to_string())?;
        let Some(process) = child.as_ref().and_then(Child::id) else { return Ok(()) };
        let sent =
            std::process::Command::new("kill").arg(format!("-{signal}")).arg(process.to_string()).status();
        sent.map_err(|error| error.to_string()).map(drop)
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}
