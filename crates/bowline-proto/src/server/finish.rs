//! Encodes the outcome of a call for the revision of its caller.

use super::{Profile, Ticket, modern};
use crate::{
    encode::{self, splice},
    params::Params,
    replay::{self, OpenQuestions},
    service::{Outcome, Reply},
};
use bowline_types::{
    Adapt, Era, InputRequest, InputRequests, Meta, RawJson, ResultType, Revision, RpcError, meta, write_json,
};
use serde::{Deserialize, Serialize};

/// Parameters for sealing the state of a call that needs input.
#[derive(Debug)]
pub struct Sealing {
    /// Random bytes from a cryptographic source.
    pub random: [u8; 32],
    /// Expiry of the state, in seconds since the epoch.
    pub expires: u64,
}

/// Appends the response to a call. `sealing` is called only if the call needs input.
pub fn encode(
    profile: &Profile,
    ticket: &mut Ticket,
    outcome: Outcome,
    sealing: &dyn Fn() -> Sealing,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    let encoded = match outcome {
        Outcome::Complete(reply) => {
            // A large request is not held while a large result is written.
            ticket.params = None;
            encode_reply(profile, ticket, reply, out)
        }
        Outcome::NeedsInput(asked) => input_required(profile, ticket, &asked, &sealing(), out),
        Outcome::Failed(error) => Err(error),
    };
    if let Err(mut error) = encoded {
        out.truncate(start);
        error.adapt(ticket.client.revision);
        encode::write_failure(out, Some(&ticket.id), &error);
    }
}

fn encode_reply(profile: &Profile, ticket: &Ticket, reply: Reply, out: &mut Vec<u8>) -> Result<(), RpcError> {
    /// Every result type has these two members; those that are absent are added.
    macro_rules! typed {
        ($result:ident) => {{
            $result.adapt(ticket.client.revision);
            add_server_info(profile, ticket, $result.meta.as_mut());
            let present =
                Present { result_type: $result.result_type.is_some(), meta: $result.meta.is_some() };
            typed(profile, ticket, &*$result, present, out)
        }};
    }
    match reply {
        Reply::Tool(mut result) => typed!(result),
        Reply::Resource(mut result) => typed!(result),
        Reply::Prompt(mut result) => typed!(result),
        Reply::Completion(mut result) => typed!(result),
        Reply::Accepted(result) | Reply::Raw(result) => {
            raw(profile, ticket, &result, out);
            Ok(())
        }
        Reply::Encoded(result) => {
            encode::write_response(out, &ticket.id, &result);
            Ok(())
        }
    }
}

/// Which of the members that every modern result has are present.
#[derive(Clone, Copy)]
struct Present {
    result_type: bool,
    meta: bool,
}

/// Adds the server's name to the `_meta` of a result. [`stamp`] adds it to results without `_meta`.
fn add_server_info(profile: &Profile, ticket: &Ticket, meta: Option<&mut Meta>) {
    let modern = ticket.client.revision.era() == Era::Modern;
    if let (true, Some(meta)) = (modern, meta)
        && let Ok(info) = RawJson::of(&profile.info)
    {
        meta.insert(meta::key::SERVER_INFO, info);
    }
}

fn typed<T: Serialize>(
    profile: &Profile,
    ticket: &Ticket,
    result: &T,
    present: Present,
    out: &mut Vec<u8>,
) -> Result<(), RpcError> {
    encode::start_response(out, &ticket.id);
    write_json(out, result).map_err(|error| RpcError::internal(error.to_string()))?;
    stamp(profile, ticket.client.revision, out, present);
    out.push(b'}');
    Ok(())
}

/// Adds the members that 2026-07-28 requires and that the object at the end of `out` lacks.
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

fn raw(profile: &Profile, ticket: &Ticket, result: &RawJson, out: &mut Vec<u8>) {
    out.reserve(result.as_bytes().len() + 256);
    encode::start_response(out, &ticket.id);
    out.extend_from_slice(result.as_bytes());
    stamp(profile, ticket.client.revision, out, members(result));
    out.push(b'}');
}

fn input_required(
    profile: &Profile,
    ticket: &Ticket,
    asked: &OpenQuestions,
    sealing: &Sealing,
    out: &mut Vec<u8>,
) -> Result<(), RpcError> {
    if ticket.client.revision.era() == Era::Legacy {
        return Err(RpcError::internal("a call of a legacy client ended with an unanswered question"));
    }
    // 2026-07-28 lets a server ask only while it answers one of these.
    let Some(method) = ticket.method.known().filter(|method| modern::can_ask(*method)) else {
        return Err(RpcError::internal(format!(
            "`{}` cannot ask in 2026-07-28; only tools, resources and prompts can",
            ticket.method
        )));
    };
    let empty = Params::empty();
    let params = ticket.params.as_ref().unwrap_or(&empty);
    let binding = modern::binding(&ticket.client, method, params)?;
    let state = replay::seal(&profile.keys, &sealing.random, &binding, asked, sealing.expires)?;
    let mut requests = InputRequests::default();
    for question in &asked.questions {
        let mut request: InputRequest = question.request.clone();
        request.adapt(ticket.client.revision);
        requests.insert(question.key.clone(), request);
    }
    let result = bowline_types::InputRequiredResult::new()
        .result_type(ResultType::InputRequired)
        .input_requests(requests)
        .request_state(state);
    typed(profile, ticket, &result, Present { result_type: true, meta: false }, out)
}
