//! CORS: lets web pages of listed origins call the endpoint and read its responses.

use super::{body::Body, guard, options::HttpOptions, reply};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request::Parts};

/// Headers of replies that a page may read.
const EXPOSED: &str = "Mcp-Session-Id, WWW-Authenticate, Retry-After, DPoP-Nonce";

/// Longest list of header names that a preflight reply repeats.
const MAX_REQUESTED: usize = 2048;

/// Returns the origin of a request if it is one of the named origins.
pub(super) fn origin(options: &HttpOptions, headers: &HeaderMap) -> Option<HeaderValue> {
    if !options.cors {
        return None;
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (Some(origin), None) if guard::is_named_origin(options, origin) => Some(origin.clone()),
        _ => None,
    }
}

/// Answers the preflight of a page that may call.
pub(super) fn preflight(options: &HttpOptions, request: &Parts) -> Option<Response<Body>> {
    let headers = &request.headers;
    if request.method != Method::OPTIONS
        || !headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        || origin(options, headers).is_none()
    {
        return None;
    }
    let mut response = reply::empty(StatusCode::NO_CONTENT);
    let allowed = response.headers_mut();
    allowed.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    // Only the page knows the names of `Mcp-Param-*` headers, so the requested ones are allowed.
    if let Some(requested) =
        headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).filter(|names| are_names(names))
    {
        allowed.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, requested.clone());
    }
    if headers.get("access-control-request-private-network").is_some_and(|value| value == "true") {
        allowed.insert("access-control-allow-private-network", HeaderValue::from_static("true"));
    }
    allowed.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    Some(response)
}

fn are_names(value: &HeaderValue) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b',' | b' ');
    value.len() <= MAX_REQUESTED && value.as_bytes().iter().all(is_part)
}

/// Adds the headers that let a page of `origin` read a reply.
pub(super) fn allow(headers: &mut HeaderMap, origin: Option<HeaderValue>) {
    // A cache must not give the reply for one origin to another.
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    }
}
