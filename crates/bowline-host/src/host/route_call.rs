//! A call through the host: finds its server, checks whether it is allowed, and runs its rounds.

use super::{
    Inner,
    accounts::Connecting,
    asker::{Answerer, CallerView, with_origin},
    call_record::CallRecord,
    caller_gate::{self, CallerGate},
    hosted_start::{RunningCall, first_reply, hosted_after},
    meta_tools::Resolved,
    pending_servers::Approval,
    result,
    round_state::{RoundState, ask},
    route::{Route, Subject},
    task_calls::{tasks_of_caller, wanted_task},
    url_elicitation::{self, UrlElicitation},
};
use crate::{
    aggregate::ToolTasks,
    bridge::{Attempt, Follow, TaskWish, UpstreamCall, UpstreamReply, or_cancelled},
    tap::{ClickGate, ConsentGiven, TapEvent, current_call},
};
use bowline_client::TaskState;
use bowline_policy::{Ended, Gate, Permit, Refusal, RefusalKind};
use bowline_proto::{
    replay::Question,
    service::{Call, MethodName, Notifier, Outcome, Reply},
};
use bowline_search::MetaTool;
use bowline_server::CallOrigin;
use bowline_types::{
    CallToolResult, InputRequest, InputRequests, Meta, Method, RawJson, RawMap, RpcError, TASKS_EXTENSION,
    error_code,
};
use std::{collections::BTreeSet, time::Instant};

/// How often a call may ask before it fails.
pub(super) const MAX_ROUNDS: u32 = 10;

/// What belongs to a running or parked call.
pub(super) struct CallContext {
    pub(super) route: Route,
    pub(super) permit: Option<Permit>,
}

/// What a round begins with.
#[expect(clippy::large_enum_variant, reason = "it is matched right after it is made and never stored")]
enum Beginning {
    /// A call that runs, or is about to.
    Running { call: UpstreamCall, completed_rounds: u32, context: CallContext },
    /// The outcome is known without calling the server.
    Ended(Outcome),
}

impl Inner {
    /// Makes a call, or continues one.
    pub(super) async fn route_call(&self, mut call: Call, notifier: Notifier) -> Outcome {
        if let Some(tool) = meta_tool(&call) {
            match self.resolve_meta_tool(tool, &call).await {
                Ok(None) => {}
                Ok(Some(Resolved::Call(params))) => call.params = params,
                Ok(Some(Resolved::Answer(result))) => {
                    return Outcome::Complete(Reply::Tool(Box::new(result)));
                }
                Err(error) => return Outcome::Failed(error),
            }
        }
        let mut record = CallRecord::new(&self.telemetry);
        let outcome = self.round(&call, notifier, &mut record).await.unwrap_or_else(Outcome::Failed);
        record.ended(&outcome);
        match (outcome, wanted_task(&call)) {
            // It ended before it was a task.
            (Outcome::Complete(Reply::Tool(result)), Ok(Some(wish))) => {
                self.keep_result(&call, *result, wish.ttl).await.unwrap_or_else(Outcome::Failed)
            }
            (outcome, _) => outcome,
        }
    }

    async fn round(
        &self,
        call: &Call,
        notifier: Notifier,
        record: &mut CallRecord<'_>,
    ) -> Result<Outcome, RpcError> {
        let state = RoundState::of(call);
        if let (Some(tap), Some((connection, id))) =
            (&self.tap, state.as_ref().and_then(|state| state.origin.clone()))
            && let Some(call) = current_call()
        {
            let earlier = CallOrigin::new(connection, id);
            // A legacy call asks within one request.
            if earlier != call {
                tap.event(&TapEvent::Continued { call: &call, earlier: &earlier });
            }
        }
        let beginning = match state {
            Some(state) if state.is_consent => {
                // The call starts from the beginning, now with the answer.
                self.begin(call, &notifier, state.completed_rounds, record).await?
            }
            Some(state) => self.resume(call, &notifier, state, record).await?,
            None => self.begin(call, &notifier, 0, record).await?,
        };
        match beginning {
            Beginning::Running { call: upstream_call, completed_rounds, context } => {
                self.run(call, &notifier, upstream_call, completed_rounds, context, record).await
            }
            Beginning::Ended(outcome) => Ok(outcome),
        }
    }

    /// Begins a call: finds its server and asks the policy.
    async fn begin(
        &self,
        call: &Call,
        notifier: &Notifier,
        consent_rounds: u32,
        record: &mut CallRecord<'_>,
    ) -> Result<Beginning, RpcError> {
        let may_ask = consent_rounds < MAX_ROUNDS;
        let consent =
            |target: String| RoundState { is_consent: true, ..RoundState::new(consent_rounds + 1, target) };
        let route = match self.router.route(call).await {
            Ok(route) => route,
            Err(unknown) => match self.asker.approve_owner(call, self.router.max_name).await {
                Some(Approval::Approved) => self.router.route(call).await?,
                Some(Approval::ApprovedByTool(text)) => {
                    let result = CallToolResult::text(text);
                    return Ok(Beginning::Ended(Outcome::Complete(Reply::Tool(Box::new(result)))));
                }
                Some(Approval::Asks(question)) if may_ask => {
                    return ask(vec![*question], &consent(String::new())).map(Beginning::Ended);
                }
                None => {
                    let Some(connecting) = self.connect_owner(call).await else { return Err(unknown) };
                    match connecting {
                        Connecting::Retry => self.router.route(call).await?,
                        other => match Self::connecting_outcome(call, other) {
                            Ok(outcome) => return Ok(Beginning::Ended(outcome)),
                            Err(question) if may_ask => {
                                return ask(vec![*question], &consent(String::new())).map(Beginning::Ended);
                            }
                            Err(_) => return Err(unknown),
                        },
                    }
                }
                Some(Approval::Asks(_)) => return Err(unknown),
                Some(Approval::Refused(reason)) => {
                    return Ok(Beginning::Ended(result::refused(&call.method, &reason)));
                }
            },
        };
        self.wait_for_account(call, &route.instance).await;
        record.routed(&route, call);
        if wanted_task(call)?.is_some() {
            if route.tasks == ToolTasks::None {
                let name = call.params.name()?;
                let reason = format!("the tool `{name}` does not run as a task; call it without `task`");
                return Err(RpcError::new(error_code::METHOD_NOT_FOUND, reason));
            }
            self.task_records.check_room(&call.client).await?;
        }
        let gate = self.asker.caller_gate(call);
        let started = self.tap.is_some().then(Instant::now);
        let click = started.and_then(|_| call.extensions.get::<ConsentGiven>());
        let click = click.filter(|consent| consent.is_for(&route.instance.name));
        let click = click.map(|_| ClickGate(self.asker.guard.gate()));
        let asked = click.as_ref().map(|gate| gate as &dyn Gate);
        let asked = asked.or_else(|| gate.as_ref().map(|gate| gate as &dyn Gate));
        let permit = self.asker.permit(&route, call, asked).await;
        if let Some(started) = started {
            self.tell_decision(&route, &permit, started);
        }
        let permit = match (permit, gate.and_then(CallerGate::into_question)) {
            (Ok(permit), _) => permit,
            (Err(_), Some(question)) if may_ask => {
                return ask(vec![question], &consent(route.target())).map(Beginning::Ended);
            }
            (Err(refusal), _) => {
                record.denied(&refusal);
                return Ok(Beginning::Ended(result::refused(&call.method, refusal.reason())));
            }
        };
        let upstream_call = self.upstream_call(&route, call, notifier, route.params.clone(), record)?;
        let context = CallContext { route, permit: Some(permit) };
        Ok(Beginning::Running { call: upstream_call, completed_rounds: consent_rounds, context })
    }

    /// Tells whoever watches what the policy decided.
    fn tell_decision(&self, route: &Route, permit: &Result<Permit, Refusal>, started: Instant) {
        let Some(call) = current_call() else { return };
        let reason = match permit {
            Ok(permit) => permit.reason(),
            Err(refusal) if refusal.kind() == RefusalKind::Deferred => return,
            Err(refusal) => refusal.reason(),
        };
        let (call, server, allowed) = (&call, &*route.instance.name, permit.is_ok());
        self.tell(&TapEvent::Decided { call, server, allowed, reason, took: started.elapsed() });
    }

    /// Continues a call with the answers of its caller.
    async fn resume(
        &self,
        call: &Call,
        notifier: &Notifier,
        state: RoundState,
        record: &mut CallRecord<'_>,
    ) -> Result<Beginning, RpcError> {
        let completed_rounds = state.completed_rounds;
        if let Some(key) = state.parked_call {
            let ended = || RpcError::invalid_params("the call that this answers has ended; start it again");
            let (mut upstream_call, context) = self.parked_calls.take(&key).ok_or_else(ended)?;
            upstream_call.resume(notifier.clone(), call.replay.answers());
            record.routed(&context.route, call);
            return Ok(Beginning::Running { call: upstream_call, completed_rounds, context });
        }
        let route = self.router.route(call).await?;
        if route.target() != state.target {
            return Err(RpcError::invalid_params(
                "the tool, resource or prompt changed since this question was asked; start the call again",
            ));
        }
        record.routed(&route, call);
        let mut answers = state.answers;
        // Answers to questions of the policy are not for the server.
        for (key, answer) in call.replay.answers().filter(|(key, _)| !key.starts_with(caller_gate::KEY)) {
            let answer = answer.clone();
            let is_elicitation = state.elicitations.iter().any(|elicitation| elicitation == key);
            answers.insert(key, if is_elicitation { answer.or_else(or_cancelled)? } else { answer? });
        }
        if state.is_url_elicitation {
            if let Some(reason) = url_elicitation::refusal(&answers) {
                return Ok(Beginning::Ended(result::refused(&call.method, reason)));
            }
            answers = RawMap::new();
        }
        let upstream_call = if let Some(task_id) = state.upstream_task {
            let answered = state.answered.into_iter().chain(answers.keys().map(ToOwned::to_owned)).collect();
            let follow = Follow { task_id, known: None, answered, answers, cancels: true };
            self.follow(&route, call, notifier, follow, record)?
        } else {
            let params = retry_params(&route.params, &answers, state.upstream_state.as_deref())?;
            self.upstream_call(&route, call, notifier, params, record)?
        };
        let context = CallContext { route, permit: None };
        Ok(Beginning::Running { call: upstream_call, completed_rounds, context })
    }

    /// Runs a call until it ends or its caller has to be asked.
    async fn run(
        &self,
        call: &Call,
        notifier: &Notifier,
        mut upstream_call: UpstreamCall,
        mut rounds: u32,
        mut context: CallContext,
        record: &mut CallRecord<'_>,
    ) -> Result<Outcome, RpcError> {
        // Questions of the followed task that were answered in this and earlier rounds.
        let mut answered: BTreeSet<String> = upstream_call.answered().clone();
        let mut hosted_at = hosted_after(&context.route, call).map(|after| Instant::now() + after);
        loop {
            let (reply, is_slow) = first_reply(&mut upstream_call, hosted_at, call).await;
            if is_slow {
                let call = call.clone();
                let running = RunningCall { call, upstream: upstream_call, context, rounds, answered, reply };
                let (error, back) = match self.host_call(running, record).await {
                    Ok(outcome) => return Ok(outcome),
                    Err(not_hosted) => *not_hosted,
                };
                if wanted_task(&back.call)?.is_some() {
                    return Ok(failed(back.context.permit, error));
                }
                tracing::debug!(%error, "a slow call does not become a task");
                RunningCall { upstream: upstream_call, context, answered, .. } = back;
                hosted_at = None;
                continue;
            }
            let Some(reply) = reply else { continue };
            let route = &context.route;
            if asks(&reply) {
                rounds += 1;
                if rounds > MAX_ROUNDS {
                    let name = &route.instance.name;
                    let reason =
                        format!("the server `{name}` requested input in more than {MAX_ROUNDS} rounds");
                    return Err(RpcError::internal(reason));
                }
            }
            match reply {
                UpstreamReply::Complete(json) => {
                    let bytes = json.as_bytes().len();
                    let mut outcome = result::outcome(route, &call.method, &json);
                    if let (Outcome::Complete(Reply::Completion(completions)), Some(completion)) =
                        (&mut outcome, &route.completion)
                    {
                        self.asker.remove_denied(
                            &route.instance,
                            CallerView::of(call),
                            completion,
                            completions,
                        );
                    }
                    record.received(bytes);
                    finish(context.permit, &outcome, bytes);
                    return Ok(outcome);
                }
                UpstreamReply::UrlElicitationRequired(urls) => {
                    match self.asker.url_elicitation(route, CallerView::of(call), urls).await {
                        UrlElicitation::Ask(questions) => {
                            let elicitations =
                                questions.iter().map(|question| question.key.clone()).collect();
                            let state = RoundState::new(rounds, route.target());
                            let state = RoundState { elicitations, is_url_elicitation: true, ..state };
                            finish_round(context.permit);
                            return ask(questions, &state);
                        }
                        UrlElicitation::Fail(error) => return Ok(failed(context.permit, error)),
                    }
                }
                UpstreamReply::Failed(error) => return Ok(failed(context.permit, error)),
                UpstreamReply::LoginNeeded(error) => {
                    if let Some(connecting) = self.connect_again(call, &route.instance, &error).await {
                        return match Self::connecting_outcome(call, connecting) {
                            Ok(Outcome::Failed(error)) => Ok(failed(context.permit, error)),
                            Ok(outcome) => {
                                finish_round(context.permit);
                                Ok(outcome)
                            }
                            Err(question) => {
                                let state = RoundState::new(rounds + 1, String::new());
                                finish_round(context.permit);
                                ask(vec![*question], &RoundState { is_consent: true, ..state })
                            }
                        };
                    }
                    return Ok(failed(context.permit, error));
                }
                UpstreamReply::TimedOut(error) => {
                    record.timed_out(&error);
                    return Ok(failed(context.permit, error));
                }
                UpstreamReply::Asks(questions) => {
                    let state = RoundState::new(rounds, route.target());
                    match self.parked_calls.park(upstream_call, context, call) {
                        Ok(key) => return ask(questions, &RoundState { parked_call: Some(key), ..state }),
                        Err(rejected) => {
                            tracing::warn!("too many calls wait for answers; the question is not asked");
                            (upstream_call, context) = *rejected;
                            upstream_call.resume(notifier.clone(), std::iter::empty());
                        }
                    }
                }
                UpstreamReply::Task(created) => {
                    if tasks_of_caller(call) || wanted_task(call)?.is_some() {
                        let (outcome, digest) = match self.pass_on_task(route, call, &created).await {
                            Ok(passed_on) => passed_on,
                            Err(error) => return Ok(failed(context.permit, error)),
                        };
                        let permit = context.permit.map(|permit| permit.for_task(digest));
                        finish(permit, &outcome, created.as_bytes().len());
                        return Ok(outcome);
                    }
                    let follow = follow_created(&route.instance.name, &created)?;
                    upstream_call = self.follow(route, call, notifier, follow, record)?;
                }
                UpstreamReply::TaskAsks(task) => {
                    let (answers, elicitations, questions) =
                        self.answer_requests(route, call, &task.questions).await?;
                    let task_id = task.task.task_id.clone();
                    if !questions.is_empty() {
                        let state = RoundState::new(rounds, route.target());
                        let (upstream_task, answered) = (Some(task_id), answered.into_iter().collect());
                        let state = RoundState { upstream_task, answered, answers, elicitations, ..state };
                        finish_round(context.permit);
                        return ask(questions, &state);
                    }
                    answered.extend(answers.keys().map(ToOwned::to_owned));
                    let answered = answered.clone();
                    let follow = Follow { task_id, known: None, answered, answers, cancels: true };
                    upstream_call = self.follow(route, call, notifier, follow, record)?;
                }
                UpstreamReply::InputRequired { requests, state: upstream_state } => {
                    let (answers, elicitations, questions) =
                        self.answer_requests(route, call, &requests).await?;
                    if !questions.is_empty() {
                        let state = RoundState::new(rounds, route.target());
                        let state = RoundState { upstream_state, answers, elicitations, ..state };
                        finish_round(context.permit);
                        return ask(questions, &state);
                    }
                    let params = retry_params(&route.params, &answers, upstream_state.as_deref())?;
                    upstream_call = self.upstream_call(route, call, notifier, params, record)?;
                }
            }
        }
    }

    /// Answers the requests that the host can answer. Returns these answers, the keys of elicitations among the rest, and the
    /// questions for the caller.
    pub(super) async fn answer_requests(
        &self,
        route: &Route,
        call: &Call,
        requests: &InputRequests,
    ) -> Result<(RawMap, Vec<String>, Vec<Question>), RpcError> {
        let (mut answers, mut elicitations, mut questions) = (RawMap::new(), Vec::new(), Vec::new());
        let caller = CallerView::of(call);
        for (key, request) in requests {
            let is_elicitation = matches!(request, InputRequest::Elicit(_));
            let answer = match self.asker.answerer(&route.instance, caller, request) {
                Answerer::Caller => {
                    let request = with_origin(&route.instance, request.clone());
                    questions.push(Question::new(key.to_owned(), request));
                    elicitations.extend(is_elicitation.then(|| key.to_owned()));
                    continue;
                }
                Answerer::Host => {
                    let gate = self.asker.request_gate(call, key);
                    let asks = gate.as_ref().map(|gate| gate as &dyn Gate);
                    let answer = self.asker.answer(&route.instance, caller, request.clone(), asks).await;
                    match (answer, gate.and_then(CallerGate::into_question)) {
                        // The server asks again when the caller has answered.
                        (Err(_), Some(question)) => {
                            questions.push(question);
                            continue;
                        }
                        (answer, _) => answer,
                    }
                }
                Answerer::Nobody(error) => Err(error),
            };
            answers.insert(key, if is_elicitation { answer.or_else(or_cancelled)? } else { answer? });
        }
        Ok((answers, elicitations, questions))
    }

    pub(super) fn upstream_call(
        &self,
        route: &Route,
        call: &Call,
        notifier: &Notifier,
        params: RawJson,
        record: &mut CallRecord<'_>,
    ) -> Result<UpstreamCall, RpcError> {
        self.attempt(route, call, notifier, params, None, record)
    }

    /// Waits for a task of a server on behalf of a caller.
    pub(super) fn follow(
        &self,
        route: &Route,
        call: &Call,
        notifier: &Notifier,
        follow: Follow,
        record: &mut CallRecord<'_>,
    ) -> Result<UpstreamCall, RpcError> {
        self.attempt(route, call, notifier, RawJson::empty_object(), Some(follow), record)
    }

    fn attempt(
        &self,
        route: &Route,
        call: &Call,
        notifier: &Notifier,
        params: RawJson,
        follow: Option<Follow>,
        record: &mut CallRecord<'_>,
    ) -> Result<UpstreamCall, RpcError> {
        let mut meta = meta_of(call)?;
        let mut capabilities = self.asker.capabilities(&route.instance, &call.client);
        let method = match &route.subject {
            Subject::Method(name) => {
                // The result is passed on unchanged, so extensions concern only the caller and the server.
                capabilities.extensions.clone_from(&call.client.capabilities().extensions);
                MethodName::Custom(name.as_str().into())
            }
            Subject::Tool(_) => {
                // The host waits for tasks if its caller cannot.
                capabilities.extensions.insert(TASKS_EXTENSION, RawJson::empty_object());
                call.method.clone()
            }
            Subject::Resource(_) | Subject::Prompt(_) => call.method.clone(),
        };
        let task = match (route.tasks, wanted_task(call)?) {
            (ToolTasks::Optional | ToolTasks::Required, Some(wish)) => TaskWish::Create { ttl: wish.ttl },
            (ToolTasks::Optional | ToolTasks::Required, None) if tasks_of_caller(call) => {
                TaskWish::Create { ttl: None }
            }
            (ToolTasks::Required, None) => TaskWish::Wait,
            (ToolTasks::None | ToolTasks::Hosted | ToolTasks::ServerDecides | ToolTasks::Optional, _) => {
                TaskWish::Plain
            }
        };
        record.sent(route, &mut meta, params.as_bytes().len());
        let attempt = Attempt {
            method,
            subject: route.subject.attribution_name(),
            params,
            meta,
            capabilities,
            client_info: call.client.info().cloned(),
            task,
            follow,
            may_be_hosted: hosted_after(route, call).is_some(),
        };
        Ok(UpstreamCall::new(&route.instance, call, notifier.clone(), attempt))
    }
}

pub(super) fn asks(reply: &UpstreamReply) -> bool {
    matches!(
        reply,
        UpstreamReply::Asks(_)
            | UpstreamReply::InputRequired { .. }
            | UpstreamReply::TaskAsks(_)
            | UpstreamReply::UrlElicitationRequired(_)
    )
}

/// Returns the task that a server created, to follow it.
pub(super) fn follow_created(server: &str, created: &RawJson) -> Result<Follow, RpcError> {
    let known = TaskState::from_created(created).map_err(|error| {
        RpcError::internal(format!("the server `{server}` sent an invalid task: {error}"))
    })?;
    Ok(Follow {
        task_id: known.task.task_id.clone(),
        known: Some(known),
        answered: BTreeSet::new(),
        answers: RawMap::new(),
        cancels: true,
    })
}

/// Returns the meta tool that a call names. Names of other tools begin with their server, so they are never the same.
fn meta_tool(call: &Call) -> Option<MetaTool> {
    if call.method != Method::CallTool {
        return None;
    }
    MetaTool::parse(&call.params.name().ok()?)
}

/// Returns the parameters of a retry.
pub(super) fn retry_params(
    params: &RawJson,
    answers: &RawMap,
    state: Option<&str>,
) -> Result<RawJson, RpcError> {
    let invalid = |error: serde_json::Error| RpcError::internal(error.to_string());
    let mut members = params.members().map_err(invalid)?;
    if !answers.is_empty() {
        members.insert("inputResponses", RawJson::of(answers).map_err(invalid)?);
    }
    if let Some(state) = state {
        members.insert("requestState", RawJson::of(state).map_err(invalid)?);
    }
    RawJson::of(&members).map_err(invalid)
}

/// Returns the caller's metadata. The client that relays the call removes what describes the caller's own connection.
fn meta_of(call: &Call) -> Result<Meta, RpcError> {
    let Some(meta) = call.params.meta()? else { return Ok(Meta::new()) };
    let members = meta.members().map_err(|error| RpcError::invalid_params(error.to_string()))?;
    Ok(members.into())
}

fn failed(permit: Option<Permit>, error: RpcError) -> Outcome {
    let outcome = Outcome::Failed(error);
    finish(permit, &outcome, 0);
    outcome
}

/// Writes the end of a call to the audit log.
pub(super) fn finish(permit: Option<Permit>, outcome: &Outcome, bytes: usize) {
    let Some(permit) = permit else { return };
    let ended = match outcome {
        Outcome::Failed(error) => Ended::Failed { code: error.code, message: error.message.to_string() },
        Outcome::Complete(Reply::Tool(result)) if result.failed() => Ended::ToolFailed,
        Outcome::Complete(_) | Outcome::NeedsInput(_) => Ended::Completed,
    };
    permit.finish(ended, bytes as u64);
}

/// Writes the end of a round to the audit log. The caller's retry is another round.
fn finish_round(permit: Option<Permit>) {
    if let Some(permit) = permit {
        permit.finish(Ended::Completed, 0);
    }
}
