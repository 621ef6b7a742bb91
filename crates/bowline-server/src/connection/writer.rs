//! Writes the queued frames.

use super::outbox::{Frames, Outbox};
use crate::transport::Conversation;
use std::{
    future::poll_fn,
    io::{self, IoSlice},
};
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Writes frames to the client. Its futures can be dropped without losing data: the next call continues.
pub(super) struct Writer<W> {
    write: W,
    frames: Frames,
    /// How many of their bytes are written.
    written: usize,
    flushed: bool,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    pub(super) fn new(write: W) -> Self {
        Self { write, frames: Frames::default(), written: 0, flushed: true }
    }

    /// Writes for as long as that is possible.
    pub(super) async fn run(&mut self, conversation: &Conversation, outbox: &Outbox) -> io::Error {
        loop {
            if let Err(error) = self.empty(conversation, outbox).await {
                return error;
            }
            poll_fn(|context| outbox.poll_filled(context)).await;
        }
    }

    /// Writes the remaining frames and closes the stream.
    pub(super) async fn finish(&mut self, conversation: &Conversation, outbox: &Outbox) -> io::Result<()> {
        self.empty(conversation, outbox).await?;
        self.write.shutdown().await
    }

    async fn empty(&mut self, conversation: &Conversation, outbox: &Outbox) -> io::Result<()> {
        loop {
            while self.written < self.frames.len() {
                let mut pieces = self.frames.pieces(self.written);
                let count = if let (Some(only), None) = (pieces.next(), pieces.next()) {
                    self.write.write(only).await?
                } else {
                    let pieces: Vec<_> =
                        self.frames.pieces(self.written).take(64).map(IoSlice::new).collect();
                    self.write.write_vectored(&pieces).await?
                };
                if count == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                (self.written, self.flushed) = (self.written + count, false);
            }
            if outbox.take_has_notifications() {
                conversation.write_notifications(outbox);
            }
            outbox.take(&mut self.frames);
            self.written = 0;
            if self.frames.len() == 0 {
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
