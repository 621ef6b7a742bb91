//! Calls of legacy servers that wait for answers of their caller. Their number and waiting time are limited.

use super::UpstreamCall;
use crate::upstream::{CallerKey, network};
use bowline_proto::{caller::user_of, service::Call};
use bowline_server::transport::random_id;
use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How long a call waits for an answer.
const MAX_WAIT: Duration = Duration::from_secs(600);
/// How many calls may wait: in total, per session (or user without session), and per user over all sessions.
const MAX_PARKED: usize = 1000;
const MAX_PER_CALLER: usize = 64;
const MAX_PER_USER: usize = 256;
/// The same for callers without user, whether they have sessions or not: per network, and for all of them together. Many
/// clients can be behind one address.
const MAX_PER_NETWORK: usize = 128;
const MAX_ANONYMOUS: usize = 512;

/// The calls that wait, each with its context.
pub(crate) struct ParkedCalls<T>(Mutex<HashMap<String, Parked<T>>>);

struct Parked<T> {
    call: UpstreamCall,
    context: T,
    caller: CallerKey,
    owner: Owner,
    since: Instant,
}

/// Who is responsible for a call: the user, or whoever uses a network.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    User(Arc<str>),
    Network(Option<IpAddr>),
}

impl Owner {
    fn of(call: &Call) -> Self {
        match &call.client.principal {
            Some(principal) => Self::User(user_of(principal)),
            None => Self::Network(network(call)),
        }
    }
}

impl<T> Parked<T> {
    fn is_expired(&self) -> bool {
        self.since.elapsed() >= MAX_WAIT || self.call.is_abandoned() || self.caller.is_gone()
    }
}

impl<T> Default for ParkedCalls<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> ParkedCalls<T> {
    fn parked(&self) -> MutexGuard<'_, HashMap<String, Parked<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parks a call and returns its key. Returns the call itself if a limit is reached.
    pub(crate) fn park(
        &self,
        call: UpstreamCall,
        context: T,
        of: &Call,
    ) -> Result<String, Box<(UpstreamCall, T)>> {
        self.sweep();
        let mut parked = self.parked();
        let (caller, owner) = (CallerKey::quota(of), Owner::of(of));
        if !is_allowed(parked.values().map(|parked| (&parked.caller, &parked.owner)), (&caller, &owner)) {
            return Err(Box::new((call, context)));
        }
        let key = random_id();
        parked.insert(key.clone(), Parked { call, context, caller, owner, since: Instant::now() });
        Ok(key)
    }

    /// Removes a call to resume it.
    pub(crate) fn take(&self, key: &str) -> Option<(UpstreamCall, T)> {
        self.parked().remove(key).map(|parked| (parked.call, parked.context))
    }

    /// Cancels all calls.
    pub(crate) fn clear(&self) {
        // Dropped outside the lock, because dropping cancels them at their servers.
        let all = std::mem::take(&mut *self.parked());
        drop(all);
    }

    /// Cancels calls that expired or whose caller has gone.
    pub(crate) fn sweep(&self) {
        let expired: Vec<_> = {
            let mut parked = self.parked();
            let keys: Vec<_> =
                parked.iter().filter(|(_, parked)| parked.is_expired()).map(|(key, _)| key.clone()).collect();
            keys.iter().filter_map(|key| parked.remove(key)).collect()
        };
        // Dropped outside the lock, because dropping cancels them at their servers.
        drop(expired);
    }

    /// Returns how many calls wait.
    pub(crate) fn len(&self) -> usize {
        self.parked().len()
    }
}

/// Returns whether the limits allow one more call of a caller.
fn is_allowed<'a>(
    parked: impl Iterator<Item = (&'a CallerKey, &'a Owner)>,
    (caller, owner): (&CallerKey, &Owner),
) -> bool {
    let (mut all, mut of_caller, mut of_owner, mut anonymous) = (0, 0, 0, 0);
    for (other, others_owner) in parked {
        all += 1;
        of_caller += usize::from(other == caller);
        of_owner += usize::from(others_owner == owner);
        anonymous += usize::from(matches!(others_owner, Owner::Network(_)));
    }
    let owner_allows = match owner {
        Owner::User(_) => of_owner < MAX_PER_USER,
        Owner::Network(_) => of_owner < MAX_PER_NETWORK && anonymous < MAX_ANONYMOUS,
    };
    // Clients that only their network distinguishes have the share of the network.
    all < MAX_PARKED && owner_allows && (caller.is_anonymous() || of_caller < MAX_PER_CALLER)
}

impl<T> fmt::Debug for ParkedCalls<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParkedCalls").field("len", &self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_http::PeerAddress;
    use bowline_proto::{params::Params, service::ClientView};
    use bowline_types::{Method, RawJson, Revision};

    /// Whose a parked call is. The client is kept, because a session is identified by it.
    struct Caller {
        key: CallerKey,
        owner: Owner,
        _client: Arc<ClientView>,
    }

    impl Caller {
        fn new(revision: Revision, user: Option<&str>, peer: &str) -> Self {
            let client =
                Arc::new(ClientView::new(revision, user.map(Arc::from), RawJson::empty_object(), None));
            let mut call = Call::new(Method::CallTool, Params::empty(), Arc::clone(&client));
            call.extensions.insert(PeerAddress(peer.parse().unwrap()));
            Self { key: CallerKey::quota(&call), owner: Owner::of(&call), _client: client }
        }

        fn session(user: Option<&str>, peer: &str) -> Self {
            Self::new(Revision::V2025_11_25, user, peer)
        }

        fn request(user: Option<&str>, peer: &str) -> Self {
            Self::new(Revision::V2026_07_28, user, peer)
        }
    }

    fn may_park(caller: &Caller, parked: &[Caller]) -> bool {
        is_allowed(parked.iter().map(|parked| (&parked.key, &parked.owner)), (&caller.key, &caller.owner))
    }

    /// Parks calls until the limits refuse one, and returns how many there are.
    fn fill(parked: &mut Vec<Caller>, caller: impl Fn() -> Caller) -> usize {
        let before = parked.len();
        while parked.len() <= MAX_PARKED {
            let next = caller();
            if !may_park(&next, parked) {
                break;
            }
            parked.push(next);
        }
        parked.len() - before
    }

    #[test]
    fn a_session_at_its_limit_does_not_block_others() {
        let (one, other) = (Caller::session(None, "192.0.2.1"), Caller::session(None, "192.0.2.1"));
        let full = || vec![(&one.key, &one.owner); MAX_PER_CALLER].into_iter();
        assert!(!is_allowed(full(), (&one.key, &one.owner)));
        assert!(is_allowed(full(), (&other.key, &other.owner)), "another session has its own share");

        // Nobody gets more by opening sessions.
        let mut parked = Vec::new();
        assert_eq!(fill(&mut parked, || Caller::session(Some("ada"), "192.0.2.1")), MAX_PER_USER);
        assert!(may_park(&Caller::session(Some("bob"), "192.0.2.1"), &parked));
    }

    #[test]
    fn an_anonymous_network_at_its_limit_does_not_block_others() {
        let mut parked = Vec::new();
        let one = || Caller::request(None, "192.0.2.1");
        assert_eq!(fill(&mut parked, one), MAX_PER_NETWORK);
        // Sessions are no way around it.
        assert!(!may_park(&Caller::session(None, "192.0.2.1"), &parked));
        assert_eq!(fill(&mut parked, || Caller::session(None, "192.0.2.2")), MAX_PER_NETWORK);
        assert!(may_park(&Caller::request(None, "192.0.2.3"), &parked));
        assert!(may_park(&Caller::session(None, "192.0.2.3"), &parked));
        assert!(may_park(&Caller::request(Some("ada"), "192.0.2.1"), &parked), "a user is not anonymous");
    }

    #[test]
    fn anonymous_networks_together_leave_room_for_users() {
        let mut parked = Vec::new();
        for host in 1..=20 {
            fill(&mut parked, || Caller::request(None, &format!("192.0.2.{host}")));
        }
        assert_eq!(parked.len(), MAX_ANONYMOUS);
        assert!(may_park(&Caller::request(Some("ada"), "192.0.2.1"), &parked));
        for user in 0..20 {
            fill(&mut parked, || Caller::session(Some(&format!("user{user}")), "192.0.2.1"));
        }
        assert_eq!(parked.len(), MAX_PARKED);
    }
}
