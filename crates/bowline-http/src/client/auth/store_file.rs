//! Keeps tokens in files, for several processes of one user.

use super::{lock::FileLock, private_file, sealing::SealingKey};
use bowline_auth::{BoxFuture, Error, Record, Secret, Store, StoreKey, StoreLock};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 20;
/// How long to wait for a process that refreshes the same tokens.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// A folder with one file per server and account. Only the user can access it.
///
/// A file is named by a digest, and is replaced as a whole. A file that cannot be read or that others can access is an error,
/// never an absent record. Each record has a lock file of its own, so that a slow authorization server delays only its own
/// tokens.
///
/// ```no_run
/// use bowline_http::auth::FileStore;
///
/// let store = FileStore::at("state/bowline/credentials")?;
/// # Ok::<(), bowline_auth::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FileStore {
    folder: PathBuf,
    lock_timeout: Duration,
    sealing: Option<SealingKey>,
}

/// The members that name the record of a file.
#[derive(Deserialize)]
struct Name {
    server: String,
    account: String,
    /// The record, if it is sealed.
    sealed: Option<String>,
}

impl FileStore {
    /// Opens a folder, and creates it if there is none. Fails if others can access it.
    pub fn at(folder: impl Into<PathBuf>) -> Result<Self, Error> {
        let folder = folder.into();
        private_file::create_folder(&folder).map_err(|error| failed(&folder, &error))?;
        Ok(Self { folder, lock_timeout: LOCK_TIMEOUT, sealing: None })
    }

    /// Seals records with this key. A record that is not sealed is an error: whoever can write the folder could have put it
    /// there.
    #[must_use]
    pub fn sealed_with(mut self, key: SealingKey) -> Self {
        self.sealing = Some(key);
        self
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the file of a record, whether it exists or not.
    pub fn path(&self, key: &StoreKey) -> PathBuf {
        let name = digest(&SHA256, format!("{}\0{}", key.server(), key.account()).as_bytes());
        let mut file = String::new();
        for byte in name.as_ref().iter().take(16) {
            // Writing to a string cannot fail.
            let _ = write!(file, "{byte:02x}");
        }
        self.folder.join(file + ".json")
    }

    /// Returns the members of the file of a record, sealed if there is a key.
    fn members(
        &self,
        key: &StoreKey,
        record: &Record,
    ) -> Result<serde_json::Map<String, serde_json::Value>, Error> {
        let text = record.to_json();
        match &self.sealing {
            Some(sealing) => {
                let sealed = sealing.seal(&sealing_context(key.server(), key.account()), &text)?;
                Ok(serde_json::Map::from_iter([("sealed".to_owned(), sealed.into())]))
            }
            None => Ok(serde_json::from_str(text.expose()).unwrap_or_default()),
        }
    }

    /// Runs file operations on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        path: PathBuf,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let folder = self.folder.clone();
        let done = tokio::task::spawn_blocking(move || {
            private_file::check_folder(&folder).map_err(|error| failed(&folder, &error))?;
            work(&path).map_err(|error| failed(&path, &error))
        });
        done.await.map_err(|error| Error::store(error.to_string()))?
    }
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::store(format!("`{}`: {error}", path.display()))
}

/// Returns what a sealed record is bound to, so that it cannot be moved to the file of another server or account.
fn sealing_context(server: &str, account: &str) -> String {
    format!("bowline login 1\0{server}\0{account}")
}

/// Reads the record of a file and the key that it is for. Errors do not quote the file.
fn parse(path: &Path, text: &Secret, sealing: Option<&SealingKey>) -> Result<(StoreKey, Record), Error> {
    let damaged = |reason: String| {
        Error::store(format!("`{}`: {reason}; log in again after you remove the file", path.display()))
    };
    let name: Name = serde_json::from_str(text.expose()).map_err(|error| {
        damaged(format!("it is damaged at line {} column {}", error.line(), error.column()))
    })?;
    let key = StoreKey::new(&name.server, &name.account).map_err(|error| damaged(error.to_string()))?;
    let opened = match (&name.sealed, sealing) {
        (None, None) => None,
        (None, Some(_)) => return Err(damaged("it is not sealed".to_owned())),
        (Some(sealed), Some(sealing)) => {
            let opened = sealing.open(&sealing_context(&name.server, &name.account), sealed);
            Some(opened.ok_or_else(|| damaged("it is sealed with another key, or was changed".to_owned()))?)
        }
        (Some(_), None) => return Err(damaged("it is sealed, and there is no key to open it".to_owned())),
    };
    let record = opened.as_ref().unwrap_or(text);
    let record = Record::from_json(record.expose()).map_err(|error| damaged(error.to_string()))?;
    Ok((key, record))
}

impl Store for FileStore {
    fn load<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<Option<Record>, Error>> {
        Box::pin(async move {
            let path = self.path(key);
            let text = self.blocking(path.clone(), |path| private_file::read(path, MAX_BYTES)).await?;
            let Some(text) = text.map(Secret::new) else { return Ok(None) };
            match parse(&path, &text, self.sealing.as_ref())? {
                (found, record) if found == *key => Ok(Some(record)),
                (found, _) => Err(Error::store(format!(
                    "`{}` contains the login of {found}, expected {key}",
                    path.display()
                ))),
            }
        })
    }

    fn save<'a>(&'a self, key: &'a StoreKey, record: &'a Record) -> BoxFuture<'a, Result<(), Error>> {
        let mut members = match self.members(key, record) {
            Ok(members) => members,
            Err(error) => return Box::pin(async { Err(error) }),
        };
        members.insert("server".to_owned(), key.server().into());
        members.insert("account".to_owned(), key.account().into());
        let text = Secret::new(serde_json::Value::Object(members).to_string());
        Box::pin(
            self.blocking(self.path(key), move |path| bowline_files::replace(path, text.expose().as_bytes())),
        )
    }

    fn remove<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.blocking(self.path(key), bowline_files::remove))
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<StoreKey>, Error>> {
        Box::pin(async move {
            let texts = self.blocking(self.folder.clone(), read_all).await?;
            let mut keys = Vec::new();
            for (path, text) in texts {
                keys.push(parse(&path, &text, self.sealing.as_ref())?.0);
            }
            keys.sort();
            Ok(keys)
        })
    }

    fn lock<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<StoreLock, Error>> {
        Box::pin(async move {
            let path = self.path(key).with_extension("lock");
            let acquired = FileLock::acquire(&path, self.lock_timeout).await;
            let lock = acquired.map_err(|error| match error.kind() {
                io::ErrorKind::TimedOut => {
                    Error::unavailable(format!("cannot refresh the token of {key}: {error}"))
                }
                _ => failed(&path, &error),
            })?;
            let interrupted = lock.is_after_interruption();
            let lock = StoreLock::new(lock);
            Ok(if interrupted { lock.after_interruption() } else { lock })
        })
    }
}

/// Reads all records of a folder.
fn read_all(folder: &Path) -> io::Result<Vec<(PathBuf, Secret)>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = private_file::read(&path, MAX_BYTES)
                .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display())))?;
            texts.extend(text.map(|text| (path, Secret::new(text))));
        }
    }
    Ok(texts)
}

#[cfg(test)]
#[path = "store_file_tests.rs"]
mod tests;
