//! Splits a byte stream into lines of limited length, one message each.

use bytes::{Bytes, BytesMut};

const CHUNK: usize = 8 * 1024;
/// From this length on, the buffer of a line is not reused, so that its memory is freed with the line.
const LARGE: usize = 256 * 1024;

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A frame without blanks around it.
    Frame(Bytes),
    /// A line that exceeds the limit; its bytes were discarded.
    TooLong,
}

/// Splits a byte stream into lines. Blank lines are skipped.
#[derive(Debug)]
pub struct Lines {
    buffer: BytesMut,
    /// Length of the start of the buffer that contains no line break.
    searched: usize,
    limit: usize,
    skipping: bool,
}

impl Lines {
    /// Creates a splitter for lines of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, limit, skipping: false }
    }

    /// Returns the buffer to append received bytes to.
    pub fn space(&mut self) -> &mut BytesMut {
        // Half a chunk is room enough to read on; a new one for every line would not be.
        if self.buffer.capacity() - self.buffer.len() < CHUNK / 2 {
            self.buffer.reserve(CHUNK);
        }
        &mut self.buffer
    }

    /// Returns the next complete line; `None` if more bytes are needed.
    pub fn next_line(&mut self) -> Option<Line> {
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
            if self.buffer.is_empty() && line.len() > LARGE {
                self.buffer = BytesMut::new();
            }
            if std::mem::take(&mut self.skipping) || line.len() > self.limit + 1 {
                return Some(Line::TooLong);
            }
            let frame = trimmed(&line);
            if !frame.is_empty() {
                return Some(Line::Frame(frame));
            }
        }
    }

    /// Returns what follows the last line break, at the end of the stream.
    pub fn rest(&mut self) -> Option<Line> {
        let rest = trimmed(&self.buffer.split().freeze());
        self.searched = 0;
        if std::mem::take(&mut self.skipping) {
            return Some(Line::TooLong);
        }
        (!rest.is_empty()).then_some(Line::Frame(rest))
    }
}

fn trimmed(line: &Bytes) -> Bytes {
    line.slice_ref(line.trim_ascii())
}

/// Replaces the line breaks of a frame by spaces. JSON strings escape line breaks, so every line break in a frame
/// is between tokens. JSON that was passed as text may contain them.
pub fn join(frame: &mut [u8]) {
    if memchr::memchr2(b'\n', b'\r', frame).is_none() {
        return;
    }
    for byte in frame.iter_mut().filter(|byte| matches!(**byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the lines of `input`, which arrives in chunks of `size` bytes.
    fn lines(input: &[u8], size: usize, limit: usize) -> Vec<String> {
        let mut lines = Lines::new(limit);
        let mut seen = Vec::new();
        let mut record = |line| match line {
            Line::Frame(frame) => seen.push(String::from_utf8_lossy(&frame).into_owned()),
            Line::TooLong => seen.push("too long".into()),
        };
        for piece in input.chunks(size) {
            lines.space().extend_from_slice(piece);
            while let Some(line) = lines.next_line() {
                record(line);
            }
        }
        if let Some(line) = lines.rest() {
            record(line);
        }
        seen
    }

    #[test]
    fn lines_are_trimmed_and_blank_ones_skipped() {
        assert_eq!(lines(b" a \r\n\n\nb\nc", 100, 10), ["a", "b", "c"]);
    }

    #[test]
    fn a_line_over_the_limit_is_dropped_and_the_next_one_read() {
        assert_eq!(lines(b"12345\n123456\n1\n", 100, 5), ["12345", "too long", "1"]);
        let long = [vec![b'x'; 100_000], b"\nok\n".to_vec()].concat();
        assert_eq!(lines(&long, 4096, 10), ["too long", "ok"]);
        assert_eq!(lines(&vec![b'x'; 100_000], 4096, 10), ["too long"]);
    }

    proptest! {
        #[test]
        fn how_the_bytes_arrive_does_not_matter(input in "[a \r\n]{0,60}", size in 1_usize..10) {
            prop_assert_eq!(lines(input.as_bytes(), size, 8), lines(input.as_bytes(), 100, 8));
        }
    }

    #[test]
    fn a_frame_is_made_one_line() {
        let mut frame = b"{\r\n  \"a\": 1\n}".to_vec();
        join(&mut frame);
        assert_eq!(frame, b"{    \"a\": 1 }");
    }
}
