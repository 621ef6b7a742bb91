//! The authorization request and its response (RFC 6749 4.1, PKCE, RFC 9207).

use crate::{
    ClientId, Error, Form, Resource, Rules, Scopes, Secret, ServerMetadata, Visit, form,
    metadata::check_redirect_uri, url::shown,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest;

/// How long a response is accepted, in seconds.
const LIFETIME: u64 = 600;

/// What an authorization request asks for.
#[derive(Clone, Copy, Debug)]
pub struct AuthorizationRequest<'a> {
    /// The authorization server.
    pub server: &'a ServerMetadata,
    /// The client.
    pub client_id: &'a ClientId,
    /// Where the response goes.
    pub redirect_uri: &'a str,
    /// What the token is for.
    pub resource: &'a Resource,
    /// The scopes; without any, the parameter is left out.
    pub scopes: &'a Scopes,
    /// Further parameters from the settings, such as `audience` or `prompt`.
    pub extra: &'a [(String, String)],
}

/// Parameters that decide how a login is protected, or where its response goes. Settings cannot replace them.
const PROTECTED_PARAMETERS: [&str; 14] = [
    "client_id",
    "code_challenge",
    "code_challenge_method",
    "dpop_jkt",
    "nonce",
    "redirect_uri",
    "registration",
    "request",
    "request_uri",
    "resource",
    "response_mode",
    "response_type",
    "scope",
    "state",
];

/// An authorization request whose response is not there yet. It keeps what the response is checked against, and is used
/// for one response only.
#[derive(Debug)]
pub struct PendingAuthorization {
    visit: Visit,
    verifier: Secret,
    iss_expected: bool,
    created: u64,
}

/// An authorization code with what its token request needs.
#[derive(Debug)]
#[non_exhaustive]
pub struct AuthorizationCode {
    /// The code.
    pub code: Secret,
    /// The PKCE verifier.
    pub verifier: Secret,
    /// The redirect URI of the request.
    pub redirect_uri: String,
}

impl AuthorizationRequest<'_> {
    /// Starts the request. `random` has 32 bytes for the PKCE verifier and 32 bytes for `state`.
    ///
    /// Fails if the server does not announce PKCE with S256, or if an extra parameter is one that the login sets itself.
    pub fn start(&self, rules: &Rules, random: &[u8; 64], now: u64) -> Result<PendingAuthorization, Error> {
        check_redirect_uri(self.redirect_uri)?;
        let endpoint = self.server.safe_authorization_endpoint(rules)?;
        let (verifier, state) = random.split_at(32);
        let verifier = URL_SAFE_NO_PAD.encode(verifier);
        let state = URL_SAFE_NO_PAD.encode(state);
        let challenge = URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, verifier.as_bytes()));
        let scope = self.scopes.to_string();
        let resource = rules.resource_parameter(self.resource).map(Resource::as_str);
        for (name, _) in self.extra {
            check_extra_parameter(name).map_err(Error::misuse)?;
        }
        // A refresh token for offline use is granted only with consent (OpenID Connect Core 11).
        let is_set = |name: &str| self.extra.iter().any(|(known, _)| known == name);
        let prompt = (self.scopes.contains("offline_access") && !is_set("prompt")).then_some("consent");
        let form = Form::new()
            .with("response_type", "code")
            .with("client_id", self.client_id.as_str())
            .with("redirect_uri", self.redirect_uri)
            .with("state", &state)
            .with("code_challenge", &challenge)
            .with("code_challenge_method", "S256")
            .with_some("resource", resource)
            .with_some("scope", (!scope.is_empty()).then_some(&*scope))
            .with_some("prompt", prompt);
        let form = self.extra.iter().fold(form, |form, (name, value)| form.with(name, value));
        let visit = Visit {
            url: form.append_to(endpoint),
            redirect_uri: self.redirect_uri.to_owned(),
            state,
            issuer: self.server.issuer.clone(),
            resource: self.resource.clone(),
            scopes: self.scopes.clone(),
        };
        let iss_expected = self.server.iss_in_responses;
        Ok(PendingAuthorization { visit, verifier: verifier.into(), iss_expected, created: now })
    }
}

/// Checks the name of an extra parameter of an authorization request.
pub fn check_extra_parameter(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > 100 || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("`{}` is not the name of a parameter", shown(name)));
    }
    if PROTECTED_PARAMETERS.contains(&name) {
        return Err(format!("the parameter `{name}` is set by the login and cannot be replaced"));
    }
    Ok(())
}

impl PendingAuthorization {
    /// Returns the page to visit.
    #[must_use]
    pub fn visit(&self) -> &Visit {
        &self.visit
    }

    /// Checks the redirected URL: `state`, then `iss` against the recorded issuer, for errors too. Nothing of a response
    /// that fails a check is used or shown.
    pub fn accept(self, redirected: &str, now: u64) -> Result<AuthorizationCode, Error> {
        let issuer = &self.visit.issuer;
        if now.saturating_sub(self.created) > LIFETIME {
            return Err(Error::visit("the login timed out; log in again"));
        }
        if !self.visit.is_response(redirected) {
            return Err(Error::untrusted(
                "the redirected URL does not belong to this login; log in again and use the URL of the new login",
            ));
        }
        let query = redirected.split_once('?').map_or("", |(_, query)| query);
        let query = query.split('#').next().unwrap_or_default();
        let parameters = form::decode(query).unwrap_or_default();
        for (index, (name, _)) in parameters.iter().enumerate() {
            if parameters.iter().take(index).any(|(earlier, _)| earlier == name) {
                return Err(Error::untrusted(format!("the response of {issuer} has a parameter twice")));
            }
        }
        let parameter =
            |name: &str| parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        match parameter("iss") {
            Some(iss) if iss != issuer.as_str() => {
                return Err(Error::untrusted(format!(
                    "the response to the login at {issuer} is of another authorization server"
                )));
            }
            None if self.iss_expected => {
                return Err(Error::untrusted(format!(
                    "the response to the login at {issuer} does not name its issuer"
                )));
            }
            _ => {}
        }
        if let Some(code) = parameter("error") {
            let description = parameter("error_description");
            return Err(Error::refused(format!("the login at {issuer}"), code, description));
        }
        match parameter("code") {
            Some(code) if !code.is_empty() => Ok(AuthorizationCode {
                code: code.into(),
                verifier: self.verifier,
                redirect_uri: self.visit.redirect_uri,
            }),
            _ => Err(Error::untrusted(format!("the response of {issuer} has no code"))),
        }
    }
}

/// Where the scopes of an authorization request come from.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScopeSources<'a> {
    /// The scopes in the settings.
    pub configured: Option<&'a Scopes>,
    /// The scopes of the challenge.
    pub challenged: Option<&'a Scopes>,
    /// The scopes in the metadata of the resource.
    pub supported: Option<&'a Scopes>,
    /// What was asked for and granted before, at the same authorization server.
    pub earlier: Option<&'a Scopes>,
    /// Whether the request answers a 403: then the challenge adds to configured scopes.
    pub is_step_up: bool,
}

impl ScopeSources<'_> {
    /// Returns the scopes to ask for. `offline_access` is added if the server lists it, and is not taken from the
    /// metadata of the resource if the server does not.
    #[must_use]
    pub fn select(&self, server: &ServerMetadata) -> Scopes {
        let mut scopes = match (self.configured, self.challenged, self.supported) {
            (Some(configured), challenged, _) => match challenged.filter(|_| self.is_step_up) {
                Some(challenged) => configured.union(challenged),
                None => configured.clone(),
            },
            (None, Some(challenged), _) => challenged.clone(),
            (None, None, Some(supported)) if !server.lists_scope("offline_access") => {
                supported.iter().filter(|scope| *scope != "offline_access").collect()
            }
            (None, None, Some(supported)) => supported.clone(),
            (None, None, None) => Scopes::new(),
        };
        if let Some(earlier) = self.earlier {
            scopes = earlier.union(&scopes);
        }
        // Alone it would replace the default scopes of the server.
        if !scopes.is_empty() && self.configured.is_none() && server.lists_scope("offline_access") {
            scopes.insert("offline_access");
        }
        scopes
    }
}
