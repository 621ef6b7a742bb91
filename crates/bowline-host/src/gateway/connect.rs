//! The page on which users connect their accounts at servers: `/connect/<key>`.
//!
//! A link proves nothing about who opens it. So the browser signs in at the issuer of the gateway first, and only the user whose
//! call needs the account continues to the login of the server. A cookie binds each step to the browser that made the step before.

use super::{Inner as GatewayInner, connect_page as page};
use crate::{
    host::AccountPages,
    upstream::{account_of, user_of_account},
};
use bowline_client::BoxFuture;
use bowline_config::{ConnectConfig, GatewayAuthConfig};
use bowline_http::{
    Body, Protection,
    auth::{Error, Login, MemoryStore, Record, Secret, Store, StoreKey, StoreLock, Visit},
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

/// Where the pages are.
const PATH: &str = "/connect/";
/// Where authorization servers send the browser to.
const CALLBACK: &str = "/connect/callback";
/// `__Host-`: only this host can set it, over a secure connection.
const COOKIE: &str = "__Host-bowline-connect";
/// How long a link and each step of a visit can be used.
const LIFE: Duration = Duration::from_secs(600);
/// How long a call waits for its user.
const WAIT: Duration = Duration::from_secs(120);
/// How long a browser waits for an authorization server.
const STEP: Duration = Duration::from_secs(30);
/// Links that can be used, in total and for each account.
const MAX_LINKS: (usize, usize) = (10_000, 16);
/// Visits under way, in total and for each link.
const MAX_VISITS: (usize, usize) = (256, 4);

/// The links that can be used, and the browsers that use them.
pub(super) struct Connections {
    gateway: Weak<GatewayInner>,
    config: ConnectConfig,
    secret: Option<Secret>,
    scopes: Vec<String>,
    name: String,
    served: OnceLock<Served>,
    registrations: Registrations,
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
    until: Instant,
    is_done: watch::Sender<bool>,
}

/// A browser on its way, known by its cookie.
struct BrowserVisit {
    link: String,
    until: Instant,
    /// The `state` that the next redirect must have.
    expects: String,
    callbacks: mpsc::Sender<String>,
    steps: mpsc::Receiver<Step>,
}

/// What a browser is shown next.
enum Step {
    /// The page of an authorization server.
    Visit(String),
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

    /// Answers a request for one of the pages. `None` if the path is another one.
    pub(super) async fn answer(self: &Arc<Self>, request: &Parts) -> Option<Response<Body>> {
        let path = request.uri.path();
        let rest = path.strip_prefix(PATH).filter(|_| request.method == Method::GET)?;
        Some(if path == CALLBACK {
            self.callback(request).await
        } else if let Some(key) = rest.strip_suffix("/start") {
            self.start(key).await
        } else {
            self.show(rest)
        })
    }

    /// Shows what is about to happen. Programs that preview links get no further.
    fn show(&self, key: &str) -> Response<Body> {
        let mut state = self.state();
        state.forget_expired();
        match state.links.get(key) {
            Some(link) => {
                let (_, subject) = user_of_account(&link.account).unwrap_or_default();
                page::intro(&self.name, &link.server, &subject, key)
            }
            None => page::expired(),
        }
    }

    /// Starts a visit with the sign-in at the gateway's own issuer.
    async fn start(self: &Arc<Self>, key: &str) -> Response<Body> {
        let (steps_sender, steps) = mpsc::channel(2);
        let (callbacks, callbacks_receiver) = mpsc::channel(1);
        let cookie = random_id();
        {
            let mut state = self.state();
            state.forget_expired();
            let Some(link) = state.links.get(key) else { return page::expired() };
            let (server, account) = (link.server.clone(), link.account.clone());
            let of_link = state.visits.values().filter(|visit| visit.link == key).count();
            if of_link >= MAX_VISITS.1 || state.visits.len() >= MAX_VISITS.0 {
                let reason = "too many logins are under way; try again in a few minutes";
                return page::failed(StatusCode::TOO_MANY_REQUESTS, reason);
            }
            let (link, until) = (key.to_owned(), Instant::now() + LIFE);
            let visit = BrowserVisit { link, until, expects: String::new(), callbacks, steps };
            state.visits.insert(cookie.clone(), visit);
            let browser = BrowserChannel {
                steps: steps_sender,
                callbacks: Arc::new(tokio::sync::Mutex::new(callbacks_receiver)),
            };
            let connections = Arc::clone(self);
            // It ends when the visit is forgotten, because its channels are closed then.
            tokio::spawn(async move {
                let step = match connections.connect(&server, &account, &browser).await {
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
        let foreign = || {
            let reason =
                "this browser did not start this login, or it took too long; call again to get a new link";
            page::failed(StatusCode::BAD_REQUEST, reason)
        };
        let Some(cookie) = cookie_of(request) else { return foreign() };
        let callbacks = {
            let mut state = self.state();
            state.forget_expired();
            match state.visits.get(&cookie) {
                Some(visit)
                    if !visit.expects.is_empty() && parameter(query, "state") == Some(&visit.expects) =>
                {
                    visit.callbacks.clone()
                }
                _ => return foreign(),
            }
        };
        let base = self.served.get().map_or("", |served| served.base.as_str());
        if callbacks.send(format!("{base}{CALLBACK}?{query}")).await.is_err() {
            return foreign();
        }
        self.next(&cookie).await
    }

    /// Returns the next page of a visit. Its cookie is replaced at each step.
    async fn next(&self, cookie: &str) -> Response<Body> {
        let busy = || page::failed(StatusCode::BAD_REQUEST, "this login is already continued in another tab");
        let Some(mut visit) = self.state().visits.remove(cookie) else { return busy() };
        let step = tokio::time::timeout(STEP, visit.steps.recv()).await;
        match step {
            Ok(Some(Step::Visit(url))) => {
                let state = url.split_once('?').and_then(|(_, query)| parameter(query, "state"));
                let Some(state) = state.map(str::to_owned) else {
                    let reason = "the login cannot be bound to this browser";
                    return page::failed(StatusCode::BAD_GATEWAY, reason);
                };
                let cookie = random_id();
                visit.expects = state;
                visit.until = Instant::now() + LIFE;
                let response = redirect(&url, &cookie);
                self.state().visits.insert(cookie, visit);
                response
            }
            Ok(Some(Step::Done)) => {
                let link = self.state().links.remove(&visit.link);
                let server = link.as_ref().map_or("", |link| link.server.as_str());
                let response = page::done(&self.name, server);
                if let Some(link) = link {
                    link.is_done.send_replace(true);
                }
                response
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
        browser: &BrowserChannel,
    ) -> Result<(), (StatusCode, String)> {
        let unavailable = |reason: &str| (StatusCode::SERVICE_UNAVAILABLE, reason.to_owned());
        let failed = |what: &str, error: String| (StatusCode::BAD_GATEWAY, format!("{what}: {error}"));
        let served = self.served.get().ok_or_else(|| unavailable("the gateway is not served"))?;
        let redirect_uri = format!("{}{CALLBACK}", served.base);
        let (issuer, _) = user_of_account(account).ok_or_else(|| unavailable("the user is not known"))?;
        let mut login = browser
            .login()
            .redirect_uri(&redirect_uri)
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
        let login = browser.login().redirect_uri(&redirect_uri).client_name(&self.name);
        let upstream = gateway.host.user_login(server, account, login);
        let upstream = upstream.ok_or_else(|| unavailable("the server is no longer configured"))?;
        let upstream = upstream.map_err(|error| failed("cannot log in at the server", error))?;
        let target = upstream.resolve_headers().await;
        let target = target.map_err(|error| failed("cannot log in at the server", error.to_string()))?;
        target.log_in().await.map_err(|error| failed("cannot log in at the server", error.to_string()))?;
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
    fn link(&self, server: &str, account: &str) -> Option<String> {
        let base = &self.served.get()?.base;
        let mut state = self.state();
        state.forget_expired();
        let known = state.links.iter().find(|(_, link)| link.server == server && link.account == account);
        if let Some((key, _)) = known {
            return Some(format!("{base}{PATH}{key}"));
        }
        let of_account = state.links.values().filter(|link| link.account == account).count();
        if state.links.len() >= MAX_LINKS.0 || of_account >= MAX_LINKS.1 {
            return None;
        }
        let key = random_id();
        let link = Link {
            server: server.to_owned(),
            account: account.to_owned(),
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
    fn login(&self) -> Login {
        let channel = self.clone();
        Login::with(move |visit: Visit| {
            let channel = channel.clone();
            async move {
                let gone = "the login in the browser timed out";
                channel.steps.send(Step::Visit(visit.url().to_owned())).await.map_err(|_| gone)?;
                channel.callbacks.lock().await.recv().await.ok_or(gone)
            }
        })
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

/// Returns the cookie of a visit. A browser that sends two is not trusted.
fn cookie_of(request: &Parts) -> Option<String> {
    let lines = request.headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(name, _)| *name == COOKIE).map(|(_, value)| value);
    let value = values.next()?;
    values.next().is_none().then(|| value.to_owned())
}

/// Returns a query parameter as it is written.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query
        .split('&')
        .find_map(|pair| pair.split_once('=').filter(|(known, _)| *known == name))
        .map(|(_, value)| value)
}

/// Returns the scheme, host and port of a URL.
fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    url[start..].find('/').map_or(url, |end| &url[..start + end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_only_if_it_is_there_once() {
        let cookie = |lines: &[&str]| {
            let mut request = Request::get("/");
            for line in lines {
                request = request.header(header::COOKIE, *line);
            }
            cookie_of(&request.body(()).unwrap().into_parts().0)
        };
        assert_eq!(cookie(&["a=1; __Host-bowline-connect=x"]).as_deref(), Some("x"));
        assert_eq!(cookie(&["__Host-bowline-connect=x", "__Host-bowline-connect=y"]), None);
        assert_eq!(cookie(&["bowline-connect=x"]), None);
        assert_eq!(cookie(&[]), None);
    }

    #[test]
    fn the_base_of_the_pages_is_beside_the_endpoint() {
        for (resource, path, base) in [
            ("https://mcp.example.com/mcp", "/mcp", "https://mcp.example.com"),
            ("https://example.com/team/mcp", "/mcp", "https://example.com/team"),
            ("https://example.com/", "/mcp", "https://example.com"),
            ("https://example.com", "/mcp", "https://example.com"),
        ] {
            let found = resource.strip_suffix(path).unwrap_or_else(|| origin(resource));
            assert_eq!(found.trim_end_matches('/'), base, "{resource}");
        }
    }
}
