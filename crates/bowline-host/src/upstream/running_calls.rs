//! The calls that run at one instance, and which of them a message of the server belongs to.
//!
//! Over HTTP the stream identifies the call. On a channel that all calls share, nothing does. While only one caller has
//! calls there, a question belongs to that caller. With several callers, nobody may be asked, because an answer must never
//! reach the call of another caller. An abandoned call still counts for a while, because its server may not know yet.
//!
//! To make questions answerable, a subject (such as a tool) that was running when the server asked is from then on given to
//! one caller at a time. Other subjects may run while a user decides; the answer then waits until they have finished.
//!
//! At a shared server, each caller may run a limited number of calls.

use super::CallerKey;
use bowline_client::CallKey;
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// How long a server may still ask during a call that was abandoned.
const ABANDONED_FOR: Duration = Duration::from_secs(10);
/// How many calls of one caller run at one server. Further calls wait and do not block other callers.
const MAX_CALLS: usize = 16;
/// The same for all anonymous callers of one network.
const MAX_CALLS_OF_NETWORK: usize = 64;
/// The number of callers from which those without calls are removed.
const MAX_IDLE_CALLERS: usize = 64;

/// The calls that run at one instance. `T` is the handle of a call.
#[derive(Debug)]
pub(crate) struct RunningCalls<T> {
    calls: Mutex<Calls<T>>,
    next_key: AtomicU64,
    /// Wakes calls and answers that wait for the channel.
    changed: Notify,
    quota: CallQuota,
}

/// Limits how many calls each caller runs.
#[derive(Debug, Default)]
struct CallQuota(Mutex<HashMap<CallerKey, Weak<Semaphore>>>);

impl CallQuota {
    /// Waits until the caller is below its limit. Dropping the permit releases it.
    async fn enter(&self, caller: &CallerKey) -> Option<OwnedSemaphorePermit> {
        // Fails only if the semaphore is closed, which it never is.
        self.slots(caller).acquire_owned().await.ok()
    }

    fn slots(&self, caller: &CallerKey) -> Arc<Semaphore> {
        let mut callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slots) = callers.get(caller).and_then(Weak::upgrade) {
            return slots;
        }
        if callers.len() >= MAX_IDLE_CALLERS {
            callers.retain(|_, slots| slots.strong_count() > 0);
        }
        let count = if caller.is_anonymous() { MAX_CALLS_OF_NETWORK } else { MAX_CALLS };
        let slots = Arc::new(Semaphore::new(count));
        callers.insert(caller.clone(), Arc::downgrade(&slots));
        slots
    }
}

#[derive(Debug)]
struct Calls<T> {
    running: HashMap<CallKey, Running<T>>,
    /// Callers that abandoned a call, its subject, and until when the server may still ask about it.
    abandoned: Vec<(CallerKey, Box<str>, Instant)>,
    /// Subjects that ran when the server asked on a shared channel. Any of them may have asked.
    asking_subjects: HashSet<Box<str>>,
    /// How many calls of asking subjects wait to begin.
    waiting: usize,
}

#[derive(Debug)]
struct Running<T> {
    caller: CallerKey,
    /// What is called, such as a tool.
    subject: Box<str>,
    call: T,
    /// Whether the server waits for an answer, so that it cannot ask again during this call.
    awaits_answer: bool,
}

impl<T> Calls<T> {
    fn callers(&self) -> impl Iterator<Item = &CallerKey> {
        let now = Instant::now();
        let abandoned =
            self.abandoned.iter().filter(move |(_, _, until)| *until > now).map(|(caller, ..)| caller);
        self.running.values().map(|running| &running.caller).chain(abandoned)
    }

    fn others<'a>(&'a self, caller: &'a CallerKey) -> impl Iterator<Item = &'a Running<T>> {
        self.running.values().filter(move |running| running.caller != *caller)
    }

    /// Returns whether a call may begin without making a question of the server ambiguous.
    fn may_begin(&self, caller: &CallerKey, subject: &str) -> bool {
        if self.asking_subjects.is_empty() {
            return true;
        }
        if self.asking_subjects.contains(subject) {
            return self.others(caller).next().is_none();
        }
        let mut awaits_answer = false;
        let is_free = self.others(caller).all(|running| {
            awaits_answer |= running.awaits_answer;
            running.awaits_answer || !self.asking_subjects.contains(&running.subject)
        });
        // A waiting call goes first, except while a user decides: then it could not begin anyway.
        is_free && (awaits_answer || self.waiting == 0)
    }
}

impl<T> Default for RunningCalls<T> {
    fn default() -> Self {
        let calls = Calls {
            running: HashMap::new(),
            abandoned: Vec::new(),
            asking_subjects: HashSet::new(),
            waiting: 0,
        };
        let quota = CallQuota::default();
        Self { calls: Mutex::new(calls), next_key: AtomicU64::new(1), changed: Notify::new(), quota }
    }
}

/// The call that a message of a server belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Attribution<T> {
    /// This call.
    Call(CallKey, T),
    /// No call: none is running.
    NoCall,
    /// One of the calls of several callers; which one is unknown.
    Ambiguous,
}

impl<T> RunningCalls<T> {
    fn calls(&self) -> MutexGuard<'_, Calls<T>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Calls<T>)) {
        change(&mut self.calls());
        self.changed.notify_waiters();
    }

    /// Returns how many calls are running.
    pub(crate) fn len(&self) -> usize {
        self.calls().running.len()
    }

    /// Waits until no call is running.
    pub(crate) async fn drained(&self) {
        loop {
            let changed = self.changed.notified();
            if self.len() == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Adds a call. Waits for its turn if the server asks on a shared channel.
    ///
    /// With a `quota_key`, it takes a slot of that quota first. A call that has to wait for its turn gives its slot back, so
    /// that waiting calls do not keep other calls of the same quota from running.
    pub(crate) async fn begin(
        &self,
        caller: CallerKey,
        subject: Box<str>,
        call: T,
        quota_key: Option<&CallerKey>,
    ) -> (CallKey, Option<OwnedSemaphorePermit>) {
        let mut queued = None;
        loop {
            let slot = match quota_key {
                Some(key) => self.quota.enter(key).await,
                None => None,
            };
            let changed = self.changed.notified();
            {
                let mut calls = self.calls();
                if calls.may_begin(&caller, &subject) {
                    let key = CallKey(self.next_key.fetch_add(1, Ordering::Relaxed));
                    calls.running.insert(key, Running { caller, subject, call, awaits_answer: false });
                    return (key, slot);
                }
                if queued.is_none() && calls.asking_subjects.contains(&subject) {
                    calls.waiting += 1;
                    queued = Some(Queued(self));
                }
            }
            drop(slot);
            changed.await;
        }
    }

    /// Removes a call that was answered or abandoned.
    pub(crate) fn end(&self, key: CallKey, answered: bool) {
        self.change(|calls| {
            let now = Instant::now();
            calls.abandoned.retain(|(_, _, until)| *until > now);
            if let Some(Running { caller, subject, .. }) = calls.running.remove(&key)
                && !answered
            {
                calls.abandoned.push((caller, subject, now + ABANDONED_FOR));
            }
        });
    }

    /// Waits for the answer to a question that came on a shared channel during a call. Meanwhile, other callers may call
    /// subjects that never asked. The answer is held back until they have finished, because the server may ask again after it.
    pub(crate) async fn answered<A>(&self, key: CallKey, answer: impl Future<Output = A>) -> A {
        let awaiting = AwaitingAnswer::new(self, key);
        let answer = answer.await;
        drop(awaiting);
        loop {
            let changed = self.changed.notified();
            {
                let calls = self.calls();
                let caller = calls.running.get(&key).map(|running| &running.caller);
                if caller.is_none_or(|caller| calls.others(caller).next().is_none()) {
                    return answer;
                }
            }
            changed.await;
        }
    }

    /// Records that the server asked on a shared channel.
    pub(crate) fn note_asking(&self) {
        self.change(|calls| {
            let Calls { running, abandoned, asking_subjects, .. } = calls;
            let running = running.values().map(|running| &running.subject);
            asking_subjects.extend(running.chain(abandoned.iter().map(|(_, subject, _)| subject)).cloned());
        });
    }
}

impl<T: Clone> RunningCalls<T> {
    /// Finds the call that a message belongs to. `key` is set if the message came on the stream of a call.
    pub(crate) fn find(&self, key: Option<CallKey>) -> Attribution<T> {
        let calls = self.calls();
        if let Some(key) = key {
            let running = calls.running.get(&key);
            return running
                .map_or(Attribution::NoCall, |running| Attribution::Call(key, running.call.clone()));
        }
        let mut callers = calls.callers();
        let Some(first) = callers.next() else { return Attribution::NoCall };
        if !callers.all(|caller| caller == first) {
            return Attribution::Ambiguous;
        }
        // One caller with several calls is asked on the latest.
        let latest = calls.running.iter().max_by_key(|(key, _)| key.0);
        latest.map_or(Attribution::NoCall, |(key, running)| Attribution::Call(*key, running.call.clone()))
    }
}

/// Counts a call that waits to begin.
struct Queued<'a, T>(&'a RunningCalls<T>);

impl<T> Drop for Queued<'_, T> {
    fn drop(&mut self) {
        self.0.change(|calls| calls.waiting = calls.waiting.saturating_sub(1));
    }
}

/// Marks a call whose server waits for an answer.
struct AwaitingAnswer<'a, T> {
    running_calls: &'a RunningCalls<T>,
    key: CallKey,
}

impl<'a, T> AwaitingAnswer<'a, T> {
    fn new(running_calls: &'a RunningCalls<T>, key: CallKey) -> Self {
        let awaiting = Self { running_calls, key };
        awaiting.set(true);
        awaiting
    }

    fn set(&self, awaits_answer: bool) {
        self.running_calls.change(|calls| {
            if let Some(running) = calls.running.get_mut(&self.key) {
                running.awaits_answer = awaits_answer;
            }
        });
    }
}

impl<T> Drop for AwaitingAnswer<'_, T> {
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

    /// Begins a call that must not have to wait.
    async fn begin(calls: &RunningCalls<&'static str>, caller: &str, call: &'static str) -> CallKey {
        let mut beginning = std::pin::pin!(calls.begin(user(caller), call.into(), call, None));
        match futures_util::poll!(beginning.as_mut()) {
            Poll::Ready((key, _)) => key,
            Poll::Pending => panic!("`{call}` of `{caller}` must not wait"),
        }
    }

    fn attributed(
        calls: &RunningCalls<&'static str>,
        key: Option<CallKey>,
    ) -> Result<&'static str, &'static str> {
        match calls.find(key) {
            Attribution::Call(_, call) => Ok(call),
            Attribution::NoCall => Err("none"),
            Attribution::Ambiguous => Err("ambiguous"),
        }
    }

    #[tokio::test]
    async fn with_two_callers_on_a_shared_channel_no_caller_is_asked() {
        // V-111
        let calls = RunningCalls::default();
        let first = begin(&calls, "a", "a1").await;
        assert_eq!(attributed(&calls, None), Ok("a1"));
        let again = begin(&calls, "a", "a2").await;
        assert_eq!(attributed(&calls, None), Ok("a2"));
        let other = begin(&calls, "b", "b1").await;
        assert_eq!(attributed(&calls, None), Err("ambiguous"));
        // A stream identifies its call.
        assert_eq!(attributed(&calls, Some(other)), Ok("b1"));
        calls.end(other, true);
        assert_eq!(attributed(&calls, None), Ok("a2"));
        calls.end(first, true);
        calls.end(again, true);
        assert_eq!(attributed(&calls, None), Err("none"));
    }

    #[tokio::test]
    async fn no_caller_answers_for_a_call_that_another_abandoned() {
        // V-111
        let calls = RunningCalls::default();
        let abandoned = begin(&calls, "a", "a1").await;
        calls.end(abandoned, false);
        begin(&calls, "b", "b1").await;
        assert_eq!(attributed(&calls, None), Err("ambiguous"));
        begin(&calls, "a", "a2").await;
        assert_eq!(attributed(&calls, None), Err("ambiguous"));
    }

    #[tokio::test]
    async fn a_subject_that_asks_has_one_caller_at_a_time() {
        let calls = RunningCalls::default();
        let first = begin(&calls, "a", "ask").await;
        calls.note_asking();
        let mut other = std::pin::pin!(calls.begin(user("b"), "ask".into(), "b", None));
        assert!(futures_util::poll!(other.as_mut()).is_pending());
        // Nothing else begins that could be confused with it.
        let mut plain = std::pin::pin!(calls.begin(user("c"), "plain".into(), "c", None));
        assert!(futures_util::poll!(plain.as_mut()).is_pending());
        let second = begin(&calls, "a", "ask").await;
        calls.end(first, true);
        assert!(futures_util::poll!(other.as_mut()).is_pending());
        calls.end(second, true);
        assert!(futures_util::poll!(plain.as_mut()).is_pending(), "the asking subject was first");
        other.await;
        assert_eq!((calls.len(), attributed(&calls, None)), (1, Ok("b")));
    }

    #[tokio::test]
    async fn other_subjects_run_while_a_user_decides_and_the_answer_waits_for_them() {
        let calls = RunningCalls::default();
        let asking = begin(&calls, "a", "ask").await;
        calls.note_asking();
        let (answer, decision) = oneshot::channel();
        let mut answered = std::pin::pin!(calls.answered(asking, decision));
        assert!(futures_util::poll!(answered.as_mut()).is_pending());
        let plain = begin(&calls, "b", "plain").await;
        begin(&calls, "c", "plain").await;
        // It would be unknown which of two asking calls a question belongs to.
        let mut other = std::pin::pin!(calls.begin(user("b"), "ask".into(), "b", None));
        assert!(futures_util::poll!(other.as_mut()).is_pending());
        assert_eq!(attributed(&calls, None), Err("ambiguous"));
        calls.end(plain, true);
        begin(&calls, "b", "plain").await;
        answer.send("yes").unwrap();
        assert!(futures_util::poll!(answered.as_mut()).is_pending(), "other callers have running calls");
        let mut late = std::pin::pin!(calls.begin(user("c"), "plain".into(), "c", None));
        assert!(futures_util::poll!(late.as_mut()).is_pending(), "the answer is waiting");
        let keys: Vec<_> = calls.calls().running.keys().copied().collect();
        for key in keys.into_iter().filter(|key| *key != asking) {
            calls.end(key, true);
        }
        assert_eq!(answered.await, Ok("yes"));
        assert_eq!(attributed(&calls, None), Ok("ask"));
        calls.end(asking, true);
        other.await;
    }

    #[tokio::test]
    async fn a_withdrawn_question_no_longer_awaits_an_answer() {
        let calls = RunningCalls::default();
        let asking = begin(&calls, "a", "ask").await;
        calls.note_asking();
        {
            let mut answered = std::pin::pin!(calls.answered(asking, std::future::pending::<()>()));
            assert!(futures_util::poll!(answered.as_mut()).is_pending());
        }
        let mut plain = std::pin::pin!(calls.begin(user("b"), "plain".into(), "b", None));
        assert!(futures_util::poll!(plain.as_mut()).is_pending());
        calls.end(asking, true);
        plain.await;
    }

    #[tokio::test]
    async fn each_caller_has_its_own_slots() {
        let quota = CallQuota::default();
        let mut slots = Vec::new();
        for _ in 0..MAX_CALLS {
            slots.push(quota.enter(&user("ada")).await);
        }
        let ada = user("ada");
        let mut waiting = std::pin::pin!(quota.enter(&ada));
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        assert!(quota.enter(&user("bob")).await.is_some());
        slots.pop();
        assert!(waiting.await.is_some());
    }
}
