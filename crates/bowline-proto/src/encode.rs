//! Encodes requests, notifications and responses.
//!
//! Everything is appended to one buffer; results are serialized once.

use bowline_types::{Id, Method, RawJson, RpcError, write_json};
use bytes::Bytes;
use serde::Serialize;

const HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\"";

fn write_id(out: &mut Vec<u8>, id: &Id) {
    out.extend_from_slice(b",\"id\":");
    match id {
        // Integers and strings always serialize into memory.
        Id::Number(number) => drop(write_json(out, number)),
        Id::String(text) => drop(write_json(out, &**text)),
    }
}

/// Appends an error response; without an id if that of the request is unknown.
pub fn write_failure(out: &mut Vec<u8>, id: Option<&Id>, error: &RpcError) {
    out.extend_from_slice(HEAD);
    if let Some(id) = id {
        write_id(out, id);
    }
    out.extend_from_slice(b",\"error\":");
    // Errors are strings and raw JSON, which always serialize.
    drop(write_json(out, error));
    out.push(b'}');
}

/// Encodes an error response.
pub fn failure(id: Option<&Id>, error: &RpcError) -> Bytes {
    let mut out = Vec::with_capacity(128);
    write_failure(&mut out, id, error);
    out.into()
}

/// Starts a response; the caller appends the result object and the closing brace.
pub fn start_response(out: &mut Vec<u8>, id: &Id) {
    out.extend_from_slice(HEAD);
    write_id(out, id);
    out.extend_from_slice(b",\"result\":");
}

/// Appends a response whose result is already encoded.
pub fn write_response(out: &mut Vec<u8>, id: &Id, result: &[u8]) {
    out.reserve(64 + result.len());
    start_response(out, id);
    out.extend_from_slice(result);
    out.push(b'}');
}

/// Encodes a response whose result is already encoded.
pub fn response(id: &Id, result: &[u8]) -> Bytes {
    let mut out = Vec::new();
    write_response(&mut out, id, result);
    out.into()
}

/// Encodes a request.
pub fn request(id: &Id, method: Method, params: Option<&RawJson>) -> Bytes {
    call(Some(id), method.as_str(), params)
}

/// Encodes a notification.
pub fn notification(method: Method, params: Option<&RawJson>) -> Bytes {
    call(None, method.as_str(), params)
}

/// Encodes a notification and serializes its params.
pub fn notify<T: Serialize>(method: Method, params: &T) -> Bytes {
    let mut out = Vec::with_capacity(192);
    out.extend_from_slice(HEAD);
    out.extend_from_slice(b",\"method\":\"");
    out.extend_from_slice(method.as_str().as_bytes());
    out.extend_from_slice(b"\",\"params\":");
    let start = out.len();
    if write_json(&mut out, params).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"{}");
    }
    out.push(b'}');
    out.into()
}

/// Encodes a request, or a notification without an id, with a custom method name.
///
/// The name must have passed [`check_custom_name`](crate::custom::check_custom_name).
pub fn custom(id: Option<&Id>, method: &str, params: Option<&RawJson>) -> Bytes {
    call(id, method, params)
}

fn call(id: Option<&Id>, method: &str, params: Option<&RawJson>) -> Bytes {
    let mut out = Vec::with_capacity(64 + params.map_or(0, |params| params.as_bytes().len()));
    out.extend_from_slice(HEAD);
    if let Some(id) = id {
        write_id(&mut out, id);
    }
    out.extend_from_slice(b",\"method\":\"");
    out.extend_from_slice(method.as_bytes());
    out.push(b'"');
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params.as_bytes());
    }
    out.push(b'}');
    out.into()
}

/// Appends members to the JSON object at the end of `out`, which may be empty.
///
/// `members` is the inner text of an object: `"a":1,"b":2`.
pub(crate) fn splice(out: &mut Vec<u8>, members: &[u8]) {
    let closed = out.pop();
    debug_assert_eq!(closed, Some(b'}'), "members are spliced into an object");
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    out.extend_from_slice(members);
    out.push(b'}');
}
