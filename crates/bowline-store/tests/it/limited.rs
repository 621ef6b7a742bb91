//! A store that is slow, and more work than it does at once.

use std::sync::Arc;
use std::time::Duration;

use bowline_store::{
    ClaimRequest, ErrorKind, Group, Key, Limited, Limits, Memory, NodeId, Owner, Put, PutError, Record,
    Records, StoreError, Version,
};
use futures_core::future::BoxFuture;

async fn open() -> Arc<dyn Records> {
    Arc::new(Limited::new(Arc::new(Memory::new()), Limits::default()))
}

bowline_store::contract_tests!(open);

/// A store that takes an hour for everything but renewals.
#[derive(Debug, Default)]
struct Slow(Memory);

const HOUR: Duration = Duration::from_secs(3_600);

async fn after_an_hour<T>(operation: BoxFuture<'_, T>) -> T {
    tokio::time::sleep(HOUR).await;
    operation.await
}

impl Records for Slow {
    fn get<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        Box::pin(after_an_hour(self.0.get(keys)))
    }
    fn put(&self, put: Put) -> BoxFuture<'_, Result<Version, PutError>> {
        Box::pin(after_an_hour(self.0.put(put)))
    }
    fn remove<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(after_an_hour(self.0.remove(keys)))
    }
    fn list<'a>(
        &'a self,
        group: &'a Group,
        after: Option<&'a Key>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(after_an_hour(self.0.list(group, after, limit)))
    }
    fn count<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(after_an_hour(self.0.count(group)))
    }
    fn claim(&self, claim: ClaimRequest) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(after_an_hour(self.0.claim(claim)))
    }
    fn renew(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Vec<(Key, Owner)>, StoreError>> {
        self.0.renew(node, lease)
    }
    fn touch<'a>(&'a self, keys: &'a [Key], ttl: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(after_an_hour(self.0.touch(keys, ttl)))
    }
    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(after_an_hour(self.0.sweep(limit)))
    }
}

fn key() -> [Key; 1] {
    [Key::new("a").unwrap()]
}

#[tokio::test(start_paused = true)]
async fn a_late_write_is_unknown_and_a_late_read_is_unavailable() {
    let store = Limited::new(Arc::new(Slow::default()), Limits::default());
    let put = store.put(Put::create(key()[0].clone(), "1", HOUR)).await;
    let Err(PutError::Store(error)) = put else { panic!("{put:?}") };
    assert_eq!(error.kind(), ErrorKind::Unknown);
    assert_eq!(error.to_string(), "the store did not confirm a write: a write took longer than 2s");
    let error = store.get(&key()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let error = store.claim(ClaimRequest::new(NodeId::random(), [])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown);
}

#[tokio::test(start_paused = true)]
async fn operations_beyond_the_limit_are_refused_except_renewals() {
    let limits = Limits::default().running(2).waiting(1);
    let store = Arc::new(Limited::new(Arc::new(Slow::default()), limits));
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let store = Arc::clone(&store);
        running.spawn(async move { store.put(Put::create(key()[0].clone(), "1", HOUR)).await });
    }
    tokio::task::yield_now().await;
    let error = store.get(&key()).await.unwrap_err();
    assert_eq!(error.to_string(), "the store is not available: 2 operations run and 1 wait");
    assert_eq!(store.renew(NodeId::random(), HOUR).await.unwrap(), []);
    let mut kinds = Vec::new();
    for result in running.join_all().await {
        let Err(PutError::Store(error)) = result else { panic!("{result:?}") };
        kinds.push(error.kind());
    }
    // The one that waited was certainly not applied.
    assert_eq!(kinds.iter().filter(|kind| **kind == ErrorKind::Unavailable).count(), 1);
    assert_eq!(kinds.iter().filter(|kind| **kind == ErrorKind::Unknown).count(), 2);
    // Everyone has left.
    assert_eq!(
        store.get(&key()).await.unwrap_err().to_string(),
        "the store is not available: a read took longer than 2s"
    );
}
