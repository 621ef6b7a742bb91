//! Questions and requests of the server to a client of the legacy era.

use super::{Conversation, Sink};
use bowline_proto::{
    replay::{Answer, OpenQuestions, Question},
    server::Ticket,
    service::{Notifier, Outcome},
};
use bowline_types::{RawJson, RpcError};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// How long a call that has to ask waits for a client to complete the handshake.
const HANDSHAKE: Duration = Duration::from_secs(30);

pub(in crate::transport) const NOT_INITIALIZED: &str =
    "the client has not sent `notifications/initialized`, so it cannot be asked";

fn not_initialized() -> RpcError {
    RpcError::internal(NOT_INITIALIZED)
}

impl Conversation {
    /// Sends a custom request to the client of the legacy eras and waits for its result.
    pub(in crate::transport) async fn request(
        &self,
        method: &str,
        params: Option<RawJson>,
        sink: &Arc<dyn Sink>,
    ) -> Answer {
        self.can_ask().await?;
        let limit = self.server.core.limits.question;
        let id = self.questions.reserve().await?;
        self.questions.send(id, method, params.as_ref(), limit, sink).answer().await
    }

    /// Sends the questions of a legacy call to the client and runs the call again with the answers, until it asks no more.
    pub(in crate::transport) async fn ask(
        &self,
        ticket: &Ticket,
        mut asked: OpenQuestions,
        notifier: Notifier,
        sink: &Arc<dyn Sink>,
    ) -> Outcome {
        loop {
            let OpenQuestions { questions, mut replay } = asked;
            for (question, answer) in self.ask_all(ticket, questions, sink).await {
                replay.record(&question, answer);
            }
            match self.server.service.call(ticket.again(replay), notifier.clone()).await {
                Outcome::NeedsInput(more) => asked = *more,
                outcome => return outcome,
            }
        }
    }

    /// Puts all questions of a round to the client at once, then waits for each.
    async fn ask_all(
        &self,
        ticket: &Ticket,
        questions: Vec<Question>,
        sink: &Arc<dyn Sink>,
    ) -> Vec<(Question, Answer)> {
        if let Err(error) = self.can_ask().await {
            return questions.into_iter().map(|question| (question, Err(error.clone()))).collect();
        }
        let limit = self.server.core.limits.question;
        let (mut waiting, mut answers) = (Vec::new(), Vec::new());
        for question in questions {
            match self.questions.reserve().await {
                Ok(id) => {
                    let open = self.questions.ask(id, &question, ticket.client.revision, limit, sink);
                    waiting.push((open, question));
                }
                Err(error) => answers.push((question, Err(error))),
            }
        }
        for (open, question) in waiting {
            answers.push((question, open.answer().await));
        }
        answers
    }

    /// Fails if the client cannot be asked, or does not complete the handshake in time.
    async fn can_ask(&self) -> Result<(), RpcError> {
        if let Some(reason) = self.refuse_questions {
            return Err(RpcError::internal(reason));
        }
        if self.is_initialized_in_time().await { Ok(()) } else { Err(not_initialized()) }
    }

    /// Waits until the client has completed the handshake: a server sends no requests before. False when it takes too long.
    async fn is_initialized_in_time(&self) -> bool {
        let completed = async {
            loop {
                let mut initialized = std::pin::pin!(self.initialized.notified());
                initialized.as_mut().enable();
                if self.is_ready() {
                    return;
                }
                initialized.await;
            }
        };
        self.is_ready() || timeout(HANDSHAKE, completed).await.is_ok()
    }
}
