//! Sessions that are remembered in their ids, so that any process with the same keys can serve any request of them.

use super::session::Session;
use crate::server::{body::Body, reply, service::Shared};
use bowline_proto::{
    seal::{digest, sealed_len},
    server::SessionState,
};
use bowline_server::transport::{random_bytes, unix_time};
use bowline_types::{Implementation, RawJson, Revision};
use http::{Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

/// The longest id. Proxies and servers limit the length of a header, often to 8 KiB for all of them.
const MAX_ID: usize = 2048;

/// The context of a sealed session: nothing else opens as one, and a session of one principal is none of another.
fn context(principal: Option<&Arc<str>>) -> [u8; 32] {
    let presence: &[u8] = if principal.is_some() { b"known" } else { b"unknown" };
    let principal = principal.map(|name| name.as_bytes()).unwrap_or_default();
    digest(&[b"legacy session", presence, principal])
}

/// Returns the id of a session that `initialize` just opened; `None` if the client says too much of itself.
pub(super) fn seal(shared: &Shared, session: &Session) -> Option<String> {
    let state = session.conversation.state()?;
    let expires = unix_time().saturating_add(shared.options.session_lifetime.as_secs());
    let info = state.client_info.as_ref();
    // Name and version are enough for handlers and logs; icons and descriptions would not fit.
    let short = info.and_then(|info| info.decode::<Implementation>().ok());
    let short = short.map(|info| json!({ "name": info.name, "version": info.version }));
    let of = |info: Value| {
        let plain = json!({
            "revision": state.revision.as_str(),
            "capabilities": state.capabilities.to_value().ok()?,
            "info": info,
            "expires": expires,
        });
        let plain = serde_json::to_vec(&plain).ok()?;
        (sealed_len(plain.len()) <= MAX_ID).then_some(plain)
    };
    let plain = of(info.and_then(|info| info.to_value().ok()).unwrap_or_default())
        .or_else(|| of(short.unwrap_or_default()))?;
    let keys = &shared.server.profile().keys;
    Some(keys.seal(&random_bytes(), &context(session.principal.as_ref()), &plain))
}

/// Returns the session that an id describes, for one request.
pub(in crate::server) fn open(
    shared: &Shared,
    id: &str,
    principal: Option<&Arc<str>>,
) -> Result<Arc<Session>, Box<Response<Body>>> {
    let keys = &shared.server.profile().keys;
    let state = keys.open(&context(principal), id, MAX_ID).ok().and_then(|plain| read(&plain));
    let Some(state) = state else { return Err(Box::new(reply::no_session())) };
    session(shared, id.into(), principal.cloned(), Some(&state))
}

/// Creates the session of one request. Fails if too many of them run.
pub(super) fn session(
    shared: &Shared,
    id: Arc<str>,
    principal: Option<Arc<str>>,
    state: Option<&SessionState>,
) -> Result<Arc<Session>, Box<Response<Body>>> {
    let permit = Arc::clone(&shared.sealed_running).try_acquire_owned();
    let permit = permit.map_err(|_| Box::new(reply::later("too many requests of sessions are running")))?;
    Ok(Session::sealed(shared, id, principal, state, permit))
}

fn read(plain: &[u8]) -> Option<SessionState> {
    let plain: Value = serde_json::from_slice(plain).ok()?;
    if plain["expires"].as_u64()? <= unix_time() {
        return None;
    }
    let raw = |value: &Value| RawJson::of(value).ok();
    let revision = Revision::parse(plain["revision"].as_str()?)?;
    let info = Some(&plain["info"]).filter(|info| !info.is_null()).and_then(raw);
    let mut state = SessionState::new(revision, raw(&plain["capabilities"])?, info);
    // Nobody remembers whether the client sent `notifications/initialized`.
    state.initialized = true;
    Some(state)
}

/// The response to GET and DELETE.
pub(in crate::server) fn not_allowed() -> Response<Body> {
    let reason =
        "this server uses `sealed` sessions, which have no GET stream and cannot be deleted; they expire";
    let mut response = reply::refusal(StatusCode::METHOD_NOT_ALLOWED, reason);
    response.headers_mut().insert(http::header::ALLOW, http::HeaderValue::from_static("POST"));
    response
}

/// The response to an `initialize` whose client says too much of itself.
pub(super) fn too_long() -> Response<Body> {
    let reason = format!(
        "the capabilities of the client do not fit into a session id of {MAX_ID} bytes; sessions of this server are set \
         to `sealed`"
    );
    reply::refusal(StatusCode::BAD_REQUEST, &reason)
}
