//! Metadata of an authorization server (RFC 8414 and OpenID Connect Discovery).

use super::Rules;
use crate::{AuthMethod, Error, Issuer, Lenient, Scopes};
use serde::Deserialize;

/// What a client needs to know about an authorization server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerMetadata {
    /// The identifier, as published and checked.
    pub issuer: Issuer,
    /// Where users log in.
    pub authorization_endpoint: Option<String>,
    /// Where tokens are issued.
    pub token_endpoint: String,
    /// Where logins on other devices start (RFC 8628).
    pub device_authorization_endpoint: Option<String>,
    /// Where clients register.
    pub registration_endpoint: Option<String>,
    /// Where tokens are revoked (RFC 7009).
    pub revocation_endpoint: Option<String>,
    /// Whether PKCE with S256 is announced. `None` if there is no metadata at all (2025-03-26).
    pub pkce: Option<bool>,
    /// The scopes that the server lists.
    pub scopes: Option<Scopes>,
    /// The methods of client authentication that the server lists, as far as this client knows them.
    pub auth_methods: Option<Vec<AuthMethod>>,
    /// Whether authorization responses contain `iss` (RFC 9207).
    pub iss_in_responses: bool,
    /// Whether client ids may be URLs of metadata documents.
    pub client_documents: bool,
    /// The algorithms of DPoP proofs that the server lists.
    pub dpop_algorithms: Option<Vec<String>>,
}

/// The document as it is sent.
#[derive(Deserialize)]
pub(crate) struct ServerWire {
    pub(crate) issuer: Option<String>,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
    registration_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    code_challenge_methods_supported: Option<Vec<String>>,
    scopes_supported: Option<Vec<String>>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    authorization_response_iss_parameter_supported: Option<bool>,
    client_id_metadata_document_supported: Option<bool>,
    dpop_signing_alg_values_supported: Option<Vec<String>>,
}

impl ServerMetadata {
    /// Checks the endpoints of a document whose issuer is right.
    pub(crate) fn check(wire: ServerWire, issuer: Issuer, rules: &Rules) -> Result<Self, Error> {
        for (what, url) in [
            ("the authorization endpoint", &wire.authorization_endpoint),
            ("the token endpoint", &wire.token_endpoint),
            ("the device authorization endpoint", &wire.device_authorization_endpoint),
            ("the registration endpoint", &wire.registration_endpoint),
            ("the revocation endpoint", &wire.revocation_endpoint),
        ] {
            if let Some(url) = url {
                rules.check_url(&format!("{what} of {issuer}"), url)?;
            }
        }
        let Some(token_endpoint) = wire.token_endpoint else {
            return Err(Error::untrusted(format!("{issuer} has no token endpoint")));
        };
        let s256 = |methods: Vec<String>| methods.iter().any(|method| method == "S256");
        let known =
            |methods: Vec<String>| methods.iter().filter_map(|method| AuthMethod::parse(method)).collect();
        Ok(Self {
            issuer,
            authorization_endpoint: wire.authorization_endpoint,
            token_endpoint,
            device_authorization_endpoint: wire.device_authorization_endpoint,
            registration_endpoint: wire.registration_endpoint,
            revocation_endpoint: wire.revocation_endpoint,
            pkce: Some(wire.code_challenge_methods_supported.is_some_and(s256)),
            scopes: wire.scopes_supported.map(Scopes::from_iter),
            auth_methods: wire.token_endpoint_auth_methods_supported.map(known),
            iss_in_responses: wire.authorization_response_iss_parameter_supported.unwrap_or_default(),
            client_documents: wire.client_id_metadata_document_supported.unwrap_or_default(),
            dpop_algorithms: wire.dpop_signing_alg_values_supported,
        })
    }

    /// Returns the default endpoints of 2025-03-26, for a server without metadata.
    pub(crate) fn defaults(issuer: Issuer) -> Self {
        let at = |path: &str| format!("{issuer}{path}");
        Self {
            authorization_endpoint: Some(at("/authorize")),
            token_endpoint: at("/token"),
            device_authorization_endpoint: None,
            registration_endpoint: Some(at("/register")),
            revocation_endpoint: None,
            pkce: None,
            scopes: None,
            auth_methods: None,
            iss_in_responses: false,
            client_documents: false,
            dpop_algorithms: None,
            issuer,
        }
    }

    /// Returns the endpoints that are in the settings, for an authorization server whose metadata is not read. Whether
    /// it supports PKCE is not known; PKCE is sent all the same.
    pub fn configured(
        issuer: Issuer,
        authorization_endpoint: &str,
        token_endpoint: &str,
        rules: &Rules,
    ) -> Result<Self, Error> {
        rules.check_url("the configured authorization URL", authorization_endpoint)?;
        rules.check_url("the configured token URL", token_endpoint)?;
        Ok(Self {
            authorization_endpoint: Some(authorization_endpoint.to_owned()),
            token_endpoint: token_endpoint.to_owned(),
            registration_endpoint: None,
            ..Self::defaults(issuer)
        })
    }

    /// Returns whether the server lists a scope.
    #[must_use]
    pub fn lists_scope(&self, scope: &str) -> bool {
        self.scopes.as_ref().is_some_and(|scopes| scopes.contains(scope))
    }

    /// Returns the endpoint for logins, if a login is safe there: PKCE with S256 must be announced.
    pub(crate) fn safe_authorization_endpoint(&self, rules: &Rules) -> Result<&str, Error> {
        let issuer = &self.issuer;
        if self.pkce == Some(false) && !rules.allows(Lenient::UnannouncedPkce) {
            return Err(Error::untrusted(format!(
                "{issuer} does not announce PKCE with S256; the exception `{}` allows it",
                Lenient::UnannouncedPkce
            )));
        }
        let endpoint = self.authorization_endpoint.as_deref();
        endpoint.ok_or_else(|| Error::untrusted(format!("{issuer} has no authorization endpoint")))
    }
}
