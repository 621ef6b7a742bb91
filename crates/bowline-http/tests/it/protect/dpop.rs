//! Tokens that are bound to a key: only their owner can use them, once per proof.

use super::{ISSUER, METADATA, NOW, RESOURCE, bearer, call, endpoint, plain_server};
use crate::wire::{Ask, HttpReply};
use bowline_auth::{
    Caller, Issuer,
    jose::{KeySet, SigningKey},
    verify::{FixedKeys, Jwt},
};
use bowline_http::{Dpop, HttpOptions, HttpService, Protect};
use bowline_proto::seal::{Key, KeyRing};
use http::Method;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tower_service::Service as _;

const ALGORITHMS: &str = "ES256 ES384 RS256 RS384 RS512 PS256 PS384 PS512 EdDSA";

/// An issuer, a client with a key, and the time.
struct Fixture {
    issuer: SigningKey,
    client: SigningKey,
    clock: Arc<AtomicU64>,
    proofs: AtomicU64,
}

impl Fixture {
    fn new() -> Self {
        Self {
            issuer: SigningKey::generate_es256().unwrap(),
            client: SigningKey::generate_es256().unwrap(),
            clock: Arc::new(AtomicU64::new(NOW)),
            proofs: AtomicU64::new(0),
        }
    }

    fn protect(&self) -> Protect {
        let keys = KeySet::of(Some("k1"), self.issuer.public().clone());
        let verifier = FixedKeys::new(Jwt::new(Issuer::new(ISSUER).unwrap()), keys);
        let clock = Arc::clone(&self.clock);
        Protect::with(verifier, [ISSUER])
            .resource(RESOURCE)
            .scopes(["notes:read"])
            .clock(move || clock.load(Ordering::Relaxed))
    }

    fn endpoint(&self, dpop: Dpop) -> HttpService {
        endpoint(plain_server(), self.protect().dpop(dpop))
    }

    /// A valid token, bound to the key of the client unless `claims` say otherwise. `null` removes a claim.
    fn token(&self, claims: &Value) -> String {
        let all = json!({
            "iss": ISSUER, "aud": RESOURCE, "sub": "ada", "client_id": "app", "scope": "notes:read",
            "iat": NOW, "exp": NOW + 3600, "cnf": { "jkt": self.client.public().thumbprint() },
        });
        self.issuer.sign(json!({ "typ": "at+jwt", "kid": "k1" }), merged(all, claims)).unwrap()
    }

    /// A valid proof for a POST with `token`, except for these members. `null` removes one.
    fn proof(&self, token: &str, header: &Value, claims: &Value) -> String {
        let number = self.proofs.fetch_add(1, Ordering::Relaxed);
        let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
        let own = json!({ "typ": "dpop+jwt", "jwk": self.client.public().to_jwk() });
        let all = json!({
            "jti": format!("proof {number}"), "htm": "POST", "htu": RESOURCE,
            "iat": self.clock.load(Ordering::Relaxed), "ath": base64url(digest.as_ref()),
        });
        self.client.sign(merged(own, header), merged(all, claims)).unwrap()
    }

    /// A call with a bound token and a proof with these claims.
    fn call(&self, claims: &Value) -> Ask {
        let token = self.token(&json!({}));
        let proof = self.proof(&token, &json!({}), claims);
        dpop(call("list"), &token, &proof)
    }

    fn after(&self, seconds: u64) {
        self.clock.fetch_add(seconds, Ordering::Relaxed);
    }
}

fn merged(mut all: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        all[name] = value.clone();
    }
    all.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    all
}

fn base64url(bytes: &[u8]) -> String {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    URL_SAFE_NO_PAD.encode(bytes)
}

fn dpop(ask: Ask, token: &str, proof: &str) -> Ask {
    ask.header("authorization", &format!("DPoP {token}")).header("dpop", proof)
}

/// The challenge of the scheme DPoP with an error.
fn challenge(error: &str) -> String {
    format!(
        "DPoP error=\"{error}\", algs=\"{ALGORITHMS}\", resource_metadata=\"{METADATA}\", scope=\"notes:read\""
    )
}

fn challenges(http_response: &HttpReply) -> Vec<String> {
    http_response
        .headers
        .get_all("www-authenticate")
        .iter()
        .map(|line| line.to_str().unwrap().to_owned())
        .collect()
}

async fn refuses(endpoint: &HttpService, ask: Ask, error: &str, what: &str) {
    let http_response = ask.send(endpoint).await;
    assert_eq!(
        (http_response.status.as_u16(), challenges(&http_response)),
        (401, vec![challenge(error)]),
        "{what}"
    );
}

#[tokio::test]
async fn a_bound_token_is_accepted_with_a_proof() {
    let fixture = Fixture::new();
    for mode in [Dpop::Allowed, Dpop::Required] {
        let endpoint = fixture.endpoint(mode);
        for _ in 0..2 {
            let http_response = fixture.call(&json!({})).send(&endpoint).await;
            assert_eq!(http_response.status, 200);
            assert!(!http_response.headers.contains_key("dpop-nonce"), "nobody asked for a nonce");
        }
        // Scheme and host in another case, a default port, and a query are the same URL.
        for url in ["HTTPS://Notes.example.com:443/mcp", "https://notes.example.com/mcp?a=b"] {
            assert_eq!(fixture.call(&json!({ "htu": url })).send(&endpoint).await.status, 200, "{url}");
        }
    }
}

#[tokio::test]
async fn v60_a_bound_token_is_never_accepted_as_bearer() {
    let fixture = Fixture::new();
    let jkt = fixture.client.public().thumbprint();
    let bearer_challenge =
        format!("Bearer error=\"invalid_token\", resource_metadata=\"{METADATA}\", scope=\"notes:read\"");
    let off = endpoint(plain_server(), fixture.protect());
    for cnf in [
        json!({ "jkt": jkt }),
        json!({ "x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2" }),
        json!({}),
        json!("text"),
    ] {
        let token = fixture.token(&json!({ "cnf": cnf }));
        for endpoint in [&off, &fixture.endpoint(Dpop::Allowed), &fixture.endpoint(Dpop::Required)] {
            for proof in [None, Some(fixture.proof(&token, &json!({}), &json!({})))] {
                let ask = bearer(call("list"), &token);
                let ask = if let Some(proof) = &proof { ask.header("dpop", proof) } else { ask };
                let http_response = ask.send(endpoint).await;
                assert_eq!(http_response.status, 401, "{cnf}");
                assert!(challenges(&http_response)[0].contains("error=\"invalid_token\""), "{cnf}");
            }
        }
        let http_response = bearer(call("list"), &token).send(&off).await;
        assert_eq!(challenges(&http_response), std::slice::from_ref(&bearer_challenge));
    }
    // A token that was accepted with a proof is not found in the cache as a bearer token.
    let both = fixture.endpoint(Dpop::Allowed);
    assert_eq!(fixture.call(&json!({})).send(&both).await.status, 200);
    let http_response = bearer(call("list"), &fixture.token(&json!({}))).send(&both).await;
    assert_eq!(
        (http_response.status.as_u16(), challenges(&http_response)),
        (401, vec![bearer_challenge, challenge("invalid_token")])
    );
}

#[tokio::test]
async fn v60_an_unbound_token_is_never_accepted_as_dpop() {
    let fixture = Fixture::new();
    let endpoint = fixture.endpoint(Dpop::Allowed);
    for cnf in [Value::Null, json!({}), json!({ "jkt": 7 }), json!({ "x5t#S256": "x" })] {
        let token = fixture.token(&json!({ "cnf": cnf }));
        for _ in 0..2 {
            let proof = fixture.proof(&token, &json!({}), &json!({}));
            let http_response = dpop(call("list"), &token, &proof).send(&endpoint).await;
            assert_eq!(http_response.status, 401, "{cnf}");
            assert_eq!(challenges(&http_response)[1], challenge("invalid_token"), "{cnf}");
            // Where unbound tokens are allowed, this one is, as what it is.
            let status = bearer(call("list"), &token).send(&endpoint).await.status;
            assert_eq!(status == 200, cnf.is_null(), "{cnf}");
        }
    }
    let required = fixture.endpoint(Dpop::Required);
    let unbound = fixture.token(&json!({ "cnf": null }));
    refuses(&required, bearer(call("list"), &unbound), "invalid_token", "unbound").await;
    // Without DPoP, it is another scheme.
    let off = super::endpoint(plain_server(), fixture.protect());
    let http_response = fixture.call(&json!({})).send(&off).await;
    assert_eq!(
        challenges(&http_response),
        [format!("Bearer resource_metadata=\"{METADATA}\", scope=\"notes:read\"")]
    );
}

// proves: XDPOP-04, XDPOP-05
#[tokio::test]
async fn v60_a_proof_for_something_else_is_refused() {
    let fixture = Fixture::new();
    let endpoint = fixture.endpoint(Dpop::Required);
    for claims in [
        json!({ "htu": "https://notes.example.com/other" }),
        json!({ "htu": "https://evil.example/mcp" }),
        json!({ "htu": "http://notes.example.com/mcp" }),
        json!({ "htu": null }),
        json!({ "htm": "GET" }),
        json!({ "htm": null }),
        json!({ "iat": NOW - 301 }),
        json!({ "iat": NOW + 301 }),
        json!({ "iat": null }),
        json!({ "ath": base64url(&[0; 32]) }),
        json!({ "ath": null }),
        json!({ "jti": null }),
        json!({ "jti": "" }),
    ] {
        refuses(&endpoint, fixture.call(&claims), "invalid_dpop_proof", &claims.to_string()).await;
    }
    for claims in [json!({ "iat": NOW - 300 }), json!({ "iat": NOW + 300 })] {
        assert_eq!(fixture.call(&claims).send(&endpoint).await.status, 200, "{claims}");
    }
    let token = fixture.token(&json!({}));
    let mut private = fixture.client.public().to_jwk();
    private.insert("d".to_owned(), json!("AQ"));
    for header in [json!({ "jwk": private }), json!({ "jwk": null }), json!({ "typ": "JWT" })] {
        let proof = fixture.proof(&token, &header, &json!({}));
        refuses(&endpoint, dpop(call("list"), &token, &proof), "invalid_dpop_proof", &header.to_string())
            .await;
    }
    // The proof of a thief, with the thief's own key.
    let thief = Fixture::new();
    let proof = thief.proof(&token, &json!({}), &json!({}));
    refuses(&endpoint, dpop(call("list"), &token, &proof), "invalid_dpop_proof", "thief").await;
    let proof = fixture.proof(&token, &json!({}), &json!({}));
    let without = call("list").header("authorization", &format!("DPoP {token}"));
    refuses(&endpoint, without, "invalid_dpop_proof", "no proof").await;
    let twice =
        dpop(call("list"), &token, &proof).also("dpop", &fixture.proof(&token, &json!({}), &json!({})));
    refuses(&endpoint, twice, "invalid_dpop_proof", "two proofs").await;
    assert_eq!(
        dpop(call("list"), &token, &proof).send(&endpoint).await.status,
        200,
        "none of it used the proof up"
    );
}

// proves: XDPOP-08
#[tokio::test]
async fn v60_a_proof_without_an_asymmetric_signature_is_refused() {
    let fixture = Fixture::new();
    let endpoint = fixture.endpoint(Dpop::Required);
    let token = fixture.token(&json!({}));
    let valid = fixture.proof(&token, &json!({}), &json!({}));
    let (rest, signature) = valid.rsplit_once('.').unwrap();
    let claims = rest.split_once('.').unwrap().1;
    let jwk = fixture.client.public().to_jwk();
    for algorithm in ["none", "HS256", "RS256"] {
        let header = json!({ "alg": algorithm, "typ": "dpop+jwt", "jwk": jwk }).to_string();
        let unsigned = format!("{}.{claims}", base64url(header.as_bytes()));
        let key =
            ring::hmac::Key::new(ring::hmac::HMAC_SHA256, Value::Object(jwk.clone()).to_string().as_bytes());
        let tag = ring::hmac::sign(&key, unsigned.as_bytes());
        for forged in ["", signature, &base64url(tag.as_ref())] {
            let ask = dpop(call("list"), &token, &format!("{unsigned}.{forged}"));
            refuses(&endpoint, ask, "invalid_dpop_proof", algorithm).await;
        }
    }
    let symmetric = json!({ "jwk": { "kty": "oct", "k": "AQ" } });
    let proof = fixture.proof(&token, &symmetric, &json!({}));
    refuses(&endpoint, dpop(call("list"), &token, &proof), "invalid_dpop_proof", "oct").await;
}

// proves: XDPOP-07
#[tokio::test]
async fn v60_a_proof_is_accepted_once() {
    let fixture = Fixture::new();
    let endpoint = fixture.endpoint(Dpop::Required);
    let token = fixture.token(&json!({}));
    let proof = fixture.proof(&token, &json!({}), &json!({}));
    let again = || dpop(call("list"), &token, &proof);
    assert_eq!(again().send(&endpoint).await.status, 200);
    refuses(&endpoint, again(), "invalid_dpop_proof", "at once").await;
    fixture.after(300);
    refuses(&endpoint, again(), "invalid_dpop_proof", "while it is not too old").await;
    fixture.after(1);
    refuses(&endpoint, again(), "invalid_dpop_proof", "too old").await;
}

// proves: XDPOP-06
#[tokio::test]
async fn v60_a_bound_token_for_somebody_else_runs_nothing() {
    let fixture = Fixture::new();
    let endpoint = fixture.endpoint(Dpop::Required);
    for claims in [
        json!({ "aud": "https://other.example.com/mcp" }),
        json!({ "aud": null }),
        json!({ "iss": "https://evil.example" }),
        json!({ "exp": NOW - 61 }),
    ] {
        let token = fixture.token(&claims);
        let ask = dpop(call("list"), &token, &fixture.proof(&token, &json!({}), &json!({})));
        refuses(&endpoint, ask, "invalid_token", &claims.to_string()).await;
    }
    let token = fixture.token(&json!({ "scope": "other" }));
    let http_response =
        dpop(call("list"), &token, &fixture.proof(&token, &json!({}), &json!({}))).send(&endpoint).await;
    assert_eq!(
        (http_response.status.as_u16(), challenges(&http_response)),
        (403, vec![challenge("insufficient_scope")])
    );
}

#[tokio::test]
async fn a_challenge_names_each_scheme_that_is_accepted() {
    let fixture = Fixture::new();
    let dpop = format!("DPoP algs=\"{ALGORITHMS}\", resource_metadata=\"{METADATA}\", scope=\"notes:read\"");
    let bearer = format!("Bearer resource_metadata=\"{METADATA}\", scope=\"notes:read\"");
    for (mode, expected) in [(Dpop::Allowed, vec![bearer, dpop.clone()]), (Dpop::Required, vec![dpop])] {
        let http_response = call("list").send(&fixture.endpoint(mode)).await;
        assert_eq!((http_response.status.as_u16(), challenges(&http_response)), (401, expected));
    }
}

#[tokio::test]
async fn metadata_says_whether_tokens_must_be_bound() {
    let fixture = Fixture::new();
    for (mode, is_required) in [(Dpop::Allowed, false), (Dpop::Required, true)] {
        let endpoint = fixture.endpoint(mode);
        let ask = Ask::new(Method::GET).path("/.well-known/oauth-protected-resource/mcp");
        let document = ask.send(&endpoint).await.json().await;
        assert_eq!(document["dpop_bound_access_tokens_required"], is_required);
        assert_eq!(
            document["dpop_signing_alg_values_supported"],
            json!(ALGORITHMS.split(' ').collect::<Vec<_>>())
        );
        assert_eq!(document.get("bearer_methods_supported").is_some(), !is_required);
    }
    let ask = Ask::new(Method::GET).path("/.well-known/oauth-protected-resource/mcp");
    let document = ask.send(&endpoint(plain_server(), fixture.protect())).await.json().await;
    assert!(document.get("dpop_bound_access_tokens_required").is_none());
}

#[tokio::test]
async fn a_nonce_is_demanded_and_renewed_before_it_expires() {
    let fixture = Fixture::new();
    let keys = || KeyRing::new(Key::new([7; 32]));
    let protect = || fixture.protect().dpop(Dpop::Required).dpop_nonces().nonce_keys(keys());
    let endpoint = super::endpoint(plain_server(), protect());
    let nonce_of =
        |http_response: &HttpReply| http_response.headers["dpop-nonce"].to_str().unwrap().to_owned();
    let http_response = fixture.call(&json!({})).send(&endpoint).await;
    assert_eq!(
        (http_response.status.as_u16(), challenges(&http_response)),
        (401, vec![challenge("use_dpop_nonce")])
    );
    let nonce = nonce_of(&http_response);
    let http_response = fixture.call(&json!({ "nonce": nonce })).send(&endpoint).await;
    assert_eq!((http_response.status.as_u16(), http_response.headers.get("dpop-nonce")), (200, None));
    fixture.after(30);
    let http_response = fixture.call(&json!({ "nonce": nonce })).send(&endpoint).await;
    assert_eq!((http_response.status.as_u16(), http_response.headers.get("dpop-nonce")), (200, None));
    fixture.after(1);
    // Another process with the same keys knows the nonce too.
    let other = super::endpoint(plain_server(), protect());
    let http_response = fixture.call(&json!({ "nonce": nonce })).send(&other).await;
    assert_eq!(http_response.status, 200);
    let next = nonce_of(&http_response);
    fixture.after(30);
    for stale in [json!(nonce), json!("forged")] {
        refuses(&endpoint, fixture.call(&json!({ "nonce": stale })), "use_dpop_nonce", "stale").await;
    }
    assert_eq!(fixture.call(&json!({ "nonce": next })).send(&endpoint).await.status, 200);
    // A proof with a nonce is accepted once too.
    let token = fixture.token(&json!({}));
    let proof = fixture.proof(&token, &json!({}), &json!({ "nonce": next }));
    assert_eq!(dpop(call("list"), &token, &proof).send(&endpoint).await.status, 200);
    refuses(&endpoint, dpop(call("list"), &token, &proof), "invalid_dpop_proof", "replayed").await;
}

#[tokio::test]
async fn a_nonce_that_is_not_ours_is_refused_even_if_none_is_needed() {
    let fixture = Fixture::new();
    let endpoint = fixture.endpoint(Dpop::Allowed);
    let http_response = fixture.call(&json!({ "nonce": "of another server" })).send(&endpoint).await;
    assert_eq!(
        (http_response.status.as_u16(), challenges(&http_response).pop()),
        (401, Some(challenge("use_dpop_nonce")))
    );
    let nonce = http_response.headers["dpop-nonce"].to_str().unwrap();
    assert_eq!(fixture.call(&json!({ "nonce": nonce })).send(&endpoint).await.status, 200);
}

#[tokio::test]
async fn pages_can_read_the_nonce() {
    let fixture = Fixture::new();
    let protect = fixture.protect().dpop(Dpop::Required).dpop_nonces();
    let options = HttpOptions::new().origins(["https://app.example"]).cors().protect(protect);
    let endpoint = HttpService::with_options(plain_server().build().unwrap(), options);
    let http_response =
        fixture.call(&json!({})).header("origin", "https://app.example").send(&endpoint).await;
    assert!(http_response.headers.contains_key("dpop-nonce"));
    let exposed = http_response.headers["access-control-expose-headers"].to_str().unwrap();
    assert!(exposed.contains("DPoP-Nonce"), "{exposed}");
}

#[tokio::test]
async fn every_request_of_a_session_needs_a_new_proof() {
    let fixture = Fixture::new();
    let endpoint = fixture.endpoint(Dpop::Required);
    let token = fixture.token(&json!({}));
    let with = |ask: Ask, method: &str| {
        dpop(ask, &token, &fixture.proof(&token, &json!({}), &json!({ "htm": method })))
    };
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
    } });
    let opened = with(Ask::post(&hello), "POST").send(&endpoint).await;
    let id = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let session = |method: Method| {
        Ask::new(method).header("mcp-session-id", &id).header("mcp-protocol-version", "2025-11-25")
    };
    let stream = || session(Method::GET).header("accept", "text/event-stream");
    for (ask, method) in [(stream(), "POST"), (session(Method::DELETE), "GET")] {
        refuses(&endpoint, with(ask, method), "invalid_dpop_proof", method).await;
    }
    assert_eq!(with(stream(), "GET").send(&endpoint).await.status, 200);
    assert_eq!(with(session(Method::DELETE), "DELETE").send(&endpoint).await.status, 204);
}

#[tokio::test]
async fn a_layer_checks_proofs_for_the_public_url_of_its_service() {
    let fixture = Fixture::new();
    let protection = fixture.protect().dpop(Dpop::Required).dpop_nonces().build().unwrap();
    let whoami = axum::routing::get(|request: axum::extract::Request| async move {
        request.extensions().get::<Arc<Caller>>().unwrap().subject().to_owned()
    });
    let service = axum::Router::new().route("/notes", whoami.clone()).route("/", whoami);
    let app = axum::Router::new()
        .route_service("/notes", protection.layer(service.clone()))
        .nest_service("/export", protection.layer(service).nested_at("/export/"));
    let nonce = std::cell::RefCell::new(None::<String>);
    let send = async |path: &str, url: &str| {
        let token = fixture.token(&json!({}));
        let claims = json!({ "htm": "GET", "htu": url, "nonce": *nonce.borrow() });
        let request = http::Request::get(path)
            .header("authorization", format!("DPoP {token}"))
            .header("dpop", fixture.proof(&token, &json!({}), &claims));
        let request = request.body(axum::body::Body::empty()).unwrap();
        let response = app.clone().call(request).await.unwrap();
        if let Some(next) = response.headers().get("dpop-nonce") {
            *nonce.borrow_mut() = Some(next.to_str().unwrap().to_owned());
        }
        response.status().as_u16()
    };
    assert_eq!(send("/notes", "https://notes.example.com/notes").await, 401, "no nonce yet");
    for (path, url, status) in [
        ("/notes", "https://notes.example.com/notes", 200),
        ("/notes", RESOURCE, 401),
        ("/notes", "https://notes.example.com/export/notes", 401),
        ("/export/notes", "https://notes.example.com/export/notes", 200),
        ("/export/notes", "https://notes.example.com/notes", 401),
        ("/export", "https://notes.example.com/export", 200),
    ] {
        assert_eq!(send(path, url).await, status, "{path} {url}");
    }
    fixture.after(31);
    let old = nonce.borrow().clone();
    assert_eq!(send("/notes", "https://notes.example.com/notes").await, 200);
    assert_ne!(*nonce.borrow(), old, "the response has the next nonce");
}
