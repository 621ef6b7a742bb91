//! Responses of the authorization server.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

/// An error in the form of RFC 6749, 5.2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) description: &'static str,
}

impl Failure {
    pub(super) fn new(code: &'static str, description: &'static str) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code, description }
    }

    pub(super) fn invalid_client(description: &'static str) -> Self {
        Self { status: StatusCode::UNAUTHORIZED, code: "invalid_client", description }
    }

    pub(super) fn server_error() -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            code: "server_error",
            description: "the token could not be signed",
        }
    }

    pub(super) fn response(&self) -> Response<Vec<u8>> {
        let body = json!({ "error": self.code, "error_description": self.description });
        let mut response = private_json(self.status, &body);
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Basic realm=\"token endpoint\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// Creates a response without a body.
pub(super) fn empty(status: StatusCode) -> Response<Vec<u8>> {
    let mut response = Response::new(Vec::new());
    *response.status_mut() = status;
    response
}

/// Creates a response with JSON that any page may read.
pub(super) fn json(status: StatusCode, body: &Value) -> Response<Vec<u8>> {
    let mut response = Response::new(body.to_string().into_bytes());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    share(response.headers_mut());
    response
}

/// Creates a response with JSON that contains secrets and must not be stored by caches.
pub(super) fn private_json(status: StatusCode, body: &Value) -> Response<Vec<u8>> {
    let mut response = json(status, body);
    forbid_caching(response.headers_mut());
    response
}

/// Creates a redirect to a checked redirect URI.
pub(super) fn redirect(url: &str) -> Response<Vec<u8>> {
    // 307 would make the browser post the form of the consent page to the client.
    let mut response = empty(StatusCode::SEE_OTHER);
    let headers = response.headers_mut();
    match HeaderValue::from_str(url) {
        Ok(url) => drop(headers.insert(header::LOCATION, url)),
        Err(_) => return super::page::refusal(StatusCode::BAD_REQUEST, "The redirect URI is not usable."),
    }
    forbid_caching(headers);
    response
}

/// Creates a page for people. It loads nothing, runs nothing, and cannot be framed.
pub(super) fn html(status: StatusCode, text: String) -> Response<Vec<u8>> {
    let mut response = Response::new(text.into_bytes());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // The address of the page contains `state`. With `no-referrer`, the browser would send the form with the origin `null`.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    forbid_caching(headers);
    response
}

/// Says which methods an endpoint has.
pub(super) fn method_not_allowed(allowed: &'static str) -> Response<Vec<u8>> {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Answers the preflight of a page. No endpoint uses cookies, so any page may call those that are not for people.
pub(super) fn preflight() -> Response<Vec<u8>> {
    let mut response = empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    share(headers);
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, POST"));
    let allowed = "Authorization, Content-Type, MCP-Protocol-Version";
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
    response
}

fn share(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
}

fn forbid_caching(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
}
