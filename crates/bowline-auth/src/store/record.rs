//! What is kept for one server and account, and its form as JSON.

use crate::{ClientId, Error, Issuer, Lenient, Resource, Scopes, Secret};
use serde::Deserialize;
use serde_json::{Value, json};
use std::str::FromStr;

/// The version of the JSON form.
const VERSION: u64 = 1;
/// At most this many registrations are kept for one server.
const MAX_REGISTRATIONS: usize = 8;

/// Everything that is known for one MCP server and account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// The client at each authorization server, the newest last.
    pub registrations: Vec<Registration>,
    /// The tokens, if there is a login.
    pub tokens: Option<TokenSet>,
    /// The exceptions that the login was allowed.
    pub exceptions: Vec<Lenient>,
}

/// The client at one authorization server. It is never used at another one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Registration {
    /// The authorization server that knows the client.
    pub issuer: Issuer,
    /// The id of the client.
    pub client_id: ClientId,
    /// Where the id is from.
    pub origin: ClientOrigin,
    /// The secret, if the registration gave one, or if a configured one is to be kept.
    pub secret: Option<Secret>,
    /// When the secret ends, in seconds since 1970.
    pub secret_expires: Option<u64>,
    /// How the client authenticates at the token endpoint, if the registration says so.
    pub method: Option<AuthMethod>,
    /// The redirect URI that was registered, or used at the last login.
    pub redirect_uri: String,
}

impl Registration {
    /// Returns whether tokens were issued to this client.
    fn is_of(&self, tokens: &TokenSet) -> bool {
        self.issuer == tokens.issuer && tokens.client_id.as_ref() == Some(&self.client_id)
    }
}

/// Tokens and what they are bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenSet {
    /// The authorization server that issued the tokens.
    pub issuer: Issuer,
    /// The resource that the tokens are for.
    pub resource: Resource,
    /// The client that the tokens were issued to; empty if the grant has no client.
    pub client_id: Option<ClientId>,
    /// Where the client id is from.
    pub origin: ClientOrigin,
    /// The access token.
    pub access_token: Secret,
    /// How the access token is sent.
    pub scheme: Scheme,
    /// The refresh token, if there is one.
    pub refresh_token: Option<Secret>,
    /// When the tokens were issued, in seconds since 1970.
    pub issued: u64,
    /// When the access token ends, in seconds since 1970. Without it the token is used until it is refused.
    pub expires: Option<u64>,
    /// The scopes that were asked for.
    pub asked: Scopes,
    /// The scopes that were granted.
    pub granted: Scopes,
    /// The token endpoint of the issuer. The refresh token goes nowhere else.
    pub token_endpoint: String,
    /// Where tokens are revoked, if the issuer offers it.
    pub revocation_endpoint: Option<String>,
    /// The private key that a DPoP token is bound to (PKCS#8, base64url).
    pub key: Option<Secret>,
}

/// Where a client id is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientOrigin {
    /// It is in the settings.
    Configured,
    /// It is the URL of a client ID metadata document.
    Document,
    /// The authorization server issued it by dynamic registration.
    Dynamic,
}

impl ClientOrigin {
    /// Returns the name in JSON and in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Document => "document",
            Self::Dynamic => "dynamic",
        }
    }
}

impl FromStr for ClientOrigin {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let all = [Self::Configured, Self::Document, Self::Dynamic];
        let found = all.into_iter().find(|origin| origin.as_str() == text);
        found.ok_or_else(|| Error::store(format!("unknown origin of a client id: `{text}`")))
    }
}

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthMethod {
    /// Not at all: a public client sends its id only.
    None,
    /// With id and secret in `Authorization: Basic`.
    ClientSecretBasic,
    /// With id and secret in the body.
    ClientSecretPost,
    /// With a signed assertion (RFC 7523).
    PrivateKeyJwt,
}

impl AuthMethod {
    /// Returns the name in metadata and registrations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// Reads a name. `None` if this client does not know the method.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::None, Self::ClientSecretBasic, Self::ClientSecretPost, Self::PrivateKeyJwt];
        all.into_iter().find(|method| method.as_str() == text)
    }
}

/// The scheme of `Authorization` for an access token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheme {
    /// RFC 6750.
    Bearer,
    /// RFC 9449: every request carries a proof of possession.
    Dpop,
}

impl Scheme {
    /// Returns the scheme as it is sent.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Dpop => "DPoP",
        }
    }

    /// Reads `token_type` of a token response, in any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Bearer, Self::Dpop].into_iter().find(|scheme| scheme.as_str().eq_ignore_ascii_case(text))
    }
}

impl Record {
    /// Returns the newest client at an authorization server.
    #[must_use]
    pub fn registration(&self, issuer: &Issuer) -> Option<&Registration> {
        self.registrations.iter().rfind(|registration| registration.issuer == *issuer)
    }

    /// Returns the client that tokens were issued to.
    #[must_use]
    pub fn registration_of(&self, tokens: &TokenSet) -> Option<&Registration> {
        self.registrations.iter().rfind(|registration| registration.is_of(tokens))
    }

    /// Keeps a client, instead of an older one at the same authorization server. The client of the tokens stays, because their
    /// refresh needs it until a login with the new client is complete.
    pub fn register(&mut self, registration: Registration) {
        let tokens = self.tokens.take();
        let is_in_use = |known: &Registration| tokens.as_ref().is_some_and(|tokens| known.is_of(tokens));
        self.registrations.retain(|known| {
            known.issuer != registration.issuer
                || (known.client_id != registration.client_id && is_in_use(known))
        });
        while self.registrations.len() >= MAX_REGISTRATIONS {
            let oldest = self.registrations.iter().position(|known| !is_in_use(known)).unwrap_or(0);
            self.registrations.remove(oldest);
        }
        self.registrations.push(registration);
        self.tokens = tokens;
    }

    /// Keeps the tokens of a login, and of the clients at their authorization server only theirs.
    pub fn log_in(&mut self, registration: Option<Registration>, tokens: TokenSet) {
        self.tokens = Some(tokens);
        if let Some(registration) = registration {
            self.register(registration);
        }
    }

    /// Drops a client.
    pub fn forget_registration(&mut self, issuer: &Issuer, client_id: &ClientId) {
        self.registrations.retain(|known| known.issuer != *issuer || known.client_id != *client_id);
    }

    /// Returns the record as JSON, for a store. It contains the tokens.
    #[must_use]
    pub fn to_json(&self) -> Secret {
        let registrations: Vec<Value> = self.registrations.iter().map(registration_json).collect();
        let tokens = self.tokens.as_ref().map(tokens_json);
        let exceptions: Vec<&str> = self.exceptions.iter().map(|exception| exception.as_str()).collect();
        let record = json!({
            "version": VERSION,
            "registrations": registrations,
            "tokens": tokens,
            "exceptions": exceptions,
        });
        Secret::new(record.to_string())
    }

    /// Reads what [`to_json`](Self::to_json) wrote. The error does not quote the text.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let unfit = |error: serde_json::Error| {
            Error::store(format!(
                "a record is not readable at line {} column {}",
                error.line(),
                error.column()
            ))
        };
        let version: WireVersion = serde_json::from_str(text).map_err(unfit)?;
        if version.version != VERSION {
            let version = version.version;
            return Err(Error::store(format!(
                "a record has version {version}; this program reads {VERSION}"
            )));
        }
        let wire: Wire = serde_json::from_str(text).map_err(unfit)?;
        Ok(Self {
            registrations: wire
                .registrations
                .into_iter()
                .map(WireRegistration::read)
                .collect::<Result<_, _>>()?,
            tokens: wire.tokens.map(WireTokens::read).transpose()?,
            // An exception that this version does not know allows nothing.
            exceptions: wire.exceptions.iter().filter_map(|name| name.parse().ok()).collect(),
        })
    }
}

fn registration_json(registration: &Registration) -> Value {
    json!({
        "issuer": registration.issuer.as_str(),
        "client_id": registration.client_id.as_str(),
        "origin": registration.origin.as_str(),
        "secret": registration.secret.as_ref().map(Secret::expose),
        "secret_expires": registration.secret_expires,
        "method": registration.method.map(AuthMethod::as_str),
        "redirect_uri": registration.redirect_uri,
    })
}

fn tokens_json(tokens: &TokenSet) -> Value {
    json!({
        "issuer": tokens.issuer.as_str(),
        "resource": tokens.resource.as_str(),
        "client_id": tokens.client_id.as_ref().map(ClientId::as_str),
        "origin": tokens.origin.as_str(),
        "access_token": tokens.access_token.expose(),
        "scheme": tokens.scheme.as_str(),
        "refresh_token": tokens.refresh_token.as_ref().map(Secret::expose),
        "issued": tokens.issued,
        "expires": tokens.expires,
        "asked": tokens.asked.to_string(),
        "granted": tokens.granted.to_string(),
        "token_endpoint": tokens.token_endpoint,
        "revocation_endpoint": tokens.revocation_endpoint,
        "key": tokens.key.as_ref().map(Secret::expose),
    })
}

#[derive(Deserialize)]
struct WireVersion {
    version: u64,
}

#[derive(Deserialize)]
struct Wire {
    registrations: Vec<WireRegistration>,
    tokens: Option<WireTokens>,
    #[serde(default)]
    exceptions: Vec<String>,
}

#[derive(Deserialize)]
struct WireRegistration {
    issuer: String,
    client_id: String,
    origin: String,
    secret: Option<String>,
    secret_expires: Option<u64>,
    method: Option<String>,
    redirect_uri: String,
}

impl WireRegistration {
    fn read(self) -> Result<Registration, Error> {
        Ok(Registration {
            issuer: Issuer::new(self.issuer)?,
            client_id: ClientId::new(self.client_id)?,
            origin: self.origin.parse()?,
            secret: self.secret.map(Secret::new),
            secret_expires: self.secret_expires,
            method: self.method.as_deref().and_then(AuthMethod::parse),
            redirect_uri: self.redirect_uri,
        })
    }
}

#[derive(Deserialize)]
struct WireTokens {
    issuer: String,
    resource: String,
    client_id: Option<String>,
    origin: String,
    access_token: String,
    scheme: String,
    refresh_token: Option<String>,
    issued: u64,
    expires: Option<u64>,
    asked: String,
    granted: String,
    token_endpoint: String,
    revocation_endpoint: Option<String>,
    key: Option<String>,
}

impl WireTokens {
    fn read(self) -> Result<TokenSet, Error> {
        let scheme = Scheme::parse(&self.scheme);
        Ok(TokenSet {
            issuer: Issuer::new(self.issuer)?,
            resource: Resource::new(self.resource)?,
            client_id: self.client_id.map(ClientId::new).transpose()?,
            origin: self.origin.parse()?,
            access_token: Secret::new(self.access_token),
            scheme: scheme.ok_or_else(|| Error::store("a record has an unknown token type"))?,
            refresh_token: self.refresh_token.map(Secret::new),
            issued: self.issued,
            expires: self.expires,
            asked: Scopes::parse(&self.asked),
            granted: Scopes::parse(&self.granted),
            token_endpoint: self.token_endpoint,
            revocation_endpoint: self.revocation_endpoint,
            key: self.key.map(Secret::new),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn record() -> Record {
        let issuer = Issuer::new("https://as.example/").unwrap();
        let client_id = ClientId::new("client 1").unwrap();
        Record {
            registrations: vec![Registration {
                issuer: issuer.clone(),
                client_id: client_id.clone(),
                origin: ClientOrigin::Dynamic,
                secret: Some("canary-secret".into()),
                secret_expires: Some(9),
                method: Some(AuthMethod::ClientSecretPost),
                redirect_uri: "http://127.0.0.1:1/callback".into(),
            }],
            tokens: Some(TokenSet {
                issuer,
                resource: Resource::new("https://mcp.example/mcp").unwrap(),
                client_id: Some(client_id),
                origin: ClientOrigin::Dynamic,
                access_token: "canary-access".into(),
                scheme: Scheme::Bearer,
                refresh_token: Some("canary-refresh".into()),
                issued: 100,
                expires: Some(200),
                asked: Scopes::parse("a b"),
                granted: Scopes::parse("a"),
                token_endpoint: "https://as.example/token".into(),
                revocation_endpoint: None,
                key: Some("canary-key".into()),
            }),
            exceptions: vec![Lenient::IssuerSlash],
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = record();
        assert_eq!(Record::from_json(record.to_json().expose()).unwrap(), record);
        assert_eq!(Record::from_json(Record::default().to_json().expose()).unwrap(), Record::default());
    }

    #[test]
    fn v57_a_record_does_not_show_its_secrets() {
        let shown = format!("{:?}", record());
        assert!(!shown.contains("canary"), "{shown}");
        let text = record().to_json().expose().replace("\"issued\":100", "\"issued\":\"canary\"");
        let error = Record::from_json(&text).unwrap_err();
        assert!(error.is_store() && !error.to_string().contains("canary"), "{error}");
    }

    #[test]
    fn a_record_of_another_version_is_an_error() {
        let error = Record::from_json(r#"{"version":2,"anything":true}"#).unwrap_err();
        assert!(error.to_string().contains("version 2"), "{error}");
        assert!(Record::from_json("").is_err());
    }

    // proves: ADISC-24, AREG-25
    #[test]
    fn registrations_are_kept_per_issuer() {
        let mut record = record();
        let mut other = record.registrations[0].clone();
        other.issuer = Issuer::new("https://as.example").unwrap();
        other.client_id = ClientId::new("client 2").unwrap();
        record.register(other.clone());
        assert_eq!(
            record.registration(&Issuer::new("https://as.example/").unwrap()).unwrap().client_id.as_str(),
            "client 1"
        );
        assert_eq!(record.registration(&other.issuer).unwrap().client_id.as_str(), "client 2");
        for number in 0..20 {
            other.issuer = Issuer::new(format!("https://as{number}.example")).unwrap();
            record.register(other.clone());
        }
        assert_eq!(record.registrations.len(), MAX_REGISTRATIONS);
        assert!(
            record.registration_of(record.tokens.as_ref().unwrap()).is_some(),
            "the client of the tokens stays"
        );
    }

    #[test]
    fn a_new_registration_keeps_the_one_in_use_until_the_login_is_complete() {
        let mut record = record();
        let mut new = record.registrations[0].clone();
        new.client_id = ClientId::new("client 2").unwrap();
        record.register(new.clone());
        let issuer = new.issuer.clone();
        assert_eq!(record.registration(&issuer).unwrap().client_id.as_str(), "client 2");
        let tokens = record.tokens.clone().unwrap();
        assert_eq!(record.registration_of(&tokens).unwrap().client_id.as_str(), "client 1");
        new.client_id = ClientId::new("client 3").unwrap();
        record.register(new.clone());
        assert_eq!(record.registrations.len(), 2, "a registration that nothing uses is replaced");
        let tokens = TokenSet { client_id: Some(new.client_id.clone()), ..tokens };
        record.log_in(Some(new), tokens);
        assert_eq!(record.registrations.len(), 1, "the old client is not needed any more");
    }
}
