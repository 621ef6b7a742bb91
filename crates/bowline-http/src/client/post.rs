//! Plain HTTP requests outside of the protocol: to model providers, telemetry collectors and web pages.

use super::{
    connector::{self, Connector, Resolve},
    proxy::Proxy,
    sender::{Loss, Payload, Pool, pool},
    url,
};
use bowline_client::BoxFuture;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use hyper::body::{Body, Incoming};
use std::{
    collections::HashMap,
    error::Error as StdError,
    fmt,
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// How many origins are remembered at once.
const MAX_ORIGINS: usize = 64;

/// Sends requests that are not of the protocol; [`Poster`] does so for real, and tests need not.
pub trait Post: fmt::Debug + Send + Sync {
    /// Sends one POST request and returns the response, whatever its status.
    ///
    /// Redirections are answers like others: what the headers hold is meant for this URL alone. Dropping the future aborts
    /// the request.
    fn post<'a>(
        &'a self,
        url: &'a str,
        headers: HeaderMap,
        body: Bytes,
    ) -> BoxFuture<'a, Result<PostAnswer, PostError>>;
}

impl<P: Post + ?Sized> Post for Arc<P> {
    fn post<'a>(
        &'a self,
        url: &'a str,
        headers: HeaderMap,
        body: Bytes,
    ) -> BoxFuture<'a, Result<PostAnswer, PostError>> {
        (**self).post(url, headers, body)
    }
}

/// The response to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostAnswer {
    /// How it went.
    pub status: StatusCode,
    /// The headers of the response.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

/// Where a reference leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The other place.
    pub url: String,
    /// Whether it has the same scheme, host and port, so that credentials may be sent to it.
    pub is_same_origin: bool,
}

impl Reference {
    /// Resolves `reference` against `url`. The fragment is removed.
    ///
    /// Fails if the result is not an HTTP URL, or has credentials.
    pub fn resolve(url: &str, reference: &str) -> Result<Self, PostError> {
        let from = url::parse(url).map_err(PostError::Misuse)?;
        let to = url::resolve(&from, reference).map_err(PostError::Misuse)?;
        Ok(Self { is_same_origin: url::is_same_origin(&from, &to), url: to.to_string() })
    }
}

impl PostAnswer {
    /// Returns the target of a response to a request for `url`, if it is a redirect.
    ///
    /// Fails as [`Reference::resolve`] does.
    pub fn redirect(&self, url: &str) -> Result<Option<Reference>, PostError> {
        let leads = matches!(self.status.as_u16(), 301 | 302 | 303 | 307 | 308);
        let Some(location) = self.headers.get(header::LOCATION).filter(|_| leads) else { return Ok(None) };
        let location = location.to_str().map_err(|error| PostError::Unreadable(error.to_string()))?;
        Reference::resolve(url, location).map(Some)
    }
}

/// Why there is no complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PostError {
    /// The URL, a certificate or the proxy is invalid: nothing was sent.
    Misuse(String),
    /// No connection could be made: nothing was sent.
    Unreachable(String),
    /// The connection ended before the response was complete.
    Lost(String),
    /// The response is not valid HTTP.
    Unreadable(String),
    /// The body is longer than this many bytes.
    TooLong(usize),
}

impl fmt::Display for PostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse(reason) => f.write_str(reason),
            Self::Unreachable(reason) => write!(f, "cannot be reached: {reason}"),
            Self::Lost(reason) => write!(f, "the connection ended before the answer: {reason}"),
            Self::Unreadable(reason) => write!(f, "the response cannot be read: {reason}"),
            Self::TooLong(limit) => write!(f, "the answer is longer than {limit} bytes"),
        }
    }
}

impl StdError for PostError {}

/// Sends requests, with the TLS, the proxies and the limits that [`HttpTarget`](super::HttpTarget) has. Clones share
/// their connections, which are kept per origin.
#[derive(Clone)]
pub struct Poster {
    connect_timeout: Duration,
    max_answer: usize,
    proxy: Proxy,
    resolver: Option<Arc<dyn Resolve>>,
    trusted: Vec<Vec<u8>>,
    origins: Arc<Mutex<HashMap<String, Origin>>>,
}

/// How the servers of one origin are reached.
#[derive(Clone)]
struct Origin {
    client: Pool,
    /// The headers of every request.
    headers: HeaderMap,
}

impl Default for Poster {
    fn default() -> Self {
        Self::new()
    }
}

impl Poster {
    /// Creates a poster that uses the proxy of the environment, if there is one.
    pub fn new() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            max_answer: 16 * 1024 * 1024,
            proxy: Proxy::default(),
            resolver: None,
            trusted: Vec::new(),
            origins: Arc::default(),
        }
    }

    /// Sets the time limit for connecting, including TLS. Default: 10 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self.with_own_connections()
    }

    /// Sets the maximum size of a response body in bytes. Default: 16 MiB.
    #[must_use]
    pub fn max_answer(mut self, bytes: usize) -> Self {
        self.max_answer = bytes;
        self
    }

    /// Uses this proxy. By default, that of the [environment](Proxy::environment) is used; [`Proxy::none`] uses none.
    #[must_use]
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = proxy;
        self.with_own_connections()
    }

    /// Sets the resolver of host names. With a proxy, which resolves names itself, it can only refuse hosts: see
    /// [`Resolve::resolve`].
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolve + 'static) -> Self {
        self.resolver = Some(Arc::new(resolver));
        self.with_own_connections()
    }

    /// Trusts this certificate (X.509, DER) besides those that the machine trusts.
    #[must_use]
    pub fn trust(mut self, certificate: impl Into<Vec<u8>>) -> Self {
        self.trusted.push(certificate.into());
        self.with_own_connections()
    }

    /// Connections made with other settings are not shared.
    fn with_own_connections(mut self) -> Self {
        self.origins = Arc::default();
        self
    }

    fn origin(&self, uri: &Uri) -> Result<Origin, PostError> {
        let name = format!(
            "{}://{}:{}",
            uri.scheme_str().unwrap_or_default(),
            uri.host().unwrap_or_default().to_ascii_lowercase(),
            url::port(uri)
        );
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(origin) = origins.get(&name) {
            return Ok(origin.clone());
        }
        // Connections are opened again when they are needed, so all can be dropped.
        if origins.len() >= MAX_ORIGINS {
            origins.clear();
        }
        let misuse = |error: bowline_client::Error| PostError::Misuse(error.to_string());
        let via = self.proxy.for_server(uri, |name| std::env::var(name).ok()).map_err(misuse)?;
        let mut headers = HeaderMap::new();
        if let (Some("http"), Some(value)) =
            (uri.scheme_str(), via.as_ref().and_then(|via| via.authorization.clone()))
        {
            headers.insert(header::PROXY_AUTHORIZATION, value);
        }
        let tls = connector::tls(uri, &self.trusted).map_err(misuse)?;
        let client = pool(Connector::new(tls, via, self.resolver.clone(), self.connect_timeout));
        let origin = Origin { client, headers };
        origins.insert(name, origin.clone());
        Ok(origin)
    }

    /// Sends one request, as [`Post::post`] does, of any method.
    pub async fn send(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<PostAnswer, PostError> {
        let (head, body) = self.ask(method, url, headers, body).await?.into_parts();
        let body = whole(body, self.max_answer).await?;
        Ok(PostAnswer { status: head.status, headers: head.headers, body })
    }

    pub(super) async fn ask(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, PostError> {
        let uri = url::parse(url).map_err(PostError::Misuse)?;
        let origin = self.origin(&uri)?;
        let mut request = Request::new(Payload::from(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        request.headers_mut().extend(origin.headers);
        origin.client.request(request).await.map_err(|error| loss(&error))
    }
}

impl Post for Poster {
    fn post<'a>(
        &'a self,
        url: &'a str,
        headers: HeaderMap,
        body: Bytes,
    ) -> BoxFuture<'a, Result<PostAnswer, PostError>> {
        Box::pin(self.send(Method::POST, url, headers, body))
    }
}

impl fmt::Debug for Poster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poster")
            .field("connect_timeout", &self.connect_timeout)
            .field("max_answer", &self.max_answer)
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

fn loss(error: &(dyn StdError + 'static)) -> PostError {
    match Loss::of(error) {
        Loss::Unreachable(reasons) => PostError::Unreachable(reasons),
        Loss::Unreadable(reasons) => PostError::Unreadable(reasons),
        Loss::Closed(reasons) => PostError::Lost(reasons),
    }
}

async fn whole(body: Incoming, limit: usize) -> Result<Bytes, PostError> {
    if body.size_hint().lower() > limit as u64 {
        return Err(PostError::TooLong(limit));
    }
    let mut body = pin!(body);
    let mut bytes = BytesMut::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        // Frames without data are trailers, which are ignored.
        let Ok(data) = frame.map_err(|error| loss(&error))?.into_data() else { continue };
        if bytes.len() + data.len() > limit {
            return Err(PostError::TooLong(limit));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}
