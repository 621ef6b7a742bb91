//! What servers tell of their own accord, and who wants to hear it.

use super::{Inner, Wait};
use crate::{
    aggregate::{Catalog, without_prefix},
    upstream::{CallerKey, Instance},
};
use bowline_client::Notification;
use bowline_config::Share;
use bowline_policy::Facts;
use bowline_proto::{service::ClientView, subscribe::Change};
use bowline_types::RpcError;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};
use tokio::sync::watch;

impl Inner {
    /// A server told of a change.
    pub(super) fn hear(&self, instance: &Arc<Instance>, notification: Notification) {
        let shelf = &instance.shelf;
        match notification {
            Notification::ToolsChanged => {
                shelf.tools.forget();
                self.turn();
                self.publish_list(Change::Tools);
            }
            Notification::PromptsChanged => {
                shelf.prompts.forget();
                self.turn();
                self.publish_list(Change::Prompts);
            }
            Notification::ResourcesChanged => {
                shelf.resources.forget();
                shelf.templates.forget();
                self.turn();
                self.publish_list(Change::Resources);
            }
            Notification::ResourceUpdated(params) => {
                for uri in self.shown_uris(instance, &params.uri) {
                    self.publish(&Change::Resource(uri));
                }
            }
            Notification::ElicitationComplete(params) => {
                // Nobody but who was sent there has anything to do with it.
                if let Some((pilot, id)) = instance.visitors.take(&params.elicitation_id) {
                    pilot.visited(id);
                }
            }
            other => tracing::debug!(server = &*instance.name, ?other, "a notification has no further way"),
        }
    }

    /// The URIs under which callers know a resource of a shared server. Callers with servers of their own may be shown it
    /// with a prefix where others are not. None for a resource of another server.
    fn shown_uris(&self, instance: &Arc<Instance>, uri: &str) -> BTreeSet<String> {
        if instance.spec.share != Share::Shared {
            return BTreeSet::new();
        }
        let shown = |catalog: Arc<Catalog>| {
            let uri = catalog.shown_uri(instance, uri);
            let (owner, _) = catalog.owner(&uri)?;
            Arc::ptr_eq(&owner, instance).then_some(uri)
        };
        self.known_catalogs().into_iter().filter_map(shown).collect()
    }

    /// Whether a caller may hear of changes of a resource: not if a rule denies reading it. Where it is not known yet which
    /// server it is of, not if it is denied at any.
    pub(super) fn may_hear(&self, client: &Arc<ClientView>, uri: &str) -> Result<(), RpcError> {
        let denied = |server: &str, uri: &str| {
            let facts = Facts { server, caller: Self::caller(client), ..Facts::default() };
            let refusal = self.guard.denied_reading(&facts, uri)?;
            Some(RpcError::internal(refusal.reason().to_owned()))
        };
        let keys = [Some(CallerKey::of_client(client)), None];
        let known = keys.iter().find_map(|key| self.known(key.as_ref())?.catalog.owner(uri));
        let refused = match known {
            Some((instance, original)) => denied(&instance.name, &original),
            None => self
                .members()
                .iter()
                .find_map(|member| denied(&member.name, without_prefix(&member.name, uri).unwrap_or(uri))),
        };
        refused.map_or(Ok(()), Err)
    }

    /// The shared server that a URI is of, and what it calls it: as some caller was shown it, or as all are.
    async fn shared_owner(&self, uri: &str) -> Option<(Arc<Instance>, String)> {
        let owner = |catalog: &Catalog| {
            catalog.owner(uri).filter(|(instance, _)| instance.spec.share == Share::Shared)
        };
        let known = self.known_catalogs().iter().find_map(|catalog| owner(catalog));
        match known {
            Some(found) => Some(found),
            None => owner(&*self.shared_catalog(Wait::Nobody).await),
        }
    }

    /// A server was started or lost: what it offers may be something else now.
    pub(super) fn instance_turned(&self, instance: &Arc<Instance>) {
        instance.shelf.forget();
        self.turn();
        self.tell_instructions();
        self.publish_lists();
        self.turned.notify_waiters();
    }

    /// Tells clients that come from now on how to use the servers, each under its name.
    pub(super) fn tell_instructions(&self) {
        let Some(server) = self.server.get() else { return };
        let mut told = String::new();
        if let Some(preface) = &self.preface {
            let _ = writeln!(told, "{}\n", preface.trim());
        }
        for member in self.members().into_iter().filter(|member| !member.is_per_client()) {
            let running = member.all().into_iter().find_map(|instance| instance.running());
            if let Some(text) = running.and_then(|client| client.server().instructions.clone()) {
                // Indented, so that no server can begin a section in another's name.
                let text: String = text.chars().take(MAX_INSTRUCTIONS).collect();
                let _ = writeln!(told, "# {}\n", member.name);
                for line in text.trim().lines() {
                    let _ = writeln!(told, "    {line}");
                }
                told.push('\n');
            }
        }
        let told = told.trim_end();
        server.set_instructions((!told.is_empty()).then(|| told.to_owned()));
    }
}

/// Subscribes, at the servers whose they are, to the resources that some client wants to hear of. Servers that are not
/// shared tell nobody: whose news it is could not be told.
pub(super) async fn follow(inner: Weak<Inner>, mut wanted: watch::Receiver<Arc<BTreeSet<String>>>) {
    let mut held: BTreeMap<String, Held> = BTreeMap::new();
    loop {
        let now = Arc::clone(&wanted.borrow_and_update());
        let Some(host) = inner.upgrade() else { return };
        // From here on, so that no server comes up unnoticed meanwhile.
        let turned = Arc::clone(&host.turned);
        let turned = turned.notified();
        let (kept, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut held).into_iter().partition(|(uri, held)| now.contains(uri) && held.holds());
        held = kept;
        let let_go = gone.into_values().map(|held| async move {
            if let Some(client) = held.instance.running().filter(|_| held.holds()) {
                let _ = tokio::time::timeout(PATIENCE, client.unsubscribe(&held.original)).await;
            }
        });
        futures_util::future::join_all(let_go).await;
        if now.iter().any(|uri| !held.contains_key(uri)) {
            let new = now.iter().filter(|uri| !held.contains_key(*uri)).map(|uri| async {
                let (instance, original) = host.shared_owner(uri).await?;
                subscribe(uri.clone(), instance, original).await
            });
            held.extend(futures_util::future::join_all(new).await.into_iter().flatten());
        }
        // Following does not keep the host.
        drop(host);
        tokio::select! {
            changed = wanted.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = turned => {}
        }
    }
}

/// A resource that is followed. Its server is not stopped meanwhile.
struct Held {
    instance: Arc<Instance>,
    original: String,
    /// Which process of the server was told.
    start: u64,
}

impl Held {
    /// Whether the process that was told still runs.
    fn holds(&self) -> bool {
        self.instance.starts() == self.start && self.instance.running().is_some()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.instance.followed.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn subscribe(uri: String, instance: Arc<Instance>, original: String) -> Option<(String, Held)> {
    let subscribing = async {
        let client = instance.client().await.ok()?;
        match client.subscribe(&original).await {
            Ok(()) => Some(()),
            Err(error) => {
                tracing::debug!(uri, %error, "a server does not tell of a resource");
                None
            }
        }
    };
    tokio::time::timeout(PATIENCE, subscribing).await.ok()??;
    instance.followed.fetch_add(1, Ordering::Relaxed);
    let start = instance.starts();
    Some((uri, Held { instance, original, start }))
}

/// How long a server may take to agree to tell of a resource.
const PATIENCE: Duration = Duration::from_secs(30);
/// How much of a server's instructions is passed on, in characters.
const MAX_INSTRUCTIONS: usize = 16 * 1024;
