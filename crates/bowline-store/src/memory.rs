//! The engine in memory, for one process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;
use tokio::time::Instant;

use crate::{
    Bus, BusEvent, ClaimChange, ClaimId, ClaimRequest, Depth, DueChange, Expect, Group, Hints, Key, Message,
    NodeId, Owner, Page, Put, PutError, Queue, Record, Records, StoreError, Time, TtlChange, Version,
};

/// How many bytes of keys and values a store has by default.
const DEFAULT_BYTES: usize = 256 << 20;

/// What a record costs beside its names and its value: the entries of five maps.
const RECORD_BYTES: usize = 512;

/// Keeps records in memory. They are lost when the process ends.
///
/// The clock follows `tokio::time`, so tests can pause it.
#[derive(Debug)]
pub struct Memory {
    rows: Mutex<Rows>,
    max_bytes: usize,
    started: Instant,
    /// The wall clock when the store was created.
    epoch: Time,
    /// By how many milliseconds the clock was moved.
    moved: AtomicI64,
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Memory {
    /// An empty store of at most 256 MiB.
    pub fn new() -> Self {
        Self::with_max_bytes(DEFAULT_BYTES)
    }

    /// An empty store that refuses writes beyond `max_bytes` of names and values.
    pub fn with_max_bytes(max_bytes: usize) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            rows: Mutex::default(),
            max_bytes,
            started: Instant::now(),
            epoch: Time::default().after(since),
            moved: AtomicI64::new(0),
        }
    }

    /// Moves the clock, forward or back, as a failover to a machine with another clock does. For simulations.
    pub fn move_clock(&self, millis: i64) {
        self.moved.fetch_add(millis, Ordering::Relaxed);
    }

    fn now(&self) -> Time {
        let now = self.epoch.after(self.started.elapsed()).as_millis();
        Time::from_millis(now.saturating_add_signed(self.moved.load(Ordering::Relaxed)))
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, put: Put) -> Result<Version, PutError> {
        put.check()?;
        let mut rows = self.rows();
        let now = self.now();
        if let Some(required) = &put.required_claim {
            let owner = rows.live(&required.key, now).and_then(|row| row.owner);
            if owner.map(|owner| owner.claim) != Some(required.claim) {
                return Err(PutError::ClaimLost);
            }
        }
        let mut row = match (rows.live(&put.key, now), put.expect) {
            (None, Expect::Absent) => Row::new(put.queue, put.group),
            (Some(row), Expect::Version(version)) if row.version == version => {
                Row { version: version.next(), ..row.clone() }
            }
            _ => return Err(PutError::Conflict),
        };
        row.value = put.value;
        match put.due {
            DueChange::Keep => {}
            DueChange::Never => row.due = None,
            DueChange::In(time) => row.due = Some(now.after(time)),
        }
        match put.claim {
            ClaimChange::Keep => {}
            ClaimChange::Release => row.owner = None,
            ClaimChange::Take { owner, lease } => {
                row.owner = Some(owner);
                row.due = Some(now.after(lease));
            }
        }
        if let TtlChange::In(ttl) = put.ttl {
            row.expires = now.after(ttl);
        }
        let version = row.version;
        let replaced = rows.by_key.get(&put.key).map_or(0, |row| row.bytes(&put.key));
        if rows.bytes - replaced + row.bytes(&put.key) > self.max_bytes {
            return Err(StoreError::unavailable(format!(
                "it is full: records in memory have at most {} bytes in total",
                self.max_bytes
            ))
            .into());
        }
        rows.insert(put.key, row);
        Ok(version)
    }

    fn take_due(&self, claim: &ClaimRequest) -> Vec<Record> {
        let mut rows = self.rows();
        let now = self.now();
        let mut due: Vec<(Time, Key)> = Vec::new();
        for queue in &claim.queues {
            let Some(waiting) = rows.by_queue.get(queue) else { continue };
            let fits = |(_, key): &&(Time, Key)| {
                rows.live(key, now).is_some_and(|row| claim.lapsed || row.owner.is_none())
            };
            due.extend(
                waiting.iter().take_while(|(due, _)| *due <= now).filter(fits).take(claim.limit).cloned(),
            );
        }
        due.sort();
        due.truncate(claim.limit);
        due.into_iter()
            .filter_map(|(_, key)| {
                let mut row = rows.by_key.get(&key)?.clone();
                row.lapses = row.lapses.saturating_add(u32::from(row.owner.is_some()));
                row.owner = Some(Owner { node: claim.node, claim: ClaimId::random() });
                row.due = Some(now.after(claim.lease));
                row.version = row.version.next();
                let record = row.record(&key, now);
                rows.insert(key, row);
                Some(record)
            })
            .collect()
    }
}

#[derive(Debug, Clone)]
struct Row {
    value: Bytes,
    version: Version,
    owner: Option<Owner>,
    lapses: u32,
    due: Option<Time>,
    queue: Option<Queue>,
    group: Option<Group>,
    expires: Time,
}

impl Row {
    fn new(queue: Option<Queue>, group: Option<Group>) -> Self {
        Self {
            value: Bytes::new(),
            version: Version::first(),
            owner: None,
            lapses: 0,
            due: None,
            queue,
            group,
            expires: Time::default(),
        }
    }

    fn bytes(&self, key: &Key) -> usize {
        let queue = self.queue.as_ref().map_or(0, |queue| queue.as_str().len());
        let group = self.group.as_ref().map_or(0, |group| group.as_str().len());
        RECORD_BYTES + key.as_str().len() + self.value.len() + queue + group
    }

    fn record(&self, key: &Key, now: Time) -> Record {
        Record {
            owner: self.owner,
            lapses: self.lapses,
            due: self.due,
            queue: self.queue.clone(),
            group: self.group.clone(),
            ..Record::new(key.clone(), self.value.clone(), self.version, self.expires, now)
        }
    }
}

/// All rows, expired ones included, and where they are found.
#[derive(Debug, Default)]
struct Rows {
    by_key: BTreeMap<Key, Row>,
    by_group: HashMap<Group, BTreeSet<Key>>,
    by_queue: HashMap<Queue, BTreeSet<(Time, Key)>>,
    by_node: HashMap<NodeId, BTreeSet<Key>>,
    by_expiry: BTreeSet<(Time, Key)>,
    bytes: usize,
}

impl Rows {
    fn live(&self, key: &Key, now: Time) -> Option<&Row> {
        self.by_key.get(key).filter(|row| row.expires > now)
    }

    fn insert(&mut self, key: Key, row: Row) {
        self.remove(&key);
        if let Some(group) = &row.group {
            self.by_group.entry(group.clone()).or_default().insert(key.clone());
        }
        if let (Some(queue), Some(due)) = (&row.queue, row.due) {
            self.by_queue.entry(queue.clone()).or_default().insert((due, key.clone()));
        }
        if let Some(owner) = row.owner {
            self.by_node.entry(owner.node).or_default().insert(key.clone());
        }
        self.by_expiry.insert((row.expires, key.clone()));
        self.bytes += row.bytes(&key);
        self.by_key.insert(key, row);
    }

    fn remove(&mut self, key: &Key) {
        let Some(row) = self.by_key.remove(key) else { return };
        if let Some(group) = &row.group {
            remove_from(&mut self.by_group, group, key);
        }
        if let (Some(queue), Some(due)) = (&row.queue, row.due) {
            remove_from(&mut self.by_queue, queue, &(due, key.clone()));
        }
        if let Some(owner) = row.owner {
            remove_from(&mut self.by_node, &owner.node, key);
        }
        self.by_expiry.remove(&(row.expires, key.clone()));
        self.bytes -= row.bytes(key);
    }
}

/// Removes an entry, and the set when it is empty.
fn remove_from<K: std::hash::Hash + Eq, V: Ord>(sets: &mut HashMap<K, BTreeSet<V>>, name: &K, entry: &V) {
    if let Some(set) = sets.get_mut(name) {
        set.remove(entry);
        if set.is_empty() {
            sets.remove(name);
        }
    }
}

/// Nothing here waits, but an operation happens when it is awaited, as in every engine.
fn lazy<'a, T: Send + 'a>(operation: impl FnOnce() -> T + Send + 'a) -> BoxFuture<'a, T> {
    Box::pin(async move { operation() })
}

impl Records for Memory {
    fn get<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        lazy(move || {
            let rows = self.rows();
            let now = self.now();
            Ok(keys.iter().map(|key| rows.live(key, now).map(|row| row.record(key, now))).collect())
        })
    }

    fn put(&self, put: Put) -> BoxFuture<'_, Result<Version, PutError>> {
        lazy(move || self.write(put))
    }

    fn remove<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<(), StoreError>> {
        lazy(move || {
            let mut rows = self.rows();
            for key in keys {
                rows.remove(key);
            }
            Ok(())
        })
    }

    fn list<'a>(
        &'a self,
        group: &'a Group,
        after: Option<&'a Key>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        lazy(move || {
            let rows = self.rows();
            let now = self.now();
            let Some(keys) = rows.by_group.get(group) else { return Ok(Vec::new()) };
            let from = after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
            let records = keys
                .range::<Key, _>((from, std::ops::Bound::Unbounded))
                .filter_map(|key| Some(rows.live(key, now)?.record(key, now)))
                .take(limit);
            Ok(records.collect())
        })
    }

    fn count<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<u64, StoreError>> {
        lazy(move || {
            let rows = self.rows();
            let now = self.now();
            let live = |key: &&Key| rows.live(key, now).is_some();
            Ok(rows.by_group.get(group).map_or(0, |keys| keys.iter().filter(live).count() as u64))
        })
    }

    fn claim(&self, claim: ClaimRequest) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        lazy(move || Ok(self.take_due(&claim)))
    }

    fn renew(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Vec<(Key, Owner)>, StoreError>> {
        lazy(move || {
            let mut rows = self.rows();
            let now = self.now();
            let keys: Vec<Key> = rows.by_node.get(&node).into_iter().flatten().cloned().collect();
            let renewed = keys.into_iter().filter_map(|key| {
                let mut row = rows.live(&key, now)?.clone();
                let owner = row.owner?;
                row.due = Some(now.after(lease));
                rows.insert(key.clone(), row);
                Some((key, owner))
            });
            Ok(renewed.collect())
        })
    }

    fn touch<'a>(&'a self, keys: &'a [Key], ttl: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        lazy(move || {
            let mut rows = self.rows();
            let now = self.now();
            for key in keys {
                if let Some(row) = rows.live(key, now) {
                    let row = Row { expires: row.expires.max(now.after(ttl)), ..row.clone() };
                    rows.insert(key.clone(), row);
                }
            }
            Ok(())
        })
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        lazy(move || {
            let mut rows = self.rows();
            let now = self.now();
            let expired: Vec<Key> = rows
                .by_expiry
                .iter()
                .take_while(|(expires, _)| *expires <= now)
                .take(limit)
                .map(|(_, key)| key.clone())
                .collect();
            for key in &expired {
                rows.remove(key);
            }
            Ok(expired.len())
        })
    }

    fn scan<'a>(&'a self, after: Option<&'a str>, limit: usize) -> BoxFuture<'a, Result<Page, StoreError>> {
        lazy(move || {
            let rows = self.rows();
            let now = self.now();
            let after = after
                .map(Key::new)
                .transpose()
                .map_err(|error| StoreError::invalid(format!("a page cannot begin there: {error}")))?;
            let from = after.as_ref().map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
            let records = rows
                .by_key
                .range::<Key, _>((from, std::ops::Bound::Unbounded))
                .filter(|(_, row)| row.expires > now)
                .map(|(key, row)| row.record(key, now))
                .take(limit);
            Ok(Page::in_key_order(records.collect(), limit))
        })
    }

    fn depth<'a>(&'a self, queues: &'a [Queue]) -> BoxFuture<'a, Result<Option<Depth>, StoreError>> {
        lazy(move || {
            let rows = self.rows();
            let now = self.now();
            let mut depth = Depth::default();
            for (due, key) in queues.iter().filter_map(|queue| rows.by_queue.get(queue)).flatten() {
                let Some(row) = rows.live(key, now) else { continue };
                if *due <= now {
                    depth.due += 1;
                    depth.oldest = depth.oldest.max(now.since(*due));
                } else if row.owner.is_some() {
                    depth.claimed += 1;
                } else {
                    depth.scheduled += 1;
                }
            }
            Ok(Some(depth))
        })
    }
}

/// Carries hints inside one process.
#[derive(Debug, Clone, Default)]
pub struct MemoryBus {
    hints: Hints,
}

impl MemoryBus {
    /// A bus without subscribers.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Bus for MemoryBus {
    fn publish(&self, message: Message) {
        self.hints.send(BusEvent::Message(message));
    }

    fn subscribe(&self) -> BoxStream<'static, BusEvent> {
        self.hints.subscribe()
    }
}
