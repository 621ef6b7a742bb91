//! DPoP (RFC 9449): binds tokens to a key, and proves with each request that this client has it.

use super::session::{Inner, now};
use bowline_auth::{
    Challenge, Error, Issuer, Reply, Request, Scheme, Secret, ServerMetadata, TokenSet,
    dpop::{Nonces, Proof},
    jose::{JoseError, SigningKey},
};
use http::Uri;
use ring::rand::{SecureRandom, SystemRandom};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The header of a request that carries a proof.
pub(super) const HEADER: &str = "dpop";
/// The header of a response that carries a nonce.
pub(super) const NONCE_HEADER: &str = "dpop-nonce";
/// The algorithm of our proofs, as authorization servers list it.
const ALGORITHM: &str = "ES256";

/// Whether the tokens of a login are to be bound to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Binding {
    /// Nobody asks for it.
    Unbound,
    /// The server accepts bound and unbound tokens.
    Preferred,
    /// The settings demand it, or the server accepts nothing else.
    Required,
}

impl Binding {
    /// Returns what the challenges of a server ask for.
    pub(super) fn of(challenges: &[Challenge]) -> Self {
        let has = |scheme: &str| challenges.iter().any(|challenge| challenge.is(scheme));
        match (has("dpop"), has("bearer")) {
            (true, false) => Self::Required,
            (true, true) => Self::Preferred,
            (false, _) => Self::Unbound,
        }
    }
}

/// The key that the tokens of one token request are bound to.
pub(super) struct TokenKey {
    key: Option<Arc<SigningKey>>,
    is_required: bool,
}

impl TokenKey {
    /// Makes a new key for a login at `server`, if it supports DPoP.
    pub(super) fn generate(binding: Binding, server: &ServerMetadata) -> Result<Self, Error> {
        let lists = |algorithms: &Vec<String>| algorithms.iter().any(|name| name == ALGORITHM);
        let is_supported = server.dpop_algorithms.as_ref().is_some_and(lists);
        let is_required = binding == Binding::Required;
        let key = match binding {
            Binding::Preferred | Binding::Required if is_supported => {
                Some(Arc::new(SigningKey::generate_es256().map_err(|error| unusable(&error))?))
            }
            Binding::Unbound | Binding::Preferred => None,
            Binding::Required => {
                return Err(Error::untrusted(format!(
                    "DPoP is required, but {} does not list `{ALGORITHM}` in `dpop_signing_alg_values_supported`",
                    server.issuer
                )));
            }
        };
        Ok(Self { key, is_required })
    }

    /// Returns the key that issued tokens are to be stored with. Fails if they are not bound as they should be.
    pub(super) fn accept(&self, scheme: Scheme, issuer: &Issuer) -> Result<Option<Secret>, Error> {
        match (scheme, &self.key) {
            (Scheme::Dpop, Some(key)) => Ok(Some(key.to_secret())),
            (Scheme::Bearer, _) if !self.is_required => Ok(None),
            (Scheme::Bearer, _) => Err(Error::untrusted(format!(
                "{issuer} issued a token that is not bound to the key of this client, but DPoP is required"
            ))),
            _ => Err(Error::untrusted(format!(
                "{issuer} issued a token that is bound to a key, but no key was sent"
            ))),
        }
    }
}

/// Makes the proofs of a session.
#[derive(Default)]
pub(super) struct Proofs {
    nonces: Mutex<Nonces>,
    /// The last key that was read, with the text that it was read from.
    key: Mutex<Option<(Secret, Arc<SigningKey>)>>,
}

impl Proofs {
    /// Returns the key of stored tokens; `None` if they are not bound to one.
    pub(super) fn key_of(&self, tokens: &TokenSet) -> Result<Option<Arc<SigningKey>>, Error> {
        if tokens.scheme != Scheme::Dpop {
            return Ok(None);
        }
        let missing =
            || Error::store("the stored token is bound to a key that is missing; log out and in again");
        let stored = tokens.key.as_ref().ok_or_else(missing)?;
        let mut last = lock(&self.key);
        if let Some((text, key)) = &*last
            && text == stored
        {
            return Ok(Some(Arc::clone(key)));
        }
        let key = SigningKey::from_secret(stored).map(Arc::new).map_err(|error| {
            Error::store(format!("the key of the stored token is not usable: {error}; log out and in again"))
        })?;
        *last = Some((stored.clone(), Arc::clone(&key)));
        Ok(Some(key))
    }

    /// Signs a proof for one request. `token` is the access token that the request carries.
    pub(super) fn sign(
        &self,
        key: &SigningKey,
        method: &str,
        url: &str,
        token: Option<&Secret>,
    ) -> Result<Secret, Error> {
        let mut random = [0; 16];
        let filled = SystemRandom::new().fill(&mut random);
        filled.map_err(|_| Error::unavailable("no random numbers are available"))?;
        let nonce = origin(url).and_then(|origin| lock(&self.nonces).get(&origin).map(str::to_owned));
        let mut proof = Proof::new(method, url).nonce(nonce.as_deref());
        if let Some(token) = token {
            proof = proof.token(token.expose());
        }
        proof.sign(key, now(), &random).map(Secret::new).map_err(|error| unusable(&error))
    }

    /// Keeps the nonce of a response for the next requests to the same origin.
    pub(super) fn learn(&self, url: &str, nonce: &str) {
        if let Some(origin) = origin(url) {
            lock(&self.nonces).set(&origin, nonce);
        }
    }
}

impl Inner {
    /// Returns the key for refreshing tokens: the one that they are bound to.
    pub(super) fn key_for_refresh(&self, tokens: &TokenSet) -> Result<TokenKey, Error> {
        Ok(TokenKey { key: self.proofs.key_of(tokens)?, is_required: tokens.scheme == Scheme::Dpop })
    }

    /// Sends a token request, with a proof if there is a key. If the server wants a nonce, a new request with a new proof is
    /// sent, once.
    pub(super) async fn send_token_request(
        &self,
        key: &TokenKey,
        make: impl Fn() -> Result<Request, Error>,
    ) -> Result<Reply, Error> {
        let mut is_second = false;
        loop {
            let mut request = make()?;
            if let Some(key) = &key.key {
                request.dpop = Some(self.proofs.sign(key, "POST", &request.url, None)?);
            }
            let reply = self.fetcher.fetch(&request).await?;
            if let Some(nonce) = &reply.dpop_nonce {
                self.proofs.learn(&request.url, nonce);
            }
            if key.key.is_none() || !reply.asks_for_nonce() {
                return Ok(reply);
            }
            if is_second || reply.dpop_nonce.is_none() {
                return Err(Error::unavailable(format!(
                    "{} refuses the DPoP nonce that it asked for",
                    request.url
                )));
            }
            is_second = true;
        }
    }
}

/// Returns scheme, host and port of a URL.
fn origin(url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    Some(format!("{}://{}", url.scheme_str()?, url.authority()?.as_str().to_ascii_lowercase()))
}

fn unusable(error: &JoseError) -> Error {
    Error::unavailable(format!("cannot make a DPoP proof: {error}"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: XDPOP-11
    #[test]
    fn v57_the_key_of_a_token_is_never_shown() {
        let key = SigningKey::generate_es256().unwrap();
        let secret = key.to_secret();
        let again = SigningKey::from_secret(&secret).unwrap();
        assert_eq!(again.public().thumbprint(), key.public().thumbprint());
        let proof = Proofs::default().sign(&key, "POST", "https://a.example/mcp", None).unwrap();
        let shown = format!("{key:?} {secret:?} {proof:?}");
        assert_eq!(shown, "SigningKey(ES256, ***) *** ***");
        let error = SigningKey::from_secret(&"canary".into()).unwrap_err();
        assert!(!error.to_string().contains("canary"), "{error}");
    }

    #[test]
    fn a_nonce_goes_only_to_the_origin_that_sent_it() {
        let (proofs, key) = (Proofs::default(), SigningKey::generate_es256().unwrap());
        let nonce_in = |url: &str| {
            let proof = proofs.sign(&key, "POST", url, None).unwrap();
            let jws = bowline_auth::jose::Jws::parse(proof.expose()).unwrap();
            let claims = bowline_auth::jose::Claims::parse(jws.verify(key.public()).unwrap()).unwrap();
            claims.text("nonce").unwrap().map(str::to_owned)
        };
        assert_eq!(nonce_in("https://a.example/mcp"), None);
        proofs.learn("https://A.example/token", "n1");
        assert_eq!(nonce_in("https://a.example/mcp?x=1").as_deref(), Some("n1"));
        for other in ["https://a.example:8443/mcp", "http://a.example/mcp", "https://b.example/mcp"] {
            assert_eq!(nonce_in(other), None, "{other}");
        }
    }
}
