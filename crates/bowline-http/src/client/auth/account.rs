//! Logging in and out without a call.

use super::{flow::Need, proof::Binding, session::reported};
use crate::client::HttpTarget;
use bowline_auth::{
    Challenge, ClientAuth, ClientId, ClientOrigin, Error, Issuer, Resource, Scheme, Scopes, Secret, TokenSet,
};
use bowline_client::Result;
use http::{StatusCode, header};

/// A login that is stored: everything but its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Account {
    /// The canonical URL of the MCP server.
    pub server: String,
    /// The name that the user gave to the account; empty for the default one.
    pub name: String,
    /// The authorization server that issued the tokens.
    pub issuer: Issuer,
    /// What the tokens are for.
    pub resource: Resource,
    /// The client that they were issued to.
    pub client_id: Option<ClientId>,
    /// Where the client id is from.
    pub origin: ClientOrigin,
    /// The scopes that were granted.
    pub granted: Scopes,
    /// When the access token ends, in seconds since 1970.
    pub expires: Option<u64>,
    /// Whether the login can be renewed without the user.
    pub is_renewable: bool,
    /// Whether the access token is bound to a key (DPoP): it is of no use to anyone who does not have the key.
    pub is_bound: bool,
}

/// How a logout ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoggedOut {
    /// There was no login.
    NotLoggedIn,
    /// The tokens were deleted. The authorization server offers no revocation, or did not confirm it.
    Deleted,
    /// The tokens were revoked at the authorization server, and deleted.
    Revoked,
}

impl HttpTarget {
    /// Logs in now, even if there is a login already.
    ///
    /// The challenge of the server is obtained with a request without credentials.
    pub async fn log_in(&self) -> Result<Account> {
        self.log_in_for(&Scopes::new()).await
    }

    /// Logs in like [`log_in`](Self::log_in), and asks for these scopes too. For a call that failed because its token lacks them.
    pub async fn log_in_for(&self, scopes: &Scopes) -> Result<Account> {
        let session = self.session()?;
        let answer = self.ping_without_credentials().await?;
        let mut need = Need::login();
        if answer.status == StatusCode::UNAUTHORIZED {
            let lines = answer.headers.get_all(header::WWW_AUTHENTICATE).iter();
            let challenges = Challenge::parse_all(lines.filter_map(|line| line.to_str().ok()));
            need.binding = Binding::of(&challenges);
            for challenge in challenges {
                need.announced = need.announced.or_else(|| challenge.resource_metadata().map(str::to_owned));
                need.scopes = need.scopes.or_else(|| challenge.scopes());
            }
        }
        if !scopes.is_empty() {
            need.scopes = Some(need.scopes.unwrap_or_default().union(scopes));
            need.adds_scopes = true;
        }
        session.renew(need).await.map_err(reported)?;
        let account = self.account().await?;
        account.ok_or_else(|| reported(Error::store("the login was not stored")))
    }

    /// Logs in at the configured [issuer](super::Login::issuer) without asking the server, and returns the access token.
    ///
    /// For a server that is itself the resource: it signs a user in at its own authorization server, and then verifies the
    /// token like those of its clients.
    pub async fn sign_in(&self) -> Result<Secret> {
        let session = self.session()?;
        let inner = &session.inner;
        if inner.issuer.is_none() {
            return Err(bowline_client::Error::misuse("a login without its server needs `Login::issuer`"));
        }
        let need = Need::login();
        let record = inner.login.store.load(&inner.key).await.map_err(reported)?.unwrap_or_default();
        inner.log_in(None, record, &need).await.map_err(reported)?;
        let tokens = inner.tokens().await.map_err(reported)?;
        let tokens =
            tokens.ok_or_else(|| reported(Error::store("the new login is missing in the token store")))?;
        Ok(tokens.access_token.clone())
    }

    /// Returns the login that is stored for this server, if there is one.
    pub async fn account(&self) -> Result<Option<Account>> {
        let session = self.session()?;
        let inner = &session.inner;
        let record = inner.login.store.load(&inner.key).await.map_err(reported)?;
        Ok(record
            .and_then(|record| record.tokens)
            .map(|tokens| account(inner.key.server(), inner.key.account(), tokens)))
    }

    /// Revokes the tokens if the authorization server offers it (RFC 7009), then deletes them with the registration.
    pub async fn log_out(&self) -> Result<LoggedOut> {
        let session = self.session()?;
        let inner = &session.inner;
        let store = &inner.login.store;
        let _lock = store.lock(&inner.key).await.map_err(reported)?;
        let Some(record) = store.load(&inner.key).await.map_err(reported)? else {
            return Ok(LoggedOut::NotLoggedIn);
        };
        let mut ended = if record.tokens.is_some() { LoggedOut::Deleted } else { LoggedOut::NotLoggedIn };
        if let Some(tokens) = &inner.newest(&record).or_else(|| record.tokens.clone())
            && let Some(endpoint) = &tokens.revocation_endpoint
            && let Some(registration) = record.registration_of(tokens)
        {
            let auth = ClientAuth::new(registration, inner.secret_of(registration), None);
            let token = tokens.refresh_token.as_ref().unwrap_or(&tokens.access_token);
            // The tokens are deleted even if they cannot be revoked, for example because the secret of the client is not known here.
            let replied = match auth.revocation(endpoint, token) {
                Ok(request) => inner.fetcher.fetch(&request).await,
                Err(error) => Err(error),
            };
            match replied {
                Ok(reply) if reply.status == 200 => ended = LoggedOut::Revoked,
                Ok(reply) => tracing::warn!(status = reply.status, "the tokens were not revoked"),
                Err(error) => tracing::warn!(%error, "the tokens were not revoked"),
            }
        }
        store.remove(&inner.key).await.map_err(reported)?;
        inner.adopt(None);
        Ok(ended)
    }
}

fn account(server: &str, name: &str, tokens: TokenSet) -> Account {
    Account {
        server: server.to_owned(),
        name: name.to_owned(),
        issuer: tokens.issuer,
        resource: tokens.resource,
        client_id: tokens.client_id,
        origin: tokens.origin,
        granted: tokens.granted,
        expires: tokens.expires,
        is_renewable: tokens.refresh_token.is_some(),
        is_bound: tokens.scheme == Scheme::Dpop,
    }
}
