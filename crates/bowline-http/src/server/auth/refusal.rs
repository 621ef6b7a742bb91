//! Reports requests that are refused because of their access token.

use super::protection::Refused;
use bowline_auth::{Caller, Scopes, verify::token_digest};
use std::{fmt, sync::Arc};

/// Is called for each refused request.
pub(super) type RefusalListener = Arc<dyn Fn(&AccessRefusal<'_>) + Send + Sync>;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AccessRefusalKind {
    /// It has no access token.
    MissingToken,
    /// Its token is malformed, expired, or not for this server.
    InvalidToken,
    /// Its credentials are ambiguous, such as two `Authorization` headers.
    InvalidRequest,
    /// The proof of DPoP is missing or not valid.
    InvalidProof,
    /// Its token cannot be verified now.
    Unavailable,
    /// Its token does not grant the required scopes.
    InsufficientScope,
}

impl AccessRefusalKind {
    /// Returns the word for it in logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MissingToken => "missing_token",
            Self::InvalidToken => "invalid_token",
            Self::InvalidRequest => "invalid_request",
            Self::InvalidProof => "invalid_dpop_proof",
            Self::Unavailable => "unavailable",
            Self::InsufficientScope => "insufficient_scope",
        }
    }
}

/// A request that is refused because of its access token. See [`Protect::on_refusal`](super::Protect::on_refusal).
#[derive(Clone, Copy)]
pub struct AccessRefusal<'a> {
    kind: AccessRefusalKind,
    reason: &'a str,
    token: Option<&'a str>,
    caller: Option<&'a Caller>,
    required: Option<&'a Scopes>,
}

impl<'a> AccessRefusal<'a> {
    pub(super) fn of(refused: &'a Refused, token: Option<&'a str>) -> Self {
        let (kind, reason) = match refused {
            Refused::NoToken => (AccessRefusalKind::MissingToken, "an access token is required"),
            Refused::InvalidToken(reason) => (AccessRefusalKind::InvalidToken, reason.as_str()),
            Refused::TwoHeaders => (AccessRefusalKind::InvalidRequest, "expected one `Authorization` header"),
            Refused::InvalidProof(reason) => (AccessRefusalKind::InvalidProof, reason.as_str()),
            Refused::NonceNeeded => (AccessRefusalKind::InvalidProof, "the proof needs a nonce"),
            Refused::Unavailable(reason) => (AccessRefusalKind::Unavailable, reason.as_str()),
        };
        Self { kind, reason, token, caller: None, required: None }
    }

    pub(super) fn scopes(caller: Option<&'a Caller>, required: &'a Scopes) -> Self {
        let reason = "the access token does not grant the required scopes";
        Self {
            kind: AccessRefusalKind::InsufficientScope,
            reason,
            token: None,
            caller,
            required: Some(required),
        }
    }

    /// Returns why it is refused.
    pub fn kind(&self) -> AccessRefusalKind {
        self.kind
    }

    /// Returns why it is refused, in words.
    pub fn reason(&self) -> &'a str {
        self.reason
    }

    /// Returns the caller, if the token was verified.
    pub fn caller(&self) -> Option<&'a Caller> {
        self.caller
    }

    /// Returns the scopes that the request needs, if the token lacks one of them.
    pub fn required_scopes(&self) -> Option<&'a Scopes> {
        self.required
    }

    /// Returns a digest of the token that was sent, if there was one.
    pub fn token_digest(&self) -> Option<String> {
        match self.token {
            Some(token) => Some(token_digest(token)),
            None => self.caller?.token_digest().map(str::to_owned),
        }
    }
}

/// Prints no token.
impl fmt::Debug for AccessRefusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessRefusal")
            .field("kind", &self.kind)
            .field("reason", &self.reason)
            .field("caller", &self.caller)
            .field("required", &self.required.map(ToString::to_string))
            .finish_non_exhaustive()
    }
}
