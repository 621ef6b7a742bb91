//! Authorization requests: what is shown, what is refused, and where the result goes.

use super::*;

// proves: ADISC-16, ADISC-17, AFLOW-10, AFLOW-29, XCC-03
#[test]
fn the_metadata_is_at_both_well_known_paths() {
    let mut world = World::new();
    for path in ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"] {
        let response = world.get(path);
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        let document = json_of(&response);
        assert_eq!(document["issuer"], ISSUER);
        assert_eq!(document["authorization_endpoint"], format!("{ISSUER}/authorize"));
        assert_eq!(document["token_endpoint"], format!("{ISSUER}/token"));
        assert_eq!(document["code_challenge_methods_supported"], json!(["S256"]));
        assert_eq!(document["authorization_response_iss_parameter_supported"], true);
        assert_eq!(document["client_id_metadata_document_supported"], true);
        assert!(
            document["token_endpoint_auth_methods_supported"].to_string().contains("client_secret_basic")
        );
    }
    let keys = json_of(&world.get("/jwks"));
    assert_eq!((&keys["keys"][0]["kty"], &keys["keys"][0]["d"]), (&json!("EC"), &Value::Null));
    assert_eq!(world.get("/other").status(), StatusCode::NOT_FOUND);
}

#[test]
fn an_issuer_with_a_path_has_its_endpoints_below_it() {
    let key = SigningKey::generate_es256().unwrap();
    let server = AuthorizationServer::new("https://as.example/tenant/", key).unwrap();
    for path in [
        "/.well-known/oauth-authorization-server/tenant",
        "/.well-known/openid-configuration/tenant",
        "/tenant/.well-known/openid-configuration",
        "/tenant/authorize",
    ] {
        assert!(server.has_path(path), "{path}");
    }
    for path in ["/authorize", "/.well-known/oauth-authorization-server", "/tenant", "/tenants/token"] {
        assert!(!server.has_path(path), "{path}");
    }
}

// proves: ASEC-02
#[test]
fn an_issuer_without_tls_is_only_possible_at_a_loopback_address() {
    let new = |issuer: &str| AuthorizationServer::new(issuer, SigningKey::generate_es256().unwrap());
    for issuer in ["http://localhost:1", "http://127.0.0.1", "http://[::1]:9", "https://as.example"] {
        new(issuer).unwrap();
    }
    for issuer in ["http://as.example", "http://10.0.0.5:80", "http://localhost.evil.com"] {
        new(issuer).unwrap_err();
    }
}

// proves: AFLOW-28, ASEC-10
#[test]
fn a_user_who_agrees_is_sent_to_the_client_with_code_state_and_issuer() {
    let mut world = World::new();
    let client = world.client();
    let page = world.get(&format!("/authorize?{}", encoded(&asking(&client))));
    let shown = text(&page);
    for expected in
        ["<b>App</b>", "<b><code>app.example</code></b>", "notes:write", RESOURCE, ">Allow<", ">Deny<"]
    {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
    assert!(!shown.contains("program on this computer"));
    let sent = world.consent(&asking(&client), "allow");
    assert!(value(&sent, "code").unwrap().len() >= 43);
    assert_eq!((value(&sent, "state"), value(&sent, "iss")), (Some("s t"), Some(ISSUER)));
    assert_eq!(sent.len(), 3);
    let sent = world.consent(&asking(&client), "deny");
    assert_eq!((value(&sent, "error"), value(&sent, "code")), (Some("access_denied"), None));
    assert_eq!((value(&sent, "state"), value(&sent, "iss")), (Some("s t"), Some(ISSUER)));
}

// proves: ASEC-09
#[test]
fn a_redirect_to_this_machine_comes_with_a_warning() {
    let mut world = World::new();
    let body = json!({ "redirect_uris": ["http://127.0.0.1:1/cb"], "token_endpoint_auth_method": "none" });
    let client = world.register(&body)["client_id"].as_str().unwrap().to_owned();
    let request = asking_with(&client, "redirect_uri", "http://127.0.0.1:50123/cb");
    let page = text(&world.get(&format!("/authorize?{}", encoded(&request))));
    assert!(page.contains("127.0.0.1:50123") && page.contains("program on this computer"), "{page}");
}

#[test]
fn pages_are_not_cached_framed_or_able_to_load_anything() {
    let mut world = World::new();
    let client = world.client();
    let page = world.get(&format!("/authorize?{}", encoded(&asking(&client))));
    let headers = page.headers();
    assert_eq!(headers[header::CACHE_CONTROL], "no-store");
    assert_eq!(headers[header::X_FRAME_OPTIONS], "DENY");
    assert_eq!(headers[header::REFERRER_POLICY], "same-origin");
    let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(!headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN), "no page may read the key in it");
}

// proves: ASEC-06
#[test]
fn a_client_of_an_earlier_start_is_told_what_to_do() {
    let client = World::new().client();
    let page = World::new().get(&format!("/authorize?{}", encoded(&asking(&client))));
    assert_eq!(page.status(), StatusCode::BAD_REQUEST);
    assert!(text(&page).contains("when it is restarted; log out in the program"), "{}", text(&page));
}

#[test]
fn v64_a_bad_client_or_redirect_uri_gives_a_page_and_no_redirect() {
    let mut world = World::new();
    let client = world.client();
    let mut check = |request: &[(&str, &str)]| {
        let response = world.get(&format!("/authorize?{}", encoded(request)));
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{request:?}");
        assert!(!response.headers().contains_key(header::LOCATION), "{request:?}");
        assert!(!text(&response).contains("href"), "{request:?}");
    };
    for uri in [
        "https://app.example/cb/",
        "https://app.example/cb?x=1",
        "https://app.example/cb#x",
        "https://app.example.evil.com/cb",
        "https://evil.com/cb",
        "//evil.com/",
        "/\\evil.com",
        "%2f%2fevil",
        "https://app.example:8443/cb",
        "https://*.example/cb",
        "javascript:alert(1)",
        "null",
        "",
    ] {
        check(&asking_with(&client, "redirect_uri", uri));
    }
    for id in ["", "unknown", "<script>alert(1)</script>", "http://evil.com/client.json"] {
        check(&asking_with(id, "client_id", id));
    }
    let mut twice = asking(&client);
    twice.push(("redirect_uri", "https://evil.com/cb"));
    check(&twice);
    let long = "x".repeat(10_000);
    check(&asking_with(&client, "state", &long));
}

// proves: ASEC-07, AFLOW-28
#[test]
fn v64_errors_are_sent_on_by_the_user_and_not_automatically() {
    let mut world = World::new();
    let client = world.client();
    let request = asking_with(&client, "response_type", "token");
    let response = world.get(&format!("/authorize?{}", encoded(&request)));
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert!(!response.headers().contains_key(header::LOCATION));
    let page = text(&response);
    let link = "href=\"https://app.example/cb?error=unsupported_response_type";
    assert!(page.contains(link) && page.contains("iss=http%3A%2F%2F127.0.0.1%3A4000"), "{page}");
    // A client on this machine gets the error at once.
    let body = json!({ "redirect_uris": ["http://127.0.0.1/cb"], "token_endpoint_auth_method": "none" });
    let client = world.register(&body)["client_id"].as_str().unwrap().to_owned();
    let mut request = asking_with(&client, "response_type", "token");
    request.retain(|(name, _)| *name != "redirect_uri");
    request.push(("redirect_uri", "http://127.0.0.1:9/cb"));
    let response = world.get(&format!("/authorize?{}", encoded(&request)));
    let sent = redirected(&response, "http://127.0.0.1:9/cb");
    assert_eq!(value(&sent, "error"), Some("unsupported_response_type"));
    assert_eq!((value(&sent, "state"), value(&sent, "iss")), (Some("s t"), Some(ISSUER)));
}

// proves: AFLOW-03
#[test]
fn requests_that_oauth_2_1_forbids_are_refused() {
    let mut world = World::with(|server| server.scopes("notes:read notes:write".split(' ').collect()));
    let client = world.client();
    for (name, wrong, code) in [
        ("response_type", "token", "unsupported_response_type"),
        ("response_type", "", "unsupported_response_type"),
        ("response_mode", "fragment", "invalid_request"),
        ("code_challenge", "", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge_method", "", "invalid_request"),
        ("resource", "https://other.example/mcp", "invalid_target"),
        ("resource", "http://127.0.0.1:4000/mcp/", "invalid_target"),
        ("scope", "notes:delete", "invalid_scope"),
        ("scope", "a\"b", "invalid_scope"),
        ("prompt", "none", "interaction_required"),
        ("request", "x.y.z", "request_not_supported"),
    ] {
        let response = world.get(&format!("/authorize?{}", encoded(&asking_with(&client, name, wrong))));
        assert!(
            text(&response).contains(&format!("error={code}&amp;")),
            "{name}={wrong}: {}",
            text(&response)
        );
    }
    let mut two = asking(&client);
    two.push(("resource", "https://other.example/mcp"));
    let response = world.get(&format!("/authorize?{}", encoded(&two)));
    assert!(text(&response).contains("error=invalid_target"));
}

#[test]
fn v55_an_answer_is_taken_once_in_time_and_from_the_own_page() {
    let mut world = World::new();
    let client = world.client();
    let query = format!("/authorize?{}", encoded(&asking(&client)));
    let key = key_of(&world.get(&query));
    let answer = encoded(&[("request", &key), ("user", "ada"), ("decision", "allow")]);
    for (name, value) in [
        ("origin", "https://evil.com"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let request = Request::post("/authorize").header(header::HOST, "127.0.0.1:4000").header(name, value);
        let response = world.send(&request.body(answer.clone().into_bytes()).unwrap());
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{name}: {value}");
    }
    let own = Request::post("/authorize")
        .header(header::HOST, "127.0.0.1:4000")
        .header(header::ORIGIN, ISSUER)
        .header("sec-fetch-site", "same-origin");
    let response = world.send(&own.body(answer.into_bytes()).unwrap());
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    let parameters = [("request", key.as_str()), ("decision", "allow")];
    assert_eq!(world.post("/authorize", &parameters).status(), StatusCode::BAD_REQUEST, "used");
    let key = key_of(&world.get(&query));
    world.now += 601;
    let parameters = [("request", key.as_str()), ("decision", "allow")];
    assert_eq!(world.post("/authorize", &parameters).status(), StatusCode::BAD_REQUEST, "too old");
    assert_eq!(world.post("/authorize", &[("decision", "allow")]).status(), StatusCode::BAD_REQUEST);
}
