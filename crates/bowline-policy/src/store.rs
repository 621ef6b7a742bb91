//! Stores answers and pins in files that several processes share. A reader never sees a partial file.
//!
//! A file is JSON with sorted members. It is changed under a lock that all processes take (`.name.lock` beside it):
//! read, changed, written to a new file, and put in the place of the old one. Who reads takes no lock and sees the old
//! or the new file. A file that cannot be understood is an error, never an empty one.

use bowline_types::RawJson;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::tree::{Layout, Tree};

/// Tells the files that one process writes apart.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// The largest file that is read.
const MAX_BYTES: u64 = 64 << 20;

/// Why a file of answers or pins cannot be used.
#[derive(Debug)]
pub struct StoreError {
    path: PathBuf,
    line: Option<usize>,
    message: String,
    source: Option<io::Error>,
}

impl StoreError {
    pub(crate) fn damaged(path: &Path, line: Option<usize>, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into(), source: None }
    }

    fn io(path: &Path, doing: &str, error: io::Error) -> Self {
        Self { path: path.to_owned(), line: None, message: doing.to_owned(), source: Some(error) }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The line, from 1, where the file is damaged.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(formatter, ":{line}")?;
        }
        write!(formatter, ": {}", self.message)?;
        match &self.source {
            Some(error) => write!(formatter, ": {error}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|error| error as _)
    }
}

/// What a file holds.
pub trait Document: DeserializeOwned + Serialize + Default {
    /// Which form it has.
    fn version(&self) -> u32;
}

/// The form that is read and written.
pub const VERSION: u32 = 1;

/// Whether others than the owner may be able to write a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Writers {
    /// It is under version control, or the like.
    Anyone,
    /// What it says is permission.
    OwnerOnly,
}

/// A file that holds one document.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
    writers: Writers,
}

impl Store {
    /// Names the file. It is opened by each read and update.
    pub fn new(path: impl Into<PathBuf>, writers: Writers) -> Self {
        Self { path: path.into(), writers }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The document and its text; nothing when there is no such file.
    pub fn read<T: Document>(&self) -> Result<Option<(T, String)>, StoreError> {
        let file = match fs::File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io(&self.path, "cannot open it", error)),
        };
        self.check_mode(&file)?;
        let mut text = String::new();
        file.take(MAX_BYTES + 1)
            .read_to_string(&mut text)
            .map_err(|error| StoreError::io(&self.path, "cannot read it", error))?;
        if u64::try_from(text.len()).is_ok_and(|length| length > MAX_BYTES) {
            return Err(StoreError::damaged(&self.path, None, "larger than 64 MiB"));
        }
        let document: T = serde_json::from_str(&text).map_err(|error| {
            StoreError::damaged(&self.path, Some(error.line()), format!("damaged: {error}"))
        })?;
        match document.version() {
            VERSION => Ok(Some((document, text))),
            other => {
                let message = format!("damaged: expected version {VERSION}, got {other}");
                Err(StoreError::damaged(&self.path, line_of(&text, "\"version\""), message))
            }
        }
    }

    #[cfg(unix)]
    fn check_mode(&self, file: &fs::File) -> Result<(), StoreError> {
        use std::os::unix::fs::PermissionsExt;
        let metadata =
            file.metadata().map_err(|error| StoreError::io(&self.path, "cannot read its metadata", error))?;
        if self.writers == Writers::OwnerOnly && metadata.permissions().mode() & 0o022 != 0 {
            let message = "it must be writable only by its owner; run `chmod 600` on it";
            return Err(StoreError::damaged(&self.path, None, message));
        }
        Ok(())
    }

    #[cfg(not(unix))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "there are no modes here")]
    fn check_mode(&self, _: &fs::File) -> Result<(), StoreError> {
        Ok(())
    }

    /// Changes the document, and says what `change` said. Waits for other processes that do the same. Blocks.
    pub fn update<T: Document, R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R, StoreError> {
        // What a link stands for is what is replaced, not the link.
        let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        create_private_folder(&folder)
            .map_err(|error| StoreError::io(&folder, "cannot create the folder", error))?;
        let beside = |suffix: &str| {
            let mut name = OsString::from(".");
            name.push(target.file_name().unwrap_or_default());
            name.push(suffix);
            folder.join(name)
        };
        let lock_path = beside(".lock");
        let lock = private(fs::OpenOptions::new().write(true).create(true))
            .open(&lock_path)
            .and_then(|lock| lock.lock().map(|()| lock))
            .map_err(|error| StoreError::io(&lock_path, "cannot lock it", error))?;

        let mut document = self.read::<T>()?.map(|(document, _)| document).unwrap_or_default();
        let answer = change(&mut document);
        let json = RawJson::of(&document)
            .map_err(|error| StoreError::damaged(&self.path, None, format!("cannot write it: {error}")))?;
        let mut text = Tree::of(&json).to_text(Layout::Pretty);
        text.push('\n');

        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let temporary = beside(&format!(".{}-{number}.new", std::process::id()));
        let written = write_whole(&temporary, text.as_bytes()).and_then(|()| fs::rename(&temporary, &target));
        drop(lock);
        written.map(|()| answer).map_err(|error| {
            // The error that matters is the one that came first.
            let _ = fs::remove_file(&temporary);
            StoreError::io(&self.path, "cannot write it", error)
        })
    }
}

/// The line, from 1, on which something stands first.
pub(crate) fn line_of(text: &str, what: &str) -> Option<usize> {
    text.lines().position(|line| line.contains(what)).map(|line| line + 1)
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // One that is left from a process that was stopped; a link somebody put there is not followed.
    let _ = fs::remove_file(path);
    let mut file = private(fs::OpenOptions::new().write(true).create_new(true)).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Options by which a file that is created is its owner's alone.
pub(crate) fn private(options: &mut fs::OpenOptions) -> &mut fs::OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Creates a folder that is its owner's alone; one that is there stays as it is.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use bowline_types::RawMap;

    impl Document for RawMap {
        fn version(&self) -> u32 {
            VERSION
        }
    }

    /// A folder of its own that goes away with the value.
    #[derive(Debug)]
    pub(crate) struct Folder(PathBuf);

    impl Folder {
        pub(crate) fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("bowline-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        pub(crate) fn join(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn store(folder: &Folder) -> Store {
        Store::new(folder.join("deep/file.json"), Writers::OwnerOnly)
    }

    #[test]
    fn written_files_are_readable_sorted_and_private() {
        let folder = Folder::new("store-written");
        let store = store(&folder);
        assert!(store.read::<RawMap>().unwrap().is_none());
        for key in ["b", "a"] {
            store.update(|map: &mut RawMap| map.insert(key, RawJson::null())).unwrap();
        }
        let (_, text) = store.read::<RawMap>().unwrap().unwrap();
        assert_eq!(text, "{\n  \"a\": null,\n  \"b\": null\n}\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(store.path()).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(fs::metadata(folder.join("deep")).unwrap().permissions().mode() & 0o777, 0o700);
            fs::set_permissions(store.path(), fs::Permissions::from_mode(0o666)).unwrap();
            let error = store.read::<RawMap>().unwrap_err().to_string();
            assert!(
                error.ends_with("it must be writable only by its owner; run `chmod 600` on it"),
                "{error}"
            );
        }
        let names: Vec<_> =
            fs::read_dir(folder.join("deep")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }

    #[test]
    fn a_damaged_file_is_an_error_and_stays() {
        let folder = Folder::new("store-damaged");
        let store = Store::new(folder.join("file.json"), Writers::Anyone);
        for (text, line) in [("", 1), ("{\n\"a\": 1,\n", 3), ("{\"a\":1,\n\"a\":1}", 2), ("[]", 1)] {
            fs::write(store.path(), text).unwrap();
            let error = store.read::<RawMap>().unwrap_err();
            assert_eq!((error.path(), error.line()), (store.path(), Some(line)), "{error}");
            assert!(error.to_string().contains(&format!("file.json:{line}: damaged: ")), "{error}");
            assert!(store.update(|_: &mut RawMap| ()).is_err());
            assert_eq!(fs::read_to_string(store.path()).unwrap(), text);
        }
        fs::write(store.path(), [0xFF]).unwrap();
        assert!(store.read::<RawMap>().is_err());
    }

    #[test]
    fn no_entry_is_lost_however_many_write() {
        let folder = Folder::new("store-many");
        let store = store(&folder);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let store = &store;
                scope.spawn(move || {
                    for number in 0..10 {
                        store
                            .update(|map: &mut RawMap| {
                                map.insert(format!("{thread}-{number}"), RawJson::null())
                            })
                            .unwrap();
                    }
                });
            }
        });
        assert_eq!(store.read::<RawMap>().unwrap().unwrap().0.len(), 40);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = Folder::new("store-link");
        fs::write(folder.join("real.json"), "{}").unwrap();
        std::os::unix::fs::symlink(folder.join("real.json"), folder.join("link.json")).unwrap();
        let store = Store::new(folder.join("link.json"), Writers::Anyone);
        store.update(|map: &mut RawMap| map.insert("a", RawJson::null())).unwrap();
        assert!(fs::symlink_metadata(store.path()).unwrap().is_symlink());
        assert!(fs::read_to_string(folder.join("real.json")).unwrap().contains("\"a\""));
    }
}
