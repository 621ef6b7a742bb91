//! Everything that users of a store share: records, hints, namespace and keys.

use std::fmt;
use std::sync::Arc;

use bowline_proto::seal::{KeyRing, digest};

use crate::metrics::{Metered, MeteredBus};
use crate::{
    Bus, Depth, Group, Limited, Limits, Memory, MemoryBus, Records, Sealed, StoreError, StoreMetrics,
};

/// The longest namespace, in bytes.
const MAX_NAMESPACE_BYTES: usize = 64;

/// The namespace of a store that was not given one.
pub const DEFAULT_NAMESPACE: &str = "default";

/// The name that separates the users of one database. Stores of different namespaces do not see each other's records.
///
/// It has 1 to 64 of the characters `a-z`, `A-Z`, `0-9`, `.`, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Namespace(Arc<str>);

impl Namespace {
    /// Checks a namespace.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, StoreError> {
        let name = name.into();
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if name.is_empty() || name.len() > MAX_NAMESPACE_BYTES || !name.chars().all(fits) {
            return Err(StoreError::invalid(format!(
                "{name:?} is not a namespace; use 1 to {MAX_NAMESPACE_BYTES} of a-z, A-Z, 0-9, `.`, `_` and `-`"
            )));
        }
        Ok(Self(name))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self(DEFAULT_NAMESPACE.into())
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which processes see a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reach {
    /// This process. Records end with it.
    Process,
    /// The processes of this machine.
    Machine,
    /// The processes of many machines.
    Network,
}

/// Records and hints of one namespace, ready to use: limited, and sealed if there are keys.
///
/// A clone is another handle to the same store.
///
/// ```
/// use std::time::Duration;
/// use bowline_store::{Key, Put, Store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Store::memory();
/// store.records().put(Put::create(Key::new("greeting")?, "hello", Duration::from_secs(60))).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Store {
    records: Arc<dyn Records>,
    bus: Arc<dyn Bus>,
    namespace: Namespace,
    keys: Option<KeyRing>,
    reach: Reach,
    engine: &'static str,
    metrics: StoreMetrics,
    /// Without the seal.
    plain: Arc<dyn Records>,
}

impl Store {
    /// A new store in memory, which ends with the process.
    pub fn memory() -> Self {
        Self::builder("memory", Arc::new(Memory::new()), Arc::new(MemoryBus::new()), Reach::Process).build()
    }

    /// Wraps an engine. `engine` is the name that operators read; the engine keeps the namespace of [`StoreBuilder::namespace`]
    /// apart from others itself.
    pub fn builder(
        engine: &'static str,
        records: Arc<dyn Records>,
        bus: Arc<dyn Bus>,
        reach: Reach,
    ) -> StoreBuilder {
        StoreBuilder {
            engine,
            records,
            bus,
            reach,
            namespace: Namespace::default(),
            keys: None,
            limits: Limits::default(),
        }
    }

    /// The records. Values are sealed below if there are keys.
    pub fn records(&self) -> &Arc<dyn Records> {
        &self.records
    }

    /// The hints.
    pub fn bus(&self) -> &Arc<dyn Bus> {
        &self.bus
    }

    /// What separates this store from others in the same database.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The keys that values are sealed with. What clients carry can be sealed with them, too: all nodes have them.
    pub fn keys(&self) -> Option<&KeyRing> {
        self.keys.as_ref()
    }

    /// Which processes see the store.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// What this process has asked of the store.
    pub fn metrics(&self) -> &StoreMetrics {
        &self.metrics
    }

    /// Counts what waits in the queues that this process has used. `None` if the engine cannot tell.
    pub async fn depth(&self) -> Result<Option<Depth>, StoreError> {
        self.records.depth(&self.metrics.queues()).await
    }

    /// The records as the engine keeps them: sealed, if there are keys.
    pub(crate) fn plain(&self) -> &Arc<dyn Records> {
        &self.plain
    }

    /// The name of the engine: `memory`, `sqlite`, `postgres`, `redis`.
    pub fn engine(&self) -> &'static str {
        self.engine
    }

    /// The group of what belongs to one principal: a digest, so that a group does not reveal who it is, and does not
    /// change when keys rotate.
    pub fn group_of(&self, kind: &str, principal: &str) -> Group {
        let digest = digest(&[self.namespace.as_str().as_bytes(), kind.as_bytes(), principal.as_bytes()]);
        let digest = digest.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        Group::new(format!("{kind}/{digest}")).unwrap_or_else(|_| {
            // Only a kind that is not a name itself ends here.
            Group::new(digest).expect("hexadecimal digits are a name")
        })
    }
}

/// Makes a [`Store`] of an engine.
#[derive(Debug)]
#[must_use]
pub struct StoreBuilder {
    engine: &'static str,
    records: Arc<dyn Records>,
    bus: Arc<dyn Bus>,
    reach: Reach,
    namespace: Namespace,
    keys: Option<KeyRing>,
    limits: Limits,
}

impl StoreBuilder {
    /// Sets the namespace, which must be the one that the engine was opened with.
    pub fn namespace(mut self, namespace: Namespace) -> Self {
        self.namespace = namespace;
        self
    }

    /// Seals values with the first key of the ring, and opens them with any.
    pub fn keys(mut self, keys: KeyRing) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Sets how much this process asks of the store at once, and how long it waits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Makes the store.
    pub fn build(self) -> Store {
        // Nothing waits in memory, so nothing needs a limit there.
        let limited: Arc<dyn Records> = match self.reach {
            Reach::Process => self.records,
            Reach::Machine | Reach::Network => Arc::new(Limited::new(self.records, self.limits)),
        };
        let metrics = StoreMetrics::new();
        let plain: Arc<dyn Records> = Arc::new(Metered::new(limited, metrics.clone()));
        let records: Arc<dyn Records> = match &self.keys {
            Some(keys) => Arc::new(Sealed::new(Arc::clone(&plain), keys.clone(), self.namespace.as_str())),
            None => Arc::clone(&plain),
        };
        Store {
            records,
            bus: Arc::new(MeteredBus::new(self.bus, metrics.clone())),
            namespace: self.namespace,
            keys: self.keys,
            reach: self.reach,
            engine: self.engine,
            metrics,
            plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bowline_proto::seal::{Key as SealKey, KeyRing};

    use super::{Namespace, Reach, Store};
    use crate::{Key, Memory, MemoryBus, Put, Records};

    #[test]
    fn namespaces_have_limits() {
        assert!(Namespace::new("prod-1.eu_west").is_ok());
        for wrong in ["", "a b", "{a}", "ä", &"a".repeat(65)] {
            let error = Namespace::new(wrong).unwrap_err().to_string();
            assert!(error.contains("is not a namespace; use 1 to 64 of"), "{error}");
        }
    }

    #[tokio::test]
    async fn values_are_sealed_if_there_are_keys() {
        let engine = Arc::new(Memory::new());
        let keys = KeyRing::new(SealKey::new([7; 32]));
        let store = Store::builder(
            "memory",
            Arc::clone(&engine) as Arc<dyn Records>,
            Arc::new(MemoryBus::new()),
            Reach::Process,
        )
        .keys(keys)
        .build();
        let key = [Key::new("a").unwrap()];
        store.records().put(Put::create(key[0].clone(), "canary", Duration::from_secs(60))).await.unwrap();
        let kept = engine.get(&key).await.unwrap().remove(0).unwrap().value;
        assert!(!kept.windows(6).any(|part| part == b"canary"), "{kept:?}");
        assert_eq!(store.records().get(&key).await.unwrap().remove(0).unwrap().value, "canary");
    }

    #[test]
    fn a_group_does_not_show_its_principal() {
        let store = Store::memory();
        let ann = store.group_of("tasks", "ann");
        assert!(!ann.as_str().contains("ann"));
        assert_eq!(ann, Store::memory().group_of("tasks", "ann"));
        assert_ne!(ann, store.group_of("tasks", "bob"));
        assert_ne!(ann, store.group_of("sessions", "ann"));
    }
}
