//! Subscriptions of a connection: `resources/subscribe` and `subscriptions/listen`.
//!
//! Changes are recorded, not queued: if something changes several times before the connection can write, the client
//! is notified once, and a slow reader costs no memory.

use crate::{
    caller::Caller,
    encode,
    scope::Scopes,
    server::Profile,
    service::{ClientView, Extensions},
    uri,
};
use bowline_types::{
    CancelledParams, Capability, Id, Method, RawJson, ResourceUpdatedParams, RpcError, ServerCapabilities,
    SubscriptionFilter, TASKS_EXTENSION, meta,
};
use bytes::Bytes;
use std::{collections::BTreeSet, fmt, sync::Arc};

/// Maximum number of open `subscriptions/listen` per connection.
pub const MAX_LISTENS: usize = 64;
/// Maximum number of URIs per subscription.
pub const MAX_URIS: usize = 1000;
/// Maximum total length of the URIs of one subscription, in bytes.
pub const MAX_URI_BYTES: usize = 128 * 1024;

/// Maximum number of tasks per subscription.
pub const MAX_TASKS: usize = 100;

/// The channel for the messages of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Channel {
    /// The connection, shared with other messages.
    Shared,
    /// A stream of its own.
    Own,
}

/// Something that changed at the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources or templates.
    Resources,
    /// The content of one resource.
    Resource(String),
}

/// Decides whether a client may subscribe to a resource.
pub type SubscriptionGuard = Arc<dyn Fn(&Arc<ClientView>, &str) -> Result<(), RpcError> + Send + Sync>;

/// Returns the scopes that a resource needs, if it declares any.
pub type ResourceScopes = Arc<dyn Fn(&str) -> Option<Arc<Scopes>> + Send + Sync>;

/// The token behind a subscription.
#[derive(Clone, Debug, Default)]
pub enum Subscriber {
    /// The transport has no tokens, so scopes are not checked.
    #[default]
    WithoutTokens,
    /// A request over HTTP. Without a verified token it has no scopes.
    Http(Option<Arc<Caller>>),
}

impl Subscriber {
    /// Fails if the token lacks one of these scopes.
    pub fn check(&self, needed: Option<&Scopes>) -> Result<(), RpcError> {
        let Some(needed) = needed else { return Ok(()) };
        let is_allowed = match self {
            Self::WithoutTokens => true,
            Self::Http(caller) => caller.as_ref().is_some_and(|caller| caller.allows_all(needed)),
        };
        if is_allowed { Ok(()) } else { Err(RpcError::insufficient_scope(needed.iter())) }
    }
}

impl From<&Extensions> for Subscriber {
    fn from(extensions: &Extensions) -> Self {
        match extensions.caller() {
            None if !extensions.is_http() => Self::WithoutTokens,
            caller => Self::Http(caller.cloned()),
        }
    }
}

/// The resources that a client may subscribe to: all, unless there is a guard or the resource declares scopes.
#[derive(Clone, Default)]
pub struct SubscriptionAccess {
    guard: Option<(SubscriptionGuard, Arc<ClientView>)>,
    /// The scopes of resources, and the caller whose token must have them.
    scopes: Option<(ResourceScopes, Option<Arc<Caller>>)>,
}

impl SubscriptionAccess {
    /// Creates the check for `client`, without scopes.
    pub fn of(profile: &Profile, client: &Arc<ClientView>) -> Self {
        let guard = profile.subscription_guard().map(|guard| (Arc::clone(guard), Arc::clone(client)));
        Self { guard, scopes: None }
    }

    /// Requires the scopes that resources declare, also those that are declared later.
    #[must_use]
    pub fn with_scopes(mut self, profile: &Profile, subscriber: &Subscriber) -> Self {
        self.scopes = match subscriber {
            Subscriber::WithoutTokens => None,
            Subscriber::Http(caller) => {
                profile.resource_scopes().map(|scopes| (Arc::clone(scopes), caller.clone()))
            }
        };
        self
    }

    /// Fails if the client may not subscribe to this resource.
    pub fn check(&self, uri: &str) -> Result<(), RpcError> {
        if let Some((scopes, caller)) = &self.scopes
            && let Some(needed) = scopes(uri)
            && !caller.as_ref().is_some_and(|caller| caller.allows_all(&needed))
        {
            return Err(RpcError::insufficient_scope(needed.iter()));
        }
        self.guard.as_ref().map_or(Ok(()), |(guard, client)| guard(client, uri))
    }
}

impl fmt::Debug for SubscriptionAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriptionAccess")
            .field("is_guarded", &self.guard.is_some())
            .field("has_scopes", &self.scopes.is_some())
            .finish()
    }
}

/// The filter of `subscriptions/listen`, and the check for its client.
#[derive(Debug, Default)]
pub struct Listen {
    /// The filter.
    pub filter: SubscriptionFilter,
    /// The resources that its client may subscribe to.
    pub access: SubscriptionAccess,
    /// The client, if it is known.
    pub client: Option<Arc<ClientView>>,
    /// The tasks of the filter that its client may see. The owner of the connection finds them.
    pub tasks: Vec<String>,
    /// The token that must have the scopes of resources and of the tools of tasks.
    pub subscriber: Subscriber,
}

impl Listen {
    /// Returns the tasks that the filter names, if the server has tasks: at most [`MAX_TASKS`].
    pub fn task_ids(&self) -> &[String] {
        let ids = self.filter.task_ids.as_deref().unwrap_or_default();
        &ids[..ids.len().min(MAX_TASKS)]
    }

    /// Returns whether the filter names tasks and the server has them.
    pub fn names_tasks(&self, profile: &Profile) -> bool {
        self.filter.task_ids.is_some() && profile.capabilities.has_extension(TASKS_EXTENSION)
    }

    /// Returns what the access token of the request says, if the transport verified one.
    pub fn caller(&self) -> Option<&Arc<Caller>> {
        match &self.subscriber {
            Subscriber::Http(caller) => caller.as_ref(),
            Subscriber::WithoutTokens => None,
        }
    }

    /// Requires the scopes that resources and the tools of tasks declare from the token of `subscriber`.
    pub fn require_scopes(&mut self, profile: &Profile, subscriber: &Subscriber) {
        self.access = std::mem::take(&mut self.access).with_scopes(profile, subscriber);
        self.subscriber = subscriber.clone();
    }
}

impl From<SubscriptionFilter> for Listen {
    /// Creates a subscription of a client that may subscribe to everything.
    fn from(filter: SubscriptionFilter) -> Self {
        Self { filter, ..Self::default() }
    }
}

#[derive(Debug, Default)]
struct Interest {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: BTreeSet<String>,
}

impl Interest {
    fn covers(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Resource(changed) => self.uris.iter().any(|known| uri::is_sub_resource(known, changed)),
        }
    }
}

#[derive(Debug, Default)]
struct Listener {
    access: SubscriptionAccess,
    interest: Interest,
    /// What changed since the listener was last notified.
    unsent: Interest,
}

impl Listener {
    fn mark(&mut self, change: &Change) -> bool {
        if !self.interest.covers(change) {
            return false;
        }
        // A client may have access to a resource and not to one below it: neither its URI nor the time of a change.
        if let Change::Resource(uri) = change
            && self.access.check(uri).is_err()
        {
            return false;
        }
        match change {
            Change::Tools => self.unsent.tools = true,
            Change::Prompts => self.unsent.prompts = true,
            Change::Resources => self.unsent.resources = true,
            // Sub-resources are open-ended, so their number is bounded; beyond it the list itself counts as changed.
            Change::Resource(_) if self.unsent.uris.len() >= MAX_URIS => {
                self.unsent.resources = self.interest.resources;
            }
            Change::Resource(uri) => drop(self.unsent.uris.insert(uri.clone())),
        }
        true
    }

    fn drain(&mut self, id: Option<&Id>, out: &mut Vec<Bytes>) {
        let unsent = std::mem::take(&mut self.unsent);
        let tag = id.map(subscription_meta);
        let params = tag.as_ref().map(|tag| raw(&format!("{{\"_meta\":{tag}}}")));
        let lists = [
            (unsent.tools, Method::ToolsListChanged),
            (unsent.prompts, Method::PromptsListChanged),
            (unsent.resources, Method::ResourcesListChanged),
        ];
        for (_, method) in lists.into_iter().filter(|(changed, _)| *changed) {
            out.push(encode::notification(method, params.as_ref()));
        }
        for uri in unsent.uris {
            let mut params = ResourceUpdatedParams::new(uri);
            params.meta = tag.as_ref().and_then(|tag| serde_json::from_str(tag).ok());
            out.push(encode::notify(Method::ResourceUpdated, &params));
        }
    }
}

/// Returns the `_meta` of the messages of a subscription, as JSON.
pub fn subscription_meta(id: &Id) -> String {
    let id = serde_json::to_string(id).unwrap_or_default();
    format!("{{\"{}\":{id}}}", meta::key::SUBSCRIPTION_ID)
}

fn raw(text: &str) -> RawJson {
    RawJson::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap_or_else(|_| RawJson::empty_object())
}

/// The subscriptions of one connection.
#[derive(Debug, Default)]
pub struct Subscriptions {
    legacy: Option<Listener>,
    listens: Vec<(Id, Listener)>,
    /// Whether the resources of interest may be others than when they were last looked at.
    turned: bool,
}

impl Subscriptions {
    /// Starts notifications of list changes for a legacy client, after the handshake.
    pub fn open_legacy(&mut self, capabilities: &ServerCapabilities) {
        let listener = self.legacy.get_or_insert_default();
        listener.interest.tools = capabilities.has(Capability::ToolsListChanged);
        listener.interest.prompts = capabilities.has(Capability::PromptsListChanged);
        listener.interest.resources = capabilities.has(Capability::ResourcesListChanged);
    }

    /// Returns the subscribed resources, if they may have changed since the last call.
    pub fn take_wanted(&mut self) -> Option<BTreeSet<String>> {
        if !std::mem::take(&mut self.turned) {
            return None;
        }
        let listeners = self.legacy.iter().chain(self.listens.iter().map(|(_, listener)| listener));
        Some(listeners.flat_map(|listener| &listener.interest.uris).cloned().collect())
    }

    /// Handles `resources/subscribe`. False if the limits are exceeded.
    pub fn subscribe(&mut self, uri: &str, access: SubscriptionAccess) -> bool {
        let listener = self.legacy.get_or_insert_default();
        listener.access = access;
        let uris = &mut listener.interest.uris;
        let has_room = || {
            let bytes: usize = uris.iter().map(String::len).sum();
            uris.len() < MAX_URIS && bytes.saturating_add(uri.len()) <= MAX_URI_BYTES
        };
        if !uris.contains(uri) && !has_room() {
            return false;
        }
        self.turned |= uris.insert(uri.to_owned());
        true
    }

    /// Returns the resources that a legacy client subscribes to.
    pub fn uris(&self) -> BTreeSet<String> {
        self.legacy.as_ref().map(|listener| listener.interest.uris.clone()).unwrap_or_default()
    }

    /// Replaces the resources that a legacy client subscribes to by those that it subscribed to elsewhere.
    pub fn restore(&mut self, uris: &BTreeSet<String>, access: SubscriptionAccess) {
        if uris.is_empty() && self.legacy.is_none() {
            return;
        }
        let listener = self.legacy.get_or_insert_default();
        listener.access = access;
        if listener.interest.uris != *uris {
            listener.interest.uris.clone_from(uris);
            listener
                .unsent
                .uris
                .retain(|changed| uris.iter().any(|known| uri::is_sub_resource(known, changed)));
            self.turned = true;
        }
    }

    /// Requires the scopes of resources from another token, for the resources that a legacy client has subscribed to.
    pub fn set_subscriber(&mut self, profile: &Profile, subscriber: &Subscriber) {
        let Some(listener) = self.legacy.as_mut().filter(|listener| !listener.interest.uris.is_empty())
        else {
            return;
        };
        let access = std::mem::take(&mut listener.access).with_scopes(profile, subscriber);
        listener.unsent.uris.retain(|uri| access.check(uri).is_ok());
        listener.access = access;
    }

    /// Handles `resources/unsubscribe`.
    pub fn unsubscribe(&mut self, uri: &str) {
        if let Some(listener) = &mut self.legacy {
            self.turned |= listener.interest.uris.remove(uri);
            listener.unsent.uris.remove(uri);
        }
    }

    /// Handles `subscriptions/listen`. Returns the acknowledgment, which has to be sent before anything else of the
    /// subscription; `None` if the client has too many.
    pub fn listen(&mut self, id: Id, listen: &Listen, capabilities: &ServerCapabilities) -> Option<Bytes> {
        if self.listens.len() >= MAX_LISTENS {
            return None;
        }
        let Listen { filter: wanted, access, tasks, .. } = listen;
        let subscribes = capabilities.has(Capability::ResourcesSubscribe);
        let uris = wanted.resource_subscriptions.as_ref().filter(|_| subscribes);
        let mut bytes = 0_usize;
        let mut has_room = |uri: &&String| {
            bytes = bytes.saturating_add(uri.len());
            bytes <= MAX_URI_BYTES
        };
        let interest = Interest {
            tools: wanted.tools_list_changed == Some(true) && capabilities.has(Capability::ToolsListChanged),
            prompts: wanted.prompts_list_changed == Some(true)
                && capabilities.has(Capability::PromptsListChanged),
            resources: wanted.resources_list_changed == Some(true)
                && capabilities.has(Capability::ResourcesListChanged),
            uris: uris
                .into_iter()
                .flatten()
                .take(MAX_URIS)
                .take_while(&mut has_room)
                .filter(|uri| access.check(uri).is_ok())
                .cloned()
                .collect(),
        };
        let mut granted = SubscriptionFilter::new();
        granted.tools_list_changed = interest.tools.then_some(true);
        granted.prompts_list_changed = interest.prompts.then_some(true);
        granted.resources_list_changed = interest.resources.then_some(true);
        granted.resource_subscriptions =
            uris.map(|uris| uris.iter().filter(|uri| interest.uris.contains(*uri)).cloned().collect());
        if wanted.task_ids.is_some() && capabilities.has_extension(TASKS_EXTENSION) {
            granted.task_ids = Some(tasks.clone());
        }
        let granted = serde_json::to_string(&granted).unwrap_or_default();
        let params = raw(&format!("{{\"_meta\":{},\"notifications\":{granted}}}", subscription_meta(&id)));
        self.turned |= !interest.uris.is_empty();
        self.listens.push((id, Listener { access: access.clone(), interest, unsent: Interest::default() }));
        Some(encode::notification(Method::SubscriptionsAcknowledged, Some(&params)))
    }

    /// Ends a subscription that the client cancels. False if there was none.
    pub fn cancel(&mut self, id: &Id) -> bool {
        let before = self.listens.len();
        self.listens.retain(|(known, _)| known != id);
        self.turned |= self.listens.len() < before;
        self.listens.len() < before
    }

    /// Returns whether `id` is an open subscription.
    pub fn is_listening(&self, id: &Id) -> bool {
        self.listens.iter().any(|(known, _)| known == id)
    }

    /// Records a change. Returns whether a client subscribes to it.
    pub fn mark(&mut self, change: &Change) -> bool {
        let legacy = self.legacy.as_mut().is_some_and(|listener| listener.mark(change));
        self.listens.iter_mut().fold(legacy, |any, (_, listener)| listener.mark(change) || any)
    }

    /// Returns the pending notifications.
    pub fn drain(&mut self) -> Vec<Bytes> {
        let mut out = Vec::new();
        if let Some(listener) = &mut self.legacy {
            listener.drain(None, &mut out);
        }
        for (id, listener) in &mut self.listens {
            listener.drain(Some(id), &mut out);
        }
        out
    }

    /// Ends all subscriptions: each with its result, after a cancellation if all messages share
    /// one channel.
    pub fn close(&mut self, profile: &Profile, channel: Channel) -> Vec<Bytes> {
        let mut out = self.drain();
        for (id, _) in std::mem::take(&mut self.listens) {
            if channel == Channel::Shared {
                let cancelled = CancelledParams::new().request_id(id.clone()).reason("the server ends");
                out.push(encode::notify(Method::Cancelled, &cancelled));
            }
            let mut result = Vec::new();
            result.extend_from_slice(b"{\"resultType\":\"complete\",\"_meta\":");
            result.extend_from_slice(subscription_meta(&id).as_bytes());
            encode::splice(&mut result, profile.info_member());
            result.push(b'}');
            out.push(encode::response(&id, &result));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uris_of_a_peer_are_bounded_in_bytes() {
        let mut subscriptions = Subscriptions::default();
        let long = |letter: char| letter.to_string().repeat(MAX_URI_BYTES / 2);
        assert!(subscriptions.subscribe(&long('a'), SubscriptionAccess::default()));
        assert!(subscriptions.subscribe(&long('b'), SubscriptionAccess::default()));
        assert!(!subscriptions.subscribe("c", SubscriptionAccess::default()));
        // One that is there already takes nothing more.
        assert!(subscriptions.subscribe(&long('a'), SubscriptionAccess::default()));
        subscriptions.unsubscribe(&long('b'));
        assert!(subscriptions.subscribe("c", SubscriptionAccess::default()));
    }
}
