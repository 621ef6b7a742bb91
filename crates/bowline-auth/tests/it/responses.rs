//! Properties of everything that servers send during a login: metadata, registrations, challenges and redirected URLs.

use bowline_auth::{
    AuthorizationRequest, Challenge, ClientId, DynamicRegistration, Error, Issuer, PendingAuthorization,
    Reply, Resource, ResourceDiscovery, Rules, Scopes, ServerDiscovery, ServerMetadata, Step, form,
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};

const SERVER: &str = "https://mcp.example/v1/mcp";
const ISSUER: &str = "https://as.example";
const REDIRECT: &str = "http://127.0.0.1:7000/callback";

/// URLs that are right, nearly right, and wrong.
fn any_url() -> impl Strategy<Value = String> {
    let known = select(vec![
        SERVER,
        "https://mcp.example",
        "https://mcp.example/v1",
        "https://mcp.example/v1/mcp/",
        "https://mcp.example/v1/mcp-evil",
        "https://mcp.example:444/v1/mcp",
        "https://mcp.example/v1/../v1/mcp",
        "https://mcp.example/v1%2fmcp",
        "https://mcp.example.evil.example/v1/mcp",
        "https://evil@mcp.example/v1/mcp",
        "http://mcp.example/v1/mcp",
        ISSUER,
        "https://as.example/",
        "https://AS.example",
        "http://as.example/token",
        "http://127.0.0.1:9/token",
        "http://169.254.169.254/latest",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://as.example/a b",
        "https://as.example/\"'`$(x)\n",
        "//as.example",
        "",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => "https?://[a-z.@:/?#%\\\\\\[\\]]{0,20}", 1 => "\\PC{0,20}"]
}

/// Values of every type, among them lists of URLs.
fn any_member() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => any_url().prop_map(Value::from),
        3 => vec(any_url(), 0..4).prop_map(Value::from),
        1 => vec(select(vec!["S256", "plain", "s256", "none", "client_secret_basic", "a b", ""]), 0..3).prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => vec(any_url(), 0..2).prop_map(|urls| json!({ "nested": urls })),
    ]
}

/// A document with some of these members.
fn any_document(names: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let document = vec((select(names.to_vec()), any_member()), 0..10).prop_map(|members| {
        let members: serde_json::Map<String, Value> =
            members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Value::Object(members).to_string().into_bytes()
    });
    prop_oneof![8 => document, 1 => vec(any::<u8>(), 0..60), 1 => any_member().prop_map(|value| value.to_string().into_bytes())]
}

const RESOURCE_MEMBERS: [&str; 5] = [
    "resource",
    "authorization_servers",
    "scopes_supported",
    "dpop_bound_access_tokens_required",
    "bearer_methods_supported",
];
const SERVER_MEMBERS: [&str; 12] = [
    "issuer",
    "authorization_endpoint",
    "token_endpoint",
    "device_authorization_endpoint",
    "registration_endpoint",
    "revocation_endpoint",
    "code_challenge_methods_supported",
    "scopes_supported",
    "token_endpoint_auth_methods_supported",
    "authorization_response_iss_parameter_supported",
    "client_id_metadata_document_supported",
    "dpop_signing_alg_values_supported",
];
const REGISTRATION_MEMBERS: [&str; 7] = [
    "client_id",
    "client_secret",
    "client_secret_expires_at",
    "token_endpoint_auth_method",
    "redirect_uris",
    "error",
    "error_description",
];

/// Runs a flow whose requests all get the next of these replies, and checks that it ends and asks for https URLs only.
fn play<T>(
    mut next: impl FnMut(Option<&Reply>) -> Result<Step<T>, Error>,
    replies: &[Reply],
) -> Result<T, Error> {
    let mut last = None;
    for turn in 0..12 {
        match next(last.as_ref())? {
            Step::Done(value) => return Ok(value),
            Step::Fetch(request) => {
                assert!(request.url.starts_with("https://"), "{}", request.url);
                last = replies.get(turn % replies.len()).cloned();
            }
        }
    }
    panic!("the flow does not end");
}

fn any_replies(names: &'static [&'static str]) -> impl Strategy<Value = Vec<Reply>> {
    let status = select(vec![200_u16, 200, 200, 201, 204, 302, 400, 401, 403, 404, 429, 500, 503]);
    vec((status, any_document(names)).prop_map(|(status, body)| Reply::new(status, body)), 1..4)
}

/// Errors are shown to people.
fn check_error(error: &Error) -> Result<(), TestCaseError> {
    let text = error.to_string();
    prop_assert!(text.len() < 2000, "{}", text.len());
    prop_assert!(!text.chars().any(char::is_control), "{text:?}");
    Ok(())
}

fn server(iss_in_responses: bool) -> ServerMetadata {
    let metadata = json!({
        "issuer": ISSUER, "authorization_endpoint": format!("{ISSUER}/authorize"), "token_endpoint": format!("{ISSUER}/token"),
        "registration_endpoint": format!("{ISSUER}/register"), "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": iss_in_responses,
    });
    let rules = Rules::new(SERVER, &[], false).unwrap();
    let mut discovery = ServerDiscovery::new(&rules, Issuer::new(ISSUER).unwrap()).unwrap();
    play(|reply| discovery.next(reply), &[Reply::new(200, metadata.to_string())]).unwrap().unwrap()
}

fn pending(server: &ServerMetadata) -> PendingAuthorization {
    let request = AuthorizationRequest {
        server,
        client_id: &ClientId::new("client").unwrap(),
        redirect_uri: REDIRECT,
        resource: &Resource::new("https://mcp.example").unwrap(),
        scopes: &Scopes::parse("a"),
        extra: &[],
    };
    request.start(&Rules::new(SERVER, &[], false).unwrap(), &[7; 64], 1000).unwrap()
}

fn state_of(pending: &PendingAuthorization) -> String {
    let query = form::decode(pending.visit().url().split_once('?').unwrap().1).unwrap();
    query.into_iter().find(|(name, _)| name == "state").unwrap().1
}

/// A parameter of a response, with values that are right, nearly right, and wrong. `STATE` stands for the right state.
fn any_parameter() -> impl Strategy<Value = (String, String)> {
    let pair = |name: &'static str, values: Vec<&'static str>| {
        select(values).prop_map(move |value| (name.to_owned(), value.to_owned()))
    };
    prop_oneof![
        4 => pair("state", vec!["STATE", "STATE", "STATE", "STATEx", "", "state"]),
        3 => pair("code", vec!["c0de", "c0de", "", "a b&c=d"]),
        2 => pair("iss", vec![ISSUER, ISSUER, "https://as.example/", "https://evil.example", ""]),
        1 => pair("error", vec!["access_denied", "", "<script>"]),
        1 => pair("error_description", vec!["canary"]),
        1 => ("[a-z]{1,8}", "\\PC{0,10}"),
    ]
}

proptest! {
    #[test]
    fn metadata_of_a_resource_leads_to_the_own_server_or_nowhere(
        replies in any_replies(&RESOURCE_MEMBERS), announced in option::of(any_url())
    ) {
        let rules = Rules::new(SERVER, &[], false).unwrap();
        let found = ResourceDiscovery::new(&rules, announced.as_deref())
            .and_then(|mut discovery| play(|reply| discovery.next(reply), &replies));
        match found {
            Ok(Some(found)) => {
                prop_assert!(found.resource.covers(SERVER).is_some(), "{}", found.resource);
                prop_assert!(SERVER.starts_with(found.resource.as_str().trim_end_matches('/')), "{}", found.resource);
                prop_assert!(!found.servers.is_empty() && found.servers.len() <= 16);
                for issuer in &found.servers {
                    prop_assert!(issuer.as_str().starts_with("https://"), "{issuer}");
                }
                prop_assert!(found.scopes.is_none_or(|scopes| !scopes.is_empty()));
            }
            Ok(None) => {}
            Err(error) => check_error(&error)?,
        }
    }

    #[test]
    fn metadata_of_an_authorization_server_is_its_own_and_uses_tls(replies in any_replies(&SERVER_MEMBERS)) {
        let rules = Rules::new(SERVER, &[], false).unwrap();
        let mut discovery = ServerDiscovery::new(&rules, Issuer::new(ISSUER).unwrap()).unwrap();
        match play(|reply| discovery.next(reply), &replies) {
            Ok(Some(found)) => {
                prop_assert_eq!(found.issuer.as_str(), ISSUER);
                let endpoints = [
                    &found.authorization_endpoint,
                    &found.device_authorization_endpoint,
                    &found.registration_endpoint,
                    &found.revocation_endpoint,
                ];
                for url in endpoints.into_iter().flatten().chain([&found.token_endpoint]) {
                    prop_assert!(url.starts_with("https://"), "{url}");
                    prop_assert!(url.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'`\\<>".contains(&byte)), "{url}");
                    prop_assert!(!url.contains('@'), "{url}");
                }
            }
            Ok(None) => {}
            Err(error) => check_error(&error)?,
        }
    }

    #[test]
    fn a_registration_keeps_the_own_redirect_uri(replies in any_replies(&REGISTRATION_MEMBERS)) {
        let server = server(false);
        let mut registering = DynamicRegistration::new(&server, "app", REDIRECT).unwrap();
        match play(|reply| registering.next(reply), &replies) {
            Ok(registration) => {
                prop_assert_eq!(registration.issuer.as_str(), ISSUER);
                prop_assert!(!registration.client_id.as_str().is_empty());
                let own = [REDIRECT, "http://localhost:7000/callback"];
                prop_assert!(own.contains(&registration.redirect_uri.as_str()), "{}", registration.redirect_uri);
            }
            Err(error) => check_error(&error)?,
        }
    }

    #[test]
    fn a_redirected_url_is_accepted_exactly_if_it_is_the_response(
        parameters in vec(any_parameter(), 0..6),
        announced in any::<bool>(),
        place in select(vec![
            REDIRECT, REDIRECT, REDIRECT, "/callback", "http://127.0.0.1:7001/callback", "http://localhost:7000/callback",
            "http://127.0.0.1:7000/callback/x", "https://127.0.0.1:7000/callback", "http://127.0.0.1:7000/", "callback",
        ]),
        late in select(vec![0_u64, 600, 601]),
        end in select(vec!["", "", "#", "#state=x"]),
    ) {
        let server = server(announced);
        let pending = pending(&server);
        let state = state_of(&pending);
        let parameters: Vec<(String, String)> =
            parameters.into_iter().map(|(name, value)| (name, value.replace("STATE", &state))).collect();
        let query: Vec<String> =
            parameters.iter().map(|(name, value)| format!("{}={}", form::encode(name), form::encode(value))).collect();
        let redirected = format!("{place}?{}{end}", query.join("&"));

        // The rules, written in another way.
        let all = |name: &str| -> Vec<&str> {
            parameters.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
        };
        let mut names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        let is_unique = names.windows(2).all(|pair| pair[0] != pair[1]);
        let is_from_issuer = match all("iss")[..] {
            [] => !announced,
            [iss] => iss == ISSUER,
            _ => false,
        };
        let is_here = place == REDIRECT || place == "/callback";
        let is_response = is_here && all("state") == [state.as_str()] && is_unique && is_from_issuer && late <= 600;
        let expected = is_response && all("error").is_empty() && !all("code").concat().is_empty();

        match pending.accept(&redirected, 1000 + late) {
            Ok(code) => {
                prop_assert!(expected, "{redirected}");
                prop_assert_eq!(code.code.expose(), all("code")[0]);
                prop_assert_eq!(code.redirect_uri, REDIRECT);
            }
            Err(error) => {
                prop_assert!(!expected, "{redirected}: {error}");
                check_error(&error)?;
                // What a stranger wrote is not shown.
                prop_assert!(is_response || !error.to_string().contains("canary"), "{error}");
            }
        }
    }

    #[test]
    fn any_text_as_a_redirected_url_is_refused(text in "\\PC{0,80}|(http://127.0.0.1:7000)?/callback[?&=#%a-z0-9]{0,60}") {
        prop_assert!(pending(&server(false)).accept(&text, 1000).is_err());
    }

    #[test]
    fn challenges_are_read_as_they_were_written(
        challenges in vec(("[A-Za-z][A-Za-z0-9-]{0,8}", vec(("[a-z_]{1,8}", "[ -~]{0,20}"), 1..5)), 1..6)
    ) {
        let written: Vec<Challenge> = challenges
            .iter()
            .map(|(scheme, parameters)| {
                parameters.iter().fold(Challenge::new(scheme), |challenge, (name, value)| challenge.with(name, value))
            })
            .collect();
        let lines: Vec<String> = written.iter().map(ToString::to_string).collect();
        // On one line, and on a line each.
        prop_assert_eq!(&Challenge::parse_all([lines.join(", ").as_str()]), &written);
        prop_assert_eq!(&Challenge::parse_all(lines.iter().map(String::as_str)), &written);
    }

    #[test]
    fn any_challenge_is_bounded(lines in vec("[ -~\u{e9}\"\\\\,=]{0,200}", 0..30)) {
        let challenges = Challenge::parse_all(lines.iter().map(String::as_str));
        prop_assert!(challenges.len() <= 16);
        for challenge in challenges {
            prop_assert!(!challenge.scheme().is_empty());
            prop_assert_eq!(Challenge::parse_all([challenge.to_string().as_str()]).len(), 1);
        }
    }
}
