//! Limits what one process asks of a store at once, and how long it waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_core::future::BoxFuture;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use crate::{
    ClaimRequest, Depth, Group, Key, NodeId, Owner, Page, Put, PutError, Queue, Record, Records, StoreError,
    Version,
};

/// How much a process asks of a store at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct Limits {
    /// How long an operation may take, waiting included.
    pub deadline: Duration,
    /// How many operations run at once.
    pub running: usize,
    /// How many more operations wait. Others fail at once.
    pub waiting: usize,
}

impl Default for Limits {
    /// 2 s, 64 running and 256 waiting operations.
    fn default() -> Self {
        Self { deadline: Duration::from_secs(2), running: 64, waiting: 256 }
    }
}

impl Limits {
    /// Sets how long an operation may take.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets how many operations run at once.
    pub fn running(mut self, running: usize) -> Self {
        self.running = running;
        self
    }

    /// Sets how many more operations wait.
    pub fn waiting(mut self, waiting: usize) -> Self {
        self.waiting = waiting;
        self
    }
}

/// A store with [`Limits`]. A slow store makes operations fail; it does not make calls pile up.
///
/// [`Records::renew`] does not wait behind other operations: a lease must not end because of bulk work.
#[derive(Debug)]
pub struct Limited {
    inner: Arc<dyn Records>,
    limits: Limits,
    running: Semaphore,
    admitted: AtomicUsize,
}

impl Limited {
    /// Limits the use of `inner`.
    pub fn new(inner: Arc<dyn Records>, limits: Limits) -> Self {
        Self { inner, limits, running: Semaphore::new(limits.running), admitted: AtomicUsize::new(0) }
    }

    async fn read<T>(&self, operation: BoxFuture<'_, Result<T, StoreError>>) -> Result<T, StoreError> {
        let (_permit, deadline) = self.acquire().await?;
        timeout_at(deadline, operation)
            .await
            .unwrap_or_else(|_| Err(StoreError::unavailable(self.late("a read"))))
    }

    async fn write<T, E: From<StoreError>>(&self, operation: BoxFuture<'_, Result<T, E>>) -> Result<T, E> {
        let (_permit, deadline) = self.acquire().await?;
        timeout_at(deadline, operation)
            .await
            .unwrap_or_else(|_| Err(StoreError::unknown(self.late("a write")).into()))
    }

    fn late(&self, what: &str) -> String {
        format!("{what} took longer than {:?}", self.limits.deadline)
    }

    /// Waits until the operation may run.
    async fn acquire(&self) -> Result<(Permit<'_>, Instant), StoreError> {
        let deadline = Instant::now() + self.limits.deadline;
        let admitted = Admitted::new(&self.admitted);
        if admitted.before >= self.limits.running.saturating_add(self.limits.waiting) {
            return Err(StoreError::unavailable(format!(
                "{} operations run and {} wait",
                self.limits.running, self.limits.waiting
            )));
        }
        match timeout_at(deadline, self.running.acquire()).await {
            // A permit at the deadline comes too late: nothing was sent, so the outcome is not unknown.
            Ok(Ok(permit)) if Instant::now() < deadline => {
                Ok((Permit { _admitted: admitted, _permit: permit }, deadline))
            }
            _ => Err(StoreError::unavailable(format!("the store was busy for {:?}", self.limits.deadline))),
        }
    }
}

#[derive(Debug)]
struct Permit<'a> {
    _admitted: Admitted<'a>,
    _permit: SemaphorePermit<'a>,
}

/// One of the operations that run or wait.
#[derive(Debug)]
struct Admitted<'a> {
    count: &'a AtomicUsize,
    before: usize,
}

impl<'a> Admitted<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        Self { count, before: count.fetch_add(1, Ordering::AcqRel) }
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Records for Limited {
    fn get<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        Box::pin(self.read(self.inner.get(keys)))
    }

    fn put(&self, put: Put) -> BoxFuture<'_, Result<Version, PutError>> {
        Box::pin(self.write(self.inner.put(put)))
    }

    fn remove<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.write(self.inner.remove(keys)))
    }

    fn list<'a>(
        &'a self,
        group: &'a Group,
        after: Option<&'a Key>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(self.read(self.inner.list(group, after, limit)))
    }

    fn count<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(self.read(self.inner.count(group)))
    }

    fn claim(&self, claim: ClaimRequest) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(self.write(self.inner.claim(claim)))
    }

    fn renew(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Vec<(Key, Owner)>, StoreError>> {
        let deadline = Instant::now() + self.limits.deadline;
        Box::pin(async move {
            timeout_at(deadline, self.inner.renew(node, lease))
                .await
                .unwrap_or_else(|_| Err(StoreError::unknown(self.late("a renewal"))))
        })
    }

    fn touch<'a>(&'a self, keys: &'a [Key], ttl: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.write(self.inner.touch(keys, ttl)))
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.write(self.inner.sweep(limit)))
    }

    fn scan<'a>(&'a self, after: Option<&'a str>, limit: usize) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(self.read(self.inner.scan(after, limit)))
    }

    fn depth<'a>(&'a self, queues: &'a [Queue]) -> BoxFuture<'a, Result<Option<Depth>, StoreError>> {
        Box::pin(self.read(self.inner.depth(queues)))
    }
}
