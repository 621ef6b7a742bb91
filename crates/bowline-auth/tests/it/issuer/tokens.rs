//! Codes, access tokens, refresh tokens and revocation.

use super::*;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bowline_auth::Secret;
use std::time::Duration;

// proves: ATOK-14, ATOK-15
#[test]
fn a_code_becomes_a_short_lived_token_for_one_resource() {
    let mut world = World::new();
    let client = world.client();
    let code = world.code(&client);
    let response = world.exchange(&client, &code);
    assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
    let tokens = json_of(&response);
    assert_eq!((&tokens["token_type"], &tokens["expires_in"]), (&json!("Bearer"), &json!(600)));
    assert_eq!(tokens["scope"], "notes:read notes:write");
    let claims = world.claims(&tokens);
    for (name, expected) in [
        ("iss", ISSUER),
        ("sub", "ada"),
        ("aud", RESOURCE),
        ("client_id", client.as_str()),
        ("scope", "notes:read notes:write"),
    ] {
        assert_eq!(claims.text(name), Ok(Some(expected)));
    }
    assert_eq!(claims.time("exp"), Ok(Some(Duration::from_secs(world.now + 600))));
    let jws = Jws::parse(tokens["access_token"].as_str().unwrap()).unwrap();
    assert_eq!(jws.header().typ(), Some("at+jwt"));
    let sid = claims.text("sid").unwrap().unwrap();
    assert!(!tokens["refresh_token"].as_str().unwrap().contains(sid));
}

#[test]
fn a_code_works_once_and_a_second_use_ends_the_session() {
    let mut world = World::new();
    let client = world.client();
    let code = world.code(&client);
    let tokens = json_of(&world.exchange(&client, &code));
    assert!(world.is_live(&tokens));
    assert_eq!(error_of(&world.exchange(&client, &code)), "invalid_grant");
    assert!(!world.is_live(&tokens), "somebody stole the code");
    let refreshed = world.refresh(&client, tokens["refresh_token"].as_str().unwrap());
    assert_eq!(error_of(&refreshed), "invalid_grant");
}

#[test]
fn a_code_is_valid_for_a_minute() {
    let mut world = World::new();
    let client = world.client();
    let (code, late) = (world.code(&client), world.code(&client));
    world.now += 60;
    assert_eq!(world.exchange(&client, &code).status(), StatusCode::OK);
    world.now += 1;
    assert_eq!(error_of(&world.exchange(&client, &late)), "invalid_grant");
}

#[test]
fn a_code_needs_its_verifier_its_client_and_its_request() {
    let mut world = World::new();
    let (client, other) = (world.client(), world.client());
    let code = world.code(&client);
    let good = [
        ("grant_type", "authorization_code"),
        ("client_id", client.as_str()),
        ("code", code.as_str()),
        ("code_verifier", VERIFIER),
        ("redirect_uri", REDIRECT),
        ("resource", RESOURCE),
    ];
    let wrong_verifier = VERIFIER.replace('d', "e");
    for (name, value, expected) in [
        ("code_verifier", "", "invalid_request"),
        ("code_verifier", wrong_verifier.as_str(), "invalid_grant"),
        ("code_verifier", CHALLENGE, "invalid_grant"),
        ("client_id", other.as_str(), "invalid_grant"),
        ("client_id", "unknown", "invalid_client"),
        ("redirect_uri", "https://app.example/cb/", "invalid_grant"),
        ("resource", "https://other.example", "invalid_target"),
        ("code", "guessed", "invalid_grant"),
        ("grant_type", "password", "unsupported_grant_type"),
        ("grant_type", "client_credentials", "unauthorized_client"),
        ("grant_type", "", "invalid_request"),
    ] {
        let request = good.map(|(known, kept)| (known, if known == name { value } else { kept }));
        assert_eq!(error_of(&world.post("/token", &request)), expected, "{name}={value}");
    }
    let twice = [&good[..], &[("code_verifier", "x")]].concat();
    assert_eq!(error_of(&world.post("/token", &twice)), "invalid_request");
    assert_eq!(
        world.post("/token", &good).status(),
        StatusCode::OK,
        "failed attempts do not use the code up"
    );
}

#[test]
fn a_verifier_for_a_code_without_challenge_cannot_happen() {
    // No code exists without a challenge: the request for it is refused.
    let mut world = World::new();
    let client = world.client();
    let mut request = asking_with(&client, "code_challenge", "");
    request.retain(|(name, _)| *name != "code_challenge_method");
    let response = world.get(&format!("/authorize?{}", encoded(&request)));
    assert!(text(&response).contains("PKCE with S256 is required"), "{}", text(&response));
}

// proves: ATOK-16
#[test]
fn refresh_tokens_rotate_and_reuse_ends_the_session() {
    let mut world = World::new();
    let client = world.client();
    let first = world.log_in(&client);
    let old = first["refresh_token"].as_str().unwrap();
    let second = json_of(&world.refresh(&client, old));
    let new = second["refresh_token"].as_str().unwrap();
    assert_ne!(old, new);
    assert_eq!(second["scope"], first["scope"]);
    let third = json_of(&world.refresh(&client, new));
    let newest = third["refresh_token"].as_str().unwrap().to_owned();
    let live = world.server.revocations();
    assert_eq!(error_of(&world.refresh(&client, old)), "invalid_grant");
    assert_eq!(error_of(&world.refresh(&client, &newest)), "invalid_grant", "the whole family is revoked");
    assert!(!world.is_live(&third));
    assert_eq!(world.server.revocations(), live + 1);
}

#[test]
fn a_refresh_cannot_be_widened_or_made_by_another_client() {
    let mut world = World::new();
    let (client, other) = (world.client(), world.client());
    let tokens = world.log_in(&client);
    let token = tokens["refresh_token"].as_str().unwrap();
    let refresh = |scope: &'static str, resource: &'static str| {
        [("grant_type", "refresh_token"), ("scope", scope), ("resource", resource)]
    };
    let mut send = |client: &str, parameters: [(&str, &str); 3]| {
        let mut all = parameters.to_vec();
        all.extend([("client_id", client), ("refresh_token", token)]);
        world.post("/token", &all)
    };
    assert_eq!(error_of(&send(&client, refresh("notes:delete", RESOURCE))), "invalid_scope");
    assert_eq!(error_of(&send(&client, refresh("", "https://other.example"))), "invalid_target");
    assert_eq!(error_of(&send(&other, refresh("", RESOURCE))), "invalid_grant");
    let narrowed = json_of(&send(&client, refresh("notes:read", RESOURCE)));
    assert_eq!(narrowed["scope"], "notes:read");
    let next = narrowed["refresh_token"].as_str().unwrap().to_owned();
    assert_eq!(json_of(&world.refresh(&client, &next))["scope"], "notes:read notes:write");
}

#[test]
fn sessions_end_after_two_weeks() {
    let mut world = World::new();
    let client = world.client();
    let tokens = world.log_in(&client);
    world.now += 14 * 24 * 3600 + 1;
    let refreshed = world.refresh(&client, tokens["refresh_token"].as_str().unwrap());
    assert_eq!(error_of(&refreshed), "invalid_grant");
}

#[test]
fn a_client_that_did_not_register_for_refresh_tokens_gets_none() {
    let mut world = World::new();
    let body = json!({ "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none" });
    let client = world.register(&body)["client_id"].as_str().unwrap().to_owned();
    let tokens = world.log_in(&client);
    assert_eq!(tokens["refresh_token"], Value::Null);
    assert!(world.is_live(&tokens));
}

#[test]
fn either_token_revokes_the_session_of_its_own_client() {
    for name in ["refresh_token", "access_token"] {
        let mut world = World::new();
        let (client, other) = (world.client(), world.client());
        let tokens = world.log_in(&client);
        let token = tokens[name].as_str().unwrap();
        for client in [other.as_str(), client.as_str()] {
            assert!(world.is_live(&tokens));
            let response = world.post("/revoke", &[("token", token), ("client_id", client)]);
            assert_eq!(response.status(), StatusCode::OK);
        }
        assert!(!world.is_live(&tokens), "{name}");
        let refreshed = world.refresh(&client, tokens["refresh_token"].as_str().unwrap());
        assert_eq!(error_of(&refreshed), "invalid_grant");
    }
    let mut world = World::new();
    let client = world.client();
    let unknown = world.post("/revoke", &[("token", "unknown"), ("client_id", &client)]);
    assert_eq!(unknown.status(), StatusCode::OK);
    assert_eq!(
        world.post("/revoke", &[("token", "x"), ("client_id", "x")]).status(),
        StatusCode::UNAUTHORIZED
    );
}

/// Sends a token request with the header of HTTP Basic.
fn with_basic(world: &mut World, id: &str, secret: &str, parameters: &[(&str, &str)]) -> Response<Vec<u8>> {
    let credentials = STANDARD.encode(format!("{}:{}", form::encode(id), form::encode(secret)));
    let request = Request::post("/token")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::AUTHORIZATION, format!("Basic {credentials}"));
    world.send(&request.body(encoded(parameters).into_bytes()).unwrap())
}

// proves: AFLOW-03
#[test]
fn a_confidential_client_authenticates_as_it_is_registered() {
    let mut world = World::new();
    let registered = world.register(&json!({ "redirect_uris": [REDIRECT] }));
    let (id, secret) =
        (registered["client_id"].as_str().unwrap(), registered["client_secret"].as_str().unwrap());
    assert_eq!(registered["token_endpoint_auth_method"], "client_secret_basic");
    let code = world.code(id);
    let parameters = [("grant_type", "authorization_code"), ("code", &code), ("code_verifier", VERIFIER)];
    let refused = with_basic(&mut world, id, "wrong", &parameters);
    assert_eq!((refused.status(), error_of(&refused).as_str()), (StatusCode::UNAUTHORIZED, "invalid_client"));
    assert!(refused.headers().contains_key(header::WWW_AUTHENTICATE));
    let public = [&parameters[..], &[("client_id", id)]].concat();
    assert_eq!(error_of(&world.post("/token", &public)), "invalid_client", "without its secret");
    let posted = [&public[..], &[("client_secret", secret)]].concat();
    assert_eq!(error_of(&world.post("/token", &posted)), "invalid_client", "in another way");
    let both = [&parameters[..], &[("client_secret", secret)]].concat();
    assert_eq!(error_of(&with_basic(&mut world, id, secret, &both)), "invalid_request");
    assert_eq!(with_basic(&mut world, id, secret, &parameters).status(), StatusCode::OK);
}

#[test]
fn a_machine_gets_a_token_for_itself_and_no_refresh_token() {
    let mut world = World::with(|server| server.machine("reporter", &Secret::new("s:cret %")));
    let parameters = [("grant_type", "client_credentials"), ("scope", "reports"), ("resource", RESOURCE)];
    let tokens = json_of(&with_basic(&mut world, "reporter", "s:cret %", &parameters));
    let claims = world.claims(&tokens);
    assert_eq!((claims.text("sub"), claims.text("scope")), (Ok(Some("reporter")), Ok(Some("reports"))));
    assert_eq!(tokens["refresh_token"], Value::Null);
    let refused = with_basic(&mut world, "reporter", "other", &parameters);
    assert_eq!(error_of(&refused), "invalid_client");
    let other = [("grant_type", "client_credentials"), ("resource", "https://other.example")];
    assert_eq!(error_of(&with_basic(&mut world, "reporter", "s:cret %", &other)), "invalid_target");
}

#[test]
fn a_client_that_names_no_resource_gets_the_default_one() {
    let mut world = World::with(|server| server.default_scopes("base".split(' ').collect()));
    let client = world.client();
    let mut request = asking_with(&client, "resource", "");
    request.retain(|(name, _)| *name != "scope");
    let sent = world.consent(&request, "allow");
    let parameters = [
        ("grant_type", "authorization_code"),
        ("client_id", client.as_str()),
        ("code", value(&sent, "code").unwrap()),
        ("code_verifier", VERIFIER),
    ];
    let tokens = json_of(&world.post("/token", &parameters));
    let claims = world.claims(&tokens);
    assert_eq!((claims.text("aud"), claims.text("scope")), (Ok(Some(RESOURCE)), Ok(Some("base"))));
}

#[test]
fn tokens_of_the_last_key_are_verified_after_a_rotation() {
    let mut world = World::new();
    let client = world.client();
    let old = world.log_in(&client);
    world.server.rotate_key(SigningKey::generate_es256().unwrap());
    let new = world.log_in(&client);
    world.claims(&old);
    world.claims(&new);
    assert_eq!(json_of(&world.get("/jwks"))["keys"].as_array().unwrap().len(), 2);
}

#[test]
fn requests_that_are_not_forms_are_refused() {
    let mut world = World::new();
    let request = Request::post("/token").header(header::CONTENT_TYPE, "application/json");
    let response = world.send(&request.body(b"{}".to_vec()).unwrap());
    assert_eq!(error_of(&response), "invalid_request");
    assert_eq!(world.get("/token").status(), StatusCode::METHOD_NOT_ALLOWED);
    let form = Request::post("/token").header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    assert_eq!(error_of(&world.send(&form.body(vec![0xff, 0xfe]).unwrap())), "invalid_request");
}

#[test]
fn v57_secrets_are_not_in_debug_output() {
    let mut world = World::with(|server| server.machine("reporter", &Secret::new("canary")));
    let client = world.client();
    let tokens = world.log_in(&client);
    let moment = world.moment();
    let shown = format!("{:?} {moment:?}", world.server);
    assert!(
        !shown.contains("canary") && !shown.contains(tokens["refresh_token"].as_str().unwrap()),
        "{shown}"
    );
}
