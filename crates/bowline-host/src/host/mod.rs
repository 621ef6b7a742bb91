//! The host: owns the servers, decides on behalf of the user, and is itself a service.
//!
//! It has three parts. The [`Router`] owns the servers and knows what each offers. The [`Asker`] decides what is allowed and
//! answers what servers ask. [`Announcements`] tell clients what changed.

mod accounts;
mod announcements;
mod asker;
mod builder;
mod call_record;
mod caller_gate;
mod completion;
mod custom;
mod held_results;
mod hosted_records;
mod hosted_requests;
mod hosted_run;
mod hosted_start;
mod hosted_tasks;
mod inspect;
mod inspect_policy;
mod instance_events;
mod lists;
mod meta_tools;
mod pending_servers;
mod result;
mod round_state;
mod route;
mod route_call;
mod router;
mod subscriptions;
mod task_answers;
mod task_calls;
mod task_ids;
mod task_list;
mod task_listen;
mod task_records;
mod task_result;
mod task_view;
mod tasks;
mod upstream_task;
mod url_elicitation;

pub(crate) use accounts::AccountPages;
pub use builder::HostBuilder;
pub use call_record::Telemetry;
pub use inspect::{Offered, ServerOffer};
pub use inspect_policy::{AcceptError, ServerToolPins, ToolPin, ToolPinStatus};
pub(crate) use pending_servers::PendingServers;

use crate::{
    bridge::ParkedCalls,
    tap::{self, Tap, TapEvent},
    upstream::{AskLogin, Health, Member, Upstream, UpstreamStatus},
};
use announcements::Announcements;
use asker::Asker;
use bowline_config::Start;
use bowline_policy::Guard;
use bowline_proto::{
    service::{BoxFuture, Call, Notifier, Outcome, Service},
    subscribe::Change,
};
use bowline_search::Disclosure;
use bowline_server::{Announcer, BuildError, CallOrigin, Server, ServerHandle};
use bowline_telemetry::{ActiveSession, UpstreamState};
use bowline_types::{
    Method, PromptsCapability, RawJson, RawMap, ResourcesCapability, RpcError, ServerCapabilities,
    ServerTaskRequests, ServerTasksCapability, TASKS_EXTENSION, ToolTaskRequests, ToolsCapability,
};
use held_results::HeldResults;
use hosted_tasks::HostedTasks;
use router::Router;
use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak},
    time::Duration,
};
use task_ids::TaskIds;
use task_records::TaskRecords;
use task_result::Asking;
use tasks::Tasks;

/// The key that marks a refusal by the host: in `_meta` of a tool result, and in `data` of an error.
///
/// Its value is `true`. With it, a client can tell a refusal from a tool that failed.
pub const REFUSED: &str = "io.github.bowline-mcp/refused";

/// How often expired calls and unused servers are cleaned up.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// After how many intervals expired records of tasks are removed.
const RECORDS_SWEPT_EVERY: u32 = 60;

/// Many servers as one, under one policy. Clones share everything.
///
/// ```no_run
/// use bowline_client::command;
/// use bowline_host::Host;
/// use bowline_policy::{Guard, Policy, Rule};
/// use bowline_server::Server;
///
/// # async fn run() -> Result<(), bowline_server::ServeError> {
/// let guard = Guard::builder().policy(Policy::new([Rule::allow().server("files")])).build();
/// let host = Host::builder()
///     .add("files", command("bowline", ["serve", "files", "/srv"]))
///     .add("tickets", "https://tickets.example.com/mcp")
///     .guard(guard)
///     .build();
/// host.open(Server::new("gateway"))?.serve_stdio().await
/// # }
/// ```
#[derive(Clone)]
pub struct Host {
    inner: Arc<Inner>,
}

struct Inner {
    router: Arc<Router>,
    asker: Arc<Asker>,
    announcements: Arc<Announcements>,
    parked_calls: ParkedCalls<route_call::CallContext>,
    disclosure: RwLock<Arc<Disclosure>>,
    telemetry: Telemetry,
    task_ids: TaskIds,
    /// Where users connect their accounts at servers, if the gateway serves such pages.
    account_pages: OnceLock<Arc<dyn AccountPages>>,
    task_records: TaskRecords,
    held_results: HeldResults,
    hosted_tasks: HostedTasks,
    /// The host itself, for calls that go on after their round.
    this: Weak<Self>,
    asking: Asking,
    /// One per open session, for the metrics.
    sessions: Mutex<Vec<ActiveSession>>,
    tasks: Arc<Tasks>,
    /// Sees what happens, if somebody watches.
    tap: Option<Arc<dyn Tap>>,
}

impl Host {
    /// Returns a builder.
    pub fn builder() -> HostBuilder {
        HostBuilder::new()
    }

    /// Serves all servers of this host through `server`. Its name, limits, keys and middleware apply; tools that were added
    /// to it are not listed. Starts the servers that are configured to start with the host.
    ///
    /// Needs a tokio runtime. Fails if the host was opened before: one handle serves any number of clients.
    pub fn open(&self, server: Server) -> Result<ServerHandle, BuildError> {
        let inner = Arc::downgrade(&self.inner);
        let server = server.guard_subscriptions(move |client, uri| {
            inner.upgrade().map_or(Ok(()), |inner| inner.may_subscribe(client, uri))
        });
        let server = match &self.inner.tap {
            Some(tap) => {
                let tap = Arc::clone(tap);
                server.on_message(move |message| tap.event(&TapEvent::Client(*message)))
            }
            None => server,
        };
        let handle = server
            .capabilities(capabilities())
            .backend_tasks(task_listen::TaskListens(Arc::downgrade(&self.inner)))
            .backend(self.clone())
            .build()?;
        self.inner.task_ids.set_keys(handle.profile().keys.clone());
        if !self.inner.attach(handle.announcer()) {
            return Err(BuildError::new("the host is already open"));
        }
        Ok(handle)
    }

    /// Returns the status of each instance of each server, ordered by name.
    pub fn status(&self) -> Vec<UpstreamStatus> {
        let instances = self.inner.router.members().into_iter().flat_map(|member| member.all());
        instances.map(|instance| instance.status()).collect()
    }

    /// Adds a server, or replaces the one of this name. Calls that run at a replaced server are finished there.
    pub fn add(&self, name: &str, upstream: impl Into<Upstream>) {
        let inner = &self.inner;
        let member = inner.router.insert(name, upstream.into());
        inner.announcements.publish_lists();
        inner.tell(&TapEvent::ListsChanged);
        // Before the host is opened nothing is started.
        if member.spec.start == Start::Eager && inner.announcements.is_open() {
            inner.router.start(&member);
        }
    }

    /// Removes a server. Calls that run at it are finished. Returns false if there is no server of this name.
    pub fn remove(&self, name: &str) -> bool {
        let was_removed = self.inner.router.remove(name);
        if was_removed {
            self.inner.announcements.publish_lists();
            self.inner.tell(&TapEvent::ListsChanged);
        }
        self.inner.telemetry.metrics.forget(name);
        was_removed
    }

    /// Makes callers approve servers that wait for an approval.
    pub(crate) fn set_pending(&self, pending: impl PendingServers + 'static) {
        self.inner.asker.set_pending(Arc::new(pending));
    }

    /// Returns the names of the servers.
    pub fn names(&self) -> Vec<String> {
        self.inner.router.members().iter().map(|member| member.name.to_string()).collect()
    }

    /// Returns how many calls wait for an answer of their caller.
    pub fn parked(&self) -> usize {
        self.inner.parked_calls.len()
    }

    /// Returns whether every server that starts with the host has started or failed to start.
    pub fn is_ready(&self) -> bool {
        let is_settled = |member: &Arc<Member>| {
            let eager = member.spec.start == Start::Eager && !member.is_per_client();
            !eager || member.all().iter().any(|instance| instance.is_settled())
        };
        self.inner.announcements.is_open() && self.inner.router.members().iter().all(is_settled)
    }

    /// Returns the metrics in the Prometheus text format, whose content type is
    /// [`CONTENT_TYPE`](bowline_telemetry::CONTENT_TYPE).
    pub fn metrics(&self) -> String {
        self.inner.render_metrics()
    }

    /// Sets the number of open sessions that the metrics report.
    pub(crate) fn count_sessions(&self, open: usize) {
        let mut sessions = self.inner.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.resize_with(open, || self.inner.telemetry.metrics.session());
    }

    /// Changes which clients are listed the search tools in place of all tools.
    pub fn set_disclosure(&self, disclosure: Disclosure) {
        *self.inner.disclosure.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(disclosure);
        self.inner.announcements.publish_list(Change::Tools);
    }

    /// Returns the guard, which decides what is allowed.
    pub fn guard(&self) -> &Guard {
        &self.inner.asker.guard
    }

    /// Returns a function that asks the user of this host before a login. It does not keep the host alive.
    pub(crate) fn ask_login(&self) -> AskLogin {
        let asker = Arc::downgrade(&self.inner.asker);
        Arc::new(move |login| {
            let asker = asker.clone();
            Box::pin(async move {
                let asker = asker.upgrade().ok_or("the host is shutting down")?;
                asker.ask_login(login).await
            })
        })
    }

    /// Cancels open questions and prevents further starts of servers. Running calls continue; [`close`](Self::close) ends
    /// them.
    pub fn cancel_waiting(&self) {
        self.inner.asker.guard.withdraw_questions();
        for instance in self.inner.router.members().iter().flat_map(|member| member.all()) {
            instance.retire();
        }
    }

    /// Shuts down all servers, and cancels calls that wait for an answer. Calls that run as tasks of the host end as failed.
    pub async fn close(&self) {
        self.inner.hosted_tasks.stop().await;
        self.inner.tasks.abort_all();
        self.inner.parked_calls.clear();
        let members = self.inner.router.drain_retired();
        futures_util::future::join_all(members.iter().map(|member| member.stop())).await;
    }
}

/// Returns the capabilities of the host. It declares everything that its servers may have, now or later.
fn capabilities() -> ServerCapabilities {
    let calls = ToolTaskRequests::new().call(RawMap::new());
    let tasks = ServerTasksCapability::new().list(RawMap::new()).cancel(RawMap::new());
    ServerCapabilities::new()
        // Which tools become tasks, the list of tools says.
        .tasks(tasks.requests(ServerTaskRequests::new().tools(calls)))
        .logging(RawMap::new())
        .completions(RawMap::new())
        .tools(ToolsCapability::new().list_changed(true))
        .prompts(PromptsCapability::new().list_changed(true))
        .resources(ResourcesCapability::new().subscribe(true).list_changed(true))
        .extensions(RawMap::from([(TASKS_EXTENSION, RawJson::empty_object())]))
}

impl Inner {
    /// Starts announcing changes, cleaning up, and the eager servers. Returns false if that was done before.
    fn attach(self: &Arc<Self>, announcer: Announcer) -> bool {
        let subscriptions = announcer.wanted();
        if !self.announcements.attach(announcer, &self.router.members()) {
            return false;
        }
        let weak = Arc::downgrade(self);
        self.tasks.spawn(async move {
            for round in 1_u32.. {
                tokio::time::sleep(SWEEP_INTERVAL).await;
                let Some(inner) = weak.upgrade() else { return };
                inner.parked_calls.sweep();
                if round.is_multiple_of(RECORDS_SWEPT_EVERY) {
                    inner.task_records.sweep().await;
                }
                for member in inner.router.members() {
                    member.sweep().await;
                }
            }
        });
        HostedTasks::keep(self, &self.tasks);
        let servers_changed = Arc::clone(&self.announcements.servers_changed);
        let router = Arc::downgrade(&self.router);
        self.tasks.spawn(subscriptions::run(router, servers_changed, subscriptions));
        for member in self.router.members() {
            if member.spec.start == Start::Eager {
                self.router.start(&member);
            }
        }
        true
    }

    /// Tells whoever watches.
    fn tell(&self, event: &TapEvent<'_>) {
        if let Some(tap) = &self.tap {
            tap.event(event);
        }
    }

    /// Renders the metrics with the present state of every server.
    fn render_metrics(&self) -> String {
        let metrics = &self.telemetry.metrics;
        for member in self.router.members() {
            let health: Vec<_> = member.all().iter().map(|instance| instance.status().health).collect();
            let any = |wanted: fn(&Health) -> bool| health.iter().any(wanted);
            let state = if any(|health| *health == Health::Ready) {
                UpstreamState::Ready
            } else if any(|health| *health == Health::Starting) {
                UpstreamState::Starting
            } else if any(|health| matches!(health, Health::Failed(_))) {
                UpstreamState::Failed
            } else {
                UpstreamState::Stopped
            };
            metrics.upstream(&member.name).set_state(state);
        }
        metrics.render()
    }
}

impl Service for Host {
    fn call(&self, call: Call, notifier: Notifier) -> BoxFuture<'_, Outcome> {
        let inner = &self.inner;
        if call.is_notification {
            return Box::pin(inner.pass_notification(call));
        }
        if inner.tap.is_some()
            && let Some(origin) = call.extensions.get::<CallOrigin>().cloned()
        {
            return Box::pin(tap::within(origin, inner.route(call, notifier)));
        }
        inner.route(call, notifier)
    }
}

impl Inner {
    /// Finds who answers a call.
    fn route(&self, call: Call, notifier: Notifier) -> BoxFuture<'_, Outcome> {
        let inner = self;
        let Some(method) = call.method.known() else { return Box::pin(inner.route_call(call, notifier)) };
        match method {
            Method::ListTools
            | Method::ListPrompts
            | Method::ListResources
            | Method::ListResourceTemplates => Box::pin(inner.list(call)),
            Method::CallTool | Method::ReadResource | Method::GetPrompt | Method::Complete => {
                Box::pin(inner.route_call(call, notifier))
            }
            Method::GetTask
            | Method::UpdateTask
            | Method::CancelTask
            | Method::TaskResult
            | Method::ListTasks => Box::pin(inner.route_task(call, notifier)),
            method => {
                Box::pin(std::future::ready(Outcome::Failed(RpcError::method_not_found(method.as_str()))))
            }
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("servers", &self.names()).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.tasks.abort_all();
        for instance in self.router.drain_retired().iter().flat_map(|member| member.all()) {
            instance.retire();
        }
    }
}
