//! The queue and the writer thread of the audit log.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;

use super::entry::Entry;
use super::file::LogFile;
use super::redact::Redactor;
use super::settings::{AuditArguments, AuditSettings};
use bowline_text::rfc3339;

/// The maximum memory use of queued entries.
const MAX_QUEUED_BYTES: usize = 16 << 20;
/// The maximum time that a decision waits for space in the queue.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Entries above this size are formatted before they are queued, because a line is short even if the arguments are
/// large.
const HEAVY: usize = 16 << 10;
/// The number of bytes per write.
const BATCH_BYTES: usize = 64 << 10;

/// The audit log. Clones share it. Dropping the last clone writes the queued entries.
#[derive(Clone)]
pub struct Audit(Arc<Inner>);

struct Inner {
    path: PathBuf,
    redactor: Redactor,
    arguments: AuditArguments,
    required: bool,
    capacity: usize,
    queue: Option<SyncSender<Message>>,
    load: Arc<Load>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Load {
    bytes: AtomicUsize,
    /// The number of queued entries.
    waiting: AtomicUsize,
    /// Whether the last write failed.
    fails: AtomicBool,
    /// Wakes tasks that wait for space.
    written: Notify,
    /// The number of dropped entries.
    dropped: AtomicU64,
    /// The number of dropped entries that are not logged yet.
    untold: AtomicU64,
}

impl Load {
    fn take_one(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    fn drop_entries(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
        self.untold.fetch_add(count, Ordering::Relaxed);
    }
}

enum Message {
    Entry(Box<Entry>),
    /// A formatted entry.
    Line {
        time: SystemTime,
        line: String,
    },
    Flush(SyncSender<()>),
}

impl Message {
    /// Returns the approximate memory use in bytes.
    fn weight(&self) -> usize {
        match self {
            Self::Entry(entry) => entry.weight(),
            Self::Line { line, .. } => line.len(),
            Self::Flush(_) => 0,
        }
    }
}

impl Audit {
    /// Opens the log and starts its thread. Fails if the file is not writable.
    pub fn open(settings: AuditSettings) -> io::Result<Self> {
        let AuditSettings { path, max_bytes, keep, arguments, secrets, queue, required } = settings;
        let file = LogFile::new(path.clone(), max_bytes, keep);
        file.check()?;
        let capacity = queue;
        let (queue, messages) = mpsc::sync_channel(capacity);
        let (load, redactor) = (Arc::new(Load::default()), Redactor::new(secrets));
        let writer = Writer {
            file,
            redactor: redactor.clone(),
            arguments,
            load: Arc::clone(&load),
            last: SystemTime::UNIX_EPOCH,
        };
        let thread =
            thread::Builder::new().name("bowline-audit".to_owned()).spawn(move || writer.run(&messages))?;
        let (queue, thread) = (Some(queue), Mutex::new(Some(thread)));
        Ok(Self(Arc::new(Inner { path, redactor, arguments, required, capacity, queue, load, thread })))
    }

    /// Queues an entry. If the queue is full, drops and counts it. Never blocks.
    pub fn write(&self, entry: Entry) {
        let message = if entry.weight() > HEAVY {
            let line = entry.to_line(&self.0.redactor, self.0.arguments);
            Message::Line { time: entry.time, line }
        } else {
            Message::Entry(Box::new(entry))
        };
        let weight = message.weight();
        let load = &self.0.load;
        let queued = load.bytes.fetch_add(weight, Ordering::Relaxed);
        let sent = match &self.0.queue {
            // A single entry is always accepted, regardless of its size.
            Some(queue) if queued == 0 || queued.saturating_add(weight) <= MAX_QUEUED_BYTES => {
                load.waiting.fetch_add(1, Ordering::Relaxed);
                queue.try_send(message).inspect_err(|_| load.take_one())
            }
            _ => Err(TrySendError::Full(message)),
        };
        if sent.is_err() {
            load.bytes.fetch_sub(weight, Ordering::Relaxed);
            load.drop_entries(1);
        }
    }

    /// Waits until the next decision can be logged, that is until less than half of the queue is used. If
    /// [`AuditSettings::required`] is set, fails if that takes too long or the file cannot be written.
    pub async fn ready(&self) -> Result<(), String> {
        let has_space = self.wait_for_space(MAX_WAIT).await;
        if !self.0.required {
            return Ok(());
        }
        if !has_space {
            return Err("the audit log cannot keep up, and `audit.required` is set; try again later".into());
        }
        if self.0.load.fails.load(Ordering::Relaxed) {
            let path = self.0.path.display();
            return Err(format!("the audit log `{path}` cannot be written, and `audit.required` is set"));
        }
        Ok(())
    }

    async fn wait_for_space(&self, timeout: Duration) -> bool {
        let load = &self.0.load;
        let is_free = || {
            load.waiting.load(Ordering::Relaxed) <= self.0.capacity / 2
                && load.bytes.load(Ordering::Relaxed) <= MAX_QUEUED_BYTES / 2
        };
        if is_free() {
            return true;
        }
        let freed = async {
            loop {
                let written = load.written.notified();
                if is_free() {
                    return;
                }
                written.await;
            }
        };
        tokio::time::timeout(timeout, freed).await.is_ok()
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &std::path::Path {
        &self.0.path
    }

    /// Adds values that are never logged, like [`AuditSettings::secret`].
    pub fn hide(&self, secrets: impl IntoIterator<Item = String>) {
        self.0.redactor.learn(secrets);
    }

    /// Waits until all queued entries are written. Blocks.
    pub fn flush(&self) {
        let (done, waiting) = mpsc::sync_channel(1);
        if let Some(queue) = &self.0.queue
            && queue.send(Message::Flush(done)).is_ok()
        {
            // The thread runs until the queue is closed, so it responds.
            let _ = waiting.recv();
        }
    }

    /// Returns the number of dropped entries: the queue was full, or the file could not be written.
    pub fn dropped(&self) -> u64 {
        self.0.load.dropped.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Audit")
            .field("path", &self.0.path)
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // When the queue is closed, the thread writes the remaining entries and ends.
        self.queue = None;
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!(path = %self.path.display(), "the audit log thread failed");
        }
    }
}

struct Writer {
    file: LogFile,
    redactor: Redactor,
    arguments: AuditArguments,
    load: Arc<Load>,
    /// The time of the last entry, for lines about dropped entries.
    last: SystemTime,
}

impl Writer {
    fn run(mut self, messages: &Receiver<Message>) {
        while let Ok(first) = messages.recv() {
            let mut next = Some(first);
            let (mut text, mut count, mut waiting) = (String::new(), 0, Vec::new());
            while let Some(message) = next {
                let weight = message.weight();
                let (time, line) = match message {
                    Message::Entry(entry) => (entry.time, entry.to_line(&self.redactor, self.arguments)),
                    Message::Line { time, line } => (time, line),
                    Message::Flush(done) => {
                        waiting.push(done);
                        next = messages.try_recv().ok();
                        continue;
                    }
                };
                self.load.bytes.fetch_sub(weight, Ordering::Relaxed);
                self.load.take_one();
                self.last = self.last.max(time);
                text.push_str(&line);
                count += 1;
                next = if text.len() < BATCH_BYTES { messages.try_recv().ok() } else { None };
            }
            self.append(&text, count);
            self.load.written.notify_waiters();
            for done in waiting {
                // The receiver may be gone.
                let _ = done.send(());
            }
        }
        self.append("", 0);
    }

    fn append(&self, lines: &str, count: u64) {
        let untold = self.load.untold.swap(0, Ordering::Relaxed);
        let mut text = String::new();
        if untold > 0 {
            text =
                format!("{{\"time\":\"{}\",\"event\":\"dropped\",\"count\":{untold}}}\n", rfc3339(self.last));
        }
        text.push_str(lines);
        if text.is_empty() {
            return;
        }
        let appended = self.file.append(&text);
        self.load.fails.store(appended.is_err(), Ordering::Relaxed);
        if let Err(error) = appended {
            tracing::error!(%error, lost = count, "cannot write the audit log");
            self.load.drop_entries(count);
            self.load.untold.fetch_add(untold, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::Event;
    use super::*;
    use crate::Folder;
    use bowline_types::RawJson;
    use std::fs;
    use std::time::{Duration, UNIX_EPOCH};

    fn entry(number: u64) -> Entry {
        let id = Some(number.to_string());
        let time = UNIX_EPOCH + Duration::from_secs(number);
        Entry { id, ..Entry::new(time, Event::Call, "files", "tools/call") }
    }

    fn ids(text: &str) -> Vec<String> {
        let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        text.lines().map(|text| line(text)["id"].as_str().unwrap_or("-").to_owned()).collect()
    }

    #[test]
    fn a_log_that_cannot_be_rotated_is_appended_to() {
        let folder = Folder::new("audit-stuck");
        let path = folder.join("audit.jsonl");
        fs::create_dir_all(folder.join("audit.jsonl.1/inside")).unwrap();
        let audit = Audit::open(AuditSettings::new(&path).max_bytes(10).keep(1)).unwrap();
        for number in 0..3 {
            audit.write(entry(number));
            audit.flush();
        }
        assert_eq!(
            (audit.dropped(), ids(&fs::read_to_string(&path).unwrap())),
            (0, ["0", "1", "2"].map(str::to_owned).to_vec())
        );
    }

    #[test]
    fn every_text_of_an_entry_weighs() {
        let long = || Some("x".repeat(1000));
        let full = Entry {
            name: long(),
            reason: long(),
            outcome: long(),
            client: long(),
            principal: long(),
            issuer: long(),
            client_id: long(),
            scopes: long(),
            token_digest: long(),
            ..entry(1)
        };
        assert!(full.weight() >= 9000);
    }

    #[test]
    fn queued_lines_are_written_on_drop_and_on_flush() {
        let folder = Folder::new("audit-flush");
        let path = folder.join("deep/audit.jsonl");
        let audit = Audit::open(AuditSettings::new(&path)).unwrap();
        audit.write(entry(1));
        audit.flush();
        assert_eq!(ids(&fs::read_to_string(&path).unwrap()), ["1"]);
        audit.write(entry(2));
        drop(audit);
        assert_eq!(ids(&fs::read_to_string(&path).unwrap()), ["1", "2"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn files_are_rotated_by_size_and_limited_in_number() {
        let folder = Folder::new("audit-rotate");
        let path = folder.join("audit.jsonl");
        let length =
            u64::try_from(entry(1).to_line(&Redactor::new(Vec::new()), AuditArguments::Digest).len())
                .unwrap();
        let audit = Audit::open(AuditSettings::new(&path).max_bytes(2 * length).keep(2)).unwrap();
        for number in 1..=9 {
            audit.write(entry(number));
            audit.flush();
        }
        let read = |name: &str| ids(&fs::read_to_string(folder.join(name)).unwrap());
        assert_eq!(read("audit.jsonl"), ["9"]);
        assert_eq!(read("audit.jsonl.1"), ["7", "8"]);
        assert_eq!(read("audit.jsonl.2"), ["5", "6"]);
        assert!(!folder.join("audit.jsonl.3").exists());
        drop(audit);
        let audit = Audit::open(AuditSettings::new(&path).max_bytes(1).keep(0)).unwrap();
        audit.write(entry(1));
        drop(audit);
        assert_eq!(read("audit.jsonl"), ["1"]);
        assert_eq!(read("audit.jsonl.1"), ["7", "8"]);
    }

    #[test]
    fn no_line_is_torn_or_lost_by_several_writers() {
        let folder = Folder::new("audit-torn");
        let path = folder.join("audit.jsonl");
        fs::write(&path, "{\"id\":\"cut off").unwrap();
        let settings = AuditSettings::new(&path).max_bytes(500).keep(1000);
        let writers: Vec<Audit> = (0..4).map(|_| Audit::open(settings.clone()).unwrap()).collect();
        thread::scope(|scope| {
            for (writer, audit) in writers.iter().enumerate() {
                let first = u64::try_from(writer).unwrap() * 75;
                scope.spawn(move || {
                    for number in first..first + 75 {
                        audit.write(entry(number));
                        audit.flush();
                    }
                });
            }
        });
        drop(writers);
        let mut found = Vec::new();
        for file in fs::read_dir(folder.join("")).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            let whole = text.strip_prefix("{\"id\":\"cut off\n").unwrap_or(&text);
            found.extend(ids(whole).into_iter().map(|id| id.parse::<u64>().unwrap()));
        }
        found.sort_unstable();
        assert_eq!(found, (0..300).collect::<Vec<_>>());
    }

    #[test]
    fn a_full_queue_drops_counts_and_reports() {
        let folder = Folder::new("audit-full");
        let path = folder.join("audit.jsonl");
        let audit = Audit::open(AuditSettings::new(&path).queue(1)).unwrap();
        // Another process holds the lock, so the thread cannot write.
        let lock = fs::File::options().write(true).open(folder.join(".audit.jsonl.lock")).unwrap();
        lock.lock().unwrap();
        let mut count = 0;
        while audit.dropped() < 90 {
            audit.write(entry(count));
            count += 1;
        }
        let dropped = audit.dropped();
        lock.unlock().unwrap();
        drop(audit);
        let text = fs::read_to_string(&path).unwrap();
        let reported: u64 = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .filter(|line| line["event"] == "dropped")
            .map(|line| line["count"].as_u64().unwrap())
            .sum();
        let written = ids(&text).iter().filter(|id| *id != "-").count();
        assert_eq!((reported, written), (dropped, usize::try_from(count - dropped).unwrap()));
    }

    #[test]
    fn large_arguments_do_not_fill_the_memory() {
        let folder = Folder::new("audit-large");
        let audit = Audit::open(AuditSettings::new(folder.join("audit.jsonl"))).unwrap();
        let lock = fs::File::options().write(true).open(folder.join(".audit.jsonl.lock")).unwrap();
        lock.lock().unwrap();
        let arguments = Some(RawJson::parse(format!("\"{}\"", "x".repeat(2 << 20))).unwrap());
        for number in 0..40 {
            audit.write(Entry { arguments: arguments.clone(), ..entry(number) });
            assert!(audit.0.load.bytes.load(Ordering::Relaxed) <= 1 << 20);
        }
        lock.unlock().unwrap();
        audit.flush();
        assert_eq!(audit.dropped(), 0);
        let text = fs::read_to_string(folder.join("audit.jsonl")).unwrap();
        assert_eq!(ids(&text).len(), 40);
    }

    #[tokio::test]
    async fn decisions_wait_for_space_in_the_queue() {
        let folder = Folder::new("audit-room");
        let audit = Audit::open(AuditSettings::new(folder.join("audit.jsonl")).queue(4)).unwrap();
        let lock = fs::File::options().write(true).open(folder.join(".audit.jsonl.lock")).unwrap();
        lock.lock().unwrap();
        let mut ready = Box::pin(audit.ready());
        while futures_util::poll!(ready.as_mut()).is_ready() {
            audit.write(entry(1));
            ready = Box::pin(audit.ready());
        }
        lock.unlock().unwrap();
        assert_eq!((ready.await, audit.dropped()), (Ok(()), 0));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn nothing_is_allowed_that_a_required_log_cannot_record() {
        let folder = Folder::new("audit-required");
        let path = folder.join("audit.jsonl");
        let open = |required| Audit::open(AuditSettings::new(&path).required(required)).unwrap();
        let (required, other) = (open(true), open(false));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        for audit in [&required, &other] {
            audit.write(entry(1));
            audit.flush();
        }
        let reason = required.ready().await.unwrap_err();
        assert!(reason.contains("cannot be written"), "{reason}");
        assert_eq!(other.ready().await, Ok(()));
        fs::remove_dir(&path).unwrap();
        required.write(entry(2));
        required.flush();
        assert_eq!(required.ready().await, Ok(()));
    }
}
