//! Verifies access tokens that are JSON Web Tokens (RFC 7519, RFC 9068).

use super::{CLOCK_SKEW, Expected, Refusal, Verdict, Verification, Verify};
use crate::{
    Issuer,
    jose::{Algorithm, Claims, Found, JoseError, Jws, KeySet, PublicKey},
};
use bowline_types::RawJson;
use std::{sync::Arc, time::Duration};

/// The media types of access tokens. Everything else is another kind of token: a DPoP proof, a logout token, an ID-JAG.
const TYPES: [&str; 2] = ["JWT", "at+jwt"];

/// The rules for tokens of one issuer. The audience and the time are in [`Expected`].
///
/// All checks are fatal, and the cheap ones come first: form and limits, `typ`, `alg`, `iss`, `exp`, `nbf`, `iat`, `aud`, and
/// then the signature.
#[derive(Clone, Debug)]
pub struct Jwt {
    issuer: Issuer,
    algorithms: Vec<Algorithm>,
    types: &'static [&'static str],
    may_lack_type: bool,
}

impl Jwt {
    /// Accepts tokens of `issuer`, signed with any [`Algorithm`].
    #[must_use]
    pub fn new(issuer: Issuer) -> Self {
        Self { issuer, algorithms: Algorithm::ALL.to_vec(), types: &TYPES, may_lack_type: true }
    }

    /// Accepts only these algorithms.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Accepts only tokens with the type `at+jwt`, which an issuer that follows RFC 9068 sets.
    #[must_use]
    pub fn require_type(mut self) -> Self {
        self.types = &TYPES[1..];
        self.may_lack_type = false;
        self
    }

    /// Returns the issuer.
    #[must_use]
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// Checks everything except the signature.
    pub fn check<'a>(&self, token: &'a str, expected: Expected<'_>) -> Result<Unsigned<'a>, Refusal> {
        let jws = Jws::parse(token)?;
        let header = jws.header();
        let has_type = if header.typ().is_none() { self.may_lack_type } else { header.has_type(self.types) };
        if !has_type {
            return Err(Refusal::invalid("the token is not an access token: unexpected `typ`"));
        }
        if !self.algorithms.contains(&header.algorithm()) {
            return Err(Refusal::invalid(format!("the algorithm `{}` is not accepted", header.algorithm())));
        }
        let claims = Claims::parse(jws.unverified_payload())?;
        if claims.text("iss")? != Some(self.issuer.as_str()) {
            return Err(Refusal::invalid("the token is from another issuer"));
        }
        check_time(&claims, Duration::from_secs(expected.now))?;
        if !claims.has_audience(|audience| expected.is_for_us([audience]))? {
            return Err(Refusal::invalid("the token is for another audience"));
        }
        Ok(Unsigned { jws, issuer: self.issuer.clone() })
    }
}

fn check_time(claims: &Claims, now: Duration) -> Result<(), Refusal> {
    let skew = Duration::from_secs(CLOCK_SKEW);
    let Some(expiry) = claims.time("exp")? else { return Err(Refusal::invalid("the token has no `exp`")) };
    if now > expiry.saturating_add(skew) {
        return Err(Refusal::invalid("the token has expired"));
    }
    for (name, reason) in
        [("nbf", "the token is not valid yet"), ("iat", "the token was issued in the future")]
    {
        if claims.time(name)?.is_some_and(|time| time > now.saturating_add(skew)) {
            return Err(Refusal::invalid(reason));
        }
    }
    Ok(())
}

/// A token that passed every check, but whose signature is not verified.
#[derive(Debug)]
pub struct Unsigned<'a> {
    jws: Jws<'a>,
    issuer: Issuer,
}

impl Unsigned<'_> {
    /// Returns the key that the token names.
    #[must_use]
    pub fn find_key<'k>(&self, keys: &'k KeySet) -> Found<'k> {
        keys.find(self.jws.header().algorithm(), self.jws.header().kid())
    }

    /// Verifies the signature and reads the caller.
    pub fn verify(&self, key: &PublicKey, expected: Expected<'_>) -> Verdict {
        let payload = self.jws.verify(key)?;
        let text =
            String::from_utf8(payload.to_vec()).map_err(|_| Refusal::invalid("the claims are not UTF-8"))?;
        let claims = RawJson::parse(text).map_err(|_| Refusal::invalid("the claims are not JSON"))?;
        expected.claims.caller(self.issuer.as_str(), claims).map(Arc::new)
    }

    /// Verifies the signature with a key of `keys`. `None` if no key there has the name that the token gives.
    pub fn verify_with(&self, keys: &KeySet, expected: Expected<'_>) -> Option<Verdict> {
        match self.find_key(keys) {
            Found::Key(key) => Some(self.verify(key, expected)),
            Found::Unknown => None,
            Found::Unfit => Some(Err(Refusal::invalid("the key of the token is for another algorithm"))),
            Found::Ambiguous => Some(Err(Refusal::invalid("several keys of the issuer fit the token"))),
        }
    }
}

impl From<JoseError> for Refusal {
    fn from(error: JoseError) -> Self {
        Self::invalid(error.to_string())
    }
}

/// The refusal of a token whose key is not known.
pub(super) const UNKNOWN_KEY: &str = "the token is signed with a key that the issuer does not publish";

/// Verifies tokens with keys that never change.
#[derive(Clone, Debug)]
pub struct FixedKeys {
    jwt: Jwt,
    keys: KeySet,
}

impl FixedKeys {
    /// Verifies tokens by the rules of `jwt`, with these keys.
    #[must_use]
    pub fn new(jwt: Jwt, keys: KeySet) -> Self {
        Self { jwt, keys }
    }
}

impl Verify for FixedKeys {
    fn verify<'a>(&'a self, token: &'a str, expected: Expected<'a>) -> Verification<'a> {
        let verdict = self.jwt.check(token, expected).and_then(|unsigned| {
            unsigned.verify_with(&self.keys, expected).unwrap_or_else(|| Err(Refusal::invalid(UNKNOWN_KEY)))
        });
        verdict.into()
    }
}
