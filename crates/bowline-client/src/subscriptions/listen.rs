//! A stream of changes: a subscription of its own in the modern era, a view of what is told anyway in the legacy ones.

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

/// A stream of changes, made by [`Client::listen`](crate::Client::listen).
///
/// A change that happens again before it was looked at is told once. When the connection is lost and comes back, all
/// that was asked for counts as changed. The stream ends when the server ends it or the connection is gone for good;
/// [`error`](Self::error) says why. Dropping it ends the subscription.
pub struct Listen {
    core: Arc<Core>,
    view: Arc<View>,
    granted: SubscriptionFilter,
    /// The resources a legacy server was asked to watch.
    uris: Vec<String>,
}

impl Listen {
    /// The part of the filter that the server honors.
    pub fn granted(&self) -> &SubscriptionFilter {
        &self.granted
    }

    /// Waits for the next change; `None` at the end.
    pub async fn next(&mut self) -> Option<Change> {
        poll_fn(|context| self.view.poll(context)).await
    }

    /// Why the stream ended, when it did not end in order.
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

/// Starts to listen.
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
    listen.granted = told_anyway(&view.filter, &negotiated.capabilities);
    core.shared.views.add(view);
    for uri in listen.granted.resource_subscriptions.clone().unwrap_or_default() {
        // Counted before the request: when it fails, dropping `listen` takes it back.
        let first = acquire(&core.shared, &uri);
        listen.uris.push(uri.clone());
        if first {
            core.subscribe_legacy(&uri).await?;
        }
    }
    Ok(listen)
}

/// What a legacy server tells of a filter.
fn told_anyway(filter: &SubscriptionFilter, capabilities: &ServerCapabilities) -> SubscriptionFilter {
    let when =
        |wanted: Option<bool>, capability| wanted.filter(|wanted| *wanted && capabilities.has(capability));
    SubscriptionFilter {
        tools_list_changed: when(filter.tools_list_changed, Capability::ToolsListChanged),
        prompts_list_changed: when(filter.prompts_list_changed, Capability::PromptsListChanged),
        resources_list_changed: when(filter.resources_list_changed, Capability::ResourcesListChanged),
        resource_subscriptions: filter
            .resource_subscriptions
            .clone()
            .filter(|_| capabilities.has(Capability::ResourcesSubscribe)),
        ..SubscriptionFilter::default()
    }
}

/// Counts one more listener of a resource. True for the first.
pub(super) fn acquire(shared: &Shared, uri: &str) -> bool {
    let mut subscribed = lock(&shared.views.subscribed);
    let count = subscribed.entry(uri.to_owned()).or_default();
    *count += 1;
    *count == 1
}

/// Counts one listener less. True for the last.
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

/// Opens a subscription of the modern era. The lease goes to `view`, or to the caller.
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

/// Who listened before a connection was opened. Only for these it is asked again; whoever comes later asks by itself.
pub(crate) struct Earlier {
    views: Vec<Arc<View>>,
    uris: Vec<String>,
}

impl Earlier {
    /// Those who listen now.
    pub(crate) fn of(shared: &Shared) -> Self {
        Self { views: shared.views.all(), uris: lock(&shared.views.subscribed).keys().cloned().collect() }
    }
}

/// Asks for everything again after the connection was lost.
pub(crate) async fn reopen(core: &Arc<Core>, connection: &Arc<Connection>, earlier: Earlier) {
    let shared = &core.shared;
    if connection.is_modern() {
        for view in earlier.views {
            drop(lock(&view.lease).take());
            match open(connection, Target::View(Arc::clone(&view)), Some(&view)).await {
                Ok(_) => view.hear_everything(),
                Err(error) if connection.is_closed() => return drop(error),
                Err(error) => view.end(Some(error)),
            }
        }
        if !shared.views.managed.lock().await.reopen(shared, connection).await {
            shared.views.lose(&Target::Handler(SubscriptionFilter::default()));
        }
        return;
    }
    for uri in earlier.uris {
        let params =
            RawJson::of(&serde_json::json!({ "uri": uri })).unwrap_or_else(|_| RawJson::empty_object());
        let asked = core.send_on(connection, Method::Subscribe.as_str(), &params, Options::new(shared)).await;
        if let Err(error) = asked {
            tracing::warn!(%error, uri, "a resource could not be subscribed to again");
        }
    }
    earlier.views.iter().for_each(|view| view.hear_everything());
}
