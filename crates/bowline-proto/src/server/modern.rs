//! Checks self-describing requests: 2026-07-28.
//!
//! Nothing here outlives the request: each one carries its version, capabilities and identity.

use super::{Profile, Threshold};
use crate::{
    envelope::MethodName,
    params::{Params, RequestMeta},
    replay::{self, Binding, Replay},
    service::{Call, ClientView},
    subscribe::{Listen, SubscriptionAccess},
};
use bowline_types::{
    Capability, ClientCapabilities, Direction, Era, Method, MethodKind, RawJson, Revision, RpcError,
    SubscriptionsListenParams, TASKS_EXTENSION,
};
use bytes::Bytes;
use std::sync::Arc;

/// From this length on, what params say about the client is copied, so that the params can be freed.
const LARGE: usize = 64 * 1024;

/// A request that may proceed.
#[derive(Debug)]
pub enum Admitted {
    /// The request is answered by this result.
    Answer(Bytes),
    /// The request opens a subscription.
    Listen(Box<Listen>),
    /// The request is a call; the threshold applies to its log messages.
    Call(Call, Threshold),
}

/// Checks one self-describing request of a supported `revision`.
pub fn admit(
    profile: &Profile,
    principal: Option<&Arc<str>>,
    revision: Revision,
    method: &MethodName,
    params: Params,
    meta: RequestMeta,
    now: fn() -> u64,
) -> Result<Admitted, RpcError> {
    let mut capabilities = meta.require()?.1.clone();
    let mut info = meta.client_info;
    if params.raw().as_bytes().len() > LARGE {
        // The client is needed until the end of the call; the params are freed earlier.
        capabilities = capabilities.compact();
        info = info.as_ref().map(RawJson::compact);
    }
    let known = match method {
        MethodName::Known(known) => offered_method(profile, *known, revision)?,
        MethodName::Custom(name) => {
            let client = Arc::new(ClientView::new(revision, principal.cloned(), capabilities, info));
            profile.custom.check_request(name, &client)?;
            let mut call = Call::new(method.clone(), params, client);
            call.progress_token = meta.progress_token;
            call.log_level = meta.log_level;
            return Ok(Admitted::Call(call, Threshold::request(meta.log_level)));
        }
    };
    if known == Method::Discover {
        return Ok(Admitted::Answer(profile.discover()));
    }
    let client = Arc::new(ClientView::new(revision, principal.cloned(), capabilities, info));
    if known == Method::Listen {
        let listen: SubscriptionsListenParams = params.decode()?;
        let filter = listen.notifications;
        // A server without tasks ignores their ids, like other changes that it does not know.
        if filter.task_ids.is_some() && profile.capabilities.has_extension(TASKS_EXTENSION) {
            require_extension(&client, TASKS_EXTENSION)?;
        }
        let access = SubscriptionAccess::of(profile, &client);
        return Ok(Admitted::Listen(Box::new(Listen {
            filter,
            access,
            client: Some(client),
            ..Listen::default()
        })));
    }
    if let Some(extension) = known.extension() {
        // A client that knows only the tasks of 2025-11-25 may look after those that it created there; whoever answers
        // decides which those are.
        let looks_after_older = matches!(known, Method::GetTask | Method::CancelTask)
            && client.capabilities().has(Capability::Tasks);
        if !looks_after_older {
            require_extension(&client, extension)?;
        }
    }
    let replay = open_state(profile, &client, known, &params, now)?;
    let mut call = Call::new(known, params, client);
    call.progress_token = meta.progress_token;
    call.log_level = meta.log_level;
    call.replay = replay;
    Ok(Admitted::Call(call, Threshold::request(meta.log_level)))
}

/// Fails with -32021 if the client does not declare an extension with this request.
pub fn require_extension(client: &ClientView, identifier: &str) -> Result<(), RpcError> {
    if client.capabilities().has_extension(identifier) {
        return Ok(());
    }
    let mut required = ClientCapabilities::default();
    required.extensions.insert(identifier, RawJson::empty_object());
    Err(RpcError::missing_capability(&required))
}

/// Returns the revision of a request; fails with -32602 or -32022 if the server does not support it.
pub fn supported(profile: &Profile, meta: &RequestMeta) -> Result<Revision, RpcError> {
    match meta.require()?.0 {
        Ok(revision) if revision.era() == Era::Modern && profile.revisions.contains(*revision) => {
            Ok(*revision)
        }
        other => {
            let requested = other.as_ref().map_or_else(|name| &**name, |revision| revision.as_str());
            let supported: Vec<_> = profile.revisions.newest_first().collect();
            Err(RpcError::unsupported_version(requested, &supported))
        }
    }
}

/// Accepts a custom notification as a call. The description of the client is optional.
pub fn admit_notification(
    profile: &Profile,
    principal: Option<&Arc<str>>,
    method: &MethodName,
    params: Params,
) -> Option<Call> {
    if !profile.custom.has_notification(method.as_str()) {
        return None;
    }
    let meta = RequestMeta::of(&params).ok()?;
    let capabilities = meta.client_capabilities.unwrap_or_else(RawJson::empty_object);
    let client = ClientView::new(Revision::V2026_07_28, principal.cloned(), capabilities, meta.client_info);
    let mut call = Call::new(method.clone(), params, Arc::new(client));
    call.is_notification = true;
    Some(call)
}

fn offered_method(profile: &Profile, known: Method, revision: Revision) -> Result<Method, RpcError> {
    let unknown = || RpcError::method_not_found(known.as_str());
    let is_request = known.kind() == MethodKind::Request && known.direction() != Direction::ServerToClient;
    if !is_request || !known.exists_in(revision) {
        return Err(unknown());
    }
    let offered = match known.extension() {
        Some(identifier) => profile.capabilities.has_extension(identifier),
        None => known.capability().is_none_or(|capability| profile.capabilities.has(capability)),
    };
    if offered { Ok(known) } else { Err(unknown()) }
}

fn open_state(
    profile: &Profile,
    client: &ClientView,
    method: Method,
    params: &Params,
    now: fn() -> u64,
) -> Result<Replay, RpcError> {
    if !can_ask(method) {
        return Ok(Replay::default());
    }
    let responses = params.input_responses()?;
    let Some(state) = params.request_state()? else {
        return responses.as_ref().map_or_else(|| Ok(Replay::default()), Replay::ahead);
    };
    let binding = binding(client, method, params)?;
    replay::open(&profile.keys, &binding, &state, responses.as_ref(), now())
}

/// Returns whether the response to a request may contain input requests.
pub(super) const fn can_ask(method: Method) -> bool {
    matches!(method, Method::CallTool | Method::ReadResource | Method::GetPrompt)
}

/// Returns the binding of a sealed state of this request.
pub(super) fn binding(client: &ClientView, method: Method, params: &Params) -> Result<Binding, RpcError> {
    let subject = if method == Method::ReadResource { params.uri()? } else { params.name()? };
    let arguments = params.arguments()?;
    Ok(Binding::new(client.principal.as_deref(), method, &subject, arguments.as_ref()))
}
