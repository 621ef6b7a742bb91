//! Connections that fail at a chosen byte.
//!
//! A [`FaultProxy`] connects a client to a server on this machine and passes on their bytes until a [`Fault`] happens:
//!
//! ```
//! use bowline_testing::fault::{Fault, FaultProxy};
//! use tokio::{
//!     io::{AsyncReadExt, AsyncWriteExt},
//!     net::{TcpListener, TcpStream},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let server = TcpListener::bind("127.0.0.1:0").await?;
//! let proxy = FaultProxy::to(server.local_addr()?).fault(Fault::reply(5)).start().await?;
//!
//! let mut client = TcpStream::connect(proxy.addr()).await?;
//! let (mut accepted, _) = server.accept().await?;
//! accepted.write_all(b"hello, world").await?;
//!
//! let mut received = String::new();
//! client.read_to_string(&mut received).await?;
//! assert_eq!(received, "hello");
//! assert_eq!(proxy.triggered(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! Give clients the address of the proxy instead of that of the server: `http(proxy.url("/mcp"))` for a client over
//! HTTP.

mod meter;
mod plan;
mod relay;

pub use plan::Fault;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{AbortHandle, JoinSet},
};

/// A TCP proxy on the loopback address that injects faults into its connections. Dropping it closes all of them.
#[derive(Debug)]
pub struct FaultProxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

/// Configures a [`FaultProxy`].
#[derive(Clone, Debug)]
pub struct FaultProxyBuilder {
    server: SocketAddr,
    faults: Vec<Fault>,
}

/// The traffic of a [`FaultProxy`] so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// The number of connections that clients have opened.
    pub connections: u64,
    /// The number of open sockets: two per connection, one while the proxy connects to the server.
    pub sockets: u64,
    /// The number of bytes passed on to the server.
    pub requested: u64,
    /// The number of bytes passed on to clients.
    pub replied: u64,
}

/// State shared by the proxy and its connections.
#[derive(Debug)]
struct Shared {
    faults: Mutex<Vec<Fault>>,
    triggered: watch::Sender<u64>,
    connections: AtomicU64,
    sockets: AtomicU64,
    requested: AtomicU64,
    replied: AtomicU64,
}

impl Shared {
    fn faults(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultProxy {
    /// Configures a proxy to this server.
    pub fn to(server: SocketAddr) -> FaultProxyBuilder {
        FaultProxyBuilder { server, faults: Vec::new() }
    }

    /// Returns the address for clients.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the URL of a path of the server, through the proxy.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// Replaces the faults that have not happened yet.
    pub fn set(&self, fault: Fault) {
        *self.shared.faults() = vec![fault];
    }

    /// Removes all faults that have not happened yet.
    pub fn clear(&self) {
        self.shared.faults().clear();
    }

    /// Returns the number of faults that have happened.
    pub fn triggered(&self) -> u64 {
        *self.shared.triggered.borrow()
    }

    /// Waits until this many faults have happened in total.
    pub async fn wait_until_triggered(&self, times: u64) {
        // The sender lives as long as the proxy.
        drop(self.shared.triggered.subscribe().wait_for(|triggered| *triggered >= times).await);
    }

    /// Returns the traffic so far.
    pub fn traffic(&self) -> Traffic {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Traffic {
            connections: load(&self.shared.connections),
            sockets: load(&self.shared.sockets),
            requested: load(&self.shared.requested),
            replied: load(&self.shared.replied),
        }
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl FaultProxyBuilder {
    /// Adds a fault. Several faults are independent of each other.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Starts the proxy on a free port of the loopback address. Fails if no port can be bound.
    pub async fn start(self) -> io::Result<FaultProxy> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            faults: Mutex::new(self.faults),
            triggered: watch::Sender::new(0),
            connections: AtomicU64::new(0),
            sockets: AtomicU64::new(0),
            requested: AtomicU64::new(0),
            replied: AtomicU64::new(0),
        });
        // The handle owns this task and aborts it.
        let accepting = tokio::spawn(accept(listener, self.server, Arc::clone(&shared))).abort_handle();
        Ok(FaultProxy { addr, shared, accepting })
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    let number = shared.connections.fetch_add(1, Ordering::Relaxed);
                    connections.spawn(connection(client, server, number, Arc::clone(&shared)));
                }
                // Most likely out of file descriptors: wait until others are closed.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(client: TcpStream, server: SocketAddr, number: u64, shared: Arc<Shared>) {
    let _client_socket = Socket::count(&shared);
    // If the server is unreachable, the client sees what it would see without the proxy: a closed connection.
    let Ok(server) = TcpStream::connect(server).await else { return drop(client.set_zero_linger()) };
    let _server_socket = Socket::count(&shared);
    relay::relay(client, server, number, &shared).await;
}

/// Counts an open socket until it is dropped.
struct Socket(Arc<Shared>);

impl Socket {
    fn count(shared: &Arc<Shared>) -> Self {
        shared.sockets.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(shared))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.0.sockets.fetch_sub(1, Ordering::Relaxed);
    }
}
