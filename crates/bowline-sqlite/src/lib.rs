//! Keeps the records of [`bowline_store`] in a SQLite file.
//!
//! Several processes of one machine can share the file. Writes that arrive together share one commit. What was
//! acknowledged survives `kill -9`; with [`Options::synchronous_full`] it also survives a power failure.
//!
//! ```
//! use std::time::Duration;
//! use bowline_sqlite::Sqlite;
//! use bowline_store::{Key, Put, Records};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("state.db");
//! let store = Sqlite::open(&path)?;
//! store.put(Put::create(Key::new("greeting")?, "hello", Duration::from_secs(60))).await?;
//! # Ok(())
//! # }
//! ```

mod bus;
mod file;
mod statements;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bowline_store::{
    ClaimRequest, Depth, Finding, Group, Key, NodeId, Owner, Page, Put, PutError, Queue, Record, Records,
    StoreError, Version,
};
use futures_core::future::BoxFuture;
use rusqlite::Connection;

pub use bus::SqliteBus;
use worker::Worker;

/// How a file is opened.
#[derive(Debug, Clone)]
#[must_use]
pub struct Options {
    namespace: String,
    full: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { namespace: "default".to_owned(), full: false }
    }
}

impl Options {
    /// The namespace `default`, and commits that survive the end of the process.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the namespace. Stores of different namespaces in one file do not see each other's records.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Waits at every commit until the disk has it, so that it survives a power failure.
    pub fn synchronous_full(mut self) -> Self {
        self.full = true;
        self
    }

    /// Opens the file, and creates it if it is missing.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Sqlite, StoreError> {
        let path = path.as_ref();
        let writer = file::open(path, self.full)?;
        let reader = file::open(path, self.full)?;
        let namespace: Arc<str> = self.namespace.as_str().into();
        Ok(Sqlite {
            writer: Worker::start("bowline-sqlite-write", writer, true)?,
            reader: Worker::start("bowline-sqlite-read", reader, false)?,
            namespace,
        })
    }

    /// Opens the file for hints, and creates it if it is missing.
    pub fn open_bus(&self, path: impl AsRef<Path>) -> Result<SqliteBus, StoreError> {
        // A random id; two processes with the same one would miss each other's hints.
        let origin = NodeId::random().bits().cast_signed();
        SqliteBus::open(path.as_ref(), &self.namespace, origin)
    }
}

/// Records in a SQLite file.
///
/// Two threads use the file: one writes and one reads. They end when the store is dropped.
#[derive(Debug)]
pub struct Sqlite {
    writer: Worker,
    reader: Worker,
    namespace: Arc<str>,
}

impl Sqlite {
    /// Opens a file with the default options, and creates it if it is missing.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Options::default().open(path)
    }

    /// Reads version and settings of the file.
    pub async fn inspect(&self) -> Result<Vec<Finding>, StoreError> {
        let (mode, records): (i64, i64) = self
            .read(|connection, _| {
                let mode = connection.query_row("PRAGMA synchronous", (), |row| row.get(0))?;
                let count = connection.query_row("SELECT count(*) FROM records", (), |row| row.get(0))?;
                Ok((mode, count))
            })
            .await?;
        // 1 is NORMAL, 2 is FULL.
        let durability = if mode >= 2 {
            Finding::ok("durability", "survives a power failure")
        } else {
            Finding::ok("durability", "survives the end of the process")
                .advice("`synchronous=full` in the URL also survives a power failure, and is slower")
        };
        Ok(vec![
            Finding::ok("version", format!("SQLite {}", rusqlite::version())),
            durability,
            Finding::ok("rows", records.to_string()),
        ])
    }

    fn read<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Connection, &str) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        let namespace = Arc::clone(&self.namespace);
        Box::pin(self.reader.run(move |connection| operation(connection, &namespace)))
    }

    fn write<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Connection, &str) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        let namespace = Arc::clone(&self.namespace);
        Box::pin(self.writer.run(move |connection| operation(connection, &namespace)))
    }
}

impl Records for Sqlite {
    fn get<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        let keys = keys.to_vec();
        self.read(move |connection, namespace| statements::get(connection, namespace, &keys))
    }

    fn put(&self, put: Put) -> BoxFuture<'_, Result<Version, PutError>> {
        Box::pin(async move {
            put.check()?;
            self.write(move |connection, namespace| statements::put(connection, namespace, &put)).await?
        })
    }

    fn remove<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<(), StoreError>> {
        let keys = keys.to_vec();
        self.write(move |connection, namespace| statements::remove(connection, namespace, &keys))
    }

    fn list<'a>(
        &'a self,
        group: &'a Group,
        after: Option<&'a Key>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        let (group, after) = (group.clone(), after.cloned());
        self.read(move |connection, namespace| {
            statements::list(connection, namespace, &group, after.as_ref(), limit)
        })
    }

    fn count<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<u64, StoreError>> {
        let group = group.clone();
        self.read(move |connection, namespace| statements::count(connection, namespace, &group))
    }

    fn claim(&self, claim: ClaimRequest) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        self.write(move |connection, namespace| statements::claim(connection, namespace, &claim))
    }

    fn renew(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Vec<(Key, Owner)>, StoreError>> {
        self.write(move |connection, namespace| statements::renew(connection, namespace, node, lease))
    }

    fn touch<'a>(&'a self, keys: &'a [Key], ttl: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        let keys = keys.to_vec();
        self.write(move |connection, namespace| statements::touch(connection, namespace, &keys, ttl))
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.write(move |connection, namespace| statements::sweep(connection, namespace, limit))
    }

    fn scan<'a>(&'a self, after: Option<&'a str>, limit: usize) -> BoxFuture<'a, Result<Page, StoreError>> {
        // No key is empty, so all keys are after the empty text.
        let after = after.unwrap_or_default().to_owned();
        let records =
            self.read(move |connection, namespace| statements::scan(connection, namespace, &after, limit));
        Box::pin(async move { Ok(Page::in_key_order(records.await?, limit)) })
    }

    fn depth<'a>(&'a self, queues: &'a [Queue]) -> BoxFuture<'a, Result<Option<Depth>, StoreError>> {
        let queues = queues.to_vec();
        let depth = self.read(move |connection, namespace| statements::depth(connection, namespace, &queues));
        Box::pin(async move { Ok(Some(depth.await?)) })
    }
}
