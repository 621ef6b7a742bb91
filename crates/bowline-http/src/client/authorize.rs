//! The credentials of requests, and the reaction when a server refuses them.

use bowline_client::{BoxFuture, Error, Result};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use serde::Deserialize;
use std::{fmt, sync::Arc};
use tokio::sync::Mutex;

/// How often one request is sent again for more scopes.
pub(super) const MAX_STEP_UPS: u32 = 2;

/// Provides the credentials of requests to a server.
///
/// [`HttpTarget::login`](super::HttpTarget::login) and [`HttpTarget::authorize`](super::HttpTarget::authorize) install one.
pub trait Authorize: fmt::Debug + Send + Sync {
    /// Returns the headers that carry credentials for one request. It is called for every request that is sent.
    fn headers<'a>(&'a self, method: &'a Method, url: &'a Uri) -> BoxFuture<'a, Result<HeaderMap>>;

    /// Sees the headers of every response, before a refusal is passed to [`challenged`](Self::challenged).
    fn responded(&self, url: &Uri, headers: &HeaderMap) {
        let _ = (url, headers);
    }

    /// Reacts to a refusal. `attempts` counts the attempts for this request, and keeps it from going on forever.
    fn challenged<'a>(
        &'a self,
        refusal: &'a Refusal<'a>,
        attempts: &'a mut Attempts,
    ) -> BoxFuture<'a, Result<Reaction>>;
}

/// What to do with a refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reaction {
    /// Send it again: the credentials have changed.
    Retry,
    /// Send it again with the same credentials in a new form.
    RetryUnchanged,
    /// Report the refusal to the caller.
    GiveUp,
}

/// How much was tried for one request: at most one refresh, one login and two step-ups.
#[derive(Debug, Default)]
pub struct Attempts {
    pub(super) renewals: u32,
    pub(super) step_ups: u32,
    #[cfg(feature = "auth")]
    pub(super) login: super::auth::LoginAttempts,
}

/// A response that refuses the credentials of a request: 401, or 403 for missing scopes.
#[derive(Debug)]
#[non_exhaustive]
pub struct Refusal<'a> {
    /// The status.
    pub status: StatusCode,
    /// The headers of the response.
    pub headers: &'a HeaderMap,
    /// The credentials that were sent.
    pub sent: &'a HeaderMap,
    /// The body of the request.
    body: &'a Bytes,
}

impl<'a> Refusal<'a> {
    /// Reads a response. `None` if it refuses something else than credentials.
    pub(super) fn of(
        status: StatusCode,
        headers: &'a HeaderMap,
        sent: &'a HeaderMap,
        body: &'a Bytes,
    ) -> Option<Self> {
        let refusal = Self { status, headers, sent, body };
        let is_one = match status {
            StatusCode::UNAUTHORIZED => true,
            StatusCode::FORBIDDEN => refusal.is_missing_scope(),
            _ => false,
        };
        is_one.then_some(refusal)
    }

    fn lines(&self) -> Vec<&'a str> {
        let lines = self.headers.get_all(header::WWW_AUTHENTICATE).iter();
        lines.filter_map(|line| line.to_str().ok()).collect()
    }

    /// Returns the challenges of the response.
    pub fn challenges(&self) -> Vec<bowline_auth::Challenge> {
        bowline_auth::Challenge::parse_all(self.lines())
    }

    /// Returns whether the credentials are good, but lack a scope.
    pub fn is_missing_scope(&self) -> bool {
        self.status == StatusCode::FORBIDDEN
            && self.challenges().iter().any(|challenge| challenge.error() == Some("insufficient_scope"))
    }

    /// Returns whether the request had no message: it opened a stream, or ended a session.
    #[cfg(feature = "auth")]
    pub(super) fn has_no_message(&self) -> bool {
        self.body.is_empty()
    }

    /// Returns the operation that was refused: the method of the message, and the name of what it addresses.
    pub fn operation(&self) -> String {
        #[derive(Default, Deserialize)]
        struct Message {
            #[serde(default)]
            method: String,
            #[serde(default)]
            params: Params,
        }
        #[derive(Default, Deserialize)]
        struct Params {
            name: Option<String>,
            uri: Option<String>,
        }
        let message: Message = serde_json::from_slice(self.body).unwrap_or_default();
        let name = message.params.name.or(message.params.uri).unwrap_or_default();
        format!("{} {name}", message.method)
    }
}

/// A login that cannot be used at its server. It sends nothing, and says why if the server asks for credentials.
#[cfg(feature = "auth")]
#[derive(Debug)]
pub(super) struct UnusableLogin {
    pub(super) reason: String,
}

#[cfg(feature = "auth")]
impl Authorize for UnusableLogin {
    fn headers<'a>(&'a self, _: &'a Method, _: &'a Uri) -> BoxFuture<'a, Result<HeaderMap>> {
        Box::pin(std::future::ready(Ok(HeaderMap::new())))
    }

    fn challenged<'a>(&'a self, _: &'a Refusal<'a>, _: &'a mut Attempts) -> BoxFuture<'a, Result<Reaction>> {
        let error = Error::misuse(format!("the server asks for a login, but {}", self.reason));
        Box::pin(std::future::ready(Err(error)))
    }
}

/// Why a server wants other credentials than it was sent; for the hook of
/// [`HttpTarget::authorize`](super::HttpTarget::authorize).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// The status of the refusal: 401, or 403 if the credentials are valid but lack a scope.
    pub status: u16,
    /// The value of `WWW-Authenticate`; several lines are joined.
    pub www_authenticate: Option<String>,
}

pub(super) type Hook =
    Arc<dyn Fn(Option<Challenge>) -> BoxFuture<'static, Result<Option<String>>> + Send + Sync>;

/// Keeps the last answer of a hook, and asks it one question at a time.
pub(super) struct HookAuthorizer {
    hook: Hook,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    asked: bool,
    value: Option<HeaderValue>,
}

impl HookAuthorizer {
    pub(super) fn new(hook: Hook) -> Self {
        Self { hook, state: Mutex::default() }
    }

    async fn ask(&self, challenge: Option<Challenge>) -> Result<Option<HeaderValue>> {
        let Some(text) = (self.hook)(challenge).await? else { return Ok(None) };
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| Error::misuse("the value for `Authorization` is not a valid header value"))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

impl Authorize for HookAuthorizer {
    fn headers<'a>(&'a self, _: &'a Method, _: &'a Uri) -> BoxFuture<'a, Result<HeaderMap>> {
        Box::pin(async move {
            let mut state = self.state.lock().await;
            if !state.asked {
                state.value = self.ask(None).await?;
                state.asked = true;
            }
            Ok(state.value.iter().map(|value| (header::AUTHORIZATION, value.clone())).collect())
        })
    }

    /// Answers a challenge. If many requests are refused at once, the first asks and the others use its answer.
    fn challenged<'a>(
        &'a self,
        refusal: &'a Refusal<'a>,
        attempts: &'a mut Attempts,
    ) -> BoxFuture<'a, Result<Reaction>> {
        Box::pin(async move {
            let (count, limit) = match refusal.status {
                StatusCode::FORBIDDEN => (&mut attempts.step_ups, MAX_STEP_UPS),
                _ => (&mut attempts.renewals, 1),
            };
            if *count == limit {
                return Ok(Reaction::GiveUp);
            }
            *count += 1;
            let refused = refusal.sent.get(header::AUTHORIZATION);
            let mut state = self.state.lock().await;
            if state.value.as_ref() == refused {
                let lines = refusal.lines();
                let www_authenticate = (!lines.is_empty()).then(|| lines.join(", "));
                let challenge = Challenge { status: refusal.status.as_u16(), www_authenticate };
                state.value = self.ask(Some(challenge)).await?;
            }
            let has_other = state.value.is_some() && state.value.as_ref() != refused;
            Ok(if has_other { Reaction::Retry } else { Reaction::GiveUp })
        })
    }
}

impl fmt::Debug for HookAuthorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HookAuthorizer")
    }
}
