//! The lines between a client and its server, written down as they pass.

use std::{
    io::{self, Write},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Everything that passed, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record(Arc<Mutex<Vec<Line>>>);

#[derive(Debug)]
struct Line {
    direction: char,
    text: Vec<u8>,
    is_whole: bool,
}

impl Record {
    fn note(&self, direction: char, bytes: &[u8]) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let open =
                lines.iter_mut().rev().find(|line| line.direction == direction).filter(|line| !line.is_whole);
            let is_whole = part.ends_with(b"\n");
            match open {
                Some(line) => {
                    line.text.extend_from_slice(part);
                    line.is_whole = is_whole;
                }
                None => lines.push(Line { direction, text: part.to_vec(), is_whole }),
            }
        }
    }

    /// Writes the lines out: `>` went to the server, `<` came from it.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().try_for_each(|line| {
            writeln!(out, "{} {}", line.direction, String::from_utf8_lossy(line.text.trim_ascii_end()))
        })
    }
}

/// What the client reads.
#[derive(Debug)]
pub(crate) struct Incoming<R>(pub(crate) R, pub(crate) Record);

impl<R: AsyncRead + Unpin> AsyncRead for Incoming<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self(read, record) = self.get_mut();
        let known = buffer.filled().len();
        let poll = Pin::new(read).poll_read(context, buffer);
        record.note('<', buffer.filled().get(known..).unwrap_or_default());
        poll
    }
}

/// What the client writes.
#[derive(Debug)]
pub(crate) struct Outgoing<W>(pub(crate) W, pub(crate) Record);

impl<W: AsyncWrite + Unpin> AsyncWrite for Outgoing<W> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Self(write, record) = self.get_mut();
        let poll = Pin::new(write).poll_write(context, bytes);
        if let Poll::Ready(Ok(written)) = poll {
            record.note('>', bytes.get(..written).unwrap_or_default());
        }
        poll
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole_and_in_order() {
        let record = Record::default();
        record.note('>', b"one\ntw");
        record.note('<', b"answer\n");
        record.note('>', b"o\n");
        let mut out = Vec::new();
        record.write(&mut out).unwrap();
        assert_eq!(String::from_utf8_lossy(&out), "> one\n> two\n< answer\n");
    }
}
