//! Lines in: how a byte stream becomes frames, bounded.

use bytes::{Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

const CHUNK: usize = 8 * 1024;

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A frame.
    Frame(Bytes),
    /// A line longer than allowed; its bytes were dropped as they came.
    TooLong,
    /// There is no more input.
    End,
}

/// Splits a byte stream into lines.
#[derive(Debug)]
pub(crate) struct Frames<R> {
    read: R,
    buffer: BytesMut,
    /// How much of the buffer holds no line break.
    searched: usize,
    limit: usize,
    skipping: bool,
    ended: bool,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(crate) fn new(read: R, limit: usize) -> Self {
        Self { read, buffer: BytesMut::new(), searched: 0, limit, skipping: false, ended: false }
    }

    /// The next line that is not blank. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> io::Result<Line> {
        loop {
            if let Some(line) = self.buffered() {
                return Ok(line);
            }
            if self.ended {
                return Ok(self.rest());
            }
            self.buffer.reserve(CHUNK);
            if self.read.read_buf(&mut self.buffer).await? == 0 {
                self.ended = true;
            }
        }
    }

    /// A whole line that has arrived already.
    pub(crate) fn buffered(&mut self) -> Option<Line> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(position) = memchr::memchr(b'\n', unsearched) else {
                self.searched = self.buffer.len();
                if self.searched > self.limit {
                    self.skipping = true;
                    self.buffer.clear();
                    self.searched = 0;
                }
                return None;
            };
            let line = self.buffer.split_to(self.searched + position + 1).freeze();
            self.searched = 0;
            if std::mem::take(&mut self.skipping) || line.len() > self.limit + 1 {
                return Some(Line::TooLong);
            }
            let frame = trimmed(&line);
            if !frame.is_empty() {
                return Some(Line::Frame(frame));
            }
        }
    }

    fn rest(&mut self) -> Line {
        if std::mem::take(&mut self.skipping) {
            self.buffer.clear();
            return Line::TooLong;
        }
        let frame = trimmed(&self.buffer.split().freeze());
        self.searched = 0;
        if frame.is_empty() { Line::End } else { Line::Frame(frame) }
    }
}

fn trimmed(line: &Bytes) -> Bytes {
    line.slice_ref(line.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], limit: usize) -> Vec<String> {
        let mut frames = Frames::new(input, limit);
        let mut lines = Vec::new();
        loop {
            match frames.next().await.unwrap() {
                Line::Frame(frame) => lines.push(String::from_utf8_lossy(&frame).into_owned()),
                Line::TooLong => lines.push("too long".into()),
                Line::End => return lines,
            }
        }
    }

    #[tokio::test]
    async fn lines_are_trimmed_and_blank_ones_skipped() {
        assert_eq!(lines(b" a \r\n\n\nb\nc", 10).await, ["a", "b", "c"]);
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_dropped_and_the_next_one_read() {
        assert_eq!(lines(b"12345\n123456\n1\n", 5).await, ["12345", "too long", "1"]);
        let long = [vec![b'x'; 100_000], b"\nok\n".to_vec()].concat();
        assert_eq!(lines(&long, 10).await, ["too long", "ok"]);
        assert_eq!(lines(&vec![b'x'; 100_000], 10).await, ["too long"]);
    }
}
