//! Identifies the callers of the host.

use bowline_proto::service::{Call, ClientView};
use bowline_types::Era;
use std::{
    hash::{Hash, Hasher},
    sync::{Arc, Weak},
};

/// Identifies a caller.
#[derive(Clone, Debug)]
pub(crate) enum CallerKey {
    /// A session of a legacy revision, or a single request without a user.
    Client(Weak<ClientView>),
    /// The user of requests that have no session.
    User(Option<Arc<str>>),
}

impl CallerKey {
    /// Returns who made a call. Requests without session and user cannot be attributed to a client, so each is a caller.
    pub(crate) fn of(call: &Call) -> Self {
        match (&call.client.principal, call.client.revision.era()) {
            (Some(user), Era::Modern) => Self::User(Some(Arc::clone(user))),
            _ => Self::Client(Arc::downgrade(&call.client)),
        }
    }

    /// Returns who shares the instances of a per-client server.
    pub(crate) fn tenant(call: &Call) -> Self {
        Self::of_client(&call.client)
    }

    /// Returns the tenant of a client.
    pub(crate) fn of_client(client: &Arc<ClientView>) -> Self {
        match client.revision.era() {
            Era::Legacy => Self::Client(Arc::downgrade(client)),
            Era::Modern => Self::User(client.principal.clone()),
        }
    }

    /// Returns whose quota is charged: the session, else the user. Requests that have neither share one quota.
    pub(crate) fn quota(client: &Arc<ClientView>) -> Self {
        Self::of_client(client)
    }

    /// Returns whether it is the key of all callers without session and user.
    pub(crate) fn is_anonymous(&self) -> bool {
        matches!(self, Self::User(None))
    }

    /// Returns the authenticated user.
    pub(crate) fn user(&self) -> Option<Arc<str>> {
        match self {
            Self::Client(client) => client.upgrade()?.principal.clone(),
            Self::User(user) => user.clone(),
        }
    }

    /// Returns whether its session has ended.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Client(client) if client.strong_count() == 0)
    }
}

impl PartialEq for CallerKey {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Client(one), Self::Client(other)) => Weak::ptr_eq(one, other),
            (Self::User(one), Self::User(other)) => one == other,
            _ => false,
        }
    }
}

impl Eq for CallerKey {}

impl Hash for CallerKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Client(client) => client.as_ptr().hash(state),
            Self::User(user) => user.hash(state),
        }
    }
}
