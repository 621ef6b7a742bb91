//! The routes. Every route is in one `match`, with what it needs.

use crate::{
    action::{Action, Enter, Entered, Link},
    assets::Assets,
    guard::{self, Place},
    inspector::Shared,
    keys::{Holder, Refused},
    query::{ApiError, Grade, Query},
    stream::{self, Slot},
};
use bowline_http::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt as _, Limited};
use serde::Serialize;
use std::{
    convert::Infallible,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

/// The largest body that is read without a turn. A code fits into it, so that nobody without a key can take all turns.
const MAX_SMALL: usize = 256;
/// The largest query and action.
const MAX_QUERY: usize = 64 * 1024;
const MAX_ACTION: usize = 4 * 1024 * 1024;
/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(30);

/// What goes wrong with a request.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) error: ApiError,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: ApiError { error: error.into(), advice: None, pointer: None } }
    }

    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.error.advice = Some(advice.into());
        self
    }

    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, what)
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, what)
    }
}

/// The page as a tower service.
#[derive(Clone)]
pub struct InspectorService {
    shared: Arc<Shared>,
}

impl InspectorService {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    async fn respond<B>(self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let mut response = match self.route(&parts, body).await {
            Ok(response) => response,
            Err(failure) => reply(failure.status, &failure.error),
        };
        guard::protect(&mut response);
        response
    }

    async fn route<B>(&self, parts: &Parts, body: B) -> Result<Response<Body>, Failure>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = parts.uri.path();
        let place = match path {
            "/" => Place::Shell,
            "/open" => Place::Open,
            _ if path.starts_with("/a/") => Place::Asset,
            _ => Place::Api,
        };
        if let Err(refusal) = guard::check(parts, place) {
            let status = if refusal == guard::Refusal::BadHost {
                StatusCode::BAD_REQUEST
            } else {
                StatusCode::FORBIDDEN
            };
            return Err(Failure::new(status, refusal.reason()));
        }
        let method = &parts.method;
        match path {
            "/" | "/open" if is_read(method) => {
                self.document(if path == "/" { "index.html" } else { "open.html" })
            }
            _ if place == Place::Asset && is_read(method) => self.asset(path),
            "/api/enter" if method == Method::POST => self.enter(&self.read(parts, body, MAX_SMALL).await?),
            "/api/link" if method == Method::POST => self.link(&parts.headers),
            "/api/events" if method == Method::GET => {
                let holder = self.holder(&parts.headers)?;
                self.events(holder, parts.uri.query().unwrap_or_default())
            }
            "/api/query" if method == Method::POST => {
                let holder = self.holder(&parts.headers)?;
                let body = self.read(parts, body, MAX_ACTION).await?;
                let query = Query::parse(&body)
                    .map_err(|error| Failure::invalid(format!("invalid query: {error}")))?;
                if body.len() > MAX_QUERY && !matches!(query, Query::Check(_) | Query::Decide(_)) {
                    return Err(too_large(MAX_QUERY));
                }
                crate::queries::answer(&self.shared, holder, query).await
            }
            "/api/act" if method == Method::POST => {
                let holder = self.holder(&parts.headers)?;
                // A key that may only look does not make the program read large bodies.
                let limit = if holder.grade == Grade::Control { MAX_ACTION } else { MAX_QUERY };
                let body = self.read(parts, body, limit).await?;
                let action = Action::parse(&body)
                    .map_err(|error| Failure::invalid(format!("invalid action: {error}")))?;
                if action.grade() == Grade::Control && holder.grade != Grade::Control {
                    let failure = Failure::new(StatusCode::FORBIDDEN, "this browser can look, but not act");
                    return Err(
                        failure.advise("ask for control in the page, or open the link that `bowline up` or `bowline inspect` printed")
                    );
                }
                crate::actions::act(&self.shared, holder, action).await
            }
            "/" | "/open" | "/api/events" | "/api/enter" | "/api/link" | "/api/query" | "/api/act" => {
                Err(not_allowed())
            }
            _ if place == Place::Asset => Err(not_allowed()),
            _ => Err(Failure::not_found("not found")),
        }
    }

    fn document(&self, name: &str) -> Result<Response<Body>, Failure> {
        let document = self.shared.assets.document(name).ok_or_else(|| Failure::not_found("not found"))?;
        Ok(with_type(StatusCode::OK, "text/html; charset=utf-8", document))
    }

    fn asset(&self, path: &str) -> Result<Response<Body>, Failure> {
        let found = path.strip_prefix("/a/").and_then(|path| self.shared.assets.file(path));
        let (content, kind) = found.ok_or_else(|| Failure::not_found("not found"))?;
        let mut response = with_type(StatusCode::OK, kind, content);
        let cache = HeaderValue::from_static(Assets::cache());
        response.headers_mut().insert(header::CACHE_CONTROL, cache);
        Ok(response)
    }

    fn enter(&self, body: &[u8]) -> Result<Response<Body>, Failure> {
        let Enter { code } =
            serde_json::from_slice(body).map_err(|_| Failure::invalid("expected `{\"code\": …}`"))?;
        match self.shared.keys.enter(&code, Instant::now()) {
            Ok((key, holder)) => {
                Ok(reply(StatusCode::OK, &Entered { key, grade: holder.grade, run: self.shared.run.clone() }))
            }
            Err(refused) => {
                let reason = match refused {
                    Refused::Unknown => "this link is not valid",
                    Refused::Used => "this link was used before",
                    Refused::UsedTwice => {
                        tracing::warn!(
                            "the link of the inspector was used twice within 30 s, so the browser that used it first is signed out; \
                             run `bowline open` for a new link, and do not share links"
                        );
                        "this link was used twice, so the browser that used it first is signed out, too"
                    }
                };
                Err(Failure::new(StatusCode::FORBIDDEN, reason).advise("run `bowline open` for a new link"))
            }
        }
    }

    /// Creates a link for a program that has the secret of this launch.
    fn link(&self, headers: &HeaderMap) -> Result<Response<Body>, Failure> {
        if !bearer(headers).is_some_and(|secret| self.shared.keys.is_secret(secret)) {
            return Err(no_key());
        }
        let grade = self.shared.options.links;
        let code = self.shared.keys.code(grade);
        let code = code.map_err(|_| Failure::new(StatusCode::SERVICE_UNAVAILABLE, "no random numbers"))?;
        Ok(reply(StatusCode::OK, &Link { path: format!("/open#{}", code.expose()), grade }))
    }

    fn holder(&self, headers: &HeaderMap) -> Result<Holder, Failure> {
        bearer(headers).and_then(|key| self.shared.keys.holder(key)).ok_or_else(no_key)
    }

    fn events(&self, holder: Holder, query: &str) -> Result<Response<Body>, Failure> {
        let after = query.split('&').find_map(|pair| pair.strip_prefix("after="));
        let after = match after.filter(|after| !after.is_empty()).map(str::parse) {
            None => 0,
            Some(Ok(after)) => after,
            Some(Err(_)) => return Err(Failure::invalid("expected `after` to be a number")),
        };
        let slot = Slot::take(&self.shared.streams, holder.grade).ok_or_else(|| {
            let reason = "too many tabs show the inspector already";
            Failure::new(StatusCode::SERVICE_UNAVAILABLE, reason).advise("close one of them")
        })?;
        let mut response = Response::new(stream::body(Arc::clone(&self.shared), holder, after, slot));
        let kind = HeaderValue::from_static("application/x-ndjson");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        Ok(response)
    }

    /// Reads a JSON body within limits.
    async fn read<B>(&self, parts: &Parts, body: B, limit: usize) -> Result<Bytes, Failure>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut types = parts.headers.get_all(header::CONTENT_TYPE).iter();
        let is_json = |value: &HeaderValue| {
            let kind = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
            kind.trim().eq_ignore_ascii_case("application/json")
        };
        // A form or a plain text is what another site could send without being asked.
        if !(types.next().is_some_and(is_json) && types.next().is_none()) {
            let reason = "expected `Content-Type: application/json`";
            return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
        }
        if body.size_hint().lower() > limit as u64 {
            return Err(too_large(limit));
        }
        let is_small = body.size_hint().upper().unwrap_or(u64::MAX).min(limit as u64) <= MAX_SMALL as u64;
        let permit = if is_small { None } else { Some(self.shared.bodies.try_acquire()) };
        let _permit = permit.transpose().map_err(|_| {
            Failure::new(StatusCode::SERVICE_UNAVAILABLE, "too many requests at a time; try again")
        })?;
        match tokio::time::timeout(BODY_TIME, Limited::new(body, limit).collect()).await {
            Ok(Ok(collected)) => Ok(collected.to_bytes()),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large(limit)),
            Ok(Err(_)) => Err(Failure::invalid("the body could not be read")),
            Err(_) => Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
        }
    }
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

fn no_key() -> Failure {
    Failure::new(StatusCode::UNAUTHORIZED, "this browser is not connected")
        .advise("open the link that `bowline up` printed, or run `bowline open`")
}

fn not_allowed() -> Failure {
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed")
}

fn too_large(limit: usize) -> Failure {
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {limit} bytes"))
}

/// Returns the only bearer token of a request.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token.trim_ascii())
}

/// Returns a reply in JSON.
pub(crate) fn reply(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    let text = serde_json::to_vec(value)
        .unwrap_or_else(|_| b"{\"error\":\"the reply could not be written\"}".to_vec());
    with_type(status, "application/json", text.into())
}

fn with_type(status: StatusCode, kind: &'static str, content: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(content));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

impl<B> tower_service::Service<Request<B>> for InspectorService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.respond(request).await) })
    }
}

impl fmt::Debug for InspectorService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InspectorService").finish_non_exhaustive()
    }
}
