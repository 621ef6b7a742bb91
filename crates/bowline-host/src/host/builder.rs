//! Builds a host.

use super::{
    Host, Inner, Telemetry, announcements::Announcements, asker::Asker, held_results::HeldResults,
    hosted_tasks::HostedTasks, instance_events::InstanceEvents, router::Router, task_ids::TaskIds,
    task_records::TaskRecords, task_result::Asking, tasks::Tasks,
};
use crate::{
    MAX_NAME,
    bridge::ParkedCalls,
    tap::Tap,
    upstream::{InstanceLimit, InstanceQuota, Upstream},
};
use bowline_models::Broker;
use bowline_policy::{Audience, Guard};
use bowline_search::Disclosure;
use bowline_store::Store;
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, OnceLock, RwLock},
    time::Duration,
};

/// Builds a [`Host`].
#[must_use = "it does nothing until it is built"]
pub struct HostBuilder {
    upstreams: Vec<(String, Upstream)>,
    guard: Option<Guard>,
    broker: Option<Broker>,
    attended: bool,
    ask_callers: Option<Audience>,
    project: Option<String>,
    max_name: usize,
    telemetry: Telemetry,
    disclosure: Disclosure,
    preface: Option<String>,
    client_servers: InstanceLimit,
    tap: Option<Arc<dyn Tap>>,
    store: Option<Store>,
    task_ttl: Duration,
}

impl HostBuilder {
    pub(super) fn new() -> Self {
        Self {
            upstreams: Vec::new(),
            guard: None,
            broker: None,
            attended: false,
            ask_callers: None,
            project: None,
            max_name: MAX_NAME,
            telemetry: Telemetry::default(),
            disclosure: Disclosure::default(),
            preface: None,
            client_servers: InstanceLimit::default(),
            tap: None,
            store: None,
            task_ttl: Duration::from_secs(3600),
        }
    }

    /// Adds a server. A later one of the same name replaces an earlier one.
    pub fn add(mut self, name: impl Into<String>, upstream: impl Into<Upstream>) -> Self {
        self.upstreams.push((name.into(), upstream.into()));
        self
    }

    /// Sets the guard, which decides what is allowed. Default: the default policy, and nobody is asked.
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guard = Some(guard);
        self
    }

    /// Declares that a user can be asked through the gate of the guard. Requests of servers go there if the caller cannot
    /// answer them.
    pub fn attended(mut self) -> Self {
        self.attended = true;
        self
    }

    /// Sends questions of the policy about a call to its caller, through elicitation, unless the host is
    /// [`attended`](Self::attended). Callers of a shared host cannot accept changed definitions, because that would apply to
    /// all callers.
    pub fn ask_callers(mut self, audience: Audience) -> Self {
        self.ask_callers = Some(audience);
        self
    }

    /// Sets the models that answer sampling requests for callers that have none.
    pub fn broker(mut self, broker: Broker) -> Self {
        self.broker = Some(broker);
        self
    }

    /// Sets the project that remembered answers may be limited to; usually the path of its folder.
    pub fn project(mut self, project: impl Into<String>) -> Self {
        self.project = Some(project.into());
        self
    }

    /// Sets the longest name of a tool or prompt that clients see; at least 16. Default: [`MAX_NAME`].
    pub fn max_name(mut self, characters: usize) -> Self {
        self.max_name = characters.max(16);
        self
    }

    /// Sets where the host records what it does. Default: metrics without traces.
    pub fn telemetry(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// Sets which clients are listed the search tools in place of all tools. Default: clients that would be listed very many
    /// tools and do not search by themselves.
    pub fn disclosure(mut self, disclosure: Disclosure) -> Self {
        self.disclosure = disclosure;
        self
    }

    /// Sets the instructions of the host, which precede those of its servers.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.preface = Some(text.into());
        self
    }

    /// Limits how many per-client servers run, in total and per authenticated user. A caller that needs another one gets an
    /// error. Default: 256 and 64.
    pub fn max_client_servers(mut self, total: usize, per_user: usize) -> Self {
        self.client_servers = InstanceLimit { total, per_user };
        self
    }

    /// Shows everything that happens in the host to `tap`. Default: nothing is captured.
    pub fn tap(mut self, tap: Arc<dyn Tap>) -> Self {
        self.tap = Some(tap);
        self
    }

    /// Sets where tasks are recorded: those of callers of 2025-11-25, for their lists and cancellations, and calls that the host
    /// runs as tasks ([`Upstream::task_after`]). Default: in memory, so other processes do not know them.
    pub fn store(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// Sets how long a call may take that the host runs as a task ([`Upstream::task_after`]), and how long its result is kept
    /// from its creation. Callers of 2025-11-25 may wish for another time. Default: 1 h; at most 24 h.
    pub fn task_ttl(mut self, ttl: Duration) -> Self {
        self.task_ttl = ttl;
        self
    }

    /// Builds the host. Starts nothing.
    pub fn build(self) -> Host {
        let tasks = Arc::new(Tasks::default());
        let asker = Arc::new(Asker {
            guard: self.guard.unwrap_or_else(|| Guard::builder().build()),
            broker: self.broker,
            attended: self.attended,
            ask_callers: self.ask_callers.filter(|_| !self.attended),
            project: self.project,
            telemetry: self.telemetry.clone(),
            pending: OnceLock::new(),
            counted_tokens: Mutex::default(),
            tap: self.tap.clone(),
        });
        let announcements = Announcements::new(self.preface, Arc::clone(&tasks));
        let metrics = Arc::clone(&self.telemetry.metrics);
        let inner = Arc::new_cyclic(|inner| Inner {
            router: Router::new(
                InstanceQuota::new(self.client_servers),
                Arc::new(InstanceEvents(inner.clone())),
                Arc::clone(&asker),
                metrics,
                self.max_name,
                Arc::clone(&tasks),
            ),
            asker,
            announcements,
            parked_calls: ParkedCalls::default(),
            disclosure: RwLock::new(Arc::new(self.disclosure)),
            telemetry: self.telemetry,
            task_ids: TaskIds::default(),
            account_pages: OnceLock::new(),
            hosted_tasks: HostedTasks::new(self.task_ttl, self.store.is_some()),
            task_records: TaskRecords::new(self.store.unwrap_or_else(Store::memory)),
            held_results: HeldResults::default(),
            this: inner.clone(),
            asking: Asking::default(),
            sessions: Mutex::default(),
            tasks,
            tap: self.tap,
        });
        // The last one of a name counts. Retiring the others in the router would need a runtime.
        let upstreams: BTreeMap<_, _> = self.upstreams.into_iter().collect();
        for (name, upstream) in upstreams {
            inner.router.insert(&name, upstream);
        }
        Host { inner }
    }
}

impl fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.upstreams.iter().map(|(name, _)| name).collect();
        f.debug_struct("HostBuilder").field("servers", &names).finish_non_exhaustive()
    }
}
