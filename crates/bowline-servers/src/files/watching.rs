//! Watches the files that clients subscribed to.
//!
//! Events of the system only indicate that something happened in a directory. Whether a file changed is checked through the handle
//! of its root, so that files outside of it are never reported.

use super::{
    jail::{Jail, Place},
    replace::Stamp,
};
use bowline::server::Updates;
use notify::{RecursiveMode, Watcher as _};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};

/// How long changes are collected before they are reported.
const GATHER: Duration = Duration::from_millis(50);
/// The polling interval for files that the system cannot watch.
const LOOK: Duration = Duration::from_secs(2);

/// The watcher of a server. Its thread runs while there are subscriptions.
#[derive(Debug)]
pub(super) struct Watching {
    jail: Arc<Jail>,
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    thread: Option<Sender<Message>>,
    wanted: BTreeSet<String>,
}

#[derive(Debug)]
enum Message {
    /// The system reported an event.
    Hint,
    Watch(String, Watched),
    Unwatch(String),
    /// There are no subscriptions left.
    End,
}

/// A subscribed file.
#[derive(Debug)]
struct Watched {
    place: Place,
    stamp: Option<Stamp>,
}

impl Watched {
    fn new(place: Place) -> Self {
        let stamp = look(&place);
        Self { place, stamp }
    }

    /// Returns whether the file changed since the last check.
    fn changed(&mut self) -> bool {
        let now = look(&self.place);
        std::mem::replace(&mut self.stamp, now) != now
    }

    /// Returns the directory to watch. Watching the file itself would miss replacements.
    fn folder(&self) -> PathBuf {
        let path = self.place.path();
        path.parent().map_or_else(|| path.clone(), PathBuf::from)
    }
}

fn look(place: &Place) -> Option<Stamp> {
    place.metadata().ok().map(|metadata| Stamp::of(&metadata))
}

impl Watching {
    pub(super) fn new(jail: Arc<Jail>) -> Self {
        Self { jail, running: Mutex::default() }
    }

    /// Starts watching these resources. Their state is recorded before this returns, so that no later change is missed.
    pub(super) fn follow(&self, wanted: &BTreeSet<String>, updates: &Updates) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut running.wanted, wanted.clone());
        if wanted.is_empty() {
            // The thread ends itself; the next subscription starts a new one.
            if let Some(thread) = running.thread.take() {
                drop(thread.send(Message::End));
            }
            return;
        }
        let updates = updates.clone();
        let thread = running.thread.get_or_insert_with(|| start(move |uri| updates.resource_updated(uri)));
        for uri in before.difference(wanted) {
            drop(thread.send(Message::Unwatch(uri.clone())));
        }
        for uri in wanted.difference(&before) {
            if let Ok(place) = self.jail.place(uri) {
                drop(thread.send(Message::Watch(uri.clone(), Watched::new(place))));
            }
        }
    }
}

/// Starts the watcher thread. If that fails, changes are not reported.
fn start(tell: impl Fn(&str) + Send + 'static) -> Sender<Message> {
    let (sender, receiver) = mpsc::channel();
    let hints = sender.clone();
    let work = move || {
        let handler = move |_: notify::Result<notify::Event>| drop(hints.send(Message::Hint));
        let watcher = notify::recommended_watcher(handler).ok();
        run(&receiver, &mut Watch { watcher, files: BTreeMap::new(), folders: BTreeMap::new() }, tell);
    };
    drop(std::thread::Builder::new().name("bowline-files".into()).spawn(work));
    sender
}

fn run(messages: &mpsc::Receiver<Message>, watch: &mut Watch, tell: impl Fn(&str)) {
    let mut due: Option<Instant> = None;
    loop {
        let due_by_clock = watch.needs_looking().then(|| Instant::now() + LOOK);
        let message = match due.or(due_by_clock) {
            Some(due) => messages.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match message {
            Ok(Message::Hint) => {}
            Ok(Message::Watch(uri, file)) => watch.add(uri, file),
            Ok(Message::Unwatch(uri)) => watch.remove(&uri),
            Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                due = None;
                for (uri, file) in &mut watch.files {
                    if file.changed() {
                        tell(uri);
                    }
                }
                continue;
            }
        }
        // Measured from the first event, so that a constantly changing file is reported, too.
        due.get_or_insert_with(|| Instant::now() + GATHER);
    }
}

struct Watch {
    watcher: Option<notify::RecommendedWatcher>,
    files: BTreeMap<String, Watched>,
    /// The number of watched files per directory, and whether the system supports watching it.
    folders: BTreeMap<PathBuf, (usize, bool)>,
}

impl Watch {
    fn add(&mut self, uri: String, file: Watched) {
        let folder = file.folder();
        let known = self.folders.entry(folder.clone()).or_insert_with(|| {
            let watched =
                self.watcher.as_mut().map(|watcher| watcher.watch(&folder, RecursiveMode::NonRecursive));
            (0, watched.is_some_and(|watched| watched.is_ok()))
        });
        known.0 += 1;
        self.files.insert(uri, file);
    }

    fn remove(&mut self, uri: &str) {
        let Some(file) = self.files.remove(uri) else { return };
        let folder = file.folder();
        let Some(known) = self.folders.get_mut(&folder) else { return };
        known.0 -= 1;
        if known.0 == 0 {
            self.folders.remove(&folder);
            if let Some(watcher) = &mut self.watcher {
                drop(watcher.unwatch(&folder));
            }
        }
    }

    fn needs_looking(&self) -> bool {
        self.folders.values().any(|(_, watched)| !watched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uris(watch: &Watch) -> Vec<&String> {
        watch.files.keys().collect()
    }

    #[test]
    fn unsubscribed_files_are_not_watched() {
        let folder = tempfile::tempdir().unwrap();
        let jail = Jail::open([folder.path()]).unwrap();
        let mut watch = Watch { watcher: None, files: BTreeMap::new(), folders: BTreeMap::new() };
        for name in ["a", "b"] {
            watch.add(name.into(), Watched::new(jail.place(name).unwrap()));
        }
        assert_eq!(watch.folders.len(), 1, "files of one folder share its watch");
        watch.remove("a");
        assert_eq!(uris(&watch), ["b"]);
        assert_eq!(watch.folders.len(), 1);
        watch.remove("b");
        watch.remove("b");
        assert!(watch.folders.is_empty() && watch.files.is_empty());
    }

    #[test]
    fn only_changed_files_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let jail = Jail::open([folder.path()]).unwrap();
        std::fs::write(folder.path().join("a"), "1").unwrap();
        let (sender, receiver) = mpsc::channel();
        for name in ["a", "b"] {
            sender.send(Message::Watch(name.into(), Watched::new(jail.place(name).unwrap()))).unwrap();
        }
        std::fs::write(folder.path().join("a"), "changed").unwrap();
        let (report, reported) = mpsc::channel();
        let worker = std::thread::spawn(move || {
            let mut watch = Watch { watcher: None, files: BTreeMap::new(), folders: BTreeMap::new() };
            run(&receiver, &mut watch, |uri| report.send(uri.to_owned()).unwrap());
        });
        assert_eq!(reported.recv().unwrap(), "a");
        std::fs::write(folder.path().join("b"), "new").unwrap();
        sender.send(Message::Hint).unwrap();
        assert_eq!(reported.recv().unwrap(), "b");
        sender.send(Message::End).unwrap();
        worker.join().unwrap();
        assert!(reported.recv().is_err(), "nothing else is reported");
    }
}
