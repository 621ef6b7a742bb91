//! A connection of two byte streams. It reads while it writes, so that neither side blocks the other.

use super::{history::History, link::Inbox};
use bytes::{Buf, BytesMut};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Two byte streams with one frame per line.
pub(super) struct Bytes {
    read: Box<dyn AsyncRead + Send + Unpin>,
    write: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    buffer: BytesMut,
    /// The length of the buffer that was already searched for a line break.
    searched: usize,
    ended: bool,
}

impl Bytes {
    pub(super) fn new(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            read: Box::new(read),
            write: Some(Box::new(write)),
            buffer: BytesMut::new(),
            searched: 0,
            ended: false,
        }
    }

    /// Writes all bytes, and reads in the meantime.
    pub(super) async fn send(
        &mut self,
        mut bytes: &[u8],
        inbox: &mut Inbox,
        history: &mut History,
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            let Some(write) = &mut self.write else { return Err(io::ErrorKind::NotConnected.into()) };
            tokio::select! {
                biased;
                written = write.write(bytes) => match written? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    written => bytes.advance(written),
                },
                read = self.read.read_buf(&mut self.buffer), if !self.ended => {
                    self.ended = !matches!(read, Ok(1..));
                    self.split_lines(inbox, history);
                }
            }
        }
        match &mut self.write {
            Some(write) => write.flush().await,
            None => Ok(()),
        }
    }

    /// Reads until another frame is complete. Returns `false` at the end of the stream.
    pub(super) async fn more(&mut self, inbox: &mut Inbox, history: &mut History) -> bool {
        let known = inbox.len();
        while inbox.len() == known {
            if self.ended {
                return false;
            }
            // A broken connection counts as ended.
            self.ended = !matches!(self.read.read_buf(&mut self.buffer).await, Ok(1..));
            self.split_lines(inbox, history);
        }
        true
    }

    fn split_lines(&mut self, inbox: &mut Inbox, history: &mut History) {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(position) = unsearched.iter().position(|byte| *byte == b'\n') else { break };
            let line = self.buffer.split_to(self.searched + position + 1);
            self.searched = 0;
            inbox.arrive(0, &line, history);
        }
        self.searched = self.buffer.len();
        if self.ended && !self.buffer.is_empty() {
            let line = self.buffer.split();
            self.searched = 0;
            inbox.arrive(0, &line, history);
        }
    }

    pub(super) async fn close_sending(&mut self) {
        if let Some(mut write) = self.write.take() {
            // The other side may have closed first.
            let _ = write.shutdown().await;
        }
    }
}
