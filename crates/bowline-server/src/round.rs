//! One run of a handler: it completes, or ends at its first unanswered questions.

use crate::error::{Error, Kind};
use bowline_proto::{
    replay::{Answer, Asked, Question, Replay},
    service::BoxFuture,
};
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// What a call knows and asks, shared by the handler's context and the round that polls the handler.
#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    replay: Replay,
    /// How many questions without a name were asked so far.
    position: usize,
    asked: Vec<Question>,
    /// Wakes the round, for questions asked from other tasks.
    round: Option<Waker>,
    /// Wakes those who wait for an answer that only the next round will have.
    waiting: Vec<Waker>,
    over: bool,
}

impl Log {
    pub(crate) fn new(replay: Replay) -> Self {
        Self(Mutex::new(State { replay, ..State::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of the next question without a name.
    pub(crate) fn next_key(&self) -> String {
        let mut state = self.state();
        let key = format!("q{}", state.position);
        state.position += 1;
        key
    }

    /// The answer, or the end of the round.
    pub(crate) async fn answer(&self, question: Question) -> Result<Answer, Error> {
        let round = {
            let mut state = self.state();
            state.replay.claim(&question);
            if let Some(answer) = state.replay.answer(&question) {
                return Ok(answer.clone());
            }
            if state.asked.iter().any(|asked| asked.key == question.key) {
                return Err(Error::internal(format!("two questions have the key `{}`", question.key)));
            }
            state.asked.push(question);
            state.round.clone()
        };
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
        Err(Error::suspended())
    }

    pub(crate) fn kept(&self, key: &str) -> Option<bowline_types::RawJson> {
        self.state().replay.kept(key).cloned()
    }

    pub(crate) fn keep(&self, key: &str, value: bowline_types::RawJson) {
        self.state().replay.keep(key, value);
    }

    /// Ends the round with the open questions, if there are any.
    fn take_questions(&self) -> Option<Asked> {
        let mut state = self.state();
        if state.asked.is_empty() {
            return None;
        }
        let questions = std::mem::take(&mut state.asked);
        let mut replay = state.replay.clone();
        replay.advance();
        let waiting = state.end();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        Some(Asked { questions, replay })
    }

    /// Ends the round with questions the handler did not put itself.
    pub(crate) fn ask(&self, questions: Vec<Question>) -> Asked {
        let mut replay = self.state().replay.clone();
        replay.advance();
        Asked { questions, replay }
    }

    /// What an earlier round got as answer to `question`.
    pub(crate) fn earlier(&self, question: &Question) -> Option<Answer> {
        self.state().replay.answer(question).cloned()
    }

    fn close(&self) {
        let waiting = self.state().end();
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl State {
    fn end(&mut self) -> Vec<Waker> {
        self.over = true;
        std::mem::take(&mut self.waiting)
    }
}

/// How a round ended.
#[derive(Debug)]
pub(crate) enum Ended<T> {
    /// The handler is done.
    Done(Result<T, Error>),
    /// The handler asks.
    Asks(Asked),
    /// The handler panicked.
    Panicked,
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
    type Output = Ended<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ended<T>> {
        self.log.state().round = Some(context.waker().clone());
        let polled = catch_unwind(AssertUnwindSafe(|| self.future.as_mut().poll(context)));
        match polled {
            Err(_) => {
                self.log.close();
                Poll::Ready(Ended::Panicked)
            }
            // A question asked from a task of its own ended the round while the handler waited for that task.
            Ok(Poll::Ready(Err(error))) => match (error.into_kind(), self.log.take_questions()) {
                (Kind::Suspended, Some(asked)) => Poll::Ready(Ended::Asks(asked)),
                (kind, _) => {
                    self.log.close();
                    Poll::Ready(Ended::Done(Err(kind.into())))
                }
            },
            Ok(Poll::Ready(done)) => {
                self.log.close();
                Poll::Ready(Ended::Done(done))
            }
            Ok(Poll::Pending) => match self.log.take_questions() {
                Some(asked) => Poll::Ready(Ended::Asks(asked)),
                None => Poll::Pending,
            },
        }
    }
}

/// A round dropped by a cancellation ends like any other for those who wait on it.
impl<T> Drop for Round<'_, T> {
    fn drop(&mut self) {
        self.log.close();
    }
}
