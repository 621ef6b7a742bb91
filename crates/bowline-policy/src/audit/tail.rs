//! Reads the last lines of an audit log.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// A line, and where it begins in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TailLine {
    /// The position of its first byte.
    pub at: u64,
    /// The line without its end. Bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// Reads complete lines that end before the position `before`, or at the end of the file, the last one first. Reads at most
/// `limit` bytes; a line that does not fit is left out. Blocks.
///
/// A file that does not exist has no lines. Rotated files are not read.
pub fn read_tail(path: &Path, before: Option<u64>, limit: u64) -> io::Result<Vec<TailLine>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let end = before.map_or(length, |before| before.min(length));
    let start = end.saturating_sub(limit);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(end - start).read_to_end(&mut bytes)?;
    let mut lines = Vec::new();
    let mut at = start;
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let is_whole = line.ends_with(b"\n") && (index > 0 || start == 0 || is_line_start(path, start)?);
        if is_whole {
            let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned();
            lines.push(TailLine { at, text });
        }
        at += line.len() as u64;
    }
    lines.reverse();
    Ok(lines)
}

fn is_line_start(path: &Path, at: u64) -> io::Result<bool> {
    let Some(before) = at.checked_sub(1) else { return Ok(true) };
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(before))?;
    let mut byte = [0];
    file.read_exact(&mut byte)?;
    Ok(byte == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_from_the_end_in_pages() {
        let path = std::env::temp_dir().join(format!("bowline-tail-{}.jsonl", std::process::id()));
        std::fs::write(&path, "one\ntwo\nthree\nunfinished").unwrap();
        let read = |before, limit| {
            let lines = read_tail(&path, before, limit).unwrap();
            lines.into_iter().map(|line| (line.at, line.text)).collect::<Vec<_>>()
        };
        let line = |at, text: &str| (at, text.to_owned());
        assert_eq!(read(None, 1000), [line(8, "three"), line(4, "two"), line(0, "one")]);
        assert_eq!(read(Some(8), 1000), [line(4, "two"), line(0, "one")]);
        // Nine bytes before 14 begin within `two`, eight at `three` itself.
        assert_eq!(read(Some(14), 9), [line(8, "three")]);
        assert_eq!(read(Some(14), 6), [line(8, "three")]);
        assert_eq!(read(Some(14), 5), []);
        assert_eq!(read(Some(0), 1000), []);
        assert_eq!(read(Some(1_000_000), 1000).len(), 3);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(None, 1000), []);
    }
}
