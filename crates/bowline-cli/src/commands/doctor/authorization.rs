//! Checks how a server announces its authorization.

use super::{
    facts::Facts,
    finding::{Finding, Level},
};
use bowline_host::LoginSettings;
use bowline_http::{
    HttpTarget,
    auth::{AuthorizationCheck, Lenient, Login, ServerMetadata},
};
use bowline_text::visible;
use std::time::{SystemTime, UNIX_EPOCH};

/// How far clocks may differ, in seconds. Access tokens are accepted within this time.
const MAX_CLOCK_DIFFERENCE: u64 = 60;

/// What is known about the authorization of a server.
#[derive(Debug)]
pub(super) struct AuthorizationFacts {
    check: AuthorizationCheck,
    has_client_id: bool,
    has_document: bool,
    exceptions: Vec<Lenient>,
}

/// Examines a server that is used with a login. `None` if it needs none, or cannot be examined.
pub(super) async fn gather(
    server: &HttpTarget,
    settings: &LoginSettings,
    login: Login,
) -> Option<AuthorizationFacts> {
    let check = server.clone().login(login).check_authorization().await.ok().flatten()?;
    Some(AuthorizationFacts {
        check,
        has_client_id: settings.client_id.is_some(),
        has_document: settings.client_document.is_some(),
        exceptions: settings.exceptions.clone(),
    })
}

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    facts.authorization.as_ref().map(evaluate).unwrap_or_default()
}

/// Evaluates what is known about the authorization of a server.
pub(super) fn evaluate(facts: &AuthorizationFacts) -> Vec<Finding> {
    let check = &facts.check;
    let mut found = Vec::new();
    let mut add = |level, name, what: String, advice| found.push(Finding::new(level, name, what, advice));
    if !check.has_challenge {
        add(
            Level::Error,
            "auth-challenge",
            "401 without a `Bearer` challenge".to_owned(),
            "send `WWW-Authenticate: Bearer resource_metadata=\"…\"` with every 401",
        );
    }
    match &check.resource {
        Ok(Some(_)) => {}
        Ok(None) => add(
            Level::Error,
            "auth-resource-metadata",
            "no metadata of the protected resource was found".to_owned(),
            "publish `/.well-known/oauth-protected-resource` (RFC 9728); only clients of 2025-03-26 work without it",
        ),
        Err(error) => add(
            Level::Error,
            "auth-resource-metadata",
            visible(&error.to_string()),
            "publish metadata of the protected resource whose `resource` is the URL of the server; if you cannot change the server, see `oauth.allow`",
        ),
    }
    for (issuer, server) in &check.servers {
        let issuer = visible(issuer.as_str());
        match server {
            Ok(Some(server)) => check_server(server, facts, &mut add),
            Ok(None) => add(
                Level::Error,
                "auth-server-metadata",
                format!("{issuer} publishes no authorization server metadata"),
                "publish RFC 8414 or OpenID metadata at the well-known URLs of the issuer, or name the right issuer in the metadata of the resource",
            ),
            Err(error) => add(
                Level::Error,
                "auth-server-metadata",
                visible(&error.to_string()),
                "the metadata must name exactly the issuer of the resource metadata, and use https for all endpoints; if you cannot change the server, see `oauth.allow`",
            ),
        }
    }
    if let Some(difference) = check.clock_difference.filter(|by| by.unsigned_abs() > MAX_CLOCK_DIFFERENCE) {
        let (by, direction) = (difference.unsigned_abs(), if difference > 0 { "ahead of" } else { "behind" });
        add(
            Level::Warning,
            "auth-clock",
            format!("the clock of the server is {by} s {direction} the clock of this machine"),
            "synchronize both clocks: tokens are refused too early or too late",
        );
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    if let Some(account) = &check.account
        && account.expires.is_some_and(|end| end <= now)
        && !account.is_renewable
    {
        add(
            Level::Warning,
            "auth-expired",
            "the stored login has expired and cannot be renewed".to_owned(),
            "run `bowline login` again; ask for the scope `offline_access` if the authorization server offers it",
        );
    }
    if !facts.exceptions.is_empty() {
        let names: Vec<&str> = facts.exceptions.iter().map(|exception| exception.as_str()).collect();
        add(
            Level::Hint,
            "auth-exceptions",
            format!("the configuration allows exceptions: {}", names.join(", ")),
            "remove those that the server no longer needs",
        );
    }
    found
}

fn check_server(
    server: &ServerMetadata,
    facts: &AuthorizationFacts,
    add: &mut impl FnMut(Level, &'static str, String, &'static str),
) {
    let issuer = visible(server.issuer.as_str());
    if server.pkce == Some(false) {
        add(
            Level::Error,
            "auth-pkce",
            format!("{issuer} does not announce PKCE with S256"),
            "list `S256` in `code_challenge_methods_supported`; to log in all the same, allow the exception `unannounced-pkce`",
        );
    }
    if server.authorization_endpoint.is_none() {
        add(
            Level::Warning,
            "auth-no-login",
            format!("{issuer} has no authorization endpoint"),
            "users cannot log in; configure a machine login with `oauth.grant`",
        );
    }
    let can_register = server.registration_endpoint.is_some()
        || facts.has_client_id
        || (server.client_documents && facts.has_document);
    if !can_register {
        let (what, advice) = if server.client_documents {
            (
                "registers no clients, but accepts client ID metadata documents",
                "set `oauth.client_metadata_url`, or register a client by hand and set `oauth.client_id`",
            )
        } else {
            ("registers no clients", "register a client there by hand and set `oauth.client_id`")
        };
        add(Level::Warning, "auth-registration", format!("{issuer} {what}"), advice);
    }
}
