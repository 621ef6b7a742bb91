//! Counts what a process asks of a store, and how long that takes.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;
use futures_util::StreamExt;
use tokio::time::Instant;

use crate::{
    Bus, BusEvent, ClaimRequest, Depth, ErrorKind, Group, Key, Message, NodeId, Owner, Page, Put, PutError,
    Queue, Record, Records, StoreError, Version,
};

/// The upper bounds of the buckets of [`OperationTimes`], in seconds.
pub const TIME_BOUNDS: [f64; 12] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5];

/// How many queues are remembered. They are named after the tools of servers.
const MAX_QUEUES: usize = 10_000;

/// Of how many records it is remembered how often their claims lapsed.
const MAX_LAPSED: usize = 10_000;

/// The operations, in the order of their times.
const OPERATIONS: [&str; 11] =
    ["get", "put", "remove", "list", "count", "claim", "renew", "touch", "sweep", "scan", "depth"];

#[derive(Clone, Copy)]
enum Operation {
    Get,
    Put,
    Remove,
    List,
    Count,
    Claim,
    Renew,
    Touch,
    Sweep,
    Scan,
    Depth,
}

/// What this process has asked of a store: [`Store::metrics`](crate::Store::metrics). A clone shares the counts.
///
/// ```
/// use std::time::Duration;
/// use bowline_store::{Key, Put, Store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Store::memory();
/// store.records().put(Put::create(Key::new("a")?, "1", Duration::from_secs(60))).await?;
/// let (_, times) = store.metrics().operations().find(|(name, _)| *name == "put").expect("all operations are there");
/// assert_eq!(times.count, 1);
/// assert!(store.metrics().is_up());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct StoreMetrics(Arc<Counts>);

struct Counts {
    times: [Times; OPERATIONS.len()],
    is_down: AtomicBool,
    conflicts: AtomicU64,
    unknown: AtomicU64,
    gaps: AtomicU64,
    lapses: AtomicU64,
    /// When a sweep last left nothing behind that had expired; before the first one, when the store was opened.
    swept: Mutex<Instant>,
    /// The queues that were written to or claimed from.
    queues: Mutex<BTreeSet<Queue>>,
    /// How many lapses of a record are counted.
    lapsed: Mutex<HashMap<Key, u32>>,
}

#[derive(Default)]
struct Times {
    buckets: [AtomicU64; TIME_BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

/// How long the operations of one kind took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationTimes {
    /// How many took at most as long as each of [`TIME_BOUNDS`]; the last one counts all.
    pub up_to: [u64; TIME_BOUNDS.len() + 1],
    /// How many there were.
    pub count: u64,
    /// How long all of them took together.
    pub sum: Duration,
}

impl Times {
    fn record(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = TIME_BOUNDS.partition_point(|bound| *bound < seconds);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn read(&self) -> OperationTimes {
        let mut count = 0;
        let up_to = self.buckets.each_ref().map(|bucket| {
            count += bucket.load(Ordering::Relaxed);
            count
        });
        OperationTimes { up_to, count, sum: Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StoreMetrics {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Counts {
            times: Default::default(),
            is_down: AtomicBool::new(false),
            conflicts: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            gaps: AtomicU64::new(0),
            lapses: AtomicU64::new(0),
            swept: Mutex::new(Instant::now()),
            queues: Mutex::default(),
            lapsed: Mutex::default(),
        }))
    }

    /// Whether the store answered the last operation.
    pub fn is_up(&self) -> bool {
        !self.0.is_down.load(Ordering::Relaxed)
    }

    /// The kinds of operations and how long they took, waiting for a turn included.
    pub fn operations(&self) -> impl Iterator<Item = (&'static str, OperationTimes)> {
        OPERATIONS.into_iter().zip(self.0.times.each_ref().map(Times::read))
    }

    /// How many writes found that somebody else was faster, or that their claim was lost.
    pub fn conflicts(&self) -> u64 {
        self.0.conflicts.load(Ordering::Relaxed)
    }

    /// How many writes may have been applied or not.
    pub fn unknown(&self) -> u64 {
        self.0.unknown.load(Ordering::Relaxed)
    }

    /// How many times a listener of this process may have missed hints.
    pub fn gaps(&self) -> u64 {
        self.0.gaps.load(Ordering::Relaxed)
    }

    /// How many records this process took over because the one that held them did not renew its claim.
    pub fn lapses(&self) -> u64 {
        self.0.lapses.load(Ordering::Relaxed)
    }

    /// How long ago this process last deleted everything that had expired.
    pub fn sweep_lag(&self) -> Duration {
        lock(&self.0.swept).elapsed()
    }

    /// The queues that this process has used.
    pub(crate) fn queues(&self) -> Vec<Queue> {
        lock(&self.0.queues).iter().cloned().collect()
    }

    fn uses(&self, queue: &Queue) {
        let mut queues = lock(&self.0.queues);
        if queues.len() < MAX_QUEUES && !queues.contains(queue) {
            queues.insert(queue.clone());
        }
    }

    fn claimed(&self, records: &[Record]) {
        for record in records.iter().filter(|record| record.lapses > 0) {
            let mut lapsed = lock(&self.0.lapsed);
            if lapsed.len() >= MAX_LAPSED {
                lapsed.clear();
            }
            let counted = lapsed.insert(record.key.clone(), record.lapses).unwrap_or(0);
            // Of a record that is new here, earlier processes have counted the earlier ones.
            let new = if counted == 0 { 1 } else { record.lapses.saturating_sub(counted) };
            self.0.lapses.fetch_add(u64::from(new), Ordering::Relaxed);
        }
    }

    /// Runs an operation, and counts its time and how it ended.
    async fn measure<T, E: Failed>(
        &self,
        operation: Operation,
        running: BoxFuture<'_, Result<T, E>>,
    ) -> Result<T, E> {
        let started = Instant::now();
        let outcome = running.await;
        self.0.times[operation as usize].record(started.elapsed());
        let kind = outcome.as_ref().err().and_then(Failed::kind);
        // What is refused for good was answered.
        let is_down = matches!(kind, Some(ErrorKind::Unavailable | ErrorKind::Unknown));
        self.0.is_down.store(is_down, Ordering::Relaxed);
        if kind == Some(ErrorKind::Unknown) {
            self.0.unknown.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }
}

impl fmt::Debug for StoreMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreMetrics").field("is_up", &self.is_up()).finish_non_exhaustive()
    }
}

/// An error of an operation.
trait Failed {
    /// How the store failed, if it did.
    fn kind(&self) -> Option<ErrorKind>;
}

impl Failed for StoreError {
    fn kind(&self) -> Option<ErrorKind> {
        Some(Self::kind(self))
    }
}

impl Failed for PutError {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Store(error) => Some(error.kind()),
            _ => None,
        }
    }
}

/// Records whose use is counted.
#[derive(Debug)]
pub(crate) struct Metered {
    inner: Arc<dyn Records>,
    metrics: StoreMetrics,
}

impl Metered {
    pub(crate) fn new(inner: Arc<dyn Records>, metrics: StoreMetrics) -> Self {
        Self { inner, metrics }
    }
}

impl Records for Metered {
    fn get<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        Box::pin(self.metrics.measure(Operation::Get, self.inner.get(keys)))
    }

    fn put(&self, put: Put) -> BoxFuture<'_, Result<Version, PutError>> {
        if let Some(queue) = &put.queue {
            self.metrics.uses(queue);
        }
        Box::pin(async move {
            let written = self.metrics.measure(Operation::Put, self.inner.put(put)).await;
            if matches!(written, Err(PutError::Conflict | PutError::ClaimLost)) {
                self.metrics.0.conflicts.fetch_add(1, Ordering::Relaxed);
            }
            written
        })
    }

    fn remove<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.metrics.measure(Operation::Remove, self.inner.remove(keys)))
    }

    fn list<'a>(
        &'a self,
        group: &'a Group,
        after: Option<&'a Key>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(self.metrics.measure(Operation::List, self.inner.list(group, after, limit)))
    }

    fn count<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(self.metrics.measure(Operation::Count, self.inner.count(group)))
    }

    fn claim(&self, claim: ClaimRequest) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        for queue in &claim.queues {
            self.metrics.uses(queue);
        }
        Box::pin(async move {
            let claimed = self.metrics.measure(Operation::Claim, self.inner.claim(claim)).await?;
            self.metrics.claimed(&claimed);
            Ok(claimed)
        })
    }

    fn renew(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Vec<(Key, Owner)>, StoreError>> {
        Box::pin(self.metrics.measure(Operation::Renew, self.inner.renew(node, lease)))
    }

    fn touch<'a>(&'a self, keys: &'a [Key], ttl: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.metrics.measure(Operation::Touch, self.inner.touch(keys, ttl)))
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(async move {
            let deleted = self.metrics.measure(Operation::Sweep, self.inner.sweep(limit)).await?;
            if deleted < limit {
                *lock(&self.metrics.0.swept) = Instant::now();
            }
            Ok(deleted)
        })
    }

    fn scan<'a>(&'a self, after: Option<&'a str>, limit: usize) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(self.metrics.measure(Operation::Scan, self.inner.scan(after, limit)))
    }

    fn depth<'a>(&'a self, queues: &'a [Queue]) -> BoxFuture<'a, Result<Option<Depth>, StoreError>> {
        Box::pin(self.metrics.measure(Operation::Depth, self.inner.depth(queues)))
    }
}

/// A bus whose gaps are counted.
#[derive(Debug)]
pub(crate) struct MeteredBus {
    inner: Arc<dyn Bus>,
    metrics: StoreMetrics,
}

impl MeteredBus {
    pub(crate) fn new(inner: Arc<dyn Bus>, metrics: StoreMetrics) -> Self {
        Self { inner, metrics }
    }
}

impl Bus for MeteredBus {
    fn publish(&self, message: Message) {
        self.inner.publish(message);
    }

    fn subscribe(&self) -> BoxStream<'static, BusEvent> {
        let metrics = self.metrics.clone();
        Box::pin(self.inner.subscribe().inspect(move |event| {
            if *event == BusEvent::Gap {
                metrics.0.gaps.fetch_add(1, Ordering::Relaxed);
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use futures_util::StreamExt;

    use crate::{
        Bus, BusEvent, ClaimRequest, Hints, Key, Memory, MemoryBus, Message, NodeId, Put, Queue, Reach,
        Records, Store,
    };

    #[derive(Debug, Default)]
    struct Lossy(Hints);

    impl Bus for Lossy {
        fn publish(&self, _message: Message) {
            self.0.send(BusEvent::Gap);
        }

        fn subscribe(&self) -> futures_core::stream::BoxStream<'static, BusEvent> {
            self.0.subscribe()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_asked_of_a_store_is_counted() {
        let memory: Arc<dyn Records> = Arc::new(Memory::new());
        let store = Store::builder("memory", memory, Arc::new(Lossy::default()), Reach::Process).build();
        let (records, metrics) = (store.records(), store.metrics());
        let (key, queue) = (Key::new("a").unwrap(), Queue::new("q").unwrap());
        let minute = Duration::from_secs(60);
        let put = Put::create(key.clone(), "1", minute).queue(queue.clone()).due_in(Duration::ZERO);
        records.put(put.clone()).await.unwrap();
        records.put(put).await.unwrap_err();
        let depth = store.depth().await.unwrap().unwrap();
        assert_eq!((depth.due, depth.claimed, depth.scheduled), (1, 0, 0));
        // Two claims that end without renewal, and the one that takes the record over.
        for _ in 0..3 {
            let claim = ClaimRequest::new(NodeId::random(), [queue.clone()]).lease(Duration::from_secs(1));
            assert_eq!(records.claim(claim.lapsed(true)).await.unwrap().len(), 1);
            tokio::time::advance(Duration::from_secs(2)).await;
        }
        let counts: Vec<(&str, u64)> = metrics
            .operations()
            .map(|(name, times)| (name, times.count))
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(counts, [("put", 2), ("claim", 3), ("depth", 1)]);
        assert_eq!((metrics.conflicts(), metrics.unknown(), metrics.lapses()), (1, 0, 2));
        assert!(metrics.sweep_lag() >= Duration::from_secs(6));
        records.sweep(10).await.unwrap();
        assert_eq!(metrics.sweep_lag(), Duration::ZERO);

        let mut events = store.bus().subscribe();
        store.bus().publish(Message::new(crate::Topic::new("t").unwrap(), "x").unwrap());
        events.next().await;
        assert_eq!(metrics.gaps(), 1);
    }

    #[tokio::test]
    async fn a_store_that_does_not_answer_is_down() {
        let memory: Arc<dyn Records> = Arc::new(Memory::with_max_bytes(1));
        let store = Store::builder("memory", memory, Arc::new(MemoryBus::new()), Reach::Process).build();
        let key = Key::new("a").unwrap();
        store.records().put(Put::create(key.clone(), "1", Duration::from_secs(60))).await.unwrap_err();
        assert!(!store.metrics().is_up());
        store.records().get(&[key]).await.unwrap();
        assert!(store.metrics().is_up());
    }
}
