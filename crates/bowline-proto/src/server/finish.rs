//! From outcome to frame: adapt to the caller's revision, stamp what it requires, encode once.

use super::{Profile, Ticket, modern};
use crate::{
    encode::{self, splice},
    replay::{self, Asked},
    service::{Outcome, Reply},
};
use bowline_types::{
    Adapt, Era, InputRequest, InputRequests, Meta, RawJson, ResultType, Revision, RpcError, meta,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub(super) fn encode(
    profile: &Profile,
    ticket: &Ticket,
    outcome: Outcome,
    random: &[u8; 32],
    expires: u64,
) -> Bytes {
    let revision = ticket.client.revision;
    let outcome = match outcome {
        Outcome::Complete(reply) => encode_reply(profile, ticket, reply),
        Outcome::NeedsInput(asked) => input_required(profile, ticket, &asked, random, expires),
        Outcome::Failed(error) => Err(error),
    };
    outcome.unwrap_or_else(|mut error| {
        error.adapt(revision);
        encode::failure(Some(&ticket.id), &error)
    })
}

fn encode_reply(profile: &Profile, ticket: &Ticket, reply: Reply) -> Result<Bytes, RpcError> {
    /// Every result type has these two members; which of them it brings along decides what is added.
    macro_rules! typed {
        ($result:ident) => {{
            add_server_info(profile, ticket, $result.meta.as_mut());
            let present =
                Present { result_type: $result.result_type.is_some(), meta: $result.meta.is_some() };
            typed(profile, ticket, &mut *$result, present)
        }};
    }
    match reply {
        Reply::Tool(mut result) => typed!(result),
        Reply::Resource(mut result) => {
            let hint = super::CacheHint::default();
            result.ttl_ms.get_or_insert(hint.ttl_ms);
            result.cache_scope.get_or_insert(hint.scope);
            typed!(result)
        }
        Reply::Prompt(mut result) => typed!(result),
        Reply::Completion(mut result) => typed!(result),
        Reply::Raw(result) => Ok(raw(profile, ticket, &result)),
        Reply::Encoded(result) => Ok(encode::response(&ticket.id, &result)),
    }
}

/// Which members every modern result has are there already.
#[derive(Clone, Copy)]
struct Present {
    result_type: bool,
    meta: bool,
}

/// A result that brings its own `_meta` gets the server's name added to it; others get it spliced in by [`stamp`].
fn add_server_info(profile: &Profile, ticket: &Ticket, meta: Option<&mut Meta>) {
    let modern = ticket.client.revision.era() == Era::Modern;
    if let (true, Some(meta)) = (modern, meta)
        && let Ok(info) = RawJson::of(&profile.info)
    {
        meta.insert(meta::key::SERVER_INFO, info);
    }
}

fn typed<T: Adapt + Serialize>(
    profile: &Profile,
    ticket: &Ticket,
    result: &mut T,
    present: Present,
) -> Result<Bytes, RpcError> {
    let revision = ticket.client.revision;
    result.adapt(revision);
    let mut out = encode::start_response(&ticket.id, 256);
    encode::write(&mut out, result).map_err(|error| RpcError::internal(error.to_string()))?;
    stamp(profile, revision, &mut out, present);
    Ok(encode::end_response(out))
}

/// Adds what 2026-07-28 asks of every result and the object at the end of `out` does not say yet.
fn stamp(profile: &Profile, revision: Revision, out: &mut Vec<u8>, present: Present) {
    if revision.era() == Era::Legacy {
        return;
    }
    if !present.result_type {
        splice(out, b"\"resultType\":\"complete\"");
    }
    if !present.meta {
        splice(out, b"\"_meta\":{}");
        out.pop();
        splice(out, profile.info_member());
        out.push(b'}');
    }
}

#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, rename = "resultType")]
    result_type: Option<&'a serde_json::value::RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a serde_json::value::RawValue>,
}

fn members(object: &RawJson) -> Present {
    let members = object.decode::<Members<'_>>().ok();
    let present = |members: Members<'_>| Present {
        result_type: members.result_type.is_some(),
        meta: members.meta.is_some(),
    };
    members.map_or(Present { result_type: true, meta: true }, present)
}

fn raw(profile: &Profile, ticket: &Ticket, result: &RawJson) -> Bytes {
    let mut out = encode::start_response(&ticket.id, result.as_bytes().len() + 128);
    out.extend_from_slice(result.as_bytes());
    stamp(profile, ticket.client.revision, &mut out, members(result));
    encode::end_response(out)
}

fn input_required(
    profile: &Profile,
    ticket: &Ticket,
    asked: &Asked,
    random: &[u8; 32],
    expires: u64,
) -> Result<Bytes, RpcError> {
    if ticket.client.revision.era() == Era::Legacy {
        return Err(RpcError::internal("a question reached the end of a call that cannot be made again"));
    }
    let binding = modern::binding(&ticket.client, ticket.method, &ticket.params)?;
    let state = replay::seal(&profile.keys, random, &binding, asked, expires)?;
    let mut requests = InputRequests::default();
    for question in &asked.questions {
        let mut request: InputRequest = question.request.clone();
        request.adapt(ticket.client.revision);
        requests.insert(question.key.clone(), request);
    }
    let result = bowline_types::InputRequiredResult {
        result_type: Some(ResultType::InputRequired),
        input_requests: Some(requests),
        request_state: Some(state),
        ..Default::default()
    };
    let mut out = encode::start_response(&ticket.id, 512);
    encode::write(&mut out, &result).map_err(|error| RpcError::internal(error.to_string()))?;
    stamp(profile, ticket.client.revision, &mut out, Present { result_type: true, meta: false });
    Ok(encode::end_response(out))
}
