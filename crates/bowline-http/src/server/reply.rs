//! Responses of HTTP, with what belongs to each.

use super::body::Body;
use bowline_proto::encode;
use bowline_types::{Id, RpcError, error_code};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

/// Returns a JSON-RPC message as the whole response.
pub(super) fn json(status: StatusCode, message: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::whole(message.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Returns a response with an encoded result.
pub(super) fn response(id: &Id, result: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::response(id, result));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Returns a stream of events.
pub(super) fn stream(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    // Asks proxies to pass events on as they come.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Returns an error with the HTTP status of its code.
pub(super) fn failure(id: Option<&Id>, error: &RpcError) -> Response<Body> {
    json(status_of(error), encode::failure(id, error))
}

/// Returns an error with its own status that belongs to no request.
pub(super) fn refusal(status: StatusCode, reason: &str) -> Response<Body> {
    json(status, encode::failure(None, &RpcError::invalid_request(reason.to_owned())))
}

/// Returns the error for a session that does not exist, has ended, or belongs to another principal.
pub(super) fn no_session() -> Response<Body> {
    refusal(StatusCode::NOT_FOUND, "unknown or expired session")
}

/// Returns an error for a request that may be retried later.
pub(super) fn later(reason: &str) -> Response<Body> {
    let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, reason);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

/// Says when to repeat a request that could not be answered now.
pub(super) fn retry_after(response: &mut Response<Body>, error: &RpcError) {
    if let Some(time) = error.retry_after() {
        let seconds = time.as_secs().max(1);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
}

/// Nothing to say.
pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::whole(Bytes::new()));
    *response.status_mut() = status;
    response
}

/// Returns the HTTP status of an error. 2026-07-28 defines one for some errors; all others are sent with 200.
pub(super) fn status_of(error: &RpcError) -> StatusCode {
    match error.code {
        error_code::INTERNAL_ERROR if error.retry_after().is_some() => StatusCode::SERVICE_UNAVAILABLE,
        error_code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        error_code::PARSE_ERROR
        | error_code::INVALID_REQUEST
        | error_code::HEADER_MISMATCH
        | error_code::MISSING_CLIENT_CAPABILITY
        | error_code::UNSUPPORTED_PROTOCOL_VERSION => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
