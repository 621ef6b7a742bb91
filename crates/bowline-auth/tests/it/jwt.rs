//! Access tokens that are JSON Web Tokens: who is accepted, and every trick that is not.

use crate::merge::merge;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bowline_auth::{
    Caller, Issuer, Refusal, Verify,
    jose::{Algorithm, KeySet, SigningKey},
    verify::{ClaimNames, Expected, FixedKeys, Issuers, Jwt, Verification},
};
use serde_json::{Value, json};
use std::sync::Arc;

const NOW: u64 = 1_900_000_000;
const ISSUER: &str = "https://login.example.com";
const RESOURCE: &str = "https://notes.example.com/mcp";

/// An issuer with one key, and the server that trusts it.
struct Fixture {
    key: SigningKey,
    verifier: FixedKeys,
    claims: ClaimNames,
}

impl Fixture {
    fn new() -> Self {
        Self::with(|jwt| jwt)
    }

    fn with(rules: impl FnOnce(Jwt) -> Jwt) -> Self {
        let key = SigningKey::generate_es256().unwrap();
        let keys = KeySet::of(Some("k1"), key.public().clone());
        let verifier = FixedKeys::new(rules(Jwt::new(issuer(ISSUER))), keys);
        Self { key, verifier, claims: ClaimNames::default() }
    }

    /// A valid token, with these members instead of its own. `null` removes a member.
    fn token(&self, header: &Value, claims: &Value) -> String {
        let own = json!({ "typ": "at+jwt", "kid": "k1" });
        self.key.sign(merge(own, header), merge(valid_claims(), claims)).unwrap()
    }

    fn verify_at(&self, token: &str, now: u64) -> Result<Arc<Caller>, Refusal> {
        verdict(&self.verifier, token, now, &self.claims)
    }

    fn refusal(&self, token: &str) -> String {
        let refusal = self.verify_at(token, NOW).unwrap_err();
        assert!(matches!(refusal, Refusal::Invalid(_)), "{refusal:?}");
        refusal.to_string()
    }

    fn check(&self, header: &Value, claims: &Value, reason: &str) {
        assert_eq!(self.refusal(&self.token(header, claims)), reason, "{header} {claims}");
    }

    fn is_accepted(&self, header: &Value, claims: &Value) -> bool {
        self.verify_at(&self.token(header, claims), NOW).is_ok()
    }
}

fn verdict(
    verifier: &dyn Verify,
    token: &str,
    now: u64,
    claims: &ClaimNames,
) -> Result<Arc<Caller>, Refusal> {
    let audiences = [RESOURCE.to_owned(), "api://notes".to_owned()];
    match verifier.verify(token, Expected::new(now, &audiences, claims)) {
        Verification::Ready(verdict) => verdict,
        Verification::Pending(_) => panic!("fixed keys need no waiting"),
    }
}

fn issuer(text: &str) -> Issuer {
    Issuer::new(text).unwrap()
}

fn valid_claims() -> Value {
    json!({
        "iss": ISSUER, "aud": RESOURCE, "sub": "ada", "client_id": "app", "scope": "notes:read notes:write",
        "iat": NOW, "exp": NOW + 300,
    })
}

fn encode(text: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

#[test]
fn a_valid_token_names_its_caller() {
    let fixture = Fixture::new();
    let caller = fixture.verify_at(&fixture.token(&json!({}), &json!({})), NOW).unwrap();
    assert_eq!((caller.issuer(), caller.subject(), caller.client_id()), (ISSUER, "ada", Some("app")));
    assert_eq!(caller.scopes().to_string(), "notes:read notes:write");
    assert_eq!(caller.expiry(), Some(NOW + 300));
}

#[test]
fn subject_and_scopes_can_be_in_other_claims() {
    let mut fixture = Fixture::new();
    fixture.claims = ClaimNames::default().with_subject("oid").with_scopes("roles");
    let token = fixture.token(&json!({}), &json!({ "oid": "4f2", "roles": ["admin"] }));
    let caller = fixture.verify_at(&token, NOW).unwrap();
    assert_eq!((caller.subject(), caller.scopes().to_string().as_str()), ("4f2", "admin"));
}

#[test]
fn the_clocks_may_differ_by_60_seconds_and_not_by_61() {
    let fixture = Fixture::new();
    let token = fixture.token(&json!({}), &json!({ "nbf": NOW, "iat": NOW, "exp": NOW + 300 }));
    let at = |now| fixture.verify_at(&token, now).map(|_| ()).map_err(|refusal| refusal.to_string());
    assert_eq!(at(NOW + 300 + 60), Ok(()));
    assert_eq!(at(NOW + 300 + 61), Err("the token has expired".to_owned()));
    assert_eq!(at(NOW - 60), Ok(()));
    assert_eq!(at(NOW - 61), Err("the token is not valid yet".to_owned()));
    let token = fixture.token(&json!({}), &json!({ "iat": NOW + 61 }));
    assert_eq!(fixture.refusal(&token), "the token was issued in the future");
    assert!(fixture.is_accepted(&json!({}), &json!({ "iat": NOW + 60 })));
    // Fractions count.
    assert!(fixture.is_accepted(&json!({}), &json!({ "exp": NOW - 60 })));
    fixture.check(&json!({}), &json!({ "exp": 1_899_999_939.5 }), "the token has expired");
}

#[test]
fn v61_the_expiry_is_required_and_a_number() {
    let fixture = Fixture::new();
    fixture.check(&json!({}), &json!({ "exp": null }), "the token has no `exp`");
    for name in ["exp", "nbf", "iat"] {
        for value in
            [json!((NOW + 300).to_string()), json!([NOW]), json!({}), json!(true), json!(-1), json!(1e300)]
        {
            fixture.check(&json!({}), &json!({ name: value }), &format!("`{name}` has the wrong type"));
        }
    }
    assert!(fixture.is_accepted(&json!({}), &json!({ "iat": null, "nbf": null })));
}

#[test]
fn v60_a_token_for_somebody_else_is_refused() {
    let fixture = Fixture::new();
    for audience in [json!(RESOURCE), json!("api://notes"), json!(["https://x.example", RESOURCE])] {
        assert!(fixture.is_accepted(&json!({}), &json!({ "aud": audience })));
    }
    for audience in [
        json!("https://other.example.com/mcp"),
        json!("https://notes.example.com"),
        json!("https://notes.example.com/mcp/"),
        json!("https://notes.example.com/mcp/evil"),
        json!("https://notes.example.com/mcp-evil"),
        json!("HTTPS://notes.example.com/mcp"),
        json!(""),
        json!([]),
        // An ID token is for the client.
        json!("app"),
    ] {
        fixture.check(&json!({}), &json!({ "aud": audience }), "the token is for another audience");
    }
    fixture.check(&json!({}), &json!({ "aud": null }), "the token is for another audience");
    for audience in [json!(1), json!({}), json!([RESOURCE, 1])] {
        fixture.check(&json!({}), &json!({ "aud": audience }), "`aud` has the wrong type");
    }
}

#[test]
fn v60_a_token_of_another_issuer_is_refused() {
    let fixture = Fixture::new();
    for other in ["https://login.example.com/", "https://LOGIN.example.com", "https://evil.example", ""] {
        fixture.check(&json!({}), &json!({ "iss": other }), "the token is from another issuer");
    }
    fixture.check(&json!({}), &json!({ "iss": null }), "the token is from another issuer");
    fixture.check(&json!({}), &json!({ "iss": [ISSUER] }), "`iss` has the wrong type");
    // The same `kid` with the key of somebody else.
    let other = Fixture::new();
    let token = other.token(&json!({}), &json!({}));
    assert_eq!(fixture.refusal(&token), "the signature is not valid");
}

#[test]
fn v61_only_access_tokens_are_accepted() {
    let fixture = Fixture::new();
    for typ in [
        Value::Null,
        json!("JWT"),
        json!("jwt"),
        json!("at+jwt"),
        json!("AT+JWT"),
        json!("application/at+jwt"),
    ] {
        assert!(fixture.is_accepted(&json!({ "typ": typ }), &json!({})), "{typ}");
    }
    for typ in ["dpop+jwt", "logout+jwt", "oauth-id-jag+jwt", "JWE", "", "at+jwt2"] {
        let reason = "the token is not an access token: unexpected `typ`";
        fixture.check(&json!({ "typ": typ }), &json!({}), reason);
    }
    let strict = Fixture::with(Jwt::require_type);
    assert!(strict.is_accepted(&json!({ "typ": "at+jwt" }), &json!({})));
    for typ in [Value::Null, json!("JWT")] {
        assert!(!strict.is_accepted(&json!({ "typ": typ }), &json!({})), "{typ}");
    }
}

#[test]
fn v61_the_algorithm_is_one_of_the_issuers() {
    let fixture = Fixture::with(|jwt| jwt.algorithms([Algorithm::Rs256]));
    fixture.check(&json!({}), &json!({}), "the algorithm `ES256` is not accepted");
    // The header says RS256, the key is an EC key.
    let token = Fixture::new();
    let forged = token.token(&json!({}), &json!({}));
    let (_, rest) = forged.split_once('.').unwrap();
    let forged = format!("{}.{rest}", encode(r#"{"alg":"RS256","kid":"k1"}"#));
    assert_eq!(token.refusal(&forged), "the key of the token is for another algorithm");
}

#[test]
fn v61_an_unsigned_or_symmetric_token_is_refused() {
    let fixture = Fixture::new();
    let payload = encode(valid_claims().to_string());
    for name in ["none", "None", "NONE", "nOnE"] {
        let header = encode(format!(r#"{{"alg":"{name}","kid":"k1"}}"#));
        for signature in ["", "AAAA"] {
            let reason = format!("the algorithm `{name}` is not accepted");
            assert_eq!(fixture.refusal(&format!("{header}.{payload}.{signature}")), reason);
        }
    }
    // HMAC with the public key as the secret.
    let header = encode(r#"{"alg":"HS256","kid":"k1"}"#);
    let signed = format!("{header}.{payload}");
    for secret in
        [serde_json::to_string(&fixture.key.public().to_jwk()).unwrap(), fixture.key.public().thumbprint()]
    {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
        let signature = encode(ring::hmac::sign(&key, signed.as_bytes()));
        assert_eq!(
            fixture.refusal(&format!("{signed}.{signature}")),
            "the algorithm `HS256` is not accepted"
        );
    }
}

#[test]
fn v61_a_key_that_the_token_brings_is_not_used() {
    let fixture = Fixture::new();
    let attacker = SigningKey::generate_es256().unwrap();
    let jwk = attacker.public().to_jwk();
    for header in [
        json!({ "jwk": jwk, "kid": "k1" }),
        json!({ "jwk": jwk }),
        json!({ "jku": "http://127.0.0.1:1/keys", "kid": "k1" }),
        json!({ "x5u": "http://127.0.0.1:1/cert", "x5c": ["AAAA"], "kid": "k1" }),
    ] {
        let token = attacker.sign(header, valid_claims()).unwrap();
        assert_eq!(fixture.refusal(&token), "the signature is not valid");
    }
}

#[test]
fn v61_a_key_id_is_only_compared() {
    let fixture = Fixture::new();
    for kid in ["../../dev/null", "k1' OR '1'='1", "K1", "k1 ", "", "http://127.0.0.1:1/k1", "\u{0}"] {
        let reason = "the token is signed with a key that the issuer does not publish";
        fixture.check(&json!({ "kid": kid }), &json!({}), reason);
    }
    assert!(fixture.is_accepted(&json!({ "kid": null }), &json!({})));
}

#[test]
fn v61_tokens_that_can_be_read_two_ways_are_refused() {
    let fixture = Fixture::new();
    let token = fixture.token(&json!({}), &json!({}));
    let [header, payload, signature]: [&str; 3] = token.split('.').collect::<Vec<_>>().try_into().unwrap();
    let claims = valid_claims().to_string();
    let twice = encode(claims.replacen('{', r#"{"sub":"root","#, 1));
    assert!(fixture.refusal(&format!("{header}.{twice}.{signature}")).contains("`sub` occurs twice"));
    let crit = encode(r#"{"alg":"ES256","kid":"k1","crit":["exp"],"exp":1}"#);
    assert!(fixture.refusal(&format!("{crit}.{payload}.{signature}")).contains("`crit`"));
    for text in [
        format!("{token}."),
        format!("{token}.AA"),
        format!(".{token}"),
        format!("{header}.{payload}"),
        String::new(),
    ] {
        assert_eq!(fixture.refusal(&text), "the token does not have three parts", "{text}");
    }
    for text in [format!("{token}="), format!("{token}%00"), format!("{header}.{payload}=.{signature}")] {
        assert!(fixture.refusal(&text).ends_with("is not base64url without padding"), "{text}");
    }
}

#[test]
fn v61_every_byte_of_a_token_counts() {
    let fixture = Fixture::new();
    let token = fixture.token(&json!({}), &json!({}));
    for position in 0..token.len() {
        let mut altered = token.clone().into_bytes();
        altered[position] = if altered[position] == b'Q' { b'g' } else { b'Q' };
        let altered = String::from_utf8(altered).unwrap();
        assert!(fixture.verify_at(&altered, NOW).is_err(), "{position}");
    }
}

#[test]
fn v61_long_and_deep_tokens_are_refused_before_any_signature() {
    let fixture = Fixture::new();
    assert_eq!(fixture.refusal(&"A".repeat(1_000_000)), "the token is longer than 16384 bytes");
    let nested = format!("{}.{}.AA", encode(r#"{"alg":"ES256"}"#), encode("[".repeat(9000)));
    assert!(fixture.refusal(&nested).contains("recursion limit"));
}

#[test]
fn the_issuer_of_a_token_selects_its_verifier_and_is_checked_again() {
    let (one, other) = (Fixture::new(), Fixture::new());
    let second = "https://second.example";
    let other_keys = KeySet::of(Some("k1"), other.key.public().clone());
    let both = Issuers::new()
        .with(issuer(ISSUER), one.verifier.clone())
        .with(issuer(second), FixedKeys::new(Jwt::new(issuer(second)), other_keys));
    let accepts = |token: &str| {
        verdict(&both, token, NOW, &ClaimNames::default()).map(|caller| caller.issuer().to_owned())
    };
    assert_eq!(accepts(&one.token(&json!({}), &json!({}))).unwrap(), ISSUER);
    assert_eq!(accepts(&other.token(&json!({}), &json!({ "iss": second }))).unwrap(), second);
    // Each key speaks for its own issuer only.
    assert_eq!(
        accepts(&other.token(&json!({}), &json!({}))).unwrap_err().to_string(),
        "the signature is not valid"
    );
    let token = one.token(&json!({}), &json!({ "iss": second }));
    assert_eq!(accepts(&token).unwrap_err().to_string(), "the signature is not valid");
    for other in [json!("https://third.example"), Value::Null] {
        let token = one.token(&json!({}), &json!({ "iss": other }));
        assert_eq!(accepts(&token).unwrap_err().to_string(), "the token is from another issuer");
    }
    assert!(accepts("opaque").is_err());
    // A verifier under the wrong name does not accept for it.
    let wrong = Issuers::new().with(issuer(second), one.verifier.clone());
    let token = one.token(&json!({}), &json!({ "iss": second }));
    let refusal = verdict(&wrong, &token, NOW, &ClaimNames::default()).unwrap_err();
    assert_eq!(refusal.to_string(), "the token is from another issuer");
}
