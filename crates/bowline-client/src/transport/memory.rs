//! A client and a server in one process, with the bytes of the wire between them.

use super::{Connect, Inbox, Stream, Transport};
use crate::Result;
use bowline_proto::service::BoxFuture;
use tokio::io::{DuplexStream, duplex};

/// How many bytes one side may be ahead of the other.
pub(super) const BUFFER: usize = 64 * 1024;

/// A pair of connected ends: one for a client, one for a server.
///
/// The same bytes pass between them as over a pipe. Dropping a half of one end is the end of input at the other.
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
    /// What the client sends.
    pub read: DuplexStream,
    /// What the client receives.
    pub write: DuplexStream,
}
