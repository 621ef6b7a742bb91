//! Requests to the token endpoint, and their responses.

use crate::{
    AuthMethod, AuthorizationCode, ClientId, ClientOrigin, Error, Form, Issuer, Registration, Reply, Request,
    RequestBody, Resource, Scheme, Scopes, Secret, ServerMetadata, TokenSet, form, step::reason,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::Value;

/// The longest token that is accepted.
const MAX_TOKEN: usize = 64 * 1024;
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
pub(crate) const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// A token is renewed this many seconds before its end, or earlier in its life if that is short.
const MARGIN: u64 = 60;
/// A longer life of an access token, in seconds, counts as ten years.
const MAX_LIFETIME: u64 = 10 * 365 * 24 * 3600;

/// What a token is requested with.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Grant<'a> {
    /// A code of the authorization response.
    Code(&'a AuthorizationCode),
    /// A device code (RFC 8628).
    Device(&'a Secret),
    /// A refresh token.
    Refresh(&'a Secret),
    /// The credentials of the client alone, for a client that acts for itself.
    ClientCredentials,
    /// An assertion about a user or a workload (RFC 7523).
    Assertion(&'a Secret),
}

/// How the client authenticates.
#[derive(Clone, Debug)]
pub struct ClientAuth {
    /// `None` for a grant without a client.
    id: Option<ClientId>,
    secret: Option<Secret>,
    assertion: Option<Secret>,
    method: AuthMethod,
}

impl ClientAuth {
    /// Chooses the method: that of the registration, else Basic or the body if there is a secret and the server offers it,
    /// else none. A secret that the server does not ask for is not sent. Without a list of methods, servers take Basic.
    #[must_use]
    pub fn new(registration: &Registration, secret: Option<&Secret>, offered: Option<&[AuthMethod]>) -> Self {
        let secret = secret.or(registration.secret.as_ref()).cloned();
        let offers = |method: AuthMethod| match offered {
            Some(offered) => offered.contains(&method),
            None => method == AuthMethod::ClientSecretBasic,
        };
        let by_secret = [AuthMethod::ClientSecretBasic, AuthMethod::ClientSecretPost];
        let method = registration.method.unwrap_or_else(|| {
            let usable = by_secret.into_iter().find(|method| secret.is_some() && offers(*method));
            usable.unwrap_or(AuthMethod::None)
        });
        Self { id: Some(registration.client_id.clone()), secret, assertion: None, method }
    }

    /// Authenticates with a secret.
    #[must_use]
    pub fn by_secret(client_id: &ClientId, secret: Secret, method: AuthMethod) -> Self {
        Self { id: Some(client_id.clone()), secret: Some(secret), assertion: None, method }
    }

    /// Authenticates with a signed assertion (`private_key_jwt`).
    #[must_use]
    pub fn by_assertion(client_id: &ClientId, assertion: Secret) -> Self {
        let id = Some(client_id.clone());
        Self { id, secret: None, assertion: Some(assertion), method: AuthMethod::PrivateKeyJwt }
    }

    /// Names no client: the assertion of the grant identifies it.
    #[must_use]
    pub fn anonymous() -> Self {
        Self { id: None, secret: None, assertion: None, method: AuthMethod::None }
    }

    /// Returns the method in use.
    #[must_use]
    pub fn method(&self) -> AuthMethod {
        self.method
    }

    /// Creates a request that revokes a token (RFC 7009).
    pub fn revocation(&self, endpoint: &str, token: &Secret) -> Result<Request, Error> {
        let (form, authorization) = self.apply(Form::new().with("token", token.expose()))?;
        Ok(Request { authorization, ..Request::post(endpoint, RequestBody::Form(form)) })
    }

    /// Adds the authentication to a request.
    pub(crate) fn apply(&self, form: Form) -> Result<(Form, Option<Secret>), Error> {
        let Some(id) = &self.id else { return Ok((form, None)) };
        let secret = || {
            let missing = || Error::misuse(format!("client `{id}` needs a secret for its authentication"));
            self.secret.as_ref().ok_or_else(missing)
        };
        match self.method {
            AuthMethod::None => Ok((form.with("client_id", id.as_str()), None)),
            AuthMethod::ClientSecretPost => {
                let form = form.with("client_id", id.as_str());
                Ok((form.with("client_secret", secret()?.expose()), None))
            }
            AuthMethod::ClientSecretBasic => {
                let pair = Secret::new(format!(
                    "{}:{}",
                    form::encode(id.as_str()),
                    form::encode(secret()?.expose())
                ));
                // The Python SDK looks up the client by the id in the body, even if the header names it.
                let form = form.with("client_id", id.as_str());
                Ok((form, Some(Secret::new(format!("Basic {}", STANDARD.encode(pair.expose()))))))
            }
            AuthMethod::PrivateKeyJwt => {
                let missing = || {
                    Error::misuse(format!("client `{id}` authenticates with a key, but none is configured"))
                };
                let assertion = self.assertion.as_ref().ok_or_else(missing)?;
                let form = form.with("client_id", id.as_str()).with("client_assertion_type", ASSERTION_TYPE);
                Ok((form.with("client_assertion", assertion.expose()), None))
            }
        }
    }
}

/// A request for tokens.
#[derive(Clone, Copy, Debug)]
pub struct TokenRequest<'a> {
    /// The authorization server, for messages.
    pub issuer: &'a Issuer,
    /// Its token endpoint.
    pub endpoint: &'a str,
    /// What the token is requested with.
    pub grant: Grant<'a>,
    /// The client.
    pub client: &'a ClientAuth,
    /// What the token is for. Left out only with the exception `no-resource-parameter`.
    pub resource: Option<&'a Resource>,
    /// The scopes that were asked for.
    pub asked: &'a Scopes,
}

impl TokenRequest<'_> {
    /// Returns the request to send. It follows no redirect.
    pub fn request(&self) -> Result<Request, Error> {
        let form = match self.grant {
            Grant::Code(code) => Form::new()
                .with("grant_type", "authorization_code")
                .with("code", code.code.expose())
                .with("code_verifier", code.verifier.expose())
                .with("redirect_uri", &code.redirect_uri),
            Grant::Device(code) => {
                Form::new().with("grant_type", DEVICE_CODE).with("device_code", code.expose())
            }
            Grant::Refresh(token) => {
                Form::new().with("grant_type", "refresh_token").with("refresh_token", token.expose())
            }
            Grant::ClientCredentials => self.with_scope(Form::new().with("grant_type", "client_credentials")),
            Grant::Assertion(assertion) => self
                .with_scope(Form::new().with("grant_type", JWT_BEARER).with("assertion", assertion.expose())),
        };
        let form = form.with_some("resource", self.resource.map(Resource::as_str));
        let (form, authorization) = self.client.apply(form)?;
        Ok(Request { authorization, ..Request::post(self.endpoint, RequestBody::Form(form)) })
    }

    /// Adds the scopes where they are not part of an earlier authorization request.
    fn with_scope(&self, form: Form) -> Form {
        let scope = self.asked.to_string();
        form.with_some("scope", (!scope.is_empty()).then_some(&*scope))
    }

    /// Reads the response.
    pub fn read(&self, reply: &Reply, now: u64) -> Result<IssuedTokens, TokenError> {
        let issuer = self.issuer;
        let wire = match serde_json::from_slice::<Wire>(&reply.body) {
            Ok(wire) => wire,
            Err(error) if reply.status == 200 => {
                let reason = reason(&error);
                return Err(TokenError::Failed(Error::untrusted(format!(
                    "the token response of {issuer} is not valid: {reason}"
                ))));
            }
            Err(_) => Wire::default(),
        };
        // Some servers send errors with status 200.
        if let (Some(code), 200 | 400..=428 | 430..=499, None) =
            (&wire.error, reply.status, &wire.access_token)
        {
            let what = match self.grant {
                Grant::Code(_) => format!("the code for {issuer}"),
                Grant::Device(_) => format!("the login on another device at {issuer}"),
                Grant::Refresh(_) => format!("the refresh at {issuer}"),
                Grant::ClientCredentials => format!("the login of the client at {issuer}"),
                Grant::Assertion(_) => format!("the assertion for {issuer}"),
            };
            return Err(TokenError::Refused(Error::refused(what, code, wire.error_description.as_deref())));
        }
        match reply.status {
            200 => wire.read(self, now).map_err(TokenError::Failed),
            300..=399 => Err(TokenError::Failed(Error::untrusted(format!(
                "the token endpoint of {issuer} redirects; not followed"
            )))),
            404 | 405 | 410 => Err(TokenError::Gone),
            status => Err(TokenError::Unavailable(Error::unavailable(format!(
                "the token endpoint of {issuer} answered with status {status}"
            )))),
        }
    }
}

/// Tokens as they were issued.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IssuedTokens {
    /// The access token.
    pub access_token: Secret,
    /// How it is sent.
    pub scheme: Scheme,
    /// The refresh token, if the server gave one.
    pub refresh_token: Option<Secret>,
    /// When the access token ends, in seconds since 1970.
    pub expires: Option<u64>,
    /// The scopes that were granted; as asked if the server does not say.
    pub granted: Scopes,
}

/// Why no token was issued.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TokenError {
    /// The server refused, with a code such as `invalid_grant`.
    Refused(Error),
    /// There is no token endpoint at this URL any more.
    Gone,
    /// It may work later.
    Unavailable(Error),
    /// The response cannot be used.
    Failed(Error),
}

impl TokenError {
    /// Returns the code of the server, if it refused.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused(error) => error.code(),
            _ => None,
        }
    }

    /// Returns the error to report.
    #[must_use]
    pub fn into_error(self, issuer: &Issuer) -> Error {
        match self {
            Self::Refused(error) | Self::Unavailable(error) | Self::Failed(error) => error,
            Self::Gone => Error::unavailable(format!("{issuer} has no token endpoint at the known URL")),
        }
    }
}

#[derive(Default, Deserialize)]
struct Wire {
    access_token: Option<String>,
    token_type: Option<String>,
    refresh_token: Option<String>,
    expires_in: Option<Value>,
    scope: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

impl Wire {
    fn read(self, request: &TokenRequest<'_>, now: u64) -> Result<IssuedTokens, Error> {
        let issuer = request.issuer;
        let invalid =
            |reason: &str| Error::untrusted(format!("the token response of {issuer} is not valid: {reason}"));
        let usable = |token: &String| {
            !token.is_empty() && token.len() <= MAX_TOKEN && token.bytes().all(|byte| byte.is_ascii_graphic())
        };
        let access_token =
            self.access_token.filter(usable).ok_or_else(|| invalid("it has no usable access token"))?;
        let kind = self.token_type.ok_or_else(|| invalid("it has no `token_type`"))?;
        let scheme = Scheme::parse(&kind).ok_or_else(|| invalid("it has an unknown `token_type`"))?;
        let lifetime = match self.expires_in {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(value) => value.as_u64(),
        };
        let granted = match self.scope {
            Some(scope) => Scopes::parse(&scope),
            None => request.asked.clone(),
        };
        Ok(IssuedTokens {
            access_token: access_token.into(),
            scheme,
            refresh_token: self
                .refresh_token
                .filter(|token| !token.is_empty() && token.len() <= MAX_TOKEN)
                .map(Secret::new),
            expires: lifetime.map(|seconds: u64| now.saturating_add(seconds.min(MAX_LIFETIME))),
            granted,
        })
    }
}

impl IssuedTokens {
    /// Binds the tokens to what they were issued for.
    #[must_use]
    pub fn bind(
        self,
        server: &ServerMetadata,
        registration: Option<&Registration>,
        resource: &Resource,
        asked: &Scopes,
        now: u64,
    ) -> TokenSet {
        TokenSet {
            issuer: server.issuer.clone(),
            resource: resource.clone(),
            client_id: registration.map(|registration| registration.client_id.clone()),
            origin: registration.map_or(ClientOrigin::Configured, |registration| registration.origin),
            access_token: self.access_token,
            scheme: self.scheme,
            refresh_token: self.refresh_token,
            issued: now,
            expires: self.expires,
            asked: asked.clone(),
            granted: self.granted,
            token_endpoint: server.token_endpoint.clone(),
            revocation_endpoint: server.revocation_endpoint.clone(),
            key: None,
        }
    }

    /// Replaces the tokens of a set after a refresh. Without a new refresh token the old one stays.
    #[must_use]
    pub fn replace(self, old: &TokenSet, token_endpoint: &str, now: u64) -> TokenSet {
        TokenSet {
            access_token: self.access_token,
            scheme: self.scheme,
            refresh_token: self.refresh_token.or_else(|| old.refresh_token.clone()),
            issued: now,
            expires: self.expires,
            granted: self.granted,
            token_endpoint: token_endpoint.to_owned(),
            ..old.clone()
        }
    }
}

/// Returns whether a token issued and ending at these times is due for a refresh: 60 s before its end, or 10 % of its
/// life if that is shorter.
#[must_use]
pub fn is_due(issued: u64, expires: Option<u64>, now: u64) -> bool {
    expires.is_some_and(|end| {
        let margin = (end.saturating_sub(issued) / 10).min(MARGIN);
        now >= end.saturating_sub(margin)
    })
}
