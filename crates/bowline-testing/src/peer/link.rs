//! The byte streams of a peer, read while it writes so that neither side can block the other.

use super::history::History;
use bytes::{Buf, BytesMut};
use serde_json::Value;
use std::{collections::VecDeque, io};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A line that came.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) text: String,
    /// `None` when it is not JSON.
    pub(super) value: Option<Value>,
}

/// The two streams and what was read from one of them.
pub(super) struct Link {
    read: Box<dyn AsyncRead + Send + Unpin>,
    write: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    buffer: BytesMut,
    /// How much of the buffer holds no line break.
    searched: usize,
    arrived: VecDeque<Arrived>,
    ended: bool,
}

impl Link {
    pub(super) fn new(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            read: Box::new(read),
            write: Some(Box::new(write)),
            buffer: BytesMut::new(),
            searched: 0,
            arrived: VecDeque::new(),
            ended: false,
        }
    }

    /// Writes everything, and reads whatever comes meanwhile.
    pub(super) async fn send(&mut self, mut bytes: &[u8], history: &mut History) -> io::Result<()> {
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
                    self.split_lines(history);
                }
            }
        }
        match &mut self.write {
            Some(write) => write.flush().await,
            None => Ok(()),
        }
    }

    /// Reads until there is another frame; false when there is none any more.
    pub(super) async fn more(&mut self, history: &mut History) -> bool {
        let known = self.arrived.len();
        while self.arrived.len() == known {
            if self.ended {
                return false;
            }
            // A connection that breaks is one that ended.
            self.ended = !matches!(self.read.read_buf(&mut self.buffer).await, Ok(1..));
            self.split_lines(history);
        }
        true
    }

    pub(super) async fn drain(&mut self, history: &mut History) {
        while self.more(history).await {}
    }

    fn split_lines(&mut self, history: &mut History) {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(position) = unsearched.iter().position(|byte| *byte == b'\n') else { break };
            let line = self.buffer.split_to(self.searched + position + 1);
            self.searched = 0;
            self.arrive(&line, history);
        }
        self.searched = self.buffer.len();
        if self.ended && !self.buffer.is_empty() {
            let line = self.buffer.split();
            self.searched = 0;
            self.arrive(&line, history);
        }
    }

    fn arrive(&mut self, line: &[u8], history: &mut History) {
        let text = String::from_utf8_lossy(line).trim().to_owned();
        history.received(&text);
        let value = serde_json::from_slice(line).ok();
        self.arrived.push_back(Arrived { text, value });
    }

    /// Takes the first frame that is wanted. A line that is not JSON is what everybody gets first.
    pub(super) fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Option<Arrived> {
        let position = self.arrived.iter().position(|arrived| arrived.value.as_ref().is_none_or(&wanted))?;
        self.arrived.remove(position)
    }

    /// Takes the first frame that is wanted, of those that are JSON.
    pub(super) fn find_json(&mut self, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        let position = self.arrived.iter().position(|arrived| arrived.value.as_ref().is_some_and(&wanted))?;
        self.arrived.remove(position)?.value
    }

    pub(super) fn pop(&mut self) -> Option<Arrived> {
        self.arrived.pop_front()
    }

    pub(super) async fn close_sending(&mut self) {
        if let Some(mut write) = self.write.take() {
            // Whoever closed first does not matter here.
            let _ = write.shutdown().await;
        }
    }
}
