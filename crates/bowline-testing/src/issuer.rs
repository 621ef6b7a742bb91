//! An authorization server on a loopback socket that can misbehave on request.

use crate::{Error, Result};
use bowline_auth::{Form, form, issuer::AuthorizationServer, jose::SigningKey};
use bowline_http::{Body, IssuerService, PostAnswer, Poster};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{
    net::TcpListener,
    sync::Notify,
    task::{AbortHandle, JoinSet},
};

/// What an issuer does wrong. By default it does everything right.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Faults {
    /// Replaces `issuer` in the metadata.
    pub metadata_issuer: Option<String>,
    /// Replaces the authorization endpoint in the metadata, such as with that of another issuer (mix-up).
    pub authorization_endpoint: Option<String>,
    /// Replaces `code_challenge_methods_supported` in the metadata. An empty list removes it.
    pub pkce_methods: Option<Vec<String>>,
    /// Replaces `iss` in authorization responses. Empty text removes it.
    pub response_issuer: Option<String>,
    /// Redirects token requests to this URL.
    pub token_redirect: Option<String>,
    /// Refuses token requests with this status and error code.
    pub token_failure: Option<(u16, String)>,
    /// Token requests wait for this.
    pub token_delay: Option<Arc<Notify>>,
    /// Publishes no keys, so that a server that verifies tokens refuses all of them.
    pub hides_keys: bool,
}

/// An authorization server on a loopback socket. It is real: it registers clients, asks for consent and signs tokens. It ends
/// when this value is dropped.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use bowline_http::{HttpOptions, Protect};
/// use bowline_testing::Issuer;
///
/// let issuer = Issuer::start().await?;
/// issuer.add_resource("http://127.0.0.1:8080/mcp");
/// let options = HttpOptions::new().protect(Protect::by(issuer.url()));
/// // A server that does not announce PKCE must be refused by clients.
/// issuer.faults(|faults| faults.pkce_methods = Some(Vec::new()));
/// # Ok(())
/// # }
/// ```
pub struct Issuer {
    url: String,
    shared: Arc<Shared>,
    serving: AbortHandle,
}

struct Shared {
    service: IssuerService,
    faults: Mutex<Faults>,
    /// The method, path and body of every request.
    requests: Mutex<Vec<(String, String, String)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(error: impl fmt::Display) -> Error {
    Error::unexpected(error.to_string())
}

impl Issuer {
    /// Starts an issuer on a free port.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let url = format!("http://{}", listener.local_addr().map_err(failed)?);
        let server = AuthorizationServer::new(&url, key()?).map_err(failed)?;
        let shared = Arc::new(Shared {
            service: IssuerService::new(server),
            faults: Mutex::default(),
            requests: Mutex::default(),
        });
        let serving = tokio::spawn(serve(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self { url, shared, serving })
    }

    /// The URL, which is also the identifier of the issuer.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Lets tokens be issued for a resource.
    pub fn add_resource(&self, resource: impl Into<String>) {
        self.with(|server| server.add_resource(resource));
    }

    /// Works with the authorization server itself.
    pub fn with<T>(&self, work: impl FnOnce(&mut AuthorizationServer) -> T) -> T {
        self.shared.service.with(work)
    }

    /// Changes what the issuer does wrong, from the next request on.
    pub fn faults(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut lock(&self.shared.faults));
    }

    /// Signs with a new key from now on.
    pub fn rotate_key(&self) -> Result {
        let key = key()?;
        self.with(|server| server.rotate_key(key));
        Ok(())
    }

    /// Returns the bodies of the requests with this method and path, or the queries of those without a body.
    #[must_use]
    pub fn requests(&self, method: &str, path: &str) -> Vec<String> {
        let requests = lock(&self.shared.requests);
        let fitting = requests.iter().filter(|(known, at, _)| known == method && at == path);
        fitting.map(|(_, _, body)| body.clone()).collect()
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").field("url", &self.url).finish_non_exhaustive()
    }
}

fn key() -> Result<SigningKey> {
    SigningKey::generate_es256().map_err(failed)
}

/// Opens the consent page of an [`Issuer`] or of a server with `Protect::dev`, and allows the request as `user`. Returns the URL
/// that the browser is redirected to.
pub async fn allow(url: &str, user: &str) -> Result<String> {
    decide(url, user, "allow").await
}

/// Opens the consent page and denies the request. Returns the URL that the browser is redirected to.
pub async fn deny(url: &str) -> Result<String> {
    decide(url, "developer", "deny").await
}

async fn decide(url: &str, user: &str, decision: &str) -> Result<String> {
    let poster = Poster::new();
    let page = poster.send(Method::GET, url, HeaderMap::new(), Bytes::new()).await.map_err(failed)?;
    // A request that is refused may be redirected at once.
    if let Some(location) = location(&page) {
        return Ok(location);
    }
    let text = String::from_utf8_lossy(&page.body).into_owned();
    let key = text.split_once("name=\"request\" value=\"").and_then(|(_, rest)| rest.split('"').next());
    let key =
        key.ok_or_else(|| Error::unexpected(format!("no consent page at {url}: {} {text}", page.status)))?;
    let form = Form::new().with("request", key).with("user", user).with("decision", decision);
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, kind)]);
    let place = url.split('?').next().unwrap_or_default();
    let body = Bytes::copy_from_slice(form.text().expose().as_bytes());
    let answer = poster.send(Method::POST, place, headers, body).await.map_err(failed)?;
    location(&answer)
        .ok_or_else(|| Error::unexpected(format!("the consent page answered with status {}", answer.status)))
}

fn location(answer: &PostAnswer) -> Option<String> {
    answer.headers.get(header::LOCATION).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let service = service_fn(move |request| {
                let shared = Arc::clone(&shared);
                async move { Ok::<_, Infallible>(shared.answer(request).await) }
            });
            // A client may close its connection early.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let Ok(body) = body.collect().await.map(http_body_util::Collected::to_bytes) else {
            return plain(StatusCode::BAD_REQUEST);
        };
        let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
        let sent = if body.is_empty() { parts.uri.query().unwrap_or_default().as_bytes() } else { &body };
        let seen = (method.to_string(), path.clone(), String::from_utf8_lossy(sent).into_owned());
        lock(&self.requests).push(seen);
        let faults = lock(&self.faults).clone();
        if path == "/token" {
            if let Some(delay) = &faults.token_delay {
                delay.notified().await;
            }
            if let Some(response) = refuse_token(&faults) {
                return response;
            }
        }
        if path == "/jwks" && faults.hides_keys {
            return json_response(StatusCode::OK, &json!({ "keys": [] }));
        }
        let response = self.service.respond(Request::from_parts(parts, Full::new(body))).await;
        change(response, &path, &faults).await
    }
}

fn refuse_token(faults: &Faults) -> Option<Response<Full<Bytes>>> {
    if let Some(url) = &faults.token_redirect {
        let mut response = plain(StatusCode::TEMPORARY_REDIRECT);
        response.headers_mut().insert(header::LOCATION, HeaderValue::from_str(url).ok()?);
        return Some(response);
    }
    let (status, code) = faults.token_failure.as_ref()?;
    let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_REQUEST);
    Some(json_response(status, &json!({ "error": code })))
}

/// Changes a response as the faults say.
async fn change(response: Response<Body>, path: &str, faults: &Faults) -> Response<Full<Bytes>> {
    let (mut parts, body) = response.into_parts();
    // The body cannot fail.
    let Ok(body) = body.collect().await.map(http_body_util::Collected::to_bytes);
    let mut body = body;
    if path.contains("/.well-known/")
        && let Ok(Value::Object(mut document)) = serde_json::from_slice(&body)
    {
        if let Some(issuer) = &faults.metadata_issuer {
            document.insert("issuer".to_owned(), issuer.as_str().into());
        }
        if let Some(endpoint) = &faults.authorization_endpoint {
            document.insert("authorization_endpoint".to_owned(), endpoint.as_str().into());
        }
        match &faults.pkce_methods {
            Some(methods) if methods.is_empty() => {
                document.remove("code_challenge_methods_supported");
            }
            Some(methods) => {
                document.insert("code_challenge_methods_supported".to_owned(), methods.clone().into());
            }
            None => {}
        }
        body = Value::Object(document).to_string().into();
    }
    if let Some(issuer) = &faults.response_issuer
        && let Some(changed) =
            parts.headers.get(header::LOCATION).and_then(|location| with_issuer(location, issuer))
    {
        parts.headers.insert(header::LOCATION, changed);
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Full::new(body))
}

fn with_issuer(location: &HeaderValue, issuer: &str) -> Option<HeaderValue> {
    let (place, query) = location.to_str().ok()?.split_once('?')?;
    let mut form = Form::new();
    for (name, value) in form::decode(query)?.iter().filter(|(name, _)| name != "iss") {
        form = form.with(name, value);
    }
    if !issuer.is_empty() {
        form = form.with("iss", issuer);
    }
    HeaderValue::from_str(&form.append_to(place)).ok()
}

fn json_response(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn plain(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
