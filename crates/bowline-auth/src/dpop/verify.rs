//! Verifies proofs, in a resource server (RFC 9449, 4.3).

use super::{TYPE, token_digest};
use crate::{
    jose::{Claims, JoseError, Jws, PublicKey},
    url::Url,
};
use serde_json::Value;
use std::{error::Error, fmt, time::Duration};

/// A proof may be this old, or this far in the future, in seconds.
pub(super) const MAX_AGE: u64 = 300;
/// `jti` is at most this long, in bytes.
const MAX_ID: usize = 256;

/// The request that a proof has to be for.
#[derive(Clone, Copy, Debug)]
pub struct ProofRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// The public URLs of the endpoint. Query and fragment do not count.
    pub urls: &'a [&'a str],
    /// The access token of the request.
    pub token: &'a str,
    /// The thumbprint of the key to which the token is bound: its claim `cnf.jkt`.
    pub thumbprint: &'a str,
    /// The time, in seconds since the Unix epoch.
    pub now: u64,
}

/// What is left to check of a proof: whether it was used before, and its nonce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedProof {
    /// The thumbprint of the key.
    pub thumbprint: String,
    /// The id of the proof.
    pub id: String,
    /// When it was made, in seconds since the Unix epoch.
    pub issued: u64,
    /// The nonce that it contains.
    pub nonce: Option<String>,
}

/// Why a proof is refused. The text does not contain the proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofError(String);

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ProofError {}

impl From<JoseError> for ProofError {
    fn from(error: JoseError) -> Self {
        Self(error.to_string())
    }
}

/// Verifies the header `DPoP` of a request. `headers` are all lines of it; there must be one.
pub fn verify_proof<'a>(
    headers: impl IntoIterator<Item = &'a str>,
    request: &ProofRequest<'_>,
) -> Result<VerifiedProof, ProofError> {
    let refused = |reason: &str| Err(ProofError(reason.to_owned()));
    let mut headers = headers.into_iter();
    let (Some(proof), None) = (headers.next(), headers.next()) else {
        return refused("expected one `DPoP` header");
    };
    let jws = Jws::parse(proof)?;
    if !jws.header().has_type(&[TYPE]) {
        return refused("`typ` of the proof is not `dpop+jwt`");
    }
    let Some(Value::Object(jwk)) = jws.header().member("jwk") else {
        return refused("the proof has no `jwk`");
    };
    let key = PublicKey::from_jwk(jwk)?;
    let claims = Claims::parse(jws.verify(&key)?)?;
    let Some(id) = claims.text("jti")?.filter(|id| !id.is_empty() && id.len() <= MAX_ID) else {
        return refused("the proof has no usable `jti`");
    };
    if claims.text("htm")? != Some(request.method) {
        return refused("the proof is for another method");
    }
    let url = claims.text("htu")?.unwrap_or_default();
    if !request.urls.iter().any(|public| is_same_target(public, url)) {
        return refused("the proof is for another URL");
    }
    let Some(issued) = claims.time("iat")? else { return refused("the proof has no `iat`") };
    if issued.abs_diff(Duration::from_secs(request.now)) > Duration::from_secs(MAX_AGE) {
        return refused("the proof is too old or from the future");
    }
    if claims.text("ath")? != Some(token_digest(request.token).as_str()) {
        return refused("the proof is for another token");
    }
    let thumbprint = key.thumbprint();
    if thumbprint != request.thumbprint {
        return refused("the token is bound to another key");
    }
    let nonce = claims.text("nonce")?.map(str::to_owned);
    Ok(VerifiedProof { thumbprint, id: id.to_owned(), issued: issued.as_secs(), nonce })
}

/// Compares URLs as RFC 9449, 4.3 asks for: without query and fragment, and with case of scheme and host, default port and
/// empty path normalized.
fn is_same_target(one: &str, other: &str) -> bool {
    let (Ok(one), Ok(other)) = (Url::split(one), Url::split(other)) else { return false };
    let path = |url: &Url<'_>| if url.path.is_empty() { "/".to_owned() } else { url.path.to_owned() };
    one.is_same_origin(&other) && path(&one) == path(&other)
}
