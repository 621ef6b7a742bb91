//! Which requests discovery makes, and what it accepts, refuses and falls back to.

use crate::{
    Error, Issuer, Lenient, ProtectedResource, Reply, ResourceDiscovery, ResourceMatch, Rules, Scopes,
    ServerDiscovery, ServerMetadata, Step, discover::preferred_servers,
};
use serde_json::{Value, json};

const SERVER: &str = "https://mcp.example/v1/mcp";

fn rules(lenient: &[Lenient]) -> Rules {
    Rules::new(SERVER, lenient, false).unwrap()
}

/// Runs a flow against replies by URL, and returns the URLs that it asked for.
fn play<T>(
    mut next: impl FnMut(Option<&Reply>) -> Result<Step<T>, Error>,
    reply: impl Fn(&str) -> Reply,
) -> (Vec<String>, Result<T, Error>) {
    let mut urls = Vec::new();
    let mut last = None;
    loop {
        match next(last.as_ref()) {
            Err(error) => return (urls, Err(error)),
            Ok(Step::Done(value)) => return (urls, Ok(value)),
            Ok(Step::Fetch(request)) => {
                last = Some(reply(&request.url));
                urls.push(request.url);
            }
        }
    }
}

fn resource(
    announced: Option<&str>,
    lenient: &[Lenient],
    reply: impl Fn(&str) -> Reply,
) -> (Vec<String>, Result<Option<ProtectedResource>, Error>) {
    let rules = rules(lenient);
    match ResourceDiscovery::new(&rules, announced) {
        Ok(mut discovery) => play(|last| discovery.next(last), reply),
        Err(error) => (Vec::new(), Err(error)),
    }
}

fn server(
    issuer: &str,
    lenient: &[Lenient],
    reply: impl Fn(&str) -> Reply,
) -> (Vec<String>, Result<Option<ServerMetadata>, Error>) {
    let rules = rules(lenient);
    match ServerDiscovery::new(&rules, Issuer::new(issuer).unwrap()) {
        Ok(mut discovery) => play(|last| discovery.next(last), reply),
        Err(error) => (Vec::new(), Err(error)),
    }
}

fn ok(value: &Value) -> Reply {
    Reply::new(200, value.to_string())
}

fn document(resource: &str) -> Value {
    json!({ "resource": resource, "authorization_servers": ["https://as.example"], "scopes_supported": ["a", "b"] })
}

fn metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": "https://as.example/authorize",
        "token_endpoint": "https://as.example/token",
        "code_challenge_methods_supported": ["S256"],
    })
}

// proves: ADISC-13
#[test]
fn an_announced_url_is_used_and_no_other() {
    let announced = "https://meta.example/prm";
    let (urls, found) = resource(Some(announced), &[], |_| ok(&document(SERVER)));
    assert_eq!(urls, [announced]);
    let found = found.unwrap().unwrap();
    assert_eq!(found.resource.as_str(), SERVER);
    assert_eq!(found.matching, ResourceMatch::Exact);
    assert_eq!(found.scopes, Some(Scopes::parse("a b")));
    let (urls, found) = resource(Some(announced), &[], |_| Reply::new(404, ""));
    assert_eq!(urls, [announced]);
    assert!(found.unwrap_err().is_unavailable());
}

#[test]
fn absent_metadata_leads_on_and_broken_metadata_stops() {
    let root = "https://mcp.example/.well-known/oauth-protected-resource";
    for absent in [
        Reply::new(404, "{}"),
        Reply::new(401, ""),
        Reply::new(405, ""),
        Reply::new(302, ""),
        Reply::new(200, "<html>"),
    ] {
        let (urls, found) = resource(None, &[], |url| {
            if url == root { ok(&document("https://mcp.example")) } else { absent.clone() }
        });
        assert_eq!(urls, [&format!("{root}/v1/mcp"), root], "{absent:?}");
        assert_eq!(found.unwrap().unwrap().matching, ResourceMatch::Parent);
    }
    for broken in [
        Reply::new(500, ""),
        Reply::new(429, ""),
        Reply::new(503, "{}"),
        Reply::new(200, "[]"),
        Reply::new(200, "{}"),
    ] {
        let (urls, found) = resource(None, &[], |_| broken.clone());
        assert_eq!(urls.len(), 1, "{broken:?}");
        assert!(found.is_err(), "{broken:?}");
    }
    let (urls, found) = resource(None, &[], |_| Reply::new(404, ""));
    assert_eq!(urls.len(), 2);
    assert!(found.unwrap().is_none());
}

// proves: ADISC-15
#[test]
fn v56_a_foreign_resource_stops_the_login() {
    for foreign in
        ["https://mcp.example/v1/mcp-evil", "https://evil.example/v1/mcp", "http://mcp.example/v1/mcp"]
    {
        let (_, found) = resource(None, &[], |_| ok(&document(foreign)));
        assert!(found.unwrap_err().is_untrusted(), "{foreign}");
    }
    let (_, found) =
        resource(None, &[Lenient::ForeignResource], |_| ok(&document("https://inside.example/mcp")));
    assert_eq!(found.unwrap().unwrap().resource.as_str(), "https://inside.example/mcp");
    let exact = Rules::new(SERVER, &[], true).unwrap();
    let mut discovery = ResourceDiscovery::new(&exact, None).unwrap();
    let (_, found) = play(|last| discovery.next(last), |_| ok(&document("https://mcp.example")));
    assert!(found.unwrap_err().is_untrusted());
}

// proves: SEC-18, SEC-34, SEC-35
#[test]
fn v52_urls_in_metadata_are_https_or_refused() {
    for issuer in [
        "http://as.example",
        "javascript:alert(1)",
        "https://me@as.example",
        "file:///x",
        "https://as.example?x",
    ] {
        let document = json!({ "resource": SERVER, "authorization_servers": [issuer] });
        let (_, found) = resource(None, &[], |_| ok(&document));
        assert!(found.is_err(), "{issuer}");
    }
    for member in ["authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"]
    {
        for url in [
            "http://as.example/x",
            "ftp://as.example/x",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///x",
            "vbscript:x",
            "https://as.example/#x",
            "-x",
            "https://a/\" & calc",
        ] {
            let mut document = metadata("https://as.example");
            document[member] = url.into();
            let (_, found) = server("https://as.example", &[], |_| ok(&document));
            assert!(found.unwrap_err().is_untrusted(), "{member} {url}");
        }
    }
    assert!(resource(Some("http://mcp.example/prm"), &[], |_| ok(&document(SERVER))).1.is_err());
    assert!(Rules::new("http://mcp.example/mcp", &[], false).is_err());
    assert!(Rules::new("http://mcp.example/mcp", &[Lenient::Http], false).is_ok());
    assert!(Rules::new("http://localhost:3000/mcp", &[], false).is_ok());
}

// proves: AFLOW-08
#[test]
fn pkce_counts_only_if_the_metadata_lists_s256() {
    for (methods, expected) in [
        (json!(["plain", "S256"]), true),
        (json!(["plain"]), false),
        (json!([]), false),
        (json!(null), false),
        (json!(["s256"]), false),
    ] {
        let mut document = metadata("https://as.example");
        document["code_challenge_methods_supported"] = methods.clone();
        let (_, found) = server("https://as.example", &[], |_| ok(&document));
        assert_eq!(found.unwrap().unwrap().pkce, Some(expected), "{methods}");
    }
    let mut document = metadata("https://as.example");
    document.as_object_mut().unwrap().remove("code_challenge_methods_supported");
    let (_, found) = server("https://as.example", &[], |_| ok(&document));
    assert_eq!(found.unwrap().unwrap().pkce, Some(false));
}

#[test]
fn a_server_without_authorization_servers_is_refused() {
    for list in [json!(null), json!([])] {
        let (_, found) =
            resource(None, &[], |_| ok(&json!({ "resource": SERVER, "authorization_servers": list })));
        assert!(found.unwrap_err().is_untrusted());
    }
}

// proves: ADISC-19, ADISC-22, ADISC-23
#[test]
fn v53_metadata_counts_only_for_its_own_issuer() {
    let issuer = "https://as.example/tenant";
    let (urls, found) = server(issuer, &[], |url| match url {
        "https://as.example/tenant/.well-known/openid-configuration" => ok(&metadata(issuer)),
        _ => Reply::new(404, ""),
    });
    assert_eq!(urls.len(), 3);
    assert_eq!(found.unwrap().unwrap().issuer.as_str(), issuer);
    for other in [
        "https://attacker.example",
        "https://as.example/tenant/",
        "https://AS.example/tenant",
        "https://as.example:443/tenant",
    ] {
        let (urls, found) = server(issuer, &[], |_| ok(&metadata(other)));
        assert_eq!(urls.len(), 1, "no other place is tried");
        assert!(found.unwrap_err().is_untrusted(), "{other}");
    }
    let (_, found) = server(issuer, &[Lenient::IssuerSlash], |_| ok(&metadata("https://as.example/tenant/")));
    assert_eq!(found.unwrap().unwrap().issuer.as_str(), "https://as.example/tenant/");
    let mut nameless = metadata(issuer);
    nameless.as_object_mut().unwrap().remove("issuer");
    assert!(server(issuer, &[], |_| ok(&nameless)).1.unwrap_err().is_untrusted());
    assert_eq!(
        server(issuer, &[Lenient::MissingIssuer], |_| ok(&nameless)).1.unwrap().unwrap().issuer.as_str(),
        issuer
    );
}

// proves: ADISC-04, ADISC-05
#[test]
fn a_server_of_2025_03_26_is_its_own_authorization_server() {
    let rules = rules(&[]);
    let mut discovery = ServerDiscovery::legacy(&rules).unwrap();
    let (urls, found) = play(|last| discovery.next(last), |_| ok(&metadata("https://mcp.example")));
    assert_eq!(urls, ["https://mcp.example/.well-known/oauth-authorization-server"]);
    assert_eq!(found.unwrap().unwrap().token_endpoint, "https://as.example/token");
    let mut discovery = ServerDiscovery::legacy(&rules).unwrap();
    let (urls, found) = play(|last| discovery.next(last), |_| Reply::new(404, ""));
    let found = found.unwrap().unwrap();
    assert_eq!(urls.len(), 1);
    assert_eq!(found.authorization_endpoint.as_deref(), Some("https://mcp.example/authorize"));
    assert_eq!(found.token_endpoint, "https://mcp.example/token");
    assert_eq!(found.registration_endpoint.as_deref(), Some("https://mcp.example/register"));
    assert_eq!(found.pkce, None);
}

#[test]
fn v15_deep_and_broken_documents_are_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let (_, found) = resource(Some("https://m.example/p"), &[], |_| Reply::new(200, deep.clone()));
    assert!(found.is_err());
    let twice =
        r#"{"issuer":"https://as.example","issuer":"https://evil.example","token_endpoint":"https://a/t"}"#;
    assert!(server("https://as.example", &[], |_| Reply::new(200, twice)).1.is_err());
}

// proves: ADISC-31
#[test]
fn the_configured_issuer_must_be_listed_and_known_ones_come_first() {
    let mut wire = document(SERVER);
    wire["authorization_servers"] = json!(["https://one.example", "https://two.example"]);
    let found = resource(None, &[], |_| ok(&wire)).1.unwrap().unwrap();
    let issuer = |text: &str| Issuer::new(text).unwrap();
    let two = issuer("https://two.example");
    assert_eq!(preferred_servers(&found, None, |_| false).unwrap()[0].as_str(), "https://one.example");
    assert_eq!(preferred_servers(&found, None, |issuer| *issuer == two).unwrap()[0], two);
    assert_eq!(preferred_servers(&found, Some(&two), |_| false).unwrap(), [two]);
    let error = preferred_servers(&found, Some(&issuer("https://three.example")), |_| false).unwrap_err();
    assert!(error.is_untrusted() && error.to_string().contains("https://three.example"), "{error}");
}
