//! Subscribes at servers to the resources that clients of the host subscribed to.

use super::router::Router;
use crate::upstream::Instance;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};
use tokio::sync::{Notify, watch};

/// How long a server may take to answer a subscription request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Keeps the subscriptions at servers in step with `wanted`. Per-client servers are not subscribed to, because their
/// notifications could not be attributed to a client.
pub(super) async fn run(
    router: Weak<Router>,
    servers_changed: Arc<Notify>,
    mut wanted: watch::Receiver<Arc<BTreeSet<String>>>,
) {
    let mut active: BTreeMap<String, Subscription> = BTreeMap::new();
    loop {
        let uris = Arc::clone(&wanted.borrow_and_update());
        let Some(strong) = router.upgrade() else { return };
        // Created before the servers are looked at, so that no start is missed.
        let servers_changed = servers_changed.notified();
        let (kept, ended): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut active)
            .into_iter()
            .partition(|(uri, subscription)| uris.contains(uri) && subscription.is_valid());
        active = kept;
        let unsubscribe = ended.into_values().map(|subscription| async move {
            if let Some(client) = subscription.instance.running().filter(|_| subscription.is_valid()) {
                let _ = tokio::time::timeout(TIMEOUT, client.unsubscribe(&subscription.uri)).await;
            }
        });
        futures_util::future::join_all(unsubscribe).await;
        let missing = uris.iter().filter(|uri| !active.contains_key(*uri)).map(|uri| async {
            let (instance, original) = strong.shared_owner(uri).await?;
            Some((uri.clone(), subscribe(instance, original).await?))
        });
        let added: Vec<_> = futures_util::future::join_all(missing).await.into_iter().flatten().collect();
        active.extend(added);
        // Waiting must not keep the host alive.
        drop(strong);
        tokio::select! {
            changed = wanted.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = servers_changed => {}
        }
    }
}

/// A subscription at a server. The server is not stopped as unused while it exists.
struct Subscription {
    instance: Arc<Instance>,
    /// The URI at the server.
    uri: String,
    /// The start of the server that the subscription belongs to.
    start: u64,
}

impl Subscription {
    /// Returns whether the process that was subscribed to still runs.
    fn is_valid(&self) -> bool {
        self.instance.starts() == self.start && self.instance.running().is_some()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.instance.subscriptions.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn subscribe(instance: Arc<Instance>, uri: String) -> Option<Subscription> {
    let subscribing = async {
        let client = instance.client().await.ok()?;
        match client.subscribe(&uri).await {
            Ok(()) => Some(()),
            Err(error) => {
                tracing::debug!(uri, %error, "a server refused a subscription");
                None
            }
        }
    };
    tokio::time::timeout(TIMEOUT, subscribing).await.ok()??;
    instance.subscriptions.fetch_add(1, Ordering::Relaxed);
    let start = instance.starts();
    Some(Subscription { instance, uri, start })
}
