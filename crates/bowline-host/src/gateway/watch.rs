//! Watches the configuration files and reloads them.
//!
//! Files are looked at once a second, which works on every system and for files that editors replace. A change counts once
//! nothing has changed for another second, so that nobody reads what is half written.

use super::{Gateway, Inner};
use bowline_config::{Config, Diff, Disk, Loader, MAX_FILE, read_regular};
use bowline_proto::seal::digest;
use bowline_text::visible;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{PoisonError, Weak},
    time::{Duration, SystemTime},
};

/// How often files are checked.
const INTERVAL: Duration = Duration::from_secs(1);
/// A file that was changed so lately may be changed again without looking different.
const FRESH: Duration = Duration::from_secs(3);

impl Gateway {
    /// Reloads the configuration whenever one of its files changes. An invalid one is reported in the log and by
    /// [`problems`](Self::problems), and the previous one is kept. Ends with the gateway.
    ///
    /// Needs a tokio runtime.
    pub fn watch(&self, loader: Loader) {
        let files = self.watched_files();
        let task = tokio::spawn(watch(std::sync::Arc::downgrade(&self.inner), loader, files)).abort_handle();
        let mut watcher = self.inner.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = watcher.replace(task) {
            before.abort();
        }
    }
}

async fn watch(gateway: Weak<Inner>, loader: Loader, files: Vec<PathBuf>) {
    let mut watched = Watched::new(files);
    // What they are like now is what was read.
    (watched, _) = look(watched).await;
    watched.pending = false;
    loop {
        tokio::time::sleep(INTERVAL).await;
        let is_due;
        (watched, is_due) = look(watched).await;
        if !is_due {
            continue;
        }
        let reading = loader.clone();
        let Some(inner) = gateway.upgrade() else { return };
        let applying = tokio::task::spawn_blocking(move || {
            let gateway = Gateway { inner };
            gateway.apply_and_log(reading.load(&Disk));
            watched.follow(gateway.watched_files());
            watched
        });
        let Ok(followed) = applying.await else { return };
        watched = followed;
    }
}

impl Gateway {
    /// Reloads the configuration, whether or not a file changed. The result is logged; if the new configuration is invalid, the
    /// previous one is kept.
    ///
    /// Needs a tokio runtime.
    pub async fn reload(&self, loader: &Loader) {
        let (gateway, loader) = (self.clone(), loader.clone());
        let applying = tokio::task::spawn_blocking(move || gateway.apply_and_log(loader.load(&Disk)));
        if let Err(error) = applying.await {
            tracing::warn!(%error, "the configuration was not reloaded");
        }
    }

    fn apply_and_log(&self, config: Config) {
        match self.apply(config) {
            Ok(applied) => {
                let changes = summary(&applied.diff);
                tracing::info!(changes, problems = applied.problems.len(), "the configuration was reloaded");
                for section in applied.restart {
                    tracing::warn!(section, "a change in this section takes effect after a restart");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the new configuration is invalid; keeping the previous one");
            }
        }
    }

    /// The files of the configuration, and those whose content was approved with a server.
    fn watched_files(&self) -> Vec<PathBuf> {
        let config = self.config();
        let candidates = config.upstreams.iter().filter_map(|entry| self.inner.candidate(entry));
        let scripts = candidates.flat_map(|candidate| candidate.files().to_vec());
        config.files.iter().cloned().chain(scripts).collect()
    }
}

/// What a new configuration changes, in words.
fn summary(diff: &Diff) -> String {
    let sections: Vec<String> = diff.sections.iter().map(|section| format!("[{section}]")).collect();
    let parts = [
        ("added", &diff.added),
        ("removed", &diff.removed),
        ("changed", &diff.changed),
        ("sections", &sections),
    ];
    let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<String> = parts.map(|(what, names)| format!("{what}: {}", names.join(", "))).collect();
    if parts.is_empty() { "none".to_owned() } else { visible(&parts.join("; ")) }
}

/// Looks at the files where that holds nobody up.
async fn look(mut watched: Watched) -> (Watched, bool) {
    let looked = tokio::task::spawn_blocking(move || {
        let is_due = watched.look(SystemTime::now(), &stamp, &read);
        (watched, is_due)
    });
    match looked.await {
        Ok(looked) => looked,
        // Only when the runtime ends.
        Err(_) => std::future::pending().await,
    }
}

/// When a file was changed, and its length; nothing if there is none.
type Stamp = Option<(SystemTime, u64)>;

fn stamp(path: &Path) -> Stamp {
    let found = fs::metadata(path).ok()?;
    Some((found.modified().ok()?, found.len()))
}

/// What is in a file that a configuration may be read from.
fn read(path: &Path) -> Option<Vec<u8>> {
    read_regular(path, MAX_FILE).ok()
}

/// The files, as they were when they were last looked at.
struct Watched {
    files: BTreeMap<PathBuf, Seen>,
    /// Whether a change was not reported yet.
    pending: bool,
}

#[derive(Clone, Default, PartialEq)]
struct Seen {
    stamp: Stamp,
    content: Option<[u8; 32]>,
}

impl Watched {
    fn new(files: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { files: files.into_iter().map(|file| (file, Seen::default())).collect(), pending: false }
    }

    /// Watches these files from now on.
    fn follow(&mut self, files: Vec<PathBuf>) {
        // What is new was read just now, and is taken as it is when it is first looked at.
        let known = std::mem::take(&mut self.files);
        self.files = files
            .into_iter()
            .map(|file| {
                let seen = known.get(&file).cloned();
                let seen = seen.unwrap_or_else(|| Seen { stamp: stamp(&file), content: content(&file) });
                (file, seen)
            })
            .collect();
    }

    /// Returns whether something changed since the last report, and did not change since the last check.
    fn look(
        &mut self,
        now: SystemTime,
        stamp: &dyn Fn(&Path) -> Stamp,
        read: &dyn Fn(&Path) -> Option<Vec<u8>>,
    ) -> bool {
        let mut changed = false;
        for (path, seen) in &mut self.files {
            let stamp = stamp(path);
            let is_old = |time| now.duration_since(time).is_ok_and(|age| age >= FRESH);
            let is_fresh = stamp.is_some_and(|(time, _)| !is_old(time));
            if stamp == seen.stamp && !is_fresh {
                continue;
            }
            let content = stamp.and_then(|_| read(path)).map(|bytes| digest(&[&bytes]));
            changed |= content != seen.content;
            *seen = Seen { stamp, content };
        }
        if changed {
            self.pending = true;
            return false;
        }
        std::mem::take(&mut self.pending)
    }
}

fn content(path: &Path) -> Option<[u8; 32]> {
    read(path).map(|bytes| digest(&[&bytes]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::RefCell, time::UNIX_EPOCH};

    /// Files with their times, and a clock.
    struct Fixture {
        files: RefCell<BTreeMap<PathBuf, (u64, &'static str)>>,
        now: u64,
        watched: Watched,
    }

    impl Fixture {
        fn new() -> Self {
            let files = BTreeMap::from([(PathBuf::from("a"), (1, "one"))]);
            let mut watched = Self {
                files: RefCell::new(files),
                now: 100,
                watched: Watched::new(["a", "b"].map(PathBuf::from)),
            };
            // The initial content is not a change.
            watched.tick();
            watched.watched.pending = false;
            watched
        }

        fn put(&self, path: &str, time: u64, text: &'static str) {
            self.files.borrow_mut().insert(path.into(), (time, text));
        }

        fn tick(&mut self) -> bool {
            self.now += 1;
            let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
            let stamp = |path: &Path| {
                self.files
                    .borrow()
                    .get(path)
                    .map(|(time, text)| (at(*time), u64::try_from(text.len()).unwrap()))
            };
            let read = |path: &Path| self.files.borrow().get(path).map(|(_, text)| text.as_bytes().to_vec());
            self.watched.look(at(self.now), &stamp, &read)
        }
    }

    #[test]
    fn a_change_counts_once_when_it_is_complete() {
        let mut watched = Fixture::new();
        assert!(!watched.tick());
        watched.put("a", 101, "two, half");
        assert!(!watched.tick());
        watched.put("a", 102, "two, whole");
        assert!(!watched.tick());
        assert!(watched.tick());
        assert!(!watched.tick());
    }

    #[test]
    fn a_file_with_unchanged_content_is_not_reloaded() {
        let mut watched = Fixture::new();
        watched.put("a", 101, "one");
        assert!(!watched.tick());
        assert!(!watched.tick());
    }

    #[test]
    fn a_change_that_keeps_length_and_time_is_noticed() {
        let mut watched = Fixture::new();
        watched.put("a", 102, "two");
        assert!(!watched.tick());
        assert!(watched.tick());
        watched.put("a", 102, "six");
        assert!(!watched.tick());
        assert!(watched.tick());
    }

    #[test]
    fn added_and_removed_files_are_noticed() {
        let mut watched = Fixture::new();
        watched.put("b", 50, "new");
        assert!(!watched.tick());
        assert!(watched.tick());
        watched.files.borrow_mut().clear();
        assert!(!watched.tick());
        assert!(watched.tick());
    }
}
