//! Client handlers: log messages go to the screen; questions of the server to the user at the terminal, an answers file, or
//! a configured model.

use crate::{
    answers_file::AnswersFile,
    context::Context,
    screen::{Screen, Tone},
    table::one_line,
    target::Target,
};
use bowline_client::{Answer, BoxFuture, ClientBuilder};
use bowline_host::gateway;
use bowline_models::Broker;
use bowline_policy::{Facts, Gate, Guard, Question, Refusal, SystemOpener, Terminal, Verdict};
use bowline_text::visible;
use bowline_types::{
    CreateMessageParams, CreateMessageResult, ElicitAction, ElicitParams, ElicitResult, LogMessageParams,
    LoggingLevel, RpcError,
};
use std::{fmt, sync::Arc};
use tokio::io::{BufReader, Stderr, Stdin};

/// The error code for a request that the user denied.
const DECLINED: i64 = -1;

/// The user at the terminal.
#[derive(Clone)]
pub(crate) struct TerminalUser {
    terminal: Arc<Terminal<BufReader<Stdin>, Stderr>>,
    screen: Screen,
}

impl TerminalUser {
    pub(crate) fn new(screen: Screen) -> Self {
        let terminal = Terminal::new(BufReader::new(tokio::io::stdin()), tokio::io::stderr());
        Self { terminal: Arc::new(terminal), screen }
    }

    /// Prompts for a line.
    pub(crate) async fn line(&self, prompt: &str) -> std::io::Result<String> {
        self.screen.clear();
        self.terminal.line(prompt).await
    }
}

impl Gate for TerminalUser {
    fn ask(&self, question: Question) -> BoxFuture<'_, Verdict> {
        self.screen.clear();
        self.terminal.ask(question)
    }
}

impl fmt::Debug for TerminalUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalUser").finish_non_exhaustive()
    }
}

/// Adds the handlers to a client. Forms and URLs go to the user. Sampling needs a configured model and the user's consent.
/// Log messages are shown if `--log-level` is given.
pub(crate) fn add_handlers(
    context: &Context,
    user: &TerminalUser,
    target: &Target,
    mut builder: ClientBuilder,
) -> ClientBuilder {
    if let Some(level) = target.log_level {
        let screen = context.screen;
        builder = builder.log_level(level).on_log(move |message| {
            let line = log_line(&message, |tone, text| screen.paint_stderr(tone, text));
            screen.note(&format!("log: {line}"));
        });
    }
    let file = target.answers.clone();
    let is_interactive = context.interactive();
    let guard = is_interactive.then(|| Guard::builder().gate(user.clone()).opener(SystemOpener).build());
    let has_elicitation = file.as_ref().is_some_and(|file| file.has_elicitation);
    let has_sampling = file.as_ref().is_some_and(|file| file.has_sampling);
    let answers = Arc::new(Answers { guard, file, server: target.name.clone(), screen: context.screen });
    if is_interactive || has_elicitation {
        builder = add_elicitation(&answers, builder);
    }
    let broker = if is_interactive { broker(context) } else { None };
    if broker.is_none() && !has_sampling {
        return builder;
    }
    let has_tools = broker.is_some();
    let builder = builder.on_sample(move |request| {
        let (answers, broker) = (Arc::clone(&answers), broker.clone());
        async move { answers.sample(broker.as_ref(), request).await }
    });
    if has_tools { builder.sample_with_tools() } else { builder }
}

/// Formats a log message.
pub(crate) fn log_line(message: &LogMessageParams, paint: impl Fn(Tone, &str) -> String) -> String {
    let tone = match message.level {
        LoggingLevel::Debug => Tone::Faint,
        LoggingLevel::Info | LoggingLevel::Notice => Tone::Good,
        LoggingLevel::Warning => Tone::Warning,
        LoggingLevel::Error | LoggingLevel::Critical | LoggingLevel::Alert | LoggingLevel::Emergency => {
            Tone::Bad
        }
    };
    let logger = message.logger.as_deref().map(|logger| format!(" {}", visible(logger))).unwrap_or_default();
    let text = message.data.decode::<String>().unwrap_or_else(|_| message.data.as_str().to_owned());
    format!("{}{logger}: {}", paint(tone, message.level.as_str()), visible(&one_line(&text)))
}

/// Returns the broker for the configured models.
fn broker(context: &Context) -> Option<Broker> {
    let (broker, problems) =
        gateway::broker(&context.environment.config().sampling, &context.environment.variables);
    for problem in problems {
        context.screen.warn(&problem.to_string());
    }
    broker
}

fn add_elicitation(answers: &Arc<Answers>, builder: ClientBuilder) -> ClientBuilder {
    let (form, page) = (Arc::clone(answers), Arc::clone(answers));
    builder
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
        })
}

struct Answers {
    /// Asks the user at the terminal, if there is one.
    guard: Option<Guard>,
    /// The file given with `--answers`.
    file: Option<Arc<AnswersFile>>,
    server: String,
    screen: Screen,
}

impl Answers {
    fn facts(&self) -> Facts<'_> {
        Facts { server: &self.server, ..Facts::default() }
    }

    async fn elicit(&self, asked: ElicitParams) -> ElicitResult {
        let message = asked.message();
        if let Some(answer) = self.file.as_ref().and_then(|file| file.elicitation(message)) {
            return answer;
        }
        let Some(guard) = &self.guard else {
            self.screen.warn(&format!(
                "no unused answer in the `--answers` file matches `{}`; cancelled",
                visible(&one_line(message))
            ));
            return ElicitResult::cancel();
        };
        let answer = guard.elicit(&self.facts(), asked).await;
        answer.unwrap_or_else(|refusal| {
            self.screen.warn(&format!("declined a question of the server: {}", refusal.reason()));
            ElicitResult::decline()
        })
    }

    async fn sample(
        &self,
        broker: Option<&Broker>,
        request: CreateMessageParams,
    ) -> Result<CreateMessageResult, RpcError> {
        let text = serde_json::to_string(&request).unwrap_or_default();
        if let Some(answer) = self.file.as_ref().and_then(|file| file.sampling(&text)) {
            return Ok(answer);
        }
        let (Some(guard), Some(broker)) = (&self.guard, broker) else {
            return Err(RpcError::new(DECLINED, "no matching answer is left in the `--answers` file"));
        };
        let refused = |refusal: Refusal| RpcError::new(DECLINED, refusal.reason().to_owned());
        let sampling = guard.sample(&self.facts(), request).await.map_err(refused)?;
        let result = broker.sample(self.server.as_str(), sampling.request.clone()).await;
        let result = result.map_err(|error| error.to_rpc())?;
        guard.sampled(&self.facts(), &sampling, result).await.map_err(refused)
    }
}
