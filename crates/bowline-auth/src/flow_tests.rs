//! Registration, authorization and token requests against scripted replies.

use crate::{
    AuthMethod, AuthorizationRequest, ClientAuth, ClientChoice, ClientId, ClientOrigin, ClientSettings,
    DynamicRegistration, Error, Grant, Issuer, Lenient, PendingAuthorization, Record, Registration, Reply,
    RequestBody, Resource, Rules, ScopeSources, Scopes, Secret, ServerMetadata, Step, TokenError,
    TokenRequest, form, is_due,
};
use serde_json::{Value, json};

const ISSUER: &str = "https://as.example";
const REDIRECT: &str = "http://127.0.0.1:7000/callback";

fn server() -> ServerMetadata {
    let mut server = ServerMetadata::defaults(Issuer::new(ISSUER).unwrap());
    server.pkce = Some(true);
    server
}

fn registration(origin: ClientOrigin) -> Registration {
    Registration {
        issuer: Issuer::new(ISSUER).unwrap(),
        client_id: ClientId::new("client").unwrap(),
        origin,
        secret: None,
        secret_expires: None,
        method: None,
        redirect_uri: REDIRECT.into(),
    }
}

fn start(server: &ServerMetadata, scopes: &str, lenient: &[Lenient]) -> Result<PendingAuthorization, Error> {
    let rules = Rules::new("https://mcp.example/mcp", lenient, false).unwrap();
    let request = AuthorizationRequest {
        server,
        client_id: &ClientId::new("client").unwrap(),
        redirect_uri: REDIRECT,
        resource: &Resource::new("https://mcp.example").unwrap(),
        scopes: &Scopes::parse(scopes),
        extra: &[],
    };
    request.start(&rules, &[7; 64], 1000)
}

fn query(url: &str) -> Vec<(String, String)> {
    form::decode(url.split_once('?').unwrap().1).unwrap()
}

fn value(parameters: &[(String, String)], name: &str) -> Option<String> {
    parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
}

// proves: AFLOW-07, AFLOW-09, AFLOW-11
#[test]
fn an_authorization_request_has_pkce_state_and_resource() {
    let pending = start(&server(), "a b", &[]).unwrap();
    let parameters = query(pending.visit().url());
    assert!(pending.visit().url().starts_with("https://as.example/authorize?"));
    let get = |name| value(&parameters, name).unwrap_or_default();
    assert_eq!(get("response_type"), "code");
    assert_eq!(get("code_challenge_method"), "S256");
    assert_eq!(get("code_challenge").len(), 43);
    assert_eq!(get("state").len(), 43);
    assert_ne!(get("state"), get("code_challenge"));
    assert_eq!(get("resource"), "https://mcp.example");
    assert_eq!(get("scope"), "a b");
    assert_eq!(value(&parameters, "prompt"), None);
    assert_eq!(value(&query(start(&server(), "", &[]).unwrap().visit().url()), "scope"), None);
    let offline = start(&server(), "a offline_access", &[Lenient::NoResourceParameter]).unwrap();
    let parameters = query(offline.visit().url());
    assert_eq!(value(&parameters, "prompt").as_deref(), Some("consent"));
    assert_eq!(value(&parameters, "resource"), None);
}

#[test]
fn extra_parameters_are_added_and_never_replace_those_of_the_login() {
    let rules = Rules::new("https://mcp.example/mcp", &[], false).unwrap();
    let start = |name: &str| {
        let request = AuthorizationRequest {
            server: &server(),
            client_id: &ClientId::new("client").unwrap(),
            redirect_uri: REDIRECT,
            resource: &Resource::new("https://mcp.example").unwrap(),
            scopes: &Scopes::parse("offline_access"),
            extra: &[(name.to_owned(), "a b&c".to_owned())],
        };
        request.start(&rules, &[7; 64], 1000)
    };
    let parameters = query(start("audience").unwrap().visit().url());
    assert_eq!(value(&parameters, "audience").as_deref(), Some("a b&c"));
    assert_eq!(value(&parameters, "prompt").as_deref(), Some("consent"));
    let parameters = query(start("prompt").unwrap().visit().url());
    assert_eq!(parameters.iter().filter(|(name, _)| name == "prompt").count(), 1);
    for name in
        ["state", "redirect_uri", "code_challenge", "request", "request_uri", "response_mode", "", "a b"]
    {
        assert!(start(name).is_err(), "{name}");
    }
}

#[test]
fn configured_endpoints_are_checked_and_register_no_client() {
    let rules = Rules::new("https://mcp.example/mcp", &[], false).unwrap();
    let issuer = || Issuer::new(ISSUER).unwrap();
    let server = ServerMetadata::configured(issuer(), "https://a.example/a", "https://t.example/t", &rules);
    let server = server.unwrap();
    assert_eq!(server.token_endpoint, "https://t.example/t");
    assert_eq!((server.registration_endpoint, server.pkce), (None, None));
    assert!(ServerMetadata::configured(issuer(), "http://a.example", "https://t.example", &rules).is_err());
    assert!(ServerMetadata::configured(issuer(), "https://a.example", "javascript:1", &rules).is_err());
}

// proves: AFLOW-08
#[test]
fn a_server_that_does_not_announce_pkce_is_refused() {
    let mut server = server();
    server.pkce = Some(false);
    assert!(start(&server, "", &[]).unwrap_err().is_untrusted());
    assert!(start(&server, "", &[Lenient::UnannouncedPkce]).is_ok());
    server.pkce = None;
    assert!(start(&server, "", &[]).is_ok(), "2025-03-26 has default paths without metadata");
}

fn accept(iss_expected: bool, response: &str) -> Result<String, Error> {
    let mut server = server();
    server.iss_in_responses = iss_expected;
    let pending = start(&server, "", &[]).unwrap();
    let state = value(&query(pending.visit().url()), "state").unwrap();
    let url = format!("{REDIRECT}?{}", response.replace("STATE", &state));
    pending.accept(&url, 1100).map(|code| code.code.expose().to_owned())
}

// proves: AFLOW-21, AFLOW-22, AFLOW-23, AFLOW-24, AFLOW-25, AFLOW-26
#[test]
fn v53_the_issuer_of_a_response_is_compared_byte_by_byte() {
    let iss = |text: &str| format!("code=c&state=STATE&iss={}", form::encode(text));
    for expected in [true, false] {
        assert_eq!(accept(expected, &iss(ISSUER)).unwrap(), "c");
        for other in [
            "https://evil.example",
            "https://as.example/",
            "https://AS.example",
            "https://as.example:443",
            "",
        ] {
            assert!(accept(expected, &iss(other)).unwrap_err().is_untrusted(), "{other}");
        }
    }
    assert!(accept(true, "code=c&state=STATE").unwrap_err().is_untrusted());
    assert_eq!(accept(false, "code=c&state=STATE").unwrap(), "c");
}

// proves: AFLOW-27
#[test]
fn v53_an_error_of_another_issuer_is_not_shown() {
    let response =
        "error=canary&error_description=canary&error_uri=canary&state=STATE&iss=https://evil.example";
    let error = accept(true, response).unwrap_err();
    assert!(!error.to_string().contains("canary") && error.code().is_none(), "{error}");
    let response =
        format!("error=access_denied&error_description=no&state=STATE&iss={}", form::encode(ISSUER));
    assert_eq!(accept(true, &response).unwrap_err().code(), Some("access_denied"));
}

// proves: AFLOW-20
#[test]
fn v55_a_response_needs_the_state_of_the_request() {
    for response in
        ["code=c", "code=c&state=", "code=c&state=x", "code=c&state=STATE&state=STATE", "error=canary"]
    {
        let error = accept(false, response).unwrap_err();
        assert!(error.is_untrusted() && !error.to_string().contains("canary"), "{response}: {error}");
    }
    for response in ["state=STATE", "code=&state=STATE", "code=a&code=b&state=STATE"] {
        assert!(accept(false, response).unwrap_err().is_untrusted(), "{response}");
    }
    let pending = start(&server(), "", &[]).unwrap();
    let state = value(&query(pending.visit().url()), "state").unwrap();
    let late = pending.accept(&format!("{REDIRECT}?code=c&state={state}"), 1000 + 601);
    assert!(late.unwrap_err().is_visit());
}

#[test]
fn v55_what_a_listener_takes_for_the_response_is_accepted() {
    let code = format!("{}%7B{{|}}^", "c".repeat(8000));
    let accepted = accept(false, &format!("code={code}&state=STATE")).unwrap();
    assert_eq!(accepted.len(), code.len() - 2);
}

fn select(sources: ScopeSources<'_>, listed: &str) -> String {
    let mut server = server();
    server.scopes = Some(Scopes::parse(listed));
    sources.select(&server).to_string()
}

// proves: AFLOW-17, AFLOW-18, AFLOW-19, ADISC-27, ADISC-28, ATOK-19
#[test]
fn scopes_come_from_the_challenge_then_the_metadata_then_nowhere() {
    let [a, b, c] = ["a", "b", "c"].map(Scopes::parse);
    let base = ScopeSources { challenged: Some(&a), supported: Some(&b), ..ScopeSources::default() };
    assert_eq!(select(base, ""), "a");
    assert_eq!(select(ScopeSources { challenged: None, ..base }, ""), "b");
    assert_eq!(select(ScopeSources::default(), "offline_access"), "");
    assert_eq!(select(base, "offline_access"), "a offline_access");
    let offline = Scopes::parse("b offline_access");
    let resource = ScopeSources { supported: Some(&offline), ..ScopeSources::default() };
    assert_eq!(select(resource, ""), "b", "the server does not list it");
    assert_eq!(select(resource, "offline_access"), "b offline_access");
    assert_eq!(select(ScopeSources { configured: Some(&c), ..base }, "offline_access"), "c");
    assert_eq!(select(ScopeSources { earlier: Some(&c), is_step_up: true, ..base }, ""), "c a");
    assert_eq!(select(ScopeSources { configured: Some(&c), is_step_up: true, ..base }, ""), "c a");
}

fn settings() -> ClientSettings {
    ClientSettings { name: "Test".into(), ..ClientSettings::default() }
}

// proves: AREG-05, AREG-06, AREG-12, AREG-13
#[test]
fn a_client_is_configured_or_a_document_or_stored_or_registered() {
    let mut server = server();
    let mut record = Record::default();
    let choose = |settings: &ClientSettings, server: &ServerMetadata, record: &Record| {
        settings.choose(server, record, REDIRECT, 100)
    };
    let mut settings = settings();
    assert_eq!(choose(&settings, &server, &record).unwrap(), ClientChoice::Register);
    record.register(registration(ClientOrigin::Dynamic));
    let ClientChoice::Known(stored) = choose(&settings, &server, &record).unwrap() else {
        panic!("registered")
    };
    assert_eq!(stored.origin, ClientOrigin::Dynamic);
    settings.document = Some("https://app.example/client.json".into());
    let ClientChoice::Known(stored) = choose(&settings, &server, &record).unwrap() else {
        panic!("registered")
    };
    assert_eq!(stored.origin, ClientOrigin::Dynamic, "the server does not support documents");
    server.client_documents = true;
    let ClientChoice::Known(document) = choose(&settings, &server, &record).unwrap() else {
        panic!("registered")
    };
    assert_eq!(document.client_id.as_str(), "https://app.example/client.json");
    settings.client_id = Some(ClientId::new("mine").unwrap());
    let ClientChoice::Known(configured) = choose(&settings, &server, &record).unwrap() else {
        panic!("registered")
    };
    assert_eq!((configured.client_id.as_str(), configured.origin), ("mine", ClientOrigin::Configured));
    server.registration_endpoint = None;
    let error = choose(&self::settings(), &server, &Record::default()).unwrap_err();
    assert!(error.to_string().contains(REDIRECT), "{error}");
}

#[test]
fn a_stored_registration_needs_its_redirect_uri_and_a_valid_secret() {
    for change in [
        (|known: &mut Registration| known.redirect_uri = "http://127.0.0.1:7001/callback".into())
            as fn(&mut Registration),
        |known| known.secret_expires = Some(100),
        |known| known.issuer = Issuer::new("https://as.example/").unwrap(),
    ] {
        let mut known = registration(ClientOrigin::Dynamic);
        change(&mut known);
        let mut record = Record::default();
        record.register(known);
        assert_eq!(settings().choose(&server(), &record, REDIRECT, 100).unwrap(), ClientChoice::Register);
    }
}

// proves: AREG-28
#[test]
fn v54_a_configured_client_is_bound_to_its_issuer() {
    let mut record = Record::default();
    let mut bound = registration(ClientOrigin::Configured);
    bound.issuer = Issuer::new("https://old.example").unwrap();
    record.register(bound);
    let settings = ClientSettings { client_id: Some(ClientId::new("client").unwrap()), ..settings() };
    let error = settings.choose(&server(), &record, REDIRECT, 0).unwrap_err();
    assert!(error.is_untrusted() && error.to_string().contains("https://old.example"), "{error}");
}

fn body(request: &crate::Request) -> Value {
    let RequestBody::Json(text) = &request.body else { panic!("not JSON") };
    serde_json::from_str(text).unwrap()
}

// proves: AREG-20, AREG-21, AREG-22, AREG-30, AREG-01
#[test]
fn a_registration_says_what_the_client_is() {
    let server = server();
    let mut flow = DynamicRegistration::new(&server, "Test", REDIRECT).unwrap();
    let Step::Fetch(request) = flow.next(None).unwrap() else { panic!("done") };
    assert_eq!(request.url, "https://as.example/register");
    let sent = body(&request);
    assert_eq!(sent["application_type"], "native");
    assert_eq!(sent["redirect_uris"], json!([REDIRECT, "http://localhost:7000/callback"]));
    assert_eq!(sent["grant_types"], json!(["authorization_code", "refresh_token"]));
    assert_eq!(sent["token_endpoint_auth_method"], "none");
    let reply = Reply::new(201, r#"{"client_id":"new","client_secret":"s","client_secret_expires_at":0}"#);
    let Step::Done(done) = flow.next(Some(&reply)).unwrap() else { panic!("not done") };
    assert_eq!(
        (done.client_id.as_str(), done.method, done.secret_expires),
        ("new", Some(AuthMethod::None), None)
    );
    let mut flow = DynamicRegistration::new(&server, "Test", "https://app.example/cb").unwrap();
    let Step::Fetch(request) = flow.next(None).unwrap() else { panic!("done") };
    assert_eq!(body(&request)["application_type"], "web");
}

// proves: AREG-23, AREG-24
#[test]
fn a_refused_redirect_uri_is_tried_once_more_as_localhost() {
    let server = server();
    let mut flow = DynamicRegistration::new(&server, "Test", REDIRECT).unwrap();
    assert!(matches!(flow.next(None).unwrap(), Step::Fetch(_)));
    let refused = Reply::new(400, r#"{"error":"invalid_redirect_uri"}"#);
    let Step::Fetch(second) = flow.next(Some(&refused)).unwrap() else { panic!("done") };
    assert_eq!(body(&second)["redirect_uris"], json!(["http://localhost:7000/callback"]));
    let error = flow.next(Some(&refused)).unwrap_err();
    assert!(error.to_string().contains("http://localhost:7000/callback"), "{error}");
}

fn form_of(request: &crate::Request) -> Vec<(String, String)> {
    let RequestBody::Form(form) = &request.body else { panic!("not a form") };
    form::decode(form.text().expose()).unwrap()
}

fn with_token_request<T>(auth: &ClientAuth, use_it: impl FnOnce(&TokenRequest<'_>) -> T) -> T {
    let (issuer, resource) = (Issuer::new(ISSUER).unwrap(), Resource::new("https://mcp.example").unwrap());
    let (token, asked) = (Secret::new("canary-refresh"), Scopes::parse("a b"));
    use_it(&TokenRequest {
        issuer: &issuer,
        endpoint: "https://as.example/token",
        grant: Grant::Refresh(&token),
        client: auth,
        resource: Some(&resource),
        asked: &asked,
    })
}

// proves: AFLOW-12, AFLOW-14
#[test]
fn a_client_authenticates_as_its_registration_says() {
    let secret = Secret::new("s:1");
    let mut known = registration(ClientOrigin::Configured);
    let auth =
        |known: &Registration, offered: Option<&[AuthMethod]>| ClientAuth::new(known, Some(&secret), offered);
    assert_eq!(auth(&known, None).method(), AuthMethod::ClientSecretBasic);
    assert_eq!(auth(&known, Some(&[AuthMethod::ClientSecretPost])).method(), AuthMethod::ClientSecretPost);
    assert_eq!(
        auth(&known, Some(&[AuthMethod::None])).method(),
        AuthMethod::None,
        "nobody asked for the secret"
    );
    let basic = with_token_request(&auth(&known, None), |request| request.request().unwrap());
    assert_eq!(basic.authorization.as_ref().unwrap().expose(), "Basic Y2xpZW50OnMlM0Ex");
    assert_eq!(value(&form_of(&basic), "client_id").as_deref(), Some("client"));
    assert_eq!(value(&form_of(&basic), "client_secret"), None);
    assert_eq!(value(&form_of(&basic), "resource").as_deref(), Some("https://mcp.example"));
    known.method = Some(AuthMethod::ClientSecretPost);
    let post = with_token_request(&auth(&known, None), |request| request.request().unwrap());
    assert!(post.authorization.is_none());
    assert_eq!(value(&form_of(&post), "client_secret").as_deref(), Some("s:1"));
    known.method = Some(AuthMethod::None);
    let none = with_token_request(&auth(&known, None), |request| request.request().unwrap());
    assert_eq!(value(&form_of(&none), "client_secret"), None);
    assert_eq!(value(&form_of(&none), "client_id").as_deref(), Some("client"));
    assert!(!format!("{none:?}{basic:?}{post:?}").contains("canary"), "v57: secrets are not printed");
}

// proves: ATOK-18
#[test]
fn a_token_response_is_checked() {
    let auth = ClientAuth::new(&registration(ClientOrigin::Dynamic), None, None);
    let read = |status, body: &str| {
        with_token_request(&auth, |request| request.read(&Reply::new(status, body), 1000))
    };
    let full =
        r#"{"access_token":"t","token_type":"bEaReR","expires_in":"60","scope":"a","refresh_token":"r"}"#;
    let issued = read(200, full).unwrap();
    assert_eq!((issued.expires, issued.granted.to_string()), (Some(1060), "a".to_owned()));
    let endless = r#"{"access_token":"t","token_type":"Bearer","expires_in":18446744073709551615}"#;
    assert_eq!(read(200, endless).unwrap().expires, Some(1000 + 10 * 365 * 24 * 3600));
    let sparse = read(200, r#"{"access_token":"t","token_type":"Bearer"}"#).unwrap();
    assert_eq!((sparse.expires, sparse.granted.to_string()), (None, "a b".to_owned()));
    assert!(sparse.refresh_token.is_none());
    for body in [
        "",
        "{}",
        "[]",
        r#"{"access_token":"t"}"#,
        r#"{"access_token":"","token_type":"Bearer"}"#,
        r#"{"access_token":"a\r\nb","token_type":"Bearer"}"#,
        r#"{"access_token":"t","token_type":"mac"}"#,
    ] {
        assert!(matches!(read(200, body), Err(TokenError::Failed(_))), "{body}");
    }
    for status in [200, 400, 401] {
        let refused = read(status, r#"{"error":"invalid_grant","error_description":"spent"}"#).unwrap_err();
        assert_eq!(refused.code(), Some("invalid_grant"), "{status}");
    }
    for status in [429, 500, 503] {
        assert!(
            matches!(read(status, r#"{"error":"invalid_grant"}"#), Err(TokenError::Unavailable(_))),
            "{status}"
        );
    }
    assert!(matches!(read(404, ""), Err(TokenError::Gone)));
}

#[test]
fn v51_a_redirect_of_the_token_endpoint_is_an_error() {
    let auth = ClientAuth::new(&registration(ClientOrigin::Dynamic), None, None);
    for status in [301, 302, 303, 307, 308] {
        let result = with_token_request(&auth, |request| request.read(&Reply::new(status, ""), 0));
        assert!(matches!(result, Err(TokenError::Failed(error)) if error.is_untrusted()), "{status}");
    }
    let server = server();
    let mut flow = DynamicRegistration::new(&server, "Test", REDIRECT).unwrap();
    assert!(
        matches!(flow.next(None), Ok(Step::Fetch(request)) if request.redirects == crate::Redirects::None)
    );
    assert!(flow.next(Some(&Reply::new(307, ""))).unwrap_err().is_untrusted());
}

#[test]
fn a_token_is_due_before_its_end() {
    assert!(!is_due(0, None, u64::MAX));
    assert!(!is_due(1000, Some(4600), 4539));
    assert!(is_due(1000, Some(4600), 4540));
    assert!(!is_due(1000, Some(1100), 1089), "10 % of a short life");
    assert!(is_due(1000, Some(1100), 1090));
    assert!(is_due(1000, Some(900), 1000));
}
