//! Answers requests of the server: separate requests in legacy revisions, input requests in results of the modern one.

use crate::{
    Answer, CallKey, Error, Relay, Result,
    error::Kind,
    forms::check_form,
    handlers::{Ask, AskUrl},
    shared::Shared,
    web,
};
use bowline_proto::{client::Negotiated, envelope::MethodName, sampling};
use bowline_types::{
    Adapt, ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitFormParams, ElicitParams,
    ElicitResult, ElicitUrlParams, InputRequest, InputRequests, InputResponses, ListRootsResult, Method,
    RawJson, RawMap, Revision, RpcError,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{future::Future, pin::pin, sync::Arc, task::Poll};
use tokio::task::JoinSet;

/// The maximum number of concurrent requests of the server.
pub(crate) const MAX_QUESTIONS: usize = 100;

/// The reason why a request is not answered.
#[derive(Debug)]
pub(crate) struct Refusal(RpcError);

impl Refusal {
    pub(crate) fn into_rpc(self) -> RpcError {
        self.0
    }
}

impl From<RpcError> for Refusal {
    fn from(error: RpcError) -> Self {
        Self(error)
    }
}

/// An answer, and the id of the elicitation if the user agreed to open a URL.
pub(crate) type Answered = (RawJson, Option<String>);

/// Answers a request of a legacy server.
pub(crate) async fn answer_request(
    shared: &Arc<Shared>,
    negotiated: &Negotiated,
    method: &MethodName,
    params: Option<RawJson>,
    call: Option<CallKey>,
) -> Result<Answered, Refusal> {
    let revision = negotiated.revision;
    if let MethodName::Custom(name) = method
        && let Some(handler) = shared.handlers.methods.get(name)
    {
        let answer = caught(handler(own_params(params)?)).await??;
        return Ok((answer, None));
    }
    let known = match method {
        MethodName::Known(known) if known.is_ask() && known.exists_in(revision) => *known,
        _ => return Err(RpcError::method_not_found(method.as_str()).into()),
    };
    // Checked before the parameters are read: an undeclared method does not exist.
    if known.client_capability().is_some_and(|capability| !declared(shared, negotiated).has(capability)) {
        return Err(RpcError::method_not_found(known).into());
    }
    let request = match known {
        Method::Elicit => InputRequest::Elicit(decode(params)?),
        Method::CreateMessage => InputRequest::CreateMessage(Box::new(decode(params)?)),
        _ => InputRequest::ListRoots,
    };
    answer(shared, negotiated, request, call).await
}

/// Returns the parameters without `_meta`, so that a type can reject unknown members.
pub(crate) fn own_params(params: Option<RawJson>) -> Result<RawJson, RpcError> {
    let Some(params) = params else { return Ok(RawJson::empty_object()) };
    let invalid = |error: serde_json::Error| RpcError::invalid_params(error.to_string());
    let mut members = params.members().map_err(invalid)?;
    if members.remove("_meta").is_none() {
        return Ok(params);
    }
    RawJson::of(&members).map_err(invalid)
}

fn decode<T: DeserializeOwned>(params: Option<RawJson>) -> Result<T, RpcError> {
    let params = params.unwrap_or_else(RawJson::empty_object);
    params.decode().map_err(|error| RpcError::invalid_params(error.to_string()))
}

/// Answers all input requests of a modern server concurrently. If one fails, all fail.
pub(crate) async fn answer_all(
    shared: &Arc<Shared>,
    negotiated: &Arc<Negotiated>,
    requests: InputRequests,
) -> Result<InputResponses> {
    if requests.len() > MAX_QUESTIONS {
        return Err(Kind::Unanswerable(format!(
            "the server asked {} questions together, more than the limit of {MAX_QUESTIONS}",
            requests.len()
        ))
        .into());
    }
    let mut tasks = JoinSet::new();
    let mut answers: Vec<(String, Option<RawJson>)> = Vec::with_capacity(requests.len());
    for (position, (key, request)) in requests.iter().enumerate() {
        answers.push((key.to_owned(), None));
        let (shared, negotiated, request) = (Arc::clone(shared), Arc::clone(negotiated), request.clone());
        tasks.spawn(async move { (position, answer(&shared, &negotiated, request, None).await) });
    }
    while let Some(done) = tasks.join_next().await {
        let (position, answer) = done.map_err(|error| Kind::Unanswerable(error.to_string()))?;
        let (answer, _) = answer.map_err(|Refusal(error)| Kind::Unanswerable(error.to_string()))?;
        if let Some((_, slot)) = answers.get_mut(position) {
            *slot = Some(answer);
        }
    }
    Ok(answers.into_iter().filter_map(|(key, answer)| Some((key, answer?))).collect())
}

/// Answers one input request of a task.
pub(crate) async fn answer_one(
    shared: &Arc<Shared>,
    negotiated: &Negotiated,
    request: InputRequest,
) -> Result<RawJson> {
    Ok(answer(shared, negotiated, request, None).await?.0)
}

/// Returns the capabilities that this client declared to a server of this revision.
fn declared(shared: &Shared, negotiated: &Negotiated) -> ClientCapabilities {
    let mut capabilities = shared.profile.capabilities.clone();
    capabilities.adapt(negotiated.revision);
    capabilities
}

async fn answer(
    shared: &Arc<Shared>,
    negotiated: &Negotiated,
    request: InputRequest,
    call: Option<CallKey>,
) -> Result<Answered, Refusal> {
    permit(&declared(shared, negotiated), &request)?;
    if let Some(relay) = &shared.handlers.relay {
        let answer = pass_on(relay, negotiated.revision, request, call).await?;
        return Ok((answer, None));
    }
    match request {
        InputRequest::Elicit(params) => elicit(shared, negotiated, params).await,
        InputRequest::CreateMessage(params) => {
            sample(shared, negotiated, *params).await.map(|result| (result, None))
        }
        InputRequest::ListRoots => list_roots(shared, negotiated).await.map(|result| (result, None)),
    }
}

/// Refuses requests that need an undeclared capability.
fn permit(capabilities: &ClientCapabilities, request: &InputRequest) -> Result<(), RpcError> {
    let undeclared =
        |mode: &str| RpcError::invalid_params(format!("the elicitation mode `{mode}` was not declared"));
    let declared = match request {
        InputRequest::Elicit(_) => capabilities.elicitation.is_some(),
        InputRequest::CreateMessage(_) => capabilities.sampling.is_some(),
        InputRequest::ListRoots => capabilities.roots.is_some(),
    };
    if !declared {
        return Err(RpcError::method_not_found(request.method()));
    }
    match request {
        InputRequest::Elicit(ElicitParams::Form(_)) if !capabilities.has_form_elicitation() => {
            Err(undeclared("form"))
        }
        InputRequest::Elicit(ElicitParams::Url(_)) if !capabilities.has_url_elicitation() => {
            Err(undeclared("url"))
        }
        InputRequest::CreateMessage(params)
            if (params.tools.is_some() || params.tool_choice.is_some())
                && !capabilities.has_sampling_tools() =>
        {
            Err(RpcError::invalid_params("sampling with tools was not declared"))
        }
        InputRequest::Elicit(_) | InputRequest::CreateMessage(_) | InputRequest::ListRoots => Ok(()),
    }
}

/// Passes the request to the relay, and adapts the answer to the server's revision.
async fn pass_on(
    relay: &Arc<dyn Relay>,
    revision: Revision,
    request: InputRequest,
    call: Option<CallKey>,
) -> Result<RawJson, RpcError> {
    let method = request.method();
    let answer = caught(async { relay.ask(call, request).await }).await??;
    let adapted = match method {
        Method::Elicit => adapted::<ElicitResult>(&answer, revision),
        Method::CreateMessage => adapted::<CreateMessageResult>(&answer, revision),
        _ => adapted::<ListRootsResult>(&answer, revision),
    };
    adapted.map_err(|error| {
        tracing::warn!(%error, %method, "the handler returned an invalid answer");
        RpcError::internal(format!("the client's answer to `{method}` is invalid"))
    })
}

fn adapted<T: Adapt + DeserializeOwned + Serialize>(
    answer: &RawJson,
    revision: Revision,
) -> serde_json::Result<RawJson> {
    let mut result: T = answer.decode()?;
    result.adapt(revision);
    RawJson::of(&result)
}

async fn elicit(shared: &Shared, negotiated: &Negotiated, params: ElicitParams) -> Result<Answered, Refusal> {
    let mut visit = None;
    let mut result = match (params, &shared.handlers.ask, &shared.handlers.url) {
        (ElicitParams::Form(form), Some(handler), _) => {
            let ElicitFormParams { message, requested_schema: schema, .. } = form;
            let question = Ask { message, schema: schema.clone(), server: negotiated.server_info.clone() };
            match caught(handler(question)).await?? {
                Answer::Accept(content) => accepted(&schema, &content),
                Answer::Decline => ElicitResult::decline(),
                Answer::Cancel => ElicitResult::cancel(),
            }
        }
        (ElicitParams::Url(page), _, Some(handler)) => {
            let ElicitUrlParams { message, url, elicitation_id, .. } = page;
            if let Err(reason) = web::check_page(&url) {
                tracing::warn!(reason, "declined to visit a page");
                ElicitResult::decline()
            } else {
                let server = negotiated.server_info.clone();
                let question = AskUrl { message, url, elicitation_id: elicitation_id.clone(), server };
                match caught(handler(question)).await?? {
                    Answer::Accept(()) => {
                        visit = elicitation_id;
                        ElicitResult::consent()
                    }
                    Answer::Decline => ElicitResult::decline(),
                    Answer::Cancel => ElicitResult::cancel(),
                }
            }
        }
        (ElicitParams::Form(_) | ElicitParams::Url(_), ..) => {
            return Err(RpcError::method_not_found(Method::Elicit).into());
        }
    };
    result.adapt(negotiated.revision);
    Ok((written(&result)?, visit))
}

/// Fills in the defaults of an accepted form and validates it. An invalid answer must not be sent.
fn accepted(schema: &bowline_types::ElicitSchema, content: &RawJson) -> ElicitResult {
    let checked = content.decode::<RawMap>().map_err(|error| error.to_string()).and_then(|content| {
        let content = schema.with_defaults(content);
        check_form(schema, &content).map(|()| content)
    });
    match checked {
        Ok(content) => ElicitResult::accept(content),
        Err(reason) => {
            tracing::warn!(reason, "the answer does not match the form; declined");
            ElicitResult::decline()
        }
    }
}

async fn sample(
    shared: &Shared,
    negotiated: &Negotiated,
    params: CreateMessageParams,
) -> Result<RawJson, Refusal> {
    let Some(handler) = &shared.handlers.sample else {
        return Err(RpcError::method_not_found(Method::CreateMessage).into());
    };
    sampling::check(&params).map_err(RpcError::invalid_params)?;
    if negotiated.revision.is_modern() {
        shared.warn_deprecated("sampling");
    }
    let mut result: CreateMessageResult = caught(handler(params)).await??;
    result.adapt(negotiated.revision);
    Ok(written(&result)?)
}

async fn list_roots(shared: &Arc<Shared>, negotiated: &Negotiated) -> Result<RawJson, Refusal> {
    if negotiated.revision.is_modern() {
        shared.warn_deprecated("roots");
    }
    let mut roots = shared.roots();
    let accessible = tokio::task::spawn_blocking(move || {
        roots.retain(web::is_accessible);
        roots
    });
    let roots = accessible.await.map_err(|error| RpcError::internal(error.to_string()))?;
    let mut result = ListRootsResult::new(roots);
    result.adapt(negotiated.revision);
    Ok(written(&result)?)
}

fn written(result: &impl Serialize) -> Result<RawJson, RpcError> {
    RawJson::of(result).map_err(|error| RpcError::internal(error.to_string()))
}

/// Runs a handler. A panic becomes an internal error.
async fn caught<T>(handler: impl Future<Output = T>) -> Result<T, RpcError> {
    let mut handler = pin!(handler);
    let result = std::future::poll_fn(|context| {
        let poll = std::panic::AssertUnwindSafe(|| handler.as_mut().poll(context));
        match std::panic::catch_unwind(poll) {
            Ok(Poll::Ready(value)) => Poll::Ready(Some(value)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(_) => Poll::Ready(None),
        }
    });
    result.await.ok_or_else(|| {
        tracing::error!("a handler panicked");
        RpcError::internal("the client failed to answer")
    })
}

impl From<Refusal> for Error {
    fn from(Refusal(error): Refusal) -> Self {
        Kind::Unanswerable(error.to_string()).into()
    }
}
