//! The servers behind the host: how each is reached, started, supervised and stopped.

mod call_handle;
mod caller_key;
mod credentials;
mod http_upstream;
mod instance;
mod instance_quota;
mod launch;
mod list_cache;
mod login_audit;
mod login_consent;
mod login_settings;
mod login_state;
mod own_connection;
mod running_calls;
mod spec;
mod status;
mod url_elicitations;

pub(crate) use call_handle::{CallHandle, PendingQuestion, TimeoutPause};
pub(crate) use caller_key::{CallerKey, network};
pub(crate) use credentials::{Credentials, account_of, user_of_account};
pub use http_upstream::HttpUpstream;
pub(crate) use instance::{Instance, InstanceOwner, ServerTasks};
pub(crate) use instance_quota::{InstanceLimit, InstanceQuota};
pub use launch::{LaunchError, Reach};
pub(crate) use list_cache::ListCache;
pub(crate) use login_consent::{AskLogin, LoginPage};
pub use login_settings::{LoginSettings, LoginStorage, MachineLogin};
pub(crate) use own_connection::OwnConnection;
pub use spec::Upstream;
pub use status::{Health, UpstreamStatus};
pub(crate) use url_elicitations::UrlElicitations;

use bowline_config::Share;
use bowline_telemetry::UpstreamMetrics;
use credentials::login_advice;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// A server of the host with its instances: one, or one per client.
pub(crate) struct Member {
    pub(crate) name: Arc<str>,
    pub(crate) spec: Upstream,
    owner: Arc<dyn InstanceOwner>,
    metrics: Arc<UpstreamMetrics>,
    quota: Arc<InstanceQuota>,
    instances: Mutex<HashMap<Option<CallerKey>, Arc<Instance>>>,
}

/// How long the instance of an inactive client is kept if no limit is configured.
const IDLE_CLIENT: Duration = Duration::from_secs(3600);

/// The id of the next instance. Ids are never reused.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Member {
    pub(crate) fn new(
        name: Arc<str>,
        spec: Upstream,
        owner: Arc<dyn InstanceOwner>,
        metrics: Arc<UpstreamMetrics>,
        quota: Arc<InstanceQuota>,
    ) -> Self {
        Self { name, spec, owner, metrics, quota, instances: Mutex::default() }
    }

    fn instances(&self) -> MutexGuard<'_, HashMap<Option<CallerKey>, Arc<Instance>>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether each client has its own instance.
    pub(crate) fn is_per_client(&self) -> bool {
        self.spec.share == Share::PerClient
    }

    /// Returns the instance for a tenant. Does not start it.
    pub(crate) fn instance(&self, tenant: &CallerKey) -> Arc<Instance> {
        let key = self.is_per_client().then(|| tenant.clone());
        let mut instances = self.instances();
        if let Some(existing) = instances.get(&key) {
            return Arc::clone(existing);
        }
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let (owner, metrics) = (Arc::clone(&self.owner), Arc::clone(&self.metrics));
        let tenant = key.clone().map(|key| (Arc::clone(&self.quota), key));
        let mut spec = self.spec.clone();
        if let Some(targets) = &spec.user_targets {
            let account = key.as_ref().and_then(CallerKey::user).and_then(|user| account_of(&user));
            spec.target = targets(account.as_deref());
            spec.login_advice = account.map(|account| login_advice(&self.name, Some(&account)).into());
        }
        let instance = Instance::new(id, Arc::clone(&self.name), spec, owner, metrics, tenant);
        instances.insert(key, Arc::clone(&instance));
        instance
    }

    /// Returns all instances.
    pub(crate) fn all(&self) -> Vec<Arc<Instance>> {
        self.instances().values().cloned().collect()
    }

    /// Stops unused instances, and those of clients that have gone or have been inactive for long.
    pub(crate) async fn sweep(&self) {
        let limit = self.spec.idle_stop.unwrap_or(IDLE_CLIENT);
        let orphaned: Vec<_> = {
            let mut instances = self.instances();
            let is_orphaned = |(key, instance): &(&Option<CallerKey>, &Arc<Instance>)| {
                key.as_ref().is_some_and(|key| key.is_gone() || instance.is_idle(limit))
            };
            let gone: Vec<_> = instances.iter().filter(is_orphaned).map(|(key, _)| key.clone()).collect();
            gone.iter().filter_map(|key| instances.remove(key)).collect()
        };
        for instance in orphaned {
            instance.stop().await;
        }
        for instance in self.all() {
            instance.stop_when_idle().await;
            instance.watch_roots().await;
        }
    }

    /// Stops all instances.
    pub(crate) async fn stop(&self) {
        let all: Vec<_> = self.instances().drain().map(|(_, instance)| instance).collect();
        for instance in all {
            instance.stop().await;
        }
    }
}
