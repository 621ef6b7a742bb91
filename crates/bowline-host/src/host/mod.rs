//! The host: it owns the servers, decides for the user, and is itself a service.

mod answers;
mod builder;
mod completion;
mod consent;
mod custom;
mod disclosure;
mod journey;
mod lists;
mod news;
mod telemetry;
mod visits;

pub use builder::HostBuilder;
pub(crate) use consent::PendingServers;
pub use telemetry::Telemetry;

use crate::{
    aggregate::{Catalog, Offer, Shelf, may_be_of},
    bridge::Parking,
    upstream::{CallerKey, Instance, InstanceQuota, Member, Upstream, UpstreamStatus},
};
use bowline_config::{Share, Start};
use bowline_models::Broker;
use bowline_policy::{Audience, Caller, Definition, Facts, Guard, Trust};
use bowline_proto::{
    service::{BoxFuture, Call, ClientView, Notifier, Outcome, Service},
    subscribe::Change,
};
use bowline_search::Disclosure;
use bowline_server::{Announcer, BuildError, Server, ServerHandle};
use bowline_telemetry::ActiveSession;
use bowline_types::{
    Method, PromptsCapability, RawMap, ResourcesCapability, RpcError, ServerCapabilities, ToolsCapability,
};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, task::AbortHandle};

/// How often what nobody needs any more is looked for.
const SWEEP: Duration = Duration::from_secs(1);

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

/// What the host is made of.
pub(crate) struct Inner {
    me: std::sync::Weak<Self>,
    members: RwLock<BTreeMap<Arc<str>, Arc<Member>>>,
    /// What is offered to whom, as it was last put together. `None` is what all callers share: the servers that are not
    /// per client.
    catalogs: Mutex<HashMap<Option<CallerKey>, Kept>>,
    /// Counts everything that may change what is offered.
    epoch: AtomicU64,
    parking: Parking<journey::Cargo>,
    /// Limits how many per-client servers run.
    client_servers: Arc<InstanceQuota>,
    /// The lists whose changes are announced soon.
    list_changes: ListChanges,
    guard: Guard,
    broker: Option<Broker>,
    /// Whether someone sits at the gate and can be asked.
    attended: bool,
    /// Whether callers are asked what the policy wants to know about their calls, and who they can be.
    ask_callers: Option<Audience>,
    /// The servers that wait for an approval.
    pending: OnceLock<Arc<dyn PendingServers>>,
    project: Option<String>,
    max_name: usize,
    telemetry: Telemetry,
    /// How many tokens models have used for each server, as far as it was counted.
    sampled: Mutex<HashMap<Arc<str>, (u64, u64)>>,
    /// The sessions that are counted.
    sessions: Mutex<Vec<ActiveSession>>,
    disclosure: RwLock<Arc<Disclosure>>,
    /// What models are told before what servers say.
    preface: Option<String>,
    server: OnceLock<Announcer>,
    /// Wakes who follows resources when a server was started or lost.
    turned: Arc<Notify>,
    tasks: Mutex<Vec<AbortHandle>>,
    /// Servers that were removed and have calls to finish.
    retired: Mutex<Vec<Arc<Member>>>,
}

/// A catalog as it was put together.
#[derive(Clone)]
struct Kept {
    epoch: u64,
    /// Whether every server was ever asked for it. Otherwise it is good for what it has only.
    whole: bool,
    catalog: Arc<Catalog>,
}

impl Host {
    /// Sets a host up.
    pub fn builder() -> HostBuilder {
        HostBuilder::new()
    }

    /// Has `server` stand for all servers of this host. What was added to it is not offered; its name, limits, keys and
    /// middleware hold. Servers that are to start with the host are started.
    ///
    /// Needs a tokio runtime. Fails when the host was opened before: one handle serves any number of clients.
    pub fn open(&self, server: Server) -> Result<ServerHandle, BuildError> {
        let inner = self.inner.me.clone();
        let server = server.guard_subscriptions(move |client, uri| {
            inner.upgrade().map_or(Ok(()), |inner| inner.may_hear(client, uri))
        });
        let handle = server.capabilities(offered()).backend(self.clone()).build()?;
        if !self.inner.attach(handle.announcer()) {
            return Err(BuildError::new("the host was opened before"));
        }
        Ok(handle)
    }

    /// How each server is doing, by name.
    pub fn status(&self) -> Vec<UpstreamStatus> {
        let instances = self.inner.members().into_iter().flat_map(|member| member.all());
        instances.map(|instance| instance.status()).collect()
    }

    /// Adds a server, or puts it in the place of one of its name. Calls that run at the old one come to their end.
    pub fn add(&self, name: &str, upstream: impl Into<Upstream>) {
        let member = self.inner.member(name, upstream.into());
        let start = member.spec.start;
        let replaced = self.inner.write_members(|members| members.insert(name.into(), Arc::clone(&member)));
        self.inner.retire(replaced);
        self.inner.publish_lists();
        // Before the host is opened nothing is started.
        if start == Start::Eager && self.inner.server.get().is_some() {
            self.inner.start(&member);
        }
    }

    /// Removes a server. Calls that run at it come to their end. False when there is none of that name.
    pub fn remove(&self, name: &str) -> bool {
        let removed = self.inner.write_members(|members| members.remove(name));
        let found = removed.is_some();
        self.inner.retire(removed);
        self.inner.telemetry.metrics.forget(name);
        found
    }

    /// Has callers asked about servers that wait for an approval.
    pub(crate) fn set_pending(&self, pending: impl PendingServers + 'static) {
        // It is set once, by the gateway that owns the host.
        let _ = self.inner.pending.set(Arc::new(pending));
    }

    /// The names of the servers.
    pub fn names(&self) -> Vec<String> {
        self.inner.members().iter().map(|member| member.name.to_string()).collect()
    }

    /// How many calls wait for an answer of their caller.
    pub fn parked(&self) -> usize {
        self.inner.parking.len()
    }

    /// Whether every server that starts with the host has started, or has failed to.
    pub fn is_ready(&self) -> bool {
        let is_settled = |member: &Arc<Member>| {
            let eager = member.spec.start == Start::Eager && !member.is_per_client();
            !eager || member.all().iter().any(|instance| instance.is_settled())
        };
        self.inner.server.get().is_some() && self.inner.members().iter().all(is_settled)
    }

    /// The numbers of the host as Prometheus reads them. Serve them as
    /// [`CONTENT_TYPE`](bowline_telemetry::CONTENT_TYPE).
    pub fn metrics(&self) -> String {
        self.inner.metrics_page()
    }

    /// Has the numbers tell of so many sessions.
    pub(crate) fn count_sessions(&self, open: usize) {
        self.inner.count_sessions(open);
    }

    /// Decides anew which clients search for tools instead of being listed them all.
    pub fn set_disclosure(&self, disclosure: Disclosure) {
        *self.inner.disclosure.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(disclosure);
        self.inner.publish_list(Change::Tools);
    }

    /// Decides what may happen.
    pub fn guard(&self) -> &Guard {
        &self.inner.guard
    }

    /// Ends what only waits: open questions count as not answered, and servers that are not up are not started any more.
    /// Calls that run at a server go on. [`close`](Self::close) ends the rest.
    pub fn end_waiting(&self) {
        self.inner.guard.withdraw_questions();
        for instance in self.inner.members().iter().flat_map(|member| member.all()) {
            instance.retire();
        }
    }

    /// Ends every server, in good order, and calls that wait for an answer with them.
    pub async fn close(&self) {
        for task in self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
        self.inner.parking.clear();
        let mut members = self.inner.members();
        members.append(&mut self.inner.retired.lock().unwrap_or_else(PoisonError::into_inner));
        futures_util::future::join_all(members.iter().map(|member| member.stop())).await;
    }
}

/// What a host declares: whatever its servers have, now or later.
fn offered() -> ServerCapabilities {
    ServerCapabilities {
        logging: Some(RawMap::default()),
        completions: Some(RawMap::default()),
        tools: Some(ToolsCapability { list_changed: Some(true), ..ToolsCapability::default() }),
        prompts: Some(PromptsCapability { list_changed: Some(true), ..PromptsCapability::default() }),
        resources: Some(ResourcesCapability {
            subscribe: Some(true),
            list_changed: Some(true),
            ..ResourcesCapability::default()
        }),
        ..ServerCapabilities::default()
    }
}

impl Inner {
    fn members(&self) -> Vec<Arc<Member>> {
        self.members.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn write_members<T>(&self, write: impl FnOnce(&mut BTreeMap<Arc<str>, Arc<Member>>) -> T) -> T {
        let written = write(&mut self.members.write().unwrap_or_else(PoisonError::into_inner));
        self.turn();
        written
    }

    fn member(&self, name: &str, upstream: Upstream) -> Arc<Member> {
        let metrics = self.telemetry.metrics.upstream(name);
        let (owner, quota) = (Arc::new(answers::Desk(self.me.clone())), Arc::clone(&self.client_servers));
        Arc::new(Member::new(name.into(), upstream, owner, metrics, quota))
    }

    /// Something that is offered may have changed.
    fn turn(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }

    /// Spawns a task that ends with the host.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let handle = tokio::spawn(task).abort_handle();
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|task| !task.is_finished());
        tasks.push(handle);
    }

    fn start(&self, member: &Arc<Member>) {
        if member.spec.share == Share::Shared {
            let instance = member.instance(&CallerKey::User(None));
            let me = self.me.clone();
            self.spawn(async move {
                if instance.client().await.is_err() {
                    return;
                }
                // Whoever asks first finds the lists ready.
                if let Some(inner) = me.upgrade() {
                    inner.offer(instance, true).await;
                }
            });
        }
    }

    fn retire(&self, member: Option<Arc<Member>>) {
        let Some(member) = member else { return };
        self.publish_lists();
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&member));
        let me = self.me.clone();
        self.spawn(async move {
            // Its calls come to their end first.
            for instance in member.all() {
                while instance.flights.len() > 0 {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
            member.stop().await;
            if let Some(inner) = me.upgrade() {
                let mut retired = inner.retired.lock().unwrap_or_else(PoisonError::into_inner);
                retired.retain(|other| !Arc::ptr_eq(other, &member));
            }
        });
    }

    /// From now on changes are told to clients, and what nobody needs is swept. False when that was so before.
    fn attach(&self, announcer: Announcer) -> bool {
        let wanted = announcer.wanted();
        if self.server.set(announcer).is_err() {
            return false;
        }
        if self.preface.is_some() {
            self.tell_instructions();
        }
        let me = self.me.clone();
        self.spawn(async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                let Some(inner) = me.upgrade() else { return };
                inner.parking.sweep();
                for member in inner.members() {
                    member.sweep().await;
                }
            }
        });
        self.spawn(news::follow(self.me.clone(), wanted));
        for member in self.members() {
            if member.spec.start == Start::Eager {
                self.start(&member);
            }
        }
        true
    }

    fn publish(&self, change: &Change) {
        if let Some(server) = self.server.get() {
            server.publish(change);
        }
    }

    /// Announces that a list has changed: at once, and then at most once per interval however often it changes. The last
    /// change is always announced.
    fn publish_list(&self, change: Change) {
        if !self.list_changes.begin(&change) {
            return;
        }
        self.publish(&change);
        if tokio::runtime::Handle::try_current().is_err() {
            self.list_changes.end(&change);
            return;
        }
        let me = self.me.clone();
        self.spawn(async move {
            loop {
                tokio::time::sleep(LIST_CHANGES_APART).await;
                let Some(inner) = me.upgrade() else { return };
                if !inner.list_changes.end(&change) {
                    return;
                }
                inner.publish(&change);
            }
        });
    }

    fn publish_lists(&self) {
        for change in [Change::Tools, Change::Prompts, Change::Resources] {
            self.publish_list(change);
        }
    }

    /// Who calls, for the policy.
    fn caller(client: &ClientView) -> Caller<'_> {
        Caller {
            client: client.info().map(|info| info.name.as_str()),
            principal: client.principal.as_deref(),
        }
    }

    fn facts<'a>(&'a self, instance: &'a Instance, client: &'a ClientView) -> Facts<'a> {
        Facts {
            server: &instance.name,
            trust: if instance.spec.trusted { Trust::Trusted } else { Trust::Untrusted },
            caller: Self::caller(client),
            project: self.project.as_deref(),
            identity: instance.spec.identity.as_deref(),
            gate: None,
        }
    }

    /// What is offered to a tenant: as it was last put together, or put together after asking those that `wait` names.
    async fn catalog(&self, tenant: &CallerKey, wait: Wait<'_>) -> Arc<Catalog> {
        let members = self.members();
        let key = members.iter().any(|member| member.is_per_client()).then(|| tenant.clone());
        self.catalog_of(members, key, tenant, wait).await
    }

    /// What the servers offer that all callers share. No per-client server is started for it.
    async fn shared_catalog(&self, wait: Wait<'_>) -> Arc<Catalog> {
        let mut members = self.members();
        members.retain(|member| !member.is_per_client());
        self.catalog_of(members, None, &CallerKey::User(None), wait).await
    }

    async fn catalog_of(
        &self,
        members: Vec<Arc<Member>>,
        key: Option<CallerKey>,
        tenant: &CallerKey,
        wait: Wait<'_>,
    ) -> Arc<Catalog> {
        let epoch = self.epoch.load(Ordering::Relaxed);
        let known = self.known(key.as_ref());
        let was_whole = known.as_ref().is_some_and(|known| known.whole);
        let wait = if wait == Wait::Nobody && !was_whole { Wait::Briefly } else { wait };
        if let Some(Kept { catalog, .. }) = known.filter(|known| known.epoch == epoch) {
            let enough = match wait {
                Wait::Never | Wait::Nobody => true,
                Wait::Only(_) | Wait::Owners(_) => false,
                Wait::Briefly | Wait::Everybody => {
                    was_whole && members.iter().all(|member| is_fresh(&member.instance(tenant)))
                }
            };
            if enough {
                return catalog;
            }
        }
        let offers = members.iter().map(|member| {
            let instance = member.instance(tenant);
            let asked = match wait {
                Wait::Never | Wait::Nobody => false,
                Wait::Only(id) => instance.id == id,
                Wait::Owners(name) => may_be_of(self.max_name, &member.name, name),
                Wait::Briefly | Wait::Everybody => true,
            };
            async move {
                let is_up =
                    wait != Wait::Briefly || is_fresh(&instance) || instance.is_up_within(GRACE).await;
                (is_up, self.offer(instance, asked && is_up).await)
            }
        });
        let (are_up, offers): (Vec<_>, Vec<_>) =
            futures_util::future::join_all(offers).await.into_iter().unzip();
        let offers: Vec<_> = offers.into_iter().flatten().collect();
        let catalog = Arc::new(Catalog::of(&offers, self.max_name));
        for name in &catalog.collisions {
            tracing::warn!(
                name,
                "two servers offer something under this name; one is shown under a longer name"
            );
        }
        let mut catalogs = self.catalogs.lock().unwrap_or_else(PoisonError::into_inner);
        catalogs.retain(|key, _| !key.as_ref().is_some_and(CallerKey::is_gone));
        if catalogs.len() >= MAX_CATALOGS {
            catalogs.clear();
        }
        let whole = was_whole
            || match wait {
                Wait::Never | Wait::Nobody | Wait::Only(_) | Wait::Owners(_) => false,
                Wait::Briefly => are_up.iter().all(|is_up| *is_up),
                Wait::Everybody => true,
            };
        catalogs.insert(key, Kept { epoch, whole, catalog: Arc::clone(&catalog) });
        catalog
    }

    /// Every catalog that was put together, of all tenants.
    fn known_catalogs(&self) -> Vec<Arc<Catalog>> {
        let catalogs = self.catalogs.lock().unwrap_or_else(PoisonError::into_inner);
        catalogs.values().map(|kept| Arc::clone(&kept.catalog)).collect()
    }

    /// The servers that are being started, whose offers are missing from lists until they are up.
    fn starting(&self, tenant: &CallerKey) -> Vec<String> {
        let members = self.members();
        let starting = members.iter().filter(|member| member.instance(tenant).is_starting());
        starting.map(|member| member.name.to_string()).collect()
    }

    fn known(&self, key: Option<&CallerKey>) -> Option<Kept> {
        self.catalogs.lock().unwrap_or_else(PoisonError::into_inner).get(&key.cloned()).cloned()
    }

    /// What one server offers. One that is not asked, or cannot be reached, offers what it last did, or nothing, and
    /// spoils no other's.
    async fn offer(&self, instance: Arc<Instance>, ask: bool) -> Option<Offer> {
        let shelf = &instance.shelf;
        let limit = instance.spec.startup + instance.spec.silence;
        let listing = async {
            let tools = shelf.tools.get(&instance).await?;
            let (prompts, resources, templates) = tokio::join!(
                shelf.prompts.get(&instance),
                shelf.resources.get(&instance),
                shelf.templates.get(&instance),
            );
            Ok::<_, RpcError>((tools, prompts?, resources?, templates?))
        };
        let (tools, prompts, resources, templates) = if ask {
            match tokio::time::timeout(limit, listing).await {
                Ok(Ok(listed)) => {
                    shelf.note(None);
                    listed
                }
                Ok(Err(error)) => {
                    tracing::warn!(server = &*instance.name, %error, "a server is left out of the lists");
                    let name = &instance.name;
                    shelf.note(Some(match instance.running() {
                        Some(_) => format!("the server `{name}`: {}", error.message),
                        None => error.message.to_string(),
                    }));
                    last(shelf)?
                }
                Err(_) => {
                    let seconds = limit.as_secs();
                    tracing::warn!(
                        server = &*instance.name,
                        seconds,
                        "a server did not list what it has in time"
                    );
                    let name = &instance.name;
                    shelf.note(Some(format!(
                        "the server `{name}` did not list what it has within {seconds} s"
                    )));
                    last(shelf)?
                }
            }
        } else {
            last(shelf)?
        };
        let definitions = shelf.definitions(&tools);
        if ask {
            self.pin(&instance, &definitions).await;
        }
        Some(Offer { instance: Arc::clone(&instance), tools, definitions, prompts, resources, templates })
    }

    /// Has the guard look at what a server lists now.
    async fn pin(&self, instance: &Instance, definitions: &[Definition]) {
        let facts = Facts {
            server: &instance.name,
            identity: instance.spec.identity.as_deref(),
            project: self.project.as_deref(),
            ..Facts::default()
        };
        match self.guard.listed(&facts, definitions).await {
            Ok(differences) => {
                for difference in differences {
                    tracing::warn!(server = &*instance.name, %difference, "a tool is not what it was");
                }
            }
            Err(refusal) => {
                tracing::warn!(server = &*instance.name, reason = refusal.reason(), "tools cannot be pinned");
            }
        }
    }
}

/// Whom to ask what it offers before an answer is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait<'a> {
    /// Nobody at all.
    Never,
    /// Nobody, unless there is someone who was never asked: then as [`Briefly`](Self::Briefly).
    Nobody,
    /// The instance of this number.
    Only(u64),
    /// Those that something of this name may be of.
    Owners(&'a str),
    /// All servers but those whose start takes longer than the grace. Of what these offer, clients are told when they are up.
    Briefly,
    /// All servers, however long their start takes.
    Everybody,
}

/// How long a list waits for servers that start. Programs that are installed are up well within it, so that clients get one
/// whole list; and nobody who looks at a client that lists takes it for dead.
const GRACE: Duration = Duration::from_secs(5);

/// How far apart announcements of changes of one list are at least.
const LIST_CHANGES_APART: Duration = Duration::from_secs(1);

/// The lists that were announced to have changed within the last interval, each with whether it has changed since.
#[derive(Default)]
pub(crate) struct ListChanges(Mutex<[Option<bool>; 3]>);

impl ListChanges {
    fn with<T>(&self, change: &Change, look: impl FnOnce(&mut Option<bool>) -> T) -> Option<T> {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [tools, prompts, resources] = &mut *lists;
        Some(look(match change {
            Change::Tools => tools,
            Change::Prompts => prompts,
            Change::Resources => resources,
            Change::Resource(_) => return None,
        }))
    }

    /// Notes a change. True when it is to be announced at once; else it is announced at the end of the interval.
    fn begin(&self, change: &Change) -> bool {
        let begin = |list: &mut Option<bool>| {
            let is_first = list.is_none();
            *list = Some(!is_first);
            is_first
        };
        self.with(change, begin).unwrap_or(true)
    }

    /// The interval has passed. True when the list has changed meanwhile: it is announced, and another interval begins.
    fn end(&self, change: &Change) -> bool {
        let end = |list: &mut Option<bool>| {
            let has_changed = *list == Some(true);
            *list = has_changed.then_some(false);
            has_changed
        };
        self.with(change, end).unwrap_or(false)
    }
}

/// For how many tenants it is kept what they are offered.
const MAX_CATALOGS: usize = 1000;

fn is_fresh(instance: &Instance) -> bool {
    let shelf = &instance.shelf;
    shelf.tools.fresh().is_some()
        && shelf.prompts.fresh().is_some()
        && shelf.resources.fresh().is_some()
        && shelf.templates.fresh().is_some()
}

type Lists = (
    Arc<Vec<bowline_types::Tool>>,
    Arc<Vec<bowline_types::Prompt>>,
    Arc<Vec<bowline_types::Resource>>,
    Arc<Vec<bowline_types::ResourceTemplate>>,
);

fn last(shelf: &Shelf) -> Option<Lists> {
    Some((
        shelf.tools.last()?,
        shelf.prompts.last().unwrap_or_default(),
        shelf.resources.last().unwrap_or_default(),
        shelf.templates.last().unwrap_or_default(),
    ))
}

impl Service for Host {
    fn call(&self, call: Call, notifier: Notifier) -> BoxFuture<'_, Outcome> {
        let inner = &self.inner;
        if call.is_notification {
            return Box::pin(inner.pass_notification(call));
        }
        let Some(method) = call.method.known() else { return Box::pin(inner.travel(call, notifier)) };
        match method {
            Method::ListTools
            | Method::ListPrompts
            | Method::ListResources
            | Method::ListResourceTemplates => Box::pin(inner.list(call)),
            Method::CallTool | Method::ReadResource | Method::GetPrompt | Method::Complete => {
                Box::pin(inner.travel(call, notifier))
            }
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
        for task in self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
        let mut members = self.members();
        members.append(self.retired.get_mut().unwrap_or_else(PoisonError::into_inner));
        for instance in members.iter().flat_map(|member| member.all()) {
            instance.retire();
        }
    }
}
