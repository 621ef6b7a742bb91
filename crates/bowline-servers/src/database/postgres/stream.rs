//! Connections with a limit on the size of a row.
//!
//! The PostgreSQL client buffers whole messages, and a row can have a gigabyte. The bytes read are counted, and the count restarts
//! with every row; a row above the limit closes the connection.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Socket,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The limit of bytes read before the next row.
#[derive(Debug)]
pub(super) struct ReadLimit {
    bytes: usize,
    read: AtomicUsize,
    exceeded: AtomicBool,
}

impl ReadLimit {
    pub(super) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { bytes, read: AtomicUsize::new(0), exceeded: AtomicBool::new(false) })
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Restarts the count after a row.
    pub(super) fn restart(&self) {
        self.read.store(0, Ordering::Relaxed);
    }

    pub(super) fn is_exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }

    fn count(&self, bytes: usize) -> io::Result<()> {
        let read = self.read.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if read <= self.bytes {
            return Ok(());
        }
        self.exceeded.store(true, Ordering::Relaxed);
        Err(io::Error::other(format!("the server sent a row larger than {} bytes", self.bytes)))
    }
}

/// A stream that counts reads.
#[derive(Debug)]
pub(super) struct Limited<S> {
    inner: S,
    limit: Arc<ReadLimit>,
}

impl<S> Limited<S> {
    pub(super) fn new(inner: S, limit: Arc<ReadLimit>) -> Self {
        Self { inner, limit }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Limited<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        Poll::Ready(self.limit.count(buffer.filled().len().saturating_sub(before)))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Limited<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// Opens counted TCP connections, encrypted or not.
///
/// The PostgreSQL client accepts custom streams only through its TLS hook, so plain connections use it too, without encryption.
#[derive(Clone)]
pub(super) struct Connector {
    /// `None` for plain connections.
    pub(super) tls: Option<MakeRustlsConnect>,
    pub(super) limit: Arc<ReadLimit>,
}

type Rustls = <MakeRustlsConnect as MakeTlsConnect<Limited<Socket>>>::TlsConnect;
type Encrypted = <Rustls as TlsConnect<Limited<Socket>>>::Stream;

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Stream;
    type TlsConnect = Connecting;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Connecting> {
        let tls = match &mut self.tls {
            Some(tls) => {
                let made = MakeTlsConnect::<Limited<Socket>>::make_tls_connect(tls, host);
                Some(made.map_err(io::Error::other)?)
            }
            None => None,
        };
        Ok(Connecting { tls, limit: Arc::clone(&self.limit) })
    }
}

/// A pending connection.
pub(super) struct Connecting {
    tls: Option<Rustls>,
    limit: Arc<ReadLimit>,
}

impl TlsConnect<Socket> for Connecting {
    type Stream = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        let socket = Limited::new(socket, self.limit);
        match self.tls {
            None => Box::pin(std::future::ready(Ok(Stream::Plain(socket)))),
            Some(tls) => Box::pin(async move { Ok(Stream::Encrypted(Box::new(tls.connect(socket).await?))) }),
        }
    }
}

/// A connection over TCP.
pub(super) enum Stream {
    Plain(Limited<Socket>),
    Encrypted(Box<Encrypted>),
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Encrypted(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Encrypted(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

impl TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        match self {
            Self::Plain(_) => ChannelBinding::none(),
            Self::Encrypted(stream) => stream.channel_binding(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test]
    async fn a_row_above_the_limit_closes_the_connection() {
        let (mut server, client) = tokio::io::duplex(64);
        let limit = ReadLimit::new(100);
        let mut client = Limited::new(client, Arc::clone(&limit));
        let mut row = [0; 60];
        for _ in 0..3 {
            server.write_all(&[1; 60]).await.unwrap();
            client.read_exact(&mut row).await.unwrap();
            limit.restart();
        }
        for (filled, fits) in [(60, true), (60, false)] {
            server.write_all(&[1; 60]).await.unwrap();
            assert_eq!(client.read_exact(&mut row[..filled]).await.is_ok(), fits);
            assert_eq!(limit.is_exceeded(), !fits);
        }
    }
}
