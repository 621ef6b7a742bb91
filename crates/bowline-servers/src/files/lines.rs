//! Reads parts of a text file by line.

use bowline::server::{Error, Result};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// The maximum number of bytes scanned for a line.
const MAX_SCANNED: u64 = 1024 * 1024 * 1024;

/// The lines to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of them.
    Whole,
    /// A range of lines, counted from 1, inclusive.
    Range(u64, u64),
    /// The last lines.
    Tail(u64),
}

impl Part {
    /// Parses the arguments of a call.
    pub(super) fn of(
        head: Option<u64>,
        tail: Option<u64>,
        from_line: Option<u64>,
        to_line: Option<u64>,
    ) -> Result<Self> {
        Ok(match (head, tail, from_line, to_line) {
            (None, None, None, None) => Self::Whole,
            (Some(lines), None, None, None) => Self::Range(1, lines),
            (None, Some(lines), None, None) => Self::Tail(lines),
            (None, None, from, to) => {
                let (from, to) = (from.unwrap_or(1), to.unwrap_or(u64::MAX));
                if from == 0 || to < from {
                    return Err(Error::tool(format!(
                        "invalid range of lines {from} to {to}; lines are counted from 1"
                    )));
                }
                Self::Range(from, to)
            }
            _ => return Err(Error::tool("use only one of `head`, `tail` and a range of lines")),
        })
    }
}

/// Reads a part of a file, at most `limit` bytes.
pub(super) fn read(mut file: impl Read + Seek, part: Part, limit: u64) -> Result<Vec<u8>> {
    match part {
        Part::Whole => {
            let length = file.seek(SeekFrom::End(0))?;
            file.rewind()?;
            let mut bytes = Vec::new();
            // Read one byte more than allowed, because the file may grow.
            file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > limit {
                return Err(Error::tool(format!(
                    "the file has {} bytes, and a call reads at most {limit}; read a part with `head`, `tail`, \
                     or `from_line` and `to_line`",
                    length.max(bytes.len() as u64)
                )));
            }
            Ok(bytes)
        }
        Part::Range(from, to) => range(file, MAX_SCANNED, from, to, limit),
        Part::Tail(lines) => tail(file, lines, limit),
    }
}

fn too_much(limit: u64) -> Error {
    Error::tool(format!("these lines have more than {limit} bytes; read fewer lines"))
}

fn range(file: impl Read, scanned: u64, from: u64, to: u64, limit: u64) -> Result<Vec<u8>> {
    let mut file = BufReader::new(file.take(scanned));
    for _ in 1..from {
        if file.skip_until(b'\n')? == 0 {
            if file.get_ref().limit() == 0 {
                return Err(Error::tool(format!(
                    "line {from} is not in the first {scanned} bytes of the file"
                )));
            }
            return Ok(Vec::new());
        }
    }
    let mut bytes = Vec::new();
    for _ in from..=to {
        let left = limit.saturating_add(1).saturating_sub(bytes.len() as u64);
        if (&mut file).take(left).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.len() as u64 > limit {
            return Err(too_much(limit));
        }
    }
    Ok(bytes)
}

fn tail(mut file: impl Read + Seek, lines: u64, limit: u64) -> Result<Vec<u8>> {
    if lines == 0 {
        return Ok(Vec::new());
    }
    let length = file.seek(SeekFrom::End(0))?;
    let start = length.saturating_sub(limit);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    let body = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let mut breaks = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    let nth = usize::try_from(lines - 1).unwrap_or(usize::MAX);
    match breaks.nth(nth) {
        Some((position, _)) => Ok(bytes.split_off(position + 1)),
        None if start == 0 => Ok(bytes),
        None => Err(too_much(limit)),
    }
}

/// Counts the lines of a text.
pub(super) fn count(mut file: impl BufRead) -> io::Result<u64> {
    let mut lines = 0;
    while file.skip_until(b'\n')? > 0 {
        lines += 1;
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn check(text: &str, part: Part, limit: u64, expected: Result<&str, &str>) {
        let read = read(Cursor::new(text.as_bytes()), part, limit);
        let read = read.map(|bytes| String::from_utf8(bytes).unwrap()).map_err(|error| error.to_string());
        match (&read, expected) {
            (Ok(read), Ok(expected)) => assert_eq!(read, expected),
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            _ => panic!("{read:?} is not {expected:?}"),
        }
    }

    #[test]
    fn lines_are_selected() {
        let text = "one\ntwo\nthree\n";
        check(text, Part::Whole, 14, Ok(text));
        check(text, Part::Range(1, 2), 8, Ok("one\ntwo\n"));
        check(text, Part::Range(2, u64::MAX), 100, Ok("two\nthree\n"));
        check(text, Part::Range(9, 10), 100, Ok(""));
        check(text, Part::Tail(1), 100, Ok("three\n"));
        check(text, Part::Tail(2), 11, Ok("two\nthree\n"));
        check(text, Part::Tail(9), 100, Ok(text));
        check(text, Part::Tail(0), 100, Ok(""));
        check("one\ntwo", Part::Tail(1), 100, Ok("two"));
        check("", Part::Tail(1), 100, Ok(""));
    }

    #[test]
    fn more_than_the_limit_is_not_read() {
        let text = "one\ntwo\nthree\n";
        check(text, Part::Whole, 13, Err("the file has 14 bytes, and a call reads at most 13"));
        check(text, Part::Range(1, 2), 7, Err("more than 7 bytes"));
        check(text, Part::Tail(2), 9, Err("more than 9 bytes"));
    }

    #[test]
    fn line_counting_is_limited() {
        let error = range("one\ntwo\nthree\n".as_bytes(), 8, 4, 4, 100).unwrap_err();
        assert_eq!(error.to_string(), "line 4 is not in the first 8 bytes of the file");
        assert_eq!(range("one\ntwo\n".as_bytes(), 9, 4, 4, 100).unwrap(), b"");
    }

    #[test]
    fn line_selections_are_exclusive() {
        assert_eq!(Part::of(None, None, None, None).unwrap(), Part::Whole);
        assert_eq!(Part::of(Some(3), None, None, None).unwrap(), Part::Range(1, 3));
        assert_eq!(Part::of(None, None, Some(3), None).unwrap(), Part::Range(3, u64::MAX));
        assert!(Part::of(Some(1), Some(1), None, None).is_err());
        assert!(Part::of(None, None, Some(0), None).is_err());
        assert!(Part::of(None, None, Some(3), Some(2)).is_err());
    }

    #[test]
    fn lines_are_counted() {
        for (text, lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2)] {
            assert_eq!(count(text.as_bytes()).unwrap(), lines);
        }
    }
}
