//! Logins whose tokens are bound to a key, with the endpoint of this crate as the server.

use bowline_auth::{
    Issuer, Scheme, StoreKey,
    dpop::{ProofRequest, verify_proof},
    jose::{Claims, Jws, KeySet, PublicKey, SigningKey},
    verify::{FixedKeys, Jwt},
};
use bowline_client::Client;
use bowline_http::{
    Dpop, HttpOptions, HttpService, Protect,
    auth::{Login, MemoryStore, Store, Visit},
    http,
};
use bowline_server::{Server, Tool};
use bowline_types::Revision;
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::net::TcpListener;

type Response = axum::response::Response;

/// What the servers do, and what they saw.
#[derive(Default)]
struct State {
    /// The metadata of the authorization server lists these algorithms.
    algorithms: Option<Vec<&'static str>>,
    /// The metadata of the resource requires DPoP.
    metadata_requires: bool,
    /// The authorization server requires a nonce.
    token_nonce: bool,
    /// No nonce is good enough for the authorization server.
    endless_token_nonce: bool,
    /// The `token_type` of all tokens, if it does not follow from the request.
    token_type: Option<&'static str>,
    expires_in: u64,
    /// The server refuses every proof with this error and a new nonce.
    refuse_proofs: Option<&'static str>,
    seen: Vec<Seen>,
    /// The client authentications that were used.
    assertions: Vec<String>,
}

/// One request.
#[derive(Clone, Debug)]
struct Seen {
    method: Method,
    path: String,
    authorization: Option<String>,
    proofs: Vec<String>,
    body: String,
    status: u16,
}

impl Seen {
    /// The only proof, its claims, and the thumbprint of its key.
    fn proof(&self) -> (Value, String) {
        assert_eq!(self.proofs.len(), 1, "{self:?}");
        let jws = Jws::parse(&self.proofs[0]).unwrap();
        let Some(Value::Object(jwk)) = jws.header().member("jwk") else { panic!("no key") };
        let key = PublicKey::from_jwk(jwk).unwrap();
        let payload = jws.verify(&key).unwrap();
        (serde_json::from_slice(payload).unwrap(), key.thumbprint())
    }
}

/// An authorization server, and an endpoint that accepts its tokens.
#[derive(Clone)]
struct World {
    base: String,
    state: Arc<Mutex<State>>,
    visits: Arc<AtomicUsize>,
    key: Arc<SigningKey>,
    endpoint: HttpService,
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

impl World {
    async fn new(protect: impl FnOnce(Protect) -> Protect) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let key = Arc::new(SigningKey::generate_es256().unwrap());
        let issuer = format!("{base}/as");
        let keys = KeySet::of(Some("k1"), key.public().clone());
        let verifier = FixedKeys::new(Jwt::new(Issuer::new(issuer.clone()).unwrap()), keys);
        let protect = protect(Protect::with(verifier, [issuer]).resource(format!("{base}/mcp")));
        let server = Server::new("notes").tool(Tool::new("list").handler(|| "none")).build().unwrap();
        let endpoint = HttpService::with_options(server, HttpOptions::new().protect(protect));
        let state = State { algorithms: Some(vec!["ES256"]), expires_in: 3600, ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let world = Self { base, state, visits: Arc::default(), key, endpoint };
        let serving = world.clone();
        let app = axum::Router::new().fallback(move |request: axum::extract::Request| {
            let serving = serving.clone();
            async move { serving.answer(request).await }
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        world
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// A login whose user agrees to everything.
    fn login(&self) -> Login {
        let visits = Arc::clone(&self.visits);
        Login::with(move |visit: Visit| {
            visits.fetch_add(1, Ordering::SeqCst);
            async move {
                let query = visit.url().split_once('?').ok_or("no query")?.1;
                let parameters = bowline_auth::form::decode(query).ok_or("no form")?;
                let state = parameters.iter().find(|(name, _)| name == "state").ok_or("no state")?;
                Ok::<_, &str>(format!("{}?code=c&state={}", visit.redirect_uri(), state.1))
            }
        })
    }

    async fn connect(&self, login: Login) -> bowline_client::Result<Client> {
        Client::connect(http(format!("{}/mcp", self.base)).login(login)).await
    }

    fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }

    /// The requests to a path.
    fn seen(&self, path: &str) -> Vec<Seen> {
        self.state().seen.iter().filter(|seen| seen.path == path).cloned().collect()
    }

    /// The requests to the endpoint that carried a token.
    fn authorized(&self) -> Vec<Seen> {
        let mut seen = self.seen("/mcp");
        seen.retain(|seen| seen.authorization.is_some());
        seen
    }

    async fn answer(&self, request: axum::extract::Request) -> Response {
        let (parts, body) = request.into_parts();
        let lines = |name: &str| -> Vec<String> {
            parts.headers.get_all(name).iter().map(|line| line.to_str().unwrap().to_owned()).collect()
        };
        let path = parts.uri.path().to_owned();
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        let mut seen = Seen {
            method: parts.method.clone(),
            path: path.clone(),
            authorization: lines("authorization").pop(),
            proofs: lines("dpop"),
            body: String::from_utf8(body.to_vec()).unwrap(),
            status: 0,
        };
        let response = match path.as_str() {
            "/mcp" => {
                if let Some(response) = self.refused(&parts.headers) {
                    response
                } else {
                    let request = http::Request::from_parts(parts, axum::body::Body::from(body));
                    self.endpoint.respond(request).await.map(axum::body::Body::new)
                }
            }
            "/.well-known/oauth-protected-resource/mcp" => reply(
                200,
                &json!({
                    "resource": format!("{}/mcp", self.base),
                    "authorization_servers": [format!("{}/as", self.base)],
                    "dpop_bound_access_tokens_required": self.state().metadata_requires,
                }),
            ),
            "/.well-known/oauth-authorization-server/as" => reply(
                200,
                &json!({
                    "issuer": format!("{}/as", self.base),
                    "authorization_endpoint": format!("{}/as/authorize", self.base),
                    "token_endpoint": format!("{}/as/token", self.base),
                    "registration_endpoint": format!("{}/as/register", self.base),
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
                    "dpop_signing_alg_values_supported": self.state().algorithms,
                }),
            ),
            "/as/register" => reply(201, &json!({ "client_id": "client" })),
            "/as/token" => self.token(&seen),
            _ => reply(404, &json!({})),
        };
        seen.status = response.status().as_u16();
        self.state().seen.push(seen);
        response
    }

    /// The refusal of a proof that a test asks for.
    fn refused(&self, headers: &HeaderMap) -> Option<Response> {
        let error = self.state().refuse_proofs.filter(|_| headers.contains_key("dpop"))?;
        let mut response = reply(401, &json!({}));
        let challenge = format!("DPoP error=\"{error}\", algs=\"ES256\"");
        response.headers_mut().insert("www-authenticate", challenge.parse().unwrap());
        response.headers_mut().insert("dpop-nonce", "another".parse().unwrap());
        Some(response)
    }

    fn token(&self, seen: &Seen) -> Response {
        let parameters = bowline_auth::form::decode(&seen.body).unwrap();
        let get =
            |name: &str| parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        self.state().assertions.extend(get("client_assertion"));
        let bound_to = (!seen.proofs.is_empty()).then(|| seen.proof());
        if let Some((claims, _)) = &bound_to {
            assert_eq!((&claims["htm"], &claims["ath"]), (&json!("POST"), &Value::Null));
            assert_eq!(claims["htu"], format!("{}/as/token", self.base));
            let state = self.state();
            let is_stale = state.token_nonce && claims["nonce"] != "as-nonce";
            if is_stale || state.endless_token_nonce {
                let mut response = reply(400, &json!({ "error": "use_dpop_nonce" }));
                response.headers_mut().insert("dpop-nonce", "as-nonce".parse().unwrap());
                return response;
            }
        }
        let jkt = bound_to.map(|(_, thumbprint)| thumbprint);
        // The refresh token is bound to the key too.
        if let Some(refresh_token) = get("refresh_token")
            && refresh_token != format!("refresh-{}", jkt.clone().unwrap_or_default())
        {
            return reply(400, &json!({ "error": "invalid_grant" }));
        }
        let mut claims = json!({
            "iss": format!("{}/as", self.base), "aud": format!("{}/mcp", self.base), "sub": "ada",
            "iat": now(), "exp": now() + 3600, "jti": self.state().seen.len(),
        });
        if let Some(jkt) = &jkt {
            claims["cnf"] = json!({ "jkt": jkt });
        }
        let token = self.key.sign(json!({ "typ": "at+jwt", "kid": "k1" }), claims).unwrap();
        let state = self.state();
        let kind = state.token_type.unwrap_or_else(|| if jkt.is_some() { "DPoP" } else { "Bearer" });
        reply(
            200,
            &json!({
                "access_token": token, "token_type": kind, "expires_in": state.expires_in,
                "refresh_token": format!("refresh-{}", jkt.unwrap_or_default()),
            }),
        )
    }
}

fn reply(status: u16, body: &Value) -> Response {
    let response = http::Response::builder().status(status).header("content-type", "application/json");
    response.body(axum::body::Body::from(body.to_string())).unwrap()
}

/// Checks that every request with a token has the scheme DPoP and a fresh proof of the same key for it.
fn check_proofs(seen: &[Seen], base: &str) -> String {
    let mut ids = HashSet::new();
    let mut keys = HashSet::new();
    for seen in seen {
        let token = seen.authorization.as_ref().and_then(|text| text.strip_prefix("DPoP ")).expect("DPoP");
        let (claims, thumbprint) = seen.proof();
        assert!(ids.insert(claims["jti"].to_string()), "a proof was used twice");
        let request = ProofRequest {
            method: seen.method.as_str(),
            urls: &[&format!("{base}/mcp")],
            token,
            thumbprint: &thumbprint,
            now: now(),
        };
        verify_proof(seen.proofs.iter().map(String::as_str), &request).unwrap();
        keys.insert(thumbprint);
    }
    assert_eq!(keys.len(), 1, "{keys:?}");
    keys.into_iter().next().unwrap()
}

/// Logs in for bound tokens, and returns what must not be seen: tokens and proofs.
pub(super) async fn secrets_of_bound_tokens() -> Vec<String> {
    let world = World::new(|protect| protect.dpop(Dpop::Required).dpop_nonces()).await;
    world.state().token_nonce = true;
    let client = world.connect(world.login()).await.unwrap();
    assert_eq!(client.call("list", ()).await.unwrap().text(), "none");
    let mut seen = world.authorized();
    seen.extend(world.seen("/as/token"));
    let tokens = seen.iter().filter_map(|seen| seen.authorization.as_ref()?.split(' ').nth(1));
    tokens
        .chain(seen.iter().flat_map(|seen| seen.proofs.iter().map(String::as_str)))
        .map(str::to_owned)
        .collect()
}

// proves: XDPOP-01, XDPOP-02
#[tokio::test]
async fn every_request_has_a_fresh_proof() {
    let world = World::new(|protect| protect.dpop(Dpop::Required)).await;
    let client = world.connect(world.login()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(client.call("list", ()).await.unwrap().text(), "none");
    }
    let authorized = world.authorized();
    assert!(authorized.len() >= 4 && authorized.iter().all(|seen| seen.status == 200), "{authorized:?}");
    let key = check_proofs(&authorized, &world.base);
    let requests = world.seen("/as/token");
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].proof().1, key, "the token is bound to the key of its request");
    for seen in authorized.iter().chain(&requests) {
        assert_eq!(seen.proof().0.get("nonce"), None, "no server sent a nonce");
    }
    assert_eq!(world.visits(), 1);
}

#[tokio::test]
async fn streams_and_the_end_of_a_session_have_proofs_too() {
    let world = World::new(|protect| protect.dpop(Dpop::Required).dpop_nonces()).await;
    let target = http(format!("{}/mcp", world.base)).login(world.login());
    let client = Client::builder().revisions([Revision::V2025_11_25]).connect(target).await.unwrap();
    assert_eq!(client.call("list", ()).await.unwrap().text(), "none");
    while !world.authorized().iter().any(|seen| seen.method == Method::GET && seen.status == 200) {
        tokio::task::yield_now().await;
    }
    client.close().await;
    let authorized = world.authorized();
    check_proofs(&authorized, &world.base);
    for method in [Method::POST, Method::GET, Method::DELETE] {
        let of = |seen: &&Seen| seen.method == method && seen.status < 300;
        assert!(authorized.iter().any(|seen| of(&seen)), "{method}: {authorized:?}");
    }
    assert_eq!(world.visits(), 1);
}

// proves: XDPOP-03
#[tokio::test]
async fn a_nonce_is_added_when_a_server_asks_for_it() {
    let world = World::new(|protect| protect.dpop(Dpop::Required).dpop_nonces()).await;
    world.state().token_nonce = true;
    let client = world.connect(world.login()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(client.call("list", ()).await.unwrap().text(), "none");
    }
    let authorized = world.authorized();
    check_proofs(&authorized, &world.base);
    let refused: Vec<&Seen> = authorized.iter().filter(|seen| seen.status == 401).collect();
    assert_eq!(refused.len(), 1, "one nonce is enough for all: {refused:?}");
    let nonces: Vec<Value> =
        world.seen("/as/token").iter().map(|seen| seen.proof().0["nonce"].clone()).collect();
    assert_eq!(nonces, [Value::Null, json!("as-nonce")]);
    assert_eq!(world.visits(), 1, "a missing nonce starts no login");
}

#[tokio::test]
async fn a_refresh_keeps_the_key() {
    let world = World::new(|protect| protect.dpop(Dpop::Required)).await;
    world.state().expires_in = 0;
    let store = MemoryStore::new();
    let client = world.connect(world.login().store(store.clone())).await.unwrap();
    assert_eq!(client.call("list", ()).await.unwrap().text(), "none");
    world.state().expires_in = 3600;
    client.call("list", ()).await.unwrap();
    // Another process finds the key in the store.
    let other = world.connect(Login::stored().store(store.clone())).await.unwrap();
    assert_eq!(other.call("list", ()).await.unwrap().text(), "none");
    let key = check_proofs(&world.authorized(), &world.base);
    let requests = world.seen("/as/token");
    assert!(requests.len() > 1 && requests.iter().all(|seen| seen.status == 200), "{requests:?}");
    assert!(requests[1].body.contains("grant_type=refresh_token"));
    assert!(requests.iter().all(|seen| seen.proof().1 == key), "the refresh token is bound to the key");
    assert_eq!(world.visits(), 1);
    let record =
        store.load(&StoreKey::new(&format!("{}/mcp", world.base), "").unwrap()).await.unwrap().unwrap();
    let tokens = record.tokens.unwrap();
    assert_eq!(tokens.scheme, Scheme::Dpop);
    let private = tokens.key.unwrap();
    for seen in &world.state().seen {
        let sent = format!("{} {:?} {:?}", seen.body, seen.authorization, seen.proofs);
        assert!(!sent.contains(private.expose()), "the private key was sent");
    }
    // A refresh that answers with an unbound token does not weaken the login.
    world.state().token_type = Some("Bearer");
    world.state().refuse_proofs = Some("invalid_token");
    let error = other.call("list", ()).await.unwrap_err();
    assert!(error.to_string().contains("not bound"), "{error}");
}

#[tokio::test]
async fn dpop_is_used_where_it_is_asked_for() {
    // Off, then offered beside `Bearer`, required by the metadata, and configured.
    for (mode, metadata, configured, is_bound) in [
        (None, false, false, false),
        (Some(Dpop::Allowed), false, false, true),
        (Some(Dpop::Allowed), true, false, true),
        (Some(Dpop::Allowed), false, true, true),
    ] {
        let world = World::new(|protect| mode.into_iter().fold(protect, Protect::dpop)).await;
        world.state().metadata_requires = metadata;
        let login = if configured { world.login().dpop() } else { world.login() };
        let target = http(format!("{}/mcp", world.base)).login(login);
        let client = Client::connect(target.clone()).await.unwrap();
        assert_eq!(client.call("list", ()).await.unwrap().text(), "none");
        assert_eq!(target.account().await.unwrap().unwrap().is_bound, is_bound);
        for seen in world.authorized() {
            assert_eq!(seen.proofs.len(), usize::from(is_bound), "{mode:?} {seen:?}");
        }
    }
    // An explicit login asks the server first.
    let world = World::new(|protect| protect.dpop(Dpop::Required)).await;
    let target = http(format!("{}/mcp", world.base)).login(world.login());
    assert!(target.log_in().await.unwrap().is_bound);
}

#[tokio::test]
async fn an_unbound_token_is_refused_where_dpop_is_required() {
    for (mode, metadata, configured) in
        [(Dpop::Required, false, false), (Dpop::Allowed, true, false), (Dpop::Allowed, false, true)]
    {
        let world = World::new(|protect| protect.dpop(mode)).await;
        world.state().metadata_requires = metadata;
        world.state().token_type = Some("Bearer");
        let login = if configured { world.login().dpop() } else { world.login() };
        let error = world.connect(login).await.unwrap_err();
        assert!(error.to_string().contains("is not bound to the key"), "{mode:?}: {error}");
        assert!(world.authorized().is_empty(), "the token is not sent");
    }
}

#[tokio::test]
async fn an_authorization_server_without_dpop_is_used_only_if_unbound_tokens_are_accepted() {
    for algorithms in [None, Some(vec!["RS256"])] {
        let world = World::new(|protect| protect.dpop(Dpop::Allowed)).await;
        world.state().algorithms.clone_from(&algorithms);
        let client = world.connect(world.login()).await.unwrap();
        assert_eq!(client.call("list", ()).await.unwrap().text(), "none");
        assert!(world.state().seen.iter().all(|seen| seen.proofs.is_empty()));
        let world = World::new(|protect| protect.dpop(Dpop::Required)).await;
        world.state().algorithms = algorithms;
        let error = world.connect(world.login()).await.unwrap_err();
        assert!(error.to_string().contains("does not list `ES256`"), "{error}");
        assert_eq!(world.visits(), 0, "it fails before the user is asked");
    }
}

#[tokio::test]
async fn a_bound_token_that_nobody_asked_for_is_refused() {
    let world = World::new(|protect| protect).await;
    world.state().token_type = Some("DPoP");
    let error = world.connect(world.login()).await.unwrap_err();
    assert!(error.to_string().contains("no key was sent"), "{error}");
}

#[tokio::test]
async fn a_stored_unbound_token_does_not_serve_a_login_with_dpop() {
    let world = World::new(|protect| protect.dpop(Dpop::Allowed)).await;
    world.state().algorithms = None;
    let store = MemoryStore::new();
    world.connect(world.login().store(store.clone())).await.unwrap();
    world.state().algorithms = Some(vec!["ES256"]);
    world.state().seen.clear();
    let client = world.connect(world.login().dpop().store(store)).await.unwrap();
    assert_eq!(client.call("list", ()).await.unwrap().text(), "none");
    check_proofs(&world.authorized(), &world.base);
    assert_eq!(world.visits(), 2);
}

#[tokio::test]
async fn v58_endless_demands_for_a_nonce_end_after_one_retry() {
    let world = World::new(|protect| protect.dpop(Dpop::Required)).await;
    let client = world.connect(world.login()).await.unwrap();
    for error in ["use_dpop_nonce", "invalid_dpop_proof"] {
        world.state().refuse_proofs = Some(error);
        world.state().seen.clear();
        let refused = client.call("list", ()).await.unwrap_err();
        let (text, attempts) = match error {
            "use_dpop_nonce" => ("refuses the DPoP nonce", 2),
            _ => ("check that the clock", 1),
        };
        assert!(refused.to_string().contains(text), "{refused}");
        assert_eq!(world.authorized().len(), attempts, "{error}");
        assert!(world.seen("/as/token").is_empty(), "another token would not help");
    }
    assert_eq!(world.visits(), 1);

    let world = World::new(|protect| protect.dpop(Dpop::Required)).await;
    world.state().endless_token_nonce = true;
    let error = world.connect(world.login()).await.unwrap_err();
    assert!(error.to_string().contains("refuses the DPoP nonce"), "{error}");
    assert_eq!((world.seen("/as/token").len(), world.visits()), (2, 1));
}

#[tokio::test]
async fn a_repeated_request_of_a_machine_has_a_new_assertion() {
    let world = World::new(|protect| protect.dpop(Dpop::Required)).await;
    world.state().token_nonce = true;
    let login = Login::machine_with_key("machine", SigningKey::generate_es256().unwrap());
    let client = world.connect(login).await.unwrap();
    assert_eq!(client.call("list", ()).await.unwrap().text(), "none");
    check_proofs(&world.authorized(), &world.base);
    let ids: HashSet<String> = world.state().assertions.iter().map(|assertion| id_of(assertion)).collect();
    assert_eq!(ids.len(), 2);
}

fn id_of(assertion: &str) -> String {
    let jws = Jws::parse(assertion).unwrap();
    let claims = Claims::parse(jws.unverified_payload()).unwrap();
    claims.text("jti").unwrap().unwrap().to_owned()
}
