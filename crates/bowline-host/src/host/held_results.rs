//! Questions of tasks of 2025-11-25 for callers of 2026-07-28. A server of that revision asks while somebody waits for the result,
//! so this process does, and shows the questions in `tasks/get`.

use super::tasks::Tasks;
use crate::bridge::{UpstreamCall, UpstreamReply};
use bowline_proto::{
    replay::{Answer, Question},
    service::Notifier,
};
use bowline_server::transport::random_id;
use bowline_types::{InputRequest, InputRequests, RawMap, RpcError};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

/// How many results are waited for, in total and for one user. All callers without a user are one.
const MAX_HELD: usize = 1000;
const MAX_PER_USER: usize = 100;
/// How long a result is waited for if nobody asks about its task. The next `tasks/get` begins again.
const UNUSED_FOR: Duration = Duration::from_secs(600);
/// How long `tasks/get` waits for a question that the server has announced.
const ANNOUNCED_FOR: Duration = Duration::from_secs(2);

/// A task: the id of its instance, and its id there.
pub(super) type HeldKey = (u64, String);

/// The results that this process waits for.
#[derive(Debug, Default)]
pub(super) struct HeldResults(Arc<Mutex<HashMap<HeldKey, Arc<Held>>>>);

impl HeldResults {
    fn held(&self) -> MutexGuard<'_, HashMap<HeldKey, Arc<Held>>> {
        lock(&self.0)
    }

    /// Returns the result that is waited for.
    pub(super) fn find(&self, key: &HeldKey) -> Option<Arc<Held>> {
        self.held().get(key).cloned()
    }

    /// Waits for the result of a task from now on, with a call that `begin` makes, unless somebody does already.
    pub(super) fn hold(
        &self,
        key: HeldKey,
        user: Option<Arc<str>>,
        tasks: &Tasks,
        begin: impl FnOnce() -> Result<UpstreamCall, RpcError>,
    ) -> Result<Arc<Held>, RpcError> {
        let mut held = self.held();
        if let Some(held) = held.get(&key) {
            return Ok(Arc::clone(held));
        }
        let of_user = held.values().filter(|held| held.user == user).count();
        if held.len() >= MAX_HELD || of_user >= MAX_PER_USER {
            return Err(RpcError::unavailable("too many tasks wait for input; try again", UNUSED_FOR / 10));
        }
        let call = begin()?;
        let (state, last_used) = (watch::Sender::new(State::default()), Mutex::new(Instant::now()));
        let one = Arc::new(Held { user, state, last_used });
        held.insert(key.clone(), Arc::clone(&one));
        drop(held);
        let entry = Entry { all: Arc::downgrade(&self.0), key, held: Arc::clone(&one) };
        tasks.spawn(wait(call, entry));
        Ok(one)
    }
}

/// A result that is waited for.
#[derive(Debug)]
pub(super) struct Held {
    user: Option<Arc<str>>,
    state: watch::Sender<State>,
    last_used: Mutex<Instant>,
}

#[derive(Debug, Default)]
struct State {
    open: Vec<OpenQuestion>,
    has_ended: bool,
}

#[derive(Debug)]
struct OpenQuestion {
    /// The key that callers see. No other question of the task ever has it.
    key: String,
    /// The key within the call.
    call_key: String,
    request: InputRequest,
    answer: Option<Answer>,
}

impl Held {
    fn touch(&self) {
        *lock(&self.last_used) = Instant::now();
    }

    /// Returns the questions without an answer, after waiting a moment for the first. None if there are none.
    pub(super) async fn questions(&self) -> InputRequests {
        self.touch();
        let is_open = |question: &OpenQuestion| question.answer.is_none();
        let mut states = self.state.subscribe();
        let arrived = states.wait_for(|state| state.has_ended || state.open.iter().any(is_open));
        let mut questions = InputRequests::default();
        if let Ok(Ok(state)) = timeout(ANNOUNCED_FOR, arrived).await {
            for question in state.open.iter().filter(|question| is_open(question)) {
                questions.insert(question.key.clone(), question.request.clone());
            }
        }
        questions
    }

    /// Answers questions. Keys that are unknown or have an answer are ignored.
    pub(super) fn answer(&self, answers: &RawMap) {
        self.touch();
        self.state.send_modify(|state| {
            for question in state.open.iter_mut().filter(|question| question.answer.is_none()) {
                question.answer = answers.get(&question.key).map(|answer| Ok(answer.clone()));
            }
        });
    }

    /// Shows questions of the server, next to those that are open already.
    fn open(&self, questions: Vec<Question>) {
        self.state.send_modify(|state| {
            for Question { key: call_key, request, .. } in questions {
                if state.open.iter().all(|question| question.call_key != call_key) {
                    state.open.push(OpenQuestion { key: random_id(), call_key, request, answer: None });
                }
            }
        });
    }

    async fn unused(&self) {
        loop {
            let until = *lock(&self.last_used) + UNUSED_FOR;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}

/// Removes a result from those that are waited for when dropped.
struct Entry {
    all: Weak<Mutex<HashMap<HeldKey, Arc<Held>>>>,
    key: HeldKey,
    held: Arc<Held>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(all) = self.all.upgrade() {
            lock(&all).remove(&self.key);
        }
        self.held.state.send_modify(|state| {
            state.open.clear();
            state.has_ended = true;
        });
    }
}

/// Waits for a result. The result itself is fetched when somebody asks for it.
async fn wait(mut call: UpstreamCall, entry: Entry) {
    let held = &entry.held;
    let mut states = held.state.subscribe();
    let is_answered =
        |state: &State| !state.open.is_empty() && state.open.iter().all(|question| question.answer.is_some());
    loop {
        tokio::select! {
            biased;
            reply = call.next() => match reply {
                UpstreamReply::Asks(questions) => held.open(questions),
                _ => return,
            },
            () = async { drop(states.wait_for(is_answered).await) } => {
                let mut open = Vec::new();
                held.state.send_modify(|state| open = std::mem::take(&mut state.open));
                let answers = open.iter().filter_map(|question| Some((&*question.call_key, question.answer.as_ref()?)));
                call.resume(Notifier::closed(), answers);
            }
            () = held.unused() => return,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
