//! The rules of a self-describing request: 2026-07-28.
//!
//! Nothing here outlives the request: version, capabilities and identity are read anew from each one.

use super::{Profile, Threshold};
use crate::{
    envelope::MethodName,
    params::{Params, RequestMeta},
    replay::{self, Binding, Replay},
    service::{Call, ClientView},
    subscribe::{Hearing, Listen},
};
use bowline_types::{
    Direction, Era, Method, MethodKind, RawJson, Revision, RpcError, SubscriptionsListenParams,
};
use bytes::Bytes;
use std::sync::Arc;

/// From which length on parameters are not kept for what they say of the client.
const LARGE: usize = 64 * 1024;

/// A request that may proceed.
#[derive(Debug)]
pub enum Admitted {
    /// It is answered already: this is its result.
    Answer(Bytes),
    /// It opens a subscription.
    Listen(Box<Listen>),
    /// It is a call, whose log messages have to pass the threshold.
    Call(Call, Threshold),
}

/// Admits one self-describing request, in the order of checks that lets a peer mend one fault after the other.
pub fn admit(
    profile: &Profile,
    principal: Option<&Arc<str>>,
    method: &MethodName,
    params: Params,
    meta: RequestMeta,
    now: fn() -> u64,
) -> Result<Admitted, RpcError> {
    let revision = supported(profile, &meta)?;
    let mut capabilities = meta.require()?.1.clone();
    let mut info = meta.client_info;
    if params.raw().as_bytes().len() > LARGE {
        // Who calls is known to the end; what the call was made with is let go before.
        capabilities = capabilities.compact();
        info = info.as_ref().map(RawJson::compact);
    }
    let known = known_method(profile, method, revision)?;
    match known {
        Method::Discover => return Ok(Admitted::Answer(profile.discover())),
        Method::Listen => {
            let listen: SubscriptionsListenParams = params.decode()?;
            let client = Arc::new(ClientView::new(revision, principal.cloned(), capabilities, info));
            let hearing = Hearing::of(profile, &client);
            return Ok(Admitted::Listen(Box::new(Listen { filter: listen.notifications, hearing })));
        }
        _ => {}
    }
    let client = Arc::new(ClientView::new(revision, principal.cloned(), capabilities, info));
    let replay = open_state(profile, &client, known, &params, now)?;
    let call = Call {
        method: known,
        params,
        client,
        progress_token: meta.progress_token,
        log_level: meta.log_level,
        replay,
    };
    Ok(Admitted::Call(call, Threshold::request(meta.log_level)))
}

/// The revision a request names, if this server speaks it; -32602 or -32022 otherwise.
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

fn known_method(profile: &Profile, method: &MethodName, revision: Revision) -> Result<Method, RpcError> {
    let unknown = || RpcError::method_not_found(method.as_str());
    let MethodName::Known(known) = method else { return Err(unknown()) };
    let known = *known;
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
    if !matches!(method, Method::CallTool | Method::ReadResource | Method::GetPrompt) {
        return Ok(Replay::default());
    }
    let responses = params.input_responses()?;
    let Some(state) = params.request_state()? else {
        return responses.as_ref().map_or_else(|| Ok(Replay::default()), Replay::ahead);
    };
    let binding = binding(client, method, params)?;
    replay::open(&profile.keys, &binding, &state, responses.as_ref(), now())
}

/// What a sealed state of this request is bound to.
pub(super) fn binding(client: &ClientView, method: Method, params: &Params) -> Result<Binding, RpcError> {
    let subject = if method == Method::ReadResource { params.uri()? } else { params.name()? };
    let arguments = params.arguments()?;
    Ok(Binding::new(client.principal.as_deref(), method, &subject, arguments.as_ref()))
}
