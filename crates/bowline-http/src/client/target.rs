//! A server named by its URL.

#[cfg(feature = "auth")]
use super::{
    auth::{Login, LoginSlot, Session},
    authorize::UnusableLogin,
};
use super::{
    authorize::{Authorize, Challenge, HookAuthorizer},
    connection::{Connection, Found, lock},
    connector::{self, Connector},
    post::{PostAnswer, PostError, Poster},
    proxy::Proxy,
    sender::RequestSender,
    transport::HttpTransport,
    url,
};
use bowline_client::{Backoff, BoxFuture, Connect, Error, Inbox, Restart, Result, Transport};
use bowline_types::Era;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use std::{fmt, future::Future, sync::Arc, time::Duration};

/// The headers that say how a message travels, and are not the caller's to set.
const OURS: [HeaderName; 9] = [
    header::ACCEPT,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::HOST,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("last-event-id"),
];

/// Creates a target for a server at a URL.
///
/// Whether the URL is good is found out when the client connects.
///
/// ```no_run
/// # async fn example() -> bowline_client::Result {
/// use bowline_client::Client;
/// use bowline_http::http;
///
/// let client = Client::connect(http("https://tickets.example.com/mcp")).await?;
/// for tool in client.tools().await? {
///     println!("{}", tool.name);
/// }
/// client.close().await;
/// # Ok(())
/// # }
/// ```
pub fn http(url: impl Into<String>) -> HttpTarget {
    HttpTarget {
        url: url.into(),
        headers: Vec::new(),
        credentials: Credentials::None,
        connect_timeout: Duration::from_secs(10),
        max_message: 16 * 1024 * 1024,
        proxy: Proxy::default(),
        trusted: Vec::new(),
        found: Found::default(),
    }
}

/// A server at a URL; made by [`http()`].
///
/// Its era is found at the first connection and remembered for the others, of clones too.
#[derive(Clone)]
#[must_use = "it does nothing until it is used"]
pub struct HttpTarget {
    url: String,
    headers: Vec<(String, String)>,
    credentials: Credentials,
    connect_timeout: Duration,
    max_message: usize,
    proxy: Proxy,
    trusted: Vec<Vec<u8>>,
    found: Found,
}

/// The source of credentials.
#[derive(Clone)]
enum Credentials {
    None,
    Custom(Arc<dyn Authorize>),
    #[cfg(feature = "auth")]
    Login(Box<LoginSlot>),
}

impl HttpTarget {
    /// Sends a header along with every request. It goes to this server's origin only.
    ///
    /// Headers of the protocol and of the connection cannot be set; connecting fails then.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Asks a hook for the value of `Authorization`, such as `Bearer …`; `None` sends none.
    ///
    /// The hook is asked before the first request, and again with the server's [`Challenge`] when a request is refused: with
    /// 401, or with 403 for a missing scope. The request is then sent again if the value has changed, at most once after a
    /// 401 and twice after a 403. Of many requests that are refused at once, one asks and all use the answer.
    pub fn authorize<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(Option<Challenge>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<String>>> + Send + 'static,
    {
        let hook = Arc::new(move |challenge| -> BoxFuture<'static, Result<Option<String>>> {
            Box::pin(hook(challenge))
        });
        self.credentials = Credentials::Custom(Arc::new(HookAuthorizer::new(hook)));
        self
    }

    /// Uses credentials of your own kind, such as headers that depend on the request.
    pub fn authorize_with(mut self, authorize: impl Authorize + 'static) -> Self {
        self.credentials = Credentials::Custom(Arc::new(authorize));
        self
    }

    /// Logs in with OAuth when the server asks for it, and keeps the tokens fresh.
    ///
    /// Clones of the target and all connections share the tokens.
    #[cfg(feature = "auth")]
    #[cfg_attr(docsrs, doc(cfg(feature = "auth")))]
    pub fn login(mut self, login: Login) -> Self {
        self.credentials = Credentials::Login(Box::new(LoginSlot::new(login)));
        self
    }

    /// Sets the time limit for connecting, including TLS. Default: 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the maximum size of a received message in bytes. Default: 16 MiB. The limit of the client applies as well.
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// Uses this proxy. By default, that of the [environment](Proxy::environment) is used; [`Proxy::none`] uses none.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = proxy;
        self
    }

    /// Trusts this certificate (X.509, DER) besides those that the machine trusts.
    pub fn trust(mut self, certificate: impl Into<Vec<u8>>) -> Self {
        self.trusted.push(certificate.into());
        self
    }

    /// Sets the era of the server, if it is known. A legacy server is then not probed. If the era is wrong, the client
    /// detects it.
    pub fn known_era(self, era: Era) -> Self {
        *lock(&self.found) = Some(era);
        self
    }

    /// Returns the URL as it was given.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends one plain request with these headers and those of the target, and returns the response without its body,
    /// which may be endless. No rule of the protocol is enforced, so a test can see how a server reacts.
    ///
    /// Dropping the future aborts the request.
    pub async fn probe(
        &self,
        method: Method,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<PostAnswer, PostError> {
        let own = custom_headers(&self.headers).map_err(|error| PostError::Misuse(error.to_string()))?;
        headers.extend(own);
        let (head, _) = self.poster().ask(method, &self.url, headers, body).await?.into_parts();
        Ok(PostAnswer { status: head.status, headers: head.headers, body: Bytes::new() })
    }

    /// Sends plain requests with the connection settings of the target.
    fn poster(&self) -> Poster {
        let poster = Poster::new().connect_timeout(self.connect_timeout).proxy(self.proxy.clone());
        self.trusted.iter().fold(poster, |poster, certificate| poster.trust(certificate.clone()))
    }

    fn authorizer(&self) -> Option<Arc<dyn Authorize>> {
        match &self.credentials {
            Credentials::None => None,
            Credentials::Custom(authorizer) => Some(Arc::clone(authorizer)),
            #[cfg(feature = "auth")]
            Credentials::Login(slot) => match slot.session(&self.url, || self.poster()) {
                Ok(session) => Some(session),
                // Most such servers need no login, for example those of a private network without TLS.
                Err(error) => Some(Arc::new(UnusableLogin { reason: error.to_string() })),
            },
        }
    }

    /// Returns the session of the login.
    #[cfg(feature = "auth")]
    pub(super) fn session(&self) -> Result<Arc<Session>> {
        match &self.credentials {
            Credentials::Login(slot) => slot.session(&self.url, || self.poster()),
            Credentials::None | Credentials::Custom(_) => {
                Err(Error::misuse("the target has no login; add one with `HttpTarget::login`"))
            }
        }
    }

    fn open(&self, inbox: Inbox) -> Result<HttpTransport> {
        let url = url::parse(&self.url).map_err(Error::misuse)?;
        let mut headers = custom_headers(&self.headers)?;
        let via = self.proxy.for_server(&url, |name| std::env::var(name).ok())?;
        if let (Some("http"), Some(value)) =
            (url.scheme_str(), via.as_ref().and_then(|via| via.authorization.clone()))
        {
            headers.insert(header::PROXY_AUTHORIZATION, value);
        }
        let tls = connector::tls(&url, &self.trusted)?;
        let connector = Connector::new(tls, via, None, self.connect_timeout);
        let limit = self.max_message.min(inbox.max_frame());
        let sender = RequestSender::new(connector, headers, self.authorizer(), inbox.clone(), limit);
        Ok(HttpTransport::new(Connection::new(sender, url, inbox, Arc::clone(&self.found))))
    }
}

fn custom_headers(given: &[(String, String)]) -> Result<HeaderMap> {
    let agent = concat!("bowline/", env!("CARGO_PKG_VERSION"));
    let mut headers = HeaderMap::from_iter([(header::USER_AGENT, HeaderValue::from_static(agent))]);
    for (name, value) in given {
        let invalid = |reason: &str| Error::misuse(format!("header `{name}`: {reason}"));
        let name = HeaderName::try_from(name).map_err(|error| invalid(&error.to_string()))?;
        if name.as_str().starts_with("mcp-") || OURS.contains(&name) {
            return Err(invalid("it is set by the client"));
        }
        let mut value = HeaderValue::try_from(value).map_err(|error| invalid(&error.to_string()))?;
        // Headers of the caller are often API keys.
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

impl Connect for HttpTarget {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        let opened = self.open(inbox).map(|transport| Box::new(transport) as Box<dyn Transport>);
        Box::pin(std::future::ready(opened))
    }

    /// Reopens a lost session, with growing delays.
    fn restart(&self) -> Restart {
        Restart::AfterExit(Backoff::new().give_up_after(20, Duration::from_secs(60)))
    }

    fn known_era(&self) -> Option<Era> {
        *lock(&self.found)
    }

    #[cfg(feature = "auth")]
    fn extensions(&self) -> Vec<&'static str> {
        match &self.credentials {
            Credentials::Login(slot) => slot.extension().into_iter().collect(),
            Credentials::None | Credentials::Custom(_) => Vec::new(),
        }
    }
}

impl fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpTarget")
            .field("url", &self.url)
            .field("headers", &names)
            .field("proxy", &self.proxy)
            .field("known_era", &*lock(&self.found))
            .finish_non_exhaustive()
    }
}
