//! Identifies the callers of the host.

use bowline_http::PeerAddress;
use bowline_proto::service::{Call, ClientView};
use bowline_types::Era;
use std::{
    hash::{Hash, Hasher},
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Weak},
};

/// Identifies a caller.
#[derive(Clone, Debug)]
pub(crate) enum CallerKey {
    /// A session of a legacy revision, or a single request without a user.
    Client(Weak<ClientView>),
    /// The user of requests that have no session.
    User(Option<Arc<str>>),
    /// Where requests come from that have neither a session nor a user. Only for quotas.
    Network(Option<IpAddr>),
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

    /// Returns whose quota is charged: the session, else the user, else the network.
    pub(crate) fn quota(call: &Call) -> Self {
        match Self::of_client(&call.client) {
            Self::User(None) => Self::Network(network(call)),
            key => key,
        }
    }

    /// Returns whether it is the key of callers that only their network distinguishes.
    pub(crate) fn is_anonymous(&self) -> bool {
        matches!(self, Self::Network(_))
    }

    /// Returns the authenticated user.
    pub(crate) fn user(&self) -> Option<Arc<str>> {
        match self {
            Self::Client(client) => client.upgrade()?.principal.clone(),
            Self::User(user) => user.clone(),
            Self::Network(_) => None,
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
            (Self::Network(one), Self::Network(other)) => one == other,
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
            Self::Network(network) => network.hash(state),
        }
    }
}

/// Returns the network that a call came from: the address, or the first half of an IPv6 address, because one client can use any
/// second half. `None` if the call did not come over a socket.
pub(crate) fn network(call: &Call) -> Option<IpAddr> {
    let PeerAddress(address) = call.extensions.get::<PeerAddress>()?;
    Some(match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_proto::{params::Params, service::Extensions};
    use bowline_types::{Method, RawJson, Revision};

    fn call(revision: Revision, user: Option<&str>, peer: Option<&str>) -> Call {
        let client = ClientView::new(revision, user.map(Arc::from), RawJson::empty_object(), None);
        let mut call = Call::new(Method::CallTool, Params::empty(), Arc::new(client));
        call.extensions = Extensions::new();
        if let Some(peer) = peer {
            call.extensions.insert(PeerAddress(peer.parse().unwrap()));
        }
        call
    }

    #[test]
    fn anonymous_callers_are_distinguished_by_network() {
        let of = |peer| CallerKey::quota(&call(Revision::V2026_07_28, None, Some(peer)));
        assert_eq!(of("192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:1:ffff::2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
        let nowhere = CallerKey::quota(&call(Revision::V2026_07_28, None, None));
        assert!(nowhere.is_anonymous() && of("192.0.2.1").is_anonymous());
        assert_ne!(nowhere, of("192.0.2.1"));
        // A user and a session are known wherever they are.
        let user = |peer| CallerKey::quota(&call(Revision::V2026_07_28, Some("ada"), Some(peer)));
        assert_eq!(user("192.0.2.1"), user("192.0.2.2"));
        let session = call(Revision::V2025_11_25, None, Some("192.0.2.1"));
        assert_eq!(CallerKey::quota(&session), CallerKey::of_client(&session.client));
    }
}
