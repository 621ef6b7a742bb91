//! Checks the token of a request and writes the challenges.

use super::{metadata, protect::Clock};
use crate::server::{body::Body, reply};
use bowline_auth::{
    Caller, Challenge, Hierarchy, Refusal, Scopes, Verify,
    verify::{CLOCK_SKEW, ClaimNames, Expected, MAX_TOKEN, VerdictCache},
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
    pub(super) clock: Clock,
    pub(super) cache: VerdictCache,
}

struct Shared {
    parts: Parts,
    document: Bytes,
    metadata_path: String,
    /// The challenges that do not depend on the request.
    no_token: HeaderValue,
    invalid_token: HeaderValue,
    invalid_request: HeaderValue,
}

/// The longest time a stream is limited to, because clocks end somewhere.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

impl Protection {
    pub(super) fn new(parts: Parts) -> Self {
        let document = metadata::document(&parts);
        let challenge = |error| challenge(&parts.metadata_url, error, &parts.scopes);
        let (no_token, invalid_token, invalid_request) =
            (challenge(None), challenge(Some("invalid_token")), challenge(Some("invalid_request")));
        // The URL was checked when the protection was built: it has a scheme and a path.
        let after_scheme = parts.metadata_url.split_once("://").map_or("", |(_, rest)| rest);
        let metadata_path =
            after_scheme.find('/').and_then(|at| after_scheme.get(at..)).unwrap_or("/").to_owned();
        Self {
            shared: Arc::new(Shared {
                parts,
                document,
                metadata_path,
                no_token,
                invalid_token,
                invalid_request,
            }),
        }
    }

    /// The path of the metadata document (RFC 9728), for the route of [`metadata`](Self::metadata).
    pub fn metadata_path(&self) -> &str {
        &self.shared.metadata_path
    }

    pub(super) fn document(&self) -> &Bytes {
        &self.shared.document
    }

    /// The scopes that every request needs.
    pub(in crate::server) fn base_scopes(&self) -> &Scopes {
        &self.shared.parts.scopes
    }

    /// Verifies the token of a request and puts its [`Caller`] into the extensions. Otherwise returns the response.
    pub(in crate::server) async fn authenticate(
        &self,
        request: &mut request::Parts,
    ) -> Option<Box<Response<Body>>> {
        // Whoever verified another token before: only this one counts.
        request.extensions.remove::<Arc<Caller>>();
        let caller = match self.caller_of(&request.headers).await {
            Ok(caller) => caller,
            Err(refused) => return Some(Box::new(self.refuse(&refused))),
        };
        request.extensions.insert(caller);
        None
    }

    /// The caller of a request. For a token that was verified before, this allocates nothing.
    pub(super) async fn caller_of(&self, headers: &HeaderMap) -> Result<Arc<Caller>, Refused> {
        let token = bearer_token(headers)?;
        let parts = &self.shared.parts;
        let (now, generation) = ((parts.clock)(), parts.verifier.generation());
        if let Some(caller) = parts.cache.get(token, now, generation) {
            return Ok(caller);
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
        let implied = parts.hierarchy.implied_by(caller.scopes());
        let caller = Arc::new(Arc::unwrap_or_clone(caller).with_implied_scopes(implied));
        // If the keys changed in the meantime, it is not known which of them the verdict is from.
        if parts.verifier.generation() == generation {
            parts.cache.insert(token, &caller, now, parts.verifier.max_age(), generation);
        }
        Ok(caller)
    }

    fn refuse(&self, refused: &Refused) -> Response<Body> {
        let shared = &self.shared;
        let (status, challenge, reason) = match refused {
            Refused::NoToken => (StatusCode::UNAUTHORIZED, &shared.no_token, "an access token is required"),
            Refused::InvalidToken(reason) => {
                (StatusCode::UNAUTHORIZED, &shared.invalid_token, reason.as_str())
            }
            Refused::TwoHeaders => {
                (StatusCode::BAD_REQUEST, &shared.invalid_request, "expected one `Authorization` header")
            }
            Refused::Unavailable(reason) => return reply::later(reason),
        };
        let mut response = reply::refusal(status, reason);
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge.clone());
        response
    }

    /// Refuses a request whose token lacks one of `needed`, the scopes of the operation beyond those of every request.
    pub(in crate::server) fn refuse_scopes(&self, id: Option<&Id>, needed: &Scopes) -> Response<Body> {
        let all = self.base_scopes().union(needed);
        let error = RpcError::insufficient_scope(all.iter());
        let mut response = reply::json(StatusCode::FORBIDDEN, bowline_proto::encode::failure(id, &error));
        let challenge = challenge(&self.shared.parts.metadata_url, Some("insufficient_scope"), &all);
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        response
    }

    /// How long a stream that `caller` opens now may last: until its token expires, and the tolerated skew of clocks.
    pub(in crate::server) fn stream_time(&self, caller: &Caller) -> Option<Duration> {
        let end = caller.expiry()?.saturating_add(CLOCK_SKEW);
        let left = end.saturating_sub((self.shared.parts.clock)());
        Some(Duration::from_secs(left).min(YEAR))
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
    /// The token could not be verified now.
    Unavailable(String),
}

/// The token of the `Authorization` header. It is never searched in the URL.
fn bearer_token(headers: &HeaderMap) -> Result<&str, Refused> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Err(Refused::NoToken) };
    if values.next().is_some() {
        return Err(Refused::TwoHeaders);
    }
    let malformed = || Refused::InvalidToken("the access token is malformed".into());
    let bytes = value.as_bytes();
    let end = bytes.iter().position(|byte| *byte == b' ').unwrap_or(bytes.len());
    let (scheme, rest) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Err(Refused::NoToken);
    }
    let token = rest.trim_ascii();
    if token.len() > MAX_TOKEN {
        return Err(Refused::InvalidToken(format!("the access token is longer than {MAX_TOKEN} bytes")));
    }
    // RFC 6750, 2.1.
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
    if token.is_empty() || !token.iter().all(is_part) {
        return Err(malformed());
    }
    str::from_utf8(token).map_err(|_| malformed())
}

fn challenge(metadata_url: &str, error: Option<&str>, scopes: &Scopes) -> HeaderValue {
    let mut challenge = Challenge::new("Bearer");
    if let Some(error) = error {
        challenge = challenge.with("error", error);
    }
    challenge = challenge.with("resource_metadata", metadata_url);
    if !scopes.is_empty() {
        challenge = challenge.with("scope", &scopes.to_string());
    }
    // A challenge has only visible ASCII characters and spaces.
    HeaderValue::from_str(&challenge.to_string()).unwrap_or_else(|_| HeaderValue::from_static("Bearer"))
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
