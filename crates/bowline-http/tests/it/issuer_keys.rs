//! The keys of an issuer: where they are found, when they are fetched, and what happens when they cannot be.

use axum::{
    Router,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use bowline_auth::{
    Caller, Issuer, Refusal, Verify,
    jose::SigningKey,
    verify::{ClaimNames, Expected, Jwt, Verification},
};
use bowline_http::{HttpOptions, HttpService, IssuerKeys, Jwks, Poster, Protect};
use bowline_server::{Server, Tool};
use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use std::{
    fs,
    sync::{Arc, Mutex},
};
use tokio::{net::TcpListener, task::JoinHandle};

const NOW: u64 = 1_900_000_000;
const RESOURCE: &str = "https://notes.example.com/mcp";

/// An authorization server with a list of keys.
struct TestIssuer {
    url: String,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    /// What each path answers with.
    documents: Mutex<Vec<(String, Answer)>>,
    requests: Mutex<Vec<String>>,
}

type Answer = (StatusCode, Vec<(header::HeaderName, String)>, String);

impl Drop for TestIssuer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl TestIssuer {
    /// Serves metadata at the path of RFC 8414, and no keys yet.
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let app = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let issuer = Self { url, shared, serving };
        let metadata = json!({ "issuer": issuer.url, "jwks_uri": format!("{}/keys", issuer.url) });
        issuer.set("/.well-known/oauth-authorization-server", &metadata);
        issuer
    }

    fn set(&self, path: &str, document: &Value) {
        self.answer(path, StatusCode::OK, &[], &document.to_string());
    }

    fn answer(&self, path: &str, status: StatusCode, headers: &[(header::HeaderName, &str)], body: &str) {
        let headers = headers.iter().map(|(name, value)| (name.clone(), (*value).to_owned())).collect();
        let mut documents = self.shared.documents.lock().unwrap();
        documents.retain(|(known, _)| known != path);
        documents.push((path.to_owned(), (status, headers, body.to_owned())));
    }

    fn publish(&self, keys: &[&TestKey]) {
        self.set("/keys", &jwks(keys));
    }

    /// The paths that were asked for since the last time.
    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.requests.lock().unwrap())
    }

    fn jwt(&self) -> Jwt {
        Jwt::new(Issuer::new(&self.url).unwrap())
    }

    fn verifier(&self) -> IssuerKeys {
        IssuerKeys::new(self.jwt(), Jwks::discover())
    }

    fn token(&self, key: &TestKey) -> String {
        self.token_with(key, json!({}))
    }

    fn token_with(&self, key: &TestKey, mut header: Value) -> String {
        header["kid"] = json!(key.kid);
        let claims = json!({ "iss": self.url, "aud": RESOURCE, "sub": "ada", "exp": NOW + 200_000 });
        key.key.sign(header, claims).unwrap()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let found = shared.documents.lock().unwrap().iter().find(|(known, _)| *known == path).cloned();
    shared.requests.lock().unwrap().push(path);
    let Some((_, (status, headers, body))) = found else { return StatusCode::NOT_FOUND.into_response() };
    let mut response = (status, body).into_response();
    for (name, value) in headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

struct TestKey {
    kid: String,
    key: SigningKey,
}

fn test_key(kid: &str) -> TestKey {
    TestKey { kid: kid.to_owned(), key: SigningKey::generate_ed25519().unwrap() }
}

fn jwks(keys: &[&TestKey]) -> Value {
    let keys: Vec<Value> = keys
        .iter()
        .map(|key| {
            let mut jwk = key.key.public().to_jwk();
            jwk.insert("kid".to_owned(), json!(key.kid));
            Value::Object(jwk)
        })
        .collect();
    json!({ "keys": keys })
}

async fn verify_at(verifier: &impl Verify, token: &str, now: u64) -> Result<Arc<Caller>, Refusal> {
    let (audiences, claims) = ([RESOURCE.to_owned()], ClaimNames::default());
    verifier.verify(token, Expected::new(now, &audiences, &claims)).verdict().await
}

async fn is_accepted(verifier: &impl Verify, token: &str, now: u64) -> bool {
    verify_at(verifier, token, now).await.is_ok()
}

fn is_invalid(verdict: &Result<Arc<Caller>, Refusal>) -> bool {
    matches!(verdict, Err(Refusal::Invalid(_)))
}

fn is_unavailable(verdict: &Result<Arc<Caller>, Refusal>) -> bool {
    matches!(verdict, Err(Refusal::Unavailable(_)))
}

#[tokio::test]
async fn keys_are_found_by_the_metadata_and_fetched_once() {
    let (issuer, key) = (TestIssuer::start().await, test_key("a"));
    issuer.publish(&[&key]);
    let verifier = Arc::new(issuer.verifier());
    let token = issuer.token(&key);
    // Many requests at once share one fetch.
    let many: Vec<_> = (0..50)
        .map(|_| {
            let (verifier, token) = (Arc::clone(&verifier), token.clone());
            tokio::spawn(async move { is_accepted(&*verifier, &token, NOW).await })
        })
        .collect();
    for one in many {
        assert!(one.await.unwrap());
    }
    assert_eq!(issuer.requests(), ["/.well-known/oauth-authorization-server", "/keys"]);
    // With the keys at hand, the verdict is there without waiting.
    let (audiences, claims) = ([RESOURCE.to_owned()], ClaimNames::default());
    let verification = verifier.verify(&token, Expected::new(NOW + 599, &audiences, &claims));
    assert!(matches!(verification, Verification::Ready(Ok(_))));
    assert!(issuer.requests().is_empty());
    assert_eq!(verifier.generation(), 1);
}

#[tokio::test]
async fn metadata_is_looked_for_at_each_known_path() {
    let (issuer, key) = (TestIssuer::start().await, test_key("a"));
    issuer.publish(&[&key]);
    let metadata = json!({ "issuer": issuer.url, "jwks_uri": format!("{}/keys", issuer.url) });
    issuer.answer("/.well-known/oauth-authorization-server", StatusCode::OK, &[], "<html>not here</html>");
    issuer.set("/.well-known/openid-configuration", &metadata);
    assert!(is_accepted(&issuer.verifier(), &issuer.token(&key), NOW).await);
    let paths = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/keys"];
    assert_eq!(issuer.requests(), paths);
}

#[tokio::test]
async fn metadata_of_another_issuer_is_not_believed() {
    let (issuer, key) = (TestIssuer::start().await, test_key("a"));
    issuer.publish(&[&key]);
    for name in [format!("{}/", issuer.url), "https://login.example.com".to_owned()] {
        let metadata = json!({ "issuer": name, "jwks_uri": format!("{}/keys", issuer.url) });
        issuer.set("/.well-known/oauth-authorization-server", &metadata);
        issuer.set("/.well-known/openid-configuration", &metadata);
        let verdict = verify_at(&issuer.verifier(), &issuer.token(&key), NOW).await;
        assert!(is_unavailable(&verdict), "{verdict:?}");
        assert_eq!(issuer.requests(), ["/.well-known/oauth-authorization-server"]);
    }
}

#[tokio::test]
async fn a_rotated_key_is_accepted_after_one_fetch() {
    let (issuer, old, new) = (TestIssuer::start().await, test_key("old"), test_key("new"));
    issuer.publish(&[&old]);
    let verifier = issuer.verifier();
    assert!(is_accepted(&verifier, &issuer.token(&old), NOW).await);
    issuer.publish(&[&old, &new]);
    issuer.requests();
    assert!(is_accepted(&verifier, &issuer.token(&new), NOW + 30).await);
    assert_eq!(issuer.requests().len(), 2);
    assert_eq!(verifier.generation(), 2);
    assert!(is_accepted(&verifier, &issuer.token(&old), NOW + 30).await);
    // A key that is withdrawn is gone with the next fetch.
    issuer.publish(&[&new]);
    let verdict = verify_at(&verifier, &issuer.token(&test_key("unknown")), NOW + 60).await;
    assert!(is_invalid(&verdict));
    assert!(is_invalid(&verify_at(&verifier, &issuer.token(&old), NOW + 61).await));
}

#[tokio::test]
async fn a_thousand_unknown_keys_cause_one_fetch_in_30_seconds() {
    let (issuer, key, attacker) = (TestIssuer::start().await, test_key("a"), test_key("x"));
    issuer.publish(&[&key]);
    let verifier = issuer.verifier();
    assert!(is_accepted(&verifier, &issuer.token(&key), NOW).await);
    issuer.requests();
    for number in 0..1000 {
        let unknown = TestKey { kid: format!("unknown {number}"), key: test_key("x").key };
        // The first 500 come within 30 s of the last fetch, the others within 30 s of the next.
        let now = if number < 500 { NOW + 29 } else { NOW + 30 };
        assert!(is_invalid(&verify_at(&verifier, &issuer.token(&unknown), now).await));
    }
    assert_eq!(issuer.requests(), ["/.well-known/oauth-authorization-server", "/keys"]);
    // A bad signature with a known name causes none.
    let forged = TestKey { kid: "a".to_owned(), key: attacker.key };
    assert!(is_invalid(&verify_at(&verifier, &issuer.token(&forged), NOW + 90).await));
    assert!(issuer.requests().is_empty());
}

#[tokio::test]
async fn known_keys_serve_for_a_day_while_the_issuer_is_down() {
    let (issuer, key) = (TestIssuer::start().await, test_key("a"));
    issuer.publish(&[&key]);
    let verifier = issuer.verifier();
    let token = issuer.token(&key);
    assert!(is_accepted(&verifier, &token, NOW).await);
    issuer.serving.abort();
    for path in ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/keys"] {
        issuer.answer(path, StatusCode::SERVICE_UNAVAILABLE, &[], "");
    }
    for later in [599, 600, 3600, 86_399] {
        assert!(is_accepted(&verifier, &token, NOW + later).await, "{later}");
    }
    // Unknown keys are refused, not waited for without end.
    assert!(is_invalid(&verify_at(&verifier, &issuer.token(&test_key("b")), NOW + 80_000).await));
    let verdict = verify_at(&verifier, &token, NOW + 86_400).await;
    assert!(is_unavailable(&verdict), "{verdict:?}");
}

#[tokio::test]
async fn without_keys_nothing_is_accepted_and_the_next_attempt_comes_soon() {
    let (issuer, key) = (TestIssuer::start().await, test_key("a"));
    let verifier = issuer.verifier();
    let token = issuer.token(&key);
    for (status, body) in [
        (StatusCode::INTERNAL_SERVER_ERROR, "{}"),
        (StatusCode::TOO_MANY_REQUESTS, "{}"),
        (StatusCode::OK, "<html>"),
        (StatusCode::OK, "{}"),
        (StatusCode::OK, r#"{"keys":1}"#),
    ] {
        issuer.answer("/keys", status, &[], body);
        let verdict = verify_at(&issuer.verifier(), &token, NOW).await;
        assert!(is_unavailable(&verdict), "{status} {body}: {verdict:?}");
    }
    issuer.answer("/keys", StatusCode::OK, &[], &format!("{}{}", jwks(&[&key]), " ".repeat(256 * 1024)));
    assert!(is_unavailable(&verify_at(&verifier, &token, NOW).await));
    issuer.publish(&[&key]);
    issuer.requests();
    assert!(is_unavailable(&verify_at(&verifier, &token, NOW + 4).await));
    assert!(issuer.requests().is_empty());
    assert!(is_accepted(&verifier, &token, NOW + 5).await);
}

#[tokio::test]
async fn the_issuer_says_how_long_its_keys_are_fresh() {
    let (issuer, key) = (TestIssuer::start().await, test_key("a"));
    let body = jwks(&[&key]).to_string();
    issuer.answer("/keys", StatusCode::OK, &[(header::CACHE_CONTROL, "public, max-age=7200")], &body);
    let verifier = issuer.verifier();
    let token = issuer.token(&key);
    assert!(is_accepted(&verifier, &token, NOW).await);
    issuer.requests();
    assert!(is_accepted(&verifier, &token, NOW + 7199).await);
    assert!(issuer.requests().is_empty());
    // Old keys are used at once. A token with an unknown key waits for the fetch that they started.
    assert!(is_accepted(&verifier, &token, NOW + 7200).await);
    assert!(is_invalid(&verify_at(&verifier, &issuer.token(&test_key("b")), NOW + 7200).await));
    assert_eq!(issuer.requests().len(), 2);
}

#[tokio::test]
async fn redirects_stay_at_the_origin() {
    let (issuer, other, key) = (TestIssuer::start().await, TestIssuer::start().await, test_key("a"));
    other.publish(&[&key]);
    issuer.set("/moved", &jwks(&[&key]));
    issuer.answer("/keys", StatusCode::FOUND, &[(header::LOCATION, "/moved")], "");
    assert!(is_accepted(&issuer.verifier(), &issuer.token(&key), NOW).await);
    let elsewhere = format!("{}/keys", other.url);
    issuer.answer("/keys", StatusCode::FOUND, &[(header::LOCATION, &elsewhere)], "");
    assert!(is_unavailable(&verify_at(&issuer.verifier(), &issuer.token(&key), NOW).await));
    assert!(other.requests().is_empty());
    issuer.answer("/keys", StatusCode::FOUND, &[(header::LOCATION, "/keys")], "");
    issuer.requests();
    assert!(is_unavailable(&verify_at(&issuer.verifier(), &issuer.token(&key), NOW).await));
    assert_eq!(issuer.requests().len(), 1 + 4);
}

#[tokio::test]
async fn keys_can_be_in_a_file_that_is_replaced() {
    let (issuer, old, new) = (TestIssuer::start().await, test_key("old"), test_key("new"));
    let folder = std::env::temp_dir().join(format!("bowline-keys-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("keys.json");
    fs::write(&path, jwks(&[&old]).to_string()).unwrap();
    let verifier = IssuerKeys::new(issuer.jwt(), Jwks::file(&path));
    assert!(is_accepted(&verifier, &issuer.token(&old), NOW).await);
    assert!(is_invalid(&verify_at(&verifier, &issuer.token(&new), NOW).await));
    fs::write(&path, jwks(&[&new]).to_string()).unwrap();
    assert!(is_accepted(&verifier, &issuer.token(&new), NOW + 30).await);
    fs::remove_dir_all(&folder).unwrap();
    assert!(is_unavailable(
        &verify_at(&IssuerKeys::new(issuer.jwt(), Jwks::file(&path)), &issuer.token(&new), NOW).await
    ));
    assert!(issuer.requests().is_empty());
}

/// Calls the tool `greet` and returns the status.
async fn call(url: &str, token: &str) -> (StatusCode, String) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "greet", "_meta": meta },
    });
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "greet"),
        ("authorization", &format!("Bearer {token}")),
    ] {
        headers.insert(header::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
    }
    let answer = Poster::new().send(Method::POST, url, headers, Bytes::from(body.to_string())).await.unwrap();
    (answer.status, String::from_utf8_lossy(&answer.body).into_owned())
}

#[tokio::test]
async fn v61_a_protected_server_accepts_the_issuers_tokens_and_follows_no_link_in_others() {
    let (issuer, canary, key) = (TestIssuer::start().await, TestIssuer::start().await, test_key("a"));
    issuer.publish(&[&key]);
    let server = Server::new("s").tool(Tool::new("greet").handler(|| "hello")).build().unwrap();
    let protect = Protect::by(issuer.url.as_str()).resource(RESOURCE).clock(|| NOW);
    let service = HttpService::with_options(server, HttpOptions::new().protect(protect));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { service.serve(listener, std::future::pending()).await });

    let (status, body) = call(&url, &issuer.token(&key)).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    assert!(body.contains("hello"), "{body}");
    issuer.requests();

    let attacker = TestKey { kid: "a".to_owned(), key: test_key("a").key };
    canary.publish(&[&attacker]);
    let link = format!("{}/keys", canary.url);
    for header in [
        json!({}),
        json!({ "jku": link }),
        json!({ "x5u": link }),
        json!({ "jwk": attacker.key.public().to_jwk() }),
        json!({ "crit": ["jku"], "jku": link }),
    ] {
        let (status, body) = call(&url, &issuer.token_with(&attacker, header.clone())).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{header}: {body}");
    }
    assert!(canary.requests().is_empty() && issuer.requests().is_empty());
    serving.abort();
}

#[tokio::test]
async fn v50_keys_are_not_fetched_from_internal_addresses() {
    let (issuer, key) = (TestIssuer::start().await, test_key("a"));
    let canary = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = canary.local_addr().unwrap().port();
    for uri in [format!("https://0.0.0.0:{port}/keys"), "https://169.254.169.254/keys".to_owned()] {
        let metadata = json!({ "issuer": issuer.url, "jwks_uri": uri });
        issuer.set("/.well-known/oauth-authorization-server", &metadata);
        let verdict = verify_at(&issuer.verifier(), &issuer.token(&key), NOW).await;
        assert!(is_unavailable(&verdict), "{uri}: {verdict:?}");
    }
    // An earlier connection would be accepted first.
    let own = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (_, accepted) = canary.accept().await.unwrap();
    assert_eq!(accepted, own.local_addr().unwrap(), "something else connected");
}
