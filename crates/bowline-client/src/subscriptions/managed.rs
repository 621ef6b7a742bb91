//! The shared subscription of a client with a modern server.

use super::{
    Target,
    listen::{acquire, open, release},
};
use crate::{
    Error, Result,
    connection::{Connection, InFlight},
    core::Core,
    shared::Shared,
};
use bowline_types::{Capability, SubscriptionFilter};
use std::{collections::BTreeSet, sync::Arc};

/// The subscribed resources, and the subscription for all of them.
#[derive(Debug, Default)]
pub(crate) struct Managed {
    uris: BTreeSet<String>,
    lease: Option<InFlight>,
}

impl Managed {
    /// Opens a new subscription with the current filter, then ends the previous one, so that nothing is missed.
    async fn renew(&mut self, shared: &Shared, connection: &Arc<Connection>) -> Result<SubscriptionFilter> {
        let filter = self.filter(shared, connection);
        if filter.is_empty() {
            self.lease = None;
            return Ok(filter);
        }
        let (lease, granted) = open(connection, Target::Handler(filter), None).await?;
        self.lease = lease;
        Ok(granted)
    }

    fn filter(&self, shared: &Shared, connection: &Connection) -> SubscriptionFilter {
        let mut filter = SubscriptionFilter::default();
        if !self.uris.is_empty() {
            filter.resource_subscriptions = Some(self.uris.iter().cloned().collect());
        }
        let Some(negotiated) = connection.negotiated().filter(|_| shared.handlers.handles_changes()) else {
            return filter;
        };
        let offered = |capability| negotiated.capabilities.has(capability).then_some(true);
        filter.tools_list_changed = offered(Capability::ToolsListChanged);
        filter.prompts_list_changed = offered(Capability::PromptsListChanged);
        filter.resources_list_changed = offered(Capability::ResourcesListChanged);
        filter
    }

    /// Opens the subscription on a new connection.
    ///
    /// Returns `false` if it failed but may succeed later.
    pub(crate) async fn reopen(&mut self, shared: &Shared, connection: &Arc<Connection>) -> bool {
        self.lease = None;
        let Err(error) = self.renew(shared, connection).await else { return true };
        tracing::warn!(%error, "cannot subscribe to changes of the server");
        !error.is_passing()
    }
}

impl Core {
    /// Subscribes to changes of a resource.
    pub(crate) async fn subscribe(&self, uri: &str) -> Result<()> {
        let connection =
            self.connection_with(Capability::ResourcesSubscribe, "subscriptions to resources").await?;
        if !connection.is_modern() {
            if !acquire(&self.shared, uri) {
                return Ok(());
            }
            let subscribed = self.subscribe_legacy(uri).await;
            if subscribed.is_err() {
                release(&self.shared, uri);
            }
            return subscribed;
        }
        let mut managed = self.shared.views.managed.lock().await;
        if !managed.uris.insert(uri.to_owned()) {
            return Ok(());
        }
        let refused = match managed.renew(&self.shared, &connection).await {
            Ok(granted) if granted.resource_subscriptions.iter().flatten().any(|known| known == uri) => {
                return Ok(());
            }
            Ok(_) => Error::unsupported(format!("a subscription to `{uri}`")),
            Err(error) => error,
        };
        managed.uris.remove(uri);
        Err(refused)
    }

    /// Ends the subscription to a resource.
    pub(crate) async fn unsubscribe(&self, uri: &str) -> Result<()> {
        let connection =
            self.connection_with(Capability::ResourcesSubscribe, "subscriptions to resources").await?;
        if !connection.is_modern() {
            return if release(&self.shared, uri) { self.unsubscribe_legacy(uri).await } else { Ok(()) };
        }
        let mut managed = self.shared.views.managed.lock().await;
        if managed.uris.remove(uri) {
            managed.renew(&self.shared, &connection).await?;
        }
        Ok(())
    }
}
