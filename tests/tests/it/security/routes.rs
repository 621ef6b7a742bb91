//! What is mounted where: one endpoint, and nothing beside it.

use super::support::{Endpoint, Request};
use bowline_http::HttpOptions;
use serde_json::json;

#[tokio::test]
async fn v07_only_the_endpoint_is_served() {
    let endpoint = Endpoint::new().await;
    for target in [
        "/",
        "/mcp/",
        "/mcp/x",
        "//mcp",
        "/MCP",
        "/%6dcp",
        "/mcp%2f",
        "/mcp;x",
        "/./mcp",
        "/x/../mcp",
        "/sse",
        "/message",
        "/messages",
        "/mcp_message",
        "/health",
        "/metrics",
        "/.well-known/mcp",
        "/api/mcp/connect",
    ] {
        for request in [
            Request::call("hit", json!({})),
            Request::hello("2025-06-18"),
            Request::new("GET").set("Accept", "text/event-stream"),
            Request::new("DELETE"),
        ] {
            let reply = endpoint.send(&request.target(target)).await;
            assert_eq!(reply.status, 404, "{target}: {reply:?}");
        }
    }
    assert_eq!((endpoint.ran(), endpoint.service.sessions()), (0, 0));
    let queried = endpoint.send(&Request::call("hit", json!({})).target("/mcp?x=1")).await;
    assert_eq!(queried.status, 200);
}

#[tokio::test]
async fn v07_only_the_methods_of_the_protocol_have_a_meaning() {
    let endpoint = Endpoint::with(HttpOptions::new().sse_path("/sse")).await;
    for target in ["/mcp", "/sse"] {
        for method in ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "post", "CALL"] {
            let mut wire = endpoint.connect().await;
            let request = Request::new(method).target(target);
            wire.write(&request.bytes(endpoint.address)).await;
            assert_eq!(wire.head().await.status, 405, "{method} {target}");
        }
    }
    let mut wire = endpoint.connect().await;
    wire.write(b"CONNECT evil.com:443 HTTP/1.1\r\nHost: evil.com:443\r\n\r\n").await;
    assert!(wire.head().await.status >= 400, "it is no proxy");
    assert_eq!((endpoint.ran(), endpoint.service.sessions()), (0, 0));
}
