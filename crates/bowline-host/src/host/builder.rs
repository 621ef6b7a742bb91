//! How a host is set up.

use super::{Host, Inner, ListChanges, Telemetry};
use crate::{
    MAX_NAME,
    bridge::Parking,
    upstream::{InstanceLimit, InstanceQuota, Upstream},
};
use bowline_models::Broker;
use bowline_policy::{Audience, Guard};
use bowline_search::Disclosure;
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, OnceLock, RwLock, atomic::AtomicU64},
};

use tokio::sync::Notify;

/// Sets a [`Host`] up.
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
        }
    }

    /// Adds a server under a name. A later one of the same name replaces the earlier.
    pub fn add(mut self, name: impl Into<String>, upstream: impl Into<Upstream>) -> Self {
        self.upstreams.push((name.into(), upstream.into()));
        self
    }

    /// Who decides what may happen. Default: the default policy, with nobody to ask.
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guard = Some(guard);
        self
    }

    /// Someone sits at the guard's gate: questions of servers whose caller cannot be asked are put there.
    pub fn attended(mut self) -> Self {
        self.attended = true;
        self
    }

    /// Puts what the policy asks about a call to the user of its caller, through elicitation, where nobody sits at the
    /// guard's gate. The callers of a shared host cannot accept changed definitions, which would hold for all of them.
    pub fn ask_callers(mut self, audience: Audience) -> Self {
        self.ask_callers = Some(audience);
        self
    }

    /// The models that answer for callers that have none. Without, sampling is the callers' own.
    pub fn broker(mut self, broker: Broker) -> Self {
        self.broker = Some(broker);
        self
    }

    /// The project that remembered answers may be bound to; usually the path of its folder.
    pub fn project(mut self, project: impl Into<String>) -> Self {
        self.project = Some(project.into());
        self
    }

    /// The longest name of a tool or prompt that clients are given; at least 16. Default: [`MAX_NAME`].
    pub fn max_name(mut self, characters: usize) -> Self {
        self.max_name = characters.max(16);
        self
    }

    /// Where the host tells what it does. Default: it counts, and records no traces.
    pub fn telemetry(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// Which clients search for tools instead of being listed them all. Default: those that would be listed very many and
    /// do not search by themselves.
    pub fn disclosure(mut self, disclosure: Disclosure) -> Self {
        self.disclosure = disclosure;
        self
    }

    /// What models are told of the host, before what its servers say of themselves.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.preface = Some(text.into());
        self
    }

    /// How many per-client servers run at a time, of all callers and of one authenticated user. A caller that needs another
    /// one gets an error. Default: 256 and 64.
    pub fn max_client_servers(mut self, total: usize, per_user: usize) -> Self {
        self.client_servers = InstanceLimit { total, per_user };
        self
    }

    /// The host. Nothing is started yet.
    pub fn build(self) -> Host {
        let inner = Arc::new_cyclic(|me| Inner {
            me: me.clone(),
            members: RwLock::new(BTreeMap::new()),
            catalogs: Mutex::new(HashMap::new()),
            epoch: AtomicU64::new(0),
            parking: Parking::default(),
            client_servers: InstanceQuota::new(self.client_servers),
            list_changes: ListChanges::default(),
            guard: self.guard.unwrap_or_else(|| Guard::builder().build()),
            broker: self.broker,
            attended: self.attended,
            ask_callers: self.ask_callers.filter(|_| !self.attended),
            pending: OnceLock::new(),
            project: self.project,
            max_name: self.max_name,
            telemetry: self.telemetry,
            sampled: Mutex::default(),
            sessions: Mutex::default(),
            disclosure: RwLock::new(Arc::new(self.disclosure)),
            preface: self.preface,
            server: OnceLock::new(),
            turned: Arc::new(Notify::new()),
            tasks: Mutex::default(),
            retired: Mutex::default(),
        });
        for (name, upstream) in self.upstreams {
            let member = inner.member(&name, upstream);
            inner.write_members(|members| members.insert(name.into(), member));
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
