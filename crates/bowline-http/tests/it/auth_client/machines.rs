//! Logins without a user.

use super::world::World;
use bowline_auth::{
    form,
    jose::{Jws, SigningKey},
};
use bowline_http::auth::{Login, MemoryStore, Secret, Store as _, StoreKey};
use serde_json::{Value, json};
use std::future::ready;

/// The parameters of a form.
fn parameter(body: &str, name: &str) -> Option<String> {
    let parameters = form::decode(body).unwrap();
    parameters.into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// The extensions that the requests of a client declare.
fn declared(world: &World) -> Value {
    let call = world.bodies("POST", "/mcp").into_iter().find(|body| body.contains("tools/call")).unwrap();
    let call: Value = serde_json::from_str(&call).unwrap();
    call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"].clone()
}

fn issuer(world: &World) -> String {
    format!("{}/one", world.base)
}

fn enterprise(world: &World) -> Login {
    let id_token = || ready(Ok::<_, String>(Secret::new("id-token-canary")));
    Login::enterprise(format!("{}/idp/token", world.base), id_token)
        .identity_provider_client("at-idp")
        .client("app", "secret-canary")
        .issuer(issuer(world))
}

// proves: XCC-01, XCC-02, XCC-05
#[tokio::test]
async fn a_machine_with_a_key_signs_an_assertion_for_the_issuer() {
    let world = World::new().await;
    let key = SigningKey::generate_es256().unwrap();
    let public = SigningKey::from_pkcs8(key.pkcs8()).unwrap();
    let client =
        world.connect(Login::machine_with_key("reporter", key).issuer(issuer(&world))).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    let bodies = world.bodies("POST", "/one/token");
    let [body] = &bodies[..] else { panic!("{bodies:?}") };
    let expect =
        |name: &str, value: &str| assert_eq!(parameter(body, name).as_deref(), Some(value), "{body}");
    expect("grant_type", "client_credentials");
    expect("resource", &format!("{}/mcp", world.base));
    expect("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    assert_eq!(parameter(body, "client_secret"), None);
    let assertion = parameter(body, "client_assertion").unwrap();
    let claims: Value =
        serde_json::from_slice(Jws::parse(&assertion).unwrap().verify(public.public()).unwrap()).unwrap();
    assert_eq!((&claims["iss"], &claims["sub"]), (&json!("reporter"), &json!("reporter")));
    assert_eq!(claims["aud"], format!("{}/one", world.base));
    assert!(claims["jti"].is_string() && claims["exp"].is_u64(), "{claims}");
    assert_eq!(declared(&world), json!({ "io.modelcontextprotocol/oauth-client-credentials": {} }));
}

// proves: XCC-04
#[tokio::test]
async fn a_machine_follows_the_rules_that_logins_of_users_follow() {
    let login = |world: &World| Login::machine("reporter", "secret-canary").issuer(issuer(world));
    // The metadata of another resource, another issuer, or an endpoint without TLS: nothing is sent there.
    let world = World::new().await;
    let path = "/.well-known/oauth-protected-resource/mcp".to_owned();
    let foreign =
        json!({ "resource": "https://other.example/mcp", "authorization_servers": [issuer(&world)] });
    world.state().documents.insert(path, ("", foreign.to_string()));
    world.connect(login(&world)).await.unwrap_err();
    for (member, value) in
        [("issuer", "https://other.example"), ("token_endpoint", "http://other.example/token")]
    {
        world.state().documents.clear();
        world.state().metadata = serde_json::Map::from_iter([(member.to_owned(), json!(value))]);
        world.connect(login(&world)).await.unwrap_err();
    }
    assert_eq!(world.count("POST", "/one/token"), 0);

    // Tokens are for the resource, and are sent in the header only.
    let world = World::new().await;
    let client = world.connect(login(&world)).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    let body = world.bodies("POST", "/one/token").remove(0);
    assert_eq!(parameter(&body, "resource"), Some(format!("{}/mcp", world.base)));
    let state = world.state();
    let token = state.valid.keys().next().unwrap();
    assert!(state.seen.iter().all(|(_, path, body)| !path.contains(token) && !body.contains(token)));
}

// proves: XCC-06
#[tokio::test]
async fn a_machine_renews_its_token_before_it_expires() {
    let world = World::new().await;
    // The last tenth of the lifetime, at most a minute, counts as expired.
    world.state().expires_in = Some(1);
    let login = Login::machine("reporter", "secret-canary").issuer(issuer(&world));
    let store = MemoryStore::new();
    let client = world.connect(login.clone().store(store.clone())).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    let server = format!("{}/mcp", world.base);
    let key = StoreKey::new(&server, "").unwrap();
    let mut record = store.load(&key).await.unwrap().unwrap();
    let tokens = record.tokens.as_mut().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    (tokens.issued, tokens.expires) = (now - 3590, Some(now + 10));
    let old = tokens.access_token.expose().to_owned();
    store.save(&key, &record).await.unwrap();
    world.state().expires_in = Some(3600);
    let before = world.count("POST", "/one/token");
    let client = world.connect(login.clone().store(store.clone())).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    assert_eq!(world.count("POST", "/one/token"), before + 1);
    let renewed = store.load(&key).await.unwrap().unwrap().tokens.unwrap();
    assert_ne!(renewed.access_token.expose(), old);

    // While the token lives, a refusal changes nothing.
    store.save(&key, &record).await.unwrap();
    world.state().refuse_assertions = true;
    let client = world.connect(login.store(store)).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
}

// proves: AFLOW-35
#[tokio::test]
async fn a_machine_asks_once_for_a_missing_scope() {
    let world = World::new().await;
    let client =
        world.connect(Login::machine("reporter", "secret-canary").issuer(issuer(&world))).await.unwrap();
    world.state().call_scope = Some("write".into());
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    let bodies = world.bodies("POST", "/one/token");
    assert_eq!(parameter(&bodies[1], "scope").as_deref(), Some("base write"));
    world.state().call_scope = Some("forbidden".into());
    let error = client.call("t", ()).await.unwrap_err();
    assert!(error.is_authorization(), "{error}");
    assert_eq!(world.count("POST", "/one/token"), 3);
    assert_eq!(world.visits.load(std::sync::atomic::Ordering::SeqCst), 0);
}

// proves: XEMA-01, XEMA-02, XEMA-03, XEMA-11
#[tokio::test]
async fn an_enterprise_login_exchanges_the_id_token_and_visits_no_page() {
    let world = World::new().await;
    let client = world.connect(enterprise(&world)).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    let (issuer, resource) = (issuer(&world), format!("{}/mcp", world.base));
    let exchange = world.bodies("POST", "/idp/token").pop().unwrap();
    for (name, value) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
        ("subject_token", "id-token-canary"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("audience", &issuer),
        ("resource", &resource),
        ("client_id", "at-idp"),
    ] {
        assert_eq!(parameter(&exchange, name).as_deref(), Some(value), "{exchange}");
    }
    let redeemed = world.bodies("POST", "/one/token").pop().unwrap();
    let grant = parameter(&redeemed, "grant_type").unwrap();
    assert_eq!(grant, "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!(parameter(&redeemed, "assertion").as_deref(), Some("id-jag-canary"));
    assert_eq!(parameter(&redeemed, "resource").as_deref(), Some(&*resource));
    assert_eq!(declared(&world), json!({ "io.modelcontextprotocol/enterprise-managed-authorization": {} }));
    for (verb, path, _) in &world.state().seen {
        assert!(verb != "VISIT" && !path.contains("canary"), "{verb} {path}");
    }
    assert!(!format!("{client:?}").contains("canary"));
}

// proves: XEMA-10
#[tokio::test]
async fn an_identity_provider_without_tls_gets_no_id_token() {
    let world = World::new().await;
    let login = Login::enterprise("http://idp.example/token", || ready(Ok::<_, String>(Secret::new("t"))));
    let error = world.connect(login.client("app", "secret-canary").issuer(issuer(&world))).await.unwrap_err();
    assert!(error.to_string().contains("the token endpoint of the identity provider"), "{error}");
    assert_eq!(world.count("POST", "/one/token"), 0);
}

// proves: XWIF-01, XWIF-05
#[tokio::test]
async fn a_refused_assertion_of_a_workload_is_not_tried_again() {
    let world = World::new().await;
    world.state().refuse_assertions = true;
    let login = Login::workload(|| ready(Ok::<_, String>(Secret::new("platform-canary"))));
    let error = world.connect(login.issuer(issuer(&world))).await.unwrap_err();
    assert!(error.to_string().contains("invalid_grant"), "{error}");
    assert!(!format!("{error} {error:?}").contains("canary"));
    let bodies = world.bodies("POST", "/one/token");
    let [body] = &bodies[..] else { panic!("{bodies:?}") };
    let grant = parameter(body, "grant_type").unwrap();
    assert_eq!(grant, "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!(parameter(body, "assertion").as_deref(), Some("platform-canary"));
    assert_eq!(parameter(body, "resource"), Some(format!("{}/mcp", world.base)));
    assert_eq!(parameter(body, "client_id"), None);
    assert_eq!(world.count("POST", "/one/register"), 0);
}
