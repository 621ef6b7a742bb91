//! Who answers what servers ask: the caller where it can, the host where it may, nobody otherwise.

use super::Inner;
use crate::{
    bridge::{Pilot, unanswered},
    upstream::{Instance, Owner},
};
use bowline_client::{BoxFuture, Notification};
use bowline_policy::Facts;
use bowline_proto::service::ClientView;
use bowline_server::transport::random_id;
use bowline_types::{
    ClientCapabilities, ElicitParams, ElicitationCapability, InputRequest, ListRootsResult, RawJson, RawMap,
    RootsCapability, RpcError, SamplingCapability,
};
use serde::Serialize;
use std::sync::{Arc, Weak};

/// Who answers a question.
pub(super) enum Answerer {
    /// Whoever made the call.
    Caller,
    /// The host itself: its user, its models, what was configured.
    Host,
    /// Nobody can.
    Nobody(RpcError),
}

/// What a caller and the host together can be asked.
pub(super) fn abilities(inner: &Inner, instance: &Instance, client: &ClientView) -> ClientCapabilities {
    let declared = client.capabilities();
    let mut able = ClientCapabilities {
        elicitation: declared.elicitation.clone(),
        sampling: declared.sampling.clone(),
        roots: declared.roots.clone(),
        // Extensions would change what comes back in ways the host cannot pass on.
        ..ClientCapabilities::default()
    };
    if able.elicitation.is_none() && inner.attended {
        let (form, url) = (Some(RawMap::new()), Some(RawMap::new()));
        able.elicitation = Some(ElicitationCapability { form, url, ..ElicitationCapability::default() });
    }
    if able.sampling.is_none() && inner.broker.is_some() {
        able.sampling =
            Some(SamplingCapability { tools: Some(RawMap::new()), ..SamplingCapability::default() });
    }
    if able.roots.is_none() && !instance.spec.roots.is_empty() {
        able.roots = Some(RootsCapability::new());
    }
    able
}

impl Inner {
    /// Who answers `request` in the course of a call of `client`. What a rule denies, or is not safe to show, goes to nobody.
    pub(super) fn answerer(
        &self,
        instance: &Instance,
        client: &ClientView,
        request: &InputRequest,
    ) -> Answerer {
        let answerer = self.able(instance, client, request);
        if matches!(answerer, Answerer::Caller)
            && let Err(refusal) = self.guard.forward(&self.facts(instance, client), request)
        {
            return Answerer::Nobody(RpcError::new(DECLINED, refusal.reason().to_owned()));
        }
        answerer
    }

    /// Who could answer.
    fn able(&self, instance: &Instance, client: &ClientView, request: &InputRequest) -> Answerer {
        let able = client.capabilities();
        let (caller, host, what) = match request {
            InputRequest::Elicit(ElicitParams::Form(_)) => {
                (able.has_form_elicitation(), self.attended, "a user who could be asked")
            }
            InputRequest::Elicit(ElicitParams::Url(_)) => {
                (able.has_url_elicitation(), self.attended, "a user who could be sent to a page")
            }
            InputRequest::CreateMessage(params) => {
                let with_tools = params.tools.is_none() || able.has_sampling_tools();
                (able.sampling.is_some() && with_tools, self.broker.is_some(), "a model that could be asked")
            }
            // A legacy server that many share would take the folders of one caller for those of all.
            InputRequest::ListRoots => {
                (able.roots.is_some() && !instance.mixes_roots(), !instance.spec.roots.is_empty(), "roots")
            }
        };
        match (caller, host) {
            (true, _) => Answerer::Caller,
            (false, true) => Answerer::Host,
            (false, false) => {
                Answerer::Nobody(RpcError::method_not_found(format!("the client has not declared {what}")))
            }
        }
    }

    /// Answers for the host.
    pub(super) async fn answer(
        &self,
        instance: &Instance,
        client: &ClientView,
        request: InputRequest,
    ) -> Result<RawJson, RpcError> {
        let facts = self.facts(instance, client);
        let refused = |refusal: bowline_policy::Refusal| RpcError::new(DECLINED, refusal.reason().to_owned());
        match request {
            InputRequest::Elicit(params) => {
                written(&self.guard.elicit(&facts, params).await.map_err(refused)?)
            }
            InputRequest::CreateMessage(params) => {
                let Some(broker) = &self.broker else {
                    return Err(RpcError::method_not_found("sampling/createMessage"));
                };
                let sampling = self.guard.sample(&facts, *params).await;
                self.count_consent(instance, &sampling);
                let sampling = sampling.map_err(refused)?;
                let result = broker.answer(&*instance.name, sampling.request.clone()).await;
                self.count_tokens(instance);
                let result = result?;
                written(&self.guard.sampled(&facts, &sampling, result).await.map_err(refused)?)
            }
            InputRequest::ListRoots => self.list_roots(instance, &facts).await.map_err(refused),
        }
    }

    /// The configured roots of a server, if it may have them.
    async fn list_roots(
        &self,
        instance: &Instance,
        facts: &Facts<'_>,
    ) -> Result<RawJson, bowline_policy::Refusal> {
        let roots = instance.accessible_roots().await;
        let decided = if self.attended {
            self.guard.roots(facts, &roots).await
        } else {
            self.guard.disclose(facts, &roots)
        };
        self.count_consent(instance, &decided);
        decided
            .map(|()| RawJson::of(&ListRootsResult::new(roots)).unwrap_or_else(|_| RawJson::empty_object()))
    }
}

/// A question to a user says whose it is: the caller knows the host only. A page to visit gets an id of ours, for the ids of
/// several servers could be the same, and 2026-07-28 has none.
pub(super) fn with_origin(instance: &Instance, mut request: InputRequest) -> InputRequest {
    let named = |message: &str| format!("[{}] {message}", instance.name);
    match &mut request {
        InputRequest::Elicit(ElicitParams::Form(form)) => form.message = named(&form.message),
        InputRequest::Elicit(ElicitParams::Url(page)) => {
            page.message = named(&page.message);
            page.elicitation_id = Some(random_id());
        }
        InputRequest::CreateMessage(_) | InputRequest::ListRoots => {}
    }
    request
}

/// The id of a page to visit.
fn page_id(request: &InputRequest) -> Option<&str> {
    match request {
        InputRequest::Elicit(ElicitParams::Url(page)) => page.elicitation_id.as_deref(),
        InputRequest::Elicit(ElicitParams::Form(_))
        | InputRequest::CreateMessage(_)
        | InputRequest::ListRoots => None,
    }
}

/// The code that the protocol's examples give to a user's refusal.
const DECLINED: i64 = -1;

fn written(result: &impl Serialize) -> Result<RawJson, RpcError> {
    RawJson::of(result).map_err(|error| RpcError::internal(error.to_string()))
}

/// Where instances turn to.
pub(super) struct Desk(pub(super) Weak<Inner>);

impl Owner for Desk {
    fn ask(
        &self,
        instance: Arc<Instance>,
        pilot: Pilot,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>> {
        let inner = self.0.clone();
        Box::pin(async move {
            let Some(inner) = inner.upgrade() else { return Err(RpcError::internal("the host has ended")) };
            let client = Arc::clone(pilot.client());
            match inner.answerer(&instance, &client, &request) {
                Answerer::Caller => {
                    // Not held while a user thinks.
                    drop(inner);
                    let theirs = page_id(&request).map(str::to_owned);
                    let request = with_origin(&instance, request);
                    if let (Some(theirs), Some(ours)) = (theirs, page_id(&request)) {
                        instance.visitors.note(theirs, ours.to_owned(), &pilot);
                    }
                    pilot.ask(request).await
                }
                Answerer::Host => {
                    let _thinking = pilot.pause();
                    let is_form = matches!(request, InputRequest::Elicit(_));
                    let answer = inner.answer(&instance, &client, request).await;
                    if is_form { answer.or_else(unanswered) } else { answer }
                }
                Answerer::Nobody(error) => match request {
                    InputRequest::Elicit(_) => unanswered(error),
                    InputRequest::CreateMessage(_) | InputRequest::ListRoots => Err(error),
                },
            }
        })
    }

    fn ask_aside(
        &self,
        instance: Arc<Instance>,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>> {
        let inner = self.0.clone();
        Box::pin(async move {
            match request {
                // Many servers ask for their folders as soon as they have started.
                InputRequest::ListRoots => {
                    let Some(inner) = inner.upgrade() else {
                        return Err(RpcError::internal("the host has ended"));
                    };
                    let project = inner.project.as_deref();
                    let identity = instance.spec.identity.as_deref();
                    let facts = Facts { server: &instance.name, project, identity, ..Facts::default() };
                    let listed = inner.list_roots(&instance, &facts).await;
                    listed.map_err(|refusal| RpcError::new(DECLINED, refusal.reason().to_owned()))
                }
                InputRequest::Elicit(_) | InputRequest::CreateMessage(_) => {
                    Err(RpcError::internal("nobody has a call under way that this could belong to"))
                }
            }
        })
    }

    fn changed(&self, instance: &Arc<Instance>, notification: Notification) {
        if let Some(inner) = self.0.upgrade() {
            inner.hear(instance, notification);
        }
    }

    fn turned(&self, instance: &Arc<Instance>) {
        if let Some(inner) = self.0.upgrade() {
            inner.instance_turned(instance);
        }
    }
}
