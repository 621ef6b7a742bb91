//! Questions put to a client over its back channel, as the legacy eras do it.

use super::Sink;
use bowline_proto::{
    encode,
    pending::{Pending, Timeouts},
    replay::{Answer, Question},
    service::BoxFuture,
};
use bowline_types::{Adapt, CancelledParams, Id, InputRequest, Method, RawJson, Revision, RpcError};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{sync::oneshot, time::sleep_until};

/// Brings the answers of a client that reach other processes to the call that asks.
///
/// The ids of the questions are unique among all processes; see [`Setup::answers`](super::Setup::answers).
pub trait RemoteAnswers: Send + Sync {
    /// Makes a question known to other processes. Called before the question is sent.
    fn open<'a>(&'a self, id: &'a Id) -> BoxFuture<'a, Result<(), RpcError>>;

    /// Waits for an answer that reaches another process.
    fn answer<'a>(&'a self, id: &'a Id) -> BoxFuture<'a, Answer>;

    /// Forgets a question. Must not block.
    fn close(&self, id: &Id);
}

/// The questions one client has not answered yet.
#[derive(Default)]
pub(super) struct Questions {
    pending: Mutex<Pending<oneshot::Sender<Answer>>>,
    remote: Option<(Box<str>, Arc<dyn RemoteAnswers>)>,
}

impl Questions {
    /// Creates the questions of a client whose answers may reach other processes. Their ids begin with `prefix`.
    pub(super) fn with_remote(remote: Option<(Box<str>, Arc<dyn RemoteAnswers>)>) -> Self {
        Self { pending: Mutex::default(), remote }
    }

    fn lock(&self) -> MutexGuard<'_, Pending<oneshot::Sender<Answer>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remote(&self) -> Option<&Arc<dyn RemoteAnswers>> {
        self.remote.as_ref().map(|(_, remote)| remote)
    }

    /// Reserves an id, and makes the question known to other processes if there are any.
    pub(super) async fn reserve(&self) -> Result<Id, RpcError> {
        let id = self.next_id();
        if let Some(remote) = self.remote() {
            remote.open(&id).await?;
        }
        Ok(id)
    }

    /// Puts a question, in the form of the client's revision.
    pub(super) fn ask(
        &self,
        id: Id,
        question: &Question,
        revision: Revision,
        limit: Duration,
        sink: &Arc<dyn Sink>,
    ) -> OpenQuestion<'_> {
        let mut request: InputRequest = question.request.clone();
        request.adapt(revision);
        let params = match &request {
            InputRequest::Elicit(params) => RawJson::of(params).ok(),
            InputRequest::CreateMessage(params) => RawJson::of(params).ok(),
            InputRequest::ListRoots => None,
        };
        self.send(id, request.method().as_str(), params.as_ref(), limit, sink)
    }

    /// Sends a request with a [reserved](Self::reserve) id. The client has `limit` to answer it.
    pub(super) fn send(
        &self,
        id: Id,
        method: &str,
        params: Option<&RawJson>,
        limit: Duration,
        sink: &Arc<dyn Sink>,
    ) -> OpenQuestion<'_> {
        let (sender, receiver) = oneshot::channel();
        let mut questions = self.lock();
        questions.insert(id.clone(), sender, Timeouts { silence: limit, total: limit }, Instant::now());
        drop(questions);
        sink.push(&encode::custom(Some(&id), method, params));
        OpenQuestion { id, receiver, sink: Arc::clone(sink), questions: self }
    }

    /// The client has answered. An answer to nothing is ignored.
    pub(super) fn answer(&self, id: &Id, answer: Answer) {
        if let Some(waiter) = self.lock().take(id) {
            // Whoever asked may have been cancelled meanwhile.
            drop(waiter.send(answer));
        }
    }

    /// Returns an id for a request whose response is ignored.
    pub(super) fn next_id(&self) -> Id {
        match (&self.remote, self.lock().next_id()) {
            (Some((prefix, _)), Id::Number(number)) => Id::String(format!("{prefix}-{number}").into()),
            (_, id) => id,
        }
    }

    /// The client works on a question.
    pub(super) fn touch(&self, id: &Id) {
        self.lock().touch(id, Instant::now());
    }

    /// The client is gone: nothing will be answered any more.
    pub(super) fn abandon(&self) {
        self.lock().drain();
    }
}

/// A question put to the client. Dropping it unanswered cancels it at the client.
pub(super) struct OpenQuestion<'a> {
    id: Id,
    receiver: oneshot::Receiver<Answer>,
    sink: Arc<dyn Sink>,
    questions: &'a Questions,
}

impl OpenQuestion<'_> {
    /// Waits for the answer, within the limit.
    pub(super) async fn answer(mut self) -> Answer {
        loop {
            let Some(deadline) = self.questions.lock().deadline_of(&self.id) else { break };
            let remote = async {
                match self.questions.remote() {
                    Some(remote) => remote.answer(&self.id).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                answer = &mut self.receiver => return answer.unwrap_or_else(|_| Err(disconnected())),
                answer = remote => {
                    self.questions.lock().take(&self.id);
                    return answer;
                }
                () = sleep_until(deadline.into()) => {
                    // Signs of life may have moved the deadline meanwhile.
                    let deadline = self.questions.lock().deadline_of(&self.id);
                    if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                        return Err(RpcError::internal(LATE));
                    }
                }
            }
        }
        // Settled between two looks: the answer is in the channel, or the client is gone.
        self.receiver.try_recv().unwrap_or_else(|_| Err(disconnected()))
    }
}

const LATE: &str = "the client did not answer in time";
const GONE: &str = "the client disconnected without answering";

fn disconnected() -> RpcError {
    RpcError::internal(GONE)
}

/// Returns whether the error of a request to a client says that there is no answer: the client is gone, or took too long. Otherwise
/// the error is the answer.
pub fn is_unanswered(error: &RpcError) -> bool {
    error.message == LATE
        || error.message == GONE
        || error.message == super::conversation::NOT_INITIALIZED
        // A failure of this side, such as a store that is not available.
        || error.retry_after().is_some()
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if let Some(remote) = self.questions.remote() {
            remote.close(&self.id);
        }
        // What the client has answered it does not work on, whether or not the answer was looked at.
        if self.questions.lock().take(&self.id).is_some() {
            let reason = "the call that asks has ended";
            #[cfg(feature = "tracing")]
            tracing::debug!(id = %self.id, reason, "cancelling a request to the client");
            let params = CancelledParams::new().request_id(self.id.clone()).reason(reason);
            self.sink.push(&encode::notify(Method::Cancelled, &params));
        }
    }
}
