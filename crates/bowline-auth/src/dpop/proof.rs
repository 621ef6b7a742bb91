//! The proof that a client sends with a request.

use super::{TYPE, token_digest};
use crate::jose::{JoseError, SigningKey, encode};
use serde_json::json;

/// The request that a proof is for.
///
/// ```
/// use bowline_auth::{dpop::Proof, jose::SigningKey};
///
/// let key = SigningKey::generate_es256()?;
/// let proof = Proof::new("POST", "https://notes.example.com/mcp").token("Kz~8mXK1").sign(&key, 1_800_000_000, &[1; 16])?;
/// assert_eq!(proof.split('.').count(), 3);
/// # Ok::<(), bowline_auth::jose::JoseError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "it is sent only after it is signed"]
pub struct Proof<'a> {
    method: &'a str,
    url: &'a str,
    token: Option<&'a str>,
    nonce: Option<&'a str>,
}

impl<'a> Proof<'a> {
    /// Creates a proof for a request with this method to this URL. Query and fragment of the URL do not count.
    pub fn new(method: &'a str, url: &'a str) -> Self {
        let url = url.split(['?', '#']).next().unwrap_or_default();
        Self { method, url, token: None, nonce: None }
    }

    /// Sets the access token that the request carries.
    pub fn token(mut self, token: &'a str) -> Self {
        self.token = Some(token);
        self
    }

    /// Sets the last nonce of the server, if it sent one.
    pub fn nonce(mut self, nonce: Option<&'a str>) -> Self {
        self.nonce = nonce;
        self
    }

    /// Makes the value of the header `DPoP`. `now` is in seconds since 1970; `random` makes the proof unique.
    pub fn sign(self, key: &SigningKey, now: u64, random: &[u8; 16]) -> Result<String, JoseError> {
        let mut claims = json!({ "jti": encode(random), "htm": self.method, "htu": self.url, "iat": now });
        if let Some(members) = claims.as_object_mut() {
            if let Some(token) = self.token {
                members.insert("ath".to_owned(), token_digest(token).into());
            }
            if let Some(nonce) = self.nonce {
                members.insert("nonce".to_owned(), nonce.into());
            }
        }
        key.sign(json!({ "typ": TYPE, "jwk": key.public().to_jwk() }), claims)
    }
}
