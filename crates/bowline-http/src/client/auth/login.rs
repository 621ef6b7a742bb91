//! How a client logs in.

use super::{
    device::DeviceDisplay, event::Event, machine::Machine, memory::MemoryStore, reach::Networks,
    session::Session,
};
use crate::client::post::Poster;
use bowline_auth::{
    AuthMethod, BoxFuture, ClientSettings, Error, Lenient, Redirect, Scopes, Secret, Store, UserAgent, Visit,
};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// The redirect URI of [`Login::with`] unless another is set.
const DEFAULT_REDIRECT: &str = "http://127.0.0.1/callback";

type Visitor = Arc<dyn Fn(Visit) -> BoxFuture<'static, Result<String, Error>> + Send + Sync>;
type Listener = Arc<dyn Fn(&Event) + Send + Sync>;

/// How a client logs in to a server that asks for it; see [`HttpTarget::login`](crate::HttpTarget::login).
#[derive(Clone)]
#[must_use]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent setting")]
pub struct Login {
    agent: Option<Agent>,
    redirect_uri: Option<String>,
    pub(super) client: ClientSettings,
    pub(super) client_id: Option<String>,
    pub(super) issuer: Option<String>,
    pub(super) resource: Option<String>,
    /// The authorization URL and the token URL, if the metadata of the authorization server is not read.
    pub(super) endpoints: Option<(String, String)>,
    pub(super) parameters: Vec<(String, String)>,
    pub(super) keeps_secret: bool,
    pub(super) scopes: Option<Scopes>,
    pub(super) store: Arc<dyn Store>,
    pub(super) account: String,
    pub(super) lenient: Vec<Lenient>,
    pub(super) exact_resource: bool,
    pub(super) allows_legacy: bool,
    pub(super) dpop: bool,
    pub(super) machine: Option<Machine>,
    pub(super) trusts_first_issuer: bool,
    pub(super) networks: Networks,
    listener: Option<Listener>,
}

#[derive(Clone)]
enum Agent {
    Visitor(Visitor),
    Custom(Arc<dyn UserAgent>),
    /// A browser on another device.
    Device(DeviceDisplay),
}

impl Login {
    fn new(agent: Option<Agent>) -> Self {
        let mut client = ClientSettings::default();
        "Bowline".clone_into(&mut client.name);
        Self {
            agent,
            redirect_uri: None,
            client,
            client_id: None,
            issuer: None,
            resource: None,
            endpoints: None,
            parameters: Vec::new(),
            keeps_secret: false,
            scopes: None,
            store: Arc::new(MemoryStore::new()),
            account: String::new(),
            lenient: Vec::new(),
            exact_resource: false,
            allows_legacy: true,
            dpop: false,
            machine: None,
            trusts_first_issuer: false,
            networks: Networks::default(),
            listener: None,
        }
    }

    /// Logs in through the application: it opens [`Visit::url`] for the user and returns the URL that the browser is redirected
    /// to. Set [`redirect_uri`](Self::redirect_uri) to where the application receives redirects.
    pub fn with<F, Fut, E>(visitor: F) -> Self
    where
        F: Fn(Visit) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, E>> + Send + 'static,
        E: fmt::Display,
    {
        let visitor: Visitor = Arc::new(move |visit| {
            let visiting = visitor(visit);
            Box::pin(async move { visiting.await.map_err(|error| Error::visit(error.to_string())) })
        });
        Self::new(Some(Agent::Visitor(visitor)))
    }

    /// Logs in through something that opens pages and receives redirects.
    pub fn agent(agent: impl UserAgent + 'static) -> Self {
        Self::new(Some(Agent::Custom(Arc::new(agent))))
    }

    /// Uses stored tokens and refreshes them, but never asks a user. A call that needs a login fails with
    /// [`is_login_needed`](bowline_client::Error::is_login_needed).
    pub fn stored() -> Self {
        Self::new(None)
    }

    pub(super) fn on_device(show: DeviceDisplay) -> Self {
        Self::new(Some(Agent::Device(show)))
    }

    /// Returns who shows codes for logins on other devices, if this login uses them.
    pub(super) fn device_display(&self) -> Option<&DeviceDisplay> {
        match &self.agent {
            Some(Agent::Device(show)) => Some(show),
            Some(Agent::Visitor(_) | Agent::Custom(_)) | None => None,
        }
    }

    pub(super) fn alone(machine: Machine) -> Self {
        let mut login = Self::new(None);
        login.machine = Some(machine);
        login
    }

    /// Sets the redirect URI of [`Login::with`]: `https`, `http` at a loopback address, or a private scheme of the
    /// application.
    pub fn redirect_uri(mut self, uri: impl Into<String>) -> Self {
        self.redirect_uri = Some(uri.into());
        self
    }

    /// Sets the name that authorization servers show to users: "Bowline" unless it is set.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client.name = name.into();
        self
    }

    /// Sets the URL of the client ID metadata document of the application. It is the client id at authorization servers
    /// that support such documents.
    pub fn client_document(mut self, url: impl Into<String>) -> Self {
        self.client.document = Some(url.into());
        self
    }

    /// Sets a public client that was registered by hand. Set its [`issuer`](Self::issuer) too; otherwise it is bound to the
    /// authorization server of the first login.
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.client_id = Some(id.into());
        self
    }

    /// Sets a confidential client that was registered by hand.
    pub fn client(self, id: impl Into<String>, secret: impl Into<Secret>) -> Self {
        let mut login = self.client_id(id);
        login.client.secret = Some(secret.into());
        login
    }

    /// Keeps the secret of [`client`](Self::client) in the store with the tokens. Otherwise every program that refreshes the
    /// tokens has to know the secret.
    pub fn keep_secret(mut self) -> Self {
        self.keeps_secret = true;
        self
    }

    /// Sets how the client authenticates at the token endpoint, if the metadata of the authorization server should not
    /// decide.
    pub fn client_authentication(mut self, method: AuthMethod) -> Self {
        self.client.method = Some(method);
        self
    }

    /// Sets the authorization server to use, exactly as it publishes its `issuer`. A login without a user needs it,
    /// because its credentials must not go to a server that nobody chose.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Sets the authorization URL and the token URL of an authorization server that publishes no metadata. The client
    /// has to be [set](Self::client_id). Its [`issuer`](Self::issuer) is the origin of the token URL unless it is set.
    pub fn endpoints(mut self, authorization_url: impl Into<String>, token_url: impl Into<String>) -> Self {
        self.endpoints = Some((authorization_url.into(), token_url.into()));
        self
    }

    /// Sets the value of the parameter `resource`, instead of the one that the server publishes.
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Adds a parameter to authorization requests, such as `audience` or `prompt`. Parameters that the login sets itself, such
    /// as `state`, are refused when a user is to log in.
    pub fn authorization_parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }

    /// Sets the scopes to ask for, instead of those that the server names. Scopes of a step-up are added.
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = Some(Scopes::from_iter(scopes));
        self
    }

    /// Sets where tokens and registrations are kept: in memory unless it is set.
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// Sets the name of the account, for a user who has several at one server.
    pub fn account(mut self, name: impl Into<String>) -> Self {
        self.account = name.into();
        self
    }

    /// Allows an exception from the rules.
    pub fn lenient(mut self, exception: Lenient) -> Self {
        self.lenient.push(exception);
        self
    }

    /// Refuses metadata whose resource is not exactly the server, but its origin or a parent of its path.
    pub fn exact_resource(mut self) -> Self {
        self.exact_resource = true;
        self
    }

    /// Sets the networks that URLs in metadata may lead to. Set [`Networks::Public`] in a gateway or another program
    /// that connects to servers which its users chose.
    pub fn networks(mut self, networks: Networks) -> Self {
        self.networks = networks;
        self
    }

    /// Refuses servers that publish no metadata of the resource, as in 2025-03-26.
    pub fn without_legacy(mut self) -> Self {
        self.allows_legacy = false;
        self
    }

    /// Binds tokens to a key that only this client has (DPoP, RFC 9449), and fails if the authorization server does not support it.
    ///
    /// Without it, DPoP is used where the server asks for it.
    pub fn dpop(mut self) -> Self {
        self.dpop = true;
        self
    }

    /// Reports what happens. The listener must not block.
    pub fn on_event(mut self, listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    pub(super) fn report(&self, event: &Event) {
        tracing::debug!(%event, "authorization");
        if let Some(listener) = &self.listener {
            listener(event);
        }
    }

    pub(super) fn can_log_in(&self) -> bool {
        self.agent.is_some() || self.machine.is_some()
    }

    /// Prepares a visit of the login page. Returns `None` if this login never asks a user.
    pub(super) async fn prepare(&self, bound: Option<&str>) -> Result<Option<Box<dyn Redirect>>, Error> {
        match &self.agent {
            None | Some(Agent::Device(_)) => Ok(None),
            Some(Agent::Custom(agent)) => agent.prepare(bound).await.map(Some),
            Some(Agent::Visitor(visitor)) => {
                let redirect_uri = self.redirect_uri.clone().unwrap_or_else(|| DEFAULT_REDIRECT.to_owned());
                Ok(Some(Box::new(VisitorRedirect { redirect_uri, visitor: Arc::clone(visitor) })))
            }
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .field("client", &self.client)
            .field("scopes", &self.scopes)
            .field("store", &self.store)
            .field("lenient", &self.lenient)
            .finish_non_exhaustive()
    }
}

struct VisitorRedirect {
    redirect_uri: String,
    visitor: Visitor,
}

impl Redirect for VisitorRedirect {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn visit(self: Box<Self>, visit: Visit) -> BoxFuture<'static, Result<String, Error>> {
        (self.visitor)(visit)
    }
}

/// The login of a target and its session, which is made when it is first needed. Clones share it.
#[derive(Clone)]
pub(in crate::client) struct LoginSlot {
    login: Login,
    session: Arc<Mutex<Option<Arc<Session>>>>,
}

impl LoginSlot {
    pub(in crate::client) fn new(login: Login) -> Self {
        Self { login, session: Arc::default() }
    }

    /// The identifier of the protocol extension that defines this login.
    pub(in crate::client) fn extension(&self) -> Option<&'static str> {
        self.login.machine.as_ref().and_then(Machine::extension)
    }

    pub(in crate::client) fn session(
        &self,
        url: &str,
        poster: impl FnOnce() -> Poster,
    ) -> bowline_client::Result<Arc<Session>> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &*session {
            return Ok(Arc::clone(session));
        }
        let made = Session::new(self.login.clone(), url, poster()).map_err(super::session::reported)?;
        Ok(Arc::clone(session.insert(Arc::new(made))))
    }
}
