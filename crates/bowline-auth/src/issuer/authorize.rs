//! The authorization endpoint: checks a request, asks the user, and sends the result to the client.

use super::{
    client::Client,
    page, reply,
    server::{AuthorizationServer, Moment},
    session::Asked,
};
use crate::{Form, Scopes, Step, form, jose::encode, scope::is_scope};
use http::{Response, StatusCode};

/// The longest query of a request, in bytes.
const MAX_QUERY: usize = 8 * 1024;
/// The most scopes that can be asked for, and the longest list of them in bytes.
const MAX_SCOPES: (usize, usize) = (64, 2048);
/// The longest name of a user, in characters.
const MAX_USER: usize = 64;

/// The parameters of a request. None occurs twice, except `resource`.
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads a query or form. `None` if it cannot be read or a parameter occurs twice.
    pub(super) fn read(text: &str) -> Option<Self> {
        let parameters = form::decode(text)?;
        for (index, (name, _)) in parameters.iter().enumerate() {
            let is_repeated = parameters.iter().take(index).any(|(other, _)| other == name);
            if is_repeated && name != "resource" {
                return None;
            }
        }
        Some(Self(parameters))
    }

    /// Returns a parameter. An empty one counts as absent (RFC 6749, 3.1).
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, value)| known == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    /// Returns the resource, if all values name the same.
    pub(super) fn resource(&self) -> Result<Option<&str>, ()> {
        let mut values =
            self.0.iter().filter(|(name, _)| name == "resource").map(|(_, value)| value.as_str());
        let first = values.next();
        if values.all(|value| Some(value) == first) { Ok(first) } else { Err(()) }
    }
}

/// Reads scopes. `None` if one is not a scope, or if there are too many.
pub(super) fn read_scopes(text: &str) -> Option<Scopes> {
    let (count, bytes) = MAX_SCOPES;
    let words = || text.split(' ').filter(|word| !word.is_empty());
    (text.len() <= bytes && words().count() <= count && words().all(is_scope)).then(|| words().collect())
}

/// Checks a request and shows the consent page.
pub(super) fn ask(server: &mut AuthorizationServer, query: &str, moment: &Moment) -> Step<Response<Vec<u8>>> {
    let refuse = |reason: &str| Step::Done(page::refusal(StatusCode::BAD_REQUEST, reason));
    if query.len() > MAX_QUERY {
        return refuse("The request is too long.");
    }
    let Some(parameters) = Parameters::read(query) else {
        return refuse("The request cannot be read, or contains a parameter twice.");
    };
    let Some(client_id) = parameters.get("client_id") else {
        return refuse("The request has no client_id.");
    };
    let client = match server.find_client(client_id, moment.now()) {
        Ok(Ok(client)) => client,
        Ok(Err(reason)) => {
            let shown: String = client_id.chars().take(200).collect();
            return refuse(&format!("The client {shown} cannot be used: {reason}."));
        }
        Err(request) => return Step::Fetch(request),
    };
    // Until both are checked, nothing is sent to the redirect URI: it may be anyone's.
    let redirect_uri = match parameters.get("redirect_uri") {
        Some(uri) if client.allows_redirect(uri) => uri,
        Some(_) => {
            return refuse(
                "The redirect_uri is not one that the client registered. Both must be exactly the same.",
            );
        }
        None => return refuse("The request has no redirect_uri."),
    };
    let state = parameters.get("state");
    let asked = match check(server, &client, &parameters, redirect_uri, state) {
        Ok(asked) => asked,
        Err((code, description)) => {
            let error = Form::new().with("error", code).with("error_description", description);
            let url = response_url(server, redirect_uri, state, &error);
            // A client that anyone can register must not turn this server into a redirector (RFC 9700, 4.11.2). A redirect to
            // this machine helps no attacker.
            return Step::Done(if page::is_loopback(redirect_uri) {
                reply::redirect(&url)
            } else {
                page::refusal_with_link(description, redirect_uri, &url)
            });
        }
    };
    let key = encode(moment.secret());
    let response = page::consent(&page::Consent {
        action: &server.url_of("/authorize"),
        request: &key,
        client: &client,
        redirect_uri,
        resource: &asked.resource,
        scopes: &asked.scopes,
        user: &server.user,
    });
    server.grants.ask(&key, asked, moment.now());
    Step::Done(response)
}

/// Checks what the client asks for. The client and its redirect URI are known to be good.
fn check(
    server: &AuthorizationServer,
    client: &Client,
    parameters: &Parameters,
    redirect_uri: &str,
    state: Option<&str>,
) -> Result<Asked, (&'static str, &'static str)> {
    if parameters.get("request").is_some() || parameters.get("request_uri").is_some() {
        return Err(("request_not_supported", "request objects are not supported"));
    }
    if parameters.get("response_type") != Some("code") {
        return Err(("unsupported_response_type", "response_type must be code"));
    }
    if parameters.get("response_mode").is_some_and(|mode| mode != "query") {
        return Err(("invalid_request", "response_mode must be query"));
    }
    if parameters.get("prompt") == Some("none") {
        return Err(("interaction_required", "the user is always asked"));
    }
    let challenge = parameters.get("code_challenge").unwrap_or_default();
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_s256 = parameters.get("code_challenge_method") == Some("S256");
    if !is_s256 || challenge.len() != 43 || !challenge.bytes().all(is_base64) {
        return Err((
            "invalid_request",
            "PKCE with S256 is required: code_challenge and code_challenge_method=S256",
        ));
    }
    let Some(resource) = target(server, parameters) else {
        return Err(("invalid_target", "tokens for this resource are not issued here"));
    };
    let scopes = match parameters.get("scope") {
        Some(text) => read_scopes(text),
        None => Some(server.default_scopes.clone()),
    };
    let is_granted = |scopes: &Scopes| server.scopes.as_ref().is_none_or(|all| all.covers(scopes));
    let Some(scopes) = scopes.filter(is_granted) else {
        return Err(("invalid_scope", "a scope is malformed or unknown, or there are too many"));
    };
    Ok(Asked {
        client_id: client.id.clone(),
        redirect_uri: redirect_uri.to_owned(),
        state: state.map(str::to_owned),
        challenge: challenge.to_owned(),
        scopes,
        resource: resource.to_owned(),
        refreshes: client.refreshes,
    })
}

/// Returns the resource that a request names, or the default for a request that names none.
pub(super) fn target<'a>(server: &'a AuthorizationServer, parameters: &Parameters) -> Option<&'a str> {
    let asked = parameters.resource().ok()?;
    let mut known = server.resources.iter().map(String::as_str);
    match asked {
        None => known.next(),
        Some(resource) => known.find(|known| *known == resource),
    }
}

/// Takes the answer of the user and sends the result to the client.
pub(super) fn decide(server: &mut AuthorizationServer, body: &[u8], moment: &Moment) -> Response<Vec<u8>> {
    let refuse = |reason: &str| page::refusal(StatusCode::BAD_REQUEST, reason);
    let Some(answer) = std::str::from_utf8(body).ok().and_then(Parameters::read) else {
        return refuse("The answer cannot be read.");
    };
    let asked = answer.get("request").and_then(|key| server.grants.answered(key, moment.now()));
    let Some(asked) = asked else {
        return refuse("This page was used before, or is too old. Start the login again.");
    };
    let user = answer.get("user").map_or(server.user.as_str(), str::trim);
    let is_name = !user.is_empty() && user.chars().count() <= MAX_USER && !user.chars().any(char::is_control);
    let (redirect_uri, state) = (asked.redirect_uri.clone(), asked.state.clone());
    let result = match answer.get("decision") {
        Some("allow") if is_name => {
            let (code, user) = (encode(moment.secret()), user.to_owned());
            server.keep_client(&asked.client_id);
            server.grants.add_code(&code, asked, &user, moment.now());
            Form::new().with("code", &code)
        }
        _ => Form::new().with("error", "access_denied"),
    };
    reply::redirect(&response_url(server, &redirect_uri, state.as_deref(), &result))
}

/// Returns the redirect URI with the parameters of a response. `iss` is always there, so that the client knows whose
/// response it is (RFC 9207).
fn response_url(
    server: &AuthorizationServer,
    redirect_uri: &str,
    state: Option<&str>,
    result: &Form,
) -> String {
    let url = result.append_to(redirect_uri);
    Form::new().with_some("state", state).with("iss", server.issuer.as_str()).append_to(&url)
}
