//! One running instance of a server: connected when needed, supervised, and stopped when unused.

mod relay;

use super::{
    CallHandle, CallerKey, Health, InstanceQuota, ListCache, Upstream, UpstreamStatus, UrlElicitations,
    account_of, instance_quota::InstanceSlot, login_state::LoginState, running_calls::RunningCalls,
};
use relay::InstanceRelay;

use crate::tap::{ServerMessage, Tap, TapEvent, current_call};
use bowline_client::{BoxFuture, Client, Notification, StderrMode, is_accessible_root};
use bowline_config::Share;
use bowline_http::auth::Scopes;
use bowline_server::transport::next_connection;
use bowline_telemetry::UpstreamMetrics;
use bowline_types::{
    ClientCapabilities, ElicitationCapability, InputRequest, LoggingLevel, RawJson, RawMap, Revision, Root,
    RootsCapability, RpcError, SamplingCapability, TASKS_EXTENSION,
};
use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{sync::watch, task::AbortHandle};

/// Why a retired server is not started.
const REMOVED: &str = "it was removed, or the host is shutting down";
/// How long to wait before starting a server again that failed to start.
const COOL_DOWN: Duration = Duration::from_secs(5);

/// Handles the requests and notifications of instances.
pub(crate) trait InstanceOwner: Send + Sync + 'static {
    /// Answers a request that a server sent during a call.
    fn ask(
        &self,
        instance: Arc<Instance>,
        call: CallHandle,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>>;

    /// Answers a request that a server sent outside of any call.
    fn ask_outside_call(
        &self,
        instance: Arc<Instance>,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>>;

    /// Handles a notification of a server.
    fn notified(&self, instance: &Arc<Instance>, notification: Notification);

    /// Handles that an instance was started, failed to start, or lost its connection.
    fn state_changed(&self, instance: &Arc<Instance>);

    /// Returns who watches the messages of servers, if somebody does.
    fn tap(&self) -> Option<Arc<dyn Tap>> {
        None
    }
}

/// One instance of a server.
pub(crate) struct Instance {
    pub(crate) id: u64,
    pub(crate) name: Arc<str>,
    pub(crate) spec: Upstream,
    pub(crate) running_calls: RunningCalls<CallHandle>,
    /// The caller it belongs to and the limit on such instances; `None` if it is shared.
    pub(super) tenant: Option<(Arc<InstanceQuota>, CallerKey)>,
    pub(crate) url_elicitations: UrlElicitations,
    pub(crate) lists: ListCache,
    /// The roots that it was sent last, if any.
    sent_roots: Mutex<Option<Vec<Root>>>,
    pub(super) owner: Arc<dyn InstanceOwner>,
    pub(super) metrics: Arc<UpstreamMetrics>,
    /// Held while the server is being started, so that it is started once.
    connecting: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    /// The lowest log level that a legacy server was asked for.
    level: Mutex<Option<LoggingLevel>>,
    calls: AtomicU64,
    errors: AtomicU64,
    starts: AtomicU64,
    /// The tasks of the server that was started last.
    tasks: Mutex<ServerTasks>,
    /// How many subscriptions the host holds at this instance.
    pub(crate) subscriptions: AtomicUsize,
    /// Set when it must not start any more. Aborts a start in progress.
    retired: watch::Sender<bool>,
    /// The number of its connection, if somebody watches.
    connection: AtomicU64,
    /// Whether its last failure was a missing login.
    login: LoginState,
}

/// Which tasks a server has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ServerTasks {
    /// None that tool calls become.
    #[default]
    None,
    /// Those of 2025-11-25.
    V2025_11_25,
    /// The extension of 2026-07-28.
    Extension,
}

impl ServerTasks {
    /// Returns the tasks of a server that is connected.
    pub(crate) fn of(client: &Client) -> Self {
        let server = client.server();
        match server.revision {
            Revision::V2026_07_28 if server.capabilities.has_extension(TASKS_EXTENSION) => Self::Extension,
            Revision::V2025_11_25 => {
                let requests = server.capabilities.tasks.as_ref().and_then(|tasks| tasks.requests.as_ref());
                let tools = requests.and_then(|requests| requests.tools.as_ref());
                if tools.is_some_and(|tools| tools.call.is_some()) { Self::V2025_11_25 } else { Self::None }
            }
            _ => Self::None,
        }
    }
}

struct State {
    phase: Phase,
    /// Counts a per-client server while it starts and runs.
    slot: Option<InstanceSlot>,
    /// When it entered the phase.
    since: Instant,
    last_used: Instant,
}

enum Phase {
    Idle,
    Starting,
    Ready(Client, AbortHandle),
    /// It failed to start, or its connection was lost. `cool_down` delays the next start in the former case.
    Failed {
        reason: String,
        cool_down: bool,
    },
}

impl Instance {
    pub(super) fn new(
        id: u64,
        name: Arc<str>,
        spec: Upstream,
        owner: Arc<dyn InstanceOwner>,
        metrics: Arc<UpstreamMetrics>,
        tenant: Option<(Arc<InstanceQuota>, CallerKey)>,
    ) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            id,
            name,
            spec,
            running_calls: RunningCalls::default(),
            tenant,
            url_elicitations: UrlElicitations::default(),
            lists: ListCache::default(),
            sent_roots: Mutex::default(),
            owner,
            metrics,
            connecting: tokio::sync::Mutex::new(()),
            state: Mutex::new(State { phase: Phase::Idle, slot: None, since: now, last_used: now }),
            level: Mutex::default(),
            calls: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            starts: AtomicU64::new(0),
            tasks: Mutex::default(),
            subscriptions: AtomicUsize::new(0),
            retired: watch::Sender::new(false),
            connection: AtomicU64::new(0),
            login: LoginState::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_phase(&self, phase: Phase) {
        let mut state = self.state();
        if matches!(phase, Phase::Idle | Phase::Failed { .. }) {
            state.slot = None;
        }
        let before = std::mem::replace(&mut state.phase, phase);
        state.since = Instant::now();
        drop(state);
        if let Phase::Ready(_, watch) = before {
            watch.abort();
        }
    }

    /// Returns the client if the server runs.
    pub(crate) fn running(&self) -> Option<Client> {
        match &self.state().phase {
            Phase::Ready(client, _) => Some(client.clone()),
            Phase::Idle | Phase::Starting | Phase::Failed { .. } => None,
        }
    }

    /// Returns the client, starting the server if necessary. After a failed start, the next one is delayed. The start
    /// continues if the caller gives up.
    pub(crate) async fn client(self: &Arc<Self>) -> Result<Client, RpcError> {
        self.state().last_used = Instant::now();
        if let Some(client) = self.running() {
            return Ok(client);
        }
        let started = tokio::spawn(Arc::clone(self).start()).await;
        started.unwrap_or_else(|error| Err(error.to_string())).map_err(|reason| self.unavailable(&reason))
    }

    /// Starts the server if necessary and waits until `grace` after the start began. Returns false if it is still starting
    /// then.
    pub(crate) async fn is_up_within(self: &Arc<Self>, grace: Duration) -> bool {
        let starting = match &*self.state() {
            State { phase: Phase::Starting, since, .. } => since.elapsed(),
            _ => Duration::ZERO,
        };
        let left = grace.saturating_sub(starting);
        !left.is_zero() && tokio::time::timeout(left, self.client()).await.is_ok()
    }

    async fn start(self: Arc<Self>) -> Result<Client, String> {
        let _starting = self.connecting.lock().await;
        if let Some(client) = self.running() {
            return Ok(client);
        }
        if *self.retired.borrow() {
            return Err(REMOVED.into());
        }
        if let State { phase: Phase::Failed { reason, cool_down: true }, since, .. } = &*self.state()
            && since.elapsed() < COOL_DOWN
        {
            return Err(reason.clone());
        }
        if let Some((quota, caller)) = &self.tenant {
            let slot = quota.take(caller)?;
            self.state().slot = Some(slot);
        }
        self.set_phase(Phase::Starting);
        let mut retired = self.retired.subscribe();
        let result = tokio::select! {
            biased;
            _ = retired.wait_for(|retired| *retired) => {
                self.set_phase(Phase::Idle);
                return Err(REMOVED.into());
            }
            result = self.connect() => result,
        };
        match &result {
            Ok(client) => {
                *self.tasks.lock().unwrap_or_else(PoisonError::into_inner) = ServerTasks::of(client);
                let start = self.starts();
                let watch = tokio::spawn(watch_connection(Arc::downgrade(&self), client.clone(), start));
                self.set_phase(Phase::Ready(client.clone(), watch.abort_handle()));
                tracing::info!(server = &*self.name, revision = %client.revision(), "server is ready");
            }
            Err(reason) => {
                tracing::warn!(server = &*self.name, reason, "server failed to start");
                self.set_phase(Phase::Failed { reason: reason.clone(), cool_down: true });
            }
        }
        self.owner.state_changed(&self);
        result
    }

    /// Returns which tasks the server has, or had when it ran.
    pub(crate) fn tasks(&self) -> ServerTasks {
        *self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how often it was started.
    pub(crate) fn starts(&self) -> u64 {
        self.starts.load(Ordering::Relaxed)
    }

    async fn connect(self: &Arc<Self>) -> Result<Client, String> {
        if self.starts.fetch_add(1, Ordering::Relaxed) > 0 {
            self.metrics.restarted();
        }
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let relay = InstanceRelay(Arc::downgrade(self));
        let mut builder = Client::builder()
            .name("bowline")
            .title("Bowline")
            .version(env!("CARGO_PKG_VERSION"))
            .timeout(self.spec.timeout)
            .connect_timeout(self.spec.startup_timeout)
            .relay(Arc::new(relay))
            .capabilities(capabilities(!self.spec.roots.is_empty()))
            .tasks();
        if let Some(revision) = self.spec.revision {
            builder = builder.revisions([revision]);
        }
        if let Some(interval) = self.spec.ping_interval {
            builder = builder.keep_alive(interval);
        }
        let mut target = Arc::clone(&self.spec.target);
        if let Some(tap) = self.owner.tap() {
            let connection = next_connection();
            self.connection.store(connection, Ordering::Relaxed);
            if let Some(command) = &self.spec.command {
                let (tap, server) = (Arc::clone(&tap), Arc::clone(&self.name));
                let output = move |line: &str| tap.event(&TapEvent::Output { server: &server, line });
                target = Arc::new(command.clone().stderr(StderrMode::callback(output)));
            }
            let (shown, server) = (Arc::clone(&tap), Arc::clone(&self.name));
            builder = builder.on_response(move |head| {
                shown.event(&TapEvent::Response { connection, server: &server, head: *head });
            });
            let server = Arc::clone(&self.name);
            builder = builder.on_frame(move |direction, frame| {
                let call = current_call();
                let message = ServerMessage::new(connection, &server, direction, frame, call.as_ref());
                tap.event(&TapEvent::Server(message));
            });
        }
        let connected = builder.connect(target).await;
        connected.map_err(|error| self.describe_error(&error)).inspect(|_| self.login.clear())
    }

    /// Describes an error of the server, and remembers whether a login is missing.
    pub(crate) fn describe_error(&self, error: &bowline_client::Error) -> String {
        self.login.failed(error);
        self.spec.describe_error(error)
    }

    /// Returns whether its last failure was a missing login.
    pub(crate) fn needs_login(&self) -> bool {
        self.login.is_needed()
    }

    /// Returns the scopes that the missing login needs, as far as they are known.
    pub(crate) fn needed_scopes(&self) -> Scopes {
        self.login.scopes()
    }

    /// Returns the account that it uses, if each user has one.
    pub(crate) fn account(&self) -> Option<String> {
        self.spec.user_targets.as_ref()?;
        self.tenant.as_ref().and_then(|(_, key)| key.user()).and_then(|user| account_of(&user))
    }

    /// Lets it start at once with a login that was stored just now.
    pub(crate) fn login_stored(self: &Arc<Self>) {
        self.login.clear();
        self.forget_failure();
        self.owner.state_changed(self);
    }

    /// Returns whether it is being started.
    pub(crate) fn is_starting(&self) -> bool {
        matches!(self.state().phase, Phase::Starting)
    }

    /// Returns why it cannot be called, if that is known.
    pub(crate) fn failure(&self) -> Option<RpcError> {
        match &self.state().phase {
            Phase::Failed { reason, .. } => Some(self.unavailable(reason)),
            Phase::Idle | Phase::Starting if *self.retired.borrow() => Some(self.unavailable(REMOVED)),
            Phase::Idle | Phase::Starting | Phase::Ready(..) => self.lists.problem().map(RpcError::internal),
        }
    }

    fn unavailable(&self, reason: &str) -> RpcError {
        RpcError::internal(format!("the server `{}` is not available: {reason}", self.name))
    }

    /// Asks a legacy server for log messages from this level on, unless it sends them already.
    pub(crate) async fn request_logs(&self, client: &Client, level: LoggingLevel) {
        {
            let mut known = self.level.lock().unwrap_or_else(PoisonError::into_inner);
            if known.is_some_and(|known| known <= level) {
                return;
            }
            *known = Some(level);
        }
        // An error means that the server has no logging.
        let _ = client.set_level(level).await;
    }

    /// Returns whether it could apply the roots of one caller to the calls of another: it is shared, and its revision
    /// lets servers cache roots.
    pub(crate) fn mixes_roots(&self) -> bool {
        self.spec.share == Share::Shared
            && !self.spec.roots.is_empty()
            && self.running().is_some_and(|client| !client.revision().is_modern())
    }

    /// Returns the configured roots that exist and can be read. They are watched from then on.
    pub(crate) async fn accessible_roots(&self) -> Vec<Root> {
        let roots = self.check_roots().await;
        *self.sent_roots.lock().unwrap_or_else(PoisonError::into_inner) = Some(roots.clone());
        roots
    }

    /// Notifies a server that was sent its roots when one of them disappears or reappears.
    pub(crate) async fn watch_roots(&self) {
        if self.spec.roots.is_empty()
            || self.sent_roots.lock().unwrap_or_else(PoisonError::into_inner).is_none()
        {
            return;
        }
        let Some(client) = self.running() else { return };
        let roots = self.check_roots().await;
        let before = self.sent_roots.lock().unwrap_or_else(PoisonError::into_inner).replace(roots.clone());
        if before.is_some_and(|before| before != roots) {
            tracing::info!(server = &*self.name, "the roots changed");
            client.notify_roots_changed();
        }
    }

    async fn check_roots(&self) -> Vec<Root> {
        let mut roots = self.spec.roots.clone();
        let checked = tokio::task::spawn_blocking(move || {
            roots.retain(is_accessible_root);
            roots
        });
        checked.await.unwrap_or_default()
    }

    /// Counts a finished call.
    pub(crate) fn count(&self, failed: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if failed {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
        self.state().last_used = Instant::now();
    }

    /// Returns its present status.
    pub(crate) fn status(&self) -> UpstreamStatus {
        let state = self.state();
        let (health, revision) = match &state.phase {
            Phase::Idle => (Health::Idle, None),
            Phase::Starting => (Health::Starting, None),
            Phase::Ready(client, _) => (Health::Ready, Some(client.revision())),
            Phase::Failed { reason, .. } => (Health::Failed(reason.clone()), None),
        };
        let tools = self.lists.tools.last_known();
        UpstreamStatus {
            name: self.name.to_string(),
            health,
            revision,
            list_problem: self.lists.problem(),
            tools: tools.map(|tools| tools.iter().filter(|tool| self.spec.shows(&tool.name)).count()),
            starts: self.starts(),
            calls: self.calls.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            running: self.running_calls.len(),
            since: state.since.elapsed(),
            needs_login: self.needs_login(),
        }
    }

    /// Returns whether its first start has succeeded or failed.
    pub(crate) fn is_settled(&self) -> bool {
        match self.starts.load(Ordering::Relaxed) {
            0 => false,
            1 => !matches!(self.state().phase, Phase::Starting),
            _ => true,
        }
    }

    /// Stops it if it was unused for longer than its configured limit.
    pub(super) async fn stop_when_idle(&self) {
        let Some(limit) = self.spec.idle_stop else { return };
        if !self.is_idle(limit) {
            return;
        }
        let _starting = self.connecting.lock().await;
        let Some(client) = self.running() else { return };
        // A call is registered before it takes the client, so none can be about to use it.
        if !self.is_idle(limit) {
            return;
        }
        tracing::info!(server = &*self.name, "stopping an unused server");
        self.set_phase(Phase::Idle);
        client.close().await;
    }

    /// Returns whether it was unused for this long.
    pub(super) fn is_idle(&self, limit: Duration) -> bool {
        self.running_calls.len() == 0
            && self.subscriptions.load(Ordering::Relaxed) == 0
            && self.state().last_used.elapsed() >= limit
    }

    /// Stops it. It starts again when it is needed.
    pub(crate) async fn halt(self: &Arc<Self>) {
        let _starting = self.connecting.lock().await;
        let client = self.running();
        self.set_phase(Phase::Idle);
        if let Some(client) = client {
            client.close().await;
        }
        self.owner.state_changed(self);
    }

    /// Lets the next start begin at once, also after a failed one.
    pub(crate) fn forget_failure(&self) {
        let mut state = self.state();
        if matches!(state.phase, Phase::Failed { .. }) {
            state.phase = Phase::Idle;
            state.since = Instant::now();
        }
    }

    /// Returns the number of its connection, for observers.
    pub(crate) fn connection(&self) -> u64 {
        self.connection.load(Ordering::Relaxed)
    }

    /// Prevents further starts. A running server is not stopped.
    pub(crate) fn retire(&self) {
        self.retired.send_replace(true);
    }

    /// Stops it and prevents further starts.
    pub(crate) async fn stop(&self) {
        self.retire();
        let _starting = self.connecting.lock().await;
        let client = self.running();
        self.set_phase(Phase::Idle);
        if let Some(client) = client {
            client.close().await;
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The task holds the client, and thereby the server.
        if let Phase::Ready(_, watch) = &self.state.get_mut().unwrap_or_else(PoisonError::into_inner).phase {
            watch.abort();
        }
    }
}

/// Records when a connection is lost.
async fn watch_connection(instance: Weak<Instance>, client: Client, start: u64) {
    let reason = client.closed().await;
    let Some(instance) = instance.upgrade() else { return };
    {
        let mut state = instance.state();
        // The server may have been started again meanwhile.
        if instance.starts() != start || !matches!(state.phase, Phase::Ready(..)) {
            return;
        }
        state.phase = Phase::Failed { reason: reason.to_string(), cool_down: false };
        state.slot = None;
        state.since = Instant::now();
    }
    tracing::warn!(server = &*instance.name, %reason, "lost the connection to a server");
    instance.owner.state_changed(&instance);
}

/// Returns the capabilities that the host declares to servers. A request that the current caller cannot answer is
/// refused.
fn capabilities(has_roots: bool) -> ClientCapabilities {
    let roots = RootsCapability::new();
    ClientCapabilities::new()
        .elicitation(ElicitationCapability::new().form(RawMap::new()).url(RawMap::new()))
        .sampling(SamplingCapability::new().tools(RawMap::new()))
        // Only configured roots are watched; those of callers belong to their calls.
        .roots(if has_roots { roots.list_changed(true) } else { roots })
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}
