//! Runs a call that became a task of the host. Its record says how it is.

use super::{
    Inner,
    asker::CallerView,
    call_record::{CallRecord, RecordedCall},
    caller_gate,
    hosted_records::{Change, Ending},
    hosted_start::RunningCall,
    hosted_tasks::Place,
    result,
    route_call::{MAX_ROUNDS, asks, follow_created, retry_params},
    task_ids::KEYS_KEPT,
    task_records::MAX_RESULT,
    url_elicitation::{self, UrlElicitation},
};
use crate::bridge::{Follow, UpstreamCall, UpstreamReply, or_cancelled};
use bowline_proto::{
    replay::{Answer, Question},
    service::{Call, Notifier, Outcome, Reply},
};
use bowline_store::Key;
use bowline_types::{InputRequest, InputRequests, Method, RawJson, RawMap, RpcError, TaskStatus, meta::key};
use std::{ops::ControlFlow, sync::Weak, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

/// How often the status message is written at most.
const STATUS_EVERY: Duration = Duration::from_secs(1);
/// How often the record is read while questions are open, in case a hint got lost.
const ANSWERS_EVERY: Duration = Duration::from_secs(5);
/// When the store is tried again.
const STORE_EVERY: Duration = Duration::from_secs(1);

/// A call that runs as a task.
pub(super) struct HostedCall {
    pub(super) inner: Weak<Inner>,
    pub(super) running: RunningCall,
    pub(super) recorded: RecordedCall,
    pub(super) key: Key,
    pub(super) digest: String,
    pub(super) place: Place,
    pub(super) expires: Instant,
    /// Where progress of the server goes.
    pub(super) notifier: Notifier,
    pub(super) status: watch::Receiver<Option<String>>,
    pub(super) status_is_due: bool,
    /// When the status message may be written next.
    pub(super) status_at: Instant,
    /// When to read the record although nobody said that it has changed.
    pub(super) look_at: Option<Instant>,
    /// How many questions were asked so far.
    pub(super) asked: u32,
    pub(super) asking: Option<Asking>,
}

/// Questions that wait for the caller.
pub(super) struct Asking {
    open: Vec<OpenQuestion>,
    then: Then,
}

struct OpenQuestion {
    /// The key that callers see. No other question of the task ever has it.
    key: String,
    question: Question,
}

/// What is done with the answers.
enum Then {
    /// The call of a legacy server, which runs, gets them.
    Resume,
    /// A modern server is called again with them, with these others and its state.
    CallAgain { answers: RawMap, state: Option<String> },
    /// The task of a server gets them, with these others.
    Update { task_id: String, answers: RawMap },
    /// The server is called again when its user has visited the URLs.
    Visit,
}

enum Step {
    Reply(UpstreamReply),
    Look,
    Status,
    Expired,
}

/// How the call ended, and what is recorded of it. Without an outcome it was cancelled.
pub(super) type Ended = (Ending, Option<Outcome>);

impl HostedCall {
    /// Runs the call until it ends. Returns nothing if the record says that the task has ended.
    pub(super) async fn run(&mut self) -> Option<Ended> {
        loop {
            let step = self.step().await;
            let inner = self.inner.upgrade()?;
            let flow = match step {
                Step::Expired => ControlFlow::Break(Outcome::Failed(RpcError::internal(
                    "the task has expired: it took longer than its `ttl`",
                ))),
                Step::Status => {
                    self.write_status(&inner).await;
                    continue;
                }
                Step::Look if inner.hosted_tasks.is_stopping() => {
                    ControlFlow::Break(Outcome::Failed(RpcError::internal(
                        "the gateway was stopped while this call ran; the call may have had effects, so it is not repeated",
                    )))
                }
                Step::Look => match self.look(&inner).await {
                    Ok(flow) => flow,
                    Err(HasEnded) => return None,
                },
                Step::Reply(reply) => self.reply(&inner, reply).await,
            };
            if let ControlFlow::Break(outcome) = flow {
                return Some((ending(&outcome), Some(outcome)));
            }
        }
    }

    /// Waits for what happens next.
    async fn step(&mut self) -> Step {
        if let Some(reply) = self.running.reply.take() {
            return Step::Reply(reply);
        }
        let upstream_runs = self.asking.as_ref().is_none_or(|asking| matches!(asking.then, Then::Resume));
        loop {
            let look_at = self.look_at.unwrap_or(self.expires);
            tokio::select! {
                biased;
                () = self.place.changed() => return Step::Look,
                reply = self.running.upstream.next(), if upstream_runs => return Step::Reply(reply),
                () = sleep_until(self.expires) => return Step::Expired,
                () = sleep_until(look_at), if self.look_at.is_some() => {
                    self.look_at = None;
                    return Step::Look;
                }
                changed = self.status.changed(), if !self.status_is_due => {
                    if changed.is_err() {
                        // The notifier exists as long as the call, so this does not happen.
                        sleep(STATUS_EVERY).await;
                    }
                    self.status_is_due = changed.is_ok();
                }
                () = sleep_until(self.status_at), if self.status_is_due => return Step::Status,
            }
        }
    }

    /// Writes the last progress of the server as the status message.
    async fn write_status(&mut self, inner: &Inner) {
        self.status_is_due = false;
        self.status_at = Instant::now() + STATUS_EVERY;
        let message = self.status.borrow_and_update().clone();
        let written = inner.task_records.change_hosted(&self.key, |state| {
            if state.has_ended() {
                return Change::None;
            }
            state.task.status_message.clone_from(&message);
            Change::Write
        });
        // What cannot be written now is not worth a second attempt: more will follow.
        drop(written.await);
    }

    /// Reads the record: the task may have been cancelled, or questions answered.
    async fn look(&mut self, inner: &Inner) -> Result<ControlFlow<Outcome>, HasEnded> {
        let Ok(state) = inner.task_records.hosted(&self.key).await else {
            self.look_at = Some(Instant::now() + STORE_EVERY);
            return Ok(ControlFlow::Continue(()));
        };
        let state = state.filter(|state| !state.has_ended()).ok_or(HasEnded)?;
        let Some(asking) = &self.asking else { return Ok(ControlFlow::Continue(())) };
        self.look_at = Some(Instant::now() + ANSWERS_EVERY);
        if !asking.open.iter().all(|question| state.answers.contains_key(&question.key)) {
            return Ok(ControlFlow::Continue(()));
        }
        let taken = inner.task_records.change_hosted(&self.key, |state| {
            if state.has_ended() {
                return Change::None;
            }
            (state.answers, state.task.input_requests) = (RawMap::new(), None);
            state.task.status = TaskStatus::Working;
            Change::Write
        });
        match taken.await {
            Ok(Some(state)) if !state.has_ended() => {}
            Ok(_) => return Err(HasEnded),
            Err(_) => {
                self.look_at = Some(Instant::now() + STORE_EVERY);
                return Ok(ControlFlow::Continue(()));
            }
        }
        self.look_at = None;
        inner.hosted_tasks.signal(self.key.as_str());
        let flow = self.go_on(inner, state.answers);
        Ok(flow.unwrap_or_else(|error| ControlFlow::Break(Outcome::Failed(error))))
    }

    /// Continues the call with the answers of the caller.
    fn go_on(&mut self, inner: &Inner, mut given: RawMap) -> Result<ControlFlow<Outcome>, RpcError> {
        let Some(Asking { open, then }) = self.asking.take() else { return Ok(ControlFlow::Continue(())) };
        let mut answers_of = |into: &mut RawMap, call: &mut Call| {
            for OpenQuestion { key, question } in &open {
                let Some(answer) = given.remove(key) else { continue };
                // Answers to questions of the policy are not for the server.
                if question.key.starts_with(caller_gate::KEY) {
                    call.replay.record(question, Ok(answer));
                } else {
                    into.insert(question.key.clone(), answer);
                }
            }
        };
        let mut answers = RawMap::new();
        match then {
            Then::Resume => {
                answers_of(&mut answers, &mut self.running.call);
                let answers: Vec<(String, Answer)> =
                    answers.iter().map(|(key, answer)| (key.to_owned(), Ok(answer.clone()))).collect();
                let answers = answers.iter().map(|(key, answer)| (&**key, answer));
                self.running.upstream.resume(self.notifier.clone(), answers);
            }
            Then::CallAgain { answers: mut others, state } => {
                answers_of(&mut others, &mut self.running.call);
                self.call_again(inner, &others, state.as_deref())?;
            }
            Then::Update { task_id, answers: mut others } => {
                answers_of(&mut others, &mut self.running.call);
                self.follow(inner, task_id, others)?;
            }
            Then::Visit => {
                answers_of(&mut answers, &mut self.running.call);
                if let Some(reason) = url_elicitation::refusal(&answers) {
                    return Ok(ControlFlow::Break(result::refused(&self.running.call.method, reason)));
                }
                self.call_again(inner, &RawMap::new(), None)?;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn call_again(&mut self, inner: &Inner, answers: &RawMap, state: Option<&str>) -> Result<(), RpcError> {
        let params = retry_params(&self.running.context.route.params, answers, state)?;
        self.with_record(inner, |hosted, record| {
            let RunningCall { call, context, .. } = &hosted.running;
            inner.upstream_call(&context.route, call, &hosted.notifier, params, record)
        })
    }

    /// Waits for a task that the server created after all.
    fn follow(&mut self, inner: &Inner, task_id: String, answers: RawMap) -> Result<(), RpcError> {
        self.running.answered.extend(answers.keys().map(ToOwned::to_owned));
        let answered = self.running.answered.clone();
        let follow = Follow { task_id, known: None, answered, answers, cancels: true };
        self.start_following(inner, follow)
    }

    fn start_following(&mut self, inner: &Inner, follow: Follow) -> Result<(), RpcError> {
        self.with_record(inner, |hosted, record| {
            let RunningCall { call, context, .. } = &hosted.running;
            inner.follow(&context.route, call, &hosted.notifier, follow, record)
        })
    }

    /// Replaces the running call by another one.
    fn with_record(
        &mut self,
        inner: &Inner,
        begin: impl FnOnce(&Self, &mut CallRecord<'_>) -> Result<UpstreamCall, RpcError>,
    ) -> Result<(), RpcError> {
        let mut record = CallRecord::continued(&inner.telemetry, std::mem::take(&mut self.recorded));
        let begun = begin(self, &mut record);
        self.recorded = record.hand_over();
        self.running.upstream = begun?;
        self.running.upstream.run_in_background(self.notifier.clone());
        Ok(())
    }

    /// Handles what the server says.
    async fn reply(&mut self, inner: &Inner, reply: UpstreamReply) -> ControlFlow<Outcome> {
        if asks(&reply) {
            self.running.rounds += 1;
            if self.running.rounds > MAX_ROUNDS {
                let name = &self.running.context.route.instance.name;
                let reason = format!("the server `{name}` requested input in more than {MAX_ROUNDS} rounds");
                return ControlFlow::Break(Outcome::Failed(RpcError::internal(reason)));
            }
        }
        let handled = self.handle(inner, reply).await;
        handled.unwrap_or_else(|error| ControlFlow::Break(Outcome::Failed(error)))
    }

    async fn handle(
        &mut self,
        inner: &Inner,
        reply: UpstreamReply,
    ) -> Result<ControlFlow<Outcome>, RpcError> {
        let RunningCall { call, context, .. } = &self.running;
        let route = &context.route;
        match reply {
            UpstreamReply::Complete(json) => {
                return Ok(ControlFlow::Break(result::outcome(route, &call.method, &json)));
            }
            UpstreamReply::Failed(error)
            | UpstreamReply::LoginNeeded(error)
            | UpstreamReply::TimedOut(error) => return Err(error),
            UpstreamReply::UrlElicitationRequired(urls) => {
                match inner.asker.url_elicitation(route, CallerView::of(call), urls).await {
                    UrlElicitation::Ask(questions) => self.ask(inner, questions, Then::Visit).await?,
                    UrlElicitation::Fail(error) => return Err(error),
                }
            }
            UpstreamReply::Asks(questions) => self.ask(inner, questions, Then::Resume).await?,
            UpstreamReply::Task(created) => {
                let follow = follow_created(&route.instance.name, &created)?;
                self.start_following(inner, follow)?;
            }
            UpstreamReply::TaskAsks(task) => {
                let (answers, _, questions) = inner.answer_requests(route, call, &task.questions).await?;
                let task_id = task.task.task_id.clone();
                if questions.is_empty() {
                    self.follow(inner, task_id, answers)?;
                } else {
                    self.ask(inner, questions, Then::Update { task_id, answers }).await?;
                }
            }
            UpstreamReply::InputRequired { requests, state } => {
                let (answers, _, questions) = inner.answer_requests(route, call, &requests).await?;
                if questions.is_empty() {
                    self.call_again(inner, &answers, state.as_deref())?;
                } else {
                    self.ask(inner, questions, Then::CallAgain { answers, state }).await?;
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Shows questions to the caller, next to those of a running call that are open already.
    async fn ask(&mut self, inner: &Inner, questions: Vec<Question>, then: Then) -> Result<(), RpcError> {
        let mut open = self.asking.take().map(|asking| asking.open).unwrap_or_default();
        for question in questions {
            if open.iter().all(|known: &OpenQuestion| known.question.key != question.key) {
                self.asked += 1;
                open.push(OpenQuestion { key: format!("q{}", self.asked), question });
            }
        }
        let shown: Vec<(String, InputRequest)> =
            open.iter().map(|open| (open.key.clone(), open.question.request.clone())).collect();
        self.asking = Some(Asking { open, then });
        let expires = self.expires;
        loop {
            let written = inner.task_records.change_hosted(&self.key, |state| {
                if state.has_ended() {
                    return Change::None;
                }
                let mut requests = InputRequests::default();
                for (key, request) in &shown {
                    if !state.answers.contains_key(key) {
                        requests.insert(key.clone(), request.clone());
                    }
                }
                state.task.status = TaskStatus::InputRequired;
                state.task.input_requests = Some(requests);
                Change::Write
            });
            match written.await {
                Ok(_) => break,
                Err(error) if Instant::now() >= expires || error.retry_after().is_none() => {
                    return Err(error);
                }
                Err(_) => sleep(STORE_EVERY).await,
            }
        }
        self.look_at = Some(Instant::now() + ANSWERS_EVERY);
        inner.hosted_tasks.signal(self.key.as_str());
        Ok(())
    }

    /// Notes that somebody else ended the task: its caller cancelled it, or it was taken for dead.
    pub(super) fn was_ended(self) {
        let Some(inner) = self.inner.upgrade() else { return };
        // Dropped, it counts as cancelled.
        drop(CallRecord::continued(&inner.telemetry, self.recorded));
        let caller = CallerView::of(&self.running.call).describe();
        inner.asker.guard.log_task_request(
            &caller,
            Method::CallTool.as_str(),
            Some(self.digest),
            "cancelled",
        );
    }

    /// Records the end.
    pub(super) async fn end(self, ending: Ending, outcome: Option<Outcome>) {
        let Some(inner) = self.inner.upgrade() else { return };
        let record = CallRecord::continued(&inner.telemetry, self.recorded);
        let ended = if let Some(outcome) = &outcome {
            record.ended(outcome);
            describe(outcome)
        } else {
            drop(record);
            "cancelled".to_owned()
        };
        let caller = CallerView::of(&self.running.call).describe();
        let method = Method::CallTool.as_str();
        inner.asker.guard.log_task_request(&caller, method, Some(self.digest), &ended);
        let mut ending = ending;
        if let Ending::Completed(result) = &ending {
            let (client, bytes) = (&self.running.call.client, result.as_bytes().len());
            let ttl = self.expires.saturating_duration_since(Instant::now());
            // A store that does not answer now may take the result later.
            if let Ok(Some(too_much)) = inner.task_records.count_kept(client, bytes, ttl).await {
                ending = Ending::Failed(too_much);
            }
        }
        let keep_trying = Instant::now() + KEYS_KEPT;
        loop {
            let written = inner.task_records.change_hosted(&self.key, |state| state.end(ending.clone()));
            match written.await {
                Ok(_) => return,
                Err(error) if Instant::now() >= keep_trying || inner.hosted_tasks.is_stopping() => {
                    tracing::warn!(%error, "the result of a call that ran as a task is lost");
                    return;
                }
                Err(_) => sleep(STORE_EVERY).await,
            }
        }
    }
}

/// The record says that the task has ended, or there is none any more.
struct HasEnded;

/// Returns how a task ends whose call has this outcome.
fn ending(outcome: &Outcome) -> Ending {
    let result = match outcome {
        Outcome::Complete(Reply::Tool(result)) => {
            let mut result = result.clone();
            // It would name a task of the server.
            if let Some(meta) = &mut result.meta {
                meta.remove(key::RELATED_TASK);
            }
            result.meta = result.meta.filter(|meta| !meta.is_empty());
            RawJson::of(&*result).map_err(|error| RpcError::internal(error.to_string()))
        }
        Outcome::Failed(error) => Err(error.clone()),
        Outcome::Complete(_) | Outcome::NeedsInput(_) => {
            Err(RpcError::internal("the result is not that of a tool"))
        }
    };
    // Some space is for the rest of the record.
    let most = MAX_RESULT - 64 * 1024;
    match result {
        Ok(result) if result.as_bytes().len() > most => Ending::Failed(RpcError::internal(format!(
            "the result is too large for a task: {} bytes, and at most {most} are kept",
            result.as_bytes().len()
        ))),
        Ok(result) => Ending::Completed(result),
        Err(error) => Ending::Failed(error),
    }
}

/// Describes an outcome in the audit log.
fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed(error) => format!("error {}: {}", error.code, error.message),
        Outcome::Complete(Reply::Tool(result)) if result.failed() => "tool error".to_owned(),
        Outcome::Complete(_) | Outcome::NeedsInput(_) => "ok".to_owned(),
    }
}

/// Returns the answer that a task gets for a question that could not be asked.
pub(super) fn answer_or_cancelled(request: &InputRequest, answer: Answer) -> Answer {
    if matches!(request, InputRequest::Elicit(_)) { answer.or_else(or_cancelled) } else { answer }
}
