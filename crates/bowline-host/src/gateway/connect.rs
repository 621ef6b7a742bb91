//! The page on which users connect their accounts at servers: `/connect/<key>`.
//!
//! A link proves nothing about who opens it. So the browser signs in at the issuer of the gateway first, and only the user whose
//! call needs the account continues to the login of the server. A cookie binds each step to the browser that made the step before, and each
//! server has a redirect URI of its own: an authorization server cannot pass off the code of another as its own (RFC 9700, 4.4.2).
//!
//! Links and visits belong to one process. Their names start with that of the process, so that another one can say so.

use super::{
    Inner as GatewayInner, connect_page as page,
    connect_request::{
        CALLBACK, COOKIE, PATH, START, callback_of, cookie_of, is_from_our_page, origin, parameter,
    },
};
use crate::{
    host::AccountPages,
    upstream::{account_of, user_of_account},
};
use bowline_client::BoxFuture;
use bowline_config::{ConnectConfig, GatewayAuthConfig};
use bowline_http::{
    Body, Protection,
    auth::{Error, Login, MemoryStore, Record, Scopes, Secret, Store, StoreKey, StoreLock, Visit},
    http,
};
use bowline_proto::caller::Caller;
use bowline_server::transport::random_id;
use http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, watch};

/// How long a link and each step of a visit can be used.
const LIFE: Duration = Duration::from_secs(600);
/// How long a call waits for its user.
const WAIT: Duration = Duration::from_secs(120);
/// How long a browser waits for an authorization server.
const STEP: Duration = Duration::from_secs(30);
/// Links that can be used, in total and for each account.
const MAX_LINKS: (usize, usize) = (10_000, 16);
/// Visits under way, in total and for each account.
const MAX_VISITS: (usize, usize) = (256, 8);
/// The letters of the name of a process. Nobody has to guess it: it tells processes apart.
const PROCESS_LENGTH: usize = 8;
/// The most bytes of a redirect.
const MAX_QUERY: usize = 16 * 1024;

/// The links that can be used, and the browsers that use them.
pub(super) struct Connections {
    gateway: Weak<GatewayInner>,
    config: ConnectConfig,
    secret: Option<Secret>,
    scopes: Vec<String>,
    name: String,
    served: OnceLock<Served>,
    registrations: Registrations,
    /// Distinguishes this process from others at the same address.
    process: String,
    state: Mutex<State>,
}

/// Where the gateway is served.
struct Served {
    /// The URL that the paths are below.
    base: String,
    /// What tokens are issued for.
    resource: String,
    protection: Protection,
}

#[derive(Default)]
struct State {
    links: HashMap<String, Link>,
    visits: HashMap<String, BrowserVisit>,
}

/// A link that was given to a caller.
struct Link {
    server: String,
    account: String,
    /// The scopes that a call needs.
    scopes: Scopes,
    until: Instant,
    is_done: watch::Sender<bool>,
}

/// A browser on its way, known by its cookie.
struct BrowserVisit {
    link: String,
    server: String,
    account: String,
    until: Instant,
    /// The redirect that comes next.
    expects: Option<Redirect>,
    callbacks: mpsc::Sender<String>,
    /// `None` while a request waits for the next step. The visit counts all the same.
    steps: Option<mpsc::Receiver<Step>>,
}

/// The redirect by which an authorization server sends a browser back.
#[derive(PartialEq, Eq)]
struct Redirect {
    path: String,
    state: String,
}

/// What a browser is shown next.
enum Step {
    /// The page of an authorization server, and the path that it sends the browser back to.
    Visit(String, String),
    Done,
    Failed(StatusCode, String),
}

impl Connections {
    /// Returns `None` if the configuration does not have the page. `secret` is that of the client in the configuration.
    pub(super) fn new(
        auth: &GatewayAuthConfig,
        secret: Option<Secret>,
        name: &str,
        gateway: Weak<GatewayInner>,
    ) -> Option<Arc<Self>> {
        let config = auth.connect.clone()?;
        Some(Arc::new(Self {
            gateway,
            config,
            secret,
            scopes: auth.scopes.clone(),
            name: name.to_owned(),
            served: OnceLock::new(),
            registrations: Registrations::default(),
            process: random_id().chars().take(PROCESS_LENGTH).collect(),
            state: Mutex::default(),
        }))
    }

    /// Sets where the gateway is served. `path` is that of the endpoint.
    pub(super) fn serve(&self, resource: &str, path: &str, protection: Protection) {
        let base = resource.strip_suffix(path).unwrap_or_else(|| origin(resource)).trim_end_matches('/');
        let served = Served { base: base.to_owned(), resource: resource.to_owned(), protection };
        let _ = self.served.set(served);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a new name for a link or a visit.
    fn new_name(&self) -> String {
        format!("{}-{}", self.process, random_id())
    }

    /// Returns whether a link or a visit has a name of this process.
    fn is_of_this_process(&self, name: &str) -> bool {
        name.split_once('-').is_some_and(|(process, _)| process == self.process)
    }

    /// Returns whether other sites may lead a browser to a path: to links, and back from authorization servers. A visit starts
    /// on our own page only, which says what it is for.
    pub(super) fn allows_navigation(path: &str) -> bool {
        path.starts_with(PATH) && !path.ends_with(START)
    }

    /// Answers a request for one of the pages. `None` if the path is another one.
    pub(super) async fn answer(self: &Arc<Self>, request: &Parts) -> Option<Response<Body>> {
        let path = request.uri.path();
        let rest = path.strip_prefix(PATH).filter(|_| request.method == Method::GET)?;
        let is_callback =
            path.strip_prefix(CALLBACK).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        Some(if is_callback {
            self.callback(request).await
        } else if let Some(key) = rest.strip_suffix(START) {
            if is_from_our_page(request) { self.start(key).await } else { self.show(key, "../") }
        } else {
            self.show(rest, "")
        })
    }

    /// Shows what is about to happen. Programs that preview links get no further. `up` leads from the page to the links.
    fn show(&self, key: &str, up: &str) -> Response<Body> {
        let mut state = self.state();
        state.forget_expired();
        match state.links.get(key) {
            Some(link) => {
                let (_, subject) = user_of_account(&link.account).unwrap_or_default();
                page::intro(&self.name, &link.server, &subject, &format!("{up}{key}"))
            }
            None => self.unknown(key),
        }
    }

    fn unknown(&self, key: &str) -> Response<Body> {
        if self.is_of_this_process(key) { page::expired() } else { page::of_other_process() }
    }

    /// Starts a visit with the sign-in at the gateway's own issuer.
    async fn start(self: &Arc<Self>, key: &str) -> Response<Body> {
        let (steps_sender, steps) = mpsc::channel(2);
        let (callbacks, callbacks_receiver) = mpsc::channel(1);
        let cookie = self.new_name();
        {
            let mut state = self.state();
            state.forget_expired();
            let Some(link) = state.links.get(key) else { return self.unknown(key) };
            let (server, account, scopes) = (link.server.clone(), link.account.clone(), link.scopes.clone());
            let of_account = state.visits.values().filter(|visit| visit.account == account).count();
            if of_account >= MAX_VISITS.1 || state.visits.len() >= MAX_VISITS.0 {
                let reason = "too many logins are under way; try again in a few minutes";
                return page::failed(StatusCode::TOO_MANY_REQUESTS, reason);
            }
            let visit = BrowserVisit {
                link: key.to_owned(),
                server: server.clone(),
                account: account.clone(),
                until: Instant::now() + LIFE,
                expects: None,
                callbacks,
                steps: Some(steps),
            };
            state.visits.insert(cookie.clone(), visit);
            let browser = BrowserChannel {
                steps: steps_sender,
                callbacks: Arc::new(tokio::sync::Mutex::new(callbacks_receiver)),
            };
            let connections = Arc::clone(self);
            // It ends when the visit is forgotten, because its channels are closed then.
            tokio::spawn(async move {
                let step = match connections.connect(&server, &account, &scopes, &browser).await {
                    Ok(()) => Step::Done,
                    Err((status, reason)) => {
                        tracing::warn!(
                            server,
                            status = status.as_u16(),
                            reason,
                            "an account was not connected"
                        );
                        Step::Failed(status, reason)
                    }
                };
                drop(browser.steps.send(step).await);
            });
        }
        self.next(&cookie).await
    }

    /// Continues a visit after an authorization server has sent the browser back.
    async fn callback(&self, request: &Parts) -> Response<Body> {
        let query = request.uri.query().unwrap_or_default();
        let refused = |reason: &str| page::failed(StatusCode::BAD_REQUEST, reason);
        let foreign = || {
            refused(
                "this browser did not start this login, or it took too long; call again to get a new link",
            )
        };
        if query.len() > MAX_QUERY {
            return refused("the answer of the authorization server is too long");
        }
        let Some(cookie) = cookie_of(request) else { return foreign() };
        if !self.is_of_this_process(&cookie) {
            return refused(
                "another process of the gateway started this login: the gateway was restarted, or several share this address; \
                 call again to get a new link",
            );
        }
        let path = request.uri.path();
        let callbacks = {
            let mut state = self.state();
            state.forget_expired();
            let Some(visit) = state.visits.get_mut(&cookie) else { return foreign() };
            let is_expected = |expected: &Redirect| {
                expected.path == path && parameter(query, "state") == Some(&expected.state)
            };
            if !visit.expects.as_ref().is_some_and(is_expected) {
                return foreign();
            }
            // It comes once.
            visit.expects = None;
            visit.callbacks.clone()
        };
        let base = self.served.get().map_or("", |served| served.base.as_str());
        if callbacks.send(format!("{base}{path}?{query}")).await.is_err() {
            return foreign();
        }
        self.next(&cookie).await
    }

    /// Returns the next page of a visit. Its cookie is replaced at each step.
    async fn next(&self, cookie: &str) -> Response<Body> {
        let taken = self.state().visits.get_mut(cookie).and_then(|visit| visit.steps.take());
        let Some(mut steps) = taken else {
            return page::failed(StatusCode::BAD_REQUEST, "this login is already continued in another tab");
        };
        let waiting = WaitingVisit { connections: self, cookie };
        let step = tokio::time::timeout(STEP, steps.recv()).await;
        let visit = self.state().visits.remove(cookie);
        drop(waiting);
        let Some(mut visit) = visit else {
            return page::failed(
                StatusCode::BAD_REQUEST,
                "this login took too long; call again to get a new link",
            );
        };
        match step {
            Ok(Some(Step::Visit(url, path))) => {
                let state = url.split_once('?').and_then(|(_, query)| parameter(query, "state"));
                let Some(state) = state.map(str::to_owned) else {
                    let reason = "the login cannot be bound to this browser";
                    return page::failed(StatusCode::BAD_GATEWAY, reason);
                };
                let cookie = self.new_name();
                visit.expects = Some(Redirect { path, state });
                visit.steps = Some(steps);
                visit.until = Instant::now() + LIFE;
                let response = redirect(&url, &cookie);
                self.state().visits.insert(cookie, visit);
                response
            }
            Ok(Some(Step::Done)) => {
                let link = self.state().links.remove(&visit.link);
                if let Some(link) = link {
                    link.is_done.send_replace(true);
                }
                page::done(&self.name, &visit.server)
            }
            Ok(Some(Step::Failed(status, reason))) => page::failed(status, &reason),
            Ok(None) => page::failed(StatusCode::SERVICE_UNAVAILABLE, "the gateway is shutting down"),
            Err(_) => {
                let reason = "the authorization server did not answer in time; try again";
                page::failed(StatusCode::GATEWAY_TIMEOUT, reason)
            }
        }
    }

    /// Signs the browser in, compares the user, and logs in at the server.
    async fn connect(
        &self,
        server: &str,
        account: &str,
        scopes: &Scopes,
        browser: &BrowserChannel,
    ) -> Result<(), (StatusCode, String)> {
        let unavailable = |reason: &str| (StatusCode::SERVICE_UNAVAILABLE, reason.to_owned());
        let failed = |what: &str, error: String| (StatusCode::BAD_GATEWAY, format!("{what}: {error}"));
        let served = self.served.get().ok_or_else(|| unavailable("the gateway is not served"))?;
        let (issuer, _) = user_of_account(account).ok_or_else(|| unavailable("the user is not known"))?;
        let mut login = browser
            .login(&served.base, CALLBACK.to_owned())
            .issuer(issuer)
            .resource(&served.resource)
            .client_name(&self.name)
            .store(self.registrations.clone());
        if !self.scopes.is_empty() {
            login = login.scopes(&self.scopes);
        }
        login = match (&self.config.client_id, &self.secret) {
            (Some(id), Some(secret)) => login.client(id, secret.clone()),
            (Some(id), None) => login.client_id(id),
            (None, _) => login,
        };
        let token = http(&served.resource).login(login).sign_in().await;
        let token = token.map_err(|error| failed("cannot sign you in", error.to_string()))?;
        let user = self.user_of(served, &token).await.ok_or_else(|| {
            let reason = "the issuer signed you in, but its token is not for this gateway";
            (StatusCode::FORBIDDEN, reason.to_owned())
        })?;
        if user != account {
            let reason = "you are signed in as another user than the one whose program asked for this; nothing was stored";
            return Err((StatusCode::FORBIDDEN, reason.to_owned()));
        }
        let gateway = self.gateway.upgrade().ok_or_else(|| unavailable("the gateway is shutting down"))?;
        let login = browser.login(&served.base, callback_of(server)).client_name(&self.name);
        let upstream = gateway.host.user_login(server, account, login);
        let upstream = upstream.ok_or_else(|| unavailable("the server is no longer configured"))?;
        let upstream = upstream.map_err(|error| failed("cannot log in at the server", error))?;
        let target = upstream.resolve_headers().await;
        let target = target.map_err(|error| failed("cannot log in at the server", error.to_string()))?;
        target
            .log_in_for(scopes)
            .await
            .map_err(|error| failed("cannot log in at the server", error.to_string()))?;
        gateway.host.account_connected(server, account);
        Ok(())
    }

    /// Verifies the token of a sign-in like that of a client. Returns the account of its user.
    async fn user_of(&self, served: &Served, token: &Secret) -> Option<String> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose())).ok()?;
        value.set_sensitive(true);
        let request = Request::get(&served.resource).header(header::AUTHORIZATION, value).body(()).ok()?;
        let mut parts = request.into_parts().0;
        if served.protection.check(&mut parts).await.is_some() {
            return None;
        }
        account_of(parts.extensions.get::<Arc<Caller>>()?.principal())
    }
}

impl AccountPages for Connections {
    fn link(&self, server: &str, account: &str, scopes: &Scopes) -> Option<String> {
        let base = &self.served.get()?.base;
        let mut state = self.state();
        state.forget_expired();
        let known = state.links.iter_mut().find(|(_, link)| link.server == server && link.account == account);
        if let Some((key, link)) = known {
            // The last call counts, so that the scopes of many calls do not add up.
            link.scopes = scopes.clone();
            return Some(format!("{base}{PATH}{key}"));
        }
        let of_account = state.links.values().filter(|link| link.account == account).count();
        if state.links.len() >= MAX_LINKS.0 || of_account >= MAX_LINKS.1 {
            return None;
        }
        let key = self.new_name();
        let link = Link {
            server: server.to_owned(),
            account: account.to_owned(),
            scopes: scopes.clone(),
            until: Instant::now() + LIFE,
            is_done: watch::Sender::new(false),
        };
        let url = format!("{base}{PATH}{key}");
        state.links.insert(key, link);
        Some(url)
    }

    fn connected(&self, server: &str, account: &str) -> BoxFuture<'static, ()> {
        let state = self.state();
        let link = state.links.values().find(|link| link.server == server && link.account == account);
        let done = link.map(|link| link.is_done.subscribe());
        Box::pin(async move {
            let Some(mut done) = done else { return };
            // The link was forgotten if the sender is gone.
            drop(tokio::time::timeout(WAIT, done.wait_for(|is_done| *is_done)).await);
        })
    }
}

/// Forgets a visit whose browser gave up waiting.
struct WaitingVisit<'a> {
    connections: &'a Connections,
    cookie: &'a str,
}

impl Drop for WaitingVisit<'_> {
    fn drop(&mut self) {
        self.connections.state().visits.remove(self.cookie);
    }
}

impl State {
    fn forget_expired(&mut self) {
        let now = Instant::now();
        self.links.retain(|_, link| now < link.until);
        self.visits.retain(|_, visit| now < visit.until);
    }
}

/// The way from a login to the browser of the user and back.
#[derive(Clone)]
struct BrowserChannel {
    steps: mpsc::Sender<Step>,
    callbacks: Arc<tokio::sync::Mutex<mpsc::Receiver<String>>>,
}

impl BrowserChannel {
    /// Returns a login whose user comes back to `path`.
    fn login(&self, base: &str, path: String) -> Login {
        let channel = self.clone();
        let redirect_uri = format!("{base}{path}");
        let login = Login::with(move |visit: Visit| {
            let (channel, path) = (channel.clone(), path.clone());
            async move {
                let gone = "the login in the browser timed out";
                channel.steps.send(Step::Visit(visit.url().to_owned(), path)).await.map_err(|_| gone)?;
                channel.callbacks.lock().await.recv().await.ok_or(gone)
            }
        });
        login.redirect_uri(redirect_uri)
    }
}

/// Keeps the client of the gateway at its issuer, and forgets tokens: they only show who the user is.
#[derive(Clone, Debug, Default)]
struct Registrations(MemoryStore);

impl Store for Registrations {
    fn load<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<Option<Record>, Error>> {
        self.0.load(key)
    }

    fn save<'a>(&'a self, key: &'a StoreKey, record: &'a Record) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let mut record = record.clone();
            record.tokens = None;
            self.0.save(key, &record).await
        })
    }

    fn remove<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<(), Error>> {
        self.0.remove(key)
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<StoreKey>, Error>> {
        self.0.list()
    }

    fn lock<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<StoreLock, Error>> {
        self.0.lock(key)
    }
}

/// Sends the browser to another page, and binds it to a cookie.
fn redirect(url: &str, cookie: &str) -> Response<Body> {
    let cookie =
        format!("{COOKIE}={cookie}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={}", LIFE.as_secs());
    let (Ok(location), Ok(cookie)) = (HeaderValue::from_str(url), HeaderValue::from_str(&cookie)) else {
        return page::failed(StatusCode::BAD_GATEWAY, "the URL of the authorization server is not usable");
    };
    let mut response = page::plain(StatusCode::SEE_OTHER);
    response.headers_mut().insert(header::LOCATION, location);
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    response
}
