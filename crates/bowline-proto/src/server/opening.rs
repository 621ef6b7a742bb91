//! Requests before the handshake of a connection.

use super::{Admitted, Legacy, Profile, SessionMemory};
use crate::{envelope::MethodName, params::Params, subscribe::Subscriber};
use bowline_types::{InitializeParams, Method, Revision, RpcError, meta};
use bytes::Bytes;
use std::sync::Arc;

/// Maximum length of the params of `initialize`, which are kept as long as the session.
const MAX_INITIALIZE: usize = 64 * 1024;

/// Checks a request before the handshake. `initialize` returns the legacy session that it opens.
pub(super) fn admit(
    profile: &Profile,
    principal: Option<&Arc<str>>,
    subscriber: &Subscriber,
    method: &MethodName,
    params: &Params,
    memory: SessionMemory,
) -> Result<(Admitted, Option<Legacy>), RpcError> {
    let speaks_legacy = profile.revisions.newest_legacy().is_some();
    match method {
        MethodName::Known(Method::Initialize) => {
            let (legacy, result) = initialize(profile, principal, subscriber, params, memory)?;
            Ok((Admitted::Answer(result), Some(legacy)))
        }
        // Liveness may be asked at any time, before the handshake as well.
        MethodName::Known(Method::Ping) if speaks_legacy => {
            Ok((Admitted::Answer(Bytes::from_static(b"{}")), None))
        }
        _ if profile.revisions.has_modern() => Err(RpcError::invalid_params(format!(
            "`_meta[\"{}\"]` is missing, and the session is not initialized",
            meta::key::PROTOCOL_VERSION
        ))),
        MethodName::Known(method) if speaks_legacy && method.exists_in(Revision::V2025_11_25) => {
            Err(RpcError::invalid_request("expected `initialize` first"))
        }
        _ => Err(RpcError::method_not_found(method.as_str())),
    }
}

fn initialize(
    profile: &Profile,
    principal: Option<&Arc<str>>,
    subscriber: &Subscriber,
    params: &Params,
    memory: SessionMemory,
) -> Result<(Legacy, Bytes), RpcError> {
    if params.raw().as_bytes().len() > MAX_INITIALIZE {
        return Err(RpcError::invalid_params(format!(
            "the parameters of `initialize` exceed {MAX_INITIALIZE} bytes"
        )));
    }
    let params: InitializeParams = params.decode()?;
    let wanted = Revision::parse(&params.protocol_version);
    let known =
        wanted.filter(|revision| *revision <= Revision::V2025_11_25 && profile.revisions.contains(*revision));
    // An unsupported version is answered with a supported one: a result, not an error.
    let Some(revision) = known.or_else(|| profile.revisions.newest_legacy()) else {
        let supported: Vec<_> = profile.revisions.newest_first().collect();
        return Err(RpcError::unsupported_version(&params.protocol_version, &supported));
    };
    let legacy = Legacy::new(revision, principal.cloned(), &params);
    // Clients of an endpoint without principals cannot be distinguished.
    let is_identified = principal.is_some() || matches!(subscriber, Subscriber::WithoutTokens);
    let result = legacy.greeting(profile, memory, is_identified);
    Ok((legacy, result))
}
