//! Keeps the records of [`bowline_store`] in Redis 7 or later, or in Valkey.
//!
//! A record is a hash. Sorted sets find due, grouped and expired records. Every operation is one Lua script, so it is
//! applied as a whole. Expired records stay until [`Records::sweep`] deletes them: an expiry of Redis would leave their
//! index entries behind.
//!
//! ```no_run
//! use bowline_redis::Options;
//!
//! # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
//! let options = Options::new("rediss://cache.example.com:6380")?;
//! let records = options.open().await?;
//! let bus = options.open_bus().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What it survives
//!
//! With `appendonly yes`, acknowledged writes survive the end of the server; with `appendfsync always`, a power failure,
//! too. Replication is asynchronous: a failover can lose acknowledged writes. `?wait=1` makes every write wait for one
//! replica, which lowers the risk and does not remove it. A server that evicts keys is refused.
//!
//! # Parameters of the URL
//!
//! | parameter | meaning |
//! |---|---|
//! | `wait` | how many replicas confirm a write, 0 by default |
//! | `sslrootcert` | for `rediss://`, a file with the root certificates, instead of those of the system |
//! | `protocol` | `resp2` (default) or `resp3` |

mod bus;
mod connection;
mod failure;
mod inspect;
mod reply;
mod url;

use std::time::Duration;

use bowline_store::{
    ClaimChange, ClaimId, ClaimRequest, Depth, DueChange, Durability, Expect, Finding, Group, Key, Limits,
    Namespace, NodeId, Owner, Page, Put, PutError, Queue, Record, Records, StoreError, Time, TtlChange,
    Version,
};
use futures_core::future::BoxFuture;
use redis::{Script, ScriptInvocation, Value};

pub use bus::RedisBus;
use connection::Link;
use inspect::Info;

/// How many records one claim takes at most: a script stops everything else.
const MAX_CLAIMED: usize = 256;

/// How often a script is loaded for one operation.
const ATTEMPTS: u32 = 5;

/// How a server is opened.
#[derive(Clone)]
#[must_use]
pub struct Options {
    address: url::Address,
    namespace: Namespace,
    deadline: Duration,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("address", &self.address.shown)
            .field("namespace", &self.namespace)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// Reads a URL, `redis://user:password@host:port/database`, or `rediss://…` for TLS.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        let deadline = Limits::default().deadline;
        Ok(Self { address: url::parse(url)?, namespace: Namespace::default(), deadline })
    }

    /// Sets the namespace. Stores of different namespaces do not see each other's records and hints.
    pub fn namespace(mut self, namespace: Namespace) -> Self {
        self.namespace = namespace;
        self
    }

    /// Sets how long the callers wait for an operation.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Connects, and checks the settings of the server.
    pub async fn open(&self) -> Result<Redis, StoreError> {
        let redis = Redis {
            records: Link::new(&self.address, self.deadline),
            renewals: Link::new(&self.address, self.deadline),
            scripts: Scripts::new(),
            // The hash tag puts all keys of a namespace on one shard.
            prefix: format!("{{bowline.{}}}", self.namespace),
            wait: self.address.wait,
            deadline: self.deadline,
        };
        let (mut connection, _) = redis.records.connection().await?;
        let info = Info::read(&mut connection).await?;
        info.check()?;
        info.warn();
        Ok(redis)
    }

    /// Connects, and subscribes to hints.
    pub async fn open_bus(&self) -> Result<RedisBus, StoreError> {
        RedisBus::open(&self.address, &self.namespace, self.deadline).await
    }
}

/// Records in Redis.
#[derive(Debug)]
pub struct Redis {
    records: Link,
    /// A lease must not end because of bulk work.
    renewals: Link,
    scripts: Scripts,
    prefix: String,
    wait: u32,
    deadline: Duration,
}

#[derive(Debug)]
struct Scripts {
    get: Script,
    put: Script,
    remove: Script,
    list: Script,
    count: Script,
    claim: Script,
    renew: Script,
    touch: Script,
    sweep: Script,
    scan: Script,
    depth: Script,
}

macro_rules! script {
    ($name:literal) => {
        Script::new(concat!(
            include_str!("scripts/shared.lua"),
            include_str!(concat!("scripts/", $name, ".lua"))
        ))
    };
}

impl Scripts {
    fn new() -> Self {
        Self {
            get: script!("get"),
            put: script!("put"),
            remove: script!("remove"),
            list: script!("list"),
            count: script!("count"),
            claim: script!("claim"),
            renew: script!("renew"),
            touch: script!("touch"),
            sweep: script!("sweep"),
            scan: script!("scan"),
            depth: script!("depth"),
        }
    }
}

/// A duration in milliseconds, rounded up.
fn millis(duration: Duration) -> u64 {
    Time::default().after(duration).as_millis()
}

fn hex(bits: u64) -> String {
    format!("{bits:016x}")
}

impl Redis {
    /// Reads version and settings of the server.
    pub async fn inspect(&self) -> Result<Vec<Finding>, StoreError> {
        let (mut connection, _) = self.records.connection().await?;
        let info = Info::read(&mut connection).await?;
        // Many providers forbid CONFIG.
        let config: redis::RedisResult<Vec<String>> =
            redis::cmd("CONFIG").arg("GET").arg("appendfsync").query_async(&mut connection).await;
        Ok(info.findings(config.ok().and_then(|mut pair| pair.pop()).as_deref()))
    }

    fn call<'a>(&self, script: &'a Script) -> ScriptInvocation<'a> {
        script.key(&self.prefix)
    }

    async fn run(
        &self,
        link: &Link,
        call: ScriptInvocation<'_>,
        failed: fn(redis::RedisError) -> StoreError,
    ) -> Result<Value, StoreError> {
        let (mut connection, number) = link.connection().await?;
        let mut attempt = 1;
        loop {
            match call.invoke_async(&mut connection).await {
                Ok(reply) => return Ok(reply),
                // A missing script is loaded. Somebody may remove it again before it is called; then nothing was done.
                Err(error) if error.code() == Some("NOSCRIPT") && attempt < ATTEMPTS => attempt += 1,
                Err(error) => {
                    link.failed(number, &error).await;
                    return Err(failed(error));
                }
            }
        }
    }

    async fn read(&self, call: ScriptInvocation<'_>) -> Result<Value, StoreError> {
        self.run(&self.records, call, failure::of_read).await
    }

    async fn write(&self, call: ScriptInvocation<'_>) -> Result<Value, StoreError> {
        self.run(&self.records, call, failure::of_write).await
    }

    /// Waits until enough replicas have what was written on the connection with the number `written_on`. The write was
    /// applied, so whatever fails here leaves open whether it lasts.
    async fn replicated(&self, written_on: u64) -> Result<(), StoreError> {
        let unconfirmed = |error: StoreError| {
            StoreError::unknown(format!("replicas did not confirm a write: {error}")).with_source(error)
        };
        let (mut connection, number) = self.records.connection().await.map_err(unconfirmed)?;
        if number != written_on {
            // Redis waits for the writes of the connection that asks.
            return Err(StoreError::unknown("the connection ended before replicas confirmed a write"));
        }
        let mut wait = redis::cmd("WAIT");
        wait.arg(self.wait).arg(millis(self.deadline / 2));
        let confirmed: Result<u32, _> = wait.query_async(&mut connection).await;
        match confirmed {
            Ok(replicas) if replicas >= self.wait => Ok(()),
            Ok(replicas) => Err(StoreError::unknown(format!(
                "{replicas} of {} replicas confirmed a write in time",
                self.wait
            ))),
            Err(error) => {
                self.records.failed(number, &error).await;
                Err(unconfirmed(failure::of_write(error)))
            }
        }
    }

    async fn put_record(&self, put: Put) -> Result<Version, PutError> {
        put.check()?;
        let (expected, version) = match put.expect {
            Expect::Version(version) => (hex(version.bits()), version.next()),
            _ => (String::new(), Version::first()),
        };
        let (claim, owner, lease) = match put.claim {
            ClaimChange::Take { owner, lease } => ("take", Some(owner), Some(lease)),
            ClaimChange::Release => ("release", None, None),
            _ => ("keep", None, None),
        };
        let (due, time) = match (lease, put.due) {
            (Some(time), _) | (None, DueChange::In(time)) => ("in", millis(time)),
            (None, DueChange::Never) => ("never", 0),
            _ => ("keep", 0),
        };
        let ttl = match put.ttl {
            TtlChange::In(ttl) => millis(ttl).to_string(),
            _ => String::new(),
        };
        let mut call = self.call(&self.scripts.put);
        call.arg(put.key.as_str())
            .arg(put.value.as_ref())
            .arg(expected)
            .arg(hex(version.bits()))
            .arg(put.required_claim.as_ref().map_or("", |required| required.key.as_str()))
            .arg(put.required_claim.as_ref().map_or_else(String::new, |required| hex(required.claim.bits())))
            .arg(claim)
            .arg(owner.map_or_else(String::new, |owner| hex(owner.node.bits())))
            .arg(owner.map_or_else(String::new, |owner| hex(owner.claim.bits())))
            .arg(due)
            .arg(time)
            .arg(put.queue.as_ref().map_or("", Queue::as_str))
            .arg(put.group.as_ref().map_or("", Group::as_str))
            .arg(ttl);
        let is_replicated = self.wait > 0 && put.durability == Durability::Full;
        let connection = if is_replicated { Some(self.records.connection().await?.1) } else { None };
        match self.write(call).await? {
            Value::Int(1) => {
                if let Some(connection) = connection {
                    self.replicated(connection).await?;
                }
                Ok(version)
            }
            Value::Int(0) => Err(PutError::Conflict),
            Value::Int(-1) => Err(PutError::ClaimLost),
            reply => Err(StoreError::unknown(format!("Redis answered a write with {reply:?}")).into()),
        }
    }

    async fn claim_records(&self, request: ClaimRequest) -> Result<Vec<Record>, StoreError> {
        let limit = request.limit.min(MAX_CLAIMED);
        let mut queues: Vec<&str> = request.queues.iter().map(Queue::as_str).collect();
        queues.sort_unstable();
        queues.dedup();
        let mut call = self.call(&self.scripts.claim);
        call.arg(hex(request.node.bits()))
            .arg(u8::from(request.lapsed))
            .arg(limit)
            .arg(millis(request.lease))
            .arg(queues.len());
        for queue in queues {
            call.arg(queue);
        }
        for _ in 0..limit {
            call.arg(format!("{:016x}{:08x}", ClaimId::random().bits(), fastrand::u32(..)));
        }
        Ok(reply::records(self.write(call).await?)?.into_iter().flatten().collect())
    }
}

impl Records for Redis {
    fn get<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        Box::pin(async move {
            let mut call = self.call(&self.scripts.get);
            for key in keys {
                call.arg(key.as_str());
            }
            reply::records(self.read(call).await?)
        })
    }

    fn put(&self, put: Put) -> BoxFuture<'_, Result<Version, PutError>> {
        Box::pin(self.put_record(put))
    }

    fn remove<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut call = self.call(&self.scripts.remove);
            for key in keys {
                call.arg(key.as_str());
            }
            self.write(call).await.map(drop)
        })
    }

    fn list<'a>(
        &'a self,
        group: &'a Group,
        after: Option<&'a Key>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            let mut call = self.call(&self.scripts.list);
            call.arg(group.as_str()).arg(after.map_or("", Key::as_str)).arg(limit);
            Ok(reply::records(self.read(call).await?)?.into_iter().flatten().collect())
        })
    }

    fn count<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let mut call = self.call(&self.scripts.count);
            call.arg(group.as_str());
            count_of(&self.read(call).await?)
        })
    }

    fn claim(&self, claim: ClaimRequest) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(self.claim_records(claim))
    }

    fn renew(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Vec<(Key, Owner)>, StoreError>> {
        Box::pin(async move {
            let mut call = self.call(&self.scripts.renew);
            call.arg(hex(node.bits())).arg(millis(lease));
            reply::claims(self.run(&self.renewals, call, failure::of_write).await?, node)
        })
    }

    fn touch<'a>(&'a self, keys: &'a [Key], ttl: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut call = self.call(&self.scripts.touch);
            call.arg(millis(ttl));
            for key in keys {
                call.arg(key.as_str());
            }
            self.write(call).await.map(drop)
        })
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(async move {
            let mut call = self.call(&self.scripts.sweep);
            call.arg(limit);
            Ok(usize::try_from(count_of(&self.write(call).await?)?).unwrap_or(usize::MAX))
        })
    }

    fn scan<'a>(&'a self, after: Option<&'a str>, limit: usize) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move {
            let mut call = self.call(&self.scripts.scan);
            call.arg(after.unwrap_or("0")).arg(limit.max(1));
            reply::page(self.read(call).await?)
        })
    }

    fn depth<'a>(&'a self, queues: &'a [Queue]) -> BoxFuture<'a, Result<Option<Depth>, StoreError>> {
        Box::pin(async move {
            let mut call = self.call(&self.scripts.depth);
            for queue in queues {
                call.arg(queue.as_str());
            }
            reply::depth(&self.read(call).await?).map(Some)
        })
    }
}

fn count_of(reply: &Value) -> Result<u64, StoreError> {
    match reply {
        Value::Int(count) => Ok(count.max(&0).cast_unsigned()),
        reply => Err(StoreError::invalid(format!("Redis answered a count with {reply:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    #[test]
    fn a_password_is_never_shown() {
        let options = Options::new("redis://ann:canary@localhost").unwrap();
        assert!(!format!("{options:?}").contains("canary"));
    }
}
