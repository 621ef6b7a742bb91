//! A gate whose questions wait in the page.

use super::{Answer, AnsweredBy, AnsweredQuestion, InboxQuestion, view};
use crate::{
    buffer::{QuestionEnd, Recorder, now},
    events::Status,
    keys,
    query::{Grade, Inbox},
    render::Shown,
};
use bowline_host::current_call;
use bowline_policy::{Gate, Question, Verdict, audit::Redactor};
use bowline_proto::service::BoxFuture;
use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use tokio::sync::oneshot;

/// How many questions may wait. The policy limits questions of each server, and this is the total.
const MAX_WAITING: usize = 1000;
/// How many answered questions are kept.
const MAX_ANSWERED: usize = 100;

/// The questions that wait for a person, and a gate that adds them. Clones share everything.
#[derive(Clone)]
pub(crate) struct Questions {
    state: Arc<Mutex<State>>,
    recorder: Recorder,
    redactor: Redactor,
}

#[derive(Default)]
struct State {
    waiting: Vec<Waiting>,
    answered: VecDeque<AnsweredQuestion>,
}

struct Waiting {
    shown: InboxQuestion,
    question: Question,
    reply: oneshot::Sender<Verdict>,
    seq: u64,
    started: Instant,
}

/// Why an answer is not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AnswerError {
    /// It was answered already, or withdrawn.
    Gone,
    /// It can be answered in the terminal only.
    TerminalOnly,
    /// The answer does not fit the question.
    Invalid(String),
}

impl Questions {
    pub(crate) fn new(recorder: Recorder, redactor: Redactor) -> Self {
        Self { state: Arc::default(), recorder, redactor }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the questions. A key that only looks gets no login URLs and no secrets, which an answer needs.
    pub(crate) fn inbox(&self, grade: Grade) -> Inbox {
        let state = self.state();
        let mut inbox = Inbox {
            waiting: state.waiting.iter().map(|waiting| waiting.shown.clone()).collect(),
            answered: state.answered.iter().cloned().collect(),
        };
        drop(state);
        if grade == Grade::View {
            let answered = inbox.answered.iter_mut().map(|answered| &mut answered.question);
            for question in inbox.waiting.iter_mut().chain(answered) {
                view::mask(&mut question.asks, &self.redactor);
            }
        }
        inbox
    }

    pub(crate) fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// Returns how many questions wait because of a call.
    pub(crate) fn waiting_for(&self, call: u64) -> usize {
        self.state().waiting.iter().filter(|waiting| waiting.shown.call == Some(call)).count()
    }

    /// Returns the server of a question that waits, and what is asked.
    pub(crate) fn about(&self, id: &str) -> Option<(String, String)> {
        let state = self.state();
        let waiting = state.waiting.iter().find(|waiting| waiting.shown.id == id)?;
        Some((waiting.shown.server.clone(), label(&waiting.shown)))
    }

    /// Answers a question. Whoever answers first counts.
    pub(crate) fn answer(&self, id: &str, answer: Answer) -> Result<(), AnswerError> {
        let mut state = self.state();
        let place =
            state.waiting.iter().position(|waiting| waiting.shown.id == id).ok_or(AnswerError::Gone)?;
        let waiting = state.waiting.get(place).ok_or(AnswerError::Gone)?;
        if waiting.shown.terminal_only {
            return Err(AnswerError::TerminalOnly);
        }
        let verdict = view::verdict(&waiting.question, answer).map_err(AnswerError::Invalid)?;
        if waiting.reply.is_closed() {
            return Err(AnswerError::Gone);
        }
        let waiting = state.waiting.remove(place);
        drop(state);
        let allowed = allowed(&verdict);
        if waiting.reply.send(verdict).is_err() {
            return Err(AnswerError::Gone);
        }
        self.end(waiting.shown, waiting.seq, waiting.started, AnsweredBy::Page, allowed);
        Ok(())
    }

    fn end(
        &self,
        mut question: InboxQuestion,
        seq: u64,
        started: Instant,
        by: AnsweredBy,
        allowed: Option<bool>,
    ) {
        let status = match allowed {
            Some(true) => Status::Allowed,
            Some(false) => Status::Denied,
            None => Status::Cancelled,
        };
        let (server, what) = (question.server.clone(), label(&question));
        view::shrink(&mut question.asks);
        let mut state = self.state();
        state.answered.push_front(AnsweredQuestion { question, at: now(), by, allowed });
        state.answered.truncate(MAX_ANSWERED);
        drop(state);
        self.recorder.answered(&server, &what, QuestionEnd { seq, started, status });
    }

    /// Adds a question. `None` if it cannot be shown.
    fn add(&self, question: Question) -> Option<(String, oneshot::Receiver<Verdict>)> {
        let asks = view::asks(&question, &self.redactor)?;
        let id = keys::random(16).ok()?;
        let (scopes, covers) = view::choices(&question);
        let client = match &question {
            Question::Call { client, .. } | Question::Access { client, .. } => client.as_deref(),
            _ => None,
        };
        let mut shown = InboxQuestion {
            id: id.clone(),
            at: now(),
            server: question.server().to_owned(),
            client: client.map(Shown::line),
            call: None,
            why: question.why().map(bowline_text::visible),
            terminal_only: matches!(question, Question::Start { .. }),
            scopes: scopes.into_iter().map(Into::into).collect(),
            covers: covers.into_iter().map(Into::into).collect(),
            asks,
        };
        let mut state = self.state();
        if state.waiting.len() >= MAX_WAITING {
            return None;
        }
        let call = current_call();
        let (seq, parent) = self.recorder.asked(question.server(), &label(&shown), call.as_ref());
        shown.call = parent;
        let (reply, receiver) = oneshot::channel();
        state.waiting.push(Waiting { shown, question, reply, seq, started: Instant::now() });
        Some((id, receiver))
    }
}

/// Names a question in Traffic.
fn label(question: &InboxQuestion) -> String {
    use super::Asks;
    match &question.asks {
        Asks::Start { .. } => "start this server?".into(),
        Asks::Call { tool, .. } => format!("allow {}?", tool.text),
        Asks::Access { action, name } => format!("{action} {}?", name.text),
        Asks::Changed { tool, .. } => format!("use the changed {}?", tool.text),
        Asks::New { tool, .. } => format!("use the new {}?", tool.text),
        Asks::Sample { .. } => "send this to the model?".into(),
        Asks::SampleResult { .. } => "send this response of the model?".into(),
        Asks::Form { .. } => "fill in a form".into(),
        Asks::Visit { .. } => "visit a page?".into(),
        Asks::Roots { .. } => "send these roots?".into(),
    }
}

fn allowed(verdict: &Verdict) -> Option<bool> {
    match verdict {
        Verdict::Allow(_) => Some(true),
        Verdict::Decline { .. } => Some(false),
        Verdict::Cancel | Verdict::Deferred => None,
    }
}

/// Withdraws a question when it is dropped unanswered: another gate answered, or the call ended.
struct Withdraw {
    questions: Questions,
    id: String,
    by: AnsweredBy,
}

impl Drop for Withdraw {
    fn drop(&mut self) {
        let mut state = self.questions.state();
        let place = state.waiting.iter().position(|waiting| waiting.shown.id == self.id);
        let Some(place) = place else { return };
        let waiting = state.waiting.remove(place);
        drop(state);
        self.questions.end(waiting.shown, waiting.seq, waiting.started, self.by, None);
    }
}

impl Gate for Questions {
    fn ask(&self, question: Question) -> BoxFuture<'_, Verdict> {
        let Some((id, answer)) = self.add(question) else {
            // Others may still be able to show it.
            return Box::pin(std::future::pending());
        };
        let withdraw = Withdraw { questions: self.clone(), id, by: AnsweredBy::Nobody };
        Box::pin(async move {
            let _withdraw = withdraw;
            match answer.await {
                Ok(verdict) => verdict,
                Err(_) => std::future::pending().await,
            }
        })
    }
}

/// The terminal beside the page. It tells the page what was answered there.
pub(crate) struct Beside {
    pub(crate) terminal: Arc<dyn Gate>,
    pub(crate) questions: Questions,
}

impl Gate for Beside {
    fn ask(&self, question: Question) -> BoxFuture<'_, Verdict> {
        let Some((id, answer)) = self.questions.add(question.clone()) else {
            return self.terminal.ask(question);
        };
        let mut withdraw = Withdraw { questions: self.questions.clone(), id, by: AnsweredBy::Nobody };
        Box::pin(async move {
            let page = async {
                match answer.await {
                    Ok(verdict) => verdict,
                    Err(_) => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                verdict = page => verdict,
                verdict = self.terminal.ask(question) => {
                    withdraw.by = AnsweredBy::Terminal;
                    withdraw.questions.answered_elsewhere(&withdraw.id, &verdict);
                    verdict
                }
            }
        })
    }
}

impl Questions {
    /// Notes the answer of the terminal.
    fn answered_elsewhere(&self, id: &str, verdict: &Verdict) {
        let mut state = self.state();
        let Some(place) = state.waiting.iter().position(|waiting| waiting.shown.id == id) else { return };
        let waiting = state.waiting.remove(place);
        drop(state);
        self.end(waiting.shown, waiting.seq, waiting.started, AnsweredBy::Terminal, allowed(verdict));
    }
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Questions").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_policy::ShownUrl;
    use bowline_types::CreateMessageParams;
    use serde_json::json;

    fn questions() -> Questions {
        let redactor = Redactor::new(vec!["hunter2-secret".into()]);
        Questions::new(Recorder::new(1_000_000, true, redactor.clone()), redactor)
    }

    fn sample(text: &str) -> Question {
        let content = json!({"type":"text","text":text});
        let params = json!({"maxTokens":10,"messages":[{"role":"user","content":content}]});
        let request: CreateMessageParams = serde_json::from_value(params).unwrap();
        Question::Sample {
            server: "demo".into(),
            request: Box::new(request),
            why: String::new(),
            scopes: Vec::new(),
        }
    }

    #[test]
    fn a_view_key_sees_no_login_url_and_no_secret() {
        let questions = questions();
        let url = ShownUrl::parse("https://a.example/authorize?state=abcdef&code_challenge=ghijkl").unwrap();
        let message = "log in with hunter2-secret".to_owned();
        let (visit, _visit) = questions.add(Question::Visit { server: "demo".into(), message, url }).unwrap();
        let (_, _sample) = questions.add(sample("say hunter2-secret")).unwrap();
        let shown = |grade| serde_json::to_string(&questions.inbox(grade)).unwrap();
        let secrets = ["abcdef", "ghijkl", "hunter2"];
        for secret in secrets {
            assert!(shown(Grade::Control).contains(secret), "{secret}");
            assert!(!shown(Grade::View).contains(secret), "{secret}");
        }
        assert!(shown(Grade::View).contains("a.example"));
        questions.answer(&visit, Answer::Cancel).unwrap();
        assert!(secrets.iter().all(|secret| !shown(Grade::View).contains(secret)));
    }

    #[test]
    fn a_large_request_is_not_kept_after_its_answer() {
        let questions = questions();
        for (text, is_kept) in [("x".repeat(1000), true), ("x".repeat(100_000), false)] {
            let (id, _verdict) = questions.add(sample(&text)).unwrap();
            questions.answer(&id, Answer::Cancel).unwrap();
            let inbox = serde_json::to_string(&questions.inbox(Grade::Control)).unwrap();
            assert_eq!(inbox.contains(&text), is_kept);
        }
    }
}
