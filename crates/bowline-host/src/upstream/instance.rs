//! One running instance of a server: connected when needed, watched, and stopped when nobody needs it.

use super::{
    CallerKey, Flights, Health, InstanceQuota, Upstream, UpstreamStatus,
    attribution::Belongs,
    quota::{CallQuota, InstanceSlot},
};
use crate::{
    aggregate::Shelf,
    bridge::{Pilot, Visitors},
};
use bowline_client::{BoxFuture, CallKey, Client, Notification, Relay, is_accessible_root};
use bowline_config::Share;
use bowline_telemetry::UpstreamMetrics;
use bowline_types::{
    ClientCapabilities, ElicitationCapability, InputRequest, LogMessageParams, LoggingLevel, RawJson, RawMap,
    Root, RootsCapability, RpcError, SamplingCapability,
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

/// Why a server is not started that nobody wants any more.
const REMOVED: &str = "it was removed, or the host ends";
/// For how long a server that could not be started is left alone.
const COOL_DOWN: Duration = Duration::from_secs(5);

/// Whoever owns instances: hears what they say, and answers what they ask.
pub(crate) trait Owner: Send + Sync + 'static {
    /// A server asks its client something in the course of a call.
    fn ask(
        &self,
        instance: Arc<Instance>,
        pilot: Pilot,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>>;

    /// A server asks something of its own accord.
    fn ask_aside(
        &self,
        instance: Arc<Instance>,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>>;

    /// A server tells that something changed.
    fn changed(&self, instance: &Arc<Instance>, notification: Notification);

    /// An instance was started or lost.
    fn turned(&self, instance: &Arc<Instance>);
}

/// One instance.
pub(crate) struct Instance {
    pub(crate) id: u64,
    pub(crate) name: Arc<str>,
    pub(crate) spec: Upstream,
    pub(crate) flights: Flights<Pilot>,
    /// How many calls each caller has here.
    pub(crate) quota: CallQuota,
    /// Whose it is, and what limits how many such there are; nobody's if it is shared.
    holder: Option<(Arc<InstanceQuota>, CallerKey)>,
    /// Who was sent to which pages.
    pub(crate) visitors: Visitors,
    pub(crate) shelf: Shelf,
    /// The roots it was told last, if any.
    told_roots: Mutex<Option<Vec<Root>>>,
    owner: Arc<dyn Owner>,
    metrics: Arc<UpstreamMetrics>,
    /// Held while the server is being started, so that it is started once.
    connecting: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    /// The most talkative level of log that was asked of a legacy server.
    level: Mutex<Option<LoggingLevel>>,
    calls: AtomicU64,
    errors: AtomicU64,
    starts: AtomicU64,
    /// How many resources someone wants to hear of from it.
    pub(crate) followed: AtomicUsize,
    /// Set when it is not to be started any more, and a start under way is to be given up.
    retired: watch::Sender<bool>,
}

struct State {
    phase: Phase,
    /// Held while a per-client server starts and runs.
    slot: Option<InstanceSlot>,
    since: Instant,
    used: Instant,
}

enum Phase {
    Idle,
    Starting,
    Ready(Client, AbortHandle),
    /// It could not be started, or was lost. Only the former is no reason to try again at once.
    Failed {
        reason: String,
        cools: bool,
    },
}

impl Instance {
    pub(super) fn new(
        id: u64,
        name: Arc<str>,
        spec: Upstream,
        owner: Arc<dyn Owner>,
        metrics: Arc<UpstreamMetrics>,
        holder: Option<(Arc<InstanceQuota>, CallerKey)>,
    ) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            id,
            name,
            spec,
            flights: Flights::default(),
            quota: CallQuota::default(),
            holder,
            visitors: Visitors::default(),
            shelf: Shelf::default(),
            told_roots: Mutex::default(),
            owner,
            metrics,
            connecting: tokio::sync::Mutex::new(()),
            state: Mutex::new(State { phase: Phase::Idle, slot: None, since: now, used: now }),
            level: Mutex::default(),
            calls: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            starts: AtomicU64::new(0),
            followed: AtomicUsize::new(0),
            retired: watch::Sender::new(false),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, phase: Phase) {
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

    /// The client, if the server runs.
    pub(crate) fn running(&self) -> Option<Client> {
        match &self.state().phase {
            Phase::Ready(client, _) => Some(client.clone()),
            Phase::Idle | Phase::Starting | Phase::Failed { .. } => None,
        }
    }

    /// The client, after the server was started if it was not. A server that could not be started is left alone for a
    /// moment. The start goes on when whoever wanted it gives up.
    pub(crate) async fn client(self: &Arc<Self>) -> Result<Client, RpcError> {
        self.state().used = Instant::now();
        if let Some(client) = self.running() {
            return Ok(client);
        }
        let started = tokio::spawn(Arc::clone(self).started()).await;
        started.unwrap_or_else(|error| Err(error.to_string())).map_err(|reason| self.unavailable(&reason))
    }

    /// Starts it if it does not run, and waits for that only so long, counted from when the start began. False when it is
    /// still starting then.
    pub(crate) async fn is_up_within(self: &Arc<Self>, grace: Duration) -> bool {
        let starting = match &*self.state() {
            State { phase: Phase::Starting, since, .. } => since.elapsed(),
            _ => Duration::ZERO,
        };
        let left = grace.saturating_sub(starting);
        !left.is_zero() && tokio::time::timeout(left, self.client()).await.is_ok()
    }

    async fn started(self: Arc<Self>) -> Result<Client, String> {
        let _starting = self.connecting.lock().await;
        if let Some(client) = self.running() {
            return Ok(client);
        }
        if *self.retired.borrow() {
            return Err(REMOVED.into());
        }
        if let State { phase: Phase::Failed { reason, cools: true }, since, .. } = &*self.state()
            && since.elapsed() < COOL_DOWN
        {
            return Err(reason.clone());
        }
        if let Some((quota, caller)) = &self.holder {
            let slot = quota.take(caller)?;
            self.state().slot = Some(slot);
        }
        self.enter(Phase::Starting);
        let mut retired = self.retired.subscribe();
        let result = tokio::select! {
            biased;
            _ = retired.wait_for(|retired| *retired) => {
                self.enter(Phase::Idle);
                return Err(REMOVED.into());
            }
            result = self.connect() => result,
        };
        match &result {
            Ok(client) => {
                let start = self.starts();
                let watch = tokio::spawn(look_after(Arc::downgrade(&self), client.clone(), start));
                self.enter(Phase::Ready(client.clone(), watch.abort_handle()));
                tracing::info!(server = &*self.name, revision = %client.revision(), "a server is ready");
            }
            Err(reason) => {
                tracing::warn!(server = &*self.name, reason, "a server could not be started");
                self.enter(Phase::Failed { reason: reason.clone(), cools: true });
            }
        }
        self.owner.turned(&self);
        result
    }

    /// How often it was started.
    pub(crate) fn starts(&self) -> u64 {
        self.starts.load(Ordering::Relaxed)
    }

    async fn connect(self: &Arc<Self>) -> Result<Client, String> {
        if self.starts.fetch_add(1, Ordering::Relaxed) > 0 {
            self.metrics.restarted();
        }
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let ear = Ear(Arc::downgrade(self));
        let mut builder = Client::builder()
            .name("bowline")
            .title("Bowline")
            .version(env!("CARGO_PKG_VERSION"))
            .timeout(self.spec.silence)
            .connect_timeout(self.spec.startup)
            .relay(Arc::new(ear))
            .capabilities(everything(!self.spec.roots.is_empty()));
        if let Some(revision) = self.spec.revision {
            builder = builder.revisions([revision]);
        }
        if let Some(interval) = self.spec.ping {
            builder = builder.keep_alive(interval);
        }
        builder.connect(Arc::clone(&self.spec.target)).await.map_err(|error| error.to_string())
    }

    /// Whether it is being started.
    pub(crate) fn is_starting(&self) -> bool {
        matches!(self.state().phase, Phase::Starting)
    }

    /// Why it cannot be called, if it is known that it cannot.
    pub(crate) fn failure(&self) -> Option<RpcError> {
        match &self.state().phase {
            Phase::Failed { reason, .. } => Some(self.unavailable(reason)),
            Phase::Idle | Phase::Starting if *self.retired.borrow() => Some(self.unavailable(REMOVED)),
            Phase::Idle | Phase::Starting | Phase::Ready(..) => self.shelf.problem().map(RpcError::internal),
        }
    }

    fn unavailable(&self, reason: &str) -> RpcError {
        RpcError::internal(format!("the server `{}` is not available: {reason}", self.name))
    }

    /// Has a legacy server send log messages from this level on, if it does not already.
    pub(crate) async fn listen_to_logs(&self, client: &Client, level: LoggingLevel) {
        {
            let mut known = self.level.lock().unwrap_or_else(PoisonError::into_inner);
            if known.is_some_and(|known| known <= level) {
                return;
            }
            *known = Some(level);
        }
        // A server without logging has none to send.
        let _ = client.set_level(level).await;
    }

    /// Whether it would take the folders of one caller for those of another: it is shared, and of a revision whose servers
    /// keep what they were told.
    pub(crate) fn mixes_roots(&self) -> bool {
        self.spec.share == Share::Shared
            && !self.spec.roots.is_empty()
            && self.running().is_some_and(|client| !client.revision().is_modern())
    }

    /// The configured roots that are there and can be read now. From then on they are watched.
    pub(crate) async fn accessible_roots(&self) -> Vec<Root> {
        let roots = self.look_at_roots().await;
        *self.told_roots.lock().unwrap_or_else(PoisonError::into_inner) = Some(roots.clone());
        roots
    }

    /// Tells a server that was told its roots when one of them has gone or come back.
    pub(crate) async fn watch_roots(&self) {
        if self.spec.roots.is_empty()
            || self.told_roots.lock().unwrap_or_else(PoisonError::into_inner).is_none()
        {
            return;
        }
        let Some(client) = self.running() else { return };
        let roots = self.look_at_roots().await;
        let was = self.told_roots.lock().unwrap_or_else(PoisonError::into_inner).replace(roots.clone());
        if was.is_some_and(|was| was != roots) {
            tracing::info!(server = &*self.name, "the roots changed");
            client.notify_roots_changed();
        }
    }

    async fn look_at_roots(&self) -> Vec<Root> {
        let mut roots = self.spec.roots.clone();
        let looking = tokio::task::spawn_blocking(move || {
            roots.retain(is_accessible_root);
            roots
        });
        looking.await.unwrap_or_default()
    }

    /// Counts a call that has ended.
    pub(crate) fn count(&self, failed: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if failed {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
        self.state().used = Instant::now();
    }

    /// How it is doing.
    pub(crate) fn status(&self) -> UpstreamStatus {
        let state = self.state();
        let (health, revision) = match &state.phase {
            Phase::Idle => (Health::Idle, None),
            Phase::Starting => (Health::Starting, None),
            Phase::Ready(client, _) => (Health::Ready, Some(client.revision())),
            Phase::Failed { reason, .. } => (Health::Failed(reason.clone()), None),
        };
        let tools = self.shelf.tools.last();
        UpstreamStatus {
            name: self.name.to_string(),
            health,
            revision,
            list_problem: self.shelf.problem(),
            tools: tools.map(|tools| tools.iter().filter(|tool| self.spec.shows(&tool.name)).count()),
            starts: self.starts(),
            calls: self.calls.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            running: self.flights.len(),
            since: state.since.elapsed(),
        }
    }

    /// Whether its first start has come to an end, a good one or a bad one.
    pub(crate) fn is_settled(&self) -> bool {
        match self.starts.load(Ordering::Relaxed) {
            0 => false,
            1 => !matches!(self.state().phase, Phase::Starting),
            _ => true,
        }
    }

    /// Ends it when nobody has used it for as long as its user allows.
    pub(super) async fn stop_when_idle(&self) {
        let Some(limit) = self.spec.idle else { return };
        if !self.is_idle(limit) {
            return;
        }
        let _starting = self.connecting.lock().await;
        let Some(client) = self.running() else { return };
        // A call is noted before it takes the client, so that none is on its way now.
        if !self.is_idle(limit) {
            return;
        }
        tracing::info!(server = &*self.name, "stopping a server that nobody uses");
        self.enter(Phase::Idle);
        client.close().await;
    }

    /// Whether nobody has used it for so long.
    pub(super) fn is_idle(&self, limit: Duration) -> bool {
        self.flights.len() == 0
            && self.followed.load(Ordering::Relaxed) == 0
            && self.state().used.elapsed() >= limit
    }

    /// Has it not started any more. One that runs ends with whoever holds it.
    pub(crate) fn retire(&self) {
        self.retired.send_replace(true);
    }

    /// Ends it for good.
    pub(crate) async fn stop(&self) {
        self.retire();
        let _starting = self.connecting.lock().await;
        let client = self.running();
        self.enter(Phase::Idle);
        if let Some(client) = client {
            client.close().await;
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // What watches the client holds it, and with it the server.
        if let Phase::Ready(_, watch) = &self.state.get_mut().unwrap_or_else(PoisonError::into_inner).phase {
            watch.abort();
        }
    }
}

/// Notes when a connection is gone for good.
async fn look_after(instance: Weak<Instance>, client: Client, start: u64) {
    let reason = client.closed().await;
    let Some(instance) = instance.upgrade() else { return };
    {
        let mut state = instance.state();
        // Another start may have followed.
        if instance.starts() != start || !matches!(state.phase, Phase::Ready(..)) {
            return;
        }
        state.phase = Phase::Failed { reason: reason.to_string(), cools: false };
        state.slot = None;
        state.since = Instant::now();
    }
    tracing::warn!(server = &*instance.name, %reason, "a server was lost");
    instance.owner.turned(&instance);
}

/// What a host can be asked on behalf of whoever calls. What the caller of a moment cannot do is refused at that moment.
fn everything(has_roots: bool) -> ClientCapabilities {
    let roots = RootsCapability::new();
    ClientCapabilities {
        elicitation: Some(ElicitationCapability {
            form: Some(RawMap::new()),
            url: Some(RawMap::new()),
            ..ElicitationCapability::default()
        }),
        sampling: Some(SamplingCapability { tools: Some(RawMap::new()), ..SamplingCapability::default() }),
        // Roots that were configured are watched; those of callers come and go with their calls.
        roots: Some(if has_roots { roots.list_changed(true) } else { roots }),
        ..ClientCapabilities::default()
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Hears for an instance.
struct Ear(Weak<Instance>);

impl Relay for Ear {
    fn ask(
        &self,
        call: Option<CallKey>,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>> {
        let Some(instance) = self.0.upgrade() else {
            return Box::pin(std::future::ready(Err(RpcError::internal("the host has ended"))));
        };
        let owner = Arc::clone(&instance.owner);
        match instance.flights.find(call) {
            Belongs::To(_, pilot) if call.is_some() => owner.ask(instance, pilot, request),
            Belongs::To(key, pilot) => {
                instance.flights.note_asking();
                let answer = owner.ask(Arc::clone(&instance), pilot.clone(), request);
                Box::pin(async move {
                    // That others are waited for is not the server's silence.
                    let answer = async { (answer.await, pilot.pause()) };
                    instance.flights.answered(key, answer).await.0
                })
            }
            Belongs::ToNone => owner.ask_aside(instance, request),
            Belongs::Unclear => {
                instance.flights.note_asking();
                let reason =
                    "nobody can tell on whose behalf this is asked: several clients have calls under way";
                Box::pin(std::future::ready(Err(RpcError::internal(reason))))
            }
        }
    }

    fn log(&self, call: Option<CallKey>, message: LogMessageParams) {
        let Some(instance) = self.0.upgrade() else { return };
        match instance.flights.find(call) {
            Belongs::To(_, pilot) => pilot.log(&instance.name, message),
            Belongs::ToNone | Belongs::Unclear => {
                tracing::debug!(server = &*instance.name, "a log message belongs to no call");
            }
        }
    }

    fn notify(&self, notification: Notification) {
        if let Some(instance) = self.0.upgrade() {
            instance.owner.changed(&instance, notification);
        }
    }
}
