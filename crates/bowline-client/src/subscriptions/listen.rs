//! A stream of changes: its own subscription in the modern revision, a view of all notifications in legacy ones.

use super::{End, Route, Target, View};
use crate::{
    Error, Result,
    connection::Connection,
    core::Core,
    request::Options,
    shared::{Shared, lock},
};
use bowline_proto::subscribe::Change;
use bowline_types::{
    Capability, Method, RawJson, ServerCapabilities, SubscriptionFilter, SubscriptionsListenParams,
};
use futures_core::Stream;
use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// A stream of changes, from [`Client::listen`](crate::Client::listen).
///
/// A change that repeats before it was read is reported once. After a reconnect, everything in the filter is reported
/// as changed. The stream ends if the server ends it or the connection is lost permanently; [`error`](Self::error) returns
/// the reason. Dropping it ends the subscription.
pub struct Listen {
    core: Arc<Core>,
    view: Arc<View>,
    granted: SubscriptionFilter,
    /// The resources that a legacy server was asked to watch.
    uris: Vec<String>,
}

impl Listen {
    /// Returns the part of the filter that the server granted.
    pub fn granted(&self) -> &SubscriptionFilter {
        &self.granted
    }

    /// Returns the next change, or `None` at the end.
    pub async fn next(&mut self) -> Option<Change> {
        poll_fn(|context| self.view.poll(context)).await
    }

    /// Returns whether the server still sends changes.
    pub(crate) fn is_open(&self) -> bool {
        lock(&self.view.queue).ended.is_none()
    }

    /// Returns the error that ended the stream, if there is one.
    pub fn error(&self) -> Option<Error> {
        match &lock(&self.view.queue).ended {
            Some(End::Failed(error)) => Some(error.clone()),
            Some(End::InOrder) | None => None,
        }
    }
}

impl Stream for Listen {
    type Item = Change;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Change>> {
        self.view.poll(context)
    }
}

impl Drop for Listen {
    fn drop(&mut self) {
        let shared = &self.core.shared;
        shared.views.remove(&self.view);
        drop(lock(&self.view.lease).take());
        for uri in &self.uris {
            if release(shared, uri) {
                self.core.unsubscribe_in_passing(uri);
            }
        }
    }
}

impl fmt::Debug for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listen").field("granted", &self.granted).finish_non_exhaustive()
    }
}

/// Opens the stream.
pub(crate) async fn start(core: &Arc<Core>, filter: SubscriptionFilter) -> Result<Listen> {
    let connection = core.connection().await?;
    let view = Arc::new(View::new(filter));
    let mut listen =
        Listen { core: Arc::clone(core), view, granted: SubscriptionFilter::default(), uris: Vec::new() };
    let view = &listen.view;
    if connection.is_modern() {
        listen.granted = open(&connection, Target::View(Arc::clone(view)), Some(view)).await?.1;
        core.shared.views.add(view);
        return Ok(listen);
    }
    let Some(negotiated) = connection.negotiated() else {
        return Err(Error::closed("the handshake is not complete"));
    };
    listen.granted = granted_by_capabilities(&view.filter, &negotiated.capabilities);
    core.shared.views.add(view);
    for uri in listen.granted.resource_subscriptions.clone().unwrap_or_default() {
        // Counted before the request; if that fails, dropping `listen` reverts it.
        let first = acquire(&core.shared, &uri);
        listen.uris.push(uri.clone());
        if first {
            core.subscribe_legacy(&uri).await?;
        }
    }
    Ok(listen)
}

/// Returns the part of a filter that a legacy server reports anyway.
fn granted_by_capabilities(
    filter: &SubscriptionFilter,
    capabilities: &ServerCapabilities,
) -> SubscriptionFilter {
    let when =
        |wanted: Option<bool>, capability| wanted.filter(|wanted| *wanted && capabilities.has(capability));
    let mut granted = SubscriptionFilter::new();
    granted.tools_list_changed = when(filter.tools_list_changed, Capability::ToolsListChanged);
    granted.prompts_list_changed = when(filter.prompts_list_changed, Capability::PromptsListChanged);
    granted.resources_list_changed = when(filter.resources_list_changed, Capability::ResourcesListChanged);
    granted.resource_subscriptions =
        filter.resource_subscriptions.clone().filter(|_| capabilities.has(Capability::ResourcesSubscribe));
    granted
}

/// Adds a listener of a resource. Returns `true` for the first.
pub(super) fn acquire(shared: &Shared, uri: &str) -> bool {
    let mut subscribed = lock(&shared.views.subscribed);
    let count = subscribed.entry(uri.to_owned()).or_default();
    *count += 1;
    *count == 1
}

/// Removes a listener of a resource. Returns `true` for the last.
pub(super) fn release(shared: &Shared, uri: &str) -> bool {
    let mut subscribed = lock(&shared.views.subscribed);
    let Some(count) = subscribed.get_mut(uri) else { return false };
    *count -= 1;
    if *count > 0 {
        return false;
    }
    subscribed.remove(uri);
    true
}

/// Opens a subscription of the modern revision. The lease is stored in `view`, or returned.
pub(super) async fn open(
    connection: &Arc<Connection>,
    target: Target,
    view: Option<&Arc<View>>,
) -> Result<(Option<crate::connection::InFlight>, SubscriptionFilter)> {
    let filter = match &target {
        Target::View(view) => view.filter.clone(),
        Target::Handler(filter) => filter.clone(),
    };
    let shared = Arc::clone(&connection.shared);
    let Some(revision) = connection.revision() else {
        return Err(Error::closed("the handshake is not complete"));
    };
    let params = RawJson::of(&SubscriptionsListenParams::new(filter))
        .map_err(|error| Error::misuse(format!("the filter cannot be written: {error}")))?;
    let (route, granted) = Route::new(target);
    let fill =
        |_: &_| shared.profile.params(revision, params.as_bytes(), Options::new(&shared).for_proto(None));
    let (lease, granted) = connection.listen(fill, route, granted).await?;
    match view {
        Some(view) => {
            *lock(&view.lease) = Some(lease);
            Ok((None, granted))
        }
        None => Ok((Some(lease), granted)),
    }
}

/// The listeners before a connection was opened. Only these are resubscribed; later ones subscribe by themselves.
pub(crate) struct Earlier {
    views: Vec<Arc<View>>,
    uris: Vec<String>,
}

impl Earlier {
    /// Returns the current listeners.
    pub(crate) fn of(shared: &Shared) -> Self {
        Self { views: shared.views.all(), uris: lock(&shared.views.subscribed).keys().cloned().collect() }
    }
}

/// Subscribes again after a reconnect.
pub(crate) async fn reopen(core: &Arc<Core>, connection: &Arc<Connection>, earlier: Earlier) {
    let shared = &core.shared;
    if connection.is_modern() {
        for view in earlier.views {
            drop(lock(&view.lease).take());
            match open(connection, Target::View(Arc::clone(&view)), Some(&view)).await {
                Ok(_) => view.report_all_changed(),
                Err(error) if connection.is_closed() => return drop(error),
                Err(error) => view.end(Some(error)),
            }
        }
        if !shared.views.managed.lock().await.reopen(shared, connection).await {
            shared.views.add_lost(&Target::Handler(SubscriptionFilter::default()));
        }
        return;
    }
    for uri in earlier.uris {
        let params =
            RawJson::of(&serde_json::json!({ "uri": uri })).unwrap_or_else(|_| RawJson::empty_object());
        let asked = core.send_on(connection, Method::Subscribe.as_str(), &params, Options::new(shared)).await;
        if let Err(error) = asked {
            tracing::warn!(%error, uri, "cannot renew the subscription to a resource");
        }
    }
    earlier.views.iter().for_each(|view| view.report_all_changed());
}
