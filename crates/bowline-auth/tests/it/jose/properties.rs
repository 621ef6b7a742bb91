//! Properties that hold for any input.

use super::{encode, rfc_keys, vectors};
use bowline_auth::jose::{Algorithm, Claims, Jws, KeySet, PublicKey, SigningKey};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

/// JSON with the members that the parsers know, and others.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[A-Za-z0-9_-]{0,44}".prop_map(Value::from),
        prop_oneof![
            Just("EC"),
            Just("RSA"),
            Just("OKP"),
            Just("P-256"),
            Just("Ed25519"),
            Just("ES256"),
            Just("sig")
        ]
        .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        let name = prop_oneof![
            Just("alg"),
            Just("typ"),
            Just("kid"),
            Just("crit"),
            Just("kty"),
            Just("crv"),
            Just("x"),
            Just("y"),
            Just("n"),
            Just("e"),
            Just("use"),
            Just("key_ops"),
            Just("keys"),
            Just("aud"),
            Just("exp"),
            Just("jwk"),
        ];
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::Array),
            vec((name, inner), 0..8).prop_map(|members| {
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Value>()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_is_refused_as_a_token_or_keeps_its_parts(text in "[A-Za-z0-9_.=+/ -]{0,200}|\\PC{0,60}") {
        if let Ok(jws) = Jws::parse(&text) {
            prop_assert_eq!(text.matches('.').count(), 2);
            let payload = text.split('.').nth(1).unwrap();
            prop_assert_eq!(encode(jws.unverified_payload()), payload);
            for algorithm in Algorithm::ALL {
                if let Some(key) = rfc_keys().find(algorithm, None).key() {
                    prop_assert!(jws.verify(key).is_err());
                }
            }
        }
    }

    #[test]
    fn any_header_is_read_or_refused(header in any_json(), payload in vec(any::<u8>(), 0..64), signature in vec(any::<u8>(), 0..80)) {
        let token = format!("{}.{}.{}", encode(header.to_string()), encode(payload), encode(signature));
        if let Ok(jws) = Jws::parse(&token) {
            prop_assert!(header.get("crit").is_none());
            let named = header.get("alg").and_then(Value::as_str).and_then(Algorithm::parse);
            prop_assert_eq!(named, Some(jws.header().algorithm()));
        }
    }

    #[test]
    fn any_key_set_is_read_or_refused(keys in vec(any_json(), 0..6), bytes in vec(any::<u8>(), 0..200)) {
        let _ = KeySet::parse(&bytes);
        let set = KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap();
        prop_assert_eq!(set.len() + set.skipped().len(), keys.len());
    }

    #[test]
    fn a_key_that_is_read_never_panics_and_accepts_no_noise(
        x in vec(any::<u8>(), 0..40), y in vec(any::<u8>(), 0..40), n in vec(any::<u8>(), 200..300), e in vec(any::<u8>(), 0..6),
        signature in vec(any::<u8>(), 0..300),
    ) {
        let jwks = [
            json!({ "kty": "EC", "crv": "P-256", "x": encode(&x), "y": encode(&y) }),
            json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(&x) }),
            json!({ "kty": "RSA", "n": encode(&n), "e": encode(&e) }),
        ];
        for jwk in jwks {
            if let Ok(key) = PublicKey::from_jwk(jwk.as_object().unwrap()) {
                prop_assert_eq!(key.thumbprint().len(), 43);
                for algorithm in Algorithm::ALL {
                    prop_assert!(key.verify(algorithm, b"message", &signature).is_err());
                }
            }
        }
    }

    #[test]
    fn claims_are_read_or_refused(claims in any_json()) {
        if let Ok(claims) = Claims::parse(claims.to_string().as_bytes()) {
            for name in ["aud", "exp", "kid"] {
                let _ = (claims.text(name), claims.time(name));
            }
            let _ = claims.has_audience(|_| true);
        }
    }

    #[test]
    fn what_is_signed_verifies_and_nothing_else_does(subject in any::<String>(), flip in any::<prop::sample::Index>()) {
        let key = SigningKey::generate_ed25519().unwrap();
        let token = key.sign(json!({}), json!({ "sub": subject })).unwrap();
        let jws = Jws::parse(&token).unwrap();
        let claims = Claims::parse(jws.verify(key.public()).unwrap()).unwrap();
        prop_assert_eq!(claims.text("sub"), Ok(Some(subject.as_str())));
        let mut altered = token.clone().into_bytes();
        let position = flip.index(altered.len());
        altered[position] = if altered[position] == b'x' { b'y' } else { b'x' };
        let altered = String::from_utf8(altered).unwrap();
        prop_assert!(Jws::parse(&altered).and_then(|jws| jws.verify(key.public()).map(<[u8]>::to_vec)).is_err());
        prop_assert!(Jws::parse(&vectors::token(vectors::ES256)).unwrap().verify(key.public()).is_err());
    }
}
