//! Which client id is used, and how one is registered (RFC 7591).

use crate::{
    AuthMethod, ClientId, ClientOrigin, Error, Issuer, Record, Registration, Reply, Request, RequestBody,
    Secret, ServerMetadata, Step,
    metadata::{check_client_document_url, check_redirect_uri},
    step::reason,
    token::DEVICE_CODE,
    url::{Url, shown},
};
use serde::Deserialize;
use serde_json::json;

/// What the settings say about the client.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ClientSettings {
    /// The id of a client that was registered by hand.
    pub client_id: Option<ClientId>,
    /// Its secret.
    pub secret: Option<Secret>,
    /// How it authenticates, if the metadata should not decide.
    pub method: Option<AuthMethod>,
    /// The URL of a client ID metadata document.
    pub document: Option<String>,
    /// The name that the authorization server shows to users.
    pub name: String,
}

/// The client that is used at one authorization server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientChoice {
    /// This one.
    Known(Registration),
    /// None yet: register one.
    Register,
}

impl ClientSettings {
    /// Chooses the client for an authorization server: the configured id, the metadata document if the server supports
    /// these, the stored registration, or a new dynamic registration.
    ///
    /// Fails if nothing applies, or if the configured id is bound to another authorization server.
    pub fn choose(
        &self,
        server: &ServerMetadata,
        record: &Record,
        redirect_uri: &str,
        now: u64,
    ) -> Result<ClientChoice, Error> {
        let issuer = &server.issuer;
        let known = |client_id: ClientId, origin| Registration {
            issuer: issuer.clone(),
            client_id,
            origin,
            secret: None,
            secret_expires: None,
            method: self.method,
            redirect_uri: redirect_uri.to_owned(),
        };
        if let Some(client_id) = &self.client_id {
            check_binding(client_id, issuer, record)?;
            return Ok(ClientChoice::Known(known(client_id.clone(), ClientOrigin::Configured)));
        }
        if let Some(document) = self.document.as_deref().filter(|_| server.client_documents) {
            let client_id = check_client_document_url(document)?;
            return Ok(ClientChoice::Known(known(client_id, ClientOrigin::Document)));
        }
        let stored = record.registration(issuer).filter(|registration| {
            registration.origin == ClientOrigin::Dynamic
                && registration.redirect_uri == redirect_uri
                && registration.secret_expires.is_none_or(|end| now < end)
        });
        if let Some(registration) = stored {
            return Ok(ClientChoice::Known(registration.clone()));
        }
        if server.registration_endpoint.is_some() {
            return Ok(ClientChoice::Register);
        }
        let redirect = match redirect_uri {
            "" => String::new(),
            uri => format!(", with the redirect URI {uri},"),
        };
        Err(Error::misuse(format!(
            "{issuer} offers no registration of clients; register one there by hand{redirect} and set its client id"
        )))
    }
}

/// Checks that a configured id is used only at the authorization server where it was used first.
fn check_binding(client_id: &ClientId, issuer: &Issuer, record: &Record) -> Result<(), Error> {
    let mut same = record.registrations.iter().filter(|registration| {
        registration.origin == ClientOrigin::Configured && registration.client_id == *client_id
    });
    match same.next() {
        Some(bound) if bound.issuer != *issuer => Err(Error::untrusted(format!(
            "the client id `{client_id}` belongs to {}, but the server now uses {issuer}; log out, or set the \
             client id for the new issuer",
            bound.issuer
        ))),
        _ => Ok(()),
    }
}

/// A dynamic registration under way.
#[derive(Debug)]
pub struct DynamicRegistration<'a> {
    server: &'a ServerMetadata,
    name: String,
    /// Empty for a client that logs in on other devices.
    redirect_uris: Vec<String>,
    method: AuthMethod,
    is_retry: bool,
}

impl<'a> DynamicRegistration<'a> {
    /// Registers a client with this name and redirect URI.
    pub fn new(server: &'a ServerMetadata, name: &str, redirect_uri: &str) -> Result<Self, Error> {
        check_redirect_uri(redirect_uri)?;
        let mut redirect_uris = vec![redirect_uri.to_owned()];
        redirect_uris.extend(other_loopback(redirect_uri));
        Ok(Self::with_redirects(server, name, redirect_uris))
    }

    /// Registers a client with this name for logins on other devices (RFC 8628). It has no redirect URI.
    #[must_use]
    pub fn for_device(server: &'a ServerMetadata, name: &str) -> Self {
        Self::with_redirects(server, name, Vec::new())
    }

    fn with_redirects(server: &'a ServerMetadata, name: &str, redirect_uris: Vec<String>) -> Self {
        let preferred = [AuthMethod::None, AuthMethod::ClientSecretBasic, AuthMethod::ClientSecretPost];
        let method = match &server.auth_methods {
            Some(offered) => preferred.into_iter().find(|method| offered.contains(method)),
            None => Some(AuthMethod::None),
        };
        let method = method.unwrap_or(AuthMethod::None);
        Self { server, name: name.to_owned(), redirect_uris, method, is_retry: false }
    }

    /// Takes the reply to the last request, and says what comes next.
    pub fn next(&mut self, reply: Option<&Reply>) -> Result<Step<Registration>, Error> {
        let Some(reply) = reply else { return self.request().map(Step::Fetch) };
        if matches!(reply.status, 200 | 201) {
            return self.read(&reply.body).map(Step::Done);
        }
        let refusal: Refusal = serde_json::from_slice(&reply.body).unwrap_or_default();
        let (issuer, code) = (&self.server.issuer, refusal.error.unwrap_or_default());
        let localhost = self.redirect_uris.iter().find(|uri| is_localhost(uri)).cloned();
        if let Some(localhost) = localhost.filter(|_| code == "invalid_redirect_uri" && !self.is_retry) {
            self.is_retry = true;
            self.redirect_uris = vec![localhost];
            return self.request().map(Step::Fetch);
        }
        if code == "invalid_redirect_uri" {
            let uris = self.redirect_uris.join(" ");
            return Err(Error::refused(
                format!("the registration at {issuer} with the redirect URI {uris}"),
                &code,
                refusal.error_description.as_deref(),
            ));
        }
        Err(match reply.status {
            400..=428 | 430..=499 if !code.is_empty() => Error::refused(
                format!("the registration at {issuer}"),
                &code,
                refusal.error_description.as_deref(),
            ),
            300..=399 => {
                Error::untrusted(format!("the registration endpoint of {issuer} redirects; not followed"))
            }
            status => Error::unavailable(format!("the registration at {issuer} failed with status {status}")),
        })
    }

    fn request(&self) -> Result<Request, Error> {
        let endpoint = self.server.registration_endpoint.as_deref();
        let endpoint = endpoint.ok_or_else(|| Error::misuse("there is no registration endpoint"))?;
        let is_for_device = self.redirect_uris.is_empty();
        let is_web = !is_for_device
            && self
                .redirect_uris
                .iter()
                .all(|uri| Url::split(uri).is_ok_and(|url| url.is_https() && !url.is_loopback()));
        let (grant, response_types) =
            if is_for_device { (DEVICE_CODE, json!([])) } else { ("authorization_code", json!(["code"])) };
        let body = json!({
            "client_name": self.name,
            "application_type": if is_web { "web" } else { "native" },
            "redirect_uris": self.redirect_uris,
            "grant_types": [grant, "refresh_token"],
            "response_types": response_types,
            "token_endpoint_auth_method": self.method.as_str(),
        });
        Ok(Request::post(endpoint, RequestBody::Json(body.to_string())))
    }

    fn read(&self, body: &[u8]) -> Result<Registration, Error> {
        let issuer = &self.server.issuer;
        let invalid =
            |reason: String| Error::untrusted(format!("the registration at {issuer} is not valid: {reason}"));
        let wire: Wire = serde_json::from_slice(body).map_err(|error| invalid(reason(&error)))?;
        let method = match &wire.token_endpoint_auth_method {
            Some(name) => AuthMethod::parse(name)
                .ok_or_else(|| invalid(format!("unknown client authentication `{}`", shown(name))))?,
            None => self.method,
        };
        let redirect_uri = self.redirect_uris.first().cloned().unwrap_or_default();
        Ok(Registration {
            issuer: issuer.clone(),
            client_id: ClientId::new(wire.client_id)?,
            origin: ClientOrigin::Dynamic,
            secret: wire.client_secret.map(Secret::new),
            secret_expires: wire.client_secret_expires_at.filter(|end| *end > 0),
            method: Some(method),
            redirect_uri,
        })
    }
}

#[derive(Deserialize)]
struct Wire {
    client_id: String,
    client_secret: Option<String>,
    client_secret_expires_at: Option<u64>,
    token_endpoint_auth_method: Option<String>,
}

#[derive(Default, Deserialize)]
struct Refusal {
    error: Option<String>,
    error_description: Option<String>,
}

fn is_localhost(uri: &str) -> bool {
    Url::split(uri).is_ok_and(|url| url.host.eq_ignore_ascii_case("localhost"))
}

/// Returns the same redirect URI with the other name of this machine, `127.0.0.1` or `localhost`.
fn other_loopback(uri: &str) -> Option<String> {
    let url = Url::split(uri).ok().filter(Url::is_loopback)?;
    let other = match url.host {
        "127.0.0.1" => "localhost",
        "localhost" => "127.0.0.1",
        _ => return None,
    };
    Some(uri.replacen(url.host, other, 1))
}
