//! Uses any pair of byte streams as a connection: a socket, a pipe, a pair in memory.

use super::{Connect, Inbox, Transport, lines::Lines};
use crate::{Error, Result};
use bowline_proto::service::BoxFuture;
use std::{
    fmt,
    sync::{Mutex, PoisonError},
};
use tokio::io::{AsyncRead, AsyncWrite};

/// A pair of byte streams with one message per line in each direction.
///
/// It can be connected once and cannot be reopened.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use bowline_client::{Client, Stream};
///
/// # let (socket, _other) = tokio::io::duplex(1024);
/// let (read, write) = tokio::io::split(socket);
/// let client = Client::connect(Stream::new(read, write)).await?;
/// # Ok(())
/// # }
/// ```
pub struct Stream {
    halves: Mutex<Option<Halves>>,
}

type Halves = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

impl Stream {
    /// Creates a stream that receives messages from `read` and sends them to `write`.
    pub fn new(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self { halves: Mutex::new(Some((Box::new(read), Box::new(write)))) }
    }
}

impl Connect for Stream {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        Box::pin(async move {
            let halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some((read, write)) = halves else {
                return Err(Error::closed("a stream can be connected only once"));
            };
            Ok(Box::new(Lines::start(inbox, read, write, None)) as _)
        })
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}
