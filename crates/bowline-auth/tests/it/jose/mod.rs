//! Signed tokens and keys.

mod hostile;
mod keys;
mod properties;
mod signing;
mod vectors;
mod wycheproof;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bowline_auth::jose::{Jws, KeySet, PublicKey};
use serde_json::{Value, json};

/// The keys of the RFCs, with a name each.
fn rfc_keys() -> KeySet {
    let keys = json!({ "keys": [vectors::ec(), vectors::rsa(), vectors::ed25519()] });
    KeySet::parse(keys.to_string().as_bytes()).unwrap()
}

fn key(jwk: &Value) -> PublicKey {
    PublicKey::from_jwk(jwk.as_object().unwrap()).unwrap()
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The reason why a token is refused before its signature is looked at.
fn refusal(token: &str) -> String {
    Jws::parse(token).unwrap_err().to_string()
}
