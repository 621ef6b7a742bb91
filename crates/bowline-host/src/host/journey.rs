//! A call through the host: whose it is, whether it may be made, and its rounds until the end.

use super::{
    Inner, Wait,
    answers::{Answerer, abilities, with_origin},
    completion::TemplateCompletion,
    consent::{Approval, CallerGate},
    custom::own_result,
    disclosure::Disclosed,
    telemetry::Account,
    visits::{Visits, unwilling},
};
use crate::{
    aggregate::{Catalog, may_be_of},
    bridge::{Flight, Landing, Leg, unanswered},
    gateway::REFUSED,
    upstream::{CallerKey, Instance},
};
use bowline_policy::{Action, CallFacts, Definition, Ended, Facts, Gate, Permit, Refusal};
use bowline_proto::{
    replay::{Asked, Question, Replay},
    service::{Call, MethodName, Notifier, Outcome, Reply},
};
use bowline_types::{
    CallToolResult, ContentBlock, InputRequest, Meta, Method, RawJson, RawMap, Reference, RpcError,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How often a call may ask before it counts as endless.
const MAX_ROUNDS: u32 = 10;
/// Under which name the stage of a call is kept between its rounds.
const STAGE: &str = "host";

/// Where a call stands between two rounds. It travels sealed, so that nobody but the host reads or makes one.
#[derive(Debug, Serialize, Deserialize)]
struct Stage {
    /// How many rounds came before.
    rounds: u32,
    /// The call waits in this host under this key.
    parked: Option<String>,
    /// The server has to be called again, with its state and what the host has answered itself.
    state: Option<String>,
    answers: RawMap,
    /// The questions that were put to a user.
    forms: Vec<String>,
    /// The questions are pages to visit, of which the server is told nothing.
    visits: bool,
    /// The question is the host's own, whether the call may be made; nothing was sent to the server.
    consent: bool,
    /// Whose questions these are: what is called again has to be the same.
    target: String,
}

impl Stage {
    fn new(rounds: u32, route: &Route) -> Self {
        Self::of(rounds, route.target())
    }

    fn of(rounds: u32, target: String) -> Self {
        let (parked, state) = (None, None);
        let (answers, forms) = (RawMap::new(), Vec::new());
        Self { rounds, parked, state, answers, forms, visits: false, consent: false, target }
    }
}

/// Where a call goes.
pub(super) struct Route {
    pub(super) instance: Arc<Instance>,
    /// As the server knows them, without `_meta` and what belongs to a retry.
    pub(super) params: RawJson,
    pub(super) catalog: Arc<Catalog>,
    pub(super) subject: Subject,
    /// The variable of a template that is being completed.
    pub(super) completion: Option<TemplateCompletion>,
}

/// How a round ends.
enum Ending {
    /// The call is answered.
    Done(Outcome),
    /// The caller is asked.
    Asks(Outcome),
    /// It may not be made.
    Refused(Refusal),
    /// Its server said nothing for too long.
    Silent(RpcError),
}

/// What a call is about, for the policy.
pub(super) enum Subject {
    Tool(Definition),
    Resource(String),
    Prompt(String),
    /// A custom method, as its server knows it.
    Method(String),
}

impl Subject {
    /// Names what may ask: each tool and each prompt by itself, resources together.
    fn kind(&self) -> Box<str> {
        match self {
            Self::Tool(definition) => format!("tool {}", definition.name()).into(),
            Self::Resource(_) => "resource".into(),
            Self::Prompt(name) => format!("prompt {name}").into(),
            Self::Method(name) => format!("method {name}").into(),
        }
    }
}

impl Route {
    /// Names what is called, in all that could be swapped between two rounds.
    fn target(&self) -> String {
        let subject = match &self.subject {
            Subject::Tool(definition) => definition.digest().as_str(),
            Subject::Resource(name) | Subject::Prompt(name) | Subject::Method(name) => name,
        };
        format!("{} {subject}", self.instance.name)
    }
}

/// What belongs to a call that waits.
pub(crate) struct Cargo {
    route: Route,
    permit: Option<Permit>,
}

impl Inner {
    /// Makes a call, or goes on with one.
    pub(super) async fn travel(&self, call: Call, notifier: Notifier) -> Outcome {
        let call = match self.disclosed(call).await {
            Disclosed::Call(call) => call,
            Disclosed::Answered(outcome) => return outcome,
        };
        let mut account = Account::new(&self.telemetry);
        match self.round(&call, notifier, &mut account).await {
            Ok(Ending::Done(outcome)) => {
                account.end(&outcome);
                outcome
            }
            Ok(Ending::Asks(outcome)) => {
                account.pause();
                outcome
            }
            Ok(Ending::Refused(refusal)) => {
                account.denied(&refusal);
                turned_down(&call.method, refusal.reason())
            }
            Ok(Ending::Silent(error)) => {
                account.timed_out(&error);
                Outcome::Failed(error)
            }
            Err(error) => {
                account.failed(&error);
                Outcome::Failed(error)
            }
        }
    }

    async fn round(
        &self,
        call: &Call,
        notifier: Notifier,
        account: &mut Account<'_>,
    ) -> Result<Ending, RpcError> {
        let stage: Option<Stage> = call.replay.kept(STAGE).and_then(|stage| stage.decode().ok());
        // After a question about the call itself, the call starts from the beginning, with the answer.
        let (stage, consent_rounds) = match stage {
            Some(Stage { consent: true, rounds, .. }) => (None, rounds),
            stage => (stage, 0),
        };
        let (mut flight, mut rounds, mut cargo) = match stage {
            Some(Stage { parked: Some(key), rounds, .. }) => {
                let gone = || RpcError::invalid_params("the call this answers has ended; start it again");
                let (mut flight, cargo) = self.parking.take(&key).ok_or_else(gone)?;
                flight.resume(notifier.clone(), call.replay.answers());
                account.begin(&cargo.route, call);
                (flight, rounds, cargo)
            }
            Some(Stage { rounds, state, mut answers, forms, visits, target, .. }) => {
                let route = self.route(call).await?;
                if route.target() != target {
                    return Err(RpcError::invalid_params(
                        "what this answers is not what it was; start the call again",
                    ));
                }
                account.begin(&route, call);
                for (key, answer) in call.replay.answers() {
                    let answer = answer.clone();
                    let is_form = forms.iter().any(|form| form == key);
                    answers.insert(key, if is_form { answer.or_else(unanswered)? } else { answer? });
                }
                if visits {
                    if let Some(reason) = unwilling(&answers) {
                        return Ok(Ending::Done(turned_down(&call.method, reason)));
                    }
                    answers = RawMap::new();
                }
                let params = again(&route.params, &answers, state.as_deref())?;
                (
                    self.flight(&route, call, &notifier, params, account)?,
                    rounds,
                    Cargo { route, permit: None },
                )
            }
            None => {
                let route = match self.route(call).await {
                    Ok(route) => route,
                    Err(unknown) => match self.approve_owner(call).await {
                        Some(Approval::Approved) => self.route(call).await?,
                        Some(Approval::Done(text)) => {
                            let result = CallToolResult::text(text);
                            return Ok(Ending::Done(Outcome::Complete(Reply::Tool(Box::new(result)))));
                        }
                        Some(Approval::Asks(question)) if consent_rounds < MAX_ROUNDS => {
                            let stage = Stage::of(consent_rounds + 1, String::new());
                            return needs(vec![*question], &Stage { consent: true, ..stage });
                        }
                        Some(Approval::Asks(_)) | None => return Err(unknown),
                        Some(Approval::Refused(reason)) => {
                            return Ok(Ending::Done(turned_down(&call.method, &reason)));
                        }
                    },
                };
                account.begin(&route, call);
                let gate = self.caller_gate(call);
                let permit = self.permit(&route, call, gate.as_ref().map(|gate| gate as &dyn Gate)).await;
                let permit = match (permit, gate.and_then(CallerGate::into_asked)) {
                    (Ok(permit), _) => permit,
                    (Err(_), Some(question)) if consent_rounds < MAX_ROUNDS => {
                        let stage = Stage { consent: true, ..Stage::new(consent_rounds + 1, &route) };
                        return needs(vec![question], &stage);
                    }
                    (Err(refusal), _) => return Ok(Ending::Refused(refusal)),
                };
                let flight = self.flight(&route, call, &notifier, route.params.clone(), account)?;
                (flight, consent_rounds, Cargo { route, permit: Some(permit) })
            }
        };
        loop {
            let landing = flight.next().await;
            if matches!(landing, Landing::Asks(_) | Landing::Needs { .. } | Landing::Visits(_)) {
                rounds += 1;
                if rounds > MAX_ROUNDS {
                    let name = &cargo.route.instance.name;
                    let reason = format!("the server `{name}` asks in more than {MAX_ROUNDS} rounds");
                    return Err(RpcError::internal(reason));
                }
            }
            let Cargo { route, .. } = &cargo;
            match landing {
                Landing::Done(result) => {
                    let bytes = result.as_bytes().len();
                    let mut outcome = arrive(route, &call.method, &result);
                    if let Outcome::Complete(Reply::Completion(proposals)) = &mut outcome {
                        self.remove_denied(route, &call.client, proposals);
                    }
                    account.received(bytes);
                    finish(cargo.permit, &outcome, bytes);
                    return Ok(Ending::Done(outcome));
                }
                Landing::Visits(pages) => match self.visits(route, &call.client, pages).await {
                    Visits::Ask(questions) => {
                        let forms = questions.iter().map(|question| question.key.clone()).collect();
                        let stage = Stage { forms, visits: true, ..Stage::new(rounds, route) };
                        finish_asking(cargo.permit);
                        return needs(questions, &stage);
                    }
                    Visits::Tell(error) => {
                        let outcome = Outcome::Failed(error);
                        finish(cargo.permit, &outcome, 0);
                        return Ok(Ending::Done(outcome));
                    }
                },
                Landing::Failed(error) => {
                    let outcome = Outcome::Failed(error);
                    finish(cargo.permit, &outcome, 0);
                    return Ok(Ending::Done(outcome));
                }
                Landing::Silent(error) => {
                    finish(cargo.permit, &Outcome::Failed(error.clone()), 0);
                    return Ok(Ending::Silent(error));
                }
                Landing::Asks(questions) => {
                    let stage = Stage::new(rounds, route);
                    match self.parking.park(flight, cargo, &call.client) {
                        Ok(key) => return needs(questions, &Stage { parked: Some(key), ..stage }),
                        Err(full) => {
                            tracing::warn!("too many calls wait for answers; a question is not put");
                            (flight, cargo) = *full;
                            flight.resume(notifier.clone(), std::iter::empty());
                        }
                    }
                }
                Landing::Needs { requests, state } => {
                    let (mut answers, mut forms, mut questions) = (RawMap::new(), Vec::new(), Vec::new());
                    for (key, request) in &requests {
                        let is_form = matches!(request, InputRequest::Elicit(_));
                        let answer = match self.answerer(&route.instance, &call.client, request) {
                            Answerer::Caller => {
                                let request = with_origin(&route.instance, request.clone());
                                questions.push(Question::new(key.to_owned(), request));
                                forms.extend(is_form.then(|| key.to_owned()));
                                continue;
                            }
                            Answerer::Host => {
                                self.answer(&route.instance, &call.client, request.clone()).await
                            }
                            Answerer::Nobody(error) => Err(error),
                        };
                        answers.insert(key, if is_form { answer.or_else(unanswered)? } else { answer? });
                    }
                    if !questions.is_empty() {
                        let stage = Stage { state, answers, forms, ..Stage::new(rounds, route) };
                        finish_asking(cargo.permit);
                        return needs(questions, &stage);
                    }
                    let params = again(&route.params, &answers, state.as_deref())?;
                    flight = self.flight(route, call, &notifier, params, account)?;
                }
            }
        }
    }

    fn flight(
        &self,
        route: &Route,
        call: &Call,
        notifier: &Notifier,
        params: RawJson,
        account: &mut Account<'_>,
    ) -> Result<Flight, RpcError> {
        let mut meta = meta_of(call)?;
        let mut capabilities = abilities(self, &route.instance, &call.client);
        let method = match &route.subject {
            Subject::Method(name) => {
                // What comes back is passed on as it is, so the extensions are between the caller and the server.
                capabilities.extensions.clone_from(&call.client.capabilities().extensions);
                MethodName::Custom(name.as_str().into())
            }
            Subject::Tool(_) | Subject::Resource(_) | Subject::Prompt(_) => call.method.clone(),
        };
        account.depart(route, &mut meta, params.as_bytes().len());
        let leg = Leg {
            method,
            subject: route.subject.kind(),
            params,
            meta,
            capabilities,
            client_info: call.client.info().cloned(),
        };
        Ok(Flight::new(&route.instance, call, notifier.clone(), leg))
    }

    /// Finds whose the call is. A server that told of a change is asked for its list first, and nobody else is waited for;
    /// what is not known is looked for once more in fresh lists.
    async fn route(&self, call: &Call) -> Result<Route, RpcError> {
        if let MethodName::Custom(name) = &call.method {
            return self.route_custom(name, call).await;
        }
        let tenant = CallerKey::tenant(call);
        let name = match call.method.known() {
            Some(Method::CallTool | Method::GetPrompt) => Some(call.params.name()?),
            _ => None,
        };
        // A name tells whose it is, so that others need not be there.
        let (at_first, at_last) = match &name {
            Some(name) => (Wait::Never, Wait::Owners(name)),
            None => (Wait::Nobody, Wait::Everybody),
        };
        let catalog = self.catalog(&tenant, at_first).await;
        if let Some(route) = route_in(&catalog, call)? {
            if !route.instance.shelf.tools.has_turned() {
                return Ok(route);
            }
            let catalog = self.catalog(&tenant, Wait::Only(route.instance.id)).await;
            if let Some(route) = route_in(&catalog, call)? {
                return Ok(route);
            }
        }
        let catalog = self.catalog(&tenant, at_last).await;
        if let Some(route) = route_in(&catalog, call)? {
            return Ok(route);
        }
        Err(match (call.method.known(), &name) {
            (Some(Method::ReadResource), _) => RpcError::resource_not_found(&call.params.uri()?),
            (Some(method), Some(name)) => self.unknown(method, name, &tenant),
            _ => RpcError::invalid_params("`ref` names nothing that is offered"),
        })
    }

    /// Why there is nothing of this name: its server may just not be there.
    fn unknown(&self, method: Method, name: &str, tenant: &CallerKey) -> RpcError {
        let members = self.members();
        let mut owners = members.iter().filter(|member| may_be_of(self.max_name, &member.name, name));
        let what = if method == Method::GetPrompt { "prompt" } else { "tool" };
        let unknown = || RpcError::invalid_params(format!("unknown {what} `{name}`"));
        owners.find_map(|member| member.instance(tenant).failure()).unwrap_or_else(unknown)
    }

    pub(super) async fn permit(
        &self,
        route: &Route,
        call: &Call,
        gate: Option<&dyn Gate>,
    ) -> Result<Permit, Refusal> {
        let decided = self.decide(route, call, gate).await;
        self.count_consent(&route.instance, &decided);
        decided
    }

    async fn decide(&self, route: &Route, call: &Call, gate: Option<&dyn Gate>) -> Result<Permit, Refusal> {
        let facts = Facts { gate, ..self.facts(&route.instance, &call.client) };
        match &route.subject {
            Subject::Tool(definition) => {
                let arguments = call.params.arguments().ok().flatten().unwrap_or_else(RawJson::empty_object);
                let call = CallFacts { facts, definition, arguments: &arguments };
                self.guard.check(&call).await
            }
            Subject::Resource(uri) => self.guard.access(&facts, Action::Read, uri).await,
            Subject::Prompt(name) => self.guard.access(&facts, Action::Prompt, name).await,
            Subject::Method(name) => self.guard.access(&facts, Action::Call, name).await,
        }
    }
}

fn route_in(catalog: &Arc<Catalog>, call: &Call) -> Result<Option<Route>, RpcError> {
    // What is no object no rule can look at, and a server may take it all the same.
    call.params.arguments()?;
    let found = match call.method.known() {
        Some(Method::CallTool) => catalog.tool(&call.params.name()?).map(|tool| {
            let (entry, definition) = (&tool.entry, tool.definition.clone());
            (Arc::clone(&entry.instance), with(call, "name", &entry.original), Subject::Tool(definition))
        }),
        Some(Method::GetPrompt) => catalog.prompt(&call.params.name()?).map(|entry| {
            let subject = Subject::Prompt(entry.original.clone());
            (Arc::clone(&entry.instance), with(call, "name", &entry.original), subject)
        }),
        Some(Method::ReadResource) => catalog.owner(&call.params.uri()?).map(|(instance, original)| {
            (instance, with(call, "uri", &original), Subject::Resource(original))
        }),
        _ => {
            let mut params: bowline_types::CompleteParams = call.params.decode()?;
            // Whoever may not use something is proposed nothing for it.
            let mut template = None;
            let found = match &mut params.reference {
                Reference::Prompt(reference) => catalog.prompt(&reference.name).map(|entry| {
                    reference.name.clone_from(&entry.original);
                    (Arc::clone(&entry.instance), Subject::Prompt(entry.original.clone()))
                }),
                Reference::Resource(reference) => match catalog.template(&reference.uri) {
                    Some(entry) => {
                        reference.uri.clone_from(&entry.original);
                        template = Some(entry.original.clone());
                        Some((Arc::clone(&entry.instance), Subject::Resource(entry.original.clone())))
                    }
                    None => catalog.owner(&reference.uri).map(|(instance, original)| {
                        reference.uri.clone_from(&original);
                        (instance, Subject::Resource(original))
                    }),
                },
            };
            let completion = template.and_then(|template| TemplateCompletion::new(&template, &params));
            params.meta = None;
            let params = RawJson::of(&params).map_err(|error| RpcError::internal(error.to_string()));
            let Some((instance, subject)) = found else { return Ok(None) };
            let catalog = Arc::clone(catalog);
            return Ok(Some(Route { instance, params: params?, catalog, subject, completion }));
        }
    };
    let Some((instance, params, subject)) = found else { return Ok(None) };
    let catalog = Arc::clone(catalog);
    Ok(Some(Route { instance, params: params?, catalog, subject, completion: None }))
}

/// The parameters of a call with a member replaced, and without what is not for the server.
fn with(call: &Call, member: &str, value: &str) -> Result<RawJson, RpcError> {
    let mut members = own_members(call)?;
    members.insert(member, RawJson::of(value).map_err(invalid)?);
    RawJson::of(&members).map_err(invalid)
}

/// The parameters of a call without what is not for the server.
pub(super) fn own_params(call: &Call) -> Result<RawJson, RpcError> {
    RawJson::of(&own_members(call)?).map_err(invalid)
}

fn own_members(call: &Call) -> Result<RawMap, RpcError> {
    let mut members = call.params.raw().members().map_err(invalid)?;
    // Tasks are not part of what the host declares.
    for own in ["_meta", "inputResponses", "requestState", "task"] {
        members.remove(own);
    }
    Ok(members)
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn invalid(error: serde_json::Error) -> RpcError {
    RpcError::invalid_params(error.to_string())
}

/// The parameters of a retry.
fn again(params: &RawJson, answers: &RawMap, state: Option<&str>) -> Result<RawJson, RpcError> {
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

/// The caller's metadata. What of it describes the caller's own connection, the relaying client leaves out.
fn meta_of(call: &Call) -> Result<Meta, RpcError> {
    let Some(meta) = call.params.meta()? else { return Ok(Meta::new()) };
    let members = meta.members().map_err(|error| RpcError::invalid_params(error.to_string()))?;
    Ok(members.into())
}

fn needs(questions: Vec<Question>, stage: &Stage) -> Result<Ending, RpcError> {
    let mut replay = Replay::default();
    replay.keep(STAGE, RawJson::of(stage).map_err(|error| RpcError::internal(error.to_string()))?);
    Ok(Ending::Asks(Outcome::NeedsInput(Box::new(Asked { questions, replay }))))
}

/// Why a call is not made, where the model can read it if it was the one that called.
fn turned_down(method: &MethodName, reason: &str) -> Outcome {
    if *method == Method::CallTool {
        let mut result = CallToolResult::error(reason);
        result
            .meta
            .get_or_insert_with(Meta::new)
            .insert(REFUSED, RawJson::from(serde_json::Value::Bool(true)));
        return Outcome::Complete(Reply::Tool(Box::new(result)));
    }
    Outcome::Failed(RpcError::internal(reason.to_owned()).with_data(serde_json::json!({ REFUSED: true })))
}

/// The result of a server as the host's own: adapted to its caller on the way out, with all its members.
fn arrive(route: &Route, method: &MethodName, result: &RawJson) -> Outcome {
    let read = |result: &RawJson| -> serde_json::Result<Reply> {
        Ok(match method.known() {
            Some(Method::CallTool) => {
                let mut found: CallToolResult = result.decode()?;
                // A question in the name of the host is the host's to ask.
                found.result_type = None;
                found.extra.remove("inputRequests");
                found.extra.remove("requestState");
                if route.catalog.renames_uris(&route.instance) {
                    found.content.iter_mut().for_each(|block| rename(route, block));
                }
                Reply::Tool(Box::new(found))
            }
            Some(Method::ReadResource) => {
                let mut found: bowline_types::ReadResourceResult = result.decode()?;
                found.result_type = None;
                // Who may read it is decided anew for everybody.
                found.cache_scope = found.cache_scope.map(|_| bowline_types::CacheScope::Private);
                if route.catalog.renames_uris(&route.instance) {
                    for contents in &mut found.contents {
                        let shown = route.catalog.shown_uri(&route.instance, contents.uri());
                        contents.set_uri(shown);
                    }
                }
                Reply::Resource(Box::new(found))
            }
            Some(Method::GetPrompt) => Reply::Prompt(Box::new(result.decode()?)),
            Some(Method::Complete) => Reply::Completion(Box::new(result.decode()?)),
            None => own_result(result)?,
            Some(_) => Reply::Raw(result.clone()),
        })
    };
    match read(result) {
        Ok(reply) => Outcome::Complete(reply),
        Err(error) => {
            let name = &route.instance.name;
            Outcome::Failed(RpcError::internal(format!(
                "the server `{name}` sent a result that is none: {error}"
            )))
        }
    }
}

fn rename(route: &Route, block: &mut ContentBlock) {
    match block {
        ContentBlock::ResourceLink(link) => {
            link.uri = route.catalog.shown_uri(&route.instance, &link.uri);
        }
        ContentBlock::Resource(embedded) => {
            let shown = route.catalog.shown_uri(&route.instance, embedded.resource.uri());
            embedded.resource.set_uri(shown);
        }
        _ => {}
    }
}

fn finish(permit: Option<Permit>, outcome: &Outcome, bytes: usize) {
    let Some(permit) = permit else { return };
    let ended = match outcome {
        Outcome::Failed(error) => Ended::Failed { code: error.code, message: error.message.to_string() },
        Outcome::Complete(Reply::Tool(result)) if result.failed() => Ended::ToolFailed,
        Outcome::Complete(_) | Outcome::NeedsInput(_) => Ended::Completed,
    };
    permit.finish(ended, bytes as u64);
}

/// The rest of the call belongs to the round that the answers bring.
fn finish_asking(permit: Option<Permit>) {
    if let Some(permit) = permit {
        permit.finish(Ended::Completed, 0);
    }
}
