//! Calls, their outcomes, and the services and middleware that handle them.
//!
//! A [`Service`] does not depend on the revision of its caller: the session that produced the [`Call`]
//! adapts the [`Outcome`].

#[cfg(feature = "http")]
pub use crate::extensions::HttpRequest;
pub use crate::{envelope::MethodName, extensions::Extensions};

use crate::{
    caller::Caller,
    params::Params,
    replay::{OpenQuestions, Replay},
};
use bowline_types::{
    CallToolResult, ClientCapabilities, CompleteResult, GetPromptResult, Implementation, LoggingLevel,
    ProgressToken, RawJson, ReadResourceResult, Revision, RpcError,
};
use bytes::Bytes;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A request or custom notification that passed every check of the protocol.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Call {
    /// The method it names.
    pub method: MethodName,
    /// Its parameters.
    pub params: Params,
    /// The client that sent it.
    pub client: Arc<ClientView>,
    /// The token under which the caller wants progress, if it does.
    pub progress_token: Option<ProgressToken>,
    /// The lowest level of log messages the caller wants; `None` for none.
    pub log_level: Option<LoggingLevel>,
    /// The answers of earlier rounds of the same call.
    pub replay: Replay,
    /// Values from the transport and from middleware. Handlers read them with `Ctx::extension`.
    pub extensions: Extensions,
    /// Whether this is a notification. Its outcome is dropped.
    pub is_notification: bool,
}

impl Call {
    /// Creates a request.
    pub fn new(method: impl Into<MethodName>, params: Params, client: Arc<ClientView>) -> Self {
        Self {
            method: method.into(),
            params,
            client,
            progress_token: None,
            log_level: None,
            replay: Replay::default(),
            extensions: Extensions::new(),
            is_notification: false,
        }
    }

    /// Returns the authenticated caller, if the transport verified an access token.
    pub fn caller(&self) -> Option<&Arc<Caller>> {
        self.extensions.caller()
    }

    /// Returns a short label for logs and spans: the method, and the tool, prompt or URI.
    pub fn label(&self) -> String {
        let subject = self.params.name().or_else(|_| self.params.uri());
        subject.map_or_else(
            |_| self.method.as_str().to_owned(),
            |name| format!("{} {name}", self.method.as_str()),
        )
    }
}

/// What a server knows about the client of a call.
#[derive(Debug)]
pub struct ClientView {
    /// The revision of the call.
    pub revision: Revision,
    /// The authenticated user, if the transport knows one.
    pub principal: Option<Arc<str>>,
    pub(crate) raw_capabilities: RawJson,
    pub(crate) raw_info: Option<RawJson>,
    // Apart, because few handlers ask.
    capabilities: OnceLock<Box<ClientCapabilities>>,
    info: OnceLock<Option<Box<Implementation>>>,
}

impl ClientView {
    /// Creates a client that declared `capabilities`, and perhaps its name and version.
    pub fn new(
        revision: Revision,
        principal: Option<Arc<str>>,
        capabilities: RawJson,
        info: Option<RawJson>,
    ) -> Self {
        let (raw_capabilities, raw_info) = (capabilities, info);
        let (capabilities, info) = (OnceLock::new(), OnceLock::new());
        Self { revision, principal, raw_capabilities, raw_info, capabilities, info }
    }

    /// Returns the capabilities of the client. They are decoded on first use; invalid ones count as not declared.
    pub fn capabilities(&self) -> &ClientCapabilities {
        self.capabilities.get_or_init(|| Box::new(self.raw_capabilities.decode().unwrap_or_default()))
    }

    /// Returns the capabilities as the client wrote them.
    pub fn raw_capabilities(&self) -> &RawJson {
        &self.raw_capabilities
    }

    /// Returns name and version as the client wrote them.
    pub fn raw_info(&self) -> Option<&RawJson> {
        self.raw_info.as_ref()
    }

    /// Returns name and version of the client, if it declared them.
    pub fn info(&self) -> Option<&Implementation> {
        self.info.get_or_init(|| self.raw_info.as_ref()?.decode().ok().map(Box::new)).as_deref()
    }
}

/// The outcome of a call.
///
/// A cancelled call has no outcome: its future is dropped.
#[derive(Debug)]
pub enum Outcome {
    /// The call completed.
    Complete(Reply),
    /// The client has to answer questions; the call is then repeated with the answers.
    NeedsInput(Box<OpenQuestions>),
    /// The call failed.
    Failed(RpcError),
}

/// How a call ended, for logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutcomeKind {
    /// The call completed.
    Complete,
    /// With the result of a tool that failed (`isError`).
    ToolError,
    /// With a task, whose result is fetched later.
    Accepted,
    /// With questions; the call is made again with the answers.
    NeedsInput,
    /// With a JSON-RPC error.
    Failed,
    /// The caller gave up, or the connection ended.
    Cancelled,
}

impl OutcomeKind {
    /// Returns the name in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::ToolError => "tool error",
            Self::Accepted => "accepted",
            Self::NeedsInput => "needs input",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Outcome {
    /// Returns how the call ended. Never [`OutcomeKind::Cancelled`], because a cancelled call has no outcome.
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Self::Complete(Reply::Tool(result)) if result.is_error == Some(true) => OutcomeKind::ToolError,
            Self::Complete(Reply::Accepted(_)) => OutcomeKind::Accepted,
            Self::Complete(_) => OutcomeKind::Complete,
            Self::NeedsInput(_) => OutcomeKind::NeedsInput,
            Self::Failed(_) => OutcomeKind::Failed,
        }
    }
}

impl From<Result<Reply, RpcError>> for Outcome {
    fn from(result: Result<Reply, RpcError>) -> Self {
        match result {
            Ok(reply) => Self::Complete(reply),
            Err(error) => Self::Failed(error),
        }
    }
}

/// The result of a call, independent of the revision.
#[derive(Debug)]
pub enum Reply {
    /// Result of `tools/call`.
    Tool(Box<CallToolResult>),
    /// Result of `resources/read`.
    Resource(Box<ReadResourceResult>),
    /// Result of `prompts/get`.
    Prompt(Box<GetPromptResult>),
    /// Result of `completion/complete`.
    Completion(Box<CompleteResult>),
    /// The call became a task: the result object that says so, in the format of the caller's revision.
    Accepted(RawJson),
    /// A result object of another service, passed on unchanged.
    Raw(RawJson),
    /// A complete result object encoded for the caller's revision, on one line.
    Encoded(Bytes),
}

/// A notification of a running call for its caller.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallNotification {
    /// Progress.
    Progress {
        /// Progress so far; has to increase.
        progress: f64,
        /// Total, if known.
        total: Option<f64>,
        /// Description of the current step.
        message: Option<String>,
    },
    /// A log message.
    Log {
        /// Severity.
        level: LoggingLevel,
        /// Component of the server.
        logger: Option<String>,
        /// The message: any JSON value.
        data: RawJson,
    },
    /// Closes the stream; the caller reconnects for the rest, if its revision supports that.
    CloseStream,
    /// A URL elicitation completed.
    ElicitationComplete {
        /// Its id.
        elicitation_id: String,
    },
    /// A notification that is not part of the protocol.
    Custom {
        /// Method of the request.
        method: Box<str>,
        /// Its parameters: an object, or nothing.
        params: Option<RawJson>,
    },
}

/// Receives the notifications of one call: the writer of a connection, or the stream of one POST.
pub trait NotificationSink: Send + Sync {
    /// Sends a notification, if the caller and its revision support it.
    fn emit(&self, notice: CallNotification);

    /// Returns whether the caller cancelled the call.
    fn is_cancelled(&self) -> bool;

    /// Completes when the caller cancels the call.
    fn cancelled(&self) -> BoxFuture<'_, ()>;

    /// Sends a custom request to the client and waits for its result. By default it fails, as in 2026-07-28, where a
    /// server sends no requests.
    fn request(&self, method: &str, params: Option<RawJson>) -> BoxFuture<'_, Result<RawJson, RpcError>> {
        let _ = params;
        let reason = format!("cannot send `{method}`: this client does not accept requests");
        Box::pin(std::future::ready(Err(RpcError::internal(reason))))
    }
}

/// Sends the notifications of a call.
#[derive(Clone)]
pub struct Notifier(Option<Arc<dyn NotificationSink>>);

impl Notifier {
    /// Creates a notifier that sends to `sink`.
    pub fn new(sink: Arc<dyn NotificationSink>) -> Self {
        Self(Some(sink))
    }

    /// Creates a notifier that discards everything, for calls without an observer.
    pub const fn closed() -> Self {
        Self(None)
    }

    /// Sends a notification.
    pub fn emit(&self, notice: CallNotification) {
        if let Some(sink) = &self.0 {
            sink.emit(notice);
        }
    }

    /// Returns whether the caller cancelled the call.
    pub fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(|sink| sink.is_cancelled())
    }

    /// Completes when the caller cancels the call; never, if nobody can.
    pub async fn cancelled(&self) {
        match &self.0 {
            Some(sink) => sink.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Sends a custom request to the client and waits for its result. See [`NotificationSink::request`].
    pub async fn request(&self, method: &str, params: Option<RawJson>) -> Result<RawJson, RpcError> {
        match &self.0 {
            Some(sink) => sink.request(method, params).await,
            None => Err(RpcError::internal(format!("cannot send `{method}`: no client is connected"))),
        }
    }
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Notifier").field(&self.0.is_some()).finish()
    }
}

/// Answers calls: a server, a client of a server, or a gateway.
pub trait Service: Send + Sync + 'static {
    /// Answers one call. Dropping the future cancels it.
    fn call(&self, call: Call, notifier: Notifier) -> BoxFuture<'_, Outcome>;
}

impl<S: Service + ?Sized> Service for Arc<S> {
    fn call(&self, call: Call, notifier: Notifier) -> BoxFuture<'_, Outcome> {
        (**self).call(call, notifier)
    }
}

/// Wraps calls: can observe, change or reject a call and its outcome.
///
/// A middleware runs once per round: if a handler asks the user something, it runs again with the answer.
pub trait Middleware: Send + Sync + 'static {
    /// Handles `call`, usually by passing it to `next`.
    fn call<'a>(&'a self, call: Call, notifier: Notifier, next: Next<'a>) -> BoxFuture<'a, Outcome>;
}

/// The rest of a middleware chain.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    chain: &'a Chain,
    position: usize,
}

/// A service with the middleware around it, outermost first.
#[derive(Clone)]
pub struct Chain {
    middleware: Arc<[Arc<dyn Middleware>]>,
    service: Arc<dyn Service>,
}

impl Chain {
    /// Puts `middleware` around `service`.
    pub fn new(middleware: impl Into<Arc<[Arc<dyn Middleware>]>>, service: Arc<dyn Service>) -> Self {
        Self { middleware: middleware.into(), service }
    }

    /// Starts at the outermost middleware.
    pub fn start(&self) -> Next<'_> {
        Next { chain: self, position: 0 }
    }
}

impl Service for Chain {
    fn call(&self, call: Call, notifier: Notifier) -> BoxFuture<'_, Outcome> {
        self.start().run(call, notifier)
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("middleware", &self.middleware.len()).finish_non_exhaustive()
    }
}

impl<'a> Next<'a> {
    /// Runs the rest of the chain.
    pub fn run(self, call: Call, notifier: Notifier) -> BoxFuture<'a, Outcome> {
        match self.chain.middleware.get(self.position) {
            Some(next) => next.call(call, notifier, Next { position: self.position + 1, ..self }),
            // Nothing runs before the future is polled, so that a handler sees the task-locals of the middleware.
            None => Box::pin(async move { self.chain.service.call(call, notifier).await }),
        }
    }

    /// Keeps the rest of the chain beyond the borrow, together with the notifier of the call.
    pub fn to_owned(self, notifier: Notifier) -> NextCall {
        NextCall { chain: self.chain.clone(), position: self.position, notifier }
    }
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("chain", self.chain).field("position", &self.position).finish()
    }
}

/// The rest of the chain behind a middleware that is a function.
#[derive(Debug)]
pub struct NextCall {
    chain: Chain,
    position: usize,
    notifier: Notifier,
}

impl NextCall {
    /// Runs the rest of the chain.
    pub async fn run(self, call: Call) -> Outcome {
        let next = Next { chain: &self.chain, position: self.position };
        next.run(call, self.notifier.clone()).await
    }

    /// Returns the notifier of the call.
    pub fn notifier(&self) -> &Notifier {
        &self.notifier
    }
}
