//! One run of a handler: it completes, or ends at its first unanswered questions.

use crate::error::{Error, Kind};
#[cfg(feature = "tasks")]
use crate::tasks::Attempt;
use bowline_proto::{
    replay::{Answer, Fingerprint, OpenQuestions, Question, Replay},
    service::BoxFuture,
};
use bowline_types::{ElicitParams, InputRequest, RawJson};
use std::{
    future::Future,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// The questions and answers of a call, shared by the context and the round that polls the handler.
pub(crate) struct Log {
    state: Mutex<State>,
    /// Answers questions at once, in unit tests of handlers.
    script: Option<Script>,
    #[cfg(feature = "tasks")]
    task: TaskLink,
}

/// How the call relates to a task.
#[cfg(feature = "tasks")]
#[derive(Default)]
struct TaskLink {
    /// Whether the call becomes a task when the handler says so.
    may_detach: std::sync::atomic::AtomicBool,
    /// The attempt that the handler runs in. A plain call may become one while it runs.
    attempt: std::sync::OnceLock<std::sync::Arc<Attempt>>,
}

/// Answers a question of a handler that runs without a server.
pub(crate) type Script = Box<dyn Fn(&Question) -> Result<Answer, Error> + Send + Sync>;

#[derive(Debug, Default)]
struct State {
    replay: Replay,
    /// The number of questions without a name so far.
    position: usize,
    asked: Vec<Question>,
    /// The questions of this round that were answered in an earlier one.
    answered: Vec<(String, Fingerprint)>,
    /// How many notices the handler has sent in this round.
    notices: u32,
    /// Wakes the round for questions from other tasks.
    round: Option<Waker>,
    /// Wakes tasks that wait for an answer of the next round.
    waiting: Vec<Waker>,
    over: bool,
    /// The handler wants to continue as a task.
    #[cfg(feature = "tasks")]
    detaches: bool,
    /// The handler wants to continue after this time.
    #[cfg(feature = "tasks")]
    sleeps: Option<std::time::Duration>,
    /// How many times the handler has waited in this round.
    #[cfg(feature = "tasks")]
    sleep_position: usize,
}

impl Log {
    pub(crate) fn new(replay: Replay) -> Self {
        Self {
            state: Mutex::new(State { replay, ..State::default() }),
            script: None,
            #[cfg(feature = "tasks")]
            task: TaskLink::default(),
        }
    }

    /// Creates a log whose questions are answered by `script`.
    pub(crate) fn scripted(script: Script) -> Self {
        Self {
            state: Mutex::default(),
            script: Some(script),
            #[cfg(feature = "tasks")]
            task: TaskLink::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the key of the next question without a name.
    pub(crate) fn next_key(&self) -> String {
        let mut state = self.state();
        let key = format!("q{}", state.position);
        state.position += 1;
        key
    }

    /// Returns the answer, or ends the round.
    pub(crate) async fn answer(&self, question: Question) -> Result<Answer, Error> {
        if let Some(script) = &self.script {
            return script(&question);
        }
        let round = {
            let mut state = self.state();
            state.replay.claim(&question);
            if let Some(answer) = state.replay.answer(&question).cloned() {
                state.answered.push((question.key, question.fingerprint));
                return Ok(answer);
            }
            state.note_change(&question)?;
            if state.asked.iter().any(|asked| asked.key == question.key) {
                return Err(Error::internal(format!("two questions have the key `{}`", question.key)));
            }
            state.asked.push(question);
            state.round.clone()
        };
        self.suspend(round).await;
        Err(Error::suspended())
    }

    /// Ends the round.
    async fn suspend(&self, round: Option<Waker>) {
        if let Some(round) = round {
            round.wake();
        }
        // The handler's own future is dropped when the round ends. Only a question asked from a task of its own comes
        // back here, and must not wait for ever.
        std::future::poll_fn(|context| {
            let mut state = self.state();
            if state.over {
                return Poll::Ready(());
            }
            state.waiting.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Counts a notice of the handler. False when an earlier round has sent it.
    pub(crate) fn is_new_notice(&self) -> bool {
        let mut state = self.state();
        state.notices = state.notices.saturating_add(1);
        state.notices > sent_before(&state.replay)
    }

    pub(crate) fn kept(&self, key: &str) -> Option<RawJson> {
        self.state().replay.kept(key).cloned()
    }

    pub(crate) fn keep(&self, key: &str, value: RawJson) {
        self.state().replay.keep(key, value);
    }

    /// Ends the round, if the handler asks or wants to continue later.
    fn take_end<T>(&self) -> Option<Finished<T>> {
        let mut state = self.state();
        let end = state.take_end()?;
        let waiting = state.end();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        Some(end)
    }

    /// Ends the round with questions that the handler did not ask itself.
    pub(crate) fn ask(&self, questions: Vec<Question>) -> OpenQuestions {
        let replay = self.state().next_replay();
        OpenQuestions { questions, replay }
    }

    /// Returns the answer to `question` from an earlier round.
    pub(crate) fn earlier(&self, question: &Question) -> Option<Answer> {
        self.state().replay.answer(question).cloned()
    }

    fn close(&self) {
        let waiting = self.state().end();
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// What only tasks do.
#[cfg(feature = "tasks")]
impl Log {
    /// Lets the handler turn its call into a task.
    pub(crate) fn may_detach(&self) {
        self.task.may_detach.store(true, std::sync::atomic::Ordering::Release);
    }

    /// The handler runs in this attempt from now on.
    pub(crate) fn enter(&self, attempt: &std::sync::Arc<Attempt>) {
        let _ = self.task.attempt.set(std::sync::Arc::clone(attempt));
    }

    /// Returns the attempt that the handler runs in, if the call is a task.
    pub(crate) fn attempt(&self) -> Option<&std::sync::Arc<Attempt>> {
        self.task.attempt.get()
    }

    /// Goes on as a task, if that is possible and not the case already.
    pub(crate) async fn detach(&self) -> Result<(), Error> {
        if self.attempt().is_some() || !self.task.may_detach.load(std::sync::atomic::Ordering::Acquire) {
            return Ok(());
        }
        let round = {
            let mut state = self.state();
            state.detaches = true;
            state.round.clone()
        };
        self.suspend(round).await;
        Err(Error::suspended())
    }

    /// Ends the round; the next one begins after this time.
    pub(crate) async fn sleep(&self, time: std::time::Duration) -> Error {
        let round = {
            let mut state = self.state();
            state.sleeps = Some(state.sleeps.map_or(time, |known| known.min(time)));
            state.round.clone()
        };
        self.suspend(round).await;
        Error::suspended()
    }

    /// Returns the position of the next wait of the handler.
    pub(crate) fn next_sleep(&self) -> usize {
        let mut state = self.state();
        state.sleep_position += 1;
        state.sleep_position
    }

    /// Returns what the rounds so far have learned.
    pub(crate) fn replay(&self) -> Replay {
        self.state().replay.clone()
    }
}

/// The key under which a call stores the number of sent notifications.
const NOTICES: &str = "bowline/notices";

/// How many characters of a question are quoted in an error.
const MAX_QUOTE: usize = 200;

impl State {
    /// Returns how the round ends, if it does.
    fn take_end<T>(&mut self) -> Option<Finished<T>> {
        if !self.asked.is_empty() {
            let questions = std::mem::take(&mut self.asked);
            return Some(Finished::Asks(OpenQuestions { questions, replay: self.next_replay() }));
        }
        #[cfg(feature = "tasks")]
        if self.detaches {
            return Some(Finished::Detaches(self.next_replay()));
        }
        #[cfg(feature = "tasks")]
        if let Some(time) = self.sleeps {
            return Some(Finished::Sleeps { time, replay: self.next_replay() });
        }
        None
    }

    /// Returns the replay data for the next round.
    fn next_replay(&self) -> Replay {
        let mut replay = self.replay.clone();
        if self.notices > 0
            && let Ok(count) = RawJson::of(&self.notices.max(sent_before(&self.replay)))
        {
            replay.keep(NOTICES, count);
        }
        replay.advance();
        replay
    }

    /// Looks for a question whose text differs each time the handler runs: no answer would ever count for it.
    ///
    /// It may change once, for what it asks about may have changed. The second time is an error.
    fn note_change(&mut self, question: &Question) -> Result<(), Error> {
        let key = &question.key;
        let is_known = |fingerprint: &Fingerprint| {
            self.answered.iter().any(|(known, pinned)| known == key && pinned == fingerprint)
        };
        let changes = self.replay.fingerprints(key).filter(|fingerprint| !is_known(fingerprint)).count();
        if changes == 0 {
            return Ok(());
        }
        let (slot, now) = (format!("bowline/asked/{key}"), quote(question));
        let before = self.replay.kept(&slot).and_then(|kept| kept.decode::<String>().ok());
        if changes > 1
            && let Some(before) = before
        {
            return Err(Error::internal(format!(
                "question `{key}` has a different text each time the handler runs: first \"{before}\", then \"{now}\"; an \
                 answer is only valid for the text that was shown, so store values that change with `ctx.once`"
            )));
        }
        self.replay.keep(&slot, RawJson::of(&now)?);
        Ok(())
    }

    fn end(&mut self) -> Vec<Waker> {
        self.over = true;
        std::mem::take(&mut self.waiting)
    }
}

/// Returns how many notifications earlier rounds have sent.
fn sent_before(replay: &Replay) -> u32 {
    replay.kept(NOTICES).and_then(|count| count.decode().ok()).unwrap_or(0)
}

/// Returns the start of the question.
fn quote(question: &Question) -> String {
    let text = match &question.request {
        InputRequest::Elicit(ElicitParams::Form(form)) => form.message.clone(),
        InputRequest::Elicit(ElicitParams::Url(page)) => format!("{} {}", page.message, page.url),
        InputRequest::CreateMessage(params) => {
            RawJson::of(&params.messages).map(|messages| messages.as_str().to_owned()).unwrap_or_default()
        }
        InputRequest::ListRoots => "roots".into(),
    };
    text.chars().take(MAX_QUOTE).collect()
}

/// How a round ended.
#[derive(Debug)]
pub(crate) enum Finished<T> {
    /// The handler returned.
    Done(Result<T, Error>),
    /// The handler asks.
    Asks(OpenQuestions),
    /// The handler continues as a task.
    #[cfg(feature = "tasks")]
    Detaches(Replay),
    /// The handler continues after this time.
    #[cfg(feature = "tasks")]
    Sleeps {
        /// How long.
        time: std::time::Duration,
        /// What the next round needs.
        replay: Replay,
    },
}

/// Polls a handler until it is done or asks.
pub(crate) struct Round<'a, T> {
    future: BoxFuture<'static, Result<T, Error>>,
    log: &'a Log,
}

impl<'a, T> Round<'a, T> {
    pub(crate) fn new(future: BoxFuture<'static, Result<T, Error>>, log: &'a Log) -> Self {
        Self { future, log }
    }
}

impl<T> Future for Round<'_, T> {
    type Output = Finished<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Finished<T>> {
        self.log.state().round = Some(context.waker().clone());
        match self.future.as_mut().poll(context) {
            // A question from another task ended the round while the handler waited for that task.
            Poll::Ready(Err(error)) => match (error.into_kind(), self.log.take_end()) {
                (Kind::Suspended, Some(end)) => Poll::Ready(end),
                (kind, _) => {
                    self.log.close();
                    Poll::Ready(Finished::Done(Err(kind.into())))
                }
            },
            Poll::Ready(done) => {
                self.log.close();
                Poll::Ready(Finished::Done(done))
            }
            Poll::Pending => match self.log.take_end() {
                Some(end) => Poll::Ready(end),
                None => Poll::Pending,
            },
        }
    }
}

/// A cancelled or panicked round also ends for the tasks that wait for it.
impl<T> Drop for Round<'_, T> {
    fn drop(&mut self) {
        self.log.close();
    }
}
