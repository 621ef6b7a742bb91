//! Asks the authorization server about each token (RFC 7662).

use super::Protect;
use crate::Poster;
use bowline_auth::{
    Issuer, Refusal, Reply, RequestBody, Secret, Verdict, Verify,
    verify::{self, Expected, Verification},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use ring::digest::{SHA256, digest};
use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::Semaphore;

/// How long the authorization server may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A response is at most this long, in bytes.
const MAX_RESPONSE: usize = 256 * 1024;
/// How many questions may be open at the same time. Anyone can send tokens, and each new one is a question.
const MAX_QUESTIONS: usize = 64;
/// How long an accepted token is trusted without asking again, in seconds.
const MAX_AGE: u64 = 60;
/// How long a refusal is remembered, in seconds.
const REFUSAL_AGE: u64 = 5;
/// How many refusals are remembered.
const MAX_REFUSALS: usize = 10_000;

impl Protect {
    /// Accepts tokens that the issuer calls active (RFC 7662), for tokens that only the issuer can read.
    ///
    /// ```
    /// use bowline_http::{Introspection, Protect};
    ///
    /// # let secret = "secret";
    /// let introspection = Introspection::at("https://login.example.com/introspect").client("notes-server", secret);
    /// let protect = Protect::introspect("https://login.example.com", introspection)
    ///     .resource("https://notes.example.com/mcp");
    /// ```
    pub fn introspect(issuer: impl Into<String>, introspection: Introspection) -> Self {
        let name = issuer.into();
        match introspection.build(&name) {
            Ok(verifier) => Self::with(verifier, [name]),
            Err(problem) => Self::with(verify::Issuers::new(), [name]).failing(problem),
        }
    }
}

/// How the authorization server is asked about tokens; for [`Protect::introspect`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Introspection {
    endpoint: String,
    client_id: String,
    secret: Secret,
    max_age: u64,
    requires_audience: bool,
    poster: Poster,
}

impl Introspection {
    /// Asks at this URL: `https`, or `http` at a loopback address if the issuer is at one.
    pub fn at(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            client_id: String::new(),
            secret: Secret::new(""),
            max_age: MAX_AGE,
            requires_audience: true,
            poster: Poster::new(),
        }
    }

    /// Sets the client that this server is at the authorization server. Its secret is sent in `Authorization: Basic`.
    pub fn client(mut self, id: impl Into<String>, secret: impl Into<Secret>) -> Self {
        self.client_id = id.into();
        self.secret = secret.into();
        self
    }

    /// Trusts an accepted token for this many seconds without asking again: 60 unless it is set, and at most 300. With 0, every
    /// request is a question. A token that is revoked is accepted until then.
    pub fn max_age(mut self, seconds: u64) -> Self {
        self.max_age = seconds;
        self
    }

    /// Accepts responses that name no audience. They need a `token_type`, because a refresh token is active too.
    ///
    /// Use it only if the authorization server answers for no other resource with this client: otherwise a token that a user gave
    /// to another server is accepted here.
    pub fn without_audience(mut self) -> Self {
        self.requires_audience = false;
        self
    }

    /// Asks with `poster`, which may use a proxy or trust other certificates.
    pub fn poster(mut self, poster: Poster) -> Self {
        self.poster = poster;
        self
    }

    fn build(self, issuer: &str) -> Result<Introspector, String> {
        let issuer = Issuer::new(issuer).map_err(|error| error.to_string())?;
        if self.client_id.is_empty() {
            return Err("the introspection has no client; add it with `Introspection::client`".into());
        }
        let rules = verify::Introspection::new(issuer, &self.endpoint, &self.client_id, self.secret);
        let rules = rules.map_err(|error| error.to_string())?;
        Ok(Introspector {
            rules: if self.requires_audience { rules } else { rules.without_audience() },
            poster: self.poster.max_answer(MAX_RESPONSE),
            max_age: self.max_age,
            questions: Semaphore::new(MAX_QUESTIONS),
            refusals: Mutex::default(),
        })
    }
}

/// Verifies tokens by asking the authorization server.
struct Introspector {
    rules: verify::Introspection,
    poster: Poster,
    max_age: u64,
    questions: Semaphore,
    /// Tokens that were refused, by digest, with the reason and the time until which it is remembered.
    refusals: Mutex<HashMap<[u8; 32], (Refusal, u64)>>,
}

impl Introspector {
    async fn ask(&self, token: &str, expected: Expected<'_>) -> Verdict {
        let issuer = self.rules.issuer();
        let late = |_| {
            let seconds = TIMEOUT.as_secs();
            Refusal::unavailable(format!("the introspection at {issuer} timed out after {seconds} s"))
        };
        let reply = tokio::time::timeout(TIMEOUT, self.send(token)).await.map_err(late)?;
        let reply = reply.inspect_err(|reason| tracing::warn!(%issuer, %reason, "cannot ask about a token"));
        let reply =
            reply.map_err(|_| Refusal::unavailable(format!("{issuer} cannot be asked about the token")))?;
        self.rules.read(&reply, expected)
    }

    async fn send(&self, token: &str) -> Result<Reply, String> {
        let _question = self.questions.acquire().await.map_err(|error| error.to_string())?;
        let request = self.rules.request(token).map_err(|error| error.to_string())?;
        let RequestBody::Form(form) = &request.body else { return Err("the request has no form".into()) };
        let mut headers = HeaderMap::from_iter([
            (header::ACCEPT, HeaderValue::from_static("application/json")),
            (header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")),
        ]);
        if let Some(authorization) = &request.authorization {
            let mut value =
                HeaderValue::from_str(authorization.expose()).map_err(|error| error.to_string())?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let body = Bytes::copy_from_slice(form.text().expose().as_bytes());
        // A redirect is an answer like others, and so is not followed: the token would go with it.
        let answer = self.poster.send(Method::POST, &request.url, headers, body).await;
        let answer = answer.map_err(|error| error.to_string())?;
        Ok(Reply::new(answer.status.as_u16(), answer.body.to_vec()))
    }

    fn known_refusal(&self, token: &[u8; 32], now: u64) -> Option<Refusal> {
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.get(token).filter(|(_, until)| now < *until).map(|(refusal, _)| refusal.clone())
    }

    /// Remembers what the authorization server refused. A failure to ask is not remembered.
    fn remember(&self, token: [u8; 32], refusal: &Refusal, now: u64) {
        if !matches!(refusal, Refusal::Invalid(_)) {
            return;
        }
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.len() >= MAX_REFUSALS {
            refusals.retain(|_, (_, until)| now < *until);
        }
        if refusals.len() < MAX_REFUSALS {
            refusals.insert(token, (refusal.clone(), now + REFUSAL_AGE));
        }
    }
}

impl Verify for Introspector {
    fn verify<'a>(&'a self, token: &'a str, expected: Expected<'a>) -> Verification<'a> {
        let mut key = [0; 32];
        key.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        if let Some(refusal) = self.known_refusal(&key, expected.now) {
            return Err(refusal).into();
        }
        Verification::Pending(Box::pin(async move {
            let verdict = self.ask(token, expected).await;
            verdict.inspect_err(|refusal| self.remember(key, refusal, expected.now))
        }))
    }

    fn max_age(&self) -> u64 {
        self.max_age
    }
}

impl fmt::Debug for Introspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Introspector").field("rules", &self.rules).finish_non_exhaustive()
    }
}
