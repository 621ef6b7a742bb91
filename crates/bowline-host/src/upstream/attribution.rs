//! Whose call it is that a server asks or tells something about.
//!
//! Over HTTP the stream says so. On a channel that all calls share nothing does: while only one caller has calls there it
//! is that one; with several, nobody may be asked, because nobody's answer may reach another's call. A call that was given
//! up counts for a while, for its server may not have heard.
//!
//! So that a server that asks on a channel can be answered, what was running when it did, such as a tool, is from then on
//! given to one caller at a time. What never was takes its turn while a user thinks: the answer then waits for it.

use bowline_client::CallKey;
use bowline_proto::service::{Call, ClientView};
use bowline_types::Era;
use std::{
    collections::{HashMap, HashSet},
    hash::{Hash, Hasher},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
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
        Self::of_client(&call.client)
    }

    /// The tenant that a client is or belongs to.
    pub(crate) fn of_client(client: &Arc<ClientView>) -> Self {
        match client.revision.era() {
            Era::Legacy => Self::Client(Arc::downgrade(client)),
            Era::Modern => Self::User(client.principal.clone()),
        }
    }

    /// Whose quota something counts against: the session, else the user. Requests that have neither share one quota.
    pub(crate) fn quota(client: &Arc<ClientView>) -> Self {
        Self::of_client(client)
    }

    /// Whether it stands for all who cannot be told apart.
    pub(crate) fn is_anybody(&self) -> bool {
        matches!(self, Self::User(None))
    }

    /// The authenticated user.
    pub(crate) fn user(&self) -> Option<Arc<str>> {
        match self {
            Self::Client(client) => client.upgrade()?.principal.clone(),
            Self::User(user) => user.clone(),
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
    /// Wakes who waits for the channel.
    turned: Notify,
}

#[derive(Debug)]
struct Calls<T> {
    running: HashMap<CallKey, Running<T>>,
    /// Who gave calls up of what, and until when their server may not have heard.
    ghosts: Vec<(CallerKey, Box<str>, Instant)>,
    /// What was running when the server asked on a channel: any of it may have asked.
    askers: HashSet<Box<str>>,
    /// How many calls of askers wait to begin.
    waiting: usize,
}

#[derive(Debug)]
struct Running<T> {
    caller: CallerKey,
    /// What is called, such as a tool.
    subject: Box<str>,
    call: T,
    /// Whether the server waits for an answer, and so will not ask in the course of this call.
    thinks: bool,
}

impl<T> Calls<T> {
    fn callers(&self) -> impl Iterator<Item = &CallerKey> {
        let now = Instant::now();
        let ghosts = self.ghosts.iter().filter(move |(_, _, until)| *until > now).map(|(caller, ..)| caller);
        self.running.values().map(|running| &running.caller).chain(ghosts)
    }

    fn others<'a>(&'a self, caller: &'a CallerKey) -> impl Iterator<Item = &'a Running<T>> {
        self.running.values().filter(move |running| running.caller != *caller)
    }

    /// Whether a call may begin so that what the server asks can still be told whose it is.
    fn may_begin(&self, caller: &CallerKey, subject: &str) -> bool {
        if self.askers.is_empty() {
            return true;
        }
        if self.askers.contains(subject) {
            return self.others(caller).next().is_none();
        }
        let mut thinks = false;
        let free = self.others(caller).all(|running| {
            thinks |= running.thinks;
            running.thinks || !self.askers.contains(&running.subject)
        });
        // Whoever waits for the channel gets it before calls that come later; while a user thinks it gets it not at all.
        free && (thinks || self.waiting == 0)
    }
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        let calls = Calls { running: HashMap::new(), ghosts: Vec::new(), askers: HashSet::new(), waiting: 0 };
        Self { calls: Mutex::new(calls), next: AtomicU64::new(1), turned: Notify::new() }
    }
}

/// What a question of a server belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Belongs<T> {
    /// To this call.
    To(CallKey, T),
    /// To no call: none runs.
    ToNone,
    /// To one of several callers' calls, and nobody can tell which.
    Unclear,
}

impl<T> Flights<T> {
    fn calls(&self) -> MutexGuard<'_, Calls<T>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, change: impl FnOnce(&mut Calls<T>)) {
        change(&mut self.calls());
        self.turned.notify_waiters();
    }

    /// How many calls run.
    pub(crate) fn len(&self) -> usize {
        self.calls().running.len()
    }

    /// Adds a call of something; at a server that asks on a channel, when it may begin.
    pub(crate) async fn take_off(&self, caller: CallerKey, subject: Box<str>, call: T) -> CallKey {
        let mut queue = None;
        loop {
            let turned = self.turned.notified();
            {
                let mut calls = self.calls();
                if calls.may_begin(&caller, &subject) {
                    let key = CallKey(self.next.fetch_add(1, Ordering::Relaxed));
                    calls.running.insert(key, Running { caller, subject, call, thinks: false });
                    return key;
                }
                if queue.is_none() && calls.askers.contains(&subject) {
                    calls.waiting += 1;
                    queue = Some(Queued(self));
                }
            }
            turned.await;
        }
    }

    /// A call is over: answered, or given up.
    pub(crate) fn land(&self, key: CallKey, answered: bool) {
        self.turn(|calls| {
            let now = Instant::now();
            calls.ghosts.retain(|(_, _, until)| *until > now);
            if let Some(Running { caller, subject, .. }) = calls.running.remove(&key)
                && !answered
            {
                calls.ghosts.push((caller, subject, now + HAUNTING));
            }
        });
    }

    /// Waits for the answer to a question that came on a channel in the course of a call. Meanwhile others may call what has
    /// never asked; the answer is not given before they are done, for after it the server may ask again.
    pub(crate) async fn answered<A>(&self, key: CallKey, answer: impl Future<Output = A>) -> A {
        let thinking = Thinking::new(self, key);
        let answer = answer.await;
        drop(thinking);
        loop {
            let turned = self.turned.notified();
            {
                let calls = self.calls();
                let caller = calls.running.get(&key).map(|running| &running.caller);
                if caller.is_none_or(|caller| calls.others(caller).next().is_none()) {
                    return answer;
                }
            }
            turned.await;
        }
    }

    /// The server asked something on a channel.
    pub(crate) fn note_asking(&self) {
        self.turn(|calls| {
            let Calls { running, ghosts, askers, .. } = calls;
            let running = running.values().map(|running| &running.subject);
            askers.extend(running.chain(ghosts.iter().map(|(_, subject, _)| subject)).cloned());
        });
    }
}

impl<T: Clone> Flights<T> {
    /// What something belongs to that came on the stream of a call, or on a channel.
    pub(crate) fn find(&self, key: Option<CallKey>) -> Belongs<T> {
        let calls = self.calls();
        if let Some(key) = key {
            let running = calls.running.get(&key);
            return running.map_or(Belongs::ToNone, |running| Belongs::To(key, running.call.clone()));
        }
        let mut callers = calls.callers();
        let Some(first) = callers.next() else { return Belongs::ToNone };
        if !callers.all(|caller| caller == first) {
            return Belongs::Unclear;
        }
        // One caller, several calls: it is asked on its latest.
        let latest = calls.running.iter().max_by_key(|(key, _)| key.0);
        latest.map_or(Belongs::ToNone, |(key, running)| Belongs::To(*key, running.call.clone()))
    }
}

/// A call that waits to begin.
struct Queued<'a, T>(&'a Flights<T>);

impl<T> Drop for Queued<'_, T> {
    fn drop(&mut self) {
        self.0.turn(|calls| calls.waiting = calls.waiting.saturating_sub(1));
    }
}

/// A call whose server waits for an answer.
struct Thinking<'a, T> {
    flights: &'a Flights<T>,
    key: CallKey,
}

impl<'a, T> Thinking<'a, T> {
    fn new(flights: &'a Flights<T>, key: CallKey) -> Self {
        let thinking = Self { flights, key };
        thinking.set(true);
        thinking
    }

    fn set(&self, thinks: bool) {
        self.flights.turn(|calls| {
            if let Some(running) = calls.running.get_mut(&self.key) {
                running.thinks = thinks;
            }
        });
    }
}

impl<T> Drop for Thinking<'_, T> {
    fn drop(&mut self) {
        self.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Poll;
    use tokio::sync::oneshot;

    fn user(name: &str) -> CallerKey {
        CallerKey::User(Some(name.into()))
    }

    /// A call that may begin at once.
    async fn begin(flights: &Flights<&'static str>, caller: &str, call: &'static str) -> CallKey {
        let mut beginning = std::pin::pin!(flights.take_off(user(caller), call.into(), call));
        match futures_util::poll!(beginning.as_mut()) {
            Poll::Ready(key) => key,
            Poll::Pending => panic!("`{call}` of `{caller}` has to wait"),
        }
    }

    fn whose(flights: &Flights<&'static str>, key: Option<CallKey>) -> Result<&'static str, &'static str> {
        match flights.find(key) {
            Belongs::To(_, call) => Ok(call),
            Belongs::ToNone => Err("none"),
            Belongs::Unclear => Err("unclear"),
        }
    }

    #[tokio::test]
    async fn with_two_callers_on_a_channel_nobody_is_asked() {
        // V-111
        let flights = Flights::default();
        let first = begin(&flights, "a", "a1").await;
        assert_eq!(whose(&flights, None), Ok("a1"));
        let again = begin(&flights, "a", "a2").await;
        assert_eq!(whose(&flights, None), Ok("a2"));
        let other = begin(&flights, "b", "b1").await;
        assert_eq!(whose(&flights, None), Err("unclear"));
        // A stream of its own says it.
        assert_eq!(whose(&flights, Some(other)), Ok("b1"));
        flights.land(other, true);
        assert_eq!(whose(&flights, None), Ok("a2"));
        flights.land(first, true);
        flights.land(again, true);
        assert_eq!(whose(&flights, None), Err("none"));
    }

    #[tokio::test]
    async fn nobody_answers_for_a_call_that_another_gave_up() {
        // V-111
        let flights = Flights::default();
        let given_up = begin(&flights, "a", "a1").await;
        flights.land(given_up, false);
        begin(&flights, "b", "b1").await;
        assert_eq!(whose(&flights, None), Err("unclear"));
        begin(&flights, "a", "a2").await;
        assert_eq!(whose(&flights, None), Err("unclear"));
    }

    #[tokio::test]
    async fn what_asks_has_one_caller_at_a_time() {
        let flights = Flights::default();
        let first = begin(&flights, "a", "ask").await;
        flights.note_asking();
        let mut other = std::pin::pin!(flights.take_off(user("b"), "ask".into(), "b"));
        assert!(futures_util::poll!(other.as_mut()).is_pending());
        // Nor does anything else begin that could be confused with it.
        let mut plain = std::pin::pin!(flights.take_off(user("c"), "plain".into(), "c"));
        assert!(futures_util::poll!(plain.as_mut()).is_pending());
        let second = begin(&flights, "a", "ask").await;
        flights.land(first, true);
        assert!(futures_util::poll!(other.as_mut()).is_pending());
        flights.land(second, true);
        assert!(futures_util::poll!(plain.as_mut()).is_pending(), "who asks was first");
        other.await;
        assert_eq!((flights.len(), whose(&flights, None)), (1, Ok("b")));
    }

    #[tokio::test]
    async fn what_never_asked_goes_on_while_a_user_thinks_and_the_answer_waits_for_it() {
        let flights = Flights::default();
        let asking = begin(&flights, "a", "ask").await;
        flights.note_asking();
        let (answer, thought) = oneshot::channel();
        let mut answered = std::pin::pin!(flights.answered(asking, thought));
        assert!(futures_util::poll!(answered.as_mut()).is_pending());
        let plain = begin(&flights, "b", "plain").await;
        begin(&flights, "c", "plain").await;
        // Of two that ask, nobody could tell which does.
        let mut other = std::pin::pin!(flights.take_off(user("b"), "ask".into(), "b"));
        assert!(futures_util::poll!(other.as_mut()).is_pending());
        assert_eq!(whose(&flights, None), Err("unclear"));
        flights.land(plain, true);
        begin(&flights, "b", "plain").await;
        answer.send("yes").unwrap();
        assert!(futures_util::poll!(answered.as_mut()).is_pending(), "others have calls under way");
        let mut late = std::pin::pin!(flights.take_off(user("c"), "plain".into(), "c"));
        assert!(futures_util::poll!(late.as_mut()).is_pending(), "the answer is waiting");
        let keys: Vec<_> = flights.calls().running.keys().copied().collect();
        for key in keys.into_iter().filter(|key| *key != asking) {
            flights.land(key, true);
        }
        assert_eq!(answered.await, Ok("yes"));
        assert_eq!(whose(&flights, None), Ok("ask"));
        flights.land(asking, true);
        other.await;
    }

    #[tokio::test]
    async fn a_question_taken_back_ends_the_thinking() {
        let flights = Flights::default();
        let asking = begin(&flights, "a", "ask").await;
        flights.note_asking();
        {
            let mut answered = std::pin::pin!(flights.answered(asking, std::future::pending::<()>()));
            assert!(futures_util::poll!(answered.as_mut()).is_pending());
        }
        let mut plain = std::pin::pin!(flights.take_off(user("b"), "plain".into(), "b"));
        assert!(futures_util::poll!(plain.as_mut()).is_pending());
        flights.land(asking, true);
        plain.await;
    }
}
