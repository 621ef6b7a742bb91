//! Decides what is allowed, and who answers the requests of servers: the caller, the host, or nobody.

use super::{
    Telemetry,
    completion::TemplateCompletion,
    pending_servers::PendingServers,
    route::{Route, Subject},
};
use crate::{
    tap::{Tap, TapEvent, current_call},
    upstream::{CallHandle, Instance},
};
use bowline_models::Broker;
use bowline_policy::{
    Action, Audience, CallFacts, Caller, Definition, Facts, Gate, Guard, Permit, Refusal, RefusalKind, Token,
    Trust,
};
use bowline_proto::{
    caller::Caller as TokenCaller,
    service::{Call, ClientView},
};
use bowline_server::transport::random_id;
use bowline_telemetry::ConsentDecision;
use bowline_types::{
    ClientCapabilities, CompleteResult, ElicitParams, ElicitationCapability, InputRequest, ListRootsResult,
    RawJson, RawMap, RootsCapability, RpcError, SamplingCapability,
};
use serde::Serialize;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Instant,
};

/// The error code that the protocol's examples use when a user declines.
const DECLINED: i64 = -1;

/// Who answers a request of a server.
pub(super) enum Answerer {
    /// The client that made the call.
    Caller,
    /// The host: its user, its models, or its configuration.
    Host,
    /// Nobody can.
    Nobody(RpcError),
}

/// Who makes a call: the client, which a session keeps, and what the access token of this request says.
#[derive(Clone, Copy)]
pub(super) struct CallerView<'a> {
    client: &'a ClientView,
    token: Token<'a>,
}

impl<'a> CallerView<'a> {
    pub(super) fn of(call: &'a Call) -> Self {
        Self::new(&call.client, call.caller())
    }

    pub(super) fn of_handle(call: &'a CallHandle) -> Self {
        Self::new(call.client(), call.caller())
    }

    fn new(client: &'a ClientView, caller: Option<&'a Arc<TokenCaller>>) -> Self {
        Self { client, token: caller.map_or(Token::None, |caller| Token::Verified(caller)) }
    }

    /// The caller of a request whose token is not at hand, such as a subscription.
    pub(super) fn of_client(client: &'a ClientView) -> Self {
        let token = if client.principal.is_some() { Token::Unknown } else { Token::None };
        Self { client, token }
    }

    pub(super) fn client(self) -> &'a ClientView {
        self.client
    }

    pub(super) fn is_modern(self) -> bool {
        self.client.revision.is_modern()
    }

    pub(super) fn describe(self) -> Caller<'a> {
        Caller {
            client: self.client.info().map(|info| info.name.as_str()),
            principal: self.client.principal.as_deref(),
            token: self.token,
        }
    }
}

/// Applies the policy and answers for the user.
pub(super) struct Asker {
    pub(super) guard: Guard,
    pub(super) broker: Option<Broker>,
    /// Whether a user can be asked through the gate of the guard.
    pub(super) attended: bool,
    /// Whether questions of the policy about a call are sent to its caller, and who the callers are.
    pub(super) ask_callers: Option<Audience>,
    pub(super) project: Option<String>,
    pub(super) telemetry: Telemetry,
    /// Servers that wait for an approval.
    pub(super) pending: OnceLock<Arc<dyn PendingServers>>,
    /// Input and output tokens per server that were counted so far.
    pub(super) counted_tokens: Mutex<HashMap<Arc<str>, (u64, u64)>>,
    pub(super) tap: Option<Arc<dyn Tap>>,
}

impl Asker {
    /// Sets the servers that wait for an approval. Only the gateway that owns the host does so, once.
    pub(super) fn set_pending(&self, pending: Arc<dyn PendingServers>) {
        let _ = self.pending.set(pending);
    }

    /// Describes a server and a caller to the policy.
    pub(super) fn facts<'a>(&'a self, instance: &'a Instance, caller: CallerView<'a>) -> Facts<'a> {
        Facts {
            trust: if instance.spec.trusted { Trust::Trusted } else { Trust::Untrusted },
            caller: caller.describe(),
            ..self.server_facts(instance)
        }
    }

    /// Describes a server to the policy, where no client is involved.
    pub(super) fn server_facts<'a>(&'a self, instance: &'a Instance) -> Facts<'a> {
        Facts {
            server: &instance.name,
            identity: instance.spec.identity.as_deref(),
            project: self.project.as_deref(),
            ..Facts::default()
        }
    }

    /// Compares the definitions that a server lists with the pinned ones.
    pub(super) async fn check_definitions(&self, instance: &Instance, definitions: &[Definition]) {
        // The guard logs the differences.
        if let Err(refusal) = self.guard.listed(&self.server_facts(instance), definitions).await {
            tracing::warn!(server = &*instance.name, reason = refusal.reason(), "cannot pin tools");
        }
    }

    /// Decides whether a call is allowed, asking through `gate` if there is one.
    pub(super) async fn permit(
        &self,
        route: &Route,
        call: &Call,
        gate: Option<&dyn Gate>,
    ) -> Result<Permit, Refusal> {
        let facts = Facts { gate, ..self.facts(&route.instance, CallerView::of(call)) };
        let decided = match &route.subject {
            Subject::Tool(definition) => {
                let arguments = call.params.arguments().ok().flatten().unwrap_or_else(RawJson::empty_object);
                self.guard.check(&CallFacts { facts, definition, arguments: &arguments }).await
            }
            Subject::Resource(uri) => self.guard.access(&facts, Action::Read, uri).await,
            Subject::Prompt(name) => self.guard.access(&facts, Action::Prompt, name).await,
            Subject::Method(name) => self.guard.access(&facts, Action::Call, name).await,
        };
        self.count_consent(&route.instance, &decided);
        decided
    }

    /// Returns the error if a rule denies a client to read a URI of a server.
    pub(super) fn denied_reading(&self, client: &ClientView, server: &str, uri: &str) -> Option<RpcError> {
        let caller = CallerView::of_client(client).describe();
        let facts = Facts { server, caller, ..Facts::default() };
        let refusal = self.guard.denied_reading(&facts, uri)?;
        Some(RpcError::internal(refusal.reason().to_owned()))
    }

    /// Removes completions that lead to resources that the caller may not read.
    pub(super) fn remove_denied(
        &self,
        instance: &Instance,
        caller: CallerView<'_>,
        completion: &TemplateCompletion,
        result: &mut CompleteResult,
    ) {
        let facts = self.facts(instance, caller);
        let is_denied = |value: &String| {
            completion.uri(value).is_none_or(|uri| {
                !instance.spec.may_show_below(&uri) || self.guard.denied_reading(&facts, &uri).is_some()
            })
        };
        let before = result.completion.values.len();
        result.completion.values.retain(|value| !is_denied(value));
        if result.completion.values.len() < before {
            // The total would reveal how many are hidden.
            result.completion.total = None;
        }
    }

    /// Returns what the caller or the host can answer, as capabilities for the server.
    pub(super) fn capabilities(&self, instance: &Instance, client: &ClientView) -> ClientCapabilities {
        let declared = client.capabilities();
        // Extensions are left out: they would change results in ways that the host cannot pass on.
        let mut capabilities = ClientCapabilities::new();
        capabilities.elicitation.clone_from(&declared.elicitation);
        capabilities.sampling.clone_from(&declared.sampling);
        capabilities.roots.clone_from(&declared.roots);
        if capabilities.elicitation.is_none() && self.attended {
            capabilities.elicitation =
                Some(ElicitationCapability::new().form(RawMap::new()).url(RawMap::new()));
        }
        if capabilities.sampling.is_none() && self.broker.is_some() {
            capabilities.sampling = Some(SamplingCapability::new().tools(RawMap::new()));
        }
        if capabilities.roots.is_none() && !instance.spec.roots.is_empty() {
            capabilities.roots = Some(RootsCapability::new());
        }
        capabilities
    }

    /// Returns who answers a request that a server sends during a call of `caller`. A request that a rule denies, or that is
    /// not safe to show, goes to nobody.
    pub(super) fn answerer(
        &self,
        instance: &Instance,
        caller: CallerView<'_>,
        request: &InputRequest,
    ) -> Answerer {
        let answerer = self.capable_answerer(instance, caller.client, request);
        if matches!(answerer, Answerer::Caller)
            && let Err(refusal) = self.guard.forward(&self.facts(instance, caller), request)
        {
            return Answerer::Nobody(declined(&refusal));
        }
        answerer
    }

    fn capable_answerer(&self, instance: &Instance, client: &ClientView, request: &InputRequest) -> Answerer {
        let declared = client.capabilities();
        let (caller, host, capability) = match request {
            InputRequest::Elicit(ElicitParams::Form(_)) => {
                (declared.has_form_elicitation(), self.attended, "form elicitation")
            }
            InputRequest::Elicit(ElicitParams::Url(_)) => {
                (declared.has_url_elicitation(), self.attended, "URL elicitation")
            }
            InputRequest::CreateMessage(params) => {
                let with_tools = params.tools.is_none() || declared.has_sampling_tools();
                (declared.sampling.is_some() && with_tools, self.broker.is_some(), "sampling")
            }
            // A shared legacy server would apply the roots of one caller to all of them.
            InputRequest::ListRoots => (
                declared.roots.is_some() && !instance.mixes_roots(),
                !instance.spec.roots.is_empty(),
                "roots",
            ),
        };
        match (caller, host) {
            (true, _) => Answerer::Caller,
            (false, true) => Answerer::Host,
            (false, false) => {
                let reason = format!("the client does not support {capability}");
                Answerer::Nobody(RpcError::method_not_found(reason))
            }
        }
    }

    /// Answers a request of a server on behalf of the host, asking through `gate` if there is one.
    pub(super) async fn answer(
        &self,
        instance: &Instance,
        caller: CallerView<'_>,
        request: InputRequest,
        gate: Option<&dyn Gate>,
    ) -> Result<RawJson, RpcError> {
        let facts = Facts { gate, ..self.facts(instance, caller) };
        let declined = |refusal: Refusal| declined(&refusal);
        match request {
            InputRequest::Elicit(params) => {
                to_json(&self.guard.elicit(&facts, params).await.map_err(declined)?)
            }
            InputRequest::CreateMessage(params) => {
                let Some(broker) = &self.broker else {
                    return Err(RpcError::method_not_found("sampling/createMessage"));
                };
                let sampling = self.guard.sample(&facts, *params).await;
                self.count_consent(instance, &sampling);
                let sampling = sampling.map_err(declined)?;
                let started = Instant::now();
                let result = broker.answer(&*instance.name, sampling.request.clone()).await;
                if let Some(tap) = &self.tap {
                    let (call, took) = (current_call(), started.elapsed());
                    let error = result.as_ref().err().map(|error| error.message.to_string());
                    let (call, error, server) = (call.as_ref(), error.as_deref(), &*instance.name);
                    tap.event(&TapEvent::Model { call, server, error, took });
                }
                self.count_tokens(instance, broker);
                to_json(&self.guard.sampled(&facts, &sampling, result?).await.map_err(declined)?)
            }
            InputRequest::ListRoots => self.list_roots(instance, &facts).await,
        }
    }

    /// Answers a request for roots with the configured roots of the server.
    pub(super) async fn list_roots(
        &self,
        instance: &Instance,
        facts: &Facts<'_>,
    ) -> Result<RawJson, RpcError> {
        let roots = instance.accessible_roots().await;
        let can_ask = self.attended || (facts.gate.is_some() && self.guard.asks_about_roots(facts));
        let decided =
            if can_ask { self.guard.roots(facts, &roots).await } else { self.guard.disclose(facts, &roots) };
        self.count_consent(instance, &decided);
        decided.map_err(|refusal| declined(&refusal))?;
        to_json(&ListRootsResult::new(roots))
    }

    /// Counts a decision in the metrics.
    fn count_consent<T>(&self, instance: &Instance, decided: &Result<T, Refusal>) {
        let decision = match decided {
            Ok(_) => ConsentDecision::Allowed,
            Err(refusal) if refusal.kind() == RefusalKind::Deferred => return,
            Err(refusal) if refusal.kind() == RefusalKind::Cancelled => ConsentDecision::Expired,
            Err(_) => ConsentDecision::Denied,
        };
        self.telemetry.metrics.upstream(&instance.name).consent(decision);
    }

    /// Counts the tokens that models used for a server since the last time.
    fn count_tokens(&self, instance: &Instance, broker: &Broker) {
        let mut counted = self.counted_tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let usage = broker.usage(&instance.name);
        let (input, output) = counted.entry(Arc::clone(&instance.name)).or_default();
        let new_input = usage.input_tokens.saturating_sub(*input);
        let new_output = usage.output_tokens.saturating_sub(*output);
        (*input, *output) = (usage.input_tokens, usage.output_tokens);
        self.telemetry.metrics.upstream(&instance.name).sampled(new_input, new_output);
    }
}

fn declined(refusal: &Refusal) -> RpcError {
    RpcError::new(DECLINED, refusal.reason().to_owned())
}

fn to_json(result: &impl Serialize) -> Result<RawJson, RpcError> {
    RawJson::of(result).map_err(|error| RpcError::internal(error.to_string()))
}

/// Prefixes a question with the name of its server, because the caller knows only the host. A URL elicitation gets a new id,
/// because servers may use the same ids, and 2026-07-28 has none.
pub(super) fn with_origin(instance: &Instance, mut request: InputRequest) -> InputRequest {
    let named = |message: &str| format!("[{}] {message}", instance.name);
    match &mut request {
        InputRequest::Elicit(ElicitParams::Form(form)) => form.message = named(&form.message),
        InputRequest::Elicit(ElicitParams::Url(url)) => {
            url.message = named(&url.message);
            url.elicitation_id = Some(random_id());
        }
        InputRequest::CreateMessage(_) | InputRequest::ListRoots => {}
    }
    request
}
