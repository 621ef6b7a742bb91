//! An MCP server and two authorization servers on one socket, whose behavior a test can change.

use bowline_client::{Client, Result};
use bowline_http::{
    HttpTarget,
    auth::{Login, Visit},
    http,
};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

/// What the servers do, and what they saw.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools)] // Each is one switch of a test.
pub(crate) struct State {
    /// The authorization server that the metadata names.
    pub(crate) issuer: String,
    /// The scopes of valid access tokens.
    pub(crate) valid: HashMap<String, String>,
    /// Every request: verb, path and body.
    pub(crate) seen: Vec<(String, String, String)>,
    /// Verb, path and head of every request.
    pub(crate) heads: Vec<(String, String, String)>,
    /// The scope that `tools/call` needs.
    pub(crate) call_scope: Option<String>,
    /// Every token is refused with this status.
    pub(crate) refuse_all: Option<u16>,
    /// A new scope is demanded each time.
    pub(crate) demand_new_scope: bool,
    /// The life of access tokens in seconds.
    pub(crate) expires_in: Option<u64>,
    /// The status of refresh requests, if they fail.
    pub(crate) refresh_status: Option<u16>,
    /// Refresh requests wait for the test.
    pub(crate) hold_refresh: Option<Arc<Notify>>,
    /// The error of refresh requests that fail, unless it is `invalid_grant`.
    pub(crate) refresh_error: Option<&'static str>,
    /// The server needs no token.
    pub(crate) is_open: bool,
    /// Clients authenticate with a secret.
    pub(crate) is_confidential: bool,
    /// The MCP server publishes no metadata of the resource, as in 2025-03-26, and is its own authorization server.
    pub(crate) is_own_issuer: bool,
    /// The MCP server has sessions.
    pub(crate) is_legacy: bool,
    /// The authorization servers read client ID metadata documents.
    pub(crate) reads_documents: bool,
    /// `GET` requests to the MCP server are refused with 401.
    pub(crate) refuse_streams: bool,
    /// So many codes are refused because the client is unknown.
    pub(crate) unknown_clients: usize,
    /// Assertions are refused.
    pub(crate) refuse_assertions: bool,
    /// Paths that redirect to another URL, with status 307.
    pub(crate) redirects: HashMap<String, String>,
    /// Members that replace those of the metadata of authorization servers; `null` removes one.
    pub(crate) metadata: serde_json::Map<String, Value>,
    /// Headers and body that paths respond with, instead of what they have.
    pub(crate) documents: HashMap<String, (&'static str, String)>,
    /// The path whose response never ends. Its first request pauses the clock, so that time passes at once.
    pub(crate) stalled: Option<String>,
    pub(crate) is_paused: bool,
    /// The path whose response comes one byte per second. Its first request pauses the clock, too.
    pub(crate) dripping: Option<String>,
    /// Paths that respond with these bytes, compressed with gzip.
    pub(crate) compressed: HashMap<String, Vec<u8>>,
    /// The path that does not exist any more.
    pub(crate) gone: Option<String>,
    /// What token requests of a device are refused with, the first one last.
    pub(crate) device_errors: Vec<&'static str>,
    issued: usize,
    registered: usize,
}

/// The servers.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) base: String,
    state: Arc<Mutex<State>>,
    pub(crate) visits: Arc<AtomicUsize>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let state = State { issuer: format!("{base}/one"), expires_in: Some(3600), ..State::default() };
        let world = Self { base, state: Arc::new(Mutex::new(state)), visits: Arc::default() };
        let serving = world.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                tokio::spawn(async move { serving.answer(stream).await });
            }
        });
        world
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// A login whose user agrees to everything.
    pub(crate) fn login(&self) -> Login {
        let world = self.clone();
        Login::with(move |visit: Visit| {
            world.visits.fetch_add(1, Ordering::SeqCst);
            let world = world.clone();
            async move { world.agree(&visit) }
        })
    }

    pub(crate) fn agree(&self, visit: &Visit) -> Result<String, String> {
        let (place, query) = visit.url().split_once('?').ok_or("no query")?;
        let path = place.strip_prefix(&self.base).unwrap_or(place).to_owned();
        self.state().seen.push(("VISIT".into(), path, query.to_owned()));
        let get = |name: &str| {
            let parameters = bowline_auth::form::decode(query).unwrap_or_default();
            parameters
                .into_iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value)
                .unwrap_or_default()
        };
        let code = bowline_auth::form::encode(&format!("code {}", get("scope")));
        Ok(format!("{}?code={code}&state={}", visit.redirect_uri(), get("state")))
    }

    pub(crate) fn target(&self, login: Login) -> HttpTarget {
        http(format!("{}/mcp", self.base)).login(login)
    }

    pub(crate) async fn connect(&self, login: Login) -> Result<Client> {
        Client::connect(self.target(login)).await
    }

    /// How many requests had this verb and path.
    pub(crate) fn count(&self, verb: &str, path: &str) -> usize {
        self.state().seen.iter().filter(|(known, at, _)| known == verb && at == path).count()
    }

    /// The bodies of requests with this verb and path.
    pub(crate) fn bodies(&self, verb: &str, path: &str) -> Vec<String> {
        let state = self.state();
        let fitting = state.seen.iter().filter(|(known, at, _)| known == verb && at == path);
        fitting.map(|(_, _, body)| body.clone()).collect()
    }

    /// How many requests had this grant.
    pub(crate) fn grants(&self, grant: &str) -> usize {
        let wanted = format!("grant_type={grant}");
        self.state()
            .seen
            .iter()
            .filter(|(_, path, body)| path.ends_with("/token") && body.contains(&wanted))
            .count()
    }

    /// Makes all access tokens invalid.
    pub(crate) fn revoke_all(&self) {
        self.state().valid.clear();
    }

    async fn answer(&self, mut stream: TcpStream) {
        let Some((verb, path, head, body)) = read(&mut stream).await else { return };
        self.state().seen.push((verb.clone(), path.clone(), body.clone()));
        let token =
            header(&head, "authorization").and_then(|text| text.strip_prefix("Bearer ").map(str::to_owned));
        self.state().heads.push((verb.clone(), path.clone(), head));
        let hold = self.state().hold_refresh.clone();
        if let Some(hold) = hold.filter(|_| body.contains("grant_type=refresh_token")) {
            hold.notified().await;
        }
        let place = path.split('?').next().unwrap_or_default();
        if self.state().stalled.as_deref() == Some(place) {
            drop(stream.write_all(b"HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\n{").await);
            if !std::mem::replace(&mut self.state().is_paused, true) {
                tokio::time::pause();
            }
            return std::future::pending().await;
        }
        if self.state().dripping.as_deref() == Some(place) {
            drop(stream.write_all(b"HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n{").await);
            if !std::mem::replace(&mut self.state().is_paused, true) {
                tokio::time::pause();
            }
            while stream.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            return;
        }
        let compressed = self.state().compressed.get(place).cloned();
        if let Some(body) = compressed {
            let head = format!(
                "HTTP/1.1 200 X\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\
                 Content-Length: {}\r\n\r\n",
                body.len()
            );
            drop(stream.write_all(&[head.as_bytes(), &body].concat()).await);
            drop(stream.shutdown().await);
            return;
        }
        let is_gone = self.state().gone.as_deref() == Some(place);
        let redirect = self.state().redirects.get(place).cloned();
        let document = self.state().documents.get(place).cloned();
        let (status, extra, body) = match place {
            _ if is_gone => (404, String::new(), String::new()),
            _ if redirect.is_some() => {
                (307, format!("Location: {}\r\n", redirect.unwrap_or_default()), String::new())
            }
            _ if document.is_some() => {
                let (headers, body) = document.unwrap_or_default();
                (200, headers.to_owned(), body)
            }
            "/mcp" => self.mcp(&verb, token.as_deref(), &body),
            "/idp/token" => (200, String::new(), id_jag().to_string()),
            path if self.state().is_own_issuer => self.own_issuer(path, &body),
            "/.well-known/oauth-protected-resource/mcp" => {
                let issuer = self.state().issuer.clone();
                let resource = format!("{}/mcp", self.base);
                (
                    200,
                    String::new(),
                    json!({ "resource": resource, "authorization_servers": [issuer] }).to_string(),
                )
            }
            path => match path.strip_prefix("/.well-known/oauth-authorization-server/") {
                Some(name) => (200, String::new(), self.metadata(name).to_string()),
                None if path.ends_with("/register") => {
                    let mut state = self.state();
                    state.registered += 1;
                    let of = path.replace("/register", "").replace('/', "-");
                    let id = format!("client-of{of}-{}", state.registered);
                    (201, String::new(), json!({ "client_id": id }).to_string())
                }
                None if path.ends_with("/device") => (
                    200,
                    String::new(),
                    json!({
                        "device_code": "device-canary", "user_code": "WDJB-MJHT", "interval": 0, "expires_in": 60,
                        "verification_uri": format!("{}/activate", self.base),
                    })
                    .to_string(),
                ),
                None if path.ends_with("/token") => self.token(&body),
                None if path == "/stolen" => (200, String::new(), "{}".to_owned()),
                None => (404, String::new(), String::new()),
            },
        };
        let reply = format!(
            "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Type: application/json\r\n{extra}Content-Length: \
             {}\r\n\r\n{body}",
            body.len()
        );
        drop(stream.write_all(reply.as_bytes()).await);
        drop(stream.shutdown().await);
    }

    fn metadata(&self, name: &str) -> Value {
        let at = |path: &str| format!("{}/{name}{path}", self.base);
        let method = if self.state().is_confidential { "client_secret_basic" } else { "none" };
        let mut metadata = json!({
            "issuer": at(""),
            "client_id_metadata_document_supported": self.state().reads_documents,
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"),
            "device_authorization_endpoint": at("/device"),
            "registration_endpoint": at("/register"),
            "code_challenge_methods_supported": ["S256"],
            "revocation_endpoint": at("/revoke"),
            "token_endpoint_auth_methods_supported": [method],
            "revocation_endpoint_auth_methods_supported": [method],
        });
        for (name, value) in &self.state().metadata {
            metadata[name] = value.clone();
        }
        metadata.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        metadata
    }

    /// A server of 2025-03-26, with its endpoints below `/own`.
    fn own_issuer(&self, path: &str, body: &str) -> (u16, String, String) {
        match path {
            "/.well-known/oauth-authorization-server" => {
                let mut metadata = self.metadata("own");
                metadata["issuer"] = self.base.clone().into();
                (200, String::new(), metadata.to_string())
            }
            "/own/register" => (201, String::new(), json!({ "client_id": "own" }).to_string()),
            "/own/token" => self.token(body),
            _ => (404, String::new(), String::new()),
        }
    }

    fn mcp(&self, verb: &str, token: Option<&str>, body: &str) -> (u16, String, String) {
        let mut state = self.state();
        let metadata = if state.is_own_issuer {
            String::new()
        } else {
            format!("resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\", ", self.base)
        };
        let challenge = |error: &str, scope: &str| {
            format!("WWW-Authenticate: Bearer {metadata}scope=\"{scope}\"{error}\r\n")
        };
        let scopes = token.and_then(|token| state.valid.get(token)).cloned();
        let message: Value = serde_json::from_str(body).unwrap_or_default();
        let is_call = message["method"] == "tools/call";
        if verb == "GET" && state.refuse_streams {
            return (401, challenge("", "base"), String::new());
        }
        match (&scopes, state.refuse_all) {
            (None, _) | (_, Some(401)) if !state.is_open => {
                return (401, challenge("", "base"), String::new());
            }
            _ => {}
        }
        let granted = scopes.unwrap_or_default();
        let mut needed = state.call_scope.clone().filter(|_| is_call);
        if state.demand_new_scope && is_call {
            state.issued += 1;
            needed = Some(format!("scope-{}", state.issued));
        }
        if let Some(needed) = needed.filter(|needed| !granted.split(' ').any(|scope| scope == needed)) {
            return (403, challenge(", error=\"insufficient_scope\"", &needed), String::new());
        }
        let session = "Mcp-Session-Id: s\r\n".to_owned();
        let result = match message["method"].as_str() {
            None if verb == "GET" => return (405, String::new(), String::new()),
            None => return (200, String::new(), String::new()),
            Some("server/discover") if state.is_legacy => return (400, String::new(), String::new()),
            Some("initialize") => {
                let greeting = crate::client_peer::greeting("2025-06-18");
                let reply = json!({ "jsonrpc": "2.0", "id": message["id"], "result": greeting });
                return (200, session, reply.to_string());
            }
            Some("notifications/initialized") => return (202, String::new(), String::new()),
            Some("server/discover") => crate::client_peer::discovery(&json!({ "tools": {} })),
            _ => crate::client_peer::text("done"),
        };
        (200, String::new(), json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string())
    }

    fn token(&self, body: &str) -> (u16, String, String) {
        let mut state = self.state();
        let parameters = bowline_auth::form::decode(body).unwrap_or_default();
        let get =
            |name: &str| parameters.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value);
        let scope = match get("grant_type") {
            "refresh_token" => {
                if let Some(status) = state.refresh_status {
                    return (
                        status,
                        String::new(),
                        json!({ "error": state.refresh_error.unwrap_or("invalid_grant") }).to_string(),
                    );
                }
                "base".to_owned()
            }
            "authorization_code" if state.unknown_clients > 0 => {
                state.unknown_clients -= 1;
                return (401, String::new(), json!({ "error": "invalid_client" }).to_string());
            }
            "urn:ietf:params:oauth:grant-type:device_code" => {
                if let Some(error) = state.device_errors.pop() {
                    return (400, String::new(), json!({ "error": error }).to_string());
                }
                "base".to_owned()
            }
            "authorization_code" => get("code").strip_prefix("code ").unwrap_or_default().to_owned(),
            _ if state.refuse_assertions => {
                return (400, String::new(), json!({ "error": "invalid_grant" }).to_string());
            }
            // Nobody is granted this.
            _ => get("scope").split(' ').filter(|scope| *scope != "forbidden").collect::<Vec<_>>().join(" "),
        };
        state.issued += 1;
        let number = state.issued;
        let token = format!("access-canary-{number}");
        state.valid.insert(token.clone(), scope.clone());
        let body = json!({
            "access_token": token, "token_type": "Bearer", "scope": scope, "expires_in": state.expires_in,
            "refresh_token": format!("refresh-canary-{number}"),
        });
        (200, String::new(), body.to_string())
    }
}

/// What an identity provider answers to a token exchange.
fn id_jag() -> Value {
    json!({
        "access_token": "id-jag-canary", "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "token_type": "N_A", "expires_in": 300,
    })
}

/// The value of a header.
pub(crate) fn header(head: &str, name: &str) -> Option<String> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
}

/// Verb, path, head and body of a request.
async fn read(stream: &mut TcpStream) -> Option<(String, String, String, String)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
            let length = header(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                let mut first = head.lines().next()?.split(' ');
                let (verb, path) = (first.next()?.to_owned(), first.next()?.to_owned());
                return Some((verb, path, head, String::from_utf8(bytes[end + 4..].to_vec()).ok()?));
            }
        }
        let length = stream.read(&mut buffer).await.ok().filter(|length| *length > 0)?;
        bytes.extend_from_slice(&buffer[..length]);
    }
}
