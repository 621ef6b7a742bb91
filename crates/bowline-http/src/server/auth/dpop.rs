//! DPoP (RFC 9449): checks that the sender of a token has the key that the token is bound to.

use super::protection::Refused;
use bowline_auth::{
    Caller,
    dpop::{NONCE_LIFETIME, NonceIssuer, Once, ProofRequest, Replay, verify_proof},
    verify::VerdictCache,
};
use http::{HeaderMap, HeaderValue, Response, request};
use serde::Deserialize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The header of a request that carries a proof.
pub(in crate::server) const HEADER: &str = "dpop";
/// The header of a response that carries a nonce.
pub(super) const NONCE_HEADER: &str = "dpop-nonce";

/// Whether tokens may or must be bound to a key of the client (DPoP, RFC 9449).
///
/// A stolen token that is bound to a key is of no use without the key: every request carries a proof, signed with the key, which
/// is valid for this request only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dpop {
    /// Accepts both kinds of tokens: bound ones with a proof, and unbound ones.
    Allowed,
    /// Accepts only tokens that are bound to a key.
    Required,
}

/// How DPoP is used, and what has to be remembered for it.
pub(super) struct ProofChecks {
    pub(super) mode: Dpop,
    /// Whether every proof needs a nonce.
    needs_nonce: bool,
    nonces: NonceIssuer,
    replay: Mutex<Replay>,
    /// The callers of tokens that are bound to a key. Others are in the cache for `Bearer`, so neither kind is found as the other.
    pub(super) callers: VerdictCache,
}

/// The claim of a token that says which key it is bound to (RFC 7800).
#[derive(Deserialize)]
struct Confirmation {
    /// The thumbprint of the key (RFC 9449, 6.1).
    jkt: String,
}

/// Returns whether a token is bound to a key of any kind. Claims that cannot be read count as bound.
pub(super) fn is_bound(caller: &Caller) -> bool {
    !caller.claims().members().is_ok_and(|claims| claims.get("cnf").is_none())
}

/// A nonce for the response to a request. The check of the proof sets it.
#[derive(Clone, Debug, Default)]
pub(in crate::server) struct NextNonce(Arc<OnceLock<HeaderValue>>);

impl NextNonce {
    /// Adds the nonce to a response, if there is one.
    pub(in crate::server) fn add_to<B>(&self, response: &mut Response<B>) {
        if let Some(nonce) = self.0.get() {
            response.headers_mut().insert(NONCE_HEADER, nonce.clone());
        }
    }
}

impl ProofChecks {
    pub(super) fn new(mode: Dpop, needs_nonce: bool, nonces: NonceIssuer) -> Self {
        Self { mode, needs_nonce, nonces, replay: Mutex::default(), callers: VerdictCache::default() }
    }

    /// Checks the proof of a request with a token of `caller`, which has been verified.
    pub(super) fn check(
        &self,
        request: &request::Parts,
        urls: &[&str],
        token: &str,
        caller: &Caller,
        now: u64,
    ) -> Result<(), Refused> {
        let Some(Confirmation { jkt }) = caller.claim("cnf") else {
            return Err(Refused::InvalidToken("the token is not bound to a key of DPoP".into()));
        };
        let expected = ProofRequest { method: request.method.as_str(), urls, token, thumbprint: &jkt, now };
        let proof = verify_proof(proofs(&request.headers), &expected)
            .map_err(|error| Refused::InvalidProof(error.to_string()))?;
        let nonce_issued = match &proof.nonce {
            Some(nonce) => Some(self.nonces.check(nonce, now).ok_or(Refused::NonceNeeded)?),
            None if self.needs_nonce => return Err(Refused::NonceNeeded),
            None => None,
        };
        let remembered = {
            let mut replay = self.replay.lock().unwrap_or_else(PoisonError::into_inner);
            replay.remember(&proof, nonce_issued, now)
        };
        match (remembered, nonce_issued) {
            (Once::New, _) => {}
            (Once::Replayed, _) => return Err(Refused::InvalidProof("the proof was used before".into())),
            (Once::Full, None) => return Err(Refused::NonceNeeded),
            (Once::Full, Some(_)) => {
                return Err(Refused::Unavailable("too many proofs are remembered".into()));
            }
        }
        // The next one is sent early, so that a client that keeps calling is never refused for its nonce.
        if nonce_issued.is_some_and(|issued| now.saturating_sub(issued) > NONCE_LIFETIME / 2)
            && let Some(NextNonce(next)) = request.extensions.get()
        {
            next.get_or_init(|| self.nonce(now));
        }
        Ok(())
    }

    /// Returns a new nonce.
    pub(super) fn nonce(&self, now: u64) -> HeaderValue {
        // It is base64url.
        HeaderValue::from_str(&self.nonces.issue(now)).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

/// Returns the lines of the header `DPoP`. A line that is not text counts as one.
fn proofs(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers.get_all(HEADER).iter().map(|value| value.to_str().unwrap_or_default())
}
