//! A scripted authorization server and the MCP server that it protects, on one loopback port.

use base64::Engine as _;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
};

/// Appears in every token, code and secret of the issuer. It must never be printed.
pub(crate) const CANARY: &str = "canary5317";

/// What the issuer does, and what it has seen.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools)] // Each is one switch of a test.
pub(crate) struct State {
    /// The lifetime of the access token of a login. Refreshed tokens live for an hour.
    pub(crate) first_lifetime: u64,
    /// Replaces the authorization endpoint in the metadata.
    pub(crate) authorization_endpoint: Option<String>,
    /// The secret that the client `confidential` must send.
    pub(crate) client_secret: Option<String>,
    /// Does not announce PKCE, and refuses the parameter `resource`, as Entra does.
    pub(crate) breaks_rules: bool,
    /// Publishes no metadata of the authorization server.
    pub(crate) has_no_metadata: bool,
    /// Registers no clients.
    pub(crate) registers_no_clients: bool,
    /// The resource in the metadata, instead of the MCP server.
    pub(crate) resource: Option<String>,
    /// The scope that calls of tools need.
    pub(crate) needed_scope: Option<String>,
    /// Logins cannot be renewed.
    pub(crate) issues_no_refresh_tokens: bool,
    /// Refuses requests without saying where tokens come from.
    pub(crate) sends_no_challenge: bool,
    /// Has no page to log in at.
    pub(crate) has_no_page: bool,
    /// The value of `Date` in refusals.
    pub(crate) date: Option<&'static str>,
    /// The assertion that a workload must send.
    pub(crate) assertion: Option<String>,
    /// The parameters of the last authorization request.
    pub(crate) authorization: HashMap<String, String>,
    /// Access tokens that were issued for the needed scope.
    pub(crate) elevated: HashSet<String>,
    /// Rotates the refresh token, but never sends the response.
    pub(crate) holds_refresh: bool,
    /// How many times each path was requested.
    pub(crate) requests: HashMap<String, usize>,
    pub(crate) refreshes: usize,
    pub(crate) revoked: Vec<String>,
    pub(crate) registrations: Vec<Value>,
    pub(crate) codes: HashMap<String, HashMap<String, String>>,
    pub(crate) access_tokens: HashSet<String>,
    pub(crate) refresh_tokens: HashSet<String>,
    pub(crate) issued: usize,
    /// The user has entered the code of a device.
    pub(crate) device_is_approved: bool,
}

/// A running issuer. Its threads end with the test process.
pub(crate) struct Issuer {
    pub(crate) url: String,
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl Issuer {
    pub(crate) fn start(state: State) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let shared = Arc::new((Mutex::new(state), Condvar::new()));
        let (origin, state) = (url.clone(), Arc::clone(&shared));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (origin, state) = (origin.clone(), Arc::clone(&state));
                thread::spawn(move || serve(stream, &origin, &state));
            }
        });
        Self { url, shared }
    }

    /// Returns the URL of the MCP server.
    pub(crate) fn server(&self) -> String {
        format!("{}/mcp", self.url)
    }

    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.shared.0.lock().expect("no test panics with it"))
    }

    /// Waits until the issuer has seen something.
    pub(crate) fn wait(&self, is_reached: impl Fn(&State) -> bool) {
        let state = self.shared.0.lock().expect("no test panics with it");
        drop(self.shared.1.wait_while(state, |state| !is_reached(state)).expect("no test panics with it"));
    }

    /// Makes all access tokens invalid.
    pub(crate) fn expire(&self) {
        self.with(|state| state.access_tokens.clear());
    }
}

/// Sends a GET request, and returns the status, the value of `Location` and the page.
pub(crate) fn get(url: &str) -> (u16, Option<String>, String) {
    let rest = url.strip_prefix("http://").expect("it is a loopback URL");
    let (authority, target) = rest.split_once('/').expect("it has a path");
    let mut stream = TcpStream::connect(authority).expect("it listens");
    write!(stream, "GET /{target} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n")
        .expect("it reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("it is text");
    let status = reply.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("it is HTTP");
    let location = reply.lines().find_map(|line| line.strip_prefix("Location: ")).map(str::to_owned);
    (status, location, reply)
}

/// Logs in at the authorization page, and returns where the browser is redirected to.
pub(crate) fn consent(url: &str) -> String {
    let (status, location, page) = get(url);
    assert_eq!(status, 302, "{page}");
    location.expect("it redirects")
}

fn serve(stream: TcpStream, origin: &str, shared: &(Mutex<State>, Condvar)) {
    let mut reader = BufReader::new(stream.try_clone().expect("it is a socket"));
    let mut stream = stream;
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    let (mut length, mut authorization) = (0, String::new());
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).unwrap_or(0) == 0 {
            return;
        }
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "authorization" => value.clone_into(&mut authorization),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let body = String::from_utf8(body).expect("requests are text");
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let reply = {
        let mut state = shared.0.lock().expect("no test panics with it");
        let path = target.split('?').next().unwrap_or_default().to_owned();
        *state.requests.entry(path).or_default() += 1;
        let reply = answer(&mut state, origin, method, target, &authorization, &body);
        shared.1.notify_all();
        reply
    };
    let Some((status, headers, body)) = reply else {
        // Delay the response until the client has disconnected.
        let _ = reader.read_line(&mut String::new());
        return;
    };
    let length = body.len();
    // A disconnected client does not need the response.
    let _ = write!(
        stream,
        "HTTP/1.1 {status} Scripted\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
}

type Reply = (u16, String, String);

#[expect(clippy::unnecessary_wraps, reason = "a request may also get no reply")]
fn json_reply(status: u16, value: &Value) -> Option<Reply> {
    Some((status, "Content-Type: application/json\r\n".to_owned(), value.to_string()))
}

fn form(text: &str) -> HashMap<String, String> {
    let decode = |text: &str| {
        let bytes = bowline_proto::uri::percent_decode(&text.replace('+', " "));
        String::from_utf8(bytes).expect("forms are text")
    };
    text.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

fn answer(
    state: &mut State,
    origin: &str,
    method: &str,
    target: &str,
    authorization: &str,
    body: &str,
) -> Option<Reply> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match (method, path) {
        ("GET", "/.well-known/oauth-protected-resource/mcp") => json_reply(
            200,
            &json!({ "resource": state.resource.clone().unwrap_or_else(|| format!("{origin}/mcp")),
                "authorization_servers": [origin], "scopes_supported": ["notes:read"] }),
        ),
        ("GET", "/.well-known/oauth-authorization-server") if !state.has_no_metadata => {
            let authorize =
                state.authorization_endpoint.clone().unwrap_or_else(|| format!("{origin}/authorize"));
            let mut metadata = json!({ "issuer": origin, "authorization_endpoint": authorize,
                    "token_endpoint": format!("{origin}/token"), "registration_endpoint": format!("{origin}/register"),
                    "revocation_endpoint": format!("{origin}/revoke"),
                    "device_authorization_endpoint": format!("{origin}/device"), "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                    "authorization_response_iss_parameter_supported": true });
            let members = metadata.as_object_mut().expect("it is an object");
            if state.breaks_rules {
                members.remove("code_challenge_methods_supported");
            }
            if state.has_no_page {
                members.remove("authorization_endpoint");
            }
            if state.registers_no_clients {
                members.remove("registration_endpoint");
            }
            json_reply(200, &metadata)
        }
        ("POST", "/register") => {
            let request: Value = serde_json::from_str(body).expect("it is JSON");
            state.registrations.push(request.clone());
            let id = format!("client-{}", state.registrations.len());
            json_reply(
                201,
                &json!({ "client_id": id, "redirect_uris": request["redirect_uris"], "token_endpoint_auth_method": "none" }),
            )
        }
        ("GET", "/authorize") => {
            let request = form(query);
            let code = format!("{CANARY}-code-{}", state.codes.len());
            let (to, given) = (request["redirect_uri"].clone(), request["state"].clone());
            assert_eq!(request["code_challenge_method"], "S256");
            state.authorization.clone_from(&request);
            state.codes.insert(code.clone(), request);
            let issuer = origin.replace(':', "%3A").replace('/', "%2F");
            Some((302, format!("Location: {to}?code={code}&state={given}&iss={issuer}\r\n"), String::new()))
        }
        ("POST", "/device") => json_reply(
            200,
            &json!({ "device_code": format!("{CANARY}-device"), "user_code": "WDJB-MJHT",
                "verification_uri": format!("{origin}/activate"), "expires_in": 600, "interval": 1 }),
        ),
        ("POST", "/token") => token(state, &form(body), authorization),
        ("POST", "/revoke") => {
            let token = form(body)["token"].clone();
            state.refresh_tokens.remove(&token);
            state.revoked.push(token);
            json_reply(200, &json!({}))
        }
        ("POST", "/mcp") => {
            let token = authorization.strip_prefix("Bearer ").unwrap_or_default();
            let is_call = body.contains("\"tools/call\"");
            match &state.needed_scope {
                _ if !state.access_tokens.contains(token) => unauthorized(state, origin),
                Some(scope) if is_call && !state.elevated.contains(token) => {
                    let challenge = format!(
                        "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"{scope}\"\r\n"
                    );
                    Some((403, challenge, String::new()))
                }
                _ => mcp(body),
            }
        }
        _ => Some((404, String::new(), String::new())),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a request may also get no reply")]
fn unauthorized(state: &State, origin: &str) -> Option<Reply> {
    let mut headers = state.date.map(|date| format!("Date: {date}\r\n")).unwrap_or_default();
    if !state.sends_no_challenge {
        let metadata = format!("{origin}/.well-known/oauth-protected-resource/mcp");
        let _ = write!(headers, "WWW-Authenticate: Bearer resource_metadata=\"{metadata}\"\r\n");
    }
    Some((401, headers, String::new()))
}

fn token(state: &mut State, request: &HashMap<String, String>, authorization: &str) -> Option<Reply> {
    let refused = |code: &str| json_reply(400, &json!({ "error": code }));
    if state.breaks_rules && request.contains_key("resource") {
        return refused("invalid_target");
    }
    assert!(state.breaks_rules || request.contains_key("resource"), "every token request names its resource");
    if let Some(secret) = &state.client_secret {
        let pair = format!("confidential:{secret}");
        let expected = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair));
        if authorization != expected {
            return refused("invalid_client");
        }
    }
    let mut scope = request.get("scope").cloned().unwrap_or_default();
    let lifetime = match request["grant_type"].as_str() {
        "client_credentials" => 3600,
        "urn:ietf:params:oauth:grant-type:jwt-bearer" => {
            if request.get("assertion") != state.assertion.as_ref() {
                return refused("invalid_grant");
            }
            3600
        }
        "authorization_code" => {
            let Some(asked) = state.codes.remove(&request["code"]) else { return refused("invalid_grant") };
            assert_eq!(asked["redirect_uri"], request["redirect_uri"]);
            assert!(request.contains_key("code_verifier"));
            scope = asked.get("scope").cloned().unwrap_or_default();
            state.first_lifetime
        }
        "urn:ietf:params:oauth:grant-type:device_code" => {
            if !state.device_is_approved {
                return refused("authorization_pending");
            }
            state.first_lifetime
        }
        "refresh_token" => {
            state.refreshes += 1;
            if !state.refresh_tokens.remove(&request["refresh_token"]) {
                return refused("invalid_grant");
            }
            if !state.elevated.is_empty() {
                scope = state.needed_scope.clone().unwrap_or_default();
            }
            3600
        }
        other => panic!("unexpected grant {other}"),
    };
    state.issued += 1;
    let (access, refresh) =
        (format!("{CANARY}-access-{}", state.issued), format!("{CANARY}-refresh-{}", state.issued));
    state.access_tokens.insert(access.clone());
    let mut granted = "notes:read".to_owned();
    if let Some(needed) = &state.needed_scope
        && scope.split(' ').any(|scope| scope == needed)
    {
        granted = format!("{granted} {needed}");
        state.elevated.insert(access.clone());
    }
    state.refresh_tokens.insert(refresh.clone());
    if request["grant_type"] == "refresh_token" && state.holds_refresh {
        return None;
    }
    let refresh = (!state.issues_no_refresh_tokens).then_some(refresh);
    json_reply(
        200,
        &json!({ "access_token": access, "token_type": "Bearer", "expires_in": lifetime, "refresh_token": refresh,
            "scope": granted }),
    )
}

/// A server of 2025-11-25 without sessions.
fn mcp(body: &str) -> Option<Reply> {
    let message: Value = serde_json::from_str(body).expect("it is JSON");
    let result = match message["method"].as_str() {
        Some("initialize") => {
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "notes", "version": "1" } })
        }
        Some("ping") => json!({}),
        Some("tools/list") => json!({ "tools": [{ "name": "read", "inputSchema": { "type": "object" } }] }),
        Some("tools/call") => json!({ "content": [{ "type": "text", "text": "milk" }] }),
        _ if message["id"].is_null() => return Some((202, String::new(), String::new())),
        _ => {
            let error = json!({ "code": -32601, "message": "unknown method" });
            return json_reply(200, &json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }));
        }
    };
    json_reply(200, &json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
}
