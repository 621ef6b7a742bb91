//! How an endpoint is set up, with defaults that are safe.

use super::{
    front::Front,
    legacy::{EventStore, MemoryEvents},
};
use std::{sync::Arc, time::Duration};

/// How an endpoint is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
    pub(super) max_body: usize,
    pub(super) max_bodies: usize,
    pub(super) body_time: Duration,
    pub(super) patience: Duration,
    pub(super) keep_alive: Duration,
    pub(super) max_events: usize,
    pub(super) max_event_bytes: usize,
    pub(super) path: String,
    pub(super) drain: Duration,
    pub(super) max_sessions: usize,
    pub(super) max_sessions_per_principal: usize,
    pub(super) session_idle: Duration,
    pub(super) session_opening: Duration,
    pub(super) session_lifetime: Duration,
    pub(super) max_log_events: usize,
    pub(super) max_log_bytes: usize,
    pub(super) log_time: Duration,
    pub(super) events: Arc<dyn EventStore>,
    pub(super) retry: Duration,
    pub(super) sse_path: Option<String>,
    pub(super) front: Option<Arc<dyn Front>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            max_body: 4 * 1024 * 1024,
            max_bodies: 256 * 1024 * 1024,
            body_time: Duration::from_secs(30),
            patience: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
            max_events: 256,
            max_event_bytes: 1024 * 1024,
            path: "/mcp".into(),
            drain: Duration::from_secs(10),
            max_sessions: 10_000,
            max_sessions_per_principal: 100,
            session_idle: Duration::from_secs(300),
            session_opening: Duration::from_secs(60),
            session_lifetime: Duration::from_secs(24 * 3600),
            max_log_events: 1000,
            max_log_bytes: 10 * 1024 * 1024,
            log_time: Duration::from_secs(600),
            events: Arc::new(MemoryEvents),
            retry: Duration::from_millis(500),
            sse_path: None,
            front: None,
        }
    }
}

impl Settings {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names under which clients may reach the server, besides those of this machine (`localhost`, `127.0.0.1`, `[::1]`).
    ///
    /// A name without a port stands for every port. A request for any other name is refused, so that no web page can
    /// reach the server by pointing a name of its own at it.
    pub fn hosts<I: IntoIterator<Item: Into<String>>>(mut self, hosts: I) -> Self {
        self.hosts = hosts.into_iter().map(|host| host.into().to_ascii_lowercase()).collect();
        self
    }

    /// Origins whose pages are not refused, besides the server's own. Written like `https://app.example.com`.
    ///
    /// A browser also wants headers for requests across origins; a layer around the service adds those.
    pub fn origins<I: IntoIterator<Item: Into<String>>>(mut self, origins: I) -> Self {
        let origins = origins.into_iter().map(|origin| origin.into().trim().to_ascii_lowercase());
        self.origins = origins.filter(|origin| !origin.is_empty()).collect();
        self
    }

    /// The longest body accepted: 4 MiB.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// How many bytes the bodies of all requests under way may take together: 256 MiB. More are refused until there is
    /// room again.
    pub fn max_bodies(mut self, bytes: usize) -> Self {
        self.max_bodies = bytes;
        self
    }

    /// How long a body may take to arrive: 30 s.
    pub fn body_time(mut self, time: Duration) -> Self {
        self.body_time = time;
        self
    }

    /// How long a call may run before its reply becomes a stream, which can be kept alive: 10 s.
    pub fn patience(mut self, time: Duration) -> Self {
        self.patience = time;
        self
    }

    /// How long a stream may be silent before a comment is sent to keep it alive: 15 s.
    pub fn keep_alive(mut self, time: Duration) -> Self {
        // Clocks end somewhere; a year is as good as never.
        self.keep_alive = time.min(Duration::from_secs(365 * 24 * 3600));
        self
    }

    /// The path of the endpoint when this library serves it: `/mcp`.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// How many sessions of the legacy revisions there may be, altogether and of one principal: 10 000 and 100.
    pub fn max_sessions(mut self, all: usize, per_principal: usize) -> Self {
        (self.max_sessions, self.max_sessions_per_principal) = (all, per_principal);
        self
    }

    /// How long a session may be idle before it ends: 5 minutes.
    pub fn session_idle(mut self, time: Duration) -> Self {
        self.session_idle = time;
        self
    }

    /// How long a session lasts, however much it is used: 24 hours.
    pub fn session_lifetime(mut self, time: Duration) -> Self {
        self.session_lifetime = time;
        self
    }

    /// How long a session may wait for its client to say that it is ready: 1 minute.
    pub fn session_opening(mut self, time: Duration) -> Self {
        self.session_opening = time;
        self
    }

    /// How long the events of a stream that has ended are kept for a client that comes back: 10 minutes.
    pub fn event_log_time(mut self, time: Duration) -> Self {
        self.log_time = time;
        self
    }

    /// Where the events of sessions are kept: in memory.
    pub fn event_store(mut self, store: impl EventStore) -> Self {
        self.events = Arc::new(store);
        self
    }

    /// How many events, and bytes of them, a stream keeps for a client that comes back: 1 000 and 10 MiB.
    pub fn event_log(mut self, events: usize, bytes: usize) -> Self {
        (self.max_log_events, self.max_log_bytes) = (events, bytes);
        self
    }

    /// How long a client should wait before it comes back to an interrupted stream: half a second.
    pub fn retry(mut self, time: Duration) -> Self {
        self.retry = time;
        self
    }

    /// Serves the two-endpoint transport of 2024-11-05 as well: its stream at this path. Messages go to the same path.
    pub fn sse_path(mut self, path: impl Into<String>) -> Self {
        self.sse_path = Some(path.into());
        self
    }

    /// What looks at every request before the endpoint does: authentication, or further paths on the same socket.
    pub fn front(mut self, front: impl Front) -> Self {
        self.front = Some(Arc::new(front));
        self
    }

    /// How long running calls may go on once the server is to end: 10 s.
    pub fn drain(mut self, time: Duration) -> Self {
        self.drain = time;
        self
    }
}
