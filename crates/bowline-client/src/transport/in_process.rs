//! A server in the same process.

use super::{Connect, Inbox, IntoConnect, Stream, Transport, memory::BUFFER};
use crate::{Error, Result};
use bowline_proto::service::BoxFuture;
use bowline_server::{Server, ServerHandle};
use tokio::io::duplex;

/// Connects to a server in this process. Each connection is a pair of byte streams in memory, so it uses the same
/// protocol as any other.
impl Connect for ServerHandle {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        let (to_server, read) = duplex(BUFFER);
        let (write, from_server) = duplex(BUFFER);
        let server = self.clone();
        // The task ends with the streams, whose other ends the client holds.
        tokio::spawn(async move {
            if let Err(error) = server.serve(read, write).await {
                tracing::debug!(%error, "an in-process server failed");
            }
        });
        Box::pin(async move { Stream::new(from_server, to_server).connect(inbox).await })
    }
}

impl IntoConnect for Server {
    type Target = ServerHandle;

    fn into_connect(self) -> Result<ServerHandle> {
        self.build().map_err(|error| Error::misuse(error.to_string()))
    }
}
