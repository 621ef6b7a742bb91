//! Proofs of possession: what a client makes, and what a server refuses.

use crate::merge::merge;
use bowline_auth::{
    dpop::{Proof, ProofRequest, VerifiedProof, verify_proof},
    jose::{Claims, Jws, SigningKey},
};
use serde_json::{Value, json};

const NOW: u64 = 1_900_000_000;
const URL: &str = "https://notes.example.com/mcp";
const TOKEN: &str = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";

fn verify(key: &SigningKey, proofs: &[&str]) -> Result<VerifiedProof, String> {
    let thumbprint = key.public().thumbprint();
    let request =
        ProofRequest { method: "POST", urls: &[URL], token: TOKEN, thumbprint: &thumbprint, now: NOW };
    verify_proof(proofs.iter().copied(), &request).map_err(|error| error.to_string())
}

/// A valid proof with these members instead of its own; `null` removes a member.
fn proof_with(key: &SigningKey, header: &Value, claims: &Value) -> String {
    let own = json!({ "typ": "dpop+jwt", "jwk": key.public().to_jwk() });
    let digest = "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo";
    let valid = json!({ "jti": "1", "htm": "POST", "htu": URL, "iat": NOW, "ath": digest });
    key.sign(merge(own, header), merge(valid, claims)).unwrap()
}

#[test]
fn a_proof_of_the_client_is_accepted_by_the_server() {
    let key = SigningKey::generate_es256().unwrap();
    let url = format!("{URL}?a=1#b");
    let proof = Proof::new("POST", &url).token(TOKEN).nonce(Some("n1")).sign(&key, NOW, &[7; 16]).unwrap();
    let verified = verify(&key, &[&proof]).unwrap();
    assert_eq!((verified.issued, verified.nonce.as_deref()), (NOW, Some("n1")));
    assert_eq!(verified.id, "BwcHBwcHBwcHBwcHBwcHBw");
    assert_eq!(verified.thumbprint, key.public().thumbprint());
}

#[test]
fn a_proof_contains_the_public_key_and_only_what_is_needed() {
    let key = SigningKey::generate_es256().unwrap();
    let proof = Proof::new("POST", "https://as.example/token?x=1").sign(&key, NOW, &[7; 16]).unwrap();
    let jws = Jws::parse(&proof).unwrap();
    assert_eq!(jws.header().member("jwk"), Some(&Value::Object(key.public().to_jwk())));
    assert!(jws.header().member("jwk").unwrap().get("d").is_none());
    let claims = Claims::parse(jws.verify(key.public()).unwrap()).unwrap();
    assert_eq!(claims.text("htu"), Ok(Some("https://as.example/token")));
    assert!(claims.get("ath").is_none() && claims.get("nonce").is_none());
}

#[test]
fn every_flaw_of_a_proof_is_refused() {
    let key = SigningKey::generate_es256().unwrap();
    let check = |header: Value, claims: Value, reason: &str| {
        let refusal = verify(&key, &[&proof_with(&key, &header, &claims)]).unwrap_err();
        assert_eq!(refusal, reason, "{header} {claims}");
    };
    assert!(verify(&key, &[&proof_with(&key, &json!({}), &json!({}))]).is_ok());
    for typ in [Value::Null, json!("JWT"), json!("at+jwt")] {
        check(json!({ "typ": typ }), json!({}), "`typ` of the proof is not `dpop+jwt`");
    }
    check(json!({ "jwk": null }), json!({}), "the proof has no `jwk`");
    check(json!({ "jwk": "x" }), json!({}), "the proof has no `jwk`");
    let mut private = key.public().to_jwk();
    private.insert("d".to_owned(), json!("AQ"));
    check(json!({ "jwk": private }), json!({}), "the key contains the private member `d`");
    let other = SigningKey::generate_es256().unwrap().public().to_jwk();
    check(json!({ "jwk": other }), json!({}), "the signature is not valid");
    for id in [Value::Null, json!(""), json!("x".repeat(257))] {
        check(json!({}), json!({ "jti": id }), "the proof has no usable `jti`");
    }
    for method in [Value::Null, json!("GET"), json!("post")] {
        check(json!({}), json!({ "htm": method }), "the proof is for another method");
    }
    for url in [
        Value::Null,
        json!("https://notes.example.com/mcp/"),
        json!("https://notes.example.com/MCP"),
        json!("https://notes.example.com:8443/mcp"),
        json!("http://notes.example.com/mcp"),
        json!("https://evil.example/mcp"),
        json!("https://ada@notes.example.com/mcp"),
        json!("/mcp"),
        json!(""),
    ] {
        check(json!({}), json!({ "htu": url }), "the proof is for another URL");
    }
    for url in ["HTTPS://Notes.Example.com:443/mcp", "https://notes.example.com/mcp?a#b"] {
        assert!(verify(&key, &[&proof_with(&key, &json!({}), &json!({ "htu": url }))]).is_ok(), "{url}");
    }
    check(json!({}), json!({ "iat": null }), "the proof has no `iat`");
    check(json!({}), json!({ "iat": "now" }), "`iat` has the wrong type");
    for issued in [NOW - 301, NOW + 301] {
        check(json!({}), json!({ "iat": issued }), "the proof is too old or from the future");
    }
    for issued in [NOW - 300, NOW + 300] {
        assert!(verify(&key, &[&proof_with(&key, &json!({}), &json!({ "iat": issued }))]).is_ok());
    }
    for digest in [Value::Null, json!(""), json!("fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEp")] {
        check(json!({}), json!({ "ath": digest }), "the proof is for another token");
    }
    check(
        json!({ "crit": ["x"] }),
        json!({}),
        "the token has critical extensions (`crit`), and none is supported",
    );
}

#[test]
fn a_proof_of_another_key_does_not_help() {
    let (key, thief) = (SigningKey::generate_es256().unwrap(), SigningKey::generate_es256().unwrap());
    let refusal = verify(&key, &[&proof_with(&thief, &json!({}), &json!({}))]).unwrap_err();
    assert_eq!(refusal, "the token is bound to another key");
}

#[test]
fn there_is_exactly_one_proof() {
    let key = SigningKey::generate_es256().unwrap();
    let proof = proof_with(&key, &json!({}), &json!({}));
    for proofs in [&[][..], &[proof.as_str(), proof.as_str()]] {
        assert_eq!(verify(&key, proofs).unwrap_err(), "expected one `DPoP` header");
    }
    assert_eq!(verify(&key, &["x.y"]).unwrap_err(), "the token does not have three parts");
}

proptest::proptest! {
    #[test]
    fn any_text_is_refused_as_a_proof(text in "[A-Za-z0-9_.{}\":,=-]{0,300}") {
        let key = SigningKey::generate_es256().unwrap();
        proptest::prop_assert!(verify(&key, &[&text]).is_err());
    }

    #[test]
    fn a_proof_with_any_changed_character_is_refused(position: proptest::sample::Index, other in "[A-Za-z0-9_.-]") {
        let key = SigningKey::generate_es256().unwrap();
        let proof = proof_with(&key, &json!({}), &json!({}));
        let at = position.index(proof.len());
        let changed = format!("{}{other}{}", &proof[..at], &proof[at + 1..]);
        proptest::prop_assert_eq!(verify(&key, &[&changed]).is_ok(), changed == proof);
    }

    #[test]
    fn any_claims_and_header_are_refused_or_for_this_request(
        name in "typ|jwk|alg|jti|htm|htu|iat|ath|nonce|crit|kid",
        value in "null|true|-1|0|1e400|1900000000|\"\"|\"POST\"|\"none\"|\\[\\]|\\{\\}|\\{\"kty\":\"EC\"\\}",
    ) {
        let key = SigningKey::generate_es256().unwrap();
        let value: Value = serde_json::from_str(&value).unwrap_or_default();
        let change = json!({ name: value });
        let _ = verify(&key, &[&proof_with(&key, &change, &json!({}))]);
        if let Ok(verified) = verify(&key, &[&proof_with(&key, &json!({}), &change)]) {
            proptest::prop_assert!(verified.issued.abs_diff(NOW) <= 300 && !verified.id.is_empty());
        }
    }
}
