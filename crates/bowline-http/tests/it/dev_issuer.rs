//! A server that issues its own tokens, with a real client.

use bowline_auth::form;
use bowline_client::Client;
use bowline_http::{
    HttpOptions, HttpService, Poster, Protect, ServeHttp,
    auth::{Event, LoggedOut, Login, MemoryStore, Visit},
    http,
};
use bowline_server::{Ctx, Server, Tool};
use bowline_testing::issuer::{allow, deny};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// A protected server with a tool that needs another scope. It ends with the test.
async fn start(protect: Protect) -> String {
    let write = |ctx: Ctx| async move { Ok::<_, bowline_server::Error>(ctx.caller()?.subject().to_owned()) };
    let server = Server::new("notes")
        .tool(Tool::new("read").handler(|| "read"))
        .tool(Tool::new("write").scopes(["notes:write"]).handler(write));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let options = HttpOptions::new().protect(protect).listening_on(address);
    let service = HttpService::with_options(server.build().unwrap(), options);
    tokio::spawn(async move { service.serve(listener, std::future::pending()).await });
    format!("http://{address}")
}

fn protect() -> Protect {
    Protect::dev().scopes(["notes:read"])
}

/// A login whose user allows everything.
fn login(user: &'static str) -> Login {
    Login::with(move |visit: Visit| async move { allow(visit.url(), user).await })
}

async fn get(url: &str, headers: HeaderMap) -> (StatusCode, HeaderMap, String) {
    let answer = Poster::new().send(Method::GET, url, headers, Bytes::new()).await.unwrap();
    (answer.status, answer.headers, String::from_utf8(answer.body.to_vec()).unwrap())
}

// proves: ADISC-18, ASEC-04
#[tokio::test]
async fn a_client_logs_in_is_stepped_up_and_logs_out() {
    let origin = start(protect()).await;
    let url = format!("{origin}/mcp");
    let store = MemoryStore::new();
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let login = login("ada").store(store.clone());
    let login = login.on_event(move |event: &Event| seen.lock().unwrap().push(event.to_string()));
    let target = http(&url).login(login);
    let client = Client::connect(target.clone()).await.unwrap();
    assert_eq!(client.call("read", ()).await.unwrap().text(), "read");
    assert_eq!(client.call("write", ()).await.unwrap().text(), "ada", "after a step-up");
    let logins = events.lock().unwrap().iter().filter(|event| event.starts_with("logged in")).count();
    assert_eq!(logins, 2, "{:?}", events.lock().unwrap());
    let stored = Client::connect(http(&url).login(Login::stored().store(store.clone()))).await.unwrap();
    assert_eq!(stored.call("write", ()).await.unwrap().text(), "ada");
    assert!(matches!(target.log_out().await.unwrap(), LoggedOut::Revoked), "the tokens are revoked");
    stored.call("read", ()).await.unwrap_err();
}

#[tokio::test]
async fn a_user_who_denies_gets_no_token() {
    let origin = start(protect()).await;
    let login = Login::with(|visit: Visit| async move { deny(visit.url()).await });
    let error = Client::connect(http(format!("{origin}/mcp")).login(login)).await.unwrap_err();
    assert!(error.to_string().contains("access_denied"), "{error}");
}

// proves: ADISC-02, ADISC-03
#[tokio::test]
async fn clients_of_2025_03_26_find_metadata_and_default_paths_at_the_origin() {
    let origin = start(protect()).await;
    let mut headers = HeaderMap::new();
    headers.insert("mcp-protocol-version", HeaderValue::from_static("2025-03-26"));
    let (status, _, body) = get(&format!("{origin}/.well-known/oauth-authorization-server"), headers).await;
    assert_eq!(status, StatusCode::OK);
    let metadata: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(metadata["issuer"], origin.as_str());
    // The whole flow with nothing but the default paths, without `resource` and `scope`.
    let poster = Poster::new();
    let body =
        json!({ "redirect_uris": ["http://127.0.0.1/cb"], "token_endpoint_auth_method": "none" }).to_string();
    let registered =
        poster.send(Method::POST, &format!("{origin}/register"), HeaderMap::new(), body.into()).await;
    let registered: Value = serde_json::from_slice(&registered.unwrap().body).unwrap();
    let client = registered["client_id"].as_str().unwrap();
    let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    let query = format!(
        "client_id={client}&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fcb&response_type=code&state=s\
         &code_challenge={challenge}&code_challenge_method=S256"
    );
    let redirected = allow(&format!("{origin}/authorize?{query}"), "ada").await.unwrap();
    let sent = form::decode(redirected.split_once('?').unwrap().1).unwrap();
    let code = &sent.iter().find(|(name, _)| name == "code").unwrap().1;
    let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    let form =
        format!("grant_type=authorization_code&client_id={client}&code={code}&code_verifier={verifier}");
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    let answer = poster.send(Method::POST, &format!("{origin}/token"), headers, form.into()).await.unwrap();
    let tokens: Value = serde_json::from_slice(&answer.body).unwrap();
    let mut headers = HeaderMap::new();
    let token = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
    headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&token).unwrap());
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-03-26",
        "capabilities": {}, "clientInfo": { "name": "old", "version": "1" } } });
    let url = format!("{origin}/mcp");
    let answer = poster.send(Method::POST, &url, headers, hello.to_string().into()).await.unwrap();
    assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.body);
}

#[tokio::test]
async fn it_does_not_start_on_other_addresses() {
    let serve = |address: &'static str| {
        Server::new("notes").serve_http_with(address, HttpOptions::new().protect(Protect::dev()))
    };
    let error = serve("0.0.0.0:0").await.unwrap_err();
    assert!(error.to_string().contains("only on a loopback address"), "{error}");
    // Neither the address in the options nor the one of the socket can be another.
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let here = "127.0.0.1:9".parse().unwrap();
    let options = HttpOptions::new().protect(Protect::dev()).listening_on(here);
    let service = HttpService::with_options(Server::new("notes").build().unwrap(), options);
    let error = service.serve(listener, std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("only on a loopback address"), "{error}");
    let error = Protect::dev().build().unwrap_err();
    assert!(error.to_string().contains("needs the address of the socket"), "{error}");
}

#[tokio::test]
async fn v64_the_consent_page_is_shown_under_names_of_this_machine_only() {
    let origin = start(protect()).await;
    let address = origin.strip_prefix("http://").unwrap();
    for (host, expected) in [
        (address, StatusCode::BAD_REQUEST),
        ("localhost", StatusCode::BAD_REQUEST),
        ("evil.com", StatusCode::FORBIDDEN),
    ] {
        let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_str(host).unwrap())]);
        let (status, _, page) = get(&format!("{origin}/authorize?client_id=x"), headers).await;
        assert_eq!(status, expected, "{host}: {page}");
    }
    // A link on another site may open the page, but no page can read it.
    let mut headers = HeaderMap::new();
    headers.insert("sec-fetch-site", HeaderValue::from_static("cross-site"));
    let (status, headers, page) = get(&format!("{origin}/authorize?client_id=x"), headers).await;
    assert!(status == StatusCode::BAD_REQUEST && page.contains("not registered"), "{page}");
    assert!(!headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
}

// proves: AREG-19
#[tokio::test]
async fn v65_documents_of_clients_are_fetched_from_public_addresses_only() {
    let origin = start(protect()).await;
    let inside = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = inside.local_addr().unwrap().port();
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "10.0.0.5",
        "192.168.1.1",
        "169.254.169.254",
    ] {
        let id = form::encode(&format!("https://{host}:{port}/client.json"));
        let (status, _, page) = get(&format!("{origin}/authorize?client_id={id}"), HeaderMap::new()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{host}");
        assert!(page.contains("cannot be used"), "{host}: {page}");
    }
    let connected = tokio::time::timeout(std::time::Duration::ZERO, inside.accept()).await;
    assert!(connected.is_err(), "nothing was connected to");
}
