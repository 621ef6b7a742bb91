//! Whose call it is that a server asks or tells something about.
//!
//! Over HTTP the stream says so. On a channel that all calls share nothing does: while only one caller has calls there it
//! is that one; with several, nobody may be asked, because nobody's answer may reach another's call. A call that was given
//! up counts for a while, for its server may not have heard. A server that asks on such a channel is from then on given the
//! calls of one caller at a time.

use bowline_client::CallKey;
use bowline_proto::service::{Call, ClientView};
use bowline_types::Era;
use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// For how long a server may still ask in the course of a call that was given up.
const HAUNTING: Duration = Duration::from_secs(10);

/// Tells the callers of the host apart.
#[derive(Clone, Debug)]
pub(crate) enum CallerKey {
    /// A session of the legacy revisions, or one request that names no user.
    Client(Weak<ClientView>),
    /// The user of requests without a session.
    User(Option<Arc<str>>),
}

impl CallerKey {
    /// Whose call it is. Of requests without session and user nobody knows which come from the same client.
    pub(crate) fn of(call: &Call) -> Self {
        match (&call.client.principal, call.client.revision.era()) {
            (Some(user), Era::Modern) => Self::User(Some(Arc::clone(user))),
            _ => Self::Client(Arc::downgrade(&call.client)),
        }
    }

    /// Who shares instances of servers that are not shared by all.
    pub(crate) fn tenant(call: &Call) -> Self {
        match call.client.revision.era() {
            Era::Legacy => Self::Client(Arc::downgrade(&call.client)),
            Era::Modern => Self::User(call.client.principal.clone()),
        }
    }

    /// Whether its session has ended.
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

/// The calls that run at one instance; `T` is what they are reached by.
#[derive(Debug)]
pub(crate) struct Flights<T> {
    calls: Mutex<Calls<T>>,
    next: AtomicU64,
    /// Whether the server has asked something that could not be told whose it is.
    asks: AtomicBool,
    landed: Notify,
}

#[derive(Debug)]
struct Calls<T> {
    running: HashMap<CallKey, (CallerKey, T)>,
    /// Who gave calls up, and until when their server may not have heard.
    ghosts: Vec<(CallerKey, Instant)>,
}

impl<T> Calls<T> {
    fn callers(&self) -> impl Iterator<Item = &CallerKey> {
        let now = Instant::now();
        let ghosts = self.ghosts.iter().filter(move |(_, until)| *until > now).map(|(caller, _)| caller);
        self.running.values().map(|(caller, _)| caller).chain(ghosts)
    }
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Self {
            calls: Mutex::new(Calls { running: HashMap::new(), ghosts: Vec::new() }),
            next: AtomicU64::new(1),
            asks: AtomicBool::new(false),
            landed: Notify::new(),
        }
    }
}

/// What a question of a server belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Belongs<T> {
    /// To this call.
    To(T),
    /// To no call: none runs.
    ToNone,
    /// To one of several callers' calls, and nobody can tell which.
    Unclear,
}

impl<T: Clone> Flights<T> {
    fn calls(&self) -> MutexGuard<'_, Calls<T>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many calls run.
    pub(crate) fn len(&self) -> usize {
        self.calls().running.len()
    }

    /// Adds a call; at a server that asks on a channel, when no other caller has calls there.
    pub(crate) async fn take_off(&self, caller: CallerKey, call: T) -> CallKey {
        loop {
            let landed = self.landed.notified();
            {
                let mut calls = self.calls();
                let alone = calls.running.values().all(|(other, _)| *other == caller);
                if alone || !self.asks.load(Ordering::Relaxed) {
                    let key = CallKey(self.next.fetch_add(1, Ordering::Relaxed));
                    calls.running.insert(key, (caller, call));
                    return key;
                }
            }
            landed.await;
        }
    }

    /// A call is over: answered, or given up.
    pub(crate) fn land(&self, key: CallKey, answered: bool) {
        let mut calls = self.calls();
        let now = Instant::now();
        calls.ghosts.retain(|(_, until)| *until > now);
        if let Some((caller, _)) = calls.running.remove(&key)
            && !answered
        {
            calls.ghosts.push((caller, now + HAUNTING));
        }
        drop(calls);
        self.landed.notify_waiters();
    }

    /// What something belongs to that came on the stream of a call, or on a channel.
    pub(crate) fn find(&self, key: Option<CallKey>) -> Belongs<T> {
        let calls = self.calls();
        if let Some(key) = key {
            return calls.running.get(&key).map_or(Belongs::ToNone, |(_, call)| Belongs::To(call.clone()));
        }
        let mut callers = calls.callers();
        let Some(first) = callers.next() else { return Belongs::ToNone };
        if !callers.all(|caller| caller == first) {
            return Belongs::Unclear;
        }
        // One caller, several calls: it is asked on its latest.
        let latest = calls.running.iter().max_by_key(|(key, _)| key.0);
        latest.map_or(Belongs::ToNone, |(_, (_, call))| Belongs::To(call.clone()))
    }

    /// Every call that runs.
    pub(crate) fn all(&self) -> Vec<T> {
        self.calls().running.values().map(|(_, call)| call.clone()).collect()
    }

    /// The server asked something and nobody could tell whom.
    pub(crate) fn note_asking(&self) {
        self.asks.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> CallerKey {
        CallerKey::User(Some(name.into()))
    }

    #[tokio::test]
    async fn with_two_callers_on_a_channel_nobody_is_asked() {
        // V-111
        let flights = Flights::default();
        let first = flights.take_off(user("a"), "a1").await;
        assert_eq!(flights.find(None), Belongs::To("a1"));
        let again = flights.take_off(user("a"), "a2").await;
        assert_eq!(flights.find(None), Belongs::To("a2"));
        let other = flights.take_off(user("b"), "b1").await;
        assert_eq!(flights.find(None), Belongs::Unclear);
        // A stream of its own says it.
        assert_eq!(flights.find(Some(other)), Belongs::To("b1"));
        flights.land(other, true);
        assert_eq!(flights.find(None), Belongs::To("a2"));
        flights.land(first, true);
        flights.land(again, true);
        assert_eq!(flights.find(None), Belongs::ToNone);
    }

    #[tokio::test]
    async fn nobody_answers_for_a_call_that_another_gave_up() {
        // V-111
        let flights = Flights::default();
        let given_up = flights.take_off(user("a"), "a1").await;
        flights.land(given_up, false);
        flights.take_off(user("b"), "b1").await;
        assert_eq!(flights.find(None), Belongs::Unclear);
        flights.take_off(user("a"), "a2").await;
        assert_eq!(flights.find(None), Belongs::Unclear);
    }

    #[tokio::test]
    async fn a_server_that_asks_has_one_caller_at_a_time() {
        let flights = Arc::new(Flights::default());
        let first = flights.take_off(user("a"), 1).await;
        flights.note_asking();
        let waiting = tokio::spawn({
            let flights = Arc::clone(&flights);
            async move { flights.take_off(user("b"), 2).await }
        });
        let second = flights.take_off(user("a"), 3).await;
        assert_eq!(flights.len(), 2);
        flights.land(first, true);
        tokio::task::yield_now().await;
        assert_eq!(flights.len(), 1);
        flights.land(second, true);
        waiting.await.unwrap();
        assert_eq!(flights.all(), [2]);
    }
}
