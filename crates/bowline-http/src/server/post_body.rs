//! Reads the body of a POST request, and checks the media types of its head.

use super::{
    body::Body,
    budget::{Budget, Share},
    options::HttpOptions,
    reply,
};
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

/// Reads a body. Fails if it is too long, does not arrive in time, or if all bodies in flight take too much memory.
pub(super) async fn read<B: http_body::Body>(
    options: &HttpOptions,
    budget: &Budget,
    body: B,
) -> Result<Bytes, StatusCode> {
    let limit = options.max_body;
    if body.size_hint().lower() > limit as u64 {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let mut reading = pin!(collect(body, limit, budget.share()));
    // Most bodies arrive with their head and need no timer.
    if let Poll::Ready(read) = poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
        return read;
    }
    let in_time = tokio::time::timeout(options.body_time, reading).await;
    in_time.unwrap_or(Err(StatusCode::REQUEST_TIMEOUT))
}

/// Reads the whole body. A body in one piece is not copied.
async fn collect<B: http_body::Body>(body: B, limit: usize, mut share: Share) -> Result<Bytes, StatusCode> {
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(0).min(limit);
    let mut body = pin!(body);
    let mut first = Bytes::new();
    let mut bytes = BytesMut::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let Ok(mut data) = frame.map_err(|_| StatusCode::BAD_REQUEST)?.into_data() else { continue };
        let piece = data.copy_to_bytes(data.remaining());
        if first.len().max(bytes.len()) + piece.len() > limit {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        if !share.grow(piece.len()) {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        if first.is_empty() && bytes.is_empty() {
            first = piece;
            continue;
        }
        if bytes.is_empty() {
            bytes.reserve(expected.max(first.len() + piece.len()));
            bytes.extend_from_slice(&first);
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(share.bind(if bytes.is_empty() { first } else { bytes.freeze() }))
}

/// Returns the response for a body that could not be read.
pub(super) fn unreadable(status: StatusCode) -> Response<Body> {
    if status == StatusCode::SERVICE_UNAVAILABLE {
        return reply::later("too many request bodies in flight; try again later");
    }
    reply::refusal(status, status.canonical_reason().unwrap_or("cannot read the body"))
}

/// Refuses a request unless it sends JSON and accepts JSON or events.
pub(super) fn check_types(headers: &HeaderMap) -> Result<(), Box<Response<Body>>> {
    let is_json = |value: &HeaderValue| is_media(value.as_bytes(), "application/json");
    // Of two lines with this name, another program may have read the other one.
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    if !(types.next().is_some_and(is_json) && types.next().is_none()) {
        let refusal =
            reply::refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected `Content-Type: application/json`");
        return Err(Box::new(refusal));
    }
    if headers.get_all(header::CONTENT_ENCODING).iter().any(|encoding| encoding != "identity") {
        return Err(Box::new(reply::refusal(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "`Content-Encoding` is not supported",
        )));
    }
    if accepts(headers, "application/json")
        || accepts(headers, "text/event-stream")
        || !headers.contains_key(header::ACCEPT)
    {
        return Ok(());
    }
    let reason = "expected `Accept: application/json, text/event-stream`";
    Err(Box::new(reply::refusal(StatusCode::NOT_ACCEPTABLE, reason)))
}

/// Returns whether the client accepts a media type.
pub(super) fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let listed =
        headers.get_all(header::ACCEPT).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    listed.into_iter().any(|entry| is_media(entry, wanted) || is_media(entry, "*/*"))
}

/// Returns whether a media type, with or without parameters, equals `wanted`.
fn is_media(value: &[u8], wanted: &str) -> bool {
    let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
    value.get(..end).unwrap_or_default().trim_ascii().eq_ignore_ascii_case(wanted.as_bytes())
}
