//! Responses to requests without a valid token.

use super::{METADATA, NOW, Script, Session, bearer, call, caller, endpoint, plain_server, protect, text};
use crate::wire::{Ask, late};
use bowline_auth::Refusal;
use bowline_http::{HttpOptions, HttpService};
use http::Method;
use serde_json::json;
use std::sync::Arc;

fn script() -> Script {
    Script::default().accept("good", "ada", "notes:read")
}

/// The status and the challenge of the answer to a request.
async fn response(endpoint: &HttpService, ask: Ask) -> (u16, String) {
    let response = ask.send(endpoint).await;
    let challenge = response.headers.get("www-authenticate").map(|value| value.to_str().unwrap().to_owned());
    (response.status.as_u16(), challenge.unwrap_or_default())
}

#[tokio::test]
async fn a_request_without_a_token_learns_where_to_get_one() {
    // proves: AFLOW-04, ADISC-10, ADISC-11, ADISC-26, ADISC-29, ASEC-12
    let endpoint = endpoint(plain_server(), protect(&script()));
    let challenge = format!("Bearer resource_metadata=\"{METADATA}\", scope=\"notes:read\"");
    let expected = (401, challenge);
    for ask in [
        call("list"),
        // Another scheme is no credentials for us, and neither is a token in the URL.
        call("list").header("authorization", "Basic YTpi"),
        call("list").path("/mcp?access_token=good"),
        Ask::new(Method::GET).header("accept", "text/event-stream"),
        Ask::new(Method::DELETE),
        Ask::post(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
        } })),
        Ask::modern("server/discover", json!({})),
    ] {
        assert_eq!(response(&endpoint, ask).await, expected);
    }
    assert_eq!(response(&endpoint, bearer(call("list"), "good")).await, (200, String::new()));
}

#[tokio::test]
async fn a_bad_token_is_told_apart_from_none() {
    // proves: ATOK-04, ATOK-05
    let script = script()
        .add("expired", Err(Refusal::invalid("the token has expired")))
        .add("elsewhere", Ok(Arc::new(bowline_auth::Caller::new("https://evil.example", "ada"))));
    let endpoint = endpoint(plain_server(), protect(&script));
    let challenge =
        format!("Bearer error=\"invalid_token\", resource_metadata=\"{METADATA}\", scope=\"notes:read\"");
    let long = "x".repeat(16 * 1024 + 1);
    for header in [
        "Bearer unknown",
        "bearer expired",
        // A verdict on a caller of an issuer that the endpoint does not trust.
        "Bearer elsewhere",
        "Bearer",
        "Bearer ",
        "Bearer good good",
        "Bearer good, Bearer good",
        &format!("Bearer {long}"),
    ] {
        let ask = call("list").header("authorization", header);
        assert_eq!(response(&endpoint, ask).await, (401, challenge.clone()), "{header:.40}");
    }
    for header in ["Bearer good", "BEARER good", "Bearer  good"] {
        assert_eq!(
            response(&endpoint, call("list").header("authorization", header)).await.0,
            200,
            "{header}"
        );
    }
}

#[tokio::test]
async fn two_authorization_headers_are_a_bad_request() {
    // proves: AFLOW-05
    let endpoint = endpoint(plain_server(), protect(&script()));
    let ask = bearer(call("list"), "good").also("authorization", "Bearer good");
    let challenge =
        format!("Bearer error=\"invalid_request\", resource_metadata=\"{METADATA}\", scope=\"notes:read\"");
    assert_eq!(response(&endpoint, ask).await, (400, challenge));
}

#[tokio::test]
async fn a_token_that_cannot_be_checked_is_not_valid() {
    let script = script().add("unchecked", Err(Refusal::unavailable("the issuer cannot be reached")));
    let endpoint = endpoint(plain_server(), protect(&script));
    let response = bearer(call("list"), "unchecked").send(&endpoint).await;
    assert_eq!((response.status.as_u16(), &response.headers["retry-after"]), (503, &"5".parse().unwrap()));
    assert!(!response.headers.contains_key("www-authenticate"));
}

#[tokio::test]
async fn v123_a_refusal_does_not_wait_for_the_body() {
    let endpoint = endpoint(plain_server(), protect(&script()));
    let (arrives, body) = late();
    let response = call("list").send_with(body, &endpoint).await;
    assert_eq!(response.status, 401);
    drop(arrives);
}

#[tokio::test]
async fn host_and_origin_are_checked_before_the_token() {
    let script = script();
    let options = HttpOptions::new().origins(["https://app.example"]).cors().protect(protect(&script));
    let endpoint = HttpService::with_options(plain_server().build().unwrap(), options);
    let good = || bearer(call("list"), "good");
    assert_eq!(response(&endpoint, good().header("host", "evil.example")).await.0, 403);
    assert_eq!(response(&endpoint, good().header("origin", "https://evil.example")).await.0, 403);
    assert_eq!(script.asked(), 0);
    // A page of a listed origin can read the challenge, and its preflight needs no token.
    let refused = call("list").header("origin", "https://app.example").send(&endpoint).await;
    assert_eq!(refused.status, 401);
    let exposed = refused.headers["access-control-expose-headers"].to_str().unwrap();
    assert!(exposed.contains("WWW-Authenticate"), "{exposed}");
    let preflight = Ask::new(Method::OPTIONS)
        .header("origin", "https://app.example")
        .header("access-control-request-method", "POST");
    assert_eq!(response(&endpoint, preflight).await.0, 204);
}

#[tokio::test]
async fn skew_of_clocks_is_tolerated_for_a_minute() {
    let script = Script::default()
        .add("60", Ok(Arc::new(caller("ada", "notes:read").with_expiry(NOW - 60))))
        .add("61", Ok(Arc::new(caller("ada", "notes:read").with_expiry(NOW - 61))));
    let endpoint = endpoint(plain_server(), protect(&script));
    assert_eq!(response(&endpoint, bearer(call("list"), "60")).await.0, 200);
    assert_eq!(response(&endpoint, bearer(call("list"), "61")).await.0, 401);
}

#[tokio::test]
async fn every_request_of_a_session_needs_its_token() {
    // proves: ATOK-04, SEC-23
    let endpoint = endpoint(plain_server(), protect(&script()));
    let session = Session::open(&endpoint, "2025-11-25", "good").await;
    let list = || session.request(1, "tools/call", &json!({ "name": "list" }));
    for ask in [list(), session.get(), session.with(Ask::new(Method::DELETE))] {
        assert_eq!(response(&endpoint, ask).await.0, 401);
    }
    for ask in [list(), session.get()] {
        assert_eq!(response(&endpoint, bearer(ask, "old")).await.0, 401);
    }
    let answer = bearer(list(), "good").send(&endpoint).await.json().await;
    assert_eq!(text(&answer), "none");
    assert_eq!(response(&endpoint, bearer(session.with(Ask::new(Method::DELETE)), "good")).await.0, 204);
}

#[tokio::test]
async fn v57_no_token_is_in_a_log_an_error_or_debug_output() {
    let (log, _guard) = bowline_testing::Log::start();
    let script = Script::default().accept("canary-good", "ada", "notes:read");
    let service = endpoint(plain_server(), protect(&script));
    let session = Session::open(&service, "2025-11-25", "canary-good").await;
    for token in ["canary-good", "canary-bad", "canary-mal formed"] {
        for ask in [call("list"), session.get(), session.request(1, "tools/list", &json!({}))] {
            let response = bearer(ask, token).send(&service).await;
            assert!(!format!("{:?}", response.headers).contains("canary"));
            if !response.is_stream() {
                assert!(!response.json().await.to_string().contains("canary"));
            }
        }
    }
    assert!(!format!("{service:?} {:?}", protect(&script)).contains("canary-"));
    assert_eq!(log.count(&["canary"]), 0, "{:?}", log.lines());
}
