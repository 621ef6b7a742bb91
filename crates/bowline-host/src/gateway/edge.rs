//! Checks the token of HTTP requests, and serves health, readiness and metrics.
//!
//! `/livez` (and `/healthz`) reports that the process is alive and `/readyz` whether its servers are up; `/readyz?verbose` says
//! what is degraded. They need no token, because service managers and load balancers have none. `/metrics` names servers and tools, and needs one.

use super::{connect::Connections, problem::Problem, refusals::RefusalLog};
use crate::Host;
use bowline_http::{Body, Principal, Protection, RequestFilter};
use bowline_proto::caller::Caller;
use bowline_server::BoxFuture;
use bowline_telemetry::{CONTENT_TYPE, store_page, streams_page};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request::Parts};
use ring::{
    hmac,
    rand::{SecureRandom, SystemRandom},
};
use std::{
    fmt::{self, Write as _},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// The token that clients must send. It is stored as a MAC under a key of this process, so that comparisons take constant
/// time.
#[derive(Clone)]
pub(super) struct Token {
    key: Arc<hmac::Key>,
    tag: hmac::Tag,
}

impl Token {
    /// Returns `None` if there is no randomness.
    pub(super) fn new(token: &str) -> Option<Self> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok()?;
        let tag = hmac::sign(&key, token.as_bytes());
        Some(Self { key: Arc::new(key), tag })
    }

    fn is(&self, sent: &[u8]) -> bool {
        hmac::verify(&self.key, sent, self.tag.as_ref()).is_ok()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Returns a new token of 192 random bits; `None` if there is no randomness.
pub fn random_token() -> Option<String> {
    let mut bytes = [0; 24];
    SystemRandom::new().fill(&mut bytes).ok()?;
    // The prefix lets tools that search for leaked secrets find it.
    Some(bytes.iter().fold("bowline_".to_owned(), |mut token, byte| {
        let _ = write!(token, "{byte:02x}");
        token
    }))
}

/// Returns the number of open sessions.
pub(super) type Counter = Box<dyn Fn() -> usize + Send + Sync>;

/// Returns whether the store of sessions answers; `None` if there is none.
pub(super) type StoreStatus = Box<dyn Fn() -> Option<bool> + Send + Sync>;

/// Filters requests before they reach the endpoint.
pub(super) struct Edge {
    pub(super) host: Host,
    pub(super) endpoint: String,
    /// The pages on which users connect their accounts at servers.
    pub(super) connections: Option<Arc<Connections>>,
    pub(super) token: Option<Token>,
    /// Verifies access tokens. The endpoint verifies its own; this is for the other paths.
    pub(super) protection: Option<Protection>,
    pub(super) refusals: Option<Arc<RefusalLog>>,
    /// Counts the sessions of the endpoint, once there is one.
    pub(super) sessions: Arc<OnceLock<Counter>>,
    /// Counts the open streams of the endpoint, once there is one.
    pub(super) streams: Arc<OnceLock<Counter>>,
    /// Returns whether the store of sessions answers, if there is one.
    pub(super) store: Arc<OnceLock<StoreStatus>>,
    /// The store, for its metrics.
    pub(super) shared_store: Option<bowline_store::Store>,
    /// Whether the socket is about to be closed.
    pub(super) shutting_down: Arc<AtomicBool>,
}

/// `allowed_hosts = ["*"]` without a token: any web page could call the gateway by pointing a name at it.
pub(super) fn unprotected_hosts() -> Problem {
    let message = "`*` allows requests for every host, which needs a token; require one, or name the hosts";
    Problem::new("gateway.allowed_hosts", message)
}

impl Edge {
    /// The path of a request that reads. A path that the user gave to the endpoint is the endpoint's.
    fn page<'a>(&self, request: &'a Parts) -> Option<&'a str> {
        let reads = matches!(request.method, Method::GET | Method::HEAD);
        Some(request.uri.path()).filter(|path| reads && *path != self.endpoint)
    }
}

impl RequestFilter for Edge {
    fn check_any_host(&self, request: &Parts) -> Option<Response<Body>> {
        match self.page(request)? {
            "/healthz" | "/livez" => Some(plain(StatusCode::OK, "ok\n")),
            "/readyz" => {
                let (status, state) = if self.shutting_down.load(Ordering::Relaxed) {
                    (StatusCode::SERVICE_UNAVAILABLE, "ending")
                } else if self.host.is_ready() {
                    (StatusCode::OK, "ready")
                } else {
                    (StatusCode::SERVICE_UNAVAILABLE, "starting")
                };
                let is_verbose =
                    request.uri.query().is_some_and(|query| query.split('&').any(|part| part == "verbose"));
                if !is_verbose {
                    return Some(plain(status, format!("{state}\n")));
                }
                let servers = if self.host.is_ready() { "up" } else { "starting" };
                // A store that is down does not make the process unready: it would take every process out of service, and calls
                // without state do not need it.
                let store = match self.store.get().and_then(|status| status()) {
                    Some(true) => "up",
                    Some(false) => "down: sessions and answers that need it are refused",
                    None => "not used",
                };
                Some(plain(status, format!("{state}\nservers: {servers}\nstore: {store}\n")))
            }
            _ => None,
        }
    }

    fn accepts(&self, request: &mut Parts) -> bool {
        let has_token = self.token.as_ref().is_some_and(|token| check(token, &request.headers).is_ok());
        if has_token {
            request.extensions.insert(Principal(TOKEN_PRINCIPAL.into()));
        }
        has_token
    }

    fn allows_navigation(&self, request: &Parts) -> bool {
        let page = self.page(request).filter(|_| self.connections.is_some());
        page.is_some_and(Connections::allows_navigation)
    }

    fn check<'a>(&'a self, request: &'a mut Parts) -> BoxFuture<'a, Option<Response<Body>>> {
        Box::pin(self.answer(request))
    }
}

/// The principal of whoever has the token of a gateway that also accepts access tokens. Those of access tokens are JSON.
const TOKEN_PRINCIPAL: &str = "gateway-token";

impl Edge {
    /// Refuses a request without a token, and answers for the pages beside the endpoint.
    async fn answer(&self, request: &mut Parts) -> Option<Response<Body>> {
        // A browser has no token. The pages find out themselves who opens them.
        if let (Some(connections), Some(_)) = (&self.connections, self.page(request))
            && let Some(response) = connections.answer(request).await
        {
            return Some(response);
        }
        let refusal = match &self.protection {
            Some(protection) => self.check_access(protection, request).await,
            None => self.check_token(&request.headers),
        };
        if refusal.is_some() {
            return refusal;
        }
        if self.page(request) == Some("/metrics") {
            self.host.count_sessions(self.sessions.get().map_or(0, |count| count()));
            let mut page = self.host.metrics();
            page.push_str(&streams_page(self.streams.get().map_or(0, |count| count())));
            if let Some(store) = &self.shared_store {
                page.push_str(&store_page(store).await);
            }
            let mut response = plain(StatusCode::OK, page);
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
            return Some(response);
        }
        None
    }

    fn check_token(&self, headers: &HeaderMap) -> Option<Response<Body>> {
        let refusal = refuse(self.token.as_ref()?, headers)?;
        if let Some(refusals) = &self.refusals {
            refusals.record_token();
        }
        Some(refusal)
    }

    /// Refuses a request that has neither an access token nor the token of the gateway. The endpoint has already checked its
    /// own requests, and has removed their tokens.
    async fn check_access(&self, protection: &Protection, request: &mut Parts) -> Option<Response<Body>> {
        let extensions = &request.extensions;
        let is_checked = extensions.get::<Arc<Caller>>().is_some() || extensions.get::<Principal>().is_some();
        if is_checked || self.accepts(request) {
            return None;
        }
        protection.check(request).await.map(|refusal| *refusal)
    }
}

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edge")
            .field("endpoint", &self.endpoint)
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

/// Requires a bearer token of every request to an HTTP endpoint.
#[derive(Clone, Debug)]
pub struct RequireToken(Token);

impl RequireToken {
    /// Requires this token. `None` if the system provides no random numbers for the key it is compared under.
    pub fn new(token: &str) -> Option<Self> {
        Token::new(token).map(Self)
    }
}

impl RequestFilter for RequireToken {
    fn check<'a>(&'a self, request: &'a mut Parts) -> BoxFuture<'a, Option<Response<Body>>> {
        Box::pin(std::future::ready(refuse(&self.0, &request.headers)))
    }
}

/// Returns the response to a request without the token.
fn refuse(token: &Token, headers: &HeaderMap) -> Option<Response<Body>> {
    let challenge = check(token, headers).err()?;
    let mut response = plain(StatusCode::UNAUTHORIZED, "missing or invalid token\n");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    Some(response)
}

/// Lets a request pass that has the token, once; otherwise the challenge to answer with.
fn check(token: &Token, headers: &HeaderMap) -> Result<(), &'static str> {
    let mut sent = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = sent.next() else { return Err("Bearer realm=\"bowline\"") };
    let wrong = "Bearer realm=\"bowline\", error=\"invalid_token\"";
    let (scheme, credentials) = value.as_bytes().split_at_checked(7).ok_or(wrong)?;
    let is_bearer = scheme.eq_ignore_ascii_case(b"bearer ") && sent.next().is_none();
    if is_bearer && token.is(credentials.trim_ascii()) { Ok(()) } else { Err(wrong) }
}

fn plain(status: StatusCode, text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_tokens_differ() {
        let (one, other) = (random_token().unwrap(), random_token().unwrap());
        assert_ne!(one, other);
        assert!(one.starts_with("bowline_") && one.len() == 56, "{one}");
    }

    #[test]
    fn only_the_token_is_let_through() {
        let token = Token::new("s3cret-token").unwrap();
        assert_eq!(format!("{token:?}"), "***");
        let verdict = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            }
            check(&token, &headers)
        };
        assert_eq!(verdict(&["Bearer s3cret-token"]), Ok(()));
        assert_eq!(verdict(&["bearer  s3cret-token"]), Ok(()));
        assert_eq!(verdict(&[]), Err("Bearer realm=\"bowline\""));
        for values in [
            &["Bearer s3cret-toke"][..],
            &["Bearer s3cret-token2"],
            &["Bearer "],
            &["Bearer"],
            &["s3cret-token"],
            &["Basic s3cret-token"],
            &["Bearer s3cret-token", "Bearer s3cret-token"],
        ] {
            assert_eq!(
                verdict(values),
                Err("Bearer realm=\"bowline\", error=\"invalid_token\""),
                "{values:?}"
            );
        }
    }
}
