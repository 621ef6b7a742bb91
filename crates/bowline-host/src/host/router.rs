//! The router: the servers of the host, what each offers, and the catalog that a caller sees.

use super::{asker::Asker, tasks::Tasks};
use crate::{
    aggregate::{Catalog, ServerLists, may_be_of},
    upstream::{CallerKey, Instance, InstanceOwner, InstanceQuota, Member, Upstream},
};
use bowline_config::Share;
use bowline_telemetry::Metrics;
use bowline_types::RpcError;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// How long a list waits for servers that are starting. Installed programs start well within it, so that clients get one
/// complete list, and a user who waits for the list does not take the client for dead.
const START_GRACE: Duration = Duration::from_secs(5);
/// For how many tenants a catalog is cached.
const MAX_CATALOGS: usize = 1000;

/// The servers of the host, and a cached catalog per tenant.
pub(super) struct Router {
    members: RwLock<BTreeMap<Arc<str>, Arc<Member>>>,
    /// Removed servers that finish their calls.
    retired: Mutex<Vec<Arc<Member>>>,
    /// The catalogs by tenant. `None` is the catalog of the shared servers.
    catalogs: Mutex<HashMap<Option<CallerKey>, CachedCatalog>>,
    /// Counts everything that may change a catalog.
    epoch: AtomicU64,
    /// Limits how many per-client servers run.
    client_servers: Arc<InstanceQuota>,
    owner: Arc<dyn InstanceOwner>,
    asker: Arc<Asker>,
    metrics: Arc<Metrics>,
    /// The longest name of a tool or prompt.
    pub(super) max_name: usize,
    tasks: Arc<Tasks>,
}

#[derive(Clone)]
struct CachedCatalog {
    epoch: u64,
    /// Whether every server was asked for it. Otherwise a missing name may still exist.
    complete: bool,
    catalog: Arc<Catalog>,
}

/// Which servers are asked for their lists before a catalog is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait<'a> {
    /// None.
    Never,
    /// The servers that run. Starts none.
    Running,
    /// None, unless there are servers that were never asked: then as [`Briefly`](Self::Briefly).
    IfIncomplete,
    /// The instance with this id.
    Only(u64),
    /// The servers that something of this name may belong to.
    Owners(&'a str),
    /// All servers except those that take longer than the grace period to start. Clients are notified when they are ready.
    Briefly,
    /// All servers, however long they take to start.
    Everybody,
}

impl Router {
    pub(super) fn new(
        client_servers: Arc<InstanceQuota>,
        owner: Arc<dyn InstanceOwner>,
        asker: Arc<Asker>,
        metrics: Arc<Metrics>,
        max_name: usize,
        tasks: Arc<Tasks>,
    ) -> Arc<Self> {
        Arc::new(Self {
            members: RwLock::default(),
            retired: Mutex::default(),
            catalogs: Mutex::default(),
            epoch: AtomicU64::new(0),
            client_servers,
            owner,
            asker,
            metrics,
            max_name,
            tasks,
        })
    }

    /// Returns the servers, ordered by name.
    pub(super) fn members(&self) -> Vec<Arc<Member>> {
        self.members.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Returns the servers together with the removed ones, which are forgotten.
    pub(super) fn drain_retired(&self) -> Vec<Arc<Member>> {
        let mut members = self.members();
        members.append(&mut self.retired.lock().unwrap_or_else(PoisonError::into_inner));
        members
    }

    /// Adds a server. One of the same name is retired.
    pub(super) fn insert(self: &Arc<Self>, name: &str, upstream: Upstream) -> Arc<Member> {
        let (owner, quota) = (Arc::clone(&self.owner), Arc::clone(&self.client_servers));
        let metrics = self.metrics.upstream(name);
        let member = Arc::new(Member::new(name.into(), upstream, owner, metrics, quota));
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        let replaced = members.insert(name.into(), Arc::clone(&member));
        drop(members);
        self.invalidate();
        if let Some(replaced) = replaced {
            self.retire(replaced);
        }
        member
    }

    /// Removes a server. Returns false if there is none of this name.
    pub(super) fn remove(self: &Arc<Self>, name: &str) -> bool {
        let removed = self.members.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.invalidate();
        let Some(removed) = removed else { return false };
        self.retire(removed);
        true
    }

    /// Invalidates all catalogs.
    pub(super) fn invalidate(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }

    /// Starts a shared server and reads its lists, so that they are ready for the first request.
    pub(super) fn start(self: &Arc<Self>, member: &Arc<Member>) {
        if member.spec.share != Share::Shared {
            return;
        }
        let instance = member.instance(&CallerKey::User(None));
        let router = Arc::downgrade(self);
        self.tasks.spawn(async move {
            if instance.client().await.is_err() {
                return;
            }
            if let Some(router) = router.upgrade() {
                router.lists(instance, true).await;
            }
        });
    }

    /// Stops a removed server after its calls have finished.
    fn retire(self: &Arc<Self>, member: Arc<Member>) {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&member));
        let router = Arc::downgrade(self);
        self.tasks.spawn(async move {
            for instance in member.all() {
                instance.running_calls.drained().await;
            }
            member.stop().await;
            if let Some(router) = router.upgrade() {
                let mut retired = router.retired.lock().unwrap_or_else(PoisonError::into_inner);
                retired.retain(|other| !Arc::ptr_eq(other, &member));
            }
        });
    }

    /// Returns the catalog of a tenant: the cached one, or a new one after asking the servers that `wait` names.
    pub(super) async fn catalog(&self, tenant: &CallerKey, wait: Wait<'_>) -> Arc<Catalog> {
        let members = self.members();
        let key = members.iter().any(|member| member.is_per_client()).then(|| tenant.clone());
        self.catalog_of(members, key, tenant, wait).await
    }

    /// Returns the catalog of the shared servers. Starts no per-client server.
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
        let cached = self.cached(key.as_ref());
        let was_complete = cached.as_ref().is_some_and(|cached| cached.complete);
        let wait = if wait == Wait::IfIncomplete && !was_complete { Wait::Briefly } else { wait };
        if let Some(CachedCatalog { catalog, .. }) = cached.filter(|cached| cached.epoch == epoch) {
            let is_usable = match wait {
                Wait::Never | Wait::IfIncomplete => true,
                Wait::Only(_) | Wait::Owners(_) => false,
                Wait::Running => members.iter().all(|member| {
                    let instance = member.instance(tenant);
                    instance.running().is_none() || instance.lists.is_fresh()
                }),
                Wait::Briefly | Wait::Everybody => {
                    was_complete && members.iter().all(|member| member.instance(tenant).lists.is_fresh())
                }
            };
            if is_usable {
                return catalog;
            }
        }
        let lists = members.iter().map(|member| {
            let instance = member.instance(tenant);
            let is_asked = match wait {
                Wait::Never | Wait::IfIncomplete => false,
                Wait::Running => instance.running().is_some(),
                Wait::Only(id) => instance.id == id,
                Wait::Owners(name) => may_be_of(self.max_name, &member.name, name),
                Wait::Briefly | Wait::Everybody => true,
            };
            async move {
                let is_up = wait != Wait::Briefly
                    || instance.lists.is_fresh()
                    || instance.is_up_within(START_GRACE).await;
                (is_up, self.lists(instance, is_asked && is_up).await)
            }
        });
        let (are_up, lists): (Vec<_>, Vec<_>) =
            futures_util::future::join_all(lists).await.into_iter().unzip();
        let lists: Vec<_> = lists.into_iter().flatten().collect();
        let catalog = Arc::new(Catalog::of(&lists, self.max_name));
        for name in &catalog.collisions {
            tracing::warn!(name, "two servers use this name; one of them is listed under a longer name");
        }
        let complete = was_complete
            || match wait {
                Wait::Never | Wait::Running | Wait::IfIncomplete | Wait::Only(_) | Wait::Owners(_) => false,
                Wait::Briefly => are_up.iter().all(|is_up| *is_up),
                Wait::Everybody => true,
            };
        let mut catalogs = self.catalogs.lock().unwrap_or_else(PoisonError::into_inner);
        catalogs.retain(|key, _| !key.as_ref().is_some_and(CallerKey::is_gone));
        if catalogs.len() >= MAX_CATALOGS {
            catalogs.clear();
        }
        catalogs.insert(key, CachedCatalog { epoch, complete, catalog: Arc::clone(&catalog) });
        catalog
    }

    fn cached(&self, key: Option<&CallerKey>) -> Option<CachedCatalog> {
        self.catalogs.lock().unwrap_or_else(PoisonError::into_inner).get(&key.cloned()).cloned()
    }

    /// Returns the cached catalog of a tenant; that of the shared servers for `None`.
    pub(super) fn cached_catalog(&self, tenant: Option<&CallerKey>) -> Option<Arc<Catalog>> {
        self.cached(tenant).map(|cached| cached.catalog)
    }

    /// Returns the cached catalogs of all tenants.
    fn cached_catalogs(&self) -> Vec<Arc<Catalog>> {
        let catalogs = self.catalogs.lock().unwrap_or_else(PoisonError::into_inner);
        catalogs.values().map(|cached| Arc::clone(&cached.catalog)).collect()
    }

    /// Reports the servers whose tools are missing from a list because they are starting, each once per start.
    pub(super) fn report_starting(&self, tenant: &CallerKey) {
        let mut members = self.members();
        members.retain(|member| {
            let instance = member.instance(tenant);
            instance.is_starting() && instance.lists.set_missing()
        });
        if !members.is_empty() {
            let names: Vec<_> = members.iter().map(|member| &*member.name).collect();
            tracing::info!(
                servers = names.join(", "),
                "a list is incomplete because servers are still starting; clients are notified when they are ready"
            );
        }
    }

    /// Returns the servers that are starting. Their tools are missing from lists until they are ready.
    pub(super) fn starting(&self, tenant: &CallerKey) -> Vec<String> {
        let members = self.members();
        let starting = members.iter().filter(|member| member.instance(tenant).is_starting());
        starting.map(|member| member.name.to_string()).collect()
    }

    /// Returns the error for an unknown tool or prompt: its server may be unavailable.
    pub(super) fn unknown_name(&self, kind: &str, name: &str, tenant: &CallerKey) -> RpcError {
        let members = self.members();
        let mut owners = members.iter().filter(|member| may_be_of(self.max_name, &member.name, name));
        let unknown = || RpcError::invalid_params(format!("unknown {kind} `{name}`"));
        owners.find_map(|member| member.instance(tenant).failure()).unwrap_or_else(unknown)
    }

    /// Returns the URIs under which callers know a resource of a shared server. Depending on their per-client servers, callers
    /// may see it with or without a prefix. Empty if the resource belongs to another server.
    pub(super) fn shown_uris(&self, instance: &Arc<Instance>, uri: &str) -> BTreeSet<String> {
        if instance.spec.share != Share::Shared {
            return BTreeSet::new();
        }
        let shown = |catalog: Arc<Catalog>| {
            let uri = catalog.shown_uri(instance, uri);
            let (owner, _) = catalog.owner(&uri)?;
            Arc::ptr_eq(&owner, instance).then_some(uri)
        };
        self.cached_catalogs().into_iter().filter_map(shown).collect()
    }

    /// Returns the shared server that a URI belongs to, and the URI at that server.
    pub(super) async fn shared_owner(&self, uri: &str) -> Option<(Arc<Instance>, String)> {
        let owner = |catalog: &Catalog| {
            catalog.owner(uri).filter(|(instance, _)| instance.spec.share == Share::Shared)
        };
        match self.cached_catalogs().iter().find_map(|catalog| owner(catalog)) {
            Some(found) => Some(found),
            None => owner(&*self.shared_catalog(Wait::IfIncomplete).await),
        }
    }

    /// Returns the lists of a server. A server that is not asked, or that cannot be reached, contributes what it last listed,
    /// and does not affect other servers.
    async fn lists(&self, instance: Arc<Instance>, ask: bool) -> Option<ServerLists> {
        let cache = &instance.lists;
        if !ask {
            return ServerLists::last_known(&instance);
        }
        let limit = instance.spec.startup_timeout + instance.spec.timeout;
        let read = async {
            let tools = cache.tools.get(&instance).await?;
            let (prompts, resources, templates) = tokio::join!(
                cache.prompts.get(&instance),
                cache.resources.get(&instance),
                cache.templates.get(&instance),
            );
            Ok::<_, RpcError>((tools, prompts?, resources?, templates?))
        };
        let name = &instance.name;
        let problem = match tokio::time::timeout(limit, read).await {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(match instance.running() {
                Some(_) => format!("the server `{name}`: {}", error.message),
                None => error.message.to_string(),
            }),
            Err(_) => {
                let seconds = limit.as_secs();
                Some(format!("the server `{name}` did not list its tools within {seconds} s"))
            }
        };
        // Clients list often, so a server that stays broken is reported once.
        if cache.set_problem(problem.clone())
            && let Some(problem) = problem
        {
            tracing::warn!(
                server = &**name,
                problem,
                "cannot get the lists of a server; using the last known ones, if any"
            );
        }
        let lists = ServerLists::last_known(&instance)?;
        self.asker.check_definitions(&instance, &lists.definitions).await;
        Some(lists)
    }
}
