//! The gateway as a resource server: access tokens, rules about them, what is audited, and who sees what.

use super::{Far, Folder, Headers, config, environment};
use bowline_auth::{dpop::Proof, jose::SigningKey, verify::token_digest};
use bowline_host::Gateway;
use bowline_http::{HttpOptions, HttpService};
use bowline_policy::{Audience, Consent};
use bowline_server::{Resource, Server, Tool};
use bowline_types::RpcError;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::SystemTime};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::oneshot,
};

const ISSUER: &str = "https://login.example.com";
const RESOURCE: &str = "https://mcp.example.com/mcp";
const METADATA: &str = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
/// The token of the gateway itself.
const GATE_TOKEN: &str = "s3cret-token";

/// An issuer: its key, and a folder with its key set.
struct Issuer {
    key: SigningKey,
    folder: Folder,
}

impl Issuer {
    fn new(name: &str) -> Self {
        let (key, folder) = (SigningKey::generate_es256().unwrap(), Folder::new(name));
        let mut jwk = key.public().to_jwk();
        jwk.insert("kid".into(), "k1".into());
        std::fs::write(folder.path().join("keys.json"), json!({ "keys": [jwk] }).to_string()).unwrap();
        Self { key, folder }
    }

    /// A section for the configuration, with further keys.
    fn section(&self, more: &str) -> String {
        let keys = self.folder.path().join("keys.json");
        format!(
            "[gateway.auth]\nissuer = \"{ISSUER}\"\nresource = \"{RESOURCE}\"\nscopes = [\"mcp\"]\njwks_file = {:?}\n{more}\n",
            keys.to_str().unwrap()
        )
    }

    /// A valid token. `null` removes a claim.
    fn token(&self, claims: &Value) -> String {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let mut all = json!({
            "iss": ISSUER, "aud": RESOURCE, "sub": "ada", "client_id": "app", "scope": "mcp", "iat": now, "exp": now + 600,
        });
        for (name, value) in claims.as_object().unwrap() {
            all[name] = value.clone();
        }
        all.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        self.key.sign(json!({ "typ": "at+jwt", "kid": "k1" }), all).unwrap()
    }

    fn of(&self, user: &str) -> String {
        self.token(&json!({ "sub": user }))
    }
}

fn build(text: &str) -> Gateway {
    let config = config(text);
    assert_eq!(config.errors, []);
    Gateway::builder(config).environment(environment()).build().unwrap()
}

struct Told {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Told {
    fn json(&self) -> Value {
        // A call that takes longer is answered with a stream, whose last event is the response.
        let text = self.text.lines().rev().find_map(|line| line.strip_prefix("data: "));
        serde_json::from_str(text.unwrap_or(&self.text)).unwrap_or_else(|_| panic!("{}", self.text))
    }

    fn result(&self) -> String {
        let json = self.json();
        json["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{json}")).to_owned()
    }
}

async fn send(endpoint: &HttpService, request: http::request::Builder, body: String) -> Told {
    let request = request.header("host", "localhost").body(Full::new(Bytes::from(body))).unwrap();
    let (parts, body) = endpoint.respond(request).await.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Told { status: parts.status, headers: parts.headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
}

fn post(token: Option<&str>) -> http::request::Builder {
    let request = Request::builder()
        .method(Method::POST)
        .uri("/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    match token {
        Some(token) => request.header("authorization", format!("Bearer {token}")),
        None => request,
    }
}

/// Sends a request of 2026-07-28.
async fn modern(endpoint: &HttpService, token: Option<&str>, method: &str, mut params: Value) -> Told {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
        "io.modelcontextprotocol/clientInfo": { "name": "editor", "version": "1" },
    });
    let mut request = post(token).header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
    if let Some(name) = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str) {
        request = request.header("mcp-name", name);
    }
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    send(endpoint, request, body.to_string()).await
}

async fn call(endpoint: &HttpService, token: Option<&str>, name: &str, arguments: Value) -> Told {
    modern(endpoint, token, "tools/call", json!({ "name": name, "arguments": arguments })).await
}

fn challenge(told: &Told) -> &str {
    told.headers["www-authenticate"].to_str().unwrap()
}

#[tokio::test]
async fn an_access_token_opens_the_gateway() {
    // proves: ATOK-10
    let (far, issuer) = (Far::start().await, Issuer::new("auth-open"));
    let gateway = build(&format!(
        "{}[[rules]]\neffect = \"allow\"\n[servers.far]\nurl = \"{}\"\n",
        issuer.section(""),
        far.url
    ));
    assert_eq!((gateway.has_token(), gateway.issuers()), (true, &[ISSUER.to_owned()][..]));
    let endpoint = gateway.http().unwrap();
    let told = call(&endpoint, None, "far__fast", json!({})).await;
    assert_eq!(told.status, 401);
    assert_eq!(challenge(&told), format!("Bearer resource_metadata=\"{METADATA}\", scope=\"mcp\""));
    let other_key = Issuer::new("auth-open-other");
    for token in [
        other_key.token(&json!({})),
        issuer.token(&json!({ "aud": "https://other.example.com/mcp" })),
        issuer.token(&json!({ "iss": "https://evil.example" })),
        issuer.token(&json!({ "exp": 1000 })),
        GATE_TOKEN.to_owned(),
    ] {
        let told = call(&endpoint, Some(&token), "far__fast", json!({})).await;
        assert_eq!(told.status, 401, "{token}");
        assert!(challenge(&told).contains("error=\"invalid_token\""), "{}", challenge(&told));
    }
    let told =
        call(&endpoint, Some(&issuer.token(&json!({ "scope": "other" }))), "far__fast", json!({})).await;
    assert_eq!(told.status, 403);
    assert!(challenge(&told).contains("error=\"insufficient_scope\""), "{}", challenge(&told));
    let told = call(&endpoint, Some(&issuer.of("ada")), "far__fast", json!({})).await;
    assert_eq!(told.result(), "fast is done");
    gateway.close().await;
}

#[tokio::test]
async fn the_metadata_is_public_and_metrics_are_not() {
    let issuer = Issuer::new("auth-pages");
    let gateway = build(&issuer.section(""));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let serving = {
        let gateway = gateway.clone();
        tokio::spawn(async move { gateway.serve_http(listener, async { drop(ended.await) }).await })
    };
    let poster = bowline_http::Poster::new();
    let page = async |path: &str, token: Option<&str>| {
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        let answer =
            poster.send(Method::GET, &format!("{origin}{path}"), headers, Bytes::new()).await.unwrap();
        (answer.status.as_u16(), String::from_utf8(answer.body.to_vec()).unwrap())
    };
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"] {
        let (status, text) = page(path, None).await;
        assert_eq!(status, 200, "{path}");
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            document,
            json!({ "resource": RESOURCE, "authorization_servers": [ISSUER], "scopes_supported": ["mcp"],
                "bearer_methods_supported": ["header"], "resource_name": "bowline" })
        );
    }
    assert_eq!(page("/healthz", None).await.0, 200);
    let lacking = issuer.token(&json!({ "scope": "other" }));
    for path in ["/metrics", "/elsewhere"] {
        assert_eq!(page(path, None).await.0, 401, "{path}");
        assert_eq!(page(path, Some("nonsense")).await.0, 401, "{path}");
        assert_eq!(page(path, Some(&lacking)).await.0, 403, "{path}");
    }
    let token = issuer.of("ada");
    assert_eq!(page("/elsewhere", Some(&token)).await.0, 404);
    let (status, metrics) = page("/metrics", Some(&token)).await;
    assert!(status == 200 && metrics.contains("bowline_sessions_active"), "{metrics}");
    drop(end);
    serving.await.unwrap().unwrap();
    gateway.close().await;
}

#[tokio::test]
async fn the_token_of_the_gateway_works_beside_access_tokens() {
    let (far, issuer) = (Far::start().await, Issuer::new("auth-both"));
    let gateway = build(&format!(
        "[gateway]\ntoken_env = \"GATE_TOKEN\"\n{}[[rules]]\neffect = \"deny\"\nprincipal = \"*\"\n\
         [[rules]]\neffect = \"allow\"\n[servers.far]\nurl = \"{}\"\n",
        issuer.section(""),
        far.url
    ));
    let endpoint = gateway.http().unwrap();
    // It has no scopes, needs none, and no rule about access tokens matches it.
    assert_eq!(call(&endpoint, Some(GATE_TOKEN), "far__fast", json!({})).await.result(), "fast is done");
    let refused = call(&endpoint, Some(&issuer.of("ada")), "far__fast", json!({})).await;
    assert!(refused.json()["result"]["isError"] == true, "{}", refused.text);
    let told = call(&endpoint, Some("s3cret-tokem"), "far__fast", json!({})).await;
    assert_eq!(told.status, 401);
    assert!(challenge(&told).contains(METADATA), "{}", challenge(&told));
    // What one of them opens does not exist for the other.
    let session = Session::open(&endpoint, GATE_TOKEN).await;
    assert_eq!(session.call(&endpoint, &issuer.of("ada"), "far__fast").await.status, 404);
    assert_eq!(session.call(&endpoint, GATE_TOKEN, "far__fast").await.result(), "fast is done");
    gateway.close().await;
}

#[tokio::test]
async fn a_gateway_with_access_tokens_serves_several_users() {
    let issuer = Issuer::new("auth-shared");
    let at = |text: &str, listen: &str| {
        let builder = Gateway::builder(config(text)).environment(environment());
        builder.serves(Some(listen.parse().unwrap())).build()
    };
    let alone = at("[gateway]\ntoken_env = \"GATE_TOKEN\"\n", "127.0.0.1:7337").unwrap();
    assert_eq!((alone.audience(), alone.consent()), (Audience::SingleUser, Consent::Client));
    let section = issuer.section("");
    let both = at(&format!("[gateway]\ntoken_env = \"GATE_TOKEN\"\n{section}"), "127.0.0.1:7337").unwrap();
    assert_eq!((both.audience(), both.consent()), (Audience::Shared, Consent::Ask));
    // Other machines may connect, and no token of the gateway is needed.
    let public = format!("[gateway]\nlisten = \"0.0.0.0:7337\"\nallowed_hosts = [\"*\"]\n{section}");
    let public = at(&public, "0.0.0.0:7337").unwrap();
    assert_eq!(public.problems(), []);
    assert!(public.http().is_ok());
    // Over standard streams there are no access tokens.
    let stdio = Gateway::builder(config(&section)).environment(environment()).serves(None).build().unwrap();
    assert_eq!(stdio.audience(), Audience::SingleUser);
}

#[tokio::test]
async fn mistakes_in_the_protection_prevent_the_start() {
    let build = |text: &str, listen: &str| {
        let builder = Gateway::builder(config(text)).environment(environment());
        builder.serves(Some(listen.parse().unwrap())).build().map(|gateway| gateway.problems())
    };
    let by = |more: &str| format!("[gateway.auth]\nissuer = \"{ISSUER}\"\n{more}\n");
    assert_eq!(
        build(&by(""), "0.0.0.0:7337").unwrap_err().to_string(),
        "gateway.auth: the public URL of the gateway is unknown; set `resource` (only a loopback address works without)"
    );
    assert_eq!(build(&by(""), "127.0.0.1:7337").unwrap(), []);
    let cycle = by("implies = { a = [\"b\"], b = [\"a\"] }");
    assert!(
        build(&cycle, "127.0.0.1:7337").unwrap_err().to_string().starts_with("gateway.auth: cannot protect")
    );
    let offline = by("scopes = [\"offline_access\"]");
    assert!(build(&offline, "127.0.0.1:7337").unwrap_err().to_string().contains("offline_access"));
    // A user is known by name and issuer. A rule with the name alone would allow a user of each issuer.
    let stdio = Gateway::builder(config(&by(""))).environment(environment()).serves(None).build().unwrap();
    let error = stdio.http().unwrap_err().to_string();
    assert!(error.contains("built for stdio only"), "{error}");
    let rules = "[[rules]]\neffect = \"allow\"\nprincipal = \"ada\"\n\
        [[rules]]\neffect = \"deny\"\nprincipal = \"ada\"\n\
        [[rules]]\neffect = \"allow\"\nprincipal = \"ada\"\nissuer = \"https://a.example\"\n";
    let two = format!("[gateway.auth]\nissuer = [\"https://a.example\", \"https://b.example\"]\n{rules}");
    let problems: Vec<String> =
        build(&two, "127.0.0.1:7337").unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        ["rules: bowline.toml:3: the rule allows the user `ada` of every issuer; add `issuer`"]
    );
    assert_eq!(build(&format!("{}{rules}", by("")), "127.0.0.1:7337").unwrap(), []);
    // Errors of the file prevent it too.
    assert!(build("[gateway.auth]\nissuer = \"login\"\n", "127.0.0.1:7337").is_err());
    let problems = build(&by("jwks_file = \"/not/there.json\""), "127.0.0.1:7337").unwrap();
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].message.starts_with("gateway.auth.jwks_file: cannot read `/not/there.json`"),
        "{problems:?}"
    );
}

#[tokio::test]
async fn a_gateway_can_require_tokens_that_are_bound_to_a_key() {
    let (far, issuer, key) =
        (Far::start().await, Issuer::new("auth-dpop"), SigningKey::generate_es256().unwrap());
    let servers = format!("[[rules]]\neffect = \"allow\"\n[servers.far]\nurl = \"{}\"\n", far.url);
    let gateway = build(&format!("{}{servers}", issuer.section("dpop = \"required\"\ndpop_nonces = true")));
    let endpoint = gateway.http().unwrap();
    let metadata = Request::builder().uri("/.well-known/oauth-protected-resource/mcp");
    let metadata = send(&endpoint, metadata, String::new()).await.json();
    assert_eq!(metadata["dpop_bound_access_tokens_required"], true);
    let told = call(&endpoint, Some(&issuer.token(&json!({}))), "far__fast", json!({})).await;
    assert_eq!(told.status, 401);
    assert!(challenge(&told).starts_with("DPoP "), "{}", challenge(&told));

    let thumbprint = key.public().thumbprint();
    let bound = issuer.token(&json!({ "cnf": { "jkt": thumbprint } }));
    let send_bound = async |nonce: Option<&str>, unique: u8| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let proof = Proof::new("POST", RESOURCE).token(&bound).nonce(nonce);
        let proof = proof.sign(&key, now, &[unique; 16]).unwrap();
        let params = json!({ "name": "far__fast", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "editor", "version": "1" } } });
        let request = post(None)
            .header("authorization", format!("DPoP {bound}"))
            .header("dpop", proof)
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "far__fast");
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        send(&endpoint, request, body.to_string()).await
    };
    let told = send_bound(None, 1).await;
    assert_eq!(told.status, 401);
    assert!(challenge(&told).contains("use_dpop_nonce"), "{}", challenge(&told));
    let nonce = told.headers["dpop-nonce"].to_str().unwrap().to_owned();
    assert_eq!(send_bound(Some(&nonce), 2).await.result(), "fast is done");
    gateway.close().await;

    // Without the setting, a token that is bound to a key is refused.
    let gateway = build(&format!("{}{servers}", issuer.section("")));
    assert_eq!(call(&gateway.http().unwrap(), Some(&bound), "far__fast", json!({})).await.status, 401);
    gateway.close().await;
    let section = issuer.section("dpop_nonces = true");
    let built = Gateway::builder(config(&section)).environment(environment()).build().unwrap();
    let problems: Vec<String> = built.problems().iter().map(ToString::to_string).collect();
    assert!(problems.iter().any(|problem| problem.contains("no effect without `dpop`")), "{problems:?}");
}

/// Answers introspection requests: the token `opaque` is active. Returns its URL and what it was sent.
async fn introspection() -> (String, Arc<std::sync::Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let sent = Arc::new(std::sync::Mutex::new(String::new()));
    let seen = Arc::clone(&sent);
    let issuer = url.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut request, mut buffer) = (String::new(), [0; 4096]);
            while !request.contains("token=") {
                let count = stream.read(&mut buffer).await.unwrap_or(0);
                if count == 0 {
                    break;
                }
                request.push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
            let answer = if request.contains("token=opaque") {
                json!({ "active": true, "iss": issuer, "aud": RESOURCE, "sub": "ada", "client_id": "app",
                        "scope": "mcp", "token_type": "Bearer" })
            } else {
                json!({ "active": false })
            };
            seen.lock().unwrap().push_str(&request);
            let answer = answer.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                answer.len()
            );
            let _ = stream.write_all(format!("{head}{answer}").as_bytes()).await;
        }
    });
    (url, sent)
}

#[tokio::test]
async fn a_gateway_can_ask_the_issuer_about_tokens() {
    let (far, (issuer, sent)) = (Far::start().await, introspection().await);
    let text = format!(
        "[gateway.auth]\nissuer = \"{issuer}\"\nresource = \"{RESOURCE}\"\nscopes = [\"mcp\"]\n\
         [gateway.auth.introspection]\nurl = \"{issuer}/introspect\"\nclient_id = \"gateway\"\n\
         client_secret_env = \"GATE_TOKEN\"\n[[rules]]\neffect = \"allow\"\n[servers.far]\nurl = \"{}\"\n",
        far.url
    );
    let gateway = build(&text);
    let endpoint = gateway.http().unwrap();
    assert_eq!(call(&endpoint, Some("opaque"), "far__fast", json!({})).await.result(), "fast is done");
    assert_eq!(call(&endpoint, Some("other"), "far__fast", json!({})).await.status, 401);
    // The gateway says who asks: `gateway:s3cret-token`.
    assert!(sent.lock().unwrap().contains("Basic Z2F0ZXdheTpzM2NyZXQtdG9rZW4="), "{}", sent.lock().unwrap());
    gateway.close().await;

    let missing = text.replace("GATE_TOKEN", "NOT_THERE");
    let error = Gateway::builder(config(&missing)).environment(environment()).build().unwrap_err();
    assert!(error.to_string().contains("`NOT_THERE` is not set"), "{error}");
    for (setting, expected) in [
        ("max_age = \"6m\"", "at most 5m"),
        ("secret = \"x\"", "secret"),
        ("url = \"http://login.example.com\"", "https"),
    ] {
        let table = format!("url = \"{issuer}/introspect\"\n");
        let wrong = match setting.split_once(" = ") {
            Some(("url", _)) => text.replace(&table, &format!("{setting}\n")),
            _ => text.replace(&table, &format!("{table}{setting}\n")),
        };
        let errors: Vec<String> = config(&wrong).errors.iter().map(ToString::to_string).collect();
        assert!(errors.iter().any(|error| error.contains(expected)), "{setting}: {errors:?}");
    }
    let both = text.replace("scopes = [\"mcp\"]", "scopes = [\"mcp\"]\njwks_file = \"keys.json\"");
    let errors: Vec<String> = config(&both).errors.iter().map(ToString::to_string).collect();
    assert!(errors.iter().any(|error| error.contains("introspection conflicts with keys")), "{errors:?}");
}

#[tokio::test]
async fn a_gateway_can_issue_tokens_itself_for_development() {
    let far = Far::start().await;
    let text = format!("[[rules]]\neffect = \"allow\"\n[servers.far]\nurl = \"{}\"\n", far.url);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let builder = || Gateway::builder(config(&text)).environment(environment()).dev_auth(["notes:read"]);
    let gateway = builder().serves(Some(address)).build().unwrap();
    assert_eq!((gateway.audience(), gateway.has_token()), (Audience::Shared, true));
    let (end, ended) = oneshot::channel::<()>();
    let serving = gateway.clone();
    let served = tokio::spawn(async move { serving.serve_http(listener, async { drop(ended.await) }).await });
    let url = format!("http://{address}/mcp");
    let login = bowline_http::auth::Login::with(|visit| async move {
        bowline_testing::issuer::allow(visit.url(), "ada").await
    });
    let client = bowline_client::Client::connect(bowline_http::http(&url).login(login)).await.unwrap();
    assert_eq!(client.call("far__fast", json!({})).await.unwrap().text(), "fast is done");
    let error = bowline_client::Client::connect(bowline_http::http(&url)).await.unwrap_err();
    assert!(error.to_string().contains("an access token is required"), "{error}");
    drop(client);
    drop(end);
    served.await.unwrap().unwrap();
    let error = builder().serves(Some("0.0.0.0:7337".parse().unwrap())).build().unwrap_err().to_string();
    assert!(error.contains("loopback"), "{error}");
    gateway.close().await;
}

#[tokio::test]
async fn rules_decide_by_scope_and_claim() {
    let (far, issuer) = (Far::start().await, Issuer::new("auth-rules"));
    let gateway = build(&format!(
        "{}\n[[rules]]\neffect = \"deny\"\nclaims = {{ suspended = \"true\" }}\n\
         [[rules]]\neffect = \"allow\"\ntool = \"fast\"\nscopes = [\"far:call\"]\n\
         [[rules]]\neffect = \"allow\"\ntool = \"fast\"\nclaims = {{ groups = \"ops\" }}\n\
         [[rules]]\neffect = \"allow\"\ntool = \"trace\"\nissuer = \"{ISSUER}\"\nclient = \"ci-*\"\nprincipal = \"robot\"\n\
         [[rules]]\neffect = \"deny\"\n[servers.far]\nurl = \"{}\"\n",
        issuer.section("implies = { admin = [\"far:call\"] }"),
        far.url
    ));
    let endpoint = gateway.http().unwrap();
    let check = async |claims: Value, tool: &str, expected: bool| {
        let told = call(&endpoint, Some(&issuer.token(&claims)), tool, json!({})).await;
        assert_eq!(told.json()["result"]["isError"] != true, expected, "{claims} {tool} {}", told.text);
    };
    check(json!({}), "far__fast", false).await;
    check(json!({ "scope": "mcp far:call" }), "far__fast", true).await;
    check(json!({ "scope": "mcp admin" }), "far__fast", true).await;
    check(json!({ "groups": ["staff", "ops"] }), "far__fast", true).await;
    check(json!({ "groups": "ops" }), "far__fast", true).await;
    check(json!({ "groups": ["staff"] }), "far__fast", false).await;
    check(json!({ "groups": ["ops"], "suspended": true }), "far__fast", false).await;
    check(json!({ "sub": "robot", "client_id": "ci-7" }), "far__trace", true).await;
    check(json!({ "sub": "robot", "client_id": "app" }), "far__trace", false).await;
    check(json!({ "sub": "ada", "client_id": "ci-7" }), "far__trace", false).await;
    gateway.close().await;
}

#[tokio::test]
async fn v62_a_server_does_not_choose_the_scopes_that_callers_ask_for() {
    // V-62
    let issuer = Issuer::new("auth-upstream-scopes");
    let gateway = build(&format!("{}[[rules]]\neffect = \"allow\"\n", issuer.section("")));
    let greedy = Tool::new("greedy").handler(|| -> Result<String, bowline_server::Error> {
        Err(bowline_server::Error::rpc(RpcError::insufficient_scope(["admin"])))
    });
    gateway.host().add("here", Server::new("here").tool(greedy).build().unwrap());
    let endpoint = gateway.http().unwrap();
    let told = call(&endpoint, Some(&issuer.of("ada")), "here__greedy", json!({})).await;
    assert_ne!(told.status, 403, "{}", told.text);
    assert!(!told.headers.contains_key("www-authenticate"), "{:?}", told.headers);
    assert!(told.text.contains("the server `here`"), "{}", told.text);
    gateway.close().await;
}

#[tokio::test]
async fn v60_no_token_of_a_caller_reaches_a_server() {
    // proves: ATOK-10, ATOK-11
    // V-60
    let seen = Headers::default();
    let bodies = Arc::new(std::sync::Mutex::new(String::new()));
    let echo = {
        let bodies = Arc::clone(&bodies);
        Tool::new("meta").handler(move |ctx: bowline_server::Ctx| {
            let text = format!("{:?} {:?}", ctx.meta(), ctx.headers());
            bodies.lock().unwrap().push_str(&text);
            "seen"
        })
    };
    let far = Far::served(Server::new("far").tool(echo), HttpOptions::new().filter(seen.clone())).await;
    let issuer = Issuer::new("auth-passthrough");
    let folder = issuer.folder.path();
    std::fs::write(folder.join("server.sh"), include_str!("../lifecycle/server.sh")).unwrap();
    let gateway = build(&format!(
        "[gateway]\ntoken_env = \"GATE_TOKEN\"\n{}[[rules]]\neffect = \"allow\"\n[servers.far]\nurl = \"{}\"\n\
         [servers.near]\ncommand = \"sh\"\nargs = [\"server.sh\"]\ncwd = {:?}\nenv = {{ LABEL = \"near\" }}\n",
        issuer.section(""),
        far.url,
        folder.to_str().unwrap()
    ));
    let endpoint = gateway.http().unwrap();
    let token = issuer.of("ada");
    for sent in [token.as_str(), GATE_TOKEN] {
        for tool in ["far__meta", "far__fast", "near__id"] {
            let told = call(&endpoint, Some(sent), tool, json!({})).await;
            assert_eq!(told.status, 200, "{tool} {}", told.text);
            assert!(told.json()["result"]["isError"] != true, "{tool} {}", told.text);
        }
        let session = Session::open(&endpoint, sent).await;
        assert_eq!(session.call(&endpoint, sent, "far__meta").await.result(), "seen");
        assert_eq!(session.call(&endpoint, sent, "near__id").await.status, 200);
    }
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let (frames, variables, headers, meta) =
        (read("frames"), read("env"), seen.all(), bodies.lock().unwrap().clone());
    assert!(frames.contains("tools/call") && variables.contains("LABEL=near"), "{frames} {variables}");
    assert!(headers.contains("mcp-method") && meta.contains("protocolVersion"), "{headers} {meta}");
    let signature = token.rsplit('.').next().unwrap();
    for text in [&frames, &variables, &headers, &meta] {
        for secret in [signature, GATE_TOKEN, "authorization", &token_digest(&token)[7..]] {
            assert!(!text.to_lowercase().contains(&secret.to_lowercase()), "{secret} in {text}");
        }
    }
    gateway.close().await;
}

/// A session of a legacy revision.
struct Session {
    id: String,
}

impl Session {
    async fn open(endpoint: &HttpService, token: &str) -> Self {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
        } });
        let told = send(endpoint, post(Some(token)), hello.to_string()).await;
        let id = told.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let session = Self { id };
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let told = send(endpoint, session.within(post(Some(token))), initialized.to_string()).await;
        assert_eq!(told.status, 202);
        session
    }

    fn within(&self, request: http::request::Builder) -> http::request::Builder {
        request.header("mcp-session-id", &self.id).header("mcp-protocol-version", "2025-11-25")
    }

    async fn call(&self, endpoint: &HttpService, token: &str, tool: &str) -> Told {
        self.request(endpoint, token, "tools/call", json!({ "name": tool, "arguments": {} })).await
    }

    async fn request(&self, endpoint: &HttpService, token: &str, method: &str, params: Value) -> Told {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        send(endpoint, self.within(post(Some(token))), body.to_string()).await
    }
}

#[tokio::test]
async fn v30_what_one_user_opened_does_not_exist_for_another() {
    // proves: SEC-23, SEC-25, SEC-26, SEC-27
    // V-30
    let (far, issuer) = (Far::start().await, Issuer::new("auth-mix"));
    let gateway = build(&format!(
        "{}[[rules]]\neffect = \"allow\"\ntool = \"fast\"\n[servers.far]\nurl = \"{}\"\n",
        issuer.section(""),
        far.url
    ));
    let endpoint = gateway.http().unwrap();
    let ada = issuer.of("ada");
    // Another user, and the same user with another client.
    let thieves = [issuer.of("bob"), issuer.token(&json!({ "client_id": "other" }))];
    let session = Session::open(&endpoint, &ada).await;
    for thief in &thieves {
        assert_eq!(session.call(&endpoint, thief, "far__fast").await.status, 404);
        for last_event in [None, Some("0-0"), Some("1")] {
            let mut request = Request::builder().method(Method::GET).uri("/mcp");
            request = request.header("accept", "text/event-stream");
            request = request.header("authorization", format!("Bearer {thief}"));
            if let Some(id) = last_event {
                request = request.header("last-event-id", id);
            }
            assert_eq!(send(&endpoint, session.within(request), String::new()).await.status, 404);
        }
        let end = Request::builder().method(Method::DELETE).uri("/mcp");
        let end = end.header("authorization", format!("Bearer {thief}"));
        assert_eq!(send(&endpoint, session.within(end), String::new()).await.status, 404);
    }
    assert_eq!(session.call(&endpoint, &ada, "far__fast").await.result(), "fast is done");
    // A new token of the same user and client continues.
    let again = issuer.token(&json!({ "scope": "mcp more" }));
    assert_eq!(session.call(&endpoint, &again, "far__fast").await.result(), "fast is done");

    // The state of a call that waits for an answer.
    let asked = call(&endpoint, Some(&ada), "far__trace", json!({})).await.json();
    let state = asked["result"]["requestState"].clone();
    assert!(state.is_string(), "{asked}");
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let retry = json!({
        "name": "far__trace", "arguments": {}, "requestState": state,
        "inputResponses": { key: { "action": "accept", "content": {} } },
    });
    for thief in &thieves {
        let told = modern(&endpoint, Some(thief), "tools/call", retry.clone()).await;
        assert_eq!(told.json()["error"]["code"], -32602, "{}", told.text);
    }
    let told = modern(&endpoint, Some(&ada), "tools/call", retry).await;
    assert_eq!(told.result(), "none", "{}", told.text);

    // Lists of the gateway have one page, so a cursor is unknown, whoever sends it.
    for token in thieves.iter().chain([&ada]) {
        let told = modern(&endpoint, Some(token), "tools/list", json!({ "cursor": "x" })).await;
        assert_eq!(told.json()["error"]["code"], -32602, "{}", told.text);
    }
    gateway.close().await;
}

#[tokio::test]
async fn answers_are_remembered_for_one_user() {
    let (far, issuer) = (Far::start().await, Issuer::new("auth-answers"));
    let gateway = build(&format!("{}[servers.far]\nurl = \"{}\"\n", issuer.section(""), far.url));
    let endpoint = gateway.http().unwrap();
    let asks = async |token: &str| {
        let told = call(&endpoint, Some(token), "far__fast", json!({})).await.json();
        (told["result"]["resultType"] == "input_required").then_some(told)
    };
    let (ada, bob) = (issuer.of("ada"), issuer.of("bob"));
    let asked = asks(&ada).await.unwrap();
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let answer = json!({
        "name": "far__fast", "arguments": {}, "requestState": asked["result"]["requestState"],
        "inputResponses": { key: { "action": "accept", "content": { "remember": "run" } } },
    });
    let told = modern(&endpoint, Some(&ada), "tools/call", answer).await;
    assert_eq!(told.result(), "fast is done");
    assert!(asks(&ada).await.is_none());
    assert!(asks(&bob).await.is_some());
    gateway.close().await;
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    user: String,
    number: u32,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v36_ten_thousand_interleaved_calls_keep_their_users_apart() {
    // proves: SEC-43
    // V-36
    const CALLS: u32 = 10_000;
    const USERS: [&str; 4] = ["ada", "bob", "cleo", "dan"];
    let echo = || Tool::new("echo").handler(|Echo { user, number }: Echo| format!("{user} {number}"));
    let far = Far::with(Server::new("far").tool(echo())).await;
    let issuer = Issuer::new("auth-interleaved");
    // Each user may name only herself or himself.
    let rule = |user: &&str| {
        format!(
            "[[rules]]\neffect = \"allow\"\nprincipal = \"{user}\"\narguments = {{ user = \"{user}\" }}\n"
        )
    };
    let rules = USERS.iter().map(rule).collect::<Vec<_>>().concat();
    let gateway = build(&format!(
        "{}{rules}[[rules]]\neffect = \"deny\"\n[servers.far]\nurl = \"{}\"\n",
        issuer.section(""),
        far.url
    ));
    gateway.host().add("here", Server::new("here").tool(echo()).build().unwrap());
    let endpoint = gateway.http().unwrap();
    let mut callers = tokio::task::JoinSet::new();
    let lanes = 16;
    for lane in 0..lanes {
        let (endpoint, tokens) = (endpoint.clone(), USERS.map(|user| issuer.of(user)));
        callers.spawn(async move {
            for number in (0..CALLS).filter(|number| number % lanes == lane) {
                let (by, named) = (number as usize % 4, (number as usize / 4) % 4);
                // One upstream is shared over HTTP, the other in this process; few calls of the slower one suffice.
                let tool = if number % 10 == 0 { "far__echo" } else { "here__echo" };
                let arguments = json!({ "user": USERS[named], "number": number });
                let told = call(&endpoint, Some(&tokens[by]), tool, arguments).await;
                let json = told.json();
                let text = json["result"]["content"][0]["text"].as_str().unwrap_or_default();
                if by == named {
                    assert_eq!(text, format!("{} {number}", USERS[by]), "{json}");
                } else {
                    assert_eq!(json["result"]["isError"], true, "{json}");
                }
            }
        });
    }
    while let Some(done) = callers.join_next().await {
        done.unwrap();
    }
    gateway.close().await;
}

#[tokio::test]
async fn the_audit_log_says_whose_token_was_used() {
    // V-57
    let (far, issuer) = (Far::start().await, Issuer::new("auth-audit"));
    let path = issuer.folder.path().join("audit.jsonl");
    let gateway = build(&format!(
        "[audit]\nfile = {:?}\n{}[[rules]]\neffect = \"allow\"\ntool = \"fast\"\n[servers.far]\nurl = \"{}\"\n",
        path.to_str().unwrap(),
        issuer.section(""),
        far.url
    ));
    let endpoint = gateway.http().unwrap();
    let token = issuer.token(&json!({ "scope": "mcp far:call" }));
    assert_eq!(call(&endpoint, Some(&token), "far__fast", json!({})).await.result(), "fast is done");
    let lacking = issuer.token(&json!({ "sub": "bob", "scope": "other" }));
    assert_eq!(call(&endpoint, Some(&lacking), "far__fast", json!({})).await.status, 403);
    assert_eq!(call(&endpoint, Some("canary.of.a-token"), "far__fast", json!({})).await.status, 401);
    for _ in 0..200 {
        assert_eq!(call(&endpoint, None, "far__fast", json!({})).await.status, 401);
    }
    gateway.host().guard().audit().unwrap().flush();
    let log = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    for event in ["decision", "call"] {
        let [line] = of(event)[..] else { panic!("{log}") };
        assert_eq!(
            json!([
                line["client"],
                line["principal"],
                line["issuer"],
                line["clientId"],
                line["scopes"],
                line["tokenDigest"]
            ]),
            json!(["editor", "ada", ISSUER, "app", "mcp far:call", token_digest(&token)])
        );
    }
    let refusals = of("refusal");
    let by_reason = |start: &str| {
        refusals.iter().filter(|line| line["reason"].as_str().unwrap().starts_with(start)).collect::<Vec<_>>()
    };
    let [scope] = by_reason("insufficient_scope")[..] else { panic!("{log}") };
    assert_eq!(
        json!([scope["principal"], scope["scopes"], scope["tokenDigest"], scope["decision"]]),
        json!(["bob", "other", token_digest(&lacking), "deny"])
    );
    assert!(scope["reason"].as_str().unwrap().ends_with("required: mcp"), "{scope}");
    let [invalid] = by_reason("invalid_token")[..] else { panic!("{log}") };
    assert_eq!(invalid["tokenDigest"], token_digest("canary.of.a-token"));
    // A flood of requests without a token does not fill the log.
    let missing = by_reason("missing_token").len();
    assert!((50..=60).contains(&missing), "{missing}");
    for secret in [token.as_str(), lacking.as_str(), "canary"] {
        assert!(!log.contains(secret), "{log}");
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_subscription_is_refused_where_a_rule_may_deny_its_caller() {
    let server = Server::new("far").resource(Resource::new("notes://all", "all").text("none"));
    let (far, issuer) = (Far::with(server).await, Issuer::new("auth-subscribe"));
    let gateway = build(&format!(
        "{}[[rules]]\neffect = \"deny\"\naction = \"read\"\ntool = \"notes://all\"\nclaims = {{ groups = \"guests\" }}\n\
         [servers.far]\nurl = \"{}\"\nstart = \"eager\"\n",
        issuer.section(""),
        far.url
    ));
    let endpoint = gateway.http().unwrap();
    let (ada, guest) = (issuer.of("ada"), issuer.token(&json!({ "groups": ["guests"] })));
    let read = async |token: &str| {
        let told = modern(&endpoint, Some(token), "resources/read", json!({ "uri": "notes://all" })).await;
        told.json()["result"]["contents"][0]["text"].clone()
    };
    assert_eq!(read(&ada).await, "none");
    assert_eq!(read(&guest).await, Value::Null);
    // The claims are not known when a client subscribes, so the rule holds for everybody.
    let session = Session::open(&endpoint, &guest).await;
    let told =
        session.request(&endpoint, &guest, "resources/subscribe", json!({ "uri": "notes://all" })).await;
    assert!(told.text.contains("error"), "{}", told.text);
    gateway.close().await;
}

/// A page of the book.
fn page(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../docs/{name}.md", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The TOML blocks of a page.
fn blocks(name: &str) -> Vec<String> {
    let page = page(name);
    let blocks = page.split("```toml\n").skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// The TOML blocks of the page about gateways for teams.
fn team_page() -> Vec<String> {
    blocks("team")
}

/// Replaces variables, which a test does not have.
fn without_variables(text: &str) -> String {
    let mut parts = text.split("${");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "value" + part.split_once('}').expect("a variable ends").1)
}

#[tokio::test]
async fn the_configuration_of_the_pages_about_logins_works() {
    for (name, count) in [("login", 3), ("identity-providers", 8)] {
        let blocks = blocks(name);
        assert!(blocks.len() >= count, "{name} has {} blocks", blocks.len());
        for block in blocks {
            let config = config(&without_variables(&block));
            assert_eq!(config.errors, [], "{block}");
            let warnings: Vec<String> = config.notices.iter().map(|notice| format!("{notice:?}")).collect();
            assert_eq!(warnings, Vec::<String>::new(), "{block}");
            let folder = super::Folder::new("auth-pages");
            let mut builder = Gateway::builder(config).folder(folder.path());
            if !block.contains("[gateway.auth]") {
                // The gateway of one user.
                builder = builder.serves(None);
            }
            let gateway = builder.build().unwrap();
            let problems: Vec<String> = gateway.problems().iter().map(ToString::to_string).collect();
            assert_eq!(problems, Vec::<String>::new(), "{block}");
            gateway.close().await;
        }
    }
}

#[test]
fn the_pages_about_logins_list_every_exception() {
    for name in ["login", "identity-providers"] {
        let page = page(name);
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let names: Vec<&str> =
            bowline_http::auth::Lenient::ALL.iter().map(|lenient| lenient.as_str()).collect();
        let listed: Vec<&str> = rows.filter(|row| names.contains(row)).collect();
        assert_eq!(listed, names, "{name}");
    }
}

#[tokio::test]
async fn the_configuration_of_the_team_page_works() {
    let blocks = team_page();
    assert!(blocks.len() >= 4);
    for block in &blocks {
        assert_eq!(config(block).errors, [], "{block}");
    }
    let answer = |name: &'static str| Tool::new(name).handler(move || name);
    let notes = Far::with(Server::new("notes").tool(answer("read_file")).tool(answer("write_file"))).await;
    let sql = Tool::new("query").handler(|Query { sql }: Query| sql);
    let database = Far::with(Server::new("database").tool(sql)).await;
    let issuer = Issuer::new("auth-team");
    let (keys, log) = (issuer.folder.path().join("keys.json"), issuer.folder.path().join("audit.jsonl"));
    // The servers, the keys and the log of this test take the place of those of the page.
    let mut text = blocks.last().unwrap().clone();
    for (written, here) in [
        ("command = \"bowline\"\nargs = [\"serve\", \"files\"", format!("url = \"{}\"\n#", notes.url)),
        ("command = \"bowline\"\nargs = [\"serve\", \"database\"", format!("url = \"{}\"\n#", database.url)),
        ("scopes = [\"mcp\"]", format!("scopes = [\"mcp\"]\njwks_file = {:?}", keys.to_str().unwrap())),
        ("\"/var/log/bowline/audit.jsonl\"", format!("{:?}", log.to_str().unwrap())),
    ] {
        assert!(text.contains(written), "{written}");
        text = text.replacen(written, &here, 1);
    }
    let gateway = build(&text);
    assert_eq!(gateway.problems(), []);
    let request = |uri: &str| post(None).uri(uri.to_owned());
    let endpoint = gateway.http().unwrap();
    let check = async |claims: Value, tool: &str, arguments: Value, expected: &str| {
        let token = issuer.token(&claims);
        let told = {
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
                "name": tool, "arguments": arguments, "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {} } } });
            let request = request("http://mcp.example.com/mcp")
                .header("authorization", format!("Bearer {token}"))
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", tool)
                .header("host", "mcp.example.com");
            let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
            let body = endpoint.respond(request).await.into_body().collect().await.unwrap().to_bytes();
            serde_json::from_slice::<Value>(&body).unwrap()
        };
        let text = told["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{told}"));
        assert!(text.contains(expected), "{claims} {tool}: {told}");
    };
    let reader = || json!({ "scope": "mcp notes:read" });
    check(reader(), "notes__read_file", json!({}), "read_file").await;
    check(reader(), "notes__write_file", json!({}), "Log in with the scope `notes:write`.").await;
    let writer = || json!({ "scope": "mcp notes:write" });
    check(writer(), "notes__write_file", json!({}), "write_file").await;
    check(writer(), "notes__read_file", json!({}), "read_file").await;
    check(writer(), "database__query", json!({ "sql": "select 1" }), "Ask for the group").await;
    let operator = || json!({ "groups": ["operators"] });
    check(operator(), "database__query", json!({ "sql": "select 1" }), "select 1").await;
    let salaries = json!({ "sql": "select * from salaries" });
    check(operator(), "database__query", salaries, "Do not query salaries.").await;
    gateway.host().guard().audit().unwrap().flush();
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(log.lines().filter(|line| line.contains(r#""event":"decision""#)).count(), 7, "{log}");
    assert!(log.lines().all(|line| line.contains(r#""principal":"ada""#)), "{log}");
    gateway.close().await;
}

#[derive(Deserialize, JsonSchema)]
struct Query {
    sql: String,
}
