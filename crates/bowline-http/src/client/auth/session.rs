//! The tokens for one server: which one is sent, and what happens when the server refuses it.

use super::{
    event::Event,
    fetch::{Fetcher, sensitive},
    flow::{Need, NeedKind, Renewed},
    login::Login,
    proof::{Binding, HEADER, NONCE_HEADER, Proofs},
};
use crate::client::{
    authorize::{Attempts, Authorize, MAX_STEP_UPS, Reaction, Refusal},
    post::Poster,
};
use bowline_auth::{
    Challenge, ClientId, Error, Issuer, Record, Resource, Rules, Scheme, Scopes, Secret, StoreKey, TokenSet,
    is_due,
};
use bowline_client::BoxFuture;
use http::{HeaderMap, Method, StatusCode, Uri, header};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::{sync::oneshot, task::JoinSet};

/// How often one request takes over tokens that another request obtained.
const MAX_ADOPTIONS: u32 = 3;
/// How long a failed attempt is remembered, in seconds.
const REMEMBERED: u64 = 600;
/// At most this many failed step-ups are remembered.
const MAX_FAILURES: usize = 100;
/// How long to wait before a refresh is tried again after the authorization server was not available, in seconds.
const REFRESH_PAUSE: u64 = 10;

/// The attempts of one request.
#[derive(Debug, Default)]
pub(in crate::client) struct LoginAttempts {
    refreshed: bool,
    logged_in: bool,
    step_ups: u32,
    adoptions: u32,
    last_step_up: Option<Scopes>,
    /// Whether a nonce was already added since the last login or refresh.
    has_new_nonce: bool,
}

/// The tokens for one server and account.
pub(in crate::client) struct Session {
    pub(super) inner: Arc<Inner>,
    /// Logins that are under way. They outlive the call that started them, and end with the session.
    logins: Mutex<JoinSet<()>>,
}

/// What the session shares with its tasks.
pub(super) struct Inner {
    pub(super) login: Login,
    pub(super) rules: Rules,
    pub(super) key: StoreKey,
    pub(super) issuer: Option<Issuer>,
    /// The configured resource.
    pub(super) resource: Option<Resource>,
    pub(super) fetcher: Fetcher,
    pub(super) proofs: Proofs,
    state: Mutex<State>,
    /// Held while tokens are renewed, so that many refused requests start one login.
    pub(super) gate: tokio::sync::Mutex<()>,
    /// Whether the refresh token was spent by a process that ended before it kept the new one.
    pub(super) is_refresh_lost: AtomicBool,
}

#[derive(Default)]
struct State {
    is_loaded: bool,
    tokens: Option<Arc<TokenSet>>,
    /// The access token in the store, if `tokens` replaced it and could not be saved.
    outdated: Option<Secret>,
    /// Operations and scopes for which a step-up did not help, and until when this is remembered.
    failed_step_ups: HashMap<(String, String), u64>,
    /// A token that was refused right after a login, and until when this is remembered.
    failed_login: Option<(Secret, u64)>,
    /// After the user declined a login or did not finish it, requests do not ask again before this time.
    no_prompt_before: u64,
    /// No refresh before this time.
    refresh_after: u64,
}

impl Session {
    pub(super) fn new(mut login: Login, url: &str, poster: Poster) -> Result<Self, Error> {
        let rules = Rules::new(url, &login.lenient, login.exact_resource)?;
        let key = StoreKey::new(url, &login.account)?;
        let issuer = login.issuer.clone().map(Issuer::new).transpose()?;
        let resource = login.resource.clone().map(Resource::new).transpose()?;
        login.client.client_id = login.client_id.clone().map(ClientId::new).transpose()?;
        let endpoints = login.endpoints.iter().flat_map(|(authorization, token)| [authorization, token]);
        let configured = login.issuer.iter().chain(endpoints).map(String::as_str);
        let fetcher = Fetcher::new(poster, url, login.networks, configured);
        let inner = Inner {
            login,
            rules,
            key,
            issuer,
            resource,
            fetcher,
            proofs: Proofs::default(),
            state: Mutex::default(),
            gate: tokio::sync::Mutex::default(),
            is_refresh_lost: AtomicBool::new(false),
        };
        Ok(Self { inner: Arc::new(inner), logins: Mutex::default() })
    }

    /// Renews the tokens in a task of its own: a call that is cancelled does not end a login that a user has begun.
    pub(super) async fn renew(&self, need: Need) -> Result<Renewed, Error> {
        let (sender, receiver) = oneshot::channel();
        let inner = Arc::clone(&self.inner);
        {
            let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
            while logins.try_join_next().is_some() {}
            logins.spawn(async move { drop(sender.send(inner.renew(need).await)) });
        }
        receiver.await.unwrap_or_else(|_| Err(Error::unavailable("the login was aborted")))
    }

    async fn credentials(&self, method: &Method, url: &Uri) -> Result<HeaderMap, Error> {
        let Some(mut tokens) = self.inner.tokens().await? else { return Ok(HeaderMap::new()) };
        let now = now();
        let is_refresh_due =
            is_due(tokens.issued, tokens.expires, now) && now >= self.inner.state().refresh_after;
        // A client that acts for itself has no refresh token: its grant is the way to the next token.
        let is_machine = tokens.refresh_token.is_none()
            && self.inner.login.machine.is_some()
            && tokens.expires.is_some_and(|end| tokens.issued < end);
        if is_refresh_due && (tokens.refresh_token.is_some() || is_machine) {
            let renewed = if is_machine {
                self.renew(Need::before_expiry(&tokens)).await.map(drop)
            } else {
                self.inner.refresh(&tokens).await
            };
            match renewed {
                Ok(()) => {}
                Err(error) if tokens.expires.is_some_and(|end| now < end) => {
                    // An assertion that was refused is refused again.
                    let is_final = is_machine && error.code().is_some();
                    let end = tokens.expires.filter(|_| is_final);
                    self.inner.state().refresh_after = end.unwrap_or(now + REFRESH_PAUSE);
                    let issuer = tokens.issuer.clone();
                    self.inner.login.report(&Event::RefreshFailed { issuer, reason: error.to_string() });
                }
                // The refresh failed permanently; the server answers with a challenge.
                Err(error) if !is_machine && (error.code().is_some() || error.is_visit()) => {}
                Err(error) => return Err(error),
            }
            match self.inner.tokens().await? {
                Some(renewed) => tokens = renewed,
                None => return Ok(HeaderMap::new()),
            }
        }
        let value = Secret::new(header_of(&tokens));
        let mut headers = HeaderMap::from_iter([(header::AUTHORIZATION, sensitive(&value)?)]);
        let proofs = &self.inner.proofs;
        if let Some(key) = proofs.key_of(&tokens)? {
            let proof = proofs.sign(&key, method.as_str(), &url.to_string(), Some(&tokens.access_token))?;
            headers.insert(HEADER, sensitive(&proof)?);
        }
        Ok(headers)
    }

    async fn react(&self, refusal: &Refusal<'_>, attempts: &mut LoginAttempts) -> Result<Reaction, Error> {
        let challenges = refusal.challenges();
        let ours: Vec<&Challenge> =
            challenges.iter().filter(|challenge| challenge.is("bearer") || challenge.is("dpop")).collect();
        if ours.is_empty() && !challenges.is_empty() {
            return Ok(Reaction::GiveUp);
        }
        if let Some(reaction) = self.answer_refused_proof(refusal, &challenges, attempts)? {
            return Ok(reaction);
        }
        let tokens = self.inner.tokens().await?;
        let sent = refusal.sent.get(header::AUTHORIZATION);
        let is_current = |tokens: &TokenSet| sent.is_some_and(|sent| *sent == header_of(tokens));
        if let Some(tokens) = &tokens
            && !is_current(tokens)
            && attempts.adoptions < MAX_ADOPTIONS
        {
            attempts.adoptions += 1;
            return Ok(Reaction::Retry);
        }
        let stale = tokens.as_ref().map(|tokens| tokens.access_token.clone());
        let need = Need {
            announced: ours.iter().find_map(|challenge| challenge.resource_metadata()).map(str::to_owned),
            scopes: ours.iter().find_map(|challenge| challenge.scopes()),
            adds_scopes: false,
            stale,
            kind: NeedKind::Login,
            // Streams and the end of a session belong to no call of the user, and reconnect by themselves.
            may_ask: !refusal.has_no_message() && now() >= self.inner.state().no_prompt_before,
            binding: Binding::of(&challenges),
        };
        let reaction = if refusal.status == StatusCode::FORBIDDEN {
            self.step_up(need, refusal.operation(), attempts).await?
        } else {
            self.answer_unauthorized(need, attempts).await?
        };
        // A login can take longer than the nonce is valid.
        attempts.has_new_nonce = false;
        Ok(reaction)
    }

    /// Reacts to a refusal of the proof and not of the token. It starts no login, because another token would not help.
    fn answer_refused_proof(
        &self,
        refusal: &Refusal<'_>,
        challenges: &[Challenge],
        attempts: &mut LoginAttempts,
    ) -> Result<Option<Reaction>, Error> {
        if refusal.status != StatusCode::UNAUTHORIZED || !refusal.sent.contains_key(HEADER) {
            return Ok(None);
        }
        let server = self.inner.rules.server();
        let mut dpop = challenges.iter().filter(|challenge| challenge.is("dpop"));
        match dpop.find_map(Challenge::error) {
            Some("use_dpop_nonce") => {
                if attempts.has_new_nonce || !refusal.headers.contains_key(NONCE_HEADER) {
                    return Err(Error::too_many_attempts(format!(
                        "{server} refuses the DPoP nonce that it asked for"
                    )));
                }
                attempts.has_new_nonce = true;
                Ok(Some(Reaction::RetryUnchanged))
            }
            Some("invalid_dpop_proof") => Err(Error::untrusted(format!(
                "{server} refuses the DPoP proof of this client; check that the clock of this machine is right"
            ))),
            _ => Ok(None),
        }
    }

    async fn answer_unauthorized(
        &self,
        mut need: Need,
        attempts: &mut LoginAttempts,
    ) -> Result<Reaction, Error> {
        let server = self.inner.rules.server();
        let again = || {
            Error::too_many_attempts(format!(
                "{server} refuses the token that was just issued for it; log out and check the settings of the server"
            ))
        };
        if attempts.logged_in {
            if let Some(stale) = need.stale {
                self.inner.state().failed_login = Some((stale, now() + REMEMBERED));
            }
            return Err(again());
        }
        let has_failed = self
            .inner
            .state()
            .failed_login
            .as_ref()
            .is_some_and(|(token, until)| now() < *until && need.stale.as_ref() == Some(token));
        if has_failed {
            return Err(again());
        }
        need.kind = NeedKind::Unauthorized { may_refresh: !attempts.refreshed };
        let may_ask = need.may_ask;
        let renewed = self.renew(need).await.inspect_err(|error| {
            if may_ask && (error.is_visit() || error.code().is_some()) {
                self.inner.state().no_prompt_before = now() + REMEMBERED;
            }
        })?;
        match renewed {
            Renewed::Adopted => {
                attempts.adoptions += 1;
                if attempts.adoptions > MAX_ADOPTIONS {
                    return Err(again());
                }
            }
            Renewed::Refreshed => attempts.refreshed = true,
            Renewed::LoggedIn => attempts.logged_in = true,
        }
        Ok(Reaction::Retry)
    }

    /// Asks for more scopes. A challenge that repeats after a step-up has failed, and is remembered per operation.
    async fn step_up(
        &self,
        mut need: Need,
        operation: String,
        attempts: &mut LoginAttempts,
    ) -> Result<Reaction, Error> {
        let scopes = need.scopes.clone().unwrap_or_default();
        let key = (operation, scopes.to_string());
        let server = self.inner.rules.server().to_owned();
        let failed = || {
            let wanted =
                if scopes.is_empty() { "more scopes".to_owned() } else { format!("the scopes `{scopes}`") };
            Error::too_many_attempts(format!("{server} needs {wanted}, which a login did not give"))
        };
        let is_known = self.inner.state().failed_step_ups.get(&key).is_some_and(|until| now() < *until);
        if is_known {
            return Err(failed());
        }
        if attempts.step_ups == MAX_STEP_UPS || attempts.last_step_up.as_ref() == Some(&scopes) {
            self.remember(key);
            return Err(failed());
        }
        attempts.step_ups += 1;
        attempts.last_step_up = Some(scopes);
        need.kind = NeedKind::StepUp;
        match self.renew(need).await {
            Ok(_) => Ok(Reaction::Retry),
            Err(error) => {
                if error.code().is_some() {
                    self.remember(key);
                }
                Err(error)
            }
        }
    }

    fn remember(&self, key: (String, String)) {
        let now = now();
        let failures = &mut self.inner.state().failed_step_ups;
        failures.retain(|_, until| now < *until);
        if failures.len() < MAX_FAILURES {
            failures.insert(key, now + REMEMBERED);
        }
    }
}

impl Authorize for Session {
    fn headers<'a>(
        &'a self,
        method: &'a Method,
        url: &'a Uri,
    ) -> BoxFuture<'a, bowline_client::Result<HeaderMap>> {
        Box::pin(async move { self.credentials(method, url).await.map_err(reported) })
    }

    fn responded(&self, url: &Uri, headers: &HeaderMap) {
        if let Some(nonce) = headers.get(NONCE_HEADER).and_then(|nonce| nonce.to_str().ok()) {
            self.inner.proofs.learn(&url.to_string(), nonce);
        }
    }

    fn challenged<'a>(
        &'a self,
        refusal: &'a Refusal<'a>,
        attempts: &'a mut Attempts,
    ) -> BoxFuture<'a, bowline_client::Result<Reaction>> {
        Box::pin(async move { self.react(refusal, &mut attempts.login).await.map_err(reported) })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("key", &self.inner.key).finish_non_exhaustive()
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tokens in use. They are read from the store the first time.
    pub(super) async fn tokens(&self) -> Result<Option<Arc<TokenSet>>, Error> {
        {
            let state = self.state();
            if state.is_loaded {
                return Ok(state.tokens.clone());
            }
        }
        let record = self.login.store.load(&self.key).await?.unwrap_or_default();
        self.rules.remember(&record.exceptions);
        let mut state = self.state();
        if !state.is_loaded {
            state.is_loaded = true;
            state.tokens = self.usable(&record).cloned().map(Arc::new);
        }
        Ok(state.tokens.clone())
    }

    /// Returns the tokens of a record, if they fit the settings: another configured issuer, client id or resource makes
    /// them useless, and so does a missing key if DPoP is required.
    pub(super) fn usable<'a>(&self, record: &'a Record) -> Option<&'a TokenSet> {
        record.tokens.as_ref().filter(|tokens| {
            let configured = &self.login.client.client_id;
            self.issuer.as_ref().is_none_or(|issuer| tokens.issuer == *issuer)
                && configured.as_ref().is_none_or(|id| tokens.client_id.as_ref() == Some(id))
                && (!self.login.dpop || tokens.scheme == Scheme::Dpop)
                && self.resource.as_ref().is_none_or(|resource| tokens.resource == *resource)
        })
    }

    /// Returns the newest tokens: those of a record, unless this process has newer ones that could not be saved.
    pub(super) fn newest(&self, record: &Record) -> Option<TokenSet> {
        let stored = self.usable(record)?;
        let state = self.state();
        match &state.tokens {
            Some(tokens) if state.outdated.as_ref() == Some(&stored.access_token) => Some((**tokens).clone()),
            _ => Some(stored.clone()),
        }
    }

    /// Remembers that the tokens in use could not be saved over those with the access token `outdated`.
    pub(super) fn keep_unsaved(&self, outdated: Option<Secret>) {
        self.state().outdated = outdated;
    }

    /// Uses other tokens from now on.
    pub(super) fn adopt(&self, tokens: Option<TokenSet>) {
        let mut state = self.state();
        state.is_loaded = true;
        state.refresh_after = 0;
        state.tokens = tokens.map(Arc::new);
    }
}

/// Returns the value of `Authorization` for a token.
fn header_of(tokens: &TokenSet) -> String {
    format!("{} {}", tokens.scheme.as_str(), tokens.access_token.expose())
}

/// Returns the error as the client reports it.
pub(super) fn reported(error: Error) -> bowline_client::Error {
    let login_needed = error.is_login_needed() || error.is_visit();
    bowline_client::Error::authorization(error, login_needed)
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
