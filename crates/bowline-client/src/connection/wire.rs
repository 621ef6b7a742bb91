//! Encodes messages of the client.

use bowline_types::{Id, RawJson};
use bytes::Bytes;

/// Encodes a request, or a notification without an id.
pub(super) fn message(id: Option<&Id>, method: &str, params: Option<&RawJson>) -> Bytes {
    let mut out = Vec::with_capacity(64 + method.len() + params.map_or(0, |params| params.as_bytes().len()));
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    // Integers and strings always serialize.
    if let Some(id) = id {
        out.extend_from_slice(b",\"id\":");
        drop(serde_json::to_writer(&mut out, id));
    }
    out.extend_from_slice(b",\"method\":");
    drop(serde_json::to_writer(&mut out, method));
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params.as_bytes());
    }
    out.push(b'}');
    out.into()
}
