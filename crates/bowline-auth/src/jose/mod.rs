//! Signed tokens (JWS, RFC 7515, compact form) and public keys (JWK, RFC 7517).
//!
//! `ring` does all arithmetic; this module decodes, compares and selects. It has no symmetric algorithm, no `none` and no
//! encryption, and it never takes a key from the token that the key is meant to verify.
//!
//! ```
//! use bowline_auth::jose::{Jws, KeySet};
//!
//! // The example of RFC 8037, A.4.
//! let keys = KeySet::parse(br#"{"keys":[{"kty":"OKP","crv":"Ed25519",
//!     "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#)?;
//! let token = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
//!     hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
//! let jws = Jws::parse(token)?;
//! let key = keys.find(jws.header().algorithm(), jws.header().kid()).key().expect("the only key fits");
//! assert_eq!(jws.verify(key)?, b"Example of Ed25519 signing");
//! # Ok::<(), bowline_auth::jose::JoseError>(())
//! ```

mod algorithm;
mod assertion;
mod claims;
mod error;
pub(crate) mod json;
mod jws;
mod key;
mod key_set;
mod sign;

pub use algorithm::Algorithm;
pub use assertion::client_assertion;
pub use claims::Claims;
pub use error::JoseError;
pub use jws::{Header, Jws, MAX_TOKEN};
pub use key::PublicKey;
pub use key_set::{Found, Key, KeySet, MAX_KEY_SET, MAX_KEYS};
pub use sign::SigningKey;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// Decodes base64url strictly: no padding, no other alphabet, no line breaks, no bits left over.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
