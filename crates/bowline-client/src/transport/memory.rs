//! Connects a client and a server in one process over byte streams.

use super::{Connect, Inbox, Stream, Transport};
use crate::Result;
use bowline_proto::service::BoxFuture;
use tokio::io::{DuplexStream, duplex};

/// The buffer size per direction.
pub(super) const BUFFER: usize = 64 * 1024;

/// Returns a pair of connected ends: one for a client, one for a server.
///
/// They exchange the same bytes as over a pipe. Dropping one half of an end closes the input of the other end.
pub fn memory() -> (ClientEnd, ServerEnd) {
    let (to_server, read) = duplex(BUFFER);
    let (write, from_server) = duplex(BUFFER);
    (ClientEnd(Stream::new(from_server, to_server)), ServerEnd { read, write })
}

/// The client's end of a pair in memory.
#[derive(Debug)]
pub struct ClientEnd(Stream);

impl Connect for ClientEnd {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        self.0.connect(inbox)
    }
}

/// The server's end of a pair in memory: two byte streams.
#[derive(Debug)]
pub struct ServerEnd {
    /// Data from the client.
    pub read: DuplexStream,
    /// Data to the client.
    pub write: DuplexStream,
}
