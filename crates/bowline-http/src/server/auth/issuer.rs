//! Serves the authorization server for development, and verifies its tokens.

use super::{Protect, ProtectError};
use crate::{
    Poster,
    client::auth::{LearnedHosts, Networks},
    server::{body::Body, reply},
};
use bowline_auth::{
    Issuer, Refusal, Step, Verdict, Verify,
    issuer::{AuthorizationServer, DocumentReply, MAX_BODY, MAX_DOCUMENT, Moment},
    jose::SigningKey,
    verify::{Expected, Issuers, Jwt, Verification},
};
use bowline_server::transport::unix_time;
use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use ring::rand::{SecureRandom, SystemRandom};
use std::{
    convert::Infallible,
    fmt,
    future::{Future, poll_fn},
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tokio::sync::Semaphore;

/// How long a body may take to arrive, and how long the document of a client may take.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// How many documents of clients are fetched at the same time.
const MAX_FETCHES: usize = 4;

impl Protect {
    /// Protects a server for development, without an external authorization server: the server issues tokens itself, on the same
    /// socket. Users log in on a page that asks for consent, without passwords.
    ///
    /// It works only on a loopback address, when this library serves the socket.
    ///
    /// ```no_run
    /// use bowline_http::{HttpOptions, Protect, ServeHttp};
    /// use bowline_server::{ServeError, Server};
    ///
    /// # async fn run() -> Result<(), ServeError> {
    /// let protect = Protect::dev().scopes(["notes:read"]);
    /// Server::new("notes").serve_http_with("127.0.0.1:8080", HttpOptions::new().protect(protect)).await
    /// # }
    /// ```
    pub fn dev() -> Self {
        let mut protect = Self::with(Issuers::new(), Vec::<String>::new());
        protect.dev = Some(Dev::WithoutAddress);
        protect
    }

    /// Creates the authorization server of [`dev`](Self::dev) when the address is known.
    pub(super) fn start_dev(&mut self, address: SocketAddr, path: &str) {
        if !matches!(self.dev, Some(Dev::WithoutAddress)) {
            return;
        }
        let dev = self.try_start_dev(address, path);
        self.dev = Some(dev.map_or_else(Dev::Failed, Dev::At));
    }

    fn try_start_dev(&mut self, address: SocketAddr, path: &str) -> Result<IssuerService, String> {
        if !address.ip().is_loopback() {
            return Err(format!(
                "`Protect::dev` works only on a loopback address such as 127.0.0.1, not on {address}; use `Protect::by` with an \
                 authorization server"
            ));
        }
        let origin = format!("http://{address}");
        let resource = self.resource.get_or_insert_with(|| format!("{origin}{path}")).clone();
        let key = SigningKey::generate_es256().map_err(|error| error.to_string())?;
        let server = AuthorizationServer::new(&origin, key).map_err(|error| error.to_string())?;
        let server = server.resource(resource).default_scopes(self.scopes.iter().collect());
        let service = IssuerService::new(server);
        self.verifier = Arc::new(OwnTokens::new(service.clone()));
        self.issuers = vec![origin];
        Ok(service)
    }
}

/// The state of [`Protect::dev`].
#[derive(Clone, Debug)]
pub(super) enum Dev {
    /// The address of the socket is not known yet.
    WithoutAddress,
    At(IssuerService),
    Failed(String),
}

impl Dev {
    pub(super) fn into_service(self) -> Result<IssuerService, ProtectError> {
        match self {
            Self::At(service) => Ok(service),
            Self::Failed(reason) => Err(ProtectError::new(reason)),
            Self::WithoutAddress => Err(ProtectError::new(
                "`Protect::dev` needs the address of the socket; serve with `serve_http_with`, or set it with \
                 `HttpOptions::listening_on`",
            )),
        }
    }
}

/// An [`AuthorizationServer`] as a tower service. Clones share it.
#[derive(Clone)]
pub struct IssuerService {
    shared: Arc<Shared>,
}

struct Shared {
    server: Mutex<AuthorizationServer>,
    hosts: LearnedHosts,
    poster: Poster,
    fetches: Semaphore,
}

impl IssuerService {
    /// Serves an authorization server. Documents of clients are fetched from public addresses only.
    #[must_use]
    pub fn new(server: AuthorizationServer) -> Self {
        let hosts = LearnedHosts::new("", Networks::Public);
        let poster = Poster::new().max_answer(MAX_DOCUMENT).resolver(hosts.clone());
        let fetches = Semaphore::new(MAX_FETCHES);
        Self { shared: Arc::new(Shared { server: Mutex::new(server), hosts, poster, fetches }) }
    }

    /// Works with the authorization server, which answers no request meanwhile.
    pub fn with<T>(&self, work: impl FnOnce(&mut AuthorizationServer) -> T) -> T {
        work(&mut self.server())
    }

    fn server(&self) -> MutexGuard<'_, AuthorizationServer> {
        self.shared.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::server) fn has_path(&self, path: &str) -> bool {
        self.server().has_path(path)
    }

    /// The host of the issuer, as in its URL.
    pub(in crate::server) fn host(&self) -> String {
        let issuer = self.server().issuer().as_str().to_owned();
        let authority = issuer.split_once("://").map_or("", |(_, rest)| rest);
        authority.split('/').next().unwrap_or_default().to_owned()
    }

    /// Answers one request. The body is read up to the limit of the authorization server.
    pub async fn respond<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body,
    {
        let (parts, body) = request.into_parts();
        let body = match tokio::time::timeout(TIME_LIMIT, read(body)).await {
            Ok(Ok(body)) => body,
            Ok(Err(status)) => return reply::empty(status),
            Err(_) => return reply::empty(StatusCode::REQUEST_TIMEOUT),
        };
        let mut random = [0; 64];
        if SystemRandom::new().fill(&mut random).is_err() {
            return reply::empty(StatusCode::SERVICE_UNAVAILABLE);
        }
        let (request, moment) = (Request::from_parts(parts, body), Moment::new(unix_time(), random));
        let step = self.server().answer(&request, &moment);
        let wanted = match step {
            Step::Done(response) => return without_body(&request, response),
            Step::Fetch(wanted) => wanted.url,
        };
        self.fetch(&wanted, &moment).await;
        let step = self.server().answer(&request, &moment);
        match step {
            Step::Done(response) => without_body(&request, response),
            // The document was dropped meanwhile, because there are too many.
            Step::Fetch(_) => reply::empty(StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    /// Fetches the document of a client for the authorization server.
    async fn fetch(&self, url: &str, moment: &Moment) {
        let fetched = match self.shared.fetches.try_acquire() {
            Ok(_permit) => self.shared.get(url).await,
            Err(_) => Err("too many documents are being fetched; try again".to_owned()),
        };
        let fetched = fetched.as_ref().map_err(String::as_str).map(|answer| {
            let text = |name| answer.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
            DocumentReply {
                status: answer.status.as_u16(),
                content_type: text(header::CONTENT_TYPE),
                cache_control: text(header::CACHE_CONTROL),
                body: &answer.body,
            }
        });
        self.server().put_document(url, fetched, moment);
    }
}

impl Shared {
    async fn get(&self, url: &str) -> Result<crate::PostAnswer, String> {
        self.hosts.check(url)?;
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static("application/json"))]);
        let sent = self.poster.send(Method::GET, url, headers, Bytes::new());
        match tokio::time::timeout(TIME_LIMIT, sent).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err(format!("its server did not answer within {} s", TIME_LIMIT.as_secs())),
        }
    }
}

/// Reads a body that is not longer than the limit.
async fn read<B: http_body::Body>(body: B) -> Result<Vec<u8>, StatusCode> {
    let mut body = pin!(body);
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let frame = frame.map_err(|_| StatusCode::BAD_REQUEST)?;
        let Ok(mut data) = frame.into_data() else { continue };
        if bytes.len().saturating_add(data.remaining()) > MAX_BODY {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            bytes.extend_from_slice(chunk);
            let length = chunk.len();
            data.advance(length);
        }
    }
    Ok(bytes)
}

fn without_body(request: &Request<Vec<u8>>, response: Response<Vec<u8>>) -> Response<Body> {
    let mut response = response.map(|body| Body::from(Bytes::from(body)));
    if request.method() == Method::HEAD {
        *response.body_mut() = Body::from("");
    }
    response
}

impl<B> tower_service::Service<Request<B>> for IssuerService
where
    B: http_body::Body<Data: Send> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.respond(request).await) })
    }
}

impl fmt::Debug for IssuerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuerService").field("issuer", self.server().issuer()).finish_non_exhaustive()
    }
}

/// Verifies tokens of an authorization server in this process. Tokens of revoked sessions are refused at once.
#[derive(Debug)]
struct OwnTokens {
    service: IssuerService,
    jwt: Jwt,
}

impl OwnTokens {
    fn new(service: IssuerService) -> Self {
        let issuer: Issuer = service.server().issuer().clone();
        Self { service, jwt: Jwt::new(issuer).require_type() }
    }

    fn verdict(&self, token: &str, expected: Expected<'_>) -> Verdict {
        let unsigned = self.jwt.check(token, expected)?;
        let server = self.service.server();
        let unknown = || Err(Refusal::invalid("the token is signed with an unknown key"));
        let caller = unsigned.verify_with(&server.key_set(), expected).unwrap_or_else(unknown)?;
        match caller.claim::<String>("sid") {
            Some(sid) if !server.is_live(&sid, expected.now) => {
                Err(Refusal::invalid("the login of the token was revoked"))
            }
            _ => Ok(caller),
        }
    }
}

impl Verify for OwnTokens {
    fn verify<'a>(&'a self, token: &'a str, expected: Expected<'a>) -> Verification<'a> {
        self.verdict(token, expected).into()
    }

    fn generation(&self) -> u64 {
        self.service.server().revocations()
    }
}
