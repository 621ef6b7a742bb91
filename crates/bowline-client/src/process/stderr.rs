//! Reads the standard error of a program and keeps the end of it. Never delays the program.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The number of bytes that are kept.
const KEPT_BYTES: usize = 64 * 1024;
/// The maximum length of a line; the rest is cut off.
const LINE_BYTES: usize = 8 * 1024;
/// The number of bytes per read.
const READ_BYTES: usize = 16 * 1024;
/// The number of reads that may wait for a slow callback before lines are dropped.
const WAITING_READS: usize = 32;

/// Where the standard error of a program goes.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum StderrMode {
    /// The last 64 KiB are kept, see [`Child::stderr_tail`](crate::Child::stderr_tail).
    #[default]
    Keep,
    /// The program shares the standard error of this process, and nothing is kept.
    Inherit,
    /// Like [`Keep`](Self::Keep), and every line is passed to this function; see [`callback`](Self::callback).
    Callback(Arc<dyn Fn(&str) + Send + Sync>),
}

impl StderrMode {
    /// Keeps the end and passes each line to `callback`.
    ///
    /// The callback runs on its own thread and may block. It never delays the program: if it is too slow, lines are
    /// dropped, and it receives one line in brackets with their number. Lines longer than 8 KiB are cut. If it panics,
    /// it is not called again.
    pub fn callback(callback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self::Callback(Arc::new(callback))
    }
}

impl fmt::Debug for StderrMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keep => "Keep",
            Self::Inherit => "Inherit",
            Self::Callback(_) => "Callback(..)",
        })
    }
}

/// The last lines of a program's standard error. Clones share the lines, also after the program has exited.
#[derive(Clone, Default)]
pub struct Stderr {
    ring: Arc<Mutex<Ring>>,
}

impl Stderr {
    /// Returns at most the last 64 KiB, from the start of a line, including an unfinished line.
    ///
    /// Invalid UTF-8 is replaced. Control characters are not escaped.
    pub fn tail(&self) -> String {
        self.lock().text()
    }

    /// Returns the lines of [`tail`](Self::tail).
    pub fn lines(&self) -> Vec<String> {
        self.tail().lines().map(str::to_owned).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stderr").field("bytes", &self.lock().len()).finish()
    }
}

/// Complete lines of valid UTF-8, each with a line feed, and the start of the next line.
#[derive(Default)]
struct Ring {
    kept: VecDeque<u8>,
    partial: Vec<u8>,
    is_overlong: bool,
}

impl Ring {
    fn len(&self) -> usize {
        self.kept.len() + self.partial.len()
    }

    fn text(&self) -> String {
        let (front, back) = self.kept.as_slices();
        let bytes = [front, back, &self.partial].concat();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Adds read bytes, and passes each complete line to `ended`.
    fn push(&mut self, mut bytes: &[u8], mut ended: impl FnMut(&str)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            self.extend(line);
            ended(&self.end_line());
        }
        self.extend(bytes);
        self.evict();
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES - self.partial.len();
        self.is_overlong |= bytes.len() > room;
        self.partial.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Completes the unfinished line.
    fn end_line(&mut self) -> String {
        let mut line = String::from_utf8_lossy(&self.partial).into_owned();
        self.partial.clear();
        if line.ends_with('\r') {
            line.pop();
        }
        // Replacing invalid UTF-8 makes the text longer.
        let is_cut = std::mem::take(&mut self.is_overlong) || line.len() > LINE_BYTES;
        if is_cut {
            let end = (0..=LINE_BYTES.min(line.len())).rev().find(|end| line.is_char_boundary(*end));
            line.truncate(end.unwrap_or(0));
            line.truncate(line.trim_end_matches(char::REPLACEMENT_CHARACTER).len());
            line.push('…');
        }
        self.kept.extend(line.as_bytes());
        self.kept.push_back(b'\n');
        self.evict();
        line
    }

    /// Removes lines from the front until the limit is met.
    fn evict(&mut self) {
        let excess = self.len().saturating_sub(KEPT_BYTES);
        if excess == 0 {
            return;
        }
        let end = self.kept.iter().skip(excess - 1).position(|byte| *byte == b'\n');
        let forgotten = end.map_or(self.kept.len(), |end| excess + end);
        self.kept.drain(..forgotten);
    }
}

/// The lines of one read, for the callback.
struct Batch {
    /// The number of lines dropped before these.
    skipped: usize,
    /// The lines, each with a line feed.
    text: String,
}

/// The task that reads standard error. Dropping it aborts the task.
pub(super) struct Drain {
    stderr: Stderr,
    reader: Option<JoinHandle<()>>,
    /// Completes when the last line was passed to the callback.
    passed_on: Option<oneshot::Receiver<()>>,
}

impl Drain {
    /// Starts reading `pipe`, if there is one.
    pub(super) fn start<P>(pipe: Option<P>, mode: &StderrMode) -> Self
    where
        P: AsyncRead + Unpin + Send + 'static,
    {
        let stderr = Stderr::default();
        let Some(pipe) = pipe else { return Self { stderr, reader: None, passed_on: None } };
        let mut batches = None;
        let mut passed_on = None;
        if let StderrMode::Callback(callback) = mode {
            let (sender, receiver) = mpsc::channel(WAITING_READS);
            passed_on = pass_on(receiver, Arc::clone(callback));
            batches = Some(sender);
        }
        let reader = Some(tokio::spawn(read_all(pipe, stderr.clone(), batches)));
        Self { stderr, reader, passed_on }
    }

    pub(super) fn stderr(&self) -> &Stderr {
        &self.stderr
    }

    /// Waits until everything was read and passed on, at most for `limit`.
    ///
    /// The limit is reached if a process outside the group holds the pipe open.
    pub(super) async fn wait_until_read(&mut self, limit: Duration) {
        let all = async {
            // A reader that panicked has ended as well; its lines are kept.
            if let Some(reader) = &mut self.reader {
                let _ = reader.await;
                self.reader = None;
            }
            // Nothing is sent; the sender is dropped at the end of the thread.
            if let Some(passed_on) = &mut self.passed_on {
                let _ = passed_on.await;
                self.passed_on = None;
            }
        };
        // A timeout is expected here.
        let _ = tokio::time::timeout(limit, all).await;
    }

    /// Stops reading, even if there is more. The thread of the callback ends after its queued lines.
    pub(super) fn stop(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.abort();
        }
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stderr.fmt(f)
    }
}

async fn read_all(mut pipe: impl AsyncRead + Unpin, stderr: Stderr, batches: Option<mpsc::Sender<Batch>>) {
    let mut buffer = vec![0; READ_BYTES];
    let mut relay = Relay { batches, skipped: 0 };
    // A pipe that fails counts as ended.
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let mut text = String::new();
        let is_relayed = relay.batches.is_some();
        stderr.lock().push(&buffer[..count], |line| {
            if is_relayed {
                text.push_str(line);
                text.push('\n');
            }
        });
        relay.offer(text);
    }
    let last = {
        let mut ring = stderr.lock();
        if ring.partial.is_empty() { String::new() } else { ring.end_line() }
    };
    relay.finish(last).await;
}

/// The reader's end of the channel to the callback.
struct Relay {
    batches: Option<mpsc::Sender<Batch>>,
    skipped: usize,
}

impl Relay {
    /// Passes on lines if there is space; otherwise counts them as dropped.
    fn offer(&mut self, text: String) {
        let Some(batches) = &self.batches else { return };
        if text.is_empty() {
            return;
        }
        match batches.try_send(Batch { skipped: self.skipped, text }) {
            Ok(()) => self.skipped = 0,
            Err(TrySendError::Full(batch)) => self.skipped += batch.text.lines().count(),
            Err(TrySendError::Closed(_)) => {
                tracing::warn!("the standard error callback panicked and is not called again");
                self.batches = None;
            }
        }
    }

    /// Passes on the remaining lines. The program has exited, so waiting delays nobody.
    async fn finish(self, text: String) {
        let Some(batches) = self.batches else { return };
        // The only possible failure is a callback that panicked.
        let _ = batches.send(Batch { skipped: self.skipped, text }).await;
    }
}

/// Starts the thread of the callback. It ends after the reader.
///
/// A task is not sufficient: if it blocks, it delays other tasks of its worker, such as the reader.
fn pass_on(
    mut batches: mpsc::Receiver<Batch>,
    callback: Arc<dyn Fn(&str) + Send + Sync>,
) -> Option<oneshot::Receiver<()>> {
    let (ended, passed_on) = oneshot::channel::<()>();
    let work = move || {
        let _ended = ended;
        while let Some(Batch { skipped, text }) = batches.blocking_recv() {
            if skipped > 0 {
                callback(&format!("[{skipped} lines skipped]"));
            }
            for line in text.lines() {
                callback(line);
            }
        }
    };
    match std::thread::Builder::new().name("bowline-stderr".into()).spawn(work) {
        Ok(_) => Some(passed_on),
        Err(error) => {
            tracing::warn!(%error, "cannot start a thread for the standard error callback; it is not called");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(chunks: &[&[u8]]) -> (Ring, Vec<String>) {
        let mut ring = Ring::default();
        let mut lines = Vec::new();
        for chunk in chunks {
            ring.push(chunk, |line| lines.push(line.to_owned()));
        }
        (ring, lines)
    }

    #[test]
    fn lines_are_joined_across_reads() {
        let (ring, lines) = ring(&[b"on", b"e\r\ntw", b"o\n\nthree"]);
        assert_eq!(lines, ["one", "two", ""]);
        assert_eq!(ring.text(), "one\ntwo\n\nthree");
    }

    #[test]
    fn a_line_is_cut_one_byte_over_the_limit() {
        // V-74
        let exact = "x".repeat(LINE_BYTES);
        let (_, lines) = ring(&[exact.as_bytes(), b"\n", exact.as_bytes(), b"y\nnext\n"]);
        assert_eq!(lines, [exact.clone(), format!("{exact}…"), "next".to_owned()]);
    }

    #[test]
    fn a_cut_does_not_split_a_character() {
        let text = format!("x{}\n", "é".repeat(LINE_BYTES / 2));
        let (_, lines) = ring(&[text.as_bytes()]);
        assert_eq!(lines, [format!("x{}…", "é".repeat(LINE_BYTES / 2 - 1))]);
    }

    #[test]
    fn bytes_that_are_not_text_stay_within_the_limit() {
        let (ring, lines) = ring(&[&[0xff; LINE_BYTES], b"\n", b"a\xffb\n"]);
        assert!(lines[0].len() <= LINE_BYTES + '…'.len_utf8());
        assert_eq!(lines[1], "a\u{fffd}b");
        assert!(ring.text().ends_with("a\u{fffd}b\n"));
    }

    #[test]
    fn the_ring_keeps_complete_last_lines_within_its_limit() {
        // V-74
        let mut ring = Ring::default();
        for number in 0..20_000 {
            ring.push(format!("line {number}\n").as_bytes(), |_| {});
            assert!(ring.len() <= KEPT_BYTES);
        }
        let text = ring.text();
        assert!(text.starts_with("line ") && text.ends_with("\nline 19999\n"));
        assert!(text.len() > KEPT_BYTES - 16);
        ring.push(&[b'x'; LINE_BYTES], |_| {});
        assert!(ring.len() <= KEPT_BYTES && ring.text().starts_with("line "));
    }

    #[test]
    fn empty_lines_are_bounded_too() {
        // V-74
        let (ring, _) = ring(&[&vec![b'\n'; KEPT_BYTES + 1]]);
        assert_eq!(ring.len(), KEPT_BYTES);
    }

    #[test]
    fn a_ring_of_exactly_its_limit_is_complete() {
        let line = [b"x".repeat(1023), b"\n".to_vec()].concat();
        let (mut ring, _) = ring(&vec![&line[..]; 64]);
        assert_eq!(ring.len(), KEPT_BYTES);
        ring.push(b"\n", |_| {});
        assert_eq!(ring.len(), KEPT_BYTES - 1023);
    }

    async fn run(input: &'static [u8], callback: impl Fn(&str) + Send + Sync + 'static) -> Drain {
        let mut drain = Drain::start(Some(input), &StderrMode::callback(callback));
        drain.wait_until_read(Duration::from_secs(60)).await;
        assert!(drain.reader.is_none() && drain.passed_on.is_none());
        drain
    }

    #[tokio::test]
    async fn the_callback_sees_every_line_and_the_unfinished_one() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&seen);
        let drain = run(b"one\ntwo\nthree", move |line| lines.lock().unwrap().push(line.to_owned())).await;
        assert_eq!(*seen.lock().unwrap(), ["one", "two", "three"]);
        assert_eq!(drain.stderr().lines(), ["one", "two", "three"]);
    }

    #[tokio::test]
    async fn a_panicking_callback_does_not_stop_reading() {
        let drain = run(b"one\ntwo\n", |_| panic!("callback")).await;
        assert_eq!(drain.stderr().tail(), "one\ntwo\n");
    }

    #[tokio::test]
    async fn omitted_lines_are_counted() {
        let (sender, mut receiver) = mpsc::channel(1);
        let mut relay = Relay { batches: Some(sender), skipped: 0 };
        for line in ["one", "two", "three"] {
            relay.offer(format!("{line}\n"));
        }
        assert_eq!(receiver.recv().await.unwrap().text, "one\n");
        relay.finish("four".to_owned()).await;
        let last = receiver.recv().await.unwrap();
        assert_eq!((last.skipped, last.text.as_str()), (2, "four"));
    }
}
