//! Encrypts values before an engine sees them.

use std::sync::Arc;
use std::time::Duration;

use bowline_proto::seal::KeyRing;
use bytes::Bytes;
use futures_core::future::BoxFuture;
use ring::rand::{SecureRandom, SystemRandom};

use crate::{
    ClaimRequest, Depth, Group, Key, MAX_VALUE_BYTES, NodeId, Owner, Page, Put, PutError, Queue, Record,
    Records, StoreError, Version,
};

/// A store whose values are encrypted and bound to their keys.
///
/// Keys, groups, queues and times stay readable for the engine. Sealing protects the content of a value, not its age: the
/// store could return an older value.
#[derive(Debug)]
pub struct Sealed {
    inner: Arc<dyn Records>,
    keys: KeyRing,
    namespace: Arc<str>,
    random: SystemRandom,
}

impl Sealed {
    /// Seals the values of `inner` with the first key of the ring, and opens them with any. A value of one namespace does not
    /// open in another.
    pub fn new(inner: Arc<dyn Records>, keys: KeyRing, namespace: impl Into<Arc<str>>) -> Self {
        Self { inner, keys, namespace: namespace.into(), random: SystemRandom::new() }
    }

    /// What a value is bound to. A key contains no control character, so the last one ends the namespace.
    fn context(&self, key: &Key) -> Vec<u8> {
        [b"record ", self.namespace.as_bytes(), b"\0", key.as_str().as_bytes()].concat()
    }

    pub(crate) fn seal(&self, mut put: Put) -> Result<Put, StoreError> {
        let mut random = [0; 32];
        self.random
            .fill(&mut random)
            .map_err(|_| StoreError::unavailable("the system has no random bytes"))?;
        put.value = self.keys.seal(&random, &self.context(&put.key), &put.value).into();
        Ok(put)
    }

    pub(crate) fn open(&self, mut record: Record) -> Result<Record, StoreError> {
        let refused = |reason: &str| {
            StoreError::invalid(format!("the value of {} cannot be opened: {reason}", record.key))
        };
        let sealed = std::str::from_utf8(&record.value).map_err(|_| refused("it is not sealed"))?;
        let plain = self
            .keys
            .open(&self.context(&record.key), sealed, MAX_VALUE_BYTES)
            .map_err(|error| refused(&error.to_string()).with_source(error))?;
        record.value = Bytes::from(plain);
        Ok(record)
    }

    /// A value that cannot be opened must not hide the others.
    fn open_all(&self, records: Vec<Record>) -> Vec<Record> {
        let open = |record| match self.open(record) {
            Ok(record) => Some(record),
            Err(error) => {
                tracing::warn!(%error, "a record is left out");
                None
            }
        };
        records.into_iter().filter_map(open).collect()
    }
}

impl Records for Sealed {
    fn get<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        Box::pin(async move {
            let records = self.inner.get(keys).await?;
            records.into_iter().map(|record| record.map(|record| self.open(record)).transpose()).collect()
        })
    }

    fn put(&self, put: Put) -> BoxFuture<'_, Result<Version, PutError>> {
        Box::pin(async move {
            put.check()?;
            self.inner.put(self.seal(put)?).await
        })
    }

    fn remove<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.remove(keys)
    }

    fn list<'a>(
        &'a self,
        group: &'a Group,
        after: Option<&'a Key>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            let mut opened = Vec::new();
            let mut after = after.cloned();
            // A record that is left out must not make a page short: callers take a short page for the last one.
            loop {
                let wanted = limit - opened.len();
                let page = self.inner.list(group, after.as_ref(), wanted).await?;
                let last = page.len() < wanted;
                after = page.last().map(|record| record.key.clone());
                opened.extend(self.open_all(page));
                if last || opened.len() >= limit {
                    return Ok(opened);
                }
            }
        })
    }

    fn count<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.inner.count(group)
    }

    fn claim(&self, claim: ClaimRequest) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            let lease = claim.lease;
            let mut opened = Vec::new();
            for record in self.inner.claim(claim).await? {
                let release = Put::update(record.key.clone(), record.value.clone(), record.version);
                match self.open(record) {
                    Ok(record) => opened.push(record),
                    Err(error) => {
                        tracing::warn!(%error, "a claimed record is released");
                        // Another node may have the key. If this fails, the lease ends.
                        let _ = self.inner.put(release.release().due_in(lease)).await;
                    }
                }
            }
            Ok(opened)
        })
    }

    fn renew(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Vec<(Key, Owner)>, StoreError>> {
        self.inner.renew(node, lease)
    }

    fn touch<'a>(&'a self, keys: &'a [Key], ttl: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.touch(keys, ttl)
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.inner.sweep(limit)
    }

    fn scan<'a>(&'a self, after: Option<&'a str>, limit: usize) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move {
            let Page { records, next } = self.inner.scan(after, limit).await?;
            Ok(Page::new(self.open_all(records), next))
        })
    }

    fn depth<'a>(&'a self, queues: &'a [Queue]) -> BoxFuture<'a, Result<Option<Depth>, StoreError>> {
        self.inner.depth(queues)
    }
}
