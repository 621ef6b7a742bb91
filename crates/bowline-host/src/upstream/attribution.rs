//! Whose call it is that a server asks or tells something about.
//!
//! Over HTTP the stream says so. On a channel that all calls share nothing does: while only one caller has calls there it
//! is that one; with several, nobody may be asked, because nobody's answer may reach another's call. A server that asks
//! is from then on given the calls of one caller at a time.

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
};
use tokio::sync::Notify;

/// Tells the callers of the host apart.
#[derive(Clone, Debug)]
pub(crate) enum CallerKey {
    /// A session of the legacy revisions.
    Session(Weak<ClientView>),
    /// The user of requests without a session.
    User(Option<Arc<str>>),
}

impl CallerKey {
    pub(crate) fn of(call: &Call) -> Self {
        match call.client.revision.era() {
            Era::Legacy => Self::Session(Arc::downgrade(&call.client)),
            Era::Modern => Self::User(call.client.principal.clone()),
        }
    }

    /// Whether its session has ended.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Session(client) if client.strong_count() == 0)
    }
}

impl PartialEq for CallerKey {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Session(one), Self::Session(other)) => Weak::ptr_eq(one, other),
            (Self::User(one), Self::User(other)) => one == other,
            _ => false,
        }
    }
}

impl Eq for CallerKey {}

impl Hash for CallerKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Session(client) => client.as_ptr().hash(state),
            Self::User(user) => user.hash(state),
        }
    }
}

/// The calls that run at one instance; `T` is what they are reached by.
#[derive(Debug)]
pub(crate) struct Flights<T> {
    running: Mutex<HashMap<CallKey, (CallerKey, T)>>,
    next: AtomicU64,
    /// Whether the server has ever asked something.
    asks: AtomicBool,
    landed: Notify,
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Self {
            running: Mutex::default(),
            next: AtomicU64::new(1),
            asks: AtomicBool::new(false),
            landed: Notify::new(),
        }
    }
}

impl<T: Clone> Flights<T> {
    fn running(&self) -> MutexGuard<'_, HashMap<CallKey, (CallerKey, T)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many calls run.
    pub(crate) fn len(&self) -> usize {
        self.running().len()
    }

    /// Adds a call; where the server asks and has a channel only, when no other caller has calls there.
    pub(crate) async fn take_off(&self, caller: CallerKey, call: T) -> CallKey {
        loop {
            let landed = self.landed.notified();
            {
                let mut running = self.running();
                let alone = running.values().all(|(other, _)| *other == caller);
                if alone || !self.asks.load(Ordering::Relaxed) {
                    let key = CallKey(self.next.fetch_add(1, Ordering::Relaxed));
                    running.insert(key, (caller, call));
                    return key;
                }
            }
            landed.await;
        }
    }

    /// A call is over.
    pub(crate) fn land(&self, key: CallKey) {
        self.running().remove(&key);
        self.landed.notify_waiters();
    }

    /// The call that something belongs to; `None` when that cannot be told.
    pub(crate) fn find(&self, key: Option<CallKey>) -> Option<T> {
        let running = self.running();
        if let Some(key) = key {
            return running.get(&key).map(|(_, call)| call.clone());
        }
        let mut callers = running.values().map(|(caller, _)| caller);
        let first = callers.next()?;
        if !callers.all(|caller| caller == first) {
            return None;
        }
        // One caller, several calls: it is asked on its latest.
        running.iter().max_by_key(|(key, _)| key.0).map(|(_, (_, call))| call.clone())
    }

    /// Every call that runs.
    pub(crate) fn all(&self) -> Vec<T> {
        self.running().values().map(|(_, call)| call.clone()).collect()
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
        assert_eq!(flights.find(None), Some("a1"));
        let again = flights.take_off(user("a"), "a2").await;
        assert_eq!(flights.find(None), Some("a2"));
        let other = flights.take_off(user("b"), "b1").await;
        assert_eq!(flights.find(None), None);
        // A stream of its own says it.
        assert_eq!(flights.find(Some(other)), Some("b1"));
        flights.land(other);
        assert_eq!(flights.find(None), Some("a2"));
        flights.land(first);
        flights.land(again);
        assert_eq!(flights.find(None), None);
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
        flights.land(first);
        tokio::task::yield_now().await;
        assert_eq!(flights.len(), 1);
        flights.land(second);
        waiting.await.unwrap();
        assert_eq!(flights.all(), [2]);
    }
}
