//! Checks the token of a request and writes the challenges.

use super::{
    dpop::{self, Dpop, NONCE_HEADER, NextNonce, ProofChecks},
    metadata,
    protect::Clock,
    refusal::{AccessRefusal, RefusalListener},
};
use crate::server::{body::Body, reply};
use bowline_auth::{
    Caller, Challenge, Hierarchy, Refusal, Scopes, Verify,
    jose::Algorithm,
    verify::{CLOCK_SKEW, ClaimNames, Expected, MAX_TOKEN, VerdictCache, token_digest},
};
use bowline_types::{Id, RpcError};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header, request};
use std::{fmt, sync::Arc, time::Duration};

/// A protection that was built from a [`Protect`](super::Protect). Clones share everything.
#[derive(Clone)]
pub struct Protection {
    shared: Arc<Shared>,
}

/// What a protection consists of.
pub(super) struct Parts {
    pub(super) verifier: Arc<dyn Verify>,
    pub(super) issuers: Vec<String>,
    pub(super) resource: String,
    pub(super) metadata_url: String,
    pub(super) scopes: Scopes,
    pub(super) audiences: Vec<String>,
    pub(super) hierarchy: Hierarchy,
    pub(super) claims: ClaimNames,
    pub(super) name: Option<String>,
    pub(super) documentation: Option<String>,
    /// Without it, tokens that are bound to a key are refused.
    pub(super) dpop: Option<ProofChecks>,
    pub(super) on_refusal: Option<RefusalListener>,
    pub(super) clock: Clock,
    /// The callers of tokens that are not bound to a key.
    pub(super) cache: VerdictCache,
    /// The authorization server of [`Protect::dev`](super::Protect::dev), on the same socket.
    #[cfg(feature = "issuer")]
    pub(super) issuer: Option<super::IssuerService>,
}

struct Shared {
    parts: Parts,
    document: Bytes,
    metadata_path: String,
    /// Scheme, host and port of the resource.
    origin: String,
    /// The challenges that do not depend on the request.
    no_token: Vec<HeaderValue>,
    invalid_token: Vec<HeaderValue>,
    invalid_request: Vec<HeaderValue>,
    invalid_proof: Vec<HeaderValue>,
    nonce_needed: Vec<HeaderValue>,
}

/// Where a protected service is, which decides the URL that proofs have to be for.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) enum Location<'a> {
    /// It is the endpoint of the resource.
    Resource,
    /// It is another service of the same origin. The path of its requests lacks this prefix.
    Below(&'a str),
}

/// The longest time a stream is limited to, because clocks end somewhere.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

impl Protection {
    pub(super) fn new(parts: Parts) -> Self {
        let document = metadata::document(&parts);
        let challenges = |error| challenges(&parts, error, &parts.scopes);
        let (no_token, invalid_token, invalid_request) =
            (challenges(None), challenges(Some("invalid_token")), challenges(Some("invalid_request")));
        let (invalid_proof, nonce_needed) = (challenges(Some(INVALID_PROOF)), challenges(Some(NONCE_NEEDED)));
        // The URL was checked when the protection was built: it has a scheme and a path.
        let (scheme, after_scheme) = parts.metadata_url.split_once("://").unwrap_or_default();
        let (authority, path) = after_scheme.split_at(after_scheme.find('/').unwrap_or(after_scheme.len()));
        let (origin, metadata_path) = (format!("{scheme}://{authority}"), path.to_owned());
        Self {
            shared: Arc::new(Shared {
                parts,
                document,
                metadata_path,
                origin,
                no_token,
                invalid_token,
                invalid_request,
                invalid_proof,
                nonce_needed,
            }),
        }
    }

    /// Returns the URL that tokens must be issued for.
    pub fn resource(&self) -> &str {
        &self.shared.parts.resource
    }

    /// Returns the path of the metadata document (RFC 9728), for the route of [`metadata`](Self::metadata).
    pub fn metadata_path(&self) -> &str {
        &self.shared.metadata_path
    }

    #[cfg(feature = "issuer")]
    pub(in crate::server) fn issuer(&self) -> Option<&super::IssuerService> {
        self.shared.parts.issuer.as_ref()
    }

    pub(super) fn document(&self) -> &Bytes {
        &self.shared.document
    }

    /// The scopes that every request needs.
    pub(in crate::server) fn base_scopes(&self) -> &Scopes {
        &self.shared.parts.scopes
    }

    /// Prepares a request for [`authenticate`](Self::authenticate). The nonce that it sets belongs into the response.
    pub(in crate::server) fn expect_nonce(&self, extensions: &mut http::Extensions) -> Option<NextNonce> {
        self.shared.parts.dpop.as_ref()?;
        let next = NextNonce::default();
        extensions.insert(next.clone());
        Some(next)
    }

    /// Verifies the token of a request and puts its [`Caller`] into the extensions. Otherwise returns the response.
    pub(in crate::server) async fn authenticate(
        &self,
        request: &mut request::Parts,
        location: Location<'_>,
    ) -> Option<Box<Response<Body>>> {
        // Whoever verified another token before: only this one counts.
        request.extensions.remove::<Arc<Caller>>();
        let caller = match self.caller_of(request, location).await {
            Ok(caller) => caller,
            Err(refused) => {
                let token = credentials(&request.headers).ok().map(|(_, token)| token);
                // A client that is asked for a nonce repeats the request with one.
                if !matches!(refused, Refused::NonceNeeded) {
                    self.report(&AccessRefusal::of(&refused, token));
                }
                return Some(Box::new(self.refuse(&refused)));
            }
        };
        request.extensions.insert(caller);
        None
    }

    /// Verifies the token of a request and checks the scopes that every request needs. Puts the [`Caller`] into the
    /// extensions, or returns the response that refuses the request.
    ///
    /// [`HttpOptions::protect`](crate::HttpOptions::protect) does this for an endpoint. This is for other paths, such as those
    /// that a [`RequestFilter`](crate::RequestFilter) answers.
    pub async fn check(&self, request: &mut request::Parts) -> Option<Box<Response<Body>>> {
        if let Some(refused) = self.authenticate(request, Location::Below("")).await {
            return Some(refused);
        }
        let caller = request.extensions.get::<Arc<Caller>>().map(|caller| &**caller);
        if caller.is_some_and(|caller| caller.allows_all(self.base_scopes())) {
            return None;
        }
        Some(Box::new(self.refuse_scopes(None, &Scopes::new(), caller)))
    }

    fn report(&self, refusal: &AccessRefusal<'_>) {
        if let Some(listener) = &self.shared.parts.on_refusal {
            listener(refusal);
        }
    }

    /// Returns the caller of a request. For an unbound token that was verified before, this allocates nothing.
    async fn caller_of(
        &self,
        request: &request::Parts,
        location: Location<'_>,
    ) -> Result<Arc<Caller>, Refused> {
        let parts = &self.shared.parts;
        let (scheme, token) = credentials(&request.headers)?;
        let now = (parts.clock)();
        match (scheme, &parts.dpop) {
            (Scheme::Bearer, Some(ProofChecks { mode: Dpop::Required, .. })) => Err(Refused::InvalidToken(
                "only tokens that are bound to a key are accepted; send a DPoP token with a proof".into(),
            )),
            (Scheme::Bearer, dpop) => {
                let caller = self.verify(token, &parts.cache, now, |caller| !dpop::is_bound(caller)).await?;
                caller.ok_or_else(|| {
                    let reason = match dpop {
                        Some(_) => "the token is bound to a key; send it as `DPoP` with a proof",
                        None => "the token is bound to a key, and this server does not accept such tokens",
                    };
                    Refused::InvalidToken(reason.into())
                })
            }
            (Scheme::Dpop, None) => Err(Refused::NoToken),
            (Scheme::Dpop, Some(checks)) => {
                let caller = self.verify(token, &checks.callers, now, dpop::is_bound).await?;
                let unbound =
                    || Refused::InvalidToken("the token is not bound to a key; send it as `Bearer`".into());
                let caller = caller.ok_or_else(unbound)?;
                // The verification may have waited for the issuer.
                let now = (parts.clock)();
                let path = request.uri.path();
                match location {
                    Location::Resource => {
                        let seen = format!("{}{path}", self.shared.origin);
                        checks.check(request, &[&parts.resource, &seen], token, &caller, now)?;
                    }
                    Location::Below(prefix) => {
                        let path = if path == "/" && !prefix.is_empty() { "" } else { path };
                        let public = format!("{}{prefix}{path}", self.shared.origin);
                        checks.check(request, &[&public], token, &caller, now)?;
                    }
                }
                Ok(caller)
            }
        }
    }

    /// Verifies a token, or finds it in `cache`, which has only tokens that `belongs` accepts. `None` if it does not.
    async fn verify(
        &self,
        token: &str,
        cache: &VerdictCache,
        now: u64,
        belongs: impl Fn(&Caller) -> bool,
    ) -> Result<Option<Arc<Caller>>, Refused> {
        let parts = &self.shared.parts;
        let generation = parts.verifier.generation();
        if let Some(caller) = cache.get(token, now, generation) {
            return Ok(Some(caller));
        }
        let expected = Expected::new(now, &parts.audiences, &parts.claims);
        let caller = match parts.verifier.verify(token, expected).verdict().await {
            Ok(caller) => caller,
            Err(Refusal::Unavailable(reason)) => return Err(Refused::Unavailable(reason.into())),
            Err(refusal) => return Err(Refused::InvalidToken(refusal.to_string())),
        };
        if !parts.issuers.iter().any(|issuer| issuer == caller.issuer()) {
            return Err(Refused::InvalidToken("the token is from another issuer".into()));
        }
        if caller.expiry().is_some_and(|expiry| expiry.saturating_add(CLOCK_SKEW) < now) {
            return Err(Refused::InvalidToken("the token has expired".into()));
        }
        if !belongs(&caller) {
            return Ok(None);
        }
        let implied = parts.hierarchy.implied_by(caller.scopes());
        let caller = Arc::unwrap_or_clone(caller).with_implied_scopes(implied);
        let caller = Arc::new(caller.with_token_digest(token_digest(token)));
        // If the keys changed in the meantime, it is not known which of them the verdict is from.
        if parts.verifier.generation() == generation {
            cache.insert(token, &caller, now, parts.verifier.max_age(), generation);
        }
        Ok(Some(caller))
    }

    fn refuse(&self, refused: &Refused) -> Response<Body> {
        let shared = &self.shared;
        let (status, challenges, reason) = match refused {
            Refused::NoToken => (StatusCode::UNAUTHORIZED, &shared.no_token, "an access token is required"),
            Refused::InvalidToken(reason) => {
                (StatusCode::UNAUTHORIZED, &shared.invalid_token, reason.as_str())
            }
            Refused::TwoHeaders => {
                (StatusCode::BAD_REQUEST, &shared.invalid_request, "expected one `Authorization` header")
            }
            Refused::InvalidProof(reason) => {
                (StatusCode::UNAUTHORIZED, &shared.invalid_proof, reason.as_str())
            }
            Refused::NonceNeeded => {
                let reason = "the proof needs a nonce; take it from the header `DPoP-Nonce`";
                (StatusCode::UNAUTHORIZED, &shared.nonce_needed, reason)
            }
            Refused::Unavailable(reason) => return reply::later(reason),
        };
        let mut response = reply::refusal(status, reason);
        let headers = response.headers_mut();
        for challenge in challenges {
            headers.append(header::WWW_AUTHENTICATE, challenge.clone());
        }
        if let (Refused::NonceNeeded, Some(checks)) = (refused, &shared.parts.dpop) {
            headers.insert(NONCE_HEADER, checks.nonce((shared.parts.clock)()));
        }
        response
    }

    /// Refuses a request whose token lacks one of `needed`, the scopes of the operation beyond those of every request.
    pub(in crate::server) fn refuse_scopes(
        &self,
        id: Option<&Id>,
        needed: &Scopes,
        caller: Option<&Caller>,
    ) -> Response<Body> {
        let all = self.base_scopes().union(needed);
        self.report(&AccessRefusal::scopes(caller, &all));
        let error = RpcError::insufficient_scope(all.iter());
        let mut response = reply::json(StatusCode::FORBIDDEN, bowline_proto::encode::failure(id, &error));
        for challenge in challenges(&self.shared.parts, Some("insufficient_scope"), &all) {
            response.headers_mut().append(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }

    /// How long a stream that `caller` opens now may last: until its token expires, and the tolerated skew of clocks. Without
    /// an expiry, as long as a verdict on a token counts: nobody else would notice that the token was revoked.
    pub(in crate::server) fn stream_time(&self, caller: &Caller) -> Duration {
        let parts = &self.shared.parts;
        let now = (parts.clock)();
        let end = caller.expiry().unwrap_or_else(|| now.saturating_add(parts.verifier.max_age()));
        let left = end.saturating_add(CLOCK_SKEW).saturating_sub(now);
        Duration::from_secs(left).min(YEAR)
    }
}

/// Why a request is not authenticated.
#[derive(Debug)]
pub(super) enum Refused {
    /// No credentials, or of another scheme.
    NoToken,
    /// The token is malformed or not valid here.
    InvalidToken(String),
    /// There is more than one `Authorization` header.
    TwoHeaders,
    /// The proof of DPoP is missing or not valid.
    InvalidProof(String),
    /// The proof has no valid nonce.
    NonceNeeded,
    /// The token could not be verified now.
    Unavailable(String),
}

/// How a token is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Bearer,
    Dpop,
}

/// Returns the scheme and the token of the `Authorization` header. It is never searched in the URL.
fn credentials(headers: &HeaderMap) -> Result<(Scheme, &str), Refused> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Err(Refused::NoToken) };
    if values.next().is_some() {
        return Err(Refused::TwoHeaders);
    }
    let malformed = || Refused::InvalidToken("the access token is malformed".into());
    let bytes = value.as_bytes();
    let end = bytes.iter().position(|byte| *byte == b' ').unwrap_or(bytes.len());
    let (scheme, rest) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
    let scheme = if scheme.eq_ignore_ascii_case(b"bearer") {
        Scheme::Bearer
    } else if scheme.eq_ignore_ascii_case(b"dpop") {
        Scheme::Dpop
    } else {
        return Err(Refused::NoToken);
    };
    let token = rest.trim_ascii();
    if token.len() > MAX_TOKEN {
        return Err(Refused::InvalidToken(format!("the access token is longer than {MAX_TOKEN} bytes")));
    }
    // RFC 6750, 2.1.
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
    if token.is_empty() || !token.iter().all(is_part) {
        return Err(malformed());
    }
    str::from_utf8(token).map(|token| (scheme, token)).map_err(|_| malformed())
}

/// The errors of a proof. They are not errors of `Bearer`.
const INVALID_PROOF: &str = "invalid_dpop_proof";
const NONCE_NEEDED: &str = "use_dpop_nonce";

/// Returns the challenges of a response, one for each scheme that is accepted.
fn challenges(parts: &Parts, error: Option<&str>, scopes: &Scopes) -> Vec<HeaderValue> {
    let dpop = parts.dpop.as_ref().map(|checks| checks.mode);
    let mut schemes = Vec::new();
    if dpop != Some(Dpop::Required) {
        schemes.push("Bearer");
    }
    if dpop.is_some() {
        schemes.push("DPoP");
    }
    let challenge = |scheme: &&'static str| {
        let is_dpop = *scheme == "DPoP";
        let mut challenge = Challenge::new(scheme);
        if let Some(error) = error.filter(|error| is_dpop || ![INVALID_PROOF, NONCE_NEEDED].contains(error)) {
            challenge = challenge.with("error", error);
        }
        if is_dpop {
            let names: Vec<&str> = Algorithm::ALL.into_iter().map(Algorithm::name).collect();
            challenge = challenge.with("algs", &names.join(" "));
        }
        challenge = challenge.with("resource_metadata", &parts.metadata_url);
        if !scopes.is_empty() {
            challenge = challenge.with("scope", &scopes.to_string());
        }
        // A challenge has only visible ASCII characters and spaces.
        HeaderValue::from_str(&challenge.to_string()).unwrap_or_else(|_| HeaderValue::from_static(scheme))
    };
    schemes.iter().map(challenge).collect()
}

impl fmt::Debug for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = &self.shared.parts;
        f.debug_struct("Protection")
            .field("resource", &parts.resource)
            .field("issuers", &parts.issuers)
            .finish_non_exhaustive()
    }
}
