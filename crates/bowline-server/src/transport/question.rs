//! Questions put to a client over its back channel, as the legacy eras do it.

use super::Sink;
use bowline_proto::{
    encode,
    pending::{Pending, Timeouts},
    replay::{Answer, Question},
};
use bowline_types::{Adapt, CancelledParams, Id, InputRequest, Method, RawJson, Revision, RpcError};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{sync::oneshot, time::sleep_until};

/// The questions one client has not answered yet.
#[derive(Debug, Default)]
pub(super) struct Questions(Mutex<Pending<oneshot::Sender<Answer>>>);

impl Questions {
    fn lock(&self) -> MutexGuard<'_, Pending<oneshot::Sender<Answer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a question, in the form of the client's revision.
    pub(super) fn ask(
        &self,
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
        self.send(request.method().as_str(), params.as_ref(), limit, sink)
    }

    /// Sends a request. The client has `limit` to answer it.
    pub(super) fn send(
        &self,
        method: &str,
        params: Option<&RawJson>,
        limit: Duration,
        sink: &Arc<dyn Sink>,
    ) -> OpenQuestion<'_> {
        let (sender, receiver) = oneshot::channel();
        let mut questions = self.lock();
        let id = questions.next_id();
        questions.insert(id.clone(), sender, Timeouts { silence: limit, total: limit }, Instant::now());
        drop(questions);
        sink.push(&encode::custom(Some(&id), method, params));
        OpenQuestion { id, receiver, sink: Arc::clone(sink), questions: self }
    }

    /// The client has answered. An answer to nothing is ignored.
    pub(super) fn settle(&self, id: &Id, answer: Answer) {
        if let Some(waiter) = self.lock().take(id) {
            // Whoever asked may have been cancelled meanwhile.
            drop(waiter.send(answer));
        }
    }

    /// Returns an id for a request whose response is ignored.
    pub(super) fn next_id(&self) -> Id {
        self.lock().next_id()
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

/// A question put to the client. Dropping it unanswered tells the client to stop working on it.
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
            tokio::select! {
                biased;
                answer = &mut self.receiver => return answer.unwrap_or_else(|_| Err(gone())),
                () = sleep_until(deadline.into()) => {
                    // Signs of life may have moved the deadline meanwhile.
                    let deadline = self.questions.lock().deadline_of(&self.id);
                    if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                        return Err(RpcError::internal("the client did not answer in time"));
                    }
                }
            }
        }
        // Settled between two looks: the answer is in the channel, or the client is gone.
        self.receiver.try_recv().unwrap_or_else(|_| Err(gone()))
    }
}

fn gone() -> RpcError {
    RpcError::internal("the client disconnected without answering")
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
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
