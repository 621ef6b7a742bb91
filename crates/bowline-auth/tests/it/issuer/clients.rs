//! Dynamic registration and client ID metadata documents.

use super::*;
use bowline_auth::{
    Redirects,
    issuer::{DocumentReply, MAX_BODY, MAX_DOCUMENT},
};

const DOCUMENT_URL: &str = "https://client.example/app.json";

fn document() -> Value {
    json!({ "client_id": DOCUMENT_URL, "client_name": "Notes <b>", "redirect_uris": [REDIRECT],
        "grant_types": ["authorization_code", "refresh_token"] })
}

fn reply<'a>(body: &'a [u8], cache_control: Option<&'a str>) -> DocumentReply<'a> {
    DocumentReply { status: 200, content_type: Some("application/json; charset=utf-8"), cache_control, body }
}

/// Asks with the document as client, and returns the page.
fn ask(world: &mut World, fetched: Result<DocumentReply<'_>, &str>, redirect_uri: &str) -> Response<Vec<u8>> {
    let query = encoded(&asking_with(DOCUMENT_URL, "redirect_uri", redirect_uri));
    let request = Request::get(format!("/authorize?{query}")).body(Vec::new()).unwrap();
    let moment = world.moment();
    let Step::Fetch(wanted) = world.server.answer(&request, &moment) else { panic!("nothing is fetched") };
    assert_eq!((wanted.url.as_str(), wanted.redirects), (DOCUMENT_URL, Redirects::None));
    world.server.put_document(DOCUMENT_URL, fetched, &moment);
    match world.server.answer(&request, &moment) {
        Step::Done(response) => response,
        Step::Fetch(_) => panic!("it was fetched"),
    }
}

// proves: AREG-14, AREG-16
#[test]
fn a_url_as_client_id_is_fetched_and_used() {
    let mut world = World::new();
    let body = document().to_string();
    let page = ask(&mut world, Ok(reply(body.as_bytes(), None)), REDIRECT);
    let shown = text(&page);
    assert!(shown.contains("Notes &lt;b&gt;") && shown.contains(DOCUMENT_URL), "{shown}");
    let tokens = world.log_in(DOCUMENT_URL);
    assert_eq!(world.claims(&tokens).text("client_id"), Ok(Some(DOCUMENT_URL)));
    let refreshed = world.refresh(DOCUMENT_URL, tokens["refresh_token"].as_str().unwrap());
    assert_eq!(refreshed.status(), StatusCode::OK);
    let mut other = World::new();
    let page = ask(&mut other, Ok(reply(body.as_bytes(), None)), "https://evil.com/cb");
    assert_eq!(page.status(), StatusCode::BAD_REQUEST);
    assert!(text(&page).contains("redirect_uri"), "{}", text(&page));
}

// proves: AREG-15, AREG-17, AREG-10, ASEC-11
#[test]
fn v65_a_bad_document_is_refused() {
    let with = |name: &str, value: Value| {
        let mut document = document();
        document[name] = value;
        document.to_string()
    };
    let without = |name: &str| {
        let mut document = document();
        document.as_object_mut().unwrap().remove(name);
        document.to_string()
    };
    let check = |fetched: Result<DocumentReply<'_>, &str>, reason: &str| {
        let page = ask(&mut World::new(), fetched, REDIRECT);
        assert_eq!(page.status(), StatusCode::BAD_REQUEST, "{reason}");
        assert!(text(&page).contains(reason), "{reason} in {}", text(&page));
    };
    let refused = |body: &str, reason: &str| check(Ok(reply(body.as_bytes(), None)), reason);
    refused(&with("client_id", json!("https://client.example/other.json")), "is not its URL");
    refused(&with("client_id", json!("https://client.example/app.json/")), "is not its URL");
    refused(&without("client_id"), "is not its URL");
    refused(&without("client_name"), "client_name");
    refused(&without("redirect_uris"), "redirect_uris");
    refused(&with("redirect_uris", json!(["javascript:alert(1)"])), "redirect_uris");
    refused(&with("client_secret", json!("x")), "client secret");
    refused(&with("token_endpoint_auth_method", json!("client_secret_post")), "needs a secret");
    refused("[]", "client document");
    refused("not JSON", "client document");
    refused(&with("x", json!("y".repeat(MAX_DOCUMENT))), "longer than");
    let body = document().to_string();
    check(Ok(DocumentReply { status: 302, ..reply(body.as_bytes(), None) }), "status 302");
    check(
        Ok(DocumentReply { content_type: Some("text/html"), ..reply(body.as_bytes(), None) }),
        "Content-Type",
    );
    check(Err("`10.0.0.5` is a private address"), "private address");
    for id in [
        "http://client.example/app.json",
        "https://client.example",
        "https://client.example/",
        "https://client.example/a?b",
        "https://client.example/../a",
        "https://me@client.example/a",
    ] {
        let response =
            World::new().get(&format!("/authorize?{}", encoded(&asking_with(id, "client_id", id))));
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{id}");
    }
}

// proves: AREG-18
#[test]
fn a_document_is_used_as_long_as_its_server_allows() {
    for (cache_control, fresh_for) in [
        (Some("max-age=1000"), 1000),
        (None, 300),
        (Some("no-store"), 0),
        (Some("no-cache, max-age=9"), 0),
        (Some("max-age=9999999"), 86_400),
    ] {
        let mut world = World::new();
        let body = document().to_string();
        ask(&mut world, Ok(reply(body.as_bytes(), cache_control)), REDIRECT);
        let request =
            Request::get(format!("/authorize?{}", encoded(&asking(DOCUMENT_URL)))).body(Vec::new()).unwrap();
        world.now += fresh_for;
        let moment = world.moment();
        assert!(matches!(world.server.answer(&request, &moment), Step::Done(_)), "{cache_control:?}");
        world.now += 1;
        let moment = world.moment();
        assert!(matches!(world.server.answer(&request, &moment), Step::Fetch(_)), "{cache_control:?}");
    }
    // A refused document is fetched again at the next request.
    let mut world = World::new();
    ask(&mut world, Err("unreachable"), REDIRECT);
    let body = document().to_string();
    assert_eq!(ask(&mut world, Ok(reply(body.as_bytes(), None)), REDIRECT).status(), StatusCode::OK);
}

#[test]
fn v65_many_registrations_do_not_push_out_a_client_that_is_used() {
    let mut world = World::new();
    let client = world.client();
    let tokens = world.log_in(&client);
    let forgotten = world.client();
    let body =
        json!({ "redirect_uris": [REDIRECT], "client_name": "x".repeat(5000) }).to_string().into_bytes();
    let request = Request::post("/register").body(body).unwrap();
    for _ in 0..5_000 {
        assert_eq!(world.send(&request).status(), StatusCode::CREATED);
    }
    let refreshed = world.refresh(&client, tokens["refresh_token"].as_str().unwrap());
    assert_eq!(refreshed.status(), StatusCode::OK);
    let page = world.get(&format!("/authorize?{}", encoded(&asking(&forgotten))));
    assert_eq!(page.status(), StatusCode::BAD_REQUEST, "unused clients are dropped");
    let huge = Request::post("/register").body(vec![b' '; MAX_BODY + 1]).unwrap();
    assert_eq!(world.send(&huge).status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[test]
fn a_client_that_never_logs_in_is_forgotten_after_an_hour() {
    let mut world = World::new();
    let client = world.client();
    world.now += 3601;
    let page = world.get(&format!("/authorize?{}", encoded(&asking(&client))));
    assert!(text(&page).contains("not registered"), "{}", text(&page));
}

#[test]
fn v65_html_in_names_is_shown_as_text() {
    let mut world = World::new();
    let registered = world.register(&json!({ "client_name": "<img src=x onerror=alert(1)>\u{202e}",
        "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none" }));
    let client = registered["client_id"].as_str().unwrap();
    let page = text(&world.get(&format!("/authorize?{}", encoded(&asking(client)))));
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;") && !page.contains("<img"), "{page}");
    assert!(!page.contains('\u{202e}'));
}

#[test]
fn a_page_of_another_origin_can_register_and_get_tokens() {
    let mut world = World::new();
    for path in ["/register", "/token", "/revoke", "/jwks", "/.well-known/oauth-authorization-server"] {
        let preflight = world.send(&Request::options(path).body(Vec::new()).unwrap());
        assert_eq!(preflight.status(), StatusCode::NO_CONTENT, "{path}");
        assert_eq!(preflight.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], "*");
    }
    let refused = world.send(&Request::options("/authorize").body(Vec::new()).unwrap());
    assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
}
