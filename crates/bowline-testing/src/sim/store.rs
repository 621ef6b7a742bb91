//! The records of a simulated world, as one node sees them.

use std::sync::Arc;
use std::time::Duration;

use bowline_store::{
    ClaimRequest, Group, Key, Memory, NodeId, Owner, Put, PutError, Record, Records, StoreError, Version,
};
use futures_core::future::BoxFuture;

use super::{Delivery, Shared};

/// How long a node waits for an answer.
const DEADLINE: Duration = Duration::from_secs(2);

/// The connection of one node to the store of a [`World`](super::World).
#[derive(Debug, Clone)]
pub struct SimStore {
    shared: Arc<Shared>,
    index: usize,
}

impl SimStore {
    pub(super) fn new(shared: Arc<Shared>, index: usize) -> Self {
        Self { shared, index }
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// An operation that changes nothing.
    async fn read<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        run: impl FnOnce(Arc<Memory>) -> F,
    ) -> Result<T, StoreError> {
        tokio::time::sleep(self.shared.delay()).await;
        match self.shared.delivery(self.index, false) {
            Delivery::Done => {
                let answer = run(Arc::clone(&self.shared.memory)).await;
                tokio::time::sleep(self.shared.delay()).await;
                answer
            }
            Delivery::Before => Err(StoreError::unavailable("simulated")),
            Delivery::Cut | Delivery::After | Delivery::Late(_) => {
                tokio::time::sleep(DEADLINE).await;
                Err(StoreError::unavailable("simulated: no response"))
            }
        }
    }

    /// An operation that may be applied without an answer.
    async fn write<T, E, F>(&self, run: impl FnOnce(Arc<Memory>) -> F + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        tokio::time::sleep(self.shared.delay()).await;
        let memory = Arc::clone(&self.shared.memory);
        match self.shared.delivery(self.index, true) {
            Delivery::Done => {
                let answer = run(memory).await;
                tokio::time::sleep(self.shared.delay()).await;
                answer
            }
            Delivery::Before => Err(StoreError::unavailable("simulated").into()),
            Delivery::Cut => {
                tokio::time::sleep(DEADLINE).await;
                Err(StoreError::unknown("simulated: cut off").into())
            }
            Delivery::After => {
                let _ = run(memory).await;
                tokio::time::sleep(DEADLINE).await;
                Err(StoreError::unknown("simulated: the response was lost").into())
            }
            Delivery::Late(time) => {
                // Ends by itself after the time.
                tokio::spawn(async move {
                    tokio::time::sleep(time).await;
                    let _ = run(memory).await;
                });
                tokio::time::sleep(DEADLINE).await;
                Err(StoreError::unknown("simulated: the write is under way").into())
            }
        }
    }
}

impl Records for SimStore {
    fn get<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        Box::pin(self.read(move |memory| async move { memory.get(keys).await }))
    }

    fn put(&self, put: Put) -> BoxFuture<'_, Result<Version, PutError>> {
        Box::pin(self.write(move |memory| async move { memory.put(put).await }))
    }

    fn remove<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<(), StoreError>> {
        let keys = keys.to_vec();
        Box::pin(self.write(move |memory| async move { memory.remove(&keys).await }))
    }

    fn list<'a>(
        &'a self,
        group: &'a Group,
        after: Option<&'a Key>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(self.read(move |memory| async move { memory.list(group, after, limit).await }))
    }

    fn count<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(self.read(move |memory| async move { memory.count(group).await }))
    }

    fn claim(&self, claim: ClaimRequest) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(self.write(move |memory| async move { memory.claim(claim).await }))
    }

    fn renew(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Vec<(Key, Owner)>, StoreError>> {
        Box::pin(self.write(move |memory| async move { memory.renew(node, lease).await }))
    }

    fn touch<'a>(&'a self, keys: &'a [Key], ttl: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        let keys = keys.to_vec();
        Box::pin(self.write(move |memory| async move { memory.touch(&keys, ttl).await }))
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.write(move |memory| async move { memory.sweep(limit).await }))
    }
}
