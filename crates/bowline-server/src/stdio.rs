//! Standard input and output as a byte stream, without a thread between them where the descriptors allow it.

use crate::{ServeError, ServerHandle};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Serves the client at the other end of standard input and output.
pub(crate) async fn serve(server: &ServerHandle) -> Result<(), ServeError> {
    #[cfg(feature = "tasks")]
    if let Some(table) = &server.core.tasks {
        table.start_if_durable();
    }
    let served = server.serve(input(), output()).await;
    // The process ends with its client.
    server.stop_tasks(std::time::Duration::ZERO).await;
    served
}

/// Returns standard input. A pipe or socket is read directly; a file or terminal is read on a thread.
fn input() -> Input {
    #[cfg(unix)]
    if let Some(direct) = unix::input() {
        return direct;
    }
    Input::Thread(tokio::io::stdin())
}

fn output() -> Output {
    #[cfg(unix)]
    if let Some(direct) = unix::output() {
        return direct;
    }
    Output::Thread(tokio::io::stdout())
}

enum Input {
    #[cfg(unix)]
    Pipe(tokio::net::unix::pipe::Receiver),
    #[cfg(unix)]
    Socket(tokio::net::UnixStream),
    Thread(tokio::io::Stdin),
}

enum Output {
    #[cfg(unix)]
    Pipe(tokio::net::unix::pipe::Sender),
    #[cfg(unix)]
    Socket(tokio::net::UnixStream),
    Thread(tokio::io::Stdout),
}

#[cfg(unix)]
mod unix {
    use super::{Input, Output};
    use std::{
        fs::{File, FileType},
        os::{
            fd::{AsFd, BorrowedFd, OwnedFd},
            unix::fs::{FileTypeExt, MetadataExt},
        },
    };
    use tokio::net::{UnixStream, unix::pipe};

    pub(super) fn input() -> Option<Input> {
        let stdin = std::io::stdin();
        let (descriptor, kind) = open(stdin.as_fd())?;
        if kind.is_fifo() {
            return pipe::Receiver::from_owned_fd(descriptor).ok().map(Input::Pipe);
        }
        kind.is_socket().then(|| socket(descriptor)).flatten().map(Input::Socket)
    }

    pub(super) fn output() -> Option<Output> {
        let stdout = std::io::stdout();
        let (descriptor, kind) = open(stdout.as_fd())?;
        if kind.is_fifo() {
            return pipe::Sender::from_owned_fd(descriptor).ok().map(Output::Pipe);
        }
        kind.is_socket().then(|| socket(descriptor)).flatten().map(Output::Socket)
    }

    /// Opens our own descriptor and returns its type. Returns `None` if standard error is the same file, because it
    /// would become non-blocking, too.
    fn open(descriptor: BorrowedFd<'_>) -> Option<(OwnedFd, FileType)> {
        let file = File::from(descriptor.try_clone_to_owned().ok()?);
        let metadata = file.metadata().ok()?;
        let stderr = File::from(std::io::stderr().as_fd().try_clone_to_owned().ok()?).metadata().ok();
        let shared =
            stderr.is_some_and(|stderr| (stderr.dev(), stderr.ino()) == (metadata.dev(), metadata.ino()));
        (!shared).then(|| (file.into(), metadata.file_type()))
    }

    fn socket(descriptor: OwnedFd) -> Option<UnixStream> {
        let socket = std::os::unix::net::UnixStream::from(descriptor);
        socket.set_nonblocking(true).ok()?;
        UnixStream::from_std(socket).ok()
    }
}

macro_rules! delegate {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream {
            #[cfg(unix)]
            Self::Pipe($inner) => $call,
            #[cfg(unix)]
            Self::Socket($inner) => $call,
            Self::Thread($inner) => $call,
        }
    };
}

impl AsyncRead for Input {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        delegate!(self.get_mut(), inner => Pin::new(inner).poll_read(context, buffer))
    }
}

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        delegate!(self.get_mut(), inner => Pin::new(inner).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(self.get_mut(), inner => Pin::new(inner).poll_write_vectored(context, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        delegate!(self, inner => inner.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self.get_mut(), inner => Pin::new(inner).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self.get_mut(), inner => Pin::new(inner).poll_shutdown(context))
    }
}
