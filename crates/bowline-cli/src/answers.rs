//! Who answers what a server asks back: the user at the terminal, and a model that the user has configured.

use crate::{context::Context, screen::Screen};
use bowline_client::{Answer, BoxFuture, ClientBuilder};
use bowline_host::{
    gateway,
    policy::{Facts, Gate, Guard, Question, Refusal, SystemOpener, Terminal, Verdict},
    sampling::Broker,
};
use bowline_types::{
    CreateMessageParams, CreateMessageResult, ElicitAction, ElicitParams, ElicitResult, RpcError,
};
use std::{fmt, sync::Arc};
use tokio::io::{BufReader, Stderr, Stdin};

/// The code of an error that says that the user did not allow something.
const DECLINED: i64 = -1;

/// The user at the terminal.
#[derive(Clone)]
pub(crate) struct Desk {
    terminal: Arc<Terminal<BufReader<Stdin>, Stderr>>,
    screen: Screen,
}

impl Desk {
    pub(crate) fn new(screen: Screen) -> Self {
        let terminal = Terminal::new(BufReader::new(tokio::io::stdin()), tokio::io::stderr());
        Self { terminal: Arc::new(terminal), screen }
    }

    /// Asks for a line.
    pub(crate) async fn line(&self, prompt: &str) -> std::io::Result<String> {
        self.screen.clear();
        self.terminal.line(prompt).await
    }
}

impl Gate for Desk {
    fn ask(&self, question: Question) -> BoxFuture<'_, Verdict> {
        self.screen.clear();
        self.terminal.ask(question)
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

/// Sets the handlers of a client: forms and pages go to the user, where there is one; models are asked only where the
/// configuration names one, and with the user's consent.
pub(crate) fn answering(
    context: &Context,
    desk: &Desk,
    server: &str,
    builder: ClientBuilder,
) -> ClientBuilder {
    if !context.interactive() {
        return builder;
    }
    let guard = Guard::builder().gate(desk.clone()).opener(SystemOpener).build();
    let answers = Arc::new(Answers { guard, server: server.to_owned(), screen: context.screen });
    let (form, page) = (Arc::clone(&answers), Arc::clone(&answers));
    let builder = builder
        .on_ask(move |question| {
            let answers = Arc::clone(&form);
            async move {
                let asked = ElicitParams::form(question.message, question.schema);
                match answers.elicit(asked).await {
                    ElicitResult { action: ElicitAction::Accept, content, .. } => {
                        Answer::accept(content.unwrap_or_default())
                    }
                    ElicitResult { action: ElicitAction::Decline, .. } => Answer::Decline,
                    ElicitResult { action: ElicitAction::Cancel, .. } => Answer::Cancel,
                }
            }
        })
        .on_url(move |page_asked| {
            let answers = Arc::clone(&page);
            async move {
                match answers.elicit(ElicitParams::url(page_asked.message, page_asked.url)).await.action {
                    ElicitAction::Accept => Answer::consent(),
                    ElicitAction::Decline => Answer::Decline,
                    ElicitAction::Cancel => Answer::Cancel,
                }
            }
        });
    let (broker, problems) =
        gateway::broker(&context.surroundings.config().sampling, &context.surroundings.environment);
    for problem in problems {
        context.screen.warn(&problem.to_string());
    }
    let Some(broker) = broker else { return builder };
    builder
        .on_sample(move |request| {
            let (answers, broker) = (Arc::clone(&answers), broker.clone());
            async move { answers.sample(&broker, request).await }
        })
        .sample_with_tools()
}

struct Answers {
    guard: Guard,
    server: String,
    screen: Screen,
}

impl Answers {
    fn facts(&self) -> Facts<'_> {
        Facts { server: &self.server, ..Facts::default() }
    }

    async fn elicit(&self, asked: ElicitParams) -> ElicitResult {
        let answer = self.guard.elicit(&self.facts(), asked).await;
        answer.unwrap_or_else(|refusal| {
            self.screen.warn(&format!("a question of the server was not put to you: {}", refusal.reason()));
            ElicitResult::decline()
        })
    }

    async fn sample(
        &self,
        broker: &Broker,
        request: CreateMessageParams,
    ) -> Result<CreateMessageResult, RpcError> {
        let refused = |refusal: Refusal| RpcError::new(DECLINED, refusal.reason().to_owned());
        let sampling = self.guard.sample(&self.facts(), request).await.map_err(refused)?;
        let result = broker.sample(self.server.as_str(), sampling.request.clone()).await;
        let result = result.map_err(|error| error.to_rpc())?;
        self.guard.sampled(&self.facts(), &sampling, result).await.map_err(refused)
    }
}
