//! Sessions of legacy revisions in a store, without owners: any process serves any request of a session.
//!
//! Only running calls belong to a process. A session is a record; processes keep copies of it for a short time. An answer to
//! a question is written to the record of that question, where the process that runs the call finds it. The events of a stream
//! are records too, so that a client can resume the stream at any process.

mod answers;
mod hints;
mod node;
mod record;
mod stored;
mod stream_log;
mod used_states;

pub(in crate::server) use node::Node;
pub(in crate::server) use stored::Stored;
pub(in crate::server) use used_states::UsedStatesInStore;

use bowline_store::{Bus, Records};
use std::{sync::Arc, time::Duration};

/// Where streams of legacy sessions can be resumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resume {
    /// At every process. Events are sent after they are stored, so each costs a round trip to the store.
    #[default]
    Store,
    /// At the process that runs the call. Its events stay in memory.
    Node,
}

/// A store for sessions of legacy revisions, which several processes share.
///
/// ```
/// use bowline_http::{HttpOptions, SessionStore};
/// use bowline_store::{Memory, MemoryBus};
/// use std::sync::Arc;
///
/// // Of one process: for tests. Processes share an engine such as SQLite or PostgreSQL.
/// let store = SessionStore::new(Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
/// let options = HttpOptions::new().session_store(store);
/// # drop(options);
/// ```
#[derive(Clone, Debug)]
#[must_use = "it does nothing until it is used"]
pub struct SessionStore {
    pub(in crate::server) records: Arc<dyn Records>,
    bus: Arc<dyn Bus>,
    resume: Resume,
    cache: Duration,
    node_ttl: Duration,
    poll: Duration,
}

impl SessionStore {
    /// Uses these records and hints. Where others can read the records, they should be
    /// [sealed](bowline_store::Sealed).
    pub fn new(records: Arc<dyn Records>, bus: Arc<dyn Bus>) -> Self {
        Self {
            records,
            bus,
            resume: Resume::Store,
            cache: Duration::from_secs(15),
            node_ttl: Duration::from_secs(15),
            poll: Duration::from_secs(1),
        }
    }

    /// Uses the records and hints of a store.
    pub fn of(store: &bowline_store::Store) -> Self {
        Self::new(Arc::clone(store.records()), Arc::clone(store.bus()))
    }

    /// Sets where streams can be resumed. Default: at every process.
    pub fn resume(mut self, resume: Resume) -> Self {
        self.resume = resume;
        self
    }

    /// Sets how long a process uses its copy of a session without reading the session again. Default: 15 s. A session that was
    /// ended at another process may be used that long if a hint gets lost.
    pub fn cache_time(mut self, time: Duration) -> Self {
        self.cache = time;
        self
    }

    /// Sets how long a process counts as alive after it was last seen. Default: 15 s. Streams of a process that is gone end with
    /// an error.
    pub fn node_time(mut self, time: Duration) -> Self {
        self.node_ttl = time.max(Duration::from_millis(30));
        self
    }

    /// Sets how often records that are waited for are read if no hint arrives. Default: 1 s.
    pub fn poll_time(mut self, time: Duration) -> Self {
        self.poll = time.max(Duration::from_millis(10));
        self
    }
}
