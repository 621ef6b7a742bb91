//! Keeps records in memory.

use bowline_auth::{BoxFuture, Error, Record, Store, StoreKey, StoreLock};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A store that is gone when the program ends. Clones share their records.
#[derive(Clone, Default)]
pub struct MemoryStore {
    entries: Arc<Mutex<HashMap<StoreKey, Entry>>>,
}

#[derive(Default)]
struct Entry {
    record: Option<Record>,
    lock: Arc<tokio::sync::Mutex<()>>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<StoreKey, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn load<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<Option<Record>, Error>> {
        let record = self.entries().get(key).and_then(|entry| entry.record.clone());
        Box::pin(async move { Ok(record) })
    }

    fn save<'a>(&'a self, key: &'a StoreKey, record: &'a Record) -> BoxFuture<'a, Result<(), Error>> {
        self.entries().entry(key.clone()).or_default().record = Some(record.clone());
        Box::pin(async { Ok(()) })
    }

    fn remove<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<(), Error>> {
        if let Some(entry) = self.entries().get_mut(key) {
            entry.record = None;
        }
        Box::pin(async { Ok(()) })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<StoreKey>, Error>> {
        let entries = self.entries();
        let mut keys: Vec<StoreKey> =
            entries.iter().filter(|(_, entry)| entry.record.is_some()).map(|(key, _)| key.clone()).collect();
        keys.sort();
        Box::pin(async move { Ok(keys) })
    }

    fn lock<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<StoreLock, Error>> {
        let lock = Arc::clone(&self.entries().entry(key.clone()).or_default().lock);
        Box::pin(async move { Ok(StoreLock::new(lock.lock_owned().await)) })
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("records", &self.entries().len()).finish()
    }
}
