//! The gateway as a resource server: access tokens, rules about them, what is audited, and who sees what.

mod book_pages;
mod users;

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

struct EndpointReply {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl EndpointReply {
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

async fn send(endpoint: &HttpService, request: http::request::Builder, body: String) -> EndpointReply {
    let request = request.header("host", "localhost").body(Full::new(Bytes::from(body))).unwrap();
    let (parts, body) = endpoint.respond(request).await.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    EndpointReply {
        status: parts.status,
        headers: parts.headers,
        text: String::from_utf8(bytes.to_vec()).unwrap(),
    }
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
async fn modern(
    endpoint: &HttpService,
    token: Option<&str>,
    method: &str,
    mut params: Value,
) -> EndpointReply {
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

async fn call(endpoint: &HttpService, token: Option<&str>, name: &str, arguments: Value) -> EndpointReply {
    modern(endpoint, token, "tools/call", json!({ "name": name, "arguments": arguments })).await
}

fn challenge(reply: &EndpointReply) -> &str {
    reply.headers["www-authenticate"].to_str().unwrap()
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
        let reply = send(endpoint, post(Some(token)), hello.to_string()).await;
        let id = reply.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let session = Self { id };
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let reply = send(endpoint, session.within(post(Some(token))), initialized.to_string()).await;
        assert_eq!(reply.status, 202);
        session
    }

    fn within(&self, request: http::request::Builder) -> http::request::Builder {
        request.header("mcp-session-id", &self.id).header("mcp-protocol-version", "2025-11-25")
    }

    async fn call(&self, endpoint: &HttpService, token: &str, tool: &str) -> EndpointReply {
        self.request(endpoint, token, "tools/call", json!({ "name": tool, "arguments": {} })).await
    }

    async fn request(
        &self,
        endpoint: &HttpService,
        token: &str,
        method: &str,
        params: Value,
    ) -> EndpointReply {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        send(endpoint, self.within(post(Some(token))), body.to_string()).await
    }
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
    let reply = call(&endpoint, None, "far__fast", json!({})).await;
    assert_eq!(reply.status, 401);
    assert_eq!(challenge(&reply), format!("Bearer resource_metadata=\"{METADATA}\", scope=\"mcp\""));
    let other_key = Issuer::new("auth-open-other");
    for token in [
        other_key.token(&json!({})),
        issuer.token(&json!({ "aud": "https://other.example.com/mcp" })),
        issuer.token(&json!({ "iss": "https://evil.example" })),
        issuer.token(&json!({ "exp": 1000 })),
        GATE_TOKEN.to_owned(),
    ] {
        let reply = call(&endpoint, Some(&token), "far__fast", json!({})).await;
        assert_eq!(reply.status, 401, "{token}");
        assert!(challenge(&reply).contains("error=\"invalid_token\""), "{}", challenge(&reply));
    }
    let reply =
        call(&endpoint, Some(&issuer.token(&json!({ "scope": "other" }))), "far__fast", json!({})).await;
    assert_eq!(reply.status, 403);
    assert!(challenge(&reply).contains("error=\"insufficient_scope\""), "{}", challenge(&reply));
    let reply = call(&endpoint, Some(&issuer.of("ada")), "far__fast", json!({})).await;
    assert_eq!(reply.result(), "fast is done");
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
    let reply = call(&endpoint, Some("s3cret-tokem"), "far__fast", json!({})).await;
    assert_eq!(reply.status, 401);
    assert!(challenge(&reply).contains(METADATA), "{}", challenge(&reply));
    // What one of them opens does not exist for the other.
    let session = Session::open(&endpoint, GATE_TOKEN).await;
    assert_eq!(session.call(&endpoint, &issuer.of("ada"), "far__fast").await.status, 404);
    assert_eq!(session.call(&endpoint, GATE_TOKEN, "far__fast").await.result(), "fast is done");
    gateway.close().await;
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
    // Each secret that is missing is named.
    let client = "client_id = \"gate\"\nclient_secret_env";
    let secrets = by(&format!(
        "[gateway.auth.introspection]\nurl = \"{ISSUER}/introspect\"\n{client} = \"NOT_SET\"\n\
         [gateway.auth.connect]\n{client} = \"NOT_SET_EITHER\"\n"
    ));
    let error = build(&secrets, "127.0.0.1:7337").unwrap_err().to_string();
    assert!(error.contains("`NOT_SET`") && error.contains("`NOT_SET_EITHER`"), "{error}");
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
    let reply = call(&endpoint, Some(&issuer.token(&json!({}))), "far__fast", json!({})).await;
    assert_eq!(reply.status, 401);
    assert!(challenge(&reply).starts_with("DPoP "), "{}", challenge(&reply));

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
    let reply = send_bound(None, 1).await;
    assert_eq!(reply.status, 401);
    assert!(challenge(&reply).contains("use_dpop_nonce"), "{}", challenge(&reply));
    let nonce = reply.headers["dpop-nonce"].to_str().unwrap().to_owned();
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
        let reply = call(&endpoint, Some(&issuer.token(&claims)), tool, json!({})).await;
        assert_eq!(reply.json()["result"]["isError"] != true, expected, "{claims} {tool} {}", reply.text);
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
    let reply = call(&endpoint, Some(&issuer.of("ada")), "here__greedy", json!({})).await;
    assert_ne!(reply.status, 403, "{}", reply.text);
    assert!(!reply.headers.contains_key("www-authenticate"), "{:?}", reply.headers);
    assert!(reply.text.contains("the server `here`"), "{}", reply.text);
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
            let reply = call(&endpoint, Some(sent), tool, json!({})).await;
            assert_eq!(reply.status, 200, "{tool} {}", reply.text);
            assert!(reply.json()["result"]["isError"] != true, "{tool} {}", reply.text);
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
