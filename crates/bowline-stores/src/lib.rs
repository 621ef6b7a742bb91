//! Opens a store by its URL.
//!
//! | URL | engine | feature |
//! |---|---|---|
//! | `memory:` | records in this process | |
//! | `sqlite:state.db` | a file that the processes of one machine share | `sqlite` |
//! | `postgres://user@host/database` | PostgreSQL 14 or later | `postgres` |
//! | `redis://host`, `rediss://host` | Redis 7 or later, Valkey | `redis` |
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = bowline_stores::open("memory:").await?;
//! assert_eq!(store.engine(), "memory");
//! # Ok(())
//! # }
//! ```
//!
//! A store that several machines share needs keys, with which values are sealed:
//!
//! ```no_run
//! # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
//! use bowline_stores::{StoreOptions, key_ring};
//!
//! let keys = key_ring([std::env::var("BOWLINE_KEY")?])?;
//! let store = StoreOptions::new("postgres://bowline@db/bowline").keys(keys).namespace("prod")?.open().await?;
//! # Ok(())
//! # }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

mod engine;
mod keys;

use bowline_proto::seal::KeyRing;
use bowline_store::measure;
pub use bowline_store::{ErrorKind, Finding, Level, Limits, Namespace, Reach, Store, StoreError};

use engine::Engine;
pub use keys::{InvalidKey, key_ring};

/// Opens a store of one process or one machine. For a shared one use [`StoreOptions`].
pub async fn open(url: &str) -> Result<Store, StoreError> {
    StoreOptions::new(url).open().await
}

/// How a store is opened.
#[derive(Clone)]
#[must_use]
pub struct StoreOptions {
    url: String,
    bus: Option<String>,
    namespace: Namespace,
    keys: Option<KeyRing>,
    limits: Limits,
    plain_text: bool,
}

impl std::fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A URL may contain a password.
        f.debug_struct("StoreOptions")
            .field("scheme", &scheme(&self.url))
            .field("namespace", &self.namespace)
            .field("keys", &self.keys)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl StoreOptions {
    /// Names the store.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            bus: None,
            namespace: Namespace::default(),
            keys: None,
            limits: Limits::default(),
            plain_text: false,
        }
    }

    /// Sends hints through another server, such as Redis beside PostgreSQL.
    pub fn bus(mut self, url: impl Into<String>) -> Self {
        self.bus = Some(url.into());
        self
    }

    /// Sets the namespace, `default` if this is not called. Stores of different namespaces do not see each other's records.
    pub fn namespace(mut self, namespace: &str) -> Result<Self, StoreError> {
        self.namespace = Namespace::new(namespace)?;
        Ok(self)
    }

    /// Seals values with the first key and opens them with any.
    pub fn keys(mut self, keys: KeyRing) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Sets how much this process asks of the store at once, and how long it waits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Allows a shared store without keys. Whoever reads the database then reads the content of every record.
    pub fn allow_plain_text(mut self) -> Self {
        self.plain_text = true;
        self
    }

    /// Opens the store.
    pub async fn open(&self) -> Result<Store, StoreError> {
        let engine = Engine::parse(&self.url)?;
        if engine.reach() == Reach::Network && self.keys.is_none() && !self.plain_text {
            return Err(StoreError::invalid(format!(
                "a store that machines share needs at least one key (`{}`); make one with `openssl rand -base64 32`",
                scheme(&self.url)
            )));
        }
        let records = engine.open(&self.namespace, self.limits.deadline).await?.into_records();
        let bus = match &self.bus {
            Some(url) => Engine::parse(url)?.open_bus(&self.namespace, self.limits.deadline).await?,
            None => engine.open_bus(&self.namespace, self.limits.deadline).await?,
        };
        let mut builder = Store::builder(engine.name(), records, bus, engine.reach())
            .namespace(self.namespace.clone())
            .limits(self.limits);
        if let Some(keys) = &self.keys {
            builder = builder.keys(keys.clone());
        }
        Ok(builder.build())
    }

    /// Opens the store and reports its version, settings and speed. Needs no keys, and leaves nothing behind.
    pub async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let engine = Engine::parse(&self.url)?;
        let opened = engine.open(&self.namespace, self.limits.deadline).await?;
        let mut findings = opened.inspect().await?;
        findings.extend(measure(opened.into_records().as_ref()).await?);
        let bus = match &self.bus {
            Some(url) => Engine::parse(url)?.open_bus(&self.namespace, self.limits.deadline).await,
            None => engine.open_bus(&self.namespace, self.limits.deadline).await,
        };
        findings.push(match bus {
            Ok(_) => Finding::ok("hints", "connected"),
            Err(error) => Finding::warning("hints", error.to_string())
                .advice("the store works without hints, but nodes notice changes late"),
        });
        Ok(findings)
    }
}

/// The part of a URL that is never secret.
fn scheme(url: &str) -> &str {
    url.split_once(':').map_or("", |(scheme, _)| scheme)
}

#[cfg(test)]
mod tests {
    use bowline_proto::seal::{Key, KeyRing};
    use bowline_store::Reach;

    use super::{StoreOptions, open};

    async fn check(url: &str, expected: &str) {
        let error = open(url).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("canary"), "{error}");
    }

    #[tokio::test]
    async fn errors_say_which_urls_there_are() {
        check("mysql://canary@host", "`mysql:` is not a store; use `memory:`, `sqlite:PATH`, `postgres://…`")
            .await;
        check("", "`` is not a store").await;
        check("state.db", "is not a store").await;
        check("memory:x", "`memory:` has nothing after the colon").await;
    }

    #[cfg(all(feature = "postgres", feature = "redis"))]
    #[tokio::test]
    async fn a_shared_store_needs_keys() {
        check("postgres://ann:canary@127.0.0.1:1/state", "needs at least one key (`postgres`)").await;
        check("rediss://:canary@127.0.0.1:1", "needs at least one key (`rediss`)").await;
        // With a key it gets as far as the connection.
        let options = StoreOptions::new("postgres://ann:canary@127.0.0.1:1/state")
            .keys(KeyRing::new(Key::new([1; 32])));
        assert!(!format!("{options:?}").contains("canary"));
        let error = options.open().await.unwrap_err().to_string();
        assert!(error.contains("cannot connect to PostgreSQL"), "{error}");
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn a_file_is_opened_and_checked() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}?synchronous=full", folder.path().join("state.db").display());
        let store = open(&url).await.unwrap();
        assert_eq!((store.engine(), store.reach()), ("sqlite", Reach::Machine));
        let findings = StoreOptions::new(url).check().await.unwrap();
        let durability = findings.iter().find(|finding| finding.name == "durability").unwrap();
        assert_eq!(durability.value, "survives a power failure");
        check("sqlite:", "`sqlite:` needs the path of a file").await;
        check("sqlite:state.db?sync=full", "unknown parameter `sync=full`; known is `synchronous=full`")
            .await;
    }
}
