//! The trait of an engine, and its requests.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_core::future::BoxFuture;

use crate::{ClaimId, Group, Key, NodeId, Owner, PutError, Queue, Record, StoreError, Version};

/// The largest value of a record, in bytes. A sealed result of 4 MiB fits.
pub const MAX_VALUE_BYTES: usize = 6 << 20;

/// Keeps records.
///
/// An expired record counts as absent in every operation. `contract_tests!` (feature `kit`) tests an engine.
pub trait Records: Send + Sync + fmt::Debug {
    /// Reads records, in the order of `keys`. Reads see every write that was acknowledged before.
    fn get<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>>;

    /// Writes a record, if it is as the request expects. Returns the new version.
    fn put(&self, put: Put) -> BoxFuture<'_, Result<Version, PutError>>;

    /// Removes records. Missing records are ignored.
    fn remove<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Lists at most `limit` records of a group in the order of their keys, after a key.
    fn list<'a>(
        &'a self,
        group: &'a Group,
        after: Option<&'a Key>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>>;

    /// Counts the records of a group.
    fn count<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Claims due records: gives each a new owner, a new version and a lease. No record goes to two claims.
    fn claim(&self, claim: ClaimRequest) -> BoxFuture<'_, Result<Vec<Record>, StoreError>>;

    /// Extends the leases of all records that a node holds, and returns what it holds. Versions stay as they are.
    fn renew(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Vec<(Key, Owner)>, StoreError>>;

    /// Makes records expire after `ttl` from now, unless they expire later anyway.
    fn touch<'a>(&'a self, keys: &'a [Key], ttl: Duration) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Deletes at most `limit` expired records and returns how many were deleted.
    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>>;

    /// Reads all records, about `limit` at a time, in any order. `after` is where an earlier page ended ([`Page::next`]).
    ///
    /// A record that exists from the first page to the last is read at least once. A page may be empty and not the last.
    /// Default: fails with [`ErrorKind::Invalid`](crate::ErrorKind::Invalid).
    fn scan<'a>(&'a self, after: Option<&'a str>, limit: usize) -> BoxFuture<'a, Result<Page, StoreError>> {
        let _ = (after, limit);
        Box::pin(std::future::ready(Err(StoreError::invalid("this store cannot list all of its records"))))
    }

    /// Counts what waits in these queues. Default: `None`, it cannot tell.
    fn depth<'a>(&'a self, queues: &'a [Queue]) -> BoxFuture<'a, Result<Option<Depth>, StoreError>> {
        let _ = queues;
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// Some of all records: [`Records::scan`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The records.
    pub records: Vec<Record>,
    /// Where the next page begins. `None` after the last one.
    pub next: Option<String>,
}

impl Page {
    /// Some records, and where the next ones are.
    pub fn new(records: Vec<Record>, next: Option<String>) -> Self {
        Self { records, next }
    }

    /// Some records in the order of their keys, of which at most `limit` were asked for.
    pub fn in_key_order(records: Vec<Record>, limit: usize) -> Self {
        let is_last = records.len() < limit;
        let next = records.last().map(|record| record.key.as_str().to_owned());
        Self { records, next: next.filter(|_| !is_last) }
    }
}

/// What waits in queues: [`Records::depth`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Depth {
    /// Records that can be claimed, those of lapsed claims included.
    pub due: u64,
    /// Records that a process has claimed.
    pub claimed: u64,
    /// Records that are due in the future.
    pub scheduled: u64,
    /// How long the record has been due that can be claimed for the longest time.
    pub oldest: Duration,
}

impl Depth {
    /// Counts, and the time of the record that is due for the longest time.
    pub fn new(due: u64, claimed: u64, scheduled: u64, oldest: Duration) -> Self {
        Self { due, claimed, scheduled, oldest }
    }
}

/// What a write expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expect {
    /// No record.
    Absent,
    /// A record of this version.
    Version(Version),
}

/// The claim under which a write is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredClaim {
    /// The record that is claimed. It need not be the one that is written.
    pub key: Key,
    /// The claim.
    pub claim: ClaimId,
}

/// What a write does to the owner of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ClaimChange {
    /// The owner stays.
    #[default]
    Keep,
    /// Nobody holds the record any more.
    Release,
    /// The writer holds the record. It is due when the lease ends.
    Take {
        /// The new owner.
        owner: Owner,
        /// How long without renewal.
        lease: Duration,
    },
}

/// What a write does to the due time of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DueChange {
    /// The due time stays.
    #[default]
    Keep,
    /// Nobody can claim the record.
    Never,
    /// The record can be claimed after this time.
    In(Duration),
}

/// What a write does to the expiry of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TtlChange {
    /// The expiry stays.
    Keep,
    /// The record expires after this time.
    In(Duration),
}

/// What a crash of the store may lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// Nothing that was acknowledged, as far as the engine can promise it.
    #[default]
    Full,
    /// The last acknowledged writes. For progress and event logs.
    Relaxed,
}

/// One write.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[must_use = "a put does nothing until it is given to a store"]
pub struct Put {
    /// The record.
    pub key: Key,
    /// Its new content.
    pub value: Bytes,
    /// What must be there.
    pub expect: Expect,
    /// A claim that must still hold, checked in the same step as the write.
    pub required_claim: Option<RequiredClaim>,
    /// The change of the owner.
    pub claim: ClaimChange,
    /// The change of the due time. [`ClaimChange::Take`] sets the due time itself.
    pub due: DueChange,
    /// The queue of a new record.
    pub queue: Option<Queue>,
    /// The group of a new record.
    pub group: Option<Group>,
    /// The change of the expiry.
    pub ttl: TtlChange,
    /// What a crash may lose.
    pub durability: Durability,
}

impl Put {
    /// Creates a record, which must not exist.
    pub fn create(key: Key, value: impl Into<Bytes>, ttl: Duration) -> Self {
        Self::new(key, value.into(), Expect::Absent, TtlChange::In(ttl))
    }

    /// Replaces the value of a record of this version.
    pub fn update(key: Key, value: impl Into<Bytes>, version: Version) -> Self {
        Self::new(key, value.into(), Expect::Version(version), TtlChange::Keep)
    }

    fn new(key: Key, value: Bytes, expect: Expect, ttl: TtlChange) -> Self {
        Self {
            key,
            value,
            expect,
            required_claim: None,
            claim: ClaimChange::Keep,
            due: DueChange::Keep,
            queue: None,
            group: None,
            ttl,
            durability: Durability::Full,
        }
    }

    /// Writes only if `claim` is still the claim of `key`.
    pub fn under_claim(mut self, key: Key, claim: ClaimId) -> Self {
        self.required_claim = Some(RequiredClaim { key, claim });
        self
    }

    /// Makes `owner` the owner of the record, with a lease.
    pub fn take(mut self, owner: Owner, lease: Duration) -> Self {
        self.claim = ClaimChange::Take { owner, lease };
        self
    }

    /// Leaves the record without owner.
    pub fn release(mut self) -> Self {
        self.claim = ClaimChange::Release;
        self
    }

    /// Makes the record due after a time.
    pub fn due_in(mut self, time: Duration) -> Self {
        self.due = DueChange::In(time);
        self
    }

    /// Makes the record never due.
    pub fn never_due(mut self) -> Self {
        self.due = DueChange::Never;
        self
    }

    /// Puts a new record into a queue. A record that exists keeps its queue.
    pub fn queue(mut self, queue: Queue) -> Self {
        self.queue = Some(queue);
        self
    }

    /// Puts a new record into a group. A record that exists keeps its group.
    pub fn group(mut self, group: Group) -> Self {
        self.group = Some(group);
        self
    }

    /// Makes the record expire after a time.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = TtlChange::In(ttl);
        self
    }

    /// Allows a crash of the store to lose this write.
    pub fn relaxed(mut self) -> Self {
        self.durability = Durability::Relaxed;
        self
    }

    /// Refuses values above [`MAX_VALUE_BYTES`]. Engines call it first.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.value.len() > MAX_VALUE_BYTES {
            return Err(StoreError::invalid(format!(
                "the value of {} has {} bytes; a record has at most {MAX_VALUE_BYTES}",
                self.key,
                self.value.len()
            )));
        }
        Ok(())
    }
}

/// A request for due records.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[must_use = "a claim does nothing until it is given to a store"]
pub struct ClaimRequest {
    /// Who claims.
    pub node: NodeId,
    /// From which queues.
    pub queues: Vec<Queue>,
    /// How many records at most.
    pub limit: usize,
    /// How long each is held without renewal.
    pub lease: Duration,
    /// Whether to take records whose lease ended.
    pub lapsed: bool,
}

impl ClaimRequest {
    /// Asks for one due record that nobody holds, for 15 s.
    pub fn new(node: NodeId, queues: impl IntoIterator<Item = Queue>) -> Self {
        Self {
            node,
            queues: queues.into_iter().collect(),
            limit: 1,
            lease: Duration::from_secs(15),
            lapsed: false,
        }
    }

    /// Asks for at most this many records.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the time that the records are held without renewal.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Takes records whose lease ended, too.
    pub fn lapsed(mut self, lapsed: bool) -> Self {
        self.lapsed = lapsed;
        self
    }
}
