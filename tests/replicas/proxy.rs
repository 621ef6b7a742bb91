//! A connection to a store that can be slow, silent or cut.

use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep_until},
};

/// What happens to the bytes of all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// They pass after this time.
    Passes(Duration),
    /// They wait, as packets that are lost and sent again later.
    Holds,
    /// Connections are cut, and new ones at once.
    Cuts,
}

/// Listens for one process.
pub(crate) struct Proxy {
    link: watch::Sender<Link>,
    accepting: AbortHandle,
}

/// How many pieces of a connection wait at most.
const WAITING: usize = 256;

impl Proxy {
    pub(crate) async fn new(port: u16, to: SocketAddr) -> Result<Self, String> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await;
        let listener = listener.map_err(|error| format!("cannot listen on port {port}: {error}"))?;
        let (link, changes) = watch::channel(Link::Passes(Duration::ZERO));
        let accepting = tokio::spawn(async move {
            // Dropped with this task, and all connections with it.
            let mut connections = JoinSet::new();
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                connections.spawn(connection(stream, to, changes.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { link, accepting: accepting.abort_handle() })
    }

    pub(crate) fn set(&self, link: Link) {
        self.link.send_replace(link);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn connection(stream: TcpStream, to: SocketAddr, mut link: watch::Receiver<Link>) {
    let Some(_) = passes(&mut link).await else { return };
    let Ok(upstream) = TcpStream::connect(to).await else { return };
    let _ = (stream.set_nodelay(true), upstream.set_nodelay(true));
    let ((from_client, to_client), (from_store, to_store)) = (stream.into_split(), upstream.into_split());
    let mut cut = link.clone();
    tokio::select! {
        () = carry(from_client, to_store, link.clone()) => {}
        () = carry(from_store, to_client, link) => {}
        _ = cut.wait_for(|link| *link == Link::Cuts) => {}
    }
}

/// Waits until bytes pass, and returns how late. `None` if the connection is cut.
async fn passes(link: &mut watch::Receiver<Link>) -> Option<Duration> {
    match *link.wait_for(|link| *link != Link::Holds).await.ok()? {
        Link::Passes(delay) => Some(delay),
        Link::Holds | Link::Cuts => None,
    }
}

/// Carries one direction until it ends. A delay moves pieces in time; it does not make them fewer.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, link: watch::Receiver<Link>) {
    let (waiting, mut ready) = mpsc::channel::<(Instant, Arc<[u8]>)>(WAITING);
    let mut reading = link.clone();
    let read = async move {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let Ok(length @ 1..) = from.read(&mut buffer).await else { return };
            let Some(delay) = passes(&mut reading).await else { return };
            if waiting.send((Instant::now() + delay, Arc::from(&buffer[..length]))).await.is_err() {
                return;
            }
        }
    };
    let mut writing = link;
    let write = async move {
        while let Some((at, piece)) = ready.recv().await {
            sleep_until(at).await;
            if passes(&mut writing).await.is_none() || to.write_all(&piece).await.is_err() {
                return;
            }
        }
    };
    // What was read is still written, unless the other side is gone.
    tokio::pin!(write);
    tokio::select! {
        () = read => write.await,
        () = &mut write => {}
    }
}
