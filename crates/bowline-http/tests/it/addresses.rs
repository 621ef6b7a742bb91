//! Which hosts and origins are answered, and how the others are refused.

use crate::wire::Ask;
use bowline_http::{Body, HttpOptions, HttpService, RequestFilter};
use bowline_server::{BoxFuture, Server, Tool};
use bowline_testing::Log;
use http::{Method, Response, StatusCode, request::Parts};
use serde_json::json;

fn endpoint(settings: HttpOptions) -> HttpService {
    let server = Server::new("s").tool(Tool::new("now").handler(|| "now"));
    HttpService::with_options(server.build().unwrap(), settings)
}

fn call() -> Ask {
    Ask::modern("tools/call", json!({ "name": "now" }))
}

#[tokio::test]
async fn a_refusal_names_the_host_and_the_setting_and_is_logged_once() {
    let (log, _guard) = Log::start();
    let endpoint =
        endpoint(HttpOptions::new().setting_names("gateway.allowed_hosts", "gateway.allowed_origins"));
    for _ in 0..3 {
        let response = call().header("host", "10.0.0.5:7337").send(&endpoint).await;
        assert_eq!(response.status, StatusCode::FORBIDDEN);
        assert_eq!(
            response.json().await["error"]["message"],
            "host `10.0.0.5` is not allowed; add it to `gateway.allowed_hosts`"
        );
    }
    let response = call().header("origin", "https://app.example.com").send(&endpoint).await;
    assert_eq!(
        response.json().await["error"]["message"],
        "origin `https://app.example.com` is not allowed; add it to `gateway.allowed_origins`"
    );
    assert_eq!(log.count(&["WARN", "host `10.0.0.5`"]), 1, "{:?}", log.lines());
    // A client that makes names up fills neither the log nor memory.
    for number in 0..500 {
        call().header("host", &format!("made-up-{number}")).send(&endpoint).await;
    }
    assert!(log.count(&["WARN", "is not allowed"]) <= 64);
    assert_eq!(log.count(&["further ones are not logged"]), 1);
}

#[tokio::test]
async fn every_host_can_be_allowed() {
    let endpoint = endpoint(HttpOptions::new().any_host());
    for host in ["10.0.0.5:7337", "mcp.example.com", "[2001:db8::1]:80"] {
        assert_eq!(call().header("host", host).send(&endpoint).await.status, StatusCode::OK, "{host}");
    }
    let page = call().header("host", "10.0.0.5").header("origin", "http://evil.com");
    assert_eq!(page.send(&endpoint).await.status, StatusCode::FORBIDDEN);
    assert_eq!(call().header("host", "user@x").send(&endpoint).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_address_of_the_socket_is_a_host() {
    let settings = HttpOptions::new().listening_on("10.0.0.5:7337".parse().unwrap());
    let named = endpoint(settings.listening_on("[2001:db8::1]:7337".parse().unwrap()));
    for (host, status) in [("10.0.0.5:7337", 200), ("[2001:db8::1]", 200), ("10.0.0.6", 403)] {
        assert_eq!(call().header("host", host).send(&named).await.status, status, "{host}");
    }
    let all = endpoint(HttpOptions::new().listening_on("0.0.0.0:7337".parse().unwrap()));
    assert_eq!(call().header("host", "0.0.0.0").send(&all).await.status, StatusCode::FORBIDDEN);
}

#[derive(Debug)]
struct Health;

impl RequestFilter for Health {
    fn check<'a>(&'a self, _: &'a mut Parts) -> BoxFuture<'a, Option<Response<Body>>> {
        Box::pin(std::future::ready(None))
    }

    fn check_any_host(&self, request: &Parts) -> Option<Response<Body>> {
        (request.method == Method::GET).then(|| Response::new(Body::from("ok")))
    }
}

#[tokio::test]
async fn a_health_check_needs_no_host() {
    let endpoint = endpoint(HttpOptions::new().filter(Health));
    let get = || Ask::new(Method::GET);
    assert_eq!(get().header("host", "10.0.0.5").send(&endpoint).await.status, StatusCode::OK);
    assert_eq!(get().without("host").send(&endpoint).await.status, StatusCode::OK);
    for (name, value) in [("origin", "http://evil.com"), ("sec-fetch-site", "cross-site")] {
        assert_eq!(get().header(name, value).send(&endpoint).await.status, StatusCode::FORBIDDEN, "{name}");
    }
}

const PAGE: &str = "https://app.example.com";

fn preflight(origin: &str) -> Ask {
    Ask::new(Method::OPTIONS)
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type,mcp-param-region")
        .header("access-control-request-private-network", "true")
}

#[tokio::test]
async fn a_preflight_of_a_named_origin_is_answered() {
    let endpoint = endpoint(HttpOptions::new().origins([PAGE]).cors());
    let response = preflight(PAGE).send(&endpoint).await;
    assert_eq!(response.status, StatusCode::NO_CONTENT);
    for (name, value) in [
        ("access-control-allow-origin", PAGE),
        ("access-control-allow-methods", "GET, POST, DELETE"),
        ("access-control-allow-headers", "authorization,content-type,mcp-param-region"),
        ("access-control-allow-private-network", "true"),
        ("vary", "Origin"),
    ] {
        assert_eq!(response.headers[name], value);
    }
    let response = call().header("origin", PAGE).header("sec-fetch-site", "cross-site").send(&endpoint).await;
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(response.headers["access-control-allow-origin"], PAGE);
    assert!(response.headers["access-control-expose-headers"].to_str().unwrap().contains("Mcp-Session-Id"));
    // What a page asks for is repeated only if it is a list of names.
    let odd = preflight(PAGE).header("access-control-request-headers", "a\"b").send(&endpoint).await;
    assert!(!odd.headers.contains_key("access-control-allow-headers"));
}

#[tokio::test]
async fn other_pages_get_no_header_of_cors() {
    let with = endpoint(HttpOptions::new().origins([PAGE]).cors());
    let without = endpoint(HttpOptions::new().origins([PAGE]));
    let own = "http://localhost:8080";
    for (endpoint, origin, status) in
        [(&with, "http://evil.com", 403), (&with, "null", 403), (&with, own, 405), (&without, PAGE, 405)]
    {
        let response = preflight(origin).send(endpoint).await;
        assert_eq!(response.status, status, "{origin}");
        let is_cors = |name: &http::HeaderName| name.as_str().starts_with("access-control-");
        assert!(!response.headers.keys().any(is_cors), "{origin}: {:?}", response.headers);
    }
    assert!(!call().send(&without).await.headers.contains_key("vary"));
}
