//! The endpoint as a tower service.

mod before_endpoint;

#[cfg(feature = "issuer")]
use super::auth::IssuerService;
#[cfg(feature = "auth")]
use super::auth::{Protect, ProtectError, Protection};
#[cfg(feature = "store")]
use super::shared_sessions::{Node, UsedStatesInStore};
use super::{
    access::Access,
    body::Body,
    budget::Budget,
    cors,
    legacy::{self, Session, Sessions},
    listen::OpenListens,
    modern::{self, PROTOCOL_VERSION},
    options::HttpOptions,
    post_body,
    refused::RefusalLog,
    reply,
    retention::Retention,
};
use before_endpoint::Place;
use bowline_proto::{
    envelope::{self, Frame, Message, MethodName},
    params::{Params, RequestMeta},
    server::{Handling, HeaderVersion, MessageKind, Transport, classify},
};
use bowline_server::{Server, ServerHandle, transport::RawFrame};
use bowline_types::{Era, Id, InitializeParams, RawJson, Revision, RpcError};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};
use tokio::sync::{Semaphore, watch};

/// An endpoint of the protocol: a tower service for requests of HTTP.
///
/// Clones share everything. It can be mounted in axum as it is.
#[derive(Clone, Debug)]
pub struct HttpService {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) server: ServerHandle,
    pub(super) options: HttpOptions,
    pub(super) sessions: Sessions,
    pub(super) retention: Arc<Retention>,
    pub(super) listens: Mutex<OpenListens>,
    bodies: Budget,
    refused: RefusalLog,
    ending: watch::Sender<bool>,
    /// How many streams of events are open.
    streams: Arc<AtomicUsize>,
    /// Limits how many requests of sealed sessions run.
    pub(super) sealed_running: Arc<Semaphore>,
    /// This process among those that share a store.
    #[cfg(feature = "store")]
    pub(super) node: Option<Arc<Node>>,
    /// An error when the options describe a protection that cannot work.
    #[cfg(feature = "auth")]
    protection: Option<Result<Protection, ProtectError>>,
}

/// The authenticated user of a request, put into its extensions by the code that authenticates it.
///
/// Sessions and sealed states belong to it, so it must differ for callers who must not act for each other: use the issuer, the
/// subject and the client of a token, not the subject alone. It is set again for every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal(pub Arc<str>);

impl Shared {
    /// Returns the verification of access tokens, if the endpoint is protected.
    #[cfg(feature = "auth")]
    pub(super) fn protection(&self) -> Option<&Protection> {
        self.protection.as_ref()?.as_ref().ok()
    }

    /// Completes when the endpoint is to end.
    pub(super) fn ending(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut ending = self.ending.subscribe();
        async move {
            // An endpoint that is gone has ended as well.
            drop(ending.wait_for(|ending| *ending).await);
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }
}

impl HttpService {
    /// Creates an endpoint for `server` with the default options.
    ///
    /// Fails when something the server offers cannot work.
    pub fn new(server: Server) -> Result<Self, bowline_server::BuildError> {
        Ok(Self::with_options(server.build()?, HttpOptions::default()))
    }

    /// Creates an endpoint for a server that may have other endpoints.
    pub fn with_options(server: ServerHandle, options: HttpOptions) -> Self {
        let bodies = Budget::new(options.max_bodies);
        let retention = Arc::new(Retention::new(options.max_retained_bytes));
        #[cfg(feature = "auth")]
        let protection = options.protect.clone().map(Protect::build);
        #[cfg(feature = "auth")]
        if let Some(Err(error)) = &protection {
            tracing::error!("every request is refused: {error}");
        }
        #[cfg(feature = "store")]
        let node = options.session_store.as_ref().map(|store| Node::new(&server, store));
        #[cfg(feature = "store")]
        if let Some(records) = options.used_states.clone() {
            server.profile().set_used_states(Arc::new(UsedStatesInStore::new(records)));
        }
        let sealed_running = Arc::new(Semaphore::new(options.max_sessions.min(Semaphore::MAX_PERMITS)));
        Self {
            shared: Arc::new(Shared {
                sealed_running,
                #[cfg(feature = "store")]
                node,
                server,
                options,
                sessions: Sessions::default(),
                retention,
                listens: Mutex::default(),
                bodies,
                refused: RefusalLog::default(),
                ending: watch::Sender::new(false),
                streams: Arc::default(),
                #[cfg(feature = "auth")]
                protection,
            }),
        }
    }

    /// Fails if the options describe a protection that cannot work.
    #[cfg(feature = "auth")]
    pub(super) fn check_protection(&self) -> Result<(), ProtectError> {
        match &self.shared.protection {
            Some(Err(error)) => Err(error.clone()),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// Returns the authorization server on this socket.
    #[cfg(feature = "issuer")]
    pub(super) fn issuer(&self) -> Option<&IssuerService> {
        self.shared.protection()?.issuer()
    }

    /// Answers a request for the authorization server on this socket. It decides itself which pages may call, but only names of
    /// this machine reach it: a page that points a name of its own here could otherwise read the consent page.
    #[cfg(feature = "issuer")]
    pub(super) async fn answer_issuer<B>(&self, issuer: IssuerService, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body,
    {
        let options = HttpOptions::new().hosts([issuer.host()]);
        let (parts, body) = request.into_parts();
        if let Err(refusal) = super::guard::check_host(&options, &parts.uri, &parts.headers) {
            return self.refuse(refusal, &parts);
        }
        issuer.respond(Request::from_parts(parts, body)).await
    }

    pub(super) fn server(&self) -> &ServerHandle {
        &self.shared.server
    }

    pub(super) fn options(&self) -> &HttpOptions {
        &self.shared.options
    }

    /// Ends the endpoint: new requests are refused, streams of changes are closed with their result, running calls continue.
    pub fn end(&self) {
        self.shared.ending.send_replace(true);
    }

    /// Waits for `signal`, then ends the endpoint. This is what graceful shutdown of axum and hyper waits for; without it, an
    /// open stream of changes keeps them waiting for ever.
    ///
    /// ```no_run
    /// # async fn shutdown_signal() {}
    /// # async fn run(service: bowline_http::HttpService) -> std::io::Result<()> {
    /// let app = axum::Router::new().nest_service("/mcp", service.clone());
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    /// axum::serve(listener, app).with_graceful_shutdown(service.end_after(shutdown_signal())).await
    /// # }
    /// ```
    pub fn end_after<F>(&self, signal: F) -> impl Future<Output = ()> + use<F>
    where
        F: Future<Output = ()>,
    {
        let service = self.clone();
        async move {
            signal.await;
            service.end();
        }
    }

    /// Returns the number of open sessions of legacy revisions.
    pub fn sessions(&self) -> usize {
        self.shared.sessions.len()
    }

    /// Tells the same whenever it is asked, without keeping the endpoint.
    pub fn session_counter(&self) -> impl Fn() -> usize + Send + Sync + use<> {
        let shared = Arc::downgrade(&self.shared);
        move || shared.upgrade().map_or(0, |shared| shared.sessions.len())
    }

    /// Returns a function that counts the open streams of events: of calls, of subscriptions and of sessions. It does not keep
    /// the endpoint.
    pub fn stream_counter(&self) -> impl Fn() -> usize + Send + Sync + use<> {
        let streams = Arc::clone(&self.shared.streams);
        move || streams.load(Ordering::Relaxed)
    }

    pub(super) fn end_sessions(&self) {
        #[cfg(feature = "store")]
        if let Some(node) = &self.shared.node {
            node.start_leaving();
        }
        self.shared.sessions.clear();
    }

    /// Returns a function that says whether the store of sessions answers; `None` if there is none. It does not keep the endpoint.
    #[cfg(feature = "store")]
    pub fn store_status(&self) -> impl Fn() -> Option<bool> + Send + Sync + use<> {
        let shared = Arc::downgrade(&self.shared);
        move || Some(shared.upgrade()?.node.as_ref()?.is_up())
    }

    /// Tells other processes that this one is gone, so that they need not wait for its record to expire. To be called after
    /// the last call has ended; [`serve`](Self::serve) does it.
    #[cfg(feature = "store")]
    pub async fn leave_store(&self) {
        if let Some(node) = &self.shared.node {
            node.leave().await;
        }
    }

    /// Answers one request.
    pub async fn respond<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Error: std::error::Error>,
    {
        let (mut parts, body) = request.into_parts();
        self.respond_to(&mut parts, body).await
    }

    /// Answers one request, and may take headers and extensions out of its head.
    pub(super) async fn respond_to<B>(&self, parts: &mut Parts, body: B) -> Response<Body>
    where
        B: http_body::Body<Error: std::error::Error>,
    {
        #[cfg(feature = "auth")]
        let next_nonce = self.expect_nonce(parts);
        #[cfg(not(feature = "auth"))]
        let next_nonce: Option<()> = None;
        if !self.shared.options.cors && next_nonce.is_none() {
            return self.answer(parts, body).await;
        }
        let origin = cors::origin(&self.shared.options, &parts.headers);
        let mut response = self.answer(parts, body).await;
        if self.shared.options.cors {
            cors::allow(response.headers_mut(), origin);
        }
        #[cfg(feature = "auth")]
        if let Some(next) = next_nonce {
            next.add_to(&mut response);
        }
        response
    }

    async fn answer<B>(&self, parts: &mut Parts, body: B) -> Response<Body>
    where
        B: http_body::Body<Error: std::error::Error>,
    {
        let mut response = self.answer_uncounted(parts, body).await;
        response.body_mut().count_in(&self.shared.streams);
        response
    }

    async fn answer_uncounted<B>(&self, parts: &mut Parts, body: B) -> Response<Body>
    where
        B: http_body::Body<Error: std::error::Error>,
    {
        if let Some(response) = self.answer_before_endpoint(parts, Place::Endpoint).await {
            return response;
        }
        let mut access = Access::of(&self.shared, parts);
        // The scopes of a POST depend on its body.
        if parts.method != Method::POST
            && let Err(response) = access.check()
        {
            return *response;
        }
        // A call that is finishing may still need requests of its session: an answer, a cancellation, a resumed stream.
        let is_2024 = self.is_2024(parts);
        let in_session =
            || parts.headers.contains_key(legacy::SESSION_ID) || is_2024 && parts.method == Method::POST;
        if self.shared.is_ending() && !in_session() {
            return ending();
        }
        let principal = access.principal().or_else(|| {
            let principal = parts.extensions.get::<Principal>();
            principal.map(|Principal(name)| Arc::clone(name))
        });
        if is_2024 {
            return self.respond_2024(parts, access, principal, body).await;
        }
        match parts.method {
            Method::POST => {
                if let Err(response) = post_body::check_types(&parts.headers) {
                    return *response;
                }
                let message = match post_body::read(&self.shared.options, &self.shared.bodies, body).await {
                    // What is kept of the frame is in the message, and goes with it.
                    Ok(frame) => self.parse(parts, frame),
                    Err(status) => return post_body::unreadable(status),
                };
                if let Err(response) = access.check_frame(&self.shared.server, &message) {
                    return *response;
                }
                access.challenge(self.post(parts, principal, message).await)
            }
            Method::GET | Method::DELETE if self.speaks_legacy() => {
                let session = match self.session(&parts.headers, principal.as_ref()).await {
                    Ok(session) => session,
                    Err(response) => return *response,
                };
                if session.is_sealed() {
                    return legacy::not_allowed_sealed();
                }
                if parts.method == Method::DELETE {
                    return legacy::end(&self.shared, &session).await;
                }
                if !post_body::accepts(&parts.headers, "text/event-stream") {
                    return reply::refusal(
                        StatusCode::NOT_ACCEPTABLE,
                        "expected `Accept: text/event-stream`",
                    );
                }
                session.conversation.set_subscriber(access.subscriber());
                legacy::get(&self.shared, &session, &parts.headers, access.stream_time()).await
            }
            _ if self.speaks_legacy() => not_allowed("GET, POST, DELETE"),
            _ => not_allowed("POST"),
        }
    }

    /// Parses a message, and keeps its text for an observer.
    fn parse(&self, parts: &mut Parts, text: Bytes) -> Frame {
        let message = envelope::parse(&text);
        if self.shared.server.is_observed() {
            parts.extensions.insert(RawFrame(text));
        }
        message
    }

    fn speaks_legacy(&self) -> bool {
        self.shared.server.profile().revisions.newest_legacy().is_some()
    }

    /// Returns the session that a request names, or the error response.
    async fn session(
        &self,
        headers: &HeaderMap,
        principal: Option<&Arc<str>>,
    ) -> Result<Arc<Session>, Box<Response<Body>>> {
        let refuse = |status, reason: &str| Err(Box::new(reply::refusal(status, reason)));
        let spoken = self.shared.server.profile().revisions;
        if let Some(version) = headers.get(PROTOCOL_VERSION)
            && !version
                .to_str()
                .ok()
                .and_then(Revision::parse)
                .is_some_and(|revision| revision.era() == Era::Legacy && spoken.contains(revision))
        {
            return refuse(
                StatusCode::BAD_REQUEST,
                "`MCP-Protocol-Version` is not a supported revision with sessions",
            );
        }
        let mut ids = headers.get_all(legacy::SESSION_ID).iter();
        let (Some(id), None) = (ids.next(), ids.next()) else {
            return refuse(StatusCode::BAD_REQUEST, "expected exactly one `Mcp-Session-Id` header");
        };
        let Ok(id) = id.to_str() else { return Err(Box::new(reply::no_session())) };
        if self.shared.options.sealed_sessions {
            return legacy::open_sealed(&self.shared, id, principal);
        }
        #[cfg(feature = "store")]
        if let Some(node) = &self.shared.node {
            return node.find(&self.shared, id, principal).await;
        }
        self.shared.sessions.find(id, principal).ok_or_else(|| Box::new(reply::no_session()))
    }

    async fn post(&self, parts: &mut Parts, principal: Option<Arc<str>>, message: Frame) -> Response<Body> {
        let frame = match message {
            Frame::Single(Ok(Message::Request { id, method, params })) => {
                return self.post_request(parts, principal, id, method, params).await;
            }
            Frame::Single(Err(rejected)) => return bad_request(rejected.id.as_ref(), &rejected.error),
            other => other,
        };
        if self.shared.is_ending() && matches!(frame, Frame::Batch(_)) {
            return ending();
        }
        if self.classify(&parts.headers, MessageKind::Other) == Handling::Session {
            return self.post_to_session(parts, principal.as_ref(), frame).await;
        }
        match frame {
            Frame::Single(Ok(Message::Notification { method, params })) => {
                modern::take_notification(&self.shared, parts, principal.as_ref(), &method, params).await;
                reply::empty(StatusCode::ACCEPTED)
            }
            Frame::Batch(_) => {
                reply::refusal(StatusCode::BAD_REQUEST, "batches are not supported in this revision")
            }
            Frame::Single(_) => {
                reply::refusal(StatusCode::BAD_REQUEST, "clients must not send responses in this revision")
            }
        }
    }

    async fn post_request(
        &self,
        parts: &mut Parts,
        principal: Option<Arc<str>>,
        id: Id,
        method: MethodName,
        params: Option<Params>,
    ) -> Response<Body> {
        if self.shared.is_ending() {
            return ending();
        }
        let described = params.as_ref().map_or_else(|| Ok(RequestMeta::default()), RequestMeta::of);
        let message = MessageKind::request(&method, described.as_ref());
        match (self.classify(&parts.headers, message), described) {
            (Handling::Opening, _) if self.speaks_legacy() => {
                let frame = Frame::Single(Ok(Message::Request { id, method, params }));
                legacy::open(&self.shared, parts, principal, frame).await
            }
            (Handling::Opening, _) => {
                bad_request(Some(&id), &self.only_modern(params.as_ref().map(Params::raw)))
            }
            (Handling::Session, _) => {
                let frame = Frame::Single(Ok(Message::Request { id, method, params }));
                self.post_to_session(parts, principal.as_ref(), frame).await
            }
            (Handling::Modern, Ok(meta)) => {
                let params = params.unwrap_or_else(Params::empty);
                let request = modern::Request { id, method, params, meta, principal };
                modern::answer(&self.shared, parts, request).await
            }
            (Handling::Modern, Err(error)) => bad_request(Some(&id), &error),
        }
    }

    /// Decides by which rules a POST request is handled.
    fn classify(&self, headers: &HeaderMap, message: MessageKind) -> Handling {
        let transport = Transport::Post {
            has_session: headers.contains_key(legacy::SESSION_ID),
            version: HeaderVersion::of(headers.get(PROTOCOL_VERSION).map(HeaderValue::as_bytes)),
        };
        classify(self.shared.server.profile().revisions, transport, message)
    }

    async fn post_to_session(
        &self,
        parts: &mut Parts,
        principal: Option<&Arc<str>>,
        frame: Frame,
    ) -> Response<Body> {
        match self.session(&parts.headers, principal).await {
            Ok(session) => legacy::post(&self.shared, &session, parts, frame).await,
            Err(response) => *response,
        }
    }

    /// Returns the error for a client that starts a handshake with a server that has no legacy revisions. The client
    /// can only show it to its user.
    fn only_modern(&self, params: Option<&RawJson>) -> RpcError {
        let params = params.and_then(|params| params.decode::<InitializeParams>().ok());
        let supported: Vec<_> = self.shared.server.profile().revisions.newest_first().collect();
        RpcError::unsupported_version(
            params.map(|params| params.protocol_version).unwrap_or_default(),
            &supported,
        )
    }

    fn is_2024(&self, parts: &Parts) -> bool {
        self.speaks_legacy() && self.shared.options.sse_path.as_deref() == Some(parts.uri.path())
    }

    async fn respond_2024<B: http_body::Body>(
        &self,
        parts: &mut Parts,
        mut access: Access,
        principal: Option<Arc<str>>,
        body: B,
    ) -> Response<Body> {
        match parts.method {
            Method::GET => legacy::stream_2024(&self.shared, principal, access.stream_time()),
            Method::POST => {
                if let Err(response) = post_body::check_types(&parts.headers) {
                    return *response;
                }
                let id = parts
                    .uri
                    .query()
                    .unwrap_or_default()
                    .split('&')
                    .find_map(|pair| pair.strip_prefix("sessionId="));
                let Some(session) = id.and_then(|id| self.shared.sessions.find(id, principal.as_ref()))
                else {
                    return reply::no_session();
                };
                let frame = match post_body::read(&self.shared.options, &self.shared.bodies, body).await {
                    Ok(frame) => self.parse(parts, frame),
                    Err(status) => return post_body::unreadable(status),
                };
                // It may have ended while the body came.
                if session.is_over() {
                    return reply::no_session();
                }
                if self.shared.is_ending() && begins_something(&frame) {
                    return ending();
                }
                match access.check_frame(&self.shared.server, &frame) {
                    Ok(()) => legacy::message_2024(&session, parts, frame).await,
                    Err(response) => *response,
                }
            }
            _ => not_allowed("GET, POST"),
        }
    }
}

fn ending() -> Response<Body> {
    let mut response = reply::refusal(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down");
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn not_allowed(allowed: &'static str) -> Response<Body> {
    let mut response = reply::refusal(StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Returns whether a frame starts something new, which a server does not accept during shutdown.
fn begins_something(frame: &Frame) -> bool {
    matches!(frame, Frame::Single(Ok(Message::Request { .. })) | Frame::Batch(_))
}

fn bad_request(id: Option<&Id>, error: &RpcError) -> Response<Body> {
    let mut response = reply::failure(id, error);
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: http_body::Body<Data: Send, Error: std::error::Error> + Send + 'static,
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
