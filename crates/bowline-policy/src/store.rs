//! Stores answers and pins in files that several processes share. A reader never sees a partial file.
//!
//! A file is JSON with sorted members. A writer takes a lock (`.name.lock` beside the file), reads the file, writes the
//! changed content to a new file, and replaces the old one. Readers take no lock and see either the old or the new
//! file. An invalid file is an error; it is never treated as empty.

use bowline_types::RawJson;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::tree::{Layout, Tree};

/// The maximum size of a file.
const MAX_BYTES: u64 = 64 << 20;

/// An error of a file of answers or pins.
#[derive(Debug)]
pub struct StoreError {
    path: PathBuf,
    line: Option<usize>,
    message: String,
    source: Option<io::Error>,
}

impl StoreError {
    /// Creates an error about a file.
    pub fn new(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self { path: path.into(), line: None, message: message.into(), source: None }
    }

    pub(crate) fn damaged(path: &Path, line: Option<usize>, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into(), source: None }
    }

    fn io(path: &Path, doing: &str, error: io::Error) -> Self {
        Self { path: path.to_owned(), line: None, message: doing.to_owned(), source: Some(error) }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the line of the error, starting at 1.
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

/// The content of a file.
pub trait Document: DeserializeOwned + Serialize + Default {
    /// Returns the format version.
    fn version(&self) -> u32;
}

/// The supported format version.
pub const VERSION: u32 = 1;

/// Whether others than the owner may be able to write a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Writers {
    /// Others may write it, for example because it is under version control.
    Anyone,
    /// Only the owner may write it, because its content grants permissions.
    OwnerOnly,
}

/// A file that holds one document.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
    writers: Writers,
}

impl Store {
    /// Creates a store for this path. The file is opened by each read and update.
    pub fn new(path: impl Into<PathBuf>, writers: Writers) -> Self {
        Self { path: path.into(), writers }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the document and its text. Returns `None` if the file does not exist.
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

    /// Changes the document, and returns the result of `change`. Waits for other processes that hold the lock. Blocks.
    pub fn update<T: Document, R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R, StoreError> {
        // Replace the target of a link, not the link.
        let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        bowline_files::create_folder(&folder)
            .map_err(|error| StoreError::io(&folder, "cannot create the folder", error))?;
        let mut lock_name = OsString::from(".");
        lock_name.push(target.file_name().unwrap_or_default());
        lock_name.push(".lock");
        let lock_path = folder.join(lock_name);
        let lock = bowline_files::private(fs::OpenOptions::new().write(true).create(true))
            .open(&lock_path)
            .and_then(|lock| lock.lock().map(|()| lock))
            .map_err(|error| StoreError::io(&lock_path, "cannot lock it", error))?;

        let mut document = self.read::<T>()?.map(|(document, _)| document).unwrap_or_default();
        let answer = change(&mut document);
        let json = RawJson::of(&document)
            .map_err(|error| StoreError::damaged(&self.path, None, format!("cannot write it: {error}")))?;
        let mut text = Tree::of(&json).to_text(Layout::Pretty);
        text.push('\n');

        let written = bowline_files::replace(&target, text.as_bytes());
        drop(lock);
        written.map(|()| answer).map_err(|error| StoreError::io(&self.path, "cannot write it", error))
    }
}

/// Returns the first line, starting at 1, that contains something.
pub(crate) fn line_of(text: &str, what: &str) -> Option<usize> {
    text.lines().position(|line| line.contains(what)).map(|line| line + 1)
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

    /// A temporary directory that is removed on drop.
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
