//! Logs in with a browser on another device (RFC 8628).

use super::{
    event::Event,
    fetch::run,
    login::Login,
    proof::TokenKey,
    session::{Inner, now},
};
use bowline_auth::{
    ClientAuth, ClientChoice, DevicePrompt, DeviceRequest, DynamicRegistration, Error, Grant, Record,
    Registration, Resource, Scopes, ServerMetadata, TokenError, TokenRequest, TokenSet,
};
use std::{sync::Arc, time::Duration};

/// Shows a page and a code to the user.
pub(super) type DeviceDisplay = Arc<dyn Fn(&DevicePrompt) + Send + Sync>;

impl Login {
    /// Logs in with a browser on another device, for machines without one: the user opens a page anywhere and enters a short
    /// code. `show` gets both, and must not block. The authorization server has to support it (RFC 8628).
    ///
    /// ```
    /// use bowline_http::auth::Login;
    ///
    /// let login = Login::device(|prompt| eprintln!("{prompt}"));
    /// ```
    pub fn device(show: impl Fn(&DevicePrompt) + Send + Sync + 'static) -> Self {
        Self::on_device(Arc::new(show))
    }
}

impl Inner {
    /// Shows a code to the user, and asks for the tokens until the user has entered it. Keeps the tokens.
    pub(super) async fn authorize_on_device(
        &self,
        show: &DeviceDisplay,
        server: &ServerMetadata,
        resource: &Resource,
        scopes: &Scopes,
        key: &TokenKey,
        record: &mut Record,
    ) -> Result<TokenSet, Error> {
        if server.device_authorization_endpoint.is_none() {
            let issuer = &server.issuer;
            return Err(Error::misuse(format!(
                "{issuer} offers no logins with a code; log in with a browser, which may run on another machine"
            )));
        }
        let mut registration = self.device_client(server, record).await?;
        let offered = server.auth_methods.as_deref();
        let auth = ClientAuth::new(&registration, self.secret_of(&registration), offered);
        registration.method = Some(auth.method());
        let named_resource = self.rules.resource_parameter(resource);
        let request = DeviceRequest::new(server, &auth, named_resource, scopes);
        let reply = self.fetcher.fetch(&request.request()?).await?;
        let mut pending = request.read(&reply, &self.rules, now())?;
        self.login.report(&Event::Visiting {
            issuer: server.issuer.clone(),
            client_id: registration.client_id.clone(),
            origin: registration.origin,
            scopes: scopes.clone(),
        });
        show(pending.prompt());
        let issued = loop {
            tokio::time::sleep(Duration::from_secs(pending.interval())).await;
            let request = TokenRequest {
                issuer: &server.issuer,
                endpoint: &server.token_endpoint,
                grant: Grant::Device(pending.device_code()),
                client: &auth,
                resource: named_resource,
                asked: scopes,
            };
            let read = match self.send_token_request(key, || request.request()).await {
                Ok(reply) => request.read(&reply, now()),
                Err(error) if error.is_unavailable() => Err(TokenError::Unavailable(error)),
                Err(error) => return Err(error),
            };
            match read {
                Ok(issued) => break issued,
                Err(error) => pending.continue_after(error, &server.issuer, now())?,
            }
        };
        let stored_key = key.accept(issued.scheme, &server.issuer)?;
        let mut tokens = issued.bind(server, Some(&registration), resource, scopes, now());
        tokens.key = stored_key;
        *record = self.keep_login(registration, tokens.clone()).await?;
        Ok(tokens)
    }

    /// Returns the client for logins on other devices. One that was registered for redirects may not use them.
    async fn device_client(
        &self,
        server: &ServerMetadata,
        record: &mut Record,
    ) -> Result<Registration, Error> {
        let client = &self.login.client;
        if let ClientChoice::Known(registration) = client.choose(server, record, "", now())? {
            return Ok(registration);
        }
        let mut flow = DynamicRegistration::for_device(server, &client.name);
        let registration = run(&self.fetcher, |reply| flow.next(reply)).await?;
        *record = self.update(|record| record.register(registration.clone())).await?;
        let (issuer, client_id) = (server.issuer.clone(), registration.client_id.clone());
        self.login.report(&Event::Registered { issuer, client_id });
        Ok(registration)
    }
}
