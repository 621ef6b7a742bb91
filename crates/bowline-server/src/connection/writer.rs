//! Writing what waits in the outbox.

use super::outbox::Outbox;
use crate::transport::Conversation;
use std::io;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Writes frames to the client. Dropping what its methods return loses nothing: they go on where they were.
pub(super) struct Writer<W> {
    write: W,
    bytes: Vec<u8>,
    /// How many of the bytes are written.
    written: usize,
    flushed: bool,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    pub(super) fn new(write: W) -> Self {
        Self { write, bytes: Vec::new(), written: 0, flushed: true }
    }

    /// Writes for as long as that is possible.
    pub(super) async fn run(&mut self, conversation: &Conversation, outbox: &Outbox) -> io::Error {
        loop {
            if let Err(error) = self.empty(conversation, outbox).await {
                return error;
            }
            outbox.filled().await;
        }
    }

    /// Writes what is left, and no more.
    pub(super) async fn finish(&mut self, conversation: &Conversation, outbox: &Outbox) -> io::Result<()> {
        self.empty(conversation, outbox).await?;
        self.write.shutdown().await
    }

    async fn empty(&mut self, conversation: &Conversation, outbox: &Outbox) -> io::Result<()> {
        loop {
            while let Some(rest) = self.bytes.get(self.written..).filter(|rest| !rest.is_empty()) {
                let count = self.write.write(rest).await?;
                if count == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                (self.written, self.flushed) = (self.written + count, false);
            }
            conversation.write_news(outbox);
            outbox.take(&mut self.bytes);
            self.written = 0;
            if self.bytes.is_empty() {
                break;
            }
        }
        if !self.flushed {
            self.write.flush().await?;
            self.flushed = true;
        }
        Ok(())
    }
}
