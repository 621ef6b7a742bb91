//! The servers behind the host: how each is reached, started, watched and stopped.

mod attribution;
mod instance;
mod launch;
mod page;
mod quota;
mod spec;
mod status;

pub(crate) use attribution::{CallerKey, Flights};
pub(crate) use instance::{Instance, Owner};
pub use launch::{LaunchError, Reach};
pub use page::Page;
pub(crate) use quota::{InstanceLimit, InstanceQuota};
pub use spec::{InProcess, Upstream};
pub use status::{Health, UpstreamStatus};

use bowline_config::Share;
use bowline_telemetry::UpstreamMetrics;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// One server by its name, with the processes or connections that stand for it.
pub(crate) struct Member {
    pub(crate) name: Arc<str>,
    pub(crate) spec: Upstream,
    owner: Arc<dyn Owner>,
    metrics: Arc<UpstreamMetrics>,
    quota: Arc<InstanceQuota>,
    instances: Mutex<HashMap<Option<CallerKey>, Arc<Instance>>>,
}

/// For how long the instance of a client that is not heard of is kept where its user set no limit.
const KEPT: Duration = Duration::from_secs(3600);

/// Tells every instance from every other, also from those that are gone.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Member {
    pub(crate) fn new(
        name: Arc<str>,
        spec: Upstream,
        owner: Arc<dyn Owner>,
        metrics: Arc<UpstreamMetrics>,
        quota: Arc<InstanceQuota>,
    ) -> Self {
        Self { name, spec, owner, metrics, quota, instances: Mutex::default() }
    }

    fn instances(&self) -> MutexGuard<'_, HashMap<Option<CallerKey>, Arc<Instance>>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether every caller gets an instance of its own.
    pub(crate) fn is_per_client(&self) -> bool {
        self.spec.share == Share::PerClient
    }

    /// The instance that answers this tenant. It is not started by that.
    pub(crate) fn instance(&self, tenant: &CallerKey) -> Arc<Instance> {
        let key = self.is_per_client().then(|| tenant.clone());
        let mut instances = self.instances();
        if let Some(known) = instances.get(&key) {
            return Arc::clone(known);
        }
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let (owner, metrics) = (Arc::clone(&self.owner), Arc::clone(&self.metrics));
        let holder = key.clone().map(|key| (Arc::clone(&self.quota), key));
        let made = Instance::new(id, Arc::clone(&self.name), self.spec.clone(), owner, metrics, holder);
        instances.insert(key, Arc::clone(&made));
        made
    }

    /// The instances there are.
    pub(crate) fn all(&self) -> Vec<Arc<Instance>> {
        self.instances().values().cloned().collect()
    }

    /// Stops what nobody has used for a while, and what belonged to callers that are gone or have been quiet for long.
    pub(crate) async fn sweep(&self) {
        let limit = self.spec.idle.unwrap_or(KEPT);
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

    /// Ends every instance.
    pub(crate) async fn stop(&self) {
        let all: Vec<_> = self.instances().drain().map(|(_, instance)| instance).collect();
        for instance in all {
            instance.stop().await;
        }
    }
}
