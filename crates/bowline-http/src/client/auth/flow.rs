//! Renews tokens: discovery, then a refresh or a login.

use super::{
    event::Event,
    fetch::run,
    proof::{Binding, TokenKey},
    session::{Inner, now},
};
use bowline_auth::{
    AuthorizationRequest, ClientAuth, ClientChoice, ClientOrigin, DynamicRegistration, Error, Grant, Issuer,
    Lenient, ProtectedResource, Record, Redirect, Registration, Resource, ResourceDiscovery, ResourceMatch,
    Scheme, ScopeSources, Scopes, Secret, ServerDiscovery, ServerMetadata, TokenError, TokenRequest,
    TokenSet, discover, verify::token_digest,
};
use ring::rand::{SecureRandom, SystemRandom};
use std::sync::{Arc, atomic::Ordering};

/// Why other tokens are needed.
#[derive(Debug)]
pub(super) struct Need {
    /// The URL of the metadata that the challenge announced.
    pub(super) announced: Option<String>,
    /// The scopes of the challenge.
    pub(super) scopes: Option<Scopes>,
    /// Whether these scopes are asked for even if others are configured.
    pub(super) adds_scopes: bool,
    /// The access token that does not serve.
    pub(super) stale: Option<Secret>,
    pub(super) kind: NeedKind,
    /// Whether a user may be asked to log in.
    pub(super) may_ask: bool,
    /// Whether the server asks for tokens that are bound to a key.
    pub(super) binding: Binding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NeedKind {
    /// The server refused the token, or wants one.
    Unauthorized { may_refresh: bool },
    /// The token lacks scopes. A refresh cannot add any.
    StepUp,
    /// The user wants to log in.
    Login,
}

impl Need {
    /// A login that the user asked for.
    pub(super) fn login() -> Self {
        Self {
            announced: None,
            scopes: None,
            adds_scopes: false,
            stale: None,
            kind: NeedKind::Login,
            may_ask: true,
            binding: Binding::Unbound,
        }
    }

    /// A token that is about to expire.
    pub(super) fn before_expiry(tokens: &TokenSet) -> Self {
        Self {
            announced: None,
            scopes: None,
            adds_scopes: false,
            stale: Some(tokens.access_token.clone()),
            kind: NeedKind::Unauthorized { may_refresh: false },
            may_ask: false,
            binding: Binding::Unbound,
        }
    }

    pub(super) fn is_step_up(&self) -> bool {
        self.kind == NeedKind::StepUp
    }
}

/// How tokens were renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renewed {
    /// Someone else did it.
    Adopted,
    /// With the refresh token.
    Refreshed,
    /// By a login.
    LoggedIn,
}

impl Inner {
    /// Renews the tokens, unless someone else did so while this waited.
    pub(super) async fn renew(self: &Arc<Self>, mut need: Need) -> Result<Renewed, Error> {
        let _gate = self.gate.lock().await;
        let in_use = self.tokens().await?;
        let is_asked_for = need.kind == NeedKind::Login;
        if !is_asked_for
            && in_use.as_ref().is_some_and(|tokens| Some(&tokens.access_token) != need.stale.as_ref())
        {
            return Ok(Renewed::Adopted);
        }
        let record = self.login.store.load(&self.key).await?.unwrap_or_default();
        if let Some(tokens) = self.newest(&record)
            && !is_asked_for
            && Some(&tokens.access_token) != need.stale.as_ref()
        {
            self.adopt(Some(tokens));
            return Ok(Renewed::Adopted);
        }
        let found = self.discover_resource(need.announced.as_deref()).await;
        if let (NeedKind::Unauthorized { may_refresh: true }, Some(tokens)) = (need.kind, &in_use)
            && tokens.refresh_token.is_some()
        {
            let is_listed = match &found {
                Ok(Some(resource)) => self.lists(resource, &tokens.issuer),
                Ok(None) => true,
                Err(error) if error.is_unavailable() => true,
                Err(error) => return Err(error.clone()),
            };
            if is_listed {
                match self.refresh(tokens).await {
                    Ok(()) => return Ok(Renewed::Refreshed),
                    Err(error) if error.code().is_some() || error.is_visit() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let found = found?;
        if in_use.as_ref().is_some_and(|tokens| tokens.scheme == Scheme::Dpop) {
            need.binding = need.binding.max(Binding::Preferred);
        }
        if let (Some(tokens), Some(resource)) = (&in_use, &found)
            && !self.lists(resource, &tokens.issuer)
        {
            self.login.report(&Event::IssuerChanged { from: tokens.issuer.clone() });
        }
        let logged_in = self.log_in(found, record, &need).await;
        if let Err(error) = &logged_in
            && self.may_log_in(&need)
        {
            let reason = error.to_string();
            self.login.report(&Event::LoginFailed { is_step_up: need.is_step_up(), reason });
        }
        logged_in?;
        Ok(Renewed::LoggedIn)
    }

    fn lists(&self, resource: &ProtectedResource, issuer: &Issuer) -> bool {
        if self.login.endpoints.is_some() {
            // The user chose the authorization server, whatever the resource lists.
            return true;
        }
        let slash = |text: &str| text.strip_suffix('/').unwrap_or(text).to_owned();
        resource.servers.iter().any(|listed| {
            listed == issuer
                || (self.rules.allows(Lenient::IssuerSlash)
                    && slash(listed.as_str()) == slash(issuer.as_str()))
        })
    }

    async fn discover_resource(&self, announced: Option<&str>) -> Result<Option<ProtectedResource>, Error> {
        let mut discovery = ResourceDiscovery::new(&self.rules, announced)?;
        run(&self.fetcher, |reply| discovery.next(reply)).await
    }

    /// Finds the authorization server and checks its metadata.
    async fn discover_server(
        &self,
        resource: Option<&ProtectedResource>,
        record: &Record,
    ) -> Result<ServerMetadata, Error> {
        if let Some((authorization_url, token_url)) = &self.login.endpoints {
            let issuer = self.issuer.clone().map_or_else(|| Issuer::of_endpoint(token_url), Ok)?;
            return ServerMetadata::configured(issuer, authorization_url, token_url, &self.rules);
        }
        let candidates = match (resource, &self.issuer) {
            (Some(resource), configured) => {
                discover::preferred_servers(resource, configured.as_ref(), |issuer| {
                    record.registration(issuer).is_some()
                })?
            }
            (None, Some(configured)) => vec![configured.clone()],
            (None, None) if self.login.allows_legacy => {
                let mut discovery = ServerDiscovery::legacy(&self.rules)?;
                let server = run(&self.fetcher, |reply| discovery.next(reply)).await?;
                let server = server.ok_or_else(|| Error::unavailable("no authorization server was found"))?;
                self.login.report(&Event::Discovered { issuer: server.issuer.clone(), is_legacy: true });
                return Ok(server);
            }
            (None, None) => {
                return Err(Error::untrusted(format!(
                    "{} publishes no metadata about its authorization",
                    self.rules.server()
                )));
            }
        };
        for issuer in &candidates {
            let mut discovery = ServerDiscovery::new(&self.rules, issuer.clone())?;
            if let Some(server) = run(&self.fetcher, |reply| discovery.next(reply)).await? {
                self.login.report(&Event::Discovered { issuer: server.issuer.clone(), is_legacy: false });
                return Ok(server);
            }
        }
        let names: Vec<&str> = candidates.iter().map(Issuer::as_str).collect();
        Err(Error::unavailable(format!("{} publishes no authorization server metadata", names.join(", "))))
    }

    fn may_log_in(&self, need: &Need) -> bool {
        self.login.can_log_in() && (need.may_ask || self.login.machine.is_some())
    }

    /// Sends the user to the authorization server and exchanges the code.
    pub(super) async fn log_in(
        self: &Arc<Self>,
        found: Option<ProtectedResource>,
        mut record: Record,
        need: &Need,
    ) -> Result<(), Error> {
        if !self.may_log_in(need) {
            let issuer = found.as_ref().and_then(|resource| resource.servers.first()).cloned();
            let reason = match need.kind {
                NeedKind::StepUp => "the token lacks scopes",
                _ if self.login.can_log_in() => {
                    "there is no valid token, and the user is not asked again at this time"
                }
                _ if self.is_refresh_lost.load(Ordering::Relaxed) => {
                    "an earlier process was interrupted while it refreshed the token, and the new token is lost"
                }
                _ => "there is no valid token",
            };
            let scopes = need.scopes.clone().unwrap_or_default();
            return Err(Error::login_needed(self.rules.server(), issuer, scopes, reason));
        }
        if let Some(machine) = &self.login.machine {
            self.check_issuer_of(machine)?;
        }
        let server = self.discover_server(found.as_ref(), &record).await?;
        let is_required = self.login.dpop || found.as_ref().is_some_and(|found| found.dpop_required);
        let key = TokenKey::generate(if is_required { Binding::Required } else { need.binding }, &server)?;
        let resource = match (&self.resource, &found) {
            (Some(configured), _) => configured.clone(),
            (None, Some(found)) => found.resource.clone(),
            (None, None) => Resource::of_server(self.rules.server())?,
        };
        if found.as_ref().is_some_and(|found| found.matching == ResourceMatch::Parent) {
            self.login.report(&Event::ParentResource { resource: resource.clone() });
        }
        let earlier = record.tokens.as_ref().filter(|tokens| tokens.issuer == server.issuer);
        let earlier = earlier.map(|tokens| tokens.asked.union(&tokens.granted));
        let scopes = ScopeSources {
            configured: self.login.scopes.as_ref(),
            challenged: need.scopes.as_ref(),
            supported: found.as_ref().and_then(|found| found.scopes.as_ref()),
            earlier: earlier.as_ref(),
            is_step_up: need.is_step_up() || need.adds_scopes,
        }
        .select(&server);
        if let Some(machine) = &self.login.machine {
            // The server chooses the issuer, and no user looks at it. Credentials stay with the issuer that they worked at.
            if let Some(tokens) = &record.tokens
                && tokens.issuer != server.issuer
                && self.issuer.as_ref() != Some(&server.issuer)
            {
                return Err(Error::untrusted(format!(
                    "{} names the authorization server {}, but the credentials were used at {}; set the issuer, or log out",
                    self.rules.server(),
                    server.issuer,
                    tokens.issuer
                )));
            }
            let tokens = self.log_in_alone(machine, &server, &resource, &scopes, &key).await?;
            self.finish_login(tokens, need);
            return Ok(());
        }
        let mut is_second = false;
        loop {
            let authorized = match self.login.device_display() {
                Some(show) => {
                    let resource = &resource;
                    self.authorize_on_device(show, &server, resource, &scopes, &key, &mut record).await
                }
                None => self.authorize(&server, &resource, &scopes, &key, &mut record).await,
            };
            match authorized {
                Ok(tokens) => {
                    self.finish_login(tokens, need);
                    return Ok(());
                }
                // The authorization server has forgotten the client.
                Err(error)
                    if is_unknown_client(&error) && !is_second && is_dynamic(&record, &server.issuer) =>
                {
                    let client_id = record.registration(&server.issuer).map(|known| known.client_id.clone());
                    record = self
                        .update(|record| {
                            if let Some(client_id) = client_id {
                                record.forget_registration(&server.issuer, &client_id);
                            }
                        })
                        .await?;
                    is_second = true;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reports a login and uses its tokens.
    fn finish_login(&self, tokens: TokenSet, need: &Need) {
        self.login.report(&Event::LoggedIn {
            issuer: tokens.issuer.clone(),
            granted: tokens.granted.clone(),
            is_step_up: need.is_step_up(),
            token_digest: token_digest(tokens.access_token.expose()),
        });
        self.adopt(Some(tokens));
    }

    /// One authorization request and its token request. Keeps the tokens.
    async fn authorize(
        &self,
        server: &ServerMetadata,
        resource: &Resource,
        scopes: &Scopes,
        key: &TokenKey,
        record: &mut Record,
    ) -> Result<TokenSet, Error> {
        let stored =
            record.registration(&server.issuer).filter(|stored| stored.origin == ClientOrigin::Dynamic);
        let bound = stored.map(|stored| stored.redirect_uri.clone());
        let redirect = self.prepare_redirect(bound.as_deref()).await?;
        let client = &self.login.client;
        let choice = client.choose(server, record, redirect.redirect_uri(), now())?;
        let is_stored =
            matches!(&choice, ClientChoice::Known(client) if client.origin == ClientOrigin::Dynamic);
        let mut registration = match choice {
            ClientChoice::Known(registration) => registration,
            ClientChoice::Register => {
                let mut flow = DynamicRegistration::new(server, &client.name, redirect.redirect_uri())?;
                let registration = run(&self.fetcher, |reply| flow.next(reply)).await?;
                *record = self.update(|record| record.register(registration.clone())).await?;
                let (issuer, client_id) = (server.issuer.clone(), registration.client_id.clone());
                self.login.report(&Event::Registered { issuer, client_id });
                registration
            }
        };
        // An authorization server may accept only the second form of the URI, and the listener checks the host.
        let redirect = if registration.redirect_uri == redirect.redirect_uri() {
            redirect
        } else {
            drop(redirect);
            self.prepare_redirect(Some(&registration.redirect_uri)).await?
        };
        let mut random = [0; 64];
        SystemRandom::new()
            .fill(&mut random)
            .map_err(|_| Error::unavailable("no random numbers are available"))?;
        let request = AuthorizationRequest {
            server,
            client_id: &registration.client_id,
            redirect_uri: &registration.redirect_uri,
            resource,
            scopes,
            extra: &self.login.parameters,
        };
        let pending = request.start(&self.rules, &random, now())?;
        self.login.report(&Event::Visiting {
            issuer: server.issuer.clone(),
            client_id: registration.client_id.clone(),
            origin: registration.origin,
            scopes: scopes.clone(),
        });
        let visited = redirect.visit(pending.visit().clone()).await;
        let is_in_use = record.tokens.as_ref().is_some_and(|tokens| {
            tokens.client_id.as_ref() == Some(&registration.client_id) && tokens.refresh_token.is_some()
        });
        if visited.is_err() && is_stored && !is_in_use {
            // An authorization server that does not know the client any more shows an error page, and never redirects.
            let client_id = &registration.client_id;
            self.update(|record| record.forget_registration(&server.issuer, client_id)).await?;
        }
        let code = pending.accept(&visited?, now())?;
        let offered = server.auth_methods.as_deref();
        let auth = ClientAuth::new(&registration, self.secret_of(&registration), offered);
        registration.method = Some(auth.method());
        let request = TokenRequest {
            issuer: &server.issuer,
            endpoint: &server.token_endpoint,
            grant: Grant::Code(&code),
            client: &auth,
            resource: self.rules.resource_parameter(resource),
            asked: scopes,
        };
        let reply = self.send_token_request(key, || request.request()).await?;
        let issued = request.read(&reply, now()).map_err(|error| error.into_error(&server.issuer))?;
        let stored_key = key.accept(issued.scheme, &server.issuer)?;
        let mut tokens = issued.bind(server, Some(&registration), resource, scopes, now());
        tokens.key = stored_key;
        *record = self.keep_login(registration, tokens.clone()).await?;
        Ok(tokens)
    }

    /// Keeps the tokens of a login, with what their refreshes need.
    pub(super) async fn keep_login(
        &self,
        mut registration: Registration,
        tokens: TokenSet,
    ) -> Result<Record, Error> {
        if self.login.keeps_secret && registration.origin == ClientOrigin::Configured {
            registration.secret.clone_from(&self.login.client.secret);
        }
        let exceptions = self.rules.exceptions();
        let keep = |record: &mut Record| {
            record.log_in(Some(registration), tokens);
            record.exceptions = exceptions;
        };
        self.update(keep).await
    }

    async fn prepare_redirect(&self, bound: Option<&str>) -> Result<Box<dyn Redirect>, Error> {
        let redirect = self.login.prepare(bound).await?;
        redirect.ok_or_else(|| Error::visit("nothing can open the page"))
    }

    /// Returns the configured secret, which belongs to the configured client id only.
    pub(super) fn secret_of(&self, registration: &Registration) -> Option<&Secret> {
        self.login.client.secret.as_ref().filter(|_| registration.origin == ClientOrigin::Configured)
    }

    /// Changes the record in the store.
    pub(super) async fn update(&self, change: impl FnOnce(&mut Record)) -> Result<Record, Error> {
        let store = &self.login.store;
        let _lock = store.lock(&self.key).await?;
        let mut record = store.load(&self.key).await?.unwrap_or_default();
        change(&mut record);
        store.save(&self.key, &record).await?;
        Ok(record)
    }

    /// Refreshes tokens in a task of its own: a call that is cancelled must not lose a refresh token that was rotated.
    pub(super) async fn refresh(self: &Arc<Self>, stale: &TokenSet) -> Result<(), Error> {
        let (inner, stale) = (Arc::clone(self), stale.clone());
        let task = tokio::spawn(async move { inner.refresh_locked(&stale).await });
        task.await.unwrap_or_else(|_| Err(Error::unavailable("the refresh was aborted")))
    }

    async fn refresh_locked(&self, stale: &TokenSet) -> Result<(), Error> {
        let store = &self.login.store;
        let lock = store.lock(&self.key).await?;
        if lock.is_after_interruption() {
            self.login.report(&Event::Interrupted);
        }
        let mut record = store.load(&self.key).await?.unwrap_or_default();
        let Some(tokens) = self.newest(&record) else {
            // Someone logged out.
            self.adopt(None);
            return Ok(());
        };
        if tokens.access_token != stale.access_token {
            self.adopt(Some(tokens));
            return Ok(());
        }
        match self.request_refresh(&tokens, &record).await {
            Ok(renewed) => {
                let outdated = record.tokens.replace(renewed.clone());
                let saved = store.save(&self.key, &record).await;
                self.login.report(&Event::Refreshed {
                    issuer: renewed.issuer.clone(),
                    granted: renewed.granted.clone(),
                    token_digest: token_digest(renewed.access_token.expose()),
                });
                self.adopt(Some(renewed));
                // The old refresh token may be spent, so the new tokens are used although they are not stored.
                if let Err(error) = saved {
                    self.keep_unsaved(outdated.map(|tokens| tokens.access_token));
                    tracing::warn!(%error, "the refreshed tokens cannot be stored; they are lost when this process ends");
                    self.login.report(&Event::NotStored { reason: error.to_string() });
                }
                Ok(())
            }
            Err(TokenError::Refused(error)) => {
                let (issuer, reason) = (tokens.issuer.clone(), error.to_string());
                self.login.report(&Event::RefreshRefused { issuer, reason });
                if lock.is_after_interruption() {
                    self.is_refresh_lost.store(true, Ordering::Relaxed);
                }
                if is_unknown_client(&error)
                    && let Some(registration) = record.registration_of(&tokens)
                    && registration.origin == ClientOrigin::Dynamic
                {
                    let client_id = registration.client_id.clone();
                    record.forget_registration(&tokens.issuer, &client_id);
                } else if error.code() != Some("invalid_grant") {
                    // Nothing says that the refresh token is spent.
                    return Err(error);
                }
                let mut spent = tokens;
                spent.refresh_token = None;
                record.tokens = Some(spent.clone());
                store.save(&self.key, &record).await?;
                self.adopt(Some(spent));
                Err(error)
            }
            Err(error) => Err(error.into_error(&tokens.issuer)),
        }
    }

    /// Asks the issuer of the tokens for new ones. If its token endpoint is gone, its metadata is read again, once.
    async fn request_refresh(&self, tokens: &TokenSet, record: &Record) -> Result<TokenSet, TokenError> {
        let failed = TokenError::Failed;
        let Some(refresh_token) = &tokens.refresh_token else {
            return Err(failed(Error::visit("there is no refresh token")));
        };
        let Some(registration) = record.registration_of(tokens) else {
            return Err(failed(Error::visit("the registration of the client is missing; log in again")));
        };
        let auth = ClientAuth::new(registration, self.secret_of(registration), None);
        // The refresh token of a public client is bound to the key too.
        let key = self.key_for_refresh(tokens).map_err(failed)?;
        let mut endpoint = tokens.token_endpoint.clone();
        let mut is_second = false;
        loop {
            let request = TokenRequest {
                issuer: &tokens.issuer,
                endpoint: &endpoint,
                grant: Grant::Refresh(refresh_token),
                client: &auth,
                resource: self.rules.resource_parameter(&tokens.resource),
                asked: &tokens.granted,
            };
            let reply = self.send_token_request(&key, || request.request()).await;
            match request.read(&reply.map_err(TokenError::Unavailable)?, now()) {
                Ok(issued) => {
                    key.accept(issued.scheme, &tokens.issuer).map_err(failed)?;
                    return Ok(issued.replace(tokens, &endpoint, now()));
                }
                Err(TokenError::Gone) if !is_second && self.login.endpoints.is_none() => {
                    is_second = true;
                    let discovery = ServerDiscovery::new(&self.rules, tokens.issuer.clone());
                    let mut discovery = discovery.map_err(failed)?;
                    let server = run(&self.fetcher, |reply| discovery.next(reply)).await.map_err(failed)?;
                    endpoint = server.ok_or(TokenError::Gone)?.token_endpoint;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

fn is_unknown_client(error: &Error) -> bool {
    matches!(error.code(), Some("invalid_client" | "unauthorized_client"))
}

fn is_dynamic(record: &Record, issuer: &Issuer) -> bool {
    record.registration(issuer).is_some_and(|registration| registration.origin == ClientOrigin::Dynamic)
}
