//! Where clients learn which authorization server issues tokens.

use super::{ISSUER, METADATA, RESOURCE, Script, endpoint, plain_server, protect};
use crate::wire::Ask;
use bowline_http::{HttpOptions, HttpService, Protect};
use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower_service::Service;

const PATH: &str = "/.well-known/oauth-protected-resource/mcp";
const ROOT: &str = "/.well-known/oauth-protected-resource";

#[tokio::test]
async fn anyone_may_read_the_metadata() {
    // proves: ADISC-07, ADISC-08, ADISC-30
    let protect = protect(&Script::default()).name("Notes").documentation("https://notes.example.com/docs");
    let endpoint = endpoint(plain_server(), protect);
    for ask in [
        Ask::new(Method::GET).path(PATH),
        Ask::new(Method::GET).path(PATH).header("origin", "https://anywhere.example"),
        Ask::new(Method::GET).path(PATH).header("sec-fetch-site", "cross-site"),
        // Nothing of the request gets into the document.
        Ask::new(Method::GET)
            .path(PATH)
            .header("x-forwarded-host", "evil.example")
            .header("host", "localhost:1"),
    ] {
        let responses = ask.send(&endpoint).await;
        assert_eq!(responses.status, 200);
        assert_eq!(responses.headers["access-control-allow-origin"], "*");
        assert_eq!(responses.headers["cache-control"], "max-age=300");
        assert_eq!(responses.headers["content-type"], "application/json");
        assert_eq!(
            responses.json().await,
            json!({
                "resource": RESOURCE,
                "authorization_servers": [ISSUER],
                "scopes_supported": ["notes:read"],
                "bearer_methods_supported": ["header"],
                "resource_name": "Notes",
                "resource_documentation": "https://notes.example.com/docs",
            })
        );
    }
    let head = Ask::new(Method::HEAD).path(PATH).send(&endpoint).await;
    assert_eq!(head.status, 200);
    assert_ne!(head.headers["content-length"], "0");
    let preflight = Ask::new(Method::OPTIONS).path(PATH).header("origin", "https://anywhere.example");
    let preflight = preflight.header("access-control-request-method", "GET").send(&endpoint).await;
    assert_eq!(
        (preflight.status.as_u16(), &preflight.headers["access-control-allow-headers"]),
        (204, &"*".parse().unwrap())
    );
    let posted = Ask::new(Method::POST).path(PATH).send(&endpoint).await;
    assert_eq!((posted.status.as_u16(), &posted.headers["allow"]), (405, &"GET, HEAD".parse().unwrap()));
    let foreign = Ask::new(Method::GET).path(PATH).header("host", "evil.example").send(&endpoint).await;
    assert_eq!(foreign.status, 403);
}

/// Serves on a socket and returns what a client of plain HTTP reads from these paths.
async fn read_from_socket(options: HttpOptions, paths: &[&str]) -> Vec<(u16, Value)> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = HttpService::with_options(plain_server().build().unwrap(), options.listening_on(address));
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn({
        let service = service.clone();
        async move { service.serve(listener, async { drop(ended.await) }).await }
    });
    let mut responses = Vec::new();
    for path in paths {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let status = answer[9..12].parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        responses.push((status, serde_json::from_str(body).unwrap_or_default()));
    }
    drop(end);
    serving.await.unwrap().unwrap();
    responses
}

#[tokio::test]
async fn a_server_with_its_own_socket_serves_both_forms() {
    let options = || HttpOptions::new().protect(protect(&Script::default()));
    let responses =
        read_from_socket(options(), &[PATH, ROOT, "/.well-known/oauth-authorization-server", "/mcp"]).await;
    let statuses: Vec<u16> = responses.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [200, 200, 404, 401]);
    assert_eq!(responses[1].1["resource"], RESOURCE);
}

#[tokio::test]
async fn a_server_on_loopback_needs_no_public_url() {
    let protect = || Protect::with(Script::default(), [ISSUER]);
    let responses = read_from_socket(HttpOptions::new().path("/here").protect(protect()), &[ROOT]).await;
    let resource = responses[0].1["resource"].as_str().unwrap();
    assert!(resource.starts_with("http://127.0.0.1:") && resource.ends_with("/here"), "{resource}");
    let error = protect().build().unwrap_err().to_string();
    assert!(error.contains("set it with `Protect::resource`"), "{error}");
}

#[test]
fn what_cannot_work_is_found_when_building() {
    let base = || Protect::with(Script::default(), [ISSUER]).resource(RESOURCE);
    let without: [&str; 0] = [];
    for (protect, reason) in [
        (Protect::with(Script::default(), without).resource(RESOURCE), "name at least one issuer"),
        (Protect::with(Script::default(), ["login"]).resource(RESOURCE), "`login` is not an issuer"),
        (base().resource("/mcp"), "the resource `/mcp` is not usable"),
        (base().resource("https://h/mcp?a=b"), "has a query"),
        (base().scopes(["offline_access"]), "`offline_access` is not a scope of a resource"),
        (base().scopes(["two words"]), "`two words` is not a scope"),
        (base().implies("a", ["b"]).implies("b", ["a"]), "the scope `a` implies itself"),
    ] {
        let error = protect.build().unwrap_err().to_string();
        assert!(error.starts_with("cannot protect the endpoint: ") && error.contains(reason), "{error}");
    }
    base().scopes(["notes:read"]).implies("admin", ["notes:read"]).build().unwrap();
}

#[tokio::test]
async fn an_endpoint_whose_protection_cannot_work_refuses_everything() {
    let protect = Protect::with(Script::default().accept("good", "ada", ""), [ISSUER]);
    let endpoint = endpoint(plain_server(), protect);
    let responses = super::bearer(super::call("list"), "good").send(&endpoint).await;
    assert_eq!(responses.status, 500);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    assert!(endpoint.serve(listener, std::future::pending()).await.is_err());
}

#[tokio::test]
async fn an_application_serves_the_metadata_and_protects_other_routes() {
    let script = Script::default().accept("good", "ada", "notes:read").accept("narrow", "ada", "other");
    let protection = protect(&script).build().unwrap();
    assert_eq!(protection.metadata_path(), PATH);
    let request = |path: &str, token: Option<&str>| {
        let request = http::Request::get(path);
        match token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
        .body(axum::body::Body::empty())
        .unwrap()
    };
    let whoami = axum::routing::get(|request: axum::extract::Request| async move {
        let caller = request.extensions().get::<std::sync::Arc<bowline_auth::Caller>>().unwrap();
        caller.subject().to_owned()
    });
    let mut app = axum::Router::new()
        .route_service(protection.metadata_path(), protection.metadata())
        .route_service("/export", protection.layer(axum::Router::new().route("/export", whoami)));
    let mut send = |path, token| app.call(request(path, token));
    assert_eq!(send(PATH, None).await.unwrap().status(), 200);
    let refused = send("/export", None).await.unwrap();
    assert_eq!(refused.status(), 401);
    let challenge = refused.headers()["www-authenticate"].to_str().unwrap().to_owned();
    assert!(challenge.contains(METADATA), "{challenge}");
    assert_eq!(send("/export", Some("narrow")).await.unwrap().status(), 403);
    let passed = send("/export", Some("good")).await.unwrap();
    assert_eq!(passed.into_body().collect().await.unwrap().to_bytes(), "ada");
}

#[tokio::test]
async fn v60_a_service_behind_the_layer_does_not_get_the_token() {
    let script = Script::default().accept("canary-good", "ada", "notes:read");
    let protection = protect(&script).build().unwrap();
    let headers = axum::routing::get(|headers: http::HeaderMap| async move { format!("{headers:?}") });
    let mut app = protection.layer(axum::Router::new().route("/export", headers));
    let request = http::Request::get("/export").header("authorization", "Bearer canary-good");
    let passed = app.call(request.body(axum::body::Body::empty()).unwrap()).await.unwrap();
    assert_eq!(passed.status(), 200);
    let seen = passed.into_body().collect().await.unwrap().to_bytes();
    assert!(!String::from_utf8_lossy(&seen).contains("canary"), "{seen:?}");
}
