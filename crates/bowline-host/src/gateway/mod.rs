//! The gateway: a host that is built from configuration files, follows their changes, and is served over stdio or HTTP.
//!
//! ```no_run
//! use bowline_config::{Disk, Environment, Loader, Scope, Source};
//! use bowline_host::Gateway;
//!
//! # async fn run() -> bowline_server::Result {
//! let environment = Environment::new(std::env::vars());
//! let loader = Loader::new(environment.clone()).source(Source::new("bowline.toml", Scope::User));
//! let gateway = Gateway::builder(loader.load(&Disk)).environment(environment).build()?;
//! gateway.watch(loader);
//! gateway.open()?.serve_stdio().await?;
//! gateway.close().await;
//! # Ok(())
//! # }
//! ```

mod approval;
mod approval_content;
mod auth;
mod builder;
mod connect;
mod connect_page;
mod connect_request;
mod edge;
mod file_digest;
mod models;
mod pending;
mod problem;
mod refusals;
mod reload;
mod rules;
mod secrets;
mod sessions;
mod watch;

pub use approval::{Approvals, Approve, Candidate};
pub use builder::GatewayBuilder;
pub use edge::{RequireToken, random_token};
pub use models::broker;
pub use problem::{GatewayError, Problem};
pub use reload::{Applied, EntryState};
pub use secrets::secrets;

pub use crate::host::REFUSED;

use crate::{Host, UpstreamStatus, upstream::Credentials};
use auth::AccessTokens;
use bowline_config::{Config, Environment};
use bowline_http::{HttpOptions, HttpService};
use bowline_policy::{Audience, Consent, audit::Redactor};
use bowline_server::{Server, ServerHandle};
use bowline_telemetry::Exporter;
use connect::Connections;
use edge::{Counter, Edge, Token};
use file_digest::DigestCache;
use refusals::RefusalLog;
use reload::State;
use std::{
    fmt,
    future::Future,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{net::TcpListener, task::AbortHandle};

/// How many sessions all callers may have, unless a single caller may have more.
const MAX_SESSIONS: usize = 10_000;

/// The path where clients of 2024-11-05 open their stream, unless it is the endpoint itself.
const SSE_PATH: &str = "/sse";

/// How long the export of remaining traces may take at shutdown.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// A host that is built from a configuration. Clones share everything.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
}

struct Inner {
    host: Host,
    environment: Environment,
    workspace: Option<PathBuf>,
    /// The logins that servers may use.
    credentials: Option<Credentials>,
    approve: Arc<dyn Approve>,
    token: Result<Option<Token>, Problem>,
    /// The access tokens that HTTP clients may send.
    auth: Option<AccessTokens>,
    /// Where users connect their accounts at servers.
    connections: OnceLock<Arc<Connections>>,
    consent: rules::ConsentSettings,
    /// Learns the secrets of servers, for what is shown.
    redactor: Option<Redactor>,
    shutting_down: Arc<AtomicBool>,
    /// What several processes share.
    sessions: sessions::Sharing,
    /// Problems of the sections that apply at start only.
    made_once: Vec<Problem>,
    applying: Mutex<()>,
    state: Mutex<State>,
    digests: DigestCache,
    handle: Mutex<Option<ServerHandle>>,
    watcher: Mutex<Option<AbortHandle>>,
    exporter: Mutex<Option<Exporter>>,
}

/// The status of one server of the configuration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EntryStatus {
    /// Its name in the configuration.
    pub name: String,
    /// Whether it is used, or why not.
    pub state: EntryState,
    /// Its instances.
    pub instances: Vec<UpstreamStatus>,
}

impl Gateway {
    /// Returns a builder for a configuration.
    pub fn builder(config: Config) -> GatewayBuilder {
        GatewayBuilder::new(config)
    }

    /// Returns the current configuration.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.inner.state().config)
    }

    /// Returns the host. A server that is added to it directly is replaced if the configuration defines one of its name.
    pub fn host(&self) -> &Host {
        &self.inner.host
    }

    /// Whether HTTP clients must send a token: that of the gateway, or an access token.
    pub fn has_token(&self) -> bool {
        // If the configured token is unavailable, nobody is let in.
        !matches!(self.inner.token, Ok(None)) || self.inner.auth.is_some()
    }

    /// Returns the issuers of `[gateway.auth]`, whose access tokens HTTP clients may send.
    pub fn issuers(&self) -> &[String] {
        self.inner.auth.as_ref().map_or(&[], |auth| auth.issuers())
    }

    /// Returns who consents to calls that no rule decides.
    pub fn consent(&self) -> Consent {
        self.inner.consent.consent
    }

    /// Returns who can call it.
    pub fn audience(&self) -> Audience {
        self.inner.consent.audience
    }

    /// Returns the problems of the current configuration, and of a later one that was rejected.
    pub fn problems(&self) -> Vec<Problem> {
        let state = self.inner.state();
        self.inner.made_once.iter().chain(&state.problems).chain(&state.refused).cloned().collect()
    }

    /// Returns the status of the configured servers, ordered by name.
    pub fn status(&self) -> Vec<EntryStatus> {
        let running = self.inner.host.status();
        let of = |name: &str| running.iter().filter(|status| status.name == name).cloned().collect();
        let state = self.inner.state();
        let entries = state.entry_states.iter().map(|(name, entry_state)| EntryStatus {
            name: name.clone(),
            state: entry_state.clone(),
            instances: of(name),
        });
        entries.collect()
    }

    /// Returns the server that serves all configured servers. The first call starts those that start with the host.
    ///
    /// Later calls return the same server, so it can be served over stdio and HTTP at once.
    ///
    /// Needs a tokio runtime.
    pub fn open(&self) -> Result<ServerHandle, bowline_server::BuildError> {
        let mut opened = self.inner.handle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = &*opened {
            return Ok(handle.clone());
        }
        let name = self.config().gateway.name.clone();
        let mut server = Server::new(name).version(env!("CARGO_PKG_VERSION"));
        if let Some(keys) = self.inner.sessions.keys() {
            server = server.keys(keys);
        }
        let handle = self.inner.host.open(server)?;
        Ok(opened.insert(handle).clone())
    }

    /// Returns the HTTP endpoint, protected by the token and by `[gateway.auth]`, with `/livez`, `/readyz` and `/metrics`.
    ///
    /// Fails if the configured token is unavailable, or if `[gateway.auth]` has no `resource`.
    ///
    /// Needs a tokio runtime.
    pub fn http(&self) -> Result<HttpService, GatewayError> {
        self.http_on(None)
    }

    /// Returns the endpoint, which also accepts the address of a socket as host.
    fn http_on(&self, address: Option<SocketAddr>) -> Result<HttpService, GatewayError> {
        if self.inner.auth.is_some() && self.inner.consent.audience != Audience::Shared {
            let reason = "the gateway was built for stdio only; set the address with `serves`";
            return Err(GatewayError::of("gateway.auth", reason));
        }
        let token = self.inner.token.clone().map_err(|problem| GatewayError::new(vec![problem]))?;
        let handle = self.open().map_err(|error| GatewayError::of("gateway", error))?;
        let config = self.config();
        let gateway = &config.gateway;
        let any_host = gateway.allowed_hosts.iter().any(|host| host == "*");
        if any_host && !self.has_token() {
            return Err(GatewayError::new(vec![edge::unprotected_hosts()]));
        }
        let refusals = self.inner.host.guard().audit().map(|audit| Arc::new(RefusalLog::new(audit.clone())));
        let protect = self.inner.auth.as_ref().map(|auth| {
            let protect = auth.protect(gateway, address);
            match refusals.clone() {
                Some(refusals) => protect.on_refusal(move |refusal| refusals.record(refusal)),
                None => protect,
            }
        });
        let protection = protect.clone().map(auth::build).transpose();
        let protection = protection.map_err(|problem| GatewayError::new(vec![problem]))?;
        let sessions = Arc::new(OnceLock::<Counter>::new());
        let streams = Arc::new(OnceLock::<Counter>::new());
        let store = Arc::new(OnceLock::<edge::StoreStatus>::new());
        let connections = self.inner.connections.get().cloned();
        if let (Some(connections), Some(protection)) = (&connections, &protection) {
            connections.serve(protection.resource(), &gateway.path, protection.clone());
        }
        let edge = Edge {
            host: self.inner.host.clone(),
            connections,
            endpoint: gateway.path.clone(),
            token,
            protection,
            refusals,
            sessions: Arc::clone(&sessions),
            streams: Arc::clone(&streams),
            store: Arc::clone(&store),
            shared_store: self.inner.sessions.store.clone(),
            shutting_down: Arc::clone(&self.inner.shutting_down),
        };
        let mut settings = HttpOptions::new()
            .peer_address(true)
            .path(&gateway.path)
            .hosts(&gateway.allowed_hosts)
            .origins(&gateway.allowed_origins)
            .setting_names("gateway.allowed_hosts", "gateway.allowed_origins")
            .max_sessions(gateway.max_sessions.max(MAX_SESSIONS), gateway.max_sessions)
            .max_anonymous_sessions(gateway.max_sessions)
            .session_idle(gateway.session_idle)
            .max_connections(gateway.max_connections)
            .idle_connection(gateway.keep_alive)
            .max_retained_bytes(usize::try_from(gateway.max_retained_bytes).unwrap_or(usize::MAX))
            .filter(edge);
        if !gateway.allowed_origins.is_empty() {
            settings = settings.cors();
        }
        if let Some(protect) = protect {
            settings = settings.protect(protect);
        }
        if any_host {
            settings = settings.any_host();
        }
        if gateway.path != SSE_PATH {
            settings = settings.sse_path(SSE_PATH);
        }
        if let Some(address) = address {
            settings = settings.listening_on(address);
        }
        settings = self
            .inner
            .sessions
            .apply(settings, &config.sessions)
            .map_err(|problem| GatewayError::new(vec![problem]))?;
        let service = HttpService::with_options(handle, settings);
        let _ = store.set(Box::new(service.store_status()));
        let _ = sessions.set(Box::new(service.session_counter()));
        let _ = streams.set(Box::new(service.stream_counter()));
        Ok(service)
    }

    /// Makes `/readyz` answer 503, so that load balancers send no more requests. Everything else continues.
    pub fn announce_shutdown(&self) {
        self.inner.shutting_down.store(true, Ordering::Relaxed);
    }

    /// Serves HTTP on a socket until `end` completes, then lets running calls finish. Calls that wait for an answer of a user,
    /// or for a server to start, are refused.
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        end: impl Future<Output = ()>,
    ) -> Result<(), GatewayError> {
        let end = async {
            end.await;
            self.announce_shutdown();
            self.inner.host.cancel_waiting();
        };
        let service = self.http_on(listener.local_addr().ok())?;
        let served = service.serve(listener, end).await;
        served.map_err(|error| GatewayError::of("gateway", error))
    }

    /// Shuts down all servers and background tasks.
    pub async fn close(&self) {
        if let Some(watcher) = self.inner.watcher.lock().unwrap_or_else(PoisonError::into_inner).take() {
            watcher.abort();
        }
        self.inner.host.close().await;
        if let Some(audit) = self.inner.host.guard().audit().cloned() {
            // Logins of servers share the log, and may live longer than the gateway.
            let _ = tokio::task::spawn_blocking(move || audit.flush()).await;
        }
        let exporter = self.inner.exporter.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(exporter) = exporter {
            exporter.shutdown(EXPORT_TIMEOUT).await;
        }
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("host", &self.inner.host).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(watcher) = self.watcher.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            watcher.abort();
        }
    }
}
