//! Keeps traffic in a folder, and reads it back, so that it can be looked at without servers.
//!
//! `calls.jsonl` has one line for each message: its head, and its text without secrets. A line whose number is known already replaces
//! the earlier head. Each connection to a server also gets a transcript, as `bowline replay` reads it.

use crate::{
    buffer::{Recorder, Stored},
    events::{Direction, Head, Kind, Leg},
};
use bowline_policy::audit::Redactor;
use bowline_transcript::{Recorder as Transcript, Side};
use serde::{Deserialize, Serialize};
use std::{
    borrow::Cow,
    collections::HashMap,
    fs::{self, File, OpenOptions},
    future::Future,
    io::{self, BufRead as _, BufReader, BufWriter, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

/// The file with all messages.
pub(crate) const FILE: &str = "calls.jsonl";
/// How many messages are written at a time.
const BATCH: usize = 500;
/// How much is kept in a folder. Then keeping ends, so that a forgotten program does not fill the disk.
const MAX_KEPT: u64 = 1 << 30;
/// How many connections get a transcript.
const MAX_TRANSCRIPTS: usize = 100;
/// The largest file that is read.
const MAX_READ: u64 = MAX_KEPT + (1 << 20);

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    head: Head,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    http: Option<Cow<'a, str>>,
}

/// Writes messages to a folder.
pub(crate) struct Keeper {
    folder: PathBuf,
    redactor: Redactor,
    file: BufWriter<File>,
    transcripts: HashMap<u64, Transcript<File>>,
    opened: usize,
    written: u64,
    limit: u64,
    first: Option<f64>,
}

impl Keeper {
    /// Creates the folder, if necessary, and its file. Fails if the folder has one already.
    pub(crate) fn new(folder: &Path, redactor: Redactor) -> io::Result<Self> {
        bowline_files::create_folder(folder)?;
        let file = private(&folder.join(FILE))?;
        Ok(Self {
            folder: folder.to_owned(),
            redactor,
            file: BufWriter::new(file),
            transcripts: HashMap::new(),
            opened: 0,
            written: 0,
            limit: MAX_KEPT,
            first: None,
        })
    }

    /// Writes what the recorder shows until `end` completes, and then what is left.
    pub(crate) async fn run(mut self, recorder: Recorder, end: impl Future<Output = ()>) -> io::Result<()> {
        let mut end = std::pin::pin!(end);
        let mut is_ending = false;
        let (mut cursor, mut updated) = (0, recorder.with_ring(crate::buffer::updated));
        loop {
            // Registered before the look, so that nothing between the two is missed.
            let mut news = std::pin::pin!(recorder.news().notified());
            news.as_mut().enable();
            let (window, now) = recorder.window(cursor, updated, BATCH);
            updated = now;
            let is_over = window.heads.is_empty() && window.updates.is_empty();
            cursor =
                window.heads.last().map_or(cursor, |head| head.seq).max(window.gap.map_or(0, |gap| gap[1]));
            let lines: Vec<_> = window
                .updates
                .into_iter()
                .map(|head| (head, None))
                .chain(window.heads.into_iter().map(|head| {
                    let body = recorder.with_ring(|ring| body(ring.get(head.seq)));
                    (head, body)
                }))
                .collect();
            // Files are written, which other tasks must not wait for.
            let written = tokio::task::spawn_blocking(move || {
                let written = lines.into_iter().try_for_each(|(head, body)| self.write(head, body));
                let flushed = self.file.flush();
                (self, written.and(flushed))
            });
            let (keeper, done) = written.await.map_err(io::Error::other)?;
            self = keeper;
            done?;
            match (is_over, is_ending) {
                (true, true) => return Ok(()),
                (true, false) => tokio::select! {
                    () = news => {}
                    () = &mut end => is_ending = true,
                },
                (false, _) => {}
            }
        }
    }

    fn write(&mut self, head: Head, body: Option<Kept>) -> io::Result<()> {
        let Kept { bytes, http } = body.unwrap_or_default();
        let text = bytes.map(|bytes| self.redactor.message(&String::from_utf8_lossy(&bytes)).0);
        self.transcribe(&head, text.as_deref())?;
        let line = Line { head, text: text.map(Cow::Owned), http: http.map(Cow::Owned) };
        let mut line = serde_json::to_vec(&line)?;
        line.push(b'\n');
        self.written += line.len() as u64;
        if self.written > self.limit {
            let reason =
                format!("`{}` has reached {} bytes; nothing more is kept", self.folder.display(), self.limit);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, reason));
        }
        self.file.write_all(&line)
    }

    /// Adds a message of a server to the transcript of its connection.
    fn transcribe(&mut self, head: &Head, text: Option<&str>) -> io::Result<()> {
        let is_message = matches!(head.kind, Kind::Request | Kind::Response | Kind::Notification);
        let (Some(text), Leg::Server, true) = (text, head.leg, is_message) else { return Ok(()) };
        if !self.transcripts.contains_key(&head.connection) {
            if self.opened >= MAX_TRANSCRIPTS {
                return Ok(());
            }
            self.opened += 1;
            let path = self.folder.join(format!("{}-{}.txt", head.connection, file_name(&head.peer)));
            let transcript = Transcript::new(private(&path)?, "Kept by the inspector.", &head.peer)?;
            self.transcripts.insert(head.connection, transcript);
        }
        let first = *self.first.get_or_insert(head.at);
        let at = Duration::try_from_secs_f64((head.at - first) / 1000.0).unwrap_or_default();
        let side = if head.direction == Direction::Out { Side::Client } else { Side::Server };
        match self.transcripts.get_mut(&head.connection) {
            Some(transcript) => transcript.frame(side, text.replace("***", "<masked>").as_bytes(), at),
            None => Ok(()),
        }
    }
}

/// The text of a message, as it is kept in memory.
#[derive(Default)]
struct Kept {
    bytes: Option<Vec<u8>>,
    http: Option<String>,
}

fn body(stored: Option<&Stored>) -> Option<Kept> {
    let body = stored?.body.as_ref()?;
    Some(Kept { bytes: Some(body.bytes.to_vec()), http: body.http.as_deref().map(str::to_owned) })
}

fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    bowline_files::private(options.write(true).create_new(true)).open(path)
}

/// Returns what can be part of a file name everywhere.
fn file_name(name: &str) -> String {
    let is_plain = |character: &char| character.is_ascii_alphanumeric() || "-_".contains(*character);
    name.chars().filter(is_plain).take(40).collect()
}

/// Returns whether a folder was kept.
pub(crate) fn is_kept(folder: &Path) -> bool {
    folder.join(FILE).is_file()
}

/// Reads a folder into a recorder. Lines that cannot be read are counted.
pub(crate) fn load(folder: &Path, recorder: &Recorder) -> io::Result<usize> {
    let path = folder.join(FILE);
    if fs::metadata(&path)?.len() > MAX_READ {
        let reason = format!("`{}` is larger than {MAX_READ} bytes", path.display());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    // First the heads as they were in the end, then the messages.
    let mut latest: HashMap<u64, Head> = HashMap::new();
    let mut unreadable = 0;
    each_line(&path, |line| match line {
        Some(Line { head, .. }) => drop(latest.insert(head.seq, head)),
        None => unreadable += 1,
    })?;
    let mut numbers: HashMap<u64, u64> = HashMap::new();
    let mut seqs: Vec<_> = latest.keys().copied().collect();
    seqs.sort_unstable();
    // Messages that were dropped leave gaps, but the numbers of a buffer have none.
    numbers.extend(seqs.iter().zip(1..).map(|(old, new)| (*old, new)));
    let mut texts: HashMap<u64, (Option<String>, Option<String>)> = HashMap::new();
    let mut next = seqs.iter().copied().peekable();
    let mut push = |seq: u64, text: Option<String>, http: Option<String>| {
        let Some(mut head) = latest.remove(&seq) else { return };
        head.seq = numbers.get(&seq).copied().unwrap_or_default();
        head.call = head.call.and_then(|call| numbers.get(&call).copied());
        head.parent = head.parent.and_then(|parent| numbers.get(&parent).copied());
        recorder.restore(head, text.as_deref(), http);
    };
    each_line(&path, |line| {
        let Some(Line { head, text, http }) = line else { return };
        // A line that only replaces a head has no text.
        if text.is_some() || !texts.contains_key(&head.seq) {
            texts.insert(head.seq, (text.map(Cow::into_owned), http.map(Cow::into_owned)));
        }
        while let Some(seq) = next.peek().copied().filter(|seq| texts.contains_key(seq)) {
            let (text, http) = texts.remove(&seq).unwrap_or_default();
            push(seq, text, http);
            next.next();
        }
    })?;
    Ok(unreadable)
}

fn each_line(path: &Path, mut take: impl FnMut(Option<Line<'static>>)) -> io::Result<()> {
    for line in BufReader::new(File::open(path)?).split(b'\n') {
        let line = line?;
        if !line.is_empty() {
            take(serde_json::from_slice::<Line<'_>>(&line).ok().map(|line| Line {
                head: line.head,
                text: line.text.map(|text| Cow::Owned(text.into_owned())),
                http: line.http.map(|http| Cow::Owned(http.into_owned())),
            }));
        }
    }
    Ok(())
}
