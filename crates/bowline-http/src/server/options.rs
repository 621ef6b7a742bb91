//! How an endpoint is set up, with defaults that are safe.

#[cfg(feature = "auth")]
use super::auth::Protect;
#[cfg(feature = "store")]
use super::shared_sessions::SessionStore;
use super::{
    filter::RequestFilter,
    legacy::{EventStore, MemoryEvents},
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

/// The longest time a timer is set to. Clocks end somewhere; a year is as good as never.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// How an endpoint is set up.
#[derive(Clone, Debug)]
#[must_use = "it does nothing until it is used"]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct HttpOptions {
    pub(super) hosts: Vec<String>,
    pub(super) any_host: bool,
    pub(super) origins: Vec<String>,
    pub(super) cors: bool,
    pub(super) hosts_name: String,
    pub(super) origins_name: String,
    pub(super) max_body: usize,
    pub(super) max_bodies: usize,
    pub(super) body_time: Duration,
    pub(super) stream_after: Duration,
    pub(super) keep_alive: Duration,
    pub(super) max_events: usize,
    pub(super) max_event_bytes: usize,
    pub(super) path: String,
    pub(super) max_connections: usize,
    pub(super) peer_address: bool,
    pub(super) idle_connection: Duration,
    pub(super) drain: Duration,
    pub(super) max_sessions: usize,
    pub(super) max_sessions_per_principal: usize,
    pub(super) max_anonymous_sessions: usize,
    pub(super) max_listens: usize,
    pub(super) max_listens_per_principal: usize,
    pub(super) max_retained_bytes: usize,
    pub(super) session_idle: Duration,
    pub(super) session_opening: Duration,
    pub(super) session_lifetime: Duration,
    pub(super) max_log_events: usize,
    pub(super) max_log_bytes: usize,
    pub(super) log_time: Duration,
    pub(super) events: Arc<dyn EventStore>,
    pub(super) retry: Duration,
    pub(super) sse_path: Option<String>,
    pub(super) filter: Option<Arc<dyn RequestFilter>>,
    pub(super) sealed_sessions: bool,
    #[cfg(feature = "store")]
    pub(super) session_store: Option<SessionStore>,
    #[cfg(feature = "store")]
    pub(super) used_states: Option<Arc<dyn bowline_store::Records>>,
    #[cfg(feature = "auth")]
    pub(super) protect: Option<Protect>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            any_host: false,
            origins: Vec::new(),
            cors: false,
            hosts_name: "HttpOptions::hosts".into(),
            origins_name: "HttpOptions::origins".into(),
            max_body: 4 * 1024 * 1024,
            max_bodies: 256 * 1024 * 1024,
            body_time: Duration::from_secs(30),
            stream_after: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
            max_events: 256,
            max_event_bytes: 1024 * 1024,
            path: "/mcp".into(),
            max_connections: 20_000,
            peer_address: false,
            idle_connection: Duration::from_secs(180),
            drain: Duration::from_secs(10),
            max_sessions: 10_000,
            max_sessions_per_principal: 100,
            max_anonymous_sessions: usize::MAX,
            max_listens: 10_000,
            max_listens_per_principal: 100,
            max_retained_bytes: 256 * 1024 * 1024,
            session_idle: Duration::from_secs(12 * 3600),
            session_opening: Duration::from_secs(60),
            session_lifetime: Duration::from_secs(24 * 3600),
            max_log_events: 1000,
            max_log_bytes: 10 * 1024 * 1024,
            log_time: Duration::from_secs(600),
            events: Arc::new(MemoryEvents),
            retry: Duration::from_millis(500),
            sse_path: None,
            filter: None,
            sealed_sessions: false,
            #[cfg(feature = "store")]
            session_store: None,
            #[cfg(feature = "store")]
            used_states: None,
            #[cfg(feature = "auth")]
            protect: None,
        }
    }
}

impl HttpOptions {
    /// Creates the default options.
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

    /// Answers requests for every host. Use it only where each request needs a token, which a web page that points a name
    /// of its own at the server does not have.
    pub fn any_host(mut self) -> Self {
        self.any_host = true;
        self
    }

    /// Allows the address of the socket that the server listens on as a host, unless it stands for all addresses.
    pub fn listening_on(mut self, address: SocketAddr) -> Self {
        #[cfg(feature = "auth")]
        if let Some(protect) = &mut self.protect {
            protect.listening_on(address, &self.path);
        }
        match address.ip() {
            ip if ip.is_unspecified() => {}
            IpAddr::V4(ip) => self.hosts.push(ip.to_string()),
            IpAddr::V6(ip) => self.hosts.push(format!("[{ip}]")),
        }
        self
    }

    /// Names of the options that allow hosts and origins, for the messages about refused requests:
    /// `HttpOptions::hosts` and `HttpOptions::origins`.
    pub fn setting_names(mut self, hosts: impl Into<String>, origins: impl Into<String>) -> Self {
        (self.hosts_name, self.origins_name) = (hosts.into(), origins.into());
        self
    }

    /// Origins whose pages are not refused, besides the server's own. Written like `https://app.example.com`.
    ///
    /// A browser also requires CORS headers for requests across origins: see [`cors`](Self::cors).
    pub fn origins<I: IntoIterator<Item: Into<String>>>(mut self, origins: I) -> Self {
        let origins = origins.into_iter().map(|origin| origin.into().trim().to_ascii_lowercase());
        self.origins = origins.filter(|origin| !origin.is_empty()).collect();
        self
    }

    /// Answers CORS preflights of the named origins, and adds the CORS headers their pages need to read replies.
    /// Without this, no reply has a CORS header.
    pub fn cors(mut self) -> Self {
        self.cors = true;
        self
    }

    /// Sets the maximum size of a request body. Default: 4 MiB.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Sets the maximum total size of the bodies of all running requests. Default: 256 MiB. Further requests are
    /// refused until there is space.
    pub fn max_bodies(mut self, bytes: usize) -> Self {
        self.max_bodies = bytes;
        self
    }

    /// Sets the time limit for receiving a body. Default: 30 s.
    pub fn body_time(mut self, time: Duration) -> Self {
        self.body_time = time;
        self
    }

    /// Sets the time after which the response to a running call becomes a stream, which can be kept open. Default: 10
    /// s.
    pub fn stream_after(mut self, time: Duration) -> Self {
        self.stream_after = time;
        self
    }

    /// Sets the time after which a comment is sent on an idle stream. Default: 15 s.
    pub fn keep_alive(mut self, time: Duration) -> Self {
        self.keep_alive = time.min(YEAR);
        self
    }

    /// Sets the path of the endpoint if this library serves it. Default: `/mcp`.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Whether [`HttpService::serve`](super::HttpService::serve) puts a [`PeerAddress`](super::PeerAddress) into the extensions of every
    /// request. Off by default, because every request pays for it.
    pub fn peer_address(mut self, is_added: bool) -> Self {
        self.peer_address = is_added;
        self
    }

    /// Sets the maximum number of open connections if this library serves the endpoint. Default: 20,000, and at most
    /// three quarters of the file descriptors of the process. Beyond it, the connection that has been idle longest is
    /// closed; if none is idle, the new one is refused.
    pub fn max_connections(mut self, count: usize) -> Self {
        self.max_connections = count.max(1);
        self
    }

    /// Sets the maximum idle time of a connection. Default: 3 minutes. It should be longer than the limit of a proxy
    /// before the server, which is often 60 s.
    pub fn idle_connection(mut self, time: Duration) -> Self {
        self.idle_connection = time.min(YEAR);
        self
    }

    /// Sets the maximum number of sessions of legacy revisions, in total and per user. Default: 10,000 and 100.
    /// Beyond it, the session that has been idle longest is ended; if none has been idle for a minute, the new one is
    /// refused.
    pub fn max_sessions(mut self, all: usize, per_principal: usize) -> Self {
        (self.max_sessions, self.max_sessions_per_principal) = (all, per_principal);
        self
    }

    /// Sets the maximum number of sessions of requests without a principal. Default: only the total limit applies.
    pub fn max_anonymous_sessions(mut self, count: usize) -> Self {
        self.max_anonymous_sessions = count;
        self
    }

    /// Sets the maximum number of `subscriptions/listen` streams. Default: 10,000.
    ///
    /// The filters of one user, or of all requests without one, take at most a quarter of
    /// [`max_retained_bytes`](Self::max_retained_bytes).
    pub fn max_listens(mut self, count: usize) -> Self {
        self.max_listens = count;
        self
    }

    /// Sets the maximum number of `subscriptions/listen` streams per user. Default: 100. Requests without a
    /// principal have only the total limit.
    pub fn max_listens_per_principal(mut self, count: usize) -> Self {
        self.max_listens_per_principal = count;
        self
    }

    /// Sets the maximum number of bytes of retained events, over all streams. Default: 256 MiB. Beyond it, delivered
    /// events are dropped first, then streams without a reader, then streams with a slow reader.
    pub fn max_retained_bytes(mut self, bytes: usize) -> Self {
        self.max_retained_bytes = bytes;
        self
    }

    /// Sets the maximum idle time of a session. Default: 12 hours, so that it outlasts a laptop that sleeps overnight.
    pub fn session_idle(mut self, time: Duration) -> Self {
        self.session_idle = time;
        self
    }

    /// Sets the maximum lifetime of a session. Default: 24 hours.
    pub fn session_lifetime(mut self, time: Duration) -> Self {
        self.session_lifetime = time;
        self
    }

    /// Sets how long a session may wait for `notifications/initialized`. Default: 1 minute.
    pub fn session_opening(mut self, time: Duration) -> Self {
        self.session_opening = time;
        self
    }

    /// Sets how long events of an ended stream are retained for a client that reconnects. Default: 10 minutes.
    pub fn event_log_time(mut self, time: Duration) -> Self {
        self.log_time = time;
        self
    }

    /// Remembers sessions of legacy revisions in their ids: any process with the same [keys](bowline_server::Server::keys)
    /// serves any request of a session, and nothing has to be stored.
    ///
    /// Such a session has no stream of its own, cannot be resumed or ended by its client, has no subscriptions, and its log level
    /// stays `info`. A call that asks the client fails. This fits servers of plain tools.
    pub fn sealed_sessions(mut self) -> Self {
        self.sealed_sessions = true;
        self
    }

    /// Keeps sessions of legacy revisions in a store, so that any process that shares it serves any request of a session. Each
    /// `requestState` of 2026-07-28 is then accepted once by all processes together.
    ///
    /// All processes need the same [keys](bowline_server::Server::keys).
    #[cfg(feature = "store")]
    pub fn session_store(mut self, store: SessionStore) -> Self {
        self.used_states = Some(Arc::clone(&store.records));
        self.session_store = Some(store);
        self
    }

    /// Accepts each `requestState` of 2026-07-28 once, by all processes that share the store together. By default, each process
    /// accepts it once.
    #[cfg(feature = "store")]
    pub fn used_states(mut self, records: Arc<dyn bowline_store::Records>) -> Self {
        self.used_states = Some(records);
        self
    }

    /// Sets where the events of sessions are stored. Default: in memory.
    pub fn event_store(mut self, store: impl EventStore) -> Self {
        self.events = Arc::new(store);
        self
    }

    /// Sets how many events, and how many bytes of them, a stream retains for a client that reconnects. Default: 1,000
    /// and 10 MiB.
    pub fn event_log(mut self, events: usize, bytes: usize) -> Self {
        (self.max_log_events, self.max_log_bytes) = (events, bytes);
        self
    }

    /// Sets the delay that clients are asked to wait before they resume an interrupted stream. Default: 500 ms.
    pub fn retry(mut self, time: Duration) -> Self {
        self.retry = time;
        self
    }

    /// Serves the two-endpoint transport of 2024-11-05 as well: its stream at this path. Messages go to the same path.
    pub fn sse_path(mut self, path: impl Into<String>) -> Self {
        self.sse_path = Some(path.into());
        self
    }

    /// Sets a filter that checks every request before the endpoint does, for authentication or further paths on the
    /// same socket.
    pub fn filter(mut self, filter: impl RequestFilter) -> Self {
        self.filter = Some(Arc::new(filter));
        self
    }

    /// Protects the endpoint with OAuth access tokens: each request needs one.
    ///
    /// Serving fails if the protection cannot be built. An endpoint that is mounted elsewhere then refuses every request, so
    /// [`Protect::build`] it first to see the error.
    #[cfg(feature = "auth")]
    pub fn protect(mut self, protect: Protect) -> Self {
        self.protect = Some(protect);
        self
    }

    /// Sets how long running calls may continue during shutdown. Default: 10 s.
    pub fn drain(mut self, time: Duration) -> Self {
        self.drain = time;
        self
    }
}
