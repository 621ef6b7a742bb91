//! Logins without a user: client credentials, workload identity, and enterprise-managed authorization.

use super::{
    login::Login,
    proof::TokenKey,
    session::{Inner, now},
};
use bowline_auth::{
    AssertionExchange, BoxFuture, ClientAuth, ClientChoice, ClientId, Error, Grant, Registration, Resource,
    Scopes, Secret, ServerMetadata, TokenRequest, TokenSet, jose::SigningKey, jose::client_assertion,
};
use ring::rand::{SecureRandom, SystemRandom};
use std::{fmt, sync::Arc};

/// Reads an assertion or an ID token again for each login.
type TokenSource = Arc<dyn Fn() -> BoxFuture<'static, Result<Secret, Error>> + Send + Sync>;

/// What a client that acts without a user logs in with.
#[derive(Clone)]
pub(super) enum Machine {
    /// The secret of the client.
    Secret,
    /// The private key of the client.
    Key(Arc<SigningKey>),
    /// An assertion of the platform that runs the client.
    Workload(TokenSource),
    /// An ID token that the identity provider of a company exchanges.
    Enterprise { endpoint: String, client_id: Option<String>, id_token: TokenSource },
}

impl Machine {
    /// Returns the identifier of the protocol extension that defines this login. The draft on workloads names none.
    pub(super) fn extension(&self) -> Option<&'static str> {
        match self {
            Self::Secret | Self::Key(_) => Some("io.modelcontextprotocol/oauth-client-credentials"),
            Self::Enterprise { .. } => Some("io.modelcontextprotocol/enterprise-managed-authorization"),
            Self::Workload(_) => None,
        }
    }
}

impl Login {
    /// Logs in as the client itself, with its secret (client credentials). Set the [`issuer`](Self::issuer) that knows the client.
    pub fn machine(client_id: impl Into<String>, secret: impl Into<Secret>) -> Self {
        Self::alone(Machine::Secret).client(client_id, secret)
    }

    /// Logs in as the client itself, with its private key (client credentials and `private_key_jwt`). It needs no issuer: what
    /// is signed for one authorization server is useless at another.
    pub fn machine_with_key(client_id: impl Into<String>, key: SigningKey) -> Self {
        Self::alone(Machine::Key(Arc::new(key))).client_id(client_id)
    }

    /// Logs in with an assertion of the platform, such as the token of a Kubernetes service account. `assertion` is called for
    /// each login; a refused assertion is not tried again. Set the [`issuer`](Self::issuer) that accepts it.
    pub fn workload<F, Fut, E>(assertion: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Secret, E>> + Send + 'static,
        E: fmt::Display,
    {
        Self::alone(Machine::Workload(source(assertion)))
    }

    /// Logs in with the ID token that the user has from the identity provider of a company. Its token endpoint exchanges the ID
    /// token for an assertion. Add the client at the authorization server of the MCP server with [`client`](Self::client), and
    /// the [`issuer`](Self::issuer) of that server.
    pub fn enterprise<F, Fut, E>(token_endpoint: impl Into<String>, id_token: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Secret, E>> + Send + 'static,
        E: fmt::Display,
    {
        let id_token = source(id_token);
        Self::alone(Machine::Enterprise { endpoint: token_endpoint.into(), client_id: None, id_token })
    }

    /// Lets the MCP server choose the authorization server that gets the credentials of a login without a user, if no
    /// [`issuer`](Self::issuer) is set. The credentials stay with the one of the first successful login, as long as the store
    /// keeps its record. Use it only for servers that may have the credentials themselves.
    pub fn trust_first_issuer(mut self) -> Self {
        self.trusts_first_issuer = true;
        self
    }

    /// Sets the id of the client at the identity provider of [`enterprise`](Self::enterprise).
    pub fn identity_provider_client(mut self, id: impl Into<String>) -> Self {
        if let Some(Machine::Enterprise { client_id, .. }) = &mut self.machine {
            *client_id = Some(id.into());
        }
        self
    }
}

fn source<F, Fut, E>(read: F) -> TokenSource
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Secret, E>> + Send + 'static,
    E: fmt::Display,
{
    Arc::new(move || {
        let reading = read();
        Box::pin(async move { reading.await.map_err(|error| Error::misuse(error.to_string())) })
    })
}

impl Inner {
    /// Refuses to send credentials to an authorization server that only the MCP server chose: no user looks at it, and whoever
    /// runs the MCP server could name one of their own.
    pub(super) fn check_issuer_of(&self, machine: &Machine) -> Result<(), Error> {
        let sends_credentials = match machine {
            Machine::Secret | Machine::Workload(_) | Machine::Enterprise { .. } => true,
            // The assertion names the issuer, and no other accepts it.
            Machine::Key(_) => false,
        };
        if !sends_credentials || self.issuer.is_some() || self.login.trusts_first_issuer {
            return Ok(());
        }
        Err(Error::misuse(format!(
            "the login at {} has no issuer; set the authorization server that may get the credentials with \
             `Login::issuer`",
            self.rules.server()
        )))
    }

    /// Obtains tokens without a user, and keeps them. One attempt, with one grant.
    pub(super) async fn log_in_alone(
        &self,
        machine: &Machine,
        server: &ServerMetadata,
        resource: &Resource,
        scopes: &Scopes,
        key: &TokenKey,
    ) -> Result<TokenSet, Error> {
        // A client that acts for itself can always log in again.
        let scopes: Scopes = scopes.iter().filter(|scope| *scope != "offline_access").collect();
        let registration = match machine {
            Machine::Workload(_) => None,
            _ => Some(self.configured_client(server).await?),
        };
        // An assertion is valid for one request.
        let authenticate = || match (machine, &registration) {
            (Machine::Key(key), Some(registration)) => {
                let mut random = [0; 16];
                let filled = SystemRandom::new().fill(&mut random);
                filled.map_err(|_| Error::unavailable("no random numbers are available"))?;
                let (id, issuer) = (registration.client_id.as_str(), server.issuer.as_str());
                let assertion = client_assertion(key, None, id, issuer, now(), &random);
                let assertion = assertion.map_err(|error| Error::misuse(error.to_string()))?;
                Ok::<_, Error>(ClientAuth::by_assertion(&registration.client_id, assertion.into()))
            }
            (_, Some(registration)) => {
                let offered = server.auth_methods.as_deref();
                Ok(ClientAuth::new(registration, self.secret_of(registration), offered))
            }
            (_, None) => Ok(ClientAuth::anonymous()),
        };
        let assertion = match machine {
            Machine::Secret | Machine::Key(_) => None,
            Machine::Workload(read) => Some(read().await?),
            Machine::Enterprise { endpoint, client_id, id_token } => {
                self.rules.check_endpoint("the token endpoint of the identity provider", endpoint)?;
                let client_id = client_id.clone().map(ClientId::new).transpose()?;
                let id_token = id_token().await?;
                let exchange = AssertionExchange {
                    endpoint,
                    client_id: client_id.as_ref(),
                    id_token: &id_token,
                    audience: &server.issuer,
                    resource,
                };
                Some(exchange.read(&self.fetcher.fetch(&exchange.request()).await?)?)
            }
        };
        let auth = authenticate()?;
        let request = TokenRequest {
            issuer: &server.issuer,
            endpoint: &server.token_endpoint,
            grant: assertion.as_ref().map_or(Grant::ClientCredentials, Grant::Assertion),
            client: &auth,
            resource: self.rules.resource_parameter(resource),
            asked: &scopes,
        };
        let make = || TokenRequest { client: &authenticate()?, ..request }.request();
        let reply = self.send_token_request(key, make).await?;
        let issued = request.read(&reply, now()).map_err(|error| error.into_error(&server.issuer))?;
        let stored_key = key.accept(issued.scheme, &server.issuer)?;
        let mut tokens = issued.bind(server, registration.as_ref(), resource, &scopes, now());
        tokens.key = stored_key;
        // The grant itself is the way to the next token.
        tokens.refresh_token = None;
        let exceptions = self.rules.exceptions();
        self.update(|record| {
            record.log_in(registration, tokens.clone());
            record.exceptions = exceptions;
        })
        .await?;
        Ok(tokens)
    }

    async fn configured_client(&self, server: &ServerMetadata) -> Result<Registration, Error> {
        let record = self.login.store.load(&self.key).await?.unwrap_or_default();
        match self.login.client.choose(server, &record, "", now())? {
            ClientChoice::Known(registration) => Ok(registration),
            ClientChoice::Register => Err(Error::misuse(
                "a login without a user needs the id of a client; add it with `Login::client`",
            )),
        }
    }
}
