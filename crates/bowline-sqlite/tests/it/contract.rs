//! The contract, by one connection and by two that share a file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline_sqlite::Sqlite;
use bowline_store::{
    ClaimRequest, Depth, Group, Key, NodeId, Owner, Page, Put, PutError, Queue, Record, Records, StoreError,
    Version,
};
use futures_core::future::BoxFuture;
use tempfile::TempDir;

/// Uses two stores in turn, as two processes behind a balancer do.
#[derive(Debug)]
struct InTurn {
    stores: [Sqlite; 2],
    second: AtomicBool,
    /// Keeps the file as long as the stores.
    _folder: TempDir,
}

impl InTurn {
    fn next(&self) -> &Sqlite {
        &self.stores[usize::from(self.second.fetch_xor(true, Ordering::Relaxed))]
    }
}

impl Records for InTurn {
    fn get<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        self.next().get(keys)
    }
    fn put(&self, put: Put) -> BoxFuture<'_, Result<Version, PutError>> {
        self.next().put(put)
    }
    fn remove<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.next().remove(keys)
    }
    fn list<'a>(
        &'a self,
        group: &'a Group,
        after: Option<&'a Key>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        self.next().list(group, after, limit)
    }
    fn count<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.next().count(group)
    }
    fn claim(&self, claim: ClaimRequest) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        self.next().claim(claim)
    }
    fn renew(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Vec<(Key, Owner)>, StoreError>> {
        self.next().renew(node, lease)
    }
    fn touch<'a>(&'a self, keys: &'a [Key], ttl: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        self.next().touch(keys, ttl)
    }
    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.next().sweep(limit)
    }
    fn scan<'a>(&'a self, after: Option<&'a str>, limit: usize) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.next().scan(after, limit)
    }
    fn depth<'a>(&'a self, queues: &'a [Queue]) -> BoxFuture<'a, Result<Option<Depth>, StoreError>> {
        self.next().depth(queues)
    }
}

mod one {
    use super::{Arc, Records, Sqlite};

    async fn open() -> Arc<dyn Records> {
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::open(folder.path().join("state.db")).unwrap();
        // An open file lives on without its name.
        Arc::new(store)
    }

    bowline_store::contract_tests!(open);
}

mod two {
    use super::{Arc, AtomicBool, InTurn, Records, Sqlite};

    async fn open() -> Arc<dyn Records> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let stores = [Sqlite::open(&path).unwrap(), Sqlite::open(&path).unwrap()];
        Arc::new(InTurn { stores, second: AtomicBool::new(false), _folder: folder })
    }

    bowline_store::contract_tests!(open);
}

mod bus {
    use super::Arc;
    use bowline_sqlite::Options;
    use bowline_store::kit::Ends;

    async fn open() -> Option<Ends> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        // Open files live on without their names.
        let options = Options::new();
        Some((Arc::new(options.open_bus(&path).unwrap()), Arc::new(options.open_bus(&path).unwrap())))
    }

    bowline_store::bus_tests!(open);
}
