//! Real tokens: signed, and tampered with in every way that must not work.

use super::{ISSUER, METADATA, NOW, RESOURCE, bearer, call, endpoint, text};
use bowline_auth::{
    Issuer,
    jose::{KeySet, SigningKey},
    verify::{FixedKeys, Jwt},
};
use bowline_http::{HttpService, Protect};
use bowline_server::{Ctx, Result, Server, Tool};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// An issuer, an endpoint that trusts it, and how often its handler ran.
struct Fixture {
    key: SigningKey,
    endpoint: HttpService,
    runs: Arc<AtomicUsize>,
}

impl Fixture {
    fn new() -> Self {
        let key = SigningKey::generate_es256().unwrap();
        let keys = KeySet::of(Some("k1"), key.public().clone());
        let verifier = FixedKeys::new(Jwt::new(Issuer::new(ISSUER).unwrap()), keys);
        let protect =
            Protect::with(verifier, [ISSUER]).resource(RESOURCE).scopes(["notes:read"]).clock(|| NOW);
        let runs = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&runs);
        let whoami = Tool::new("whoami").handler(move |ctx: Ctx| {
            count.fetch_add(1, Ordering::Relaxed);
            assert!(!ctx.headers().contains_key("authorization"), "the token stays outside");
            let caller = ctx.caller()?;
            Result::<_>::Ok(format!(
                "{} of {}",
                caller.subject(),
                caller.claim::<String>("tenant").unwrap_or_default()
            ))
        });
        Self { key, endpoint: endpoint(Server::new("jwt").tool(whoami), protect), runs }
    }

    /// A valid token with other claims. `null` removes one.
    fn token(&self, claims: &Value) -> String {
        sign(&self.key, claims)
    }

    async fn refuses(&self, token: &str) {
        let response = bearer(call("whoami"), token).send(&self.endpoint).await;
        assert_eq!(response.status, 401, "{token:.60}");
        let challenge = response.headers["www-authenticate"].to_str().unwrap();
        let expected =
            format!("Bearer error=\"invalid_token\", resource_metadata=\"{METADATA}\", scope=\"notes:read\"");
        assert_eq!(challenge, expected);
        assert_eq!(self.runs.load(Ordering::Relaxed), 0, "{token:.60}");
    }
}

fn sign(key: &SigningKey, claims: &Value) -> String {
    let mut all = json!({
        "iss": ISSUER, "aud": RESOURCE, "sub": "ada", "client_id": "app", "scope": "notes:read", "tenant": "north",
        "iat": NOW, "exp": NOW + 300,
    });
    for (name, value) in claims.as_object().unwrap() {
        all[name] = value.clone();
    }
    all.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    key.sign(json!({ "typ": "at+jwt", "kid": "k1" }), all).unwrap()
}

#[tokio::test]
async fn a_signed_token_names_the_caller_and_stays_outside() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        let response = bearer(call("whoami"), &fixture.token(&json!({}))).send(&fixture.endpoint).await;
        assert_eq!(text(&response.json().await), "ada of north");
    }
    let list = fixture.token(&json!({ "aud": ["https://elsewhere.example", RESOURCE] }));
    assert_eq!(bearer(call("whoami"), &list).send(&fixture.endpoint).await.status, 200);
}

#[tokio::test]
async fn v60_a_token_for_somebody_else_runs_nothing() {
    // proves: ATOK-06, ATOK-07, ATOK-09, SEC-16
    let fixture = Fixture::new();
    for claims in [
        json!({ "aud": "https://other.example.com/mcp" }),
        json!({ "aud": null }),
        json!({ "aud": [] }),
        // Our URL as a prefix, and a prefix of it.
        json!({ "aud": format!("{RESOURCE}/evil") }),
        json!({ "aud": format!("{RESOURCE}/") }),
        json!({ "aud": "https://notes.example.com" }),
        // An ID token: its audience is the client.
        json!({ "aud": "app", "nonce": "n" }),
        json!({ "iss": "https://evil.example" }),
        json!({ "iss": format!("{ISSUER}/") }),
        json!({ "iss": null }),
    ] {
        fixture.refuses(&fixture.token(&claims)).await;
    }
    // Another issuer's key under the same id.
    let other = SigningKey::generate_es256().unwrap();
    fixture.refuses(&sign(&other, &json!({}))).await;
}

#[tokio::test]
async fn v61_a_token_that_was_tampered_with_runs_nothing() {
    // proves: ATOK-04, ATOK-05
    let fixture = Fixture::new();
    let token = fixture.token(&json!({}));
    let mut parts = token.split('.');
    let (header, payload, signature) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
    let other = fixture.token(&json!({ "sub": "root" }));
    let other_payload = other.split('.').nth(1).unwrap();
    for token in [
        format!("{header}.{other_payload}.{signature}"),
        format!("{header}.{payload}."),
        format!("{header}.{payload}"),
        format!("{token}."),
        format!("{token}.{signature}"),
        // {"alg":"none"}
        format!("eyJhbGciOiJub25lIn0.{payload}."),
        fixture.token(&json!({ "exp": NOW - 61 })),
        fixture.token(&json!({ "exp": null })),
        fixture.token(&json!({ "exp": "soon" })),
        fixture.token(&json!({ "nbf": NOW + 61 })),
        fixture.token(&json!({ "sub": null, "client_id": null })),
    ] {
        fixture.refuses(&token).await;
    }
}
