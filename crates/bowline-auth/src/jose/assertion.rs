//! The assertion by which a client proves its identity with a key (`private_key_jwt`, RFC 7523, 2.2).

use super::{JoseError, SigningKey, encode};
use serde_json::json;

/// How long an assertion is valid, in seconds.
const LIFETIME: u64 = 60;

/// Makes a client assertion: valid for 60 s, for `issuer` alone. The token endpoint is not an audience, because another server
/// may name the same endpoint (RFC 7523bis).
///
/// `now` is in seconds since 1970, and `random` makes the assertion unique.
pub fn client_assertion(
    key: &SigningKey,
    key_id: Option<&str>,
    client_id: &str,
    issuer: &str,
    now: u64,
    random: &[u8; 16],
) -> Result<String, JoseError> {
    let mut header = json!({ "typ": "JWT" });
    if let (Some(key_id), Some(members)) = (key_id, header.as_object_mut()) {
        members.insert("kid".to_owned(), key_id.into());
    }
    let claims = json!({
        "iss": client_id,
        "sub": client_id,
        "aud": issuer,
        "jti": encode(random),
        "iat": now,
        "exp": now.saturating_add(LIFETIME),
    });
    key.sign(header, claims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jose::{Claims, Jws};
    use std::time::Duration;

    #[test]
    fn an_assertion_names_the_client_twice_and_the_issuer_once() {
        let key = SigningKey::generate_es256().unwrap();
        let token = client_assertion(&key, Some("k1"), "app", "https://as.example", 1000, &[7; 16]).unwrap();
        let jws = Jws::parse(&token).unwrap();
        assert_eq!((jws.header().kid(), jws.header().typ()), (Some("k1"), Some("JWT")));
        let claims = Claims::parse(jws.verify(key.public()).unwrap()).unwrap();
        assert_eq!(claims.text("iss"), Ok(Some("app")));
        assert_eq!(claims.text("sub"), Ok(Some("app")));
        assert_eq!(claims.text("aud"), Ok(Some("https://as.example")));
        assert_eq!(claims.text("jti"), Ok(Some("BwcHBwcHBwcHBwcHBwcHBw")));
        assert_eq!(claims.time("iat"), Ok(Some(Duration::from_secs(1000))));
        assert_eq!(claims.time("exp"), Ok(Some(Duration::from_secs(1060))));
    }
}
