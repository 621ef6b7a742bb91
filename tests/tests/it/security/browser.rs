//! Web pages that try to use a server on the machine of whoever looks at them.

use super::support::{Endpoint, Request};
use bowline_http::HttpOptions;
use bytes::Bytes;
use serde_json::json;
use tokio::net::TcpStream;

/// Every way in: a call, the opening of a session, its stream, its end, a preflight, and the stream of 2024-11-05.
fn ways_in(session: &str) -> Vec<Request> {
    vec![
        Request::call("hit", json!({})),
        Request::hello("2025-11-25"),
        Request::in_session(session, &json!(1), "hit", json!({})),
        Request::stream(session, None),
        Request::new("DELETE").set("Mcp-Session-Id", session),
        Request::new("OPTIONS").set("Access-Control-Request-Method", "POST"),
        Request::new("GET").target("/sse").set("Accept", "text/event-stream"),
        Request::call("hit", json!({})).target("/sse?sessionId=x"),
    ]
}

/// Every way in is refused with one of `statuses` once `spoil` has changed the request, and nothing has happened.
async fn refused(endpoint: &Endpoint, session: &str, statuses: &[u16], spoil: impl Fn(Request) -> Request) {
    for request in ways_in(session) {
        let request = spoil(request);
        let reply = endpoint.send(&request).await;
        assert!(statuses.contains(&reply.status), "{request:?}: {reply:?}");
        assert_eq!(reply.header("mcp-session-id"), None);
    }
    assert_eq!((endpoint.ran(), endpoint.service.sessions()), (0, 1), "nothing ran, opened or ended");
}

/// With the defaults, and all ways in.
async fn target() -> (Endpoint, String) {
    let endpoint = Endpoint::with(HttpOptions::new().sse_path("/sse")).await;
    let session = endpoint.open("2025-11-25").await;
    (endpoint, session)
}

#[tokio::test]
async fn v01_dns_rebinding_is_refused() {
    // proves: HTTP-08
    let (endpoint, session) = target().await;
    let port = endpoint.address.port();
    for host in [
        "evil.com",
        "evil.com:8080",
        "127.0.0.1.evil.com",
        "localhost.",
        "localhost.evil.com",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "127.1",
        "127.000.000.001",
        "2130706433",
        "0x7f.0.0.1",
        "0",
        "0.0.0.0",
        "[::]",
        "xn--lcalhost-54a",
        "l\u{f6}calhost",
        "*",
    ] {
        refused(&endpoint, &session, &[403, 400], |request| request.set("Host", host)).await;
        let with_port = format!("{host}:{port}");
        refused(&endpoint, &session, &[403, 400], |request| request.set("Host", &with_port)).await;
    }
    endpoint.is_alive().await;
}

#[tokio::test]
async fn v01_a_host_that_is_not_exactly_one_plain_name_is_refused() {
    let (endpoint, session) = target().await;
    for host in
        ["user@127.0.0.1", "evil.com@localhost", "localhost@evil.com", "", "local host", "localhost/x"]
    {
        refused(&endpoint, &session, &[400], |request| request.set("Host", host)).await;
    }
    refused(&endpoint, &session, &[400], |request| request.without("Host")).await;
    refused(&endpoint, &session, &[400], |request| request.without("Host").version("HTTP/1.0")).await;
    refused(&endpoint, &session, &[400], |request| request.add("Host", "localhost")).await;
    refused(&endpoint, &session, &[400], |request| request.add("host", "evil.com")).await;
    // Names that proxies add are nobody's.
    refused(&endpoint, &session, &[403], |request| {
        request
            .set("Host", "evil.com")
            .add("X-Forwarded-Host", "localhost")
            .add("Forwarded", "host=localhost")
    })
    .await;
    endpoint.is_alive().await;
}

#[tokio::test]
async fn v01_an_absolute_url_target_must_match_the_host() {
    let (endpoint, _session) = target().await;
    let call = || Request::call("hit", json!({}));
    let address = endpoint.address;
    for (request, status) in [
        (call().target("http://evil.com/mcp"), 400),
        (call().target("http://evil.com/mcp").set("Host", "evil.com"), 403),
        (call().target(&format!("http://{address}/mcp")).set("Host", "evil.com"), 400),
        (call().target(&format!("http://user@{address}/mcp")), 400),
    ] {
        let reply = endpoint.send(&request).await;
        assert_eq!(reply.status, status, "{request:?}: {reply:?}");
    }
    assert_eq!(endpoint.ran(), 0);
    let right = endpoint.send(&call().target(&format!("http://{address}/mcp"))).await;
    assert_eq!((right.status, endpoint.ran()), (200, 1), "{right:?}");
}

#[tokio::test]
async fn v01_the_names_of_this_machine_are_answered() {
    // proves: HTTP-06
    let (endpoint, _session) = target().await;
    let port = endpoint.address.port();
    for host in ["localhost", "LOCALHOST", "127.0.0.1", "[::1]"] {
        for host in [host.to_owned(), format!("{host}:{port}")] {
            let reply = endpoint.send(&Request::call("hit", json!({})).set("Host", &host)).await;
            assert_eq!(reply.status, 200, "{host}: {reply:?}");
        }
    }
}

#[tokio::test]
async fn v01_pages_of_other_origins_are_refused() {
    // proves: HTTP-03, HTTP-04
    let (endpoint, session) = target().await;
    let port = endpoint.address.port();
    for origin in [
        "null".to_owned(),
        "http://evil.com".to_owned(),
        "https://evil.com".to_owned(),
        "http://127.0.0.1".to_owned(),
        format!("http://127.0.0.1:{}", port.wrapping_add(1)),
        format!("http://localhost:{port}"),
        format!("http://127.0.0.1.:{port}"),
        format!("http://127.0.0.1:{port}.evil.com"),
        format!("http://user@127.0.0.1:{port}"),
        format!("ftp://127.0.0.1:{port}"),
        format!("127.0.0.1:{port}"),
        "file://".to_owned(),
        "chrome-extension://abcdef".to_owned(),
        "http://xn--lcalhost-54a".to_owned(),
        String::new(),
        "*".to_owned(),
        format!("http://127.0.0.1:{port} http://evil.com"),
    ] {
        refused(&endpoint, &session, &[403], |request| request.set("Origin", &origin)).await;
    }
    let own = format!("http://127.0.0.1:{port}");
    refused(&endpoint, &session, &[403], |request| {
        request.add("Origin", &own).add("Origin", "http://evil.com")
    })
    .await;
    let reply = endpoint.send(&Request::call("hit", json!({})).set("Origin", &own)).await;
    assert_eq!((reply.status, endpoint.ran()), (200, 1), "its own pages may call");
}

#[tokio::test]
async fn v01_a_blank_or_wildcard_setting_allows_nothing() {
    for blank in ["", " ", "*"] {
        let settings = HttpOptions::new().hosts([blank]).origins([blank]).sse_path("/sse");
        let endpoint = Endpoint::with(settings).await;
        let session = endpoint.open("2025-11-25").await;
        refused(&endpoint, &session, &[400, 403], |request| request.set("Host", "evil.com")).await;
        refused(&endpoint, &session, &[403], |request| request.set("Origin", "http://evil.com")).await;
        refused(&endpoint, &session, &[403], |request| request.set("Origin", "")).await;
        refused(&endpoint, &session, &[403], |request| request.set("Origin", "null")).await;
    }
}

#[tokio::test]
async fn v01_refused_before_the_body_is_read() {
    let endpoint = Endpoint::new().await;
    let mut wire = endpoint.connect().await;
    let announced = Request::call("hit", json!({})).set("Host", "evil.com").set("Content-Length", "1000000");
    let bytes = announced.bytes(endpoint.address);
    let head = super::support::find(&bytes, b"\r\n\r\n").unwrap() + 4;
    wire.write(&bytes[..head]).await;
    assert_eq!(wire.reply().await.status, 403);
}

/// One request of HTTP/2: its `:authority`, and a `host` besides.
async fn h2(endpoint: &Endpoint, authority: &str, host: Option<&str>, origin: Option<&str>) -> u16 {
    let stream = TcpStream::connect(endpoint.address).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let call = Request::call("hit", json!({}));
    let mut request = http::Request::builder()
        .method("POST")
        .uri(format!("http://{authority}/mcp"))
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "hit");
    if let Some(host) = host {
        request = request.header("host", host);
    }
    if let Some(origin) = origin {
        request = request.header("origin", origin);
    }
    let (response, mut body) = client.send_request(request.body(()).unwrap(), false).unwrap();
    // The server may have answered and closed the stream already.
    drop(body.send_data(Bytes::from(call.body), true));
    let status = response.await.unwrap().status().as_u16();
    connection.abort();
    status
}

#[tokio::test]
async fn v01_the_authority_of_http2_must_match_the_host() {
    let endpoint = Endpoint::new().await;
    let ours = endpoint.address.to_string();
    for (authority, host, origin, status) in [
        ("evil.com", None, None, 403),
        ("evil.com", Some(ours.as_str()), None, 400),
        (ours.as_str(), Some("evil.com"), None, 400),
        ("evil.com", Some("evil.com"), None, 403),
        (ours.as_str(), None, Some("http://evil.com"), 403),
        (ours.as_str(), None, Some("null"), 403),
    ] {
        assert_eq!(h2(&endpoint, authority, host, origin).await, status, "{authority} {host:?} {origin:?}");
    }
    assert_eq!(endpoint.ran(), 0);
    assert_eq!(h2(&endpoint, &ours, None, None).await, 200);
    assert_eq!(h2(&endpoint, &ours, Some(&ours), None).await, 200);
    assert_eq!(endpoint.ran(), 2);
}

#[tokio::test]
async fn v02_a_simple_cross_site_post_runs_nothing() {
    let endpoint = Endpoint::with(HttpOptions::new().sse_path("/sse")).await;
    for kind in [
        Some("text/plain"),
        Some("text/plain; application/json"),
        Some("text/plain;charset=application/json"),
        Some("application/x-www-form-urlencoded"),
        Some("multipart/form-data; boundary=application/json"),
        Some("application/jsonp"),
        Some("application/json-rpc"),
        Some("text/json"),
        Some(""),
        None,
    ] {
        for call in [Request::call("hit", json!({})), Request::hello("2025-06-18")] {
            let call = match kind {
                Some(kind) => call.set("Content-Type", kind),
                None => call.without("Content-Type"),
            };
            let reply = endpoint.send(&call).await;
            assert_eq!(reply.status, 415, "{kind:?}: {reply:?}");
        }
    }
    for (first, second) in [("application/json", "text/plain"), ("text/plain", "application/json")] {
        let call = Request::call("hit", json!({})).set("Content-Type", first).add("Content-Type", second);
        assert_eq!(endpoint.send(&call).await.status, 415, "{first}, {second}");
    }
    assert_eq!((endpoint.ran(), endpoint.service.sessions()), (0, 0));
    for kind in ["application/json;charset=utf-8", "Application/JSON ; charset=\"utf-8\""] {
        let reply = endpoint.send(&Request::call("hit", json!({})).set("Content-Type", kind)).await;
        assert_eq!(reply.status, 200, "{kind}: {reply:?}");
    }
}

#[tokio::test]
async fn v02_cross_site_loads_are_refused() {
    let (endpoint, session) = target().await;
    // Images, scripts and navigations come without `Origin`.
    for site in ["cross-site", "same-site", "CROSS-SITE", "unheard-of"] {
        refused(&endpoint, &session, &[403], |request| request.set("Sec-Fetch-Site", site)).await;
    }
    for site in ["same-origin", "none"] {
        let reply = endpoint.send(&Request::call("hit", json!({})).set("Sec-Fetch-Site", site)).await;
        assert_eq!(reply.status, 200, "{site}");
    }
}

#[tokio::test]
async fn v03_no_response_allows_other_origins_to_read() {
    // Every reply that any of these tests reads is looked at for such headers; here the askers a page has.
    let listed = "https://app.example.com";
    let endpoint = Endpoint::with(HttpOptions::new().origins([listed]).sse_path("/sse")).await;
    let session = endpoint.open("2025-11-25").await;
    for origin in ["http://evil.com", "null", listed] {
        for target in ["/mcp", "/sse", "/elsewhere"] {
            let preflight = Request::new("OPTIONS")
                .target(target)
                .set("Origin", origin)
                .set("Access-Control-Request-Method", "POST")
                .set("Access-Control-Request-Headers", "content-type, mcp-session-id")
                .set("Access-Control-Request-Private-Network", "true");
            let reply = endpoint.send(&preflight).await;
            assert!(!(200..300).contains(&reply.status), "{origin}: {reply:?}");
        }
        let mut wire = endpoint.connect().await;
        let get = Request::stream(&session, None).set("Origin", origin);
        wire.write(&get.bytes(endpoint.address)).await;
        assert_eq!(wire.head().await.status, if origin == listed { 200 } else { 403 });
    }
}

#[tokio::test]
async fn v04_there_is_no_websocket_to_hijack() {
    let endpoint = Endpoint::with(HttpOptions::new().sse_path("/sse")).await;
    let own = format!("http://{}", endpoint.address);
    for (host, origin) in [
        ("{address}", "http://evil.com"),
        ("evil.com", "http://evil.com"),
        ("{address}", "null"),
        ("{address}", own.as_str()),
    ] {
        let upgrade = Request::new("GET")
            .set("Host", host)
            .set("Origin", origin)
            .set("Connection", "Upgrade")
            .set("Upgrade", "websocket")
            .set("Sec-WebSocket-Version", "13")
            .set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
        let reply = endpoint.send(&upgrade).await;
        let expected = if origin == own { 400 } else { 403 };
        assert_eq!(reply.status, expected, "{host} {origin}: {reply:?}");
    }
    assert_eq!(endpoint.service.sessions(), 0);
}
