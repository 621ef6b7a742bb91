//! What everything above the protocol shares: a call, its outcome, and the services and middleware between them.
//!
//! A [`Service`] never learns which revision its caller speaks unless it asks: the session that produced the [`Call`]
//! adapts the [`Outcome`] on its way out.

#[cfg(feature = "http")]
pub use crate::extensions::HttpRequest;
pub use crate::{envelope::MethodName, extensions::Extensions};

use crate::{
    params::Params,
    replay::{Asked, Replay},
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

/// A boxed future, the currency between services.
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

    /// A short label for logs and spans: the method, and the tool, prompt or URI it names.
    pub fn label(&self) -> String {
        let subject = self.params.name().or_else(|_| self.params.uri());
        subject.map_or_else(
            |_| self.method.as_str().to_owned(),
            |name| format!("{} {name}", self.method.as_str()),
        )
    }
}

/// What a server knows of the client behind a call.
#[derive(Debug)]
pub struct ClientView {
    /// The revision both sides speak.
    pub revision: Revision,
    /// The authenticated user, where the transport knows one.
    pub principal: Option<Arc<str>>,
    raw_capabilities: RawJson,
    raw_info: Option<RawJson>,
    // Apart, because few handlers ask.
    capabilities: OnceLock<Box<ClientCapabilities>>,
    info: OnceLock<Option<Box<Implementation>>>,
}

impl ClientView {
    /// A client that declared `capabilities`, as raw JSON, and perhaps who it is.
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

    /// What the client declared it can do. Decoded on first use; what cannot be read counts as not declared.
    pub fn capabilities(&self) -> &ClientCapabilities {
        self.capabilities.get_or_init(|| Box::new(self.raw_capabilities.decode().unwrap_or_default()))
    }

    /// Who the client says it is.
    pub fn info(&self) -> Option<&Implementation> {
        self.info.get_or_init(|| self.raw_info.as_ref()?.decode().ok().map(Box::new)).as_deref()
    }
}

/// How a call ended.
///
/// A cancelled call has no outcome: its future is dropped.
#[derive(Debug)]
pub enum Outcome {
    /// With a result.
    Complete(Reply),
    /// With questions the client has to answer first; the call is made again with the answers.
    NeedsInput(Box<Asked>),
    /// With an error.
    Failed(RpcError),
}

/// How a call ended, for logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutcomeKind {
    /// With a result.
    Complete,
    /// With the result of a tool that failed (`isError`).
    ToolError,
    /// With questions; the call is made again with the answers.
    NeedsInput,
    /// With a JSON-RPC error.
    Failed,
    /// The caller gave up, or the connection ended.
    Cancelled,
}

impl OutcomeKind {
    /// A word for it, in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::ToolError => "tool error",
            Self::NeedsInput => "needs input",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Outcome {
    /// How the call ended. Never [`OutcomeKind::Cancelled`], for a cancelled call has no outcome.
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Self::Complete(Reply::Tool(result)) if result.is_error == Some(true) => OutcomeKind::ToolError,
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

/// The result of a call, in the superset model.
#[derive(Debug)]
pub enum Reply {
    /// Of `tools/call`.
    Tool(Box<CallToolResult>),
    /// Of `resources/read`.
    Resource(Box<ReadResourceResult>),
    /// Of `prompts/get`.
    Prompt(Box<GetPromptResult>),
    /// Of `completion/complete`.
    Completion(Box<CompleteResult>),
    /// A result object of another service, passed on with all its members.
    Raw(RawJson),
    /// A result object encoded for the caller's revision, complete as it is, on one line.
    Encoded(Bytes),
}

/// Something a call tells its caller while it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// How far the work has come.
    Progress {
        /// Grows with every notice.
        progress: f64,
        /// Where it will end, if known.
        total: Option<f64>,
        /// What is being done.
        message: Option<String>,
    },
    /// A line of log.
    Log {
        /// How grave.
        level: LoggingLevel,
        /// Which part of the server.
        logger: Option<String>,
        /// Any JSON.
        data: RawJson,
    },
    /// The stream is closed for now; the caller comes back for the rest, where its revision lets it.
    HangUp,
    /// An out-of-band interaction, started by a URL, has ended.
    ElicitationComplete {
        /// Which one.
        elicitation_id: String,
    },
    /// A notification that is not part of the protocol.
    Custom {
        /// Its method.
        method: Box<str>,
        /// Its parameters: an object, or nothing.
        params: Option<RawJson>,
    },
}

/// Receives the notices of one call: stdio's writer, or the stream of one POST.
pub trait Emit: Send + Sync {
    /// Passes a notice on, in the form and under the conditions of the caller's revision.
    fn emit(&self, notice: Notice);

    /// Whether the caller has given the call up.
    fn is_cancelled(&self) -> bool;

    /// Completes when the caller gives the call up.
    fn cancelled(&self) -> BoxFuture<'_, ()>;

    /// Sends a custom request to the client and waits for its result. By default it fails, as in 2026-07-28, where a
    /// server sends no requests.
    fn request(&self, method: &str, params: Option<RawJson>) -> BoxFuture<'_, Result<RawJson, RpcError>> {
        let _ = params;
        let reason = format!("cannot send `{method}`: this client takes no requests");
        Box::pin(std::future::ready(Err(RpcError::internal(reason))))
    }
}

/// Where a call's notices go.
#[derive(Clone)]
pub struct Notifier(Option<Arc<dyn Emit>>);

impl Notifier {
    /// A notifier into `sink`.
    pub fn new(sink: Arc<dyn Emit>) -> Self {
        Self(Some(sink))
    }

    /// A notifier that drops what it is given, for calls nobody watches.
    pub const fn closed() -> Self {
        Self(None)
    }

    /// Passes a notice on.
    pub fn emit(&self, notice: Notice) {
        if let Some(sink) = &self.0 {
            sink.emit(notice);
        }
    }

    /// Whether the caller has given the call up.
    pub fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(|sink| sink.is_cancelled())
    }

    /// Completes when the caller gives the call up; never, when nobody can.
    pub async fn cancelled(&self) {
        match &self.0 {
            Some(sink) => sink.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Sends a custom request to the client and waits for its result. See [`Emit::request`].
    pub async fn request(&self, method: &str, params: Option<RawJson>) -> Result<RawJson, RpcError> {
        match &self.0 {
            Some(sink) => sink.request(method, params).await,
            None => Err(RpcError::internal(format!("cannot send `{method}`: nobody is connected"))),
        }
    }
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Notifier").field(&self.0.is_some()).finish()
    }
}

/// Answers calls: a server, a client bound to one, a gateway over many.
pub trait Service: Send + Sync + 'static {
    /// Answers one call. Dropping the future cancels it.
    fn call(&self, call: Call, notifier: Notifier) -> BoxFuture<'_, Outcome>;
}

impl<S: Service + ?Sized> Service for Arc<S> {
    fn call(&self, call: Call, notifier: Notifier) -> BoxFuture<'_, Outcome> {
        (**self).call(call, notifier)
    }
}

/// Stands around every call: sees it, changes it, refuses it, or watches how it ends.
///
/// A middleware runs once per round: when a handler asks the user something, the call passes again with the answer.
pub trait Middleware: Send + Sync + 'static {
    /// Handles `call`, usually by handing it to `next`.
    fn call<'a>(&'a self, call: Call, notifier: Notifier, next: Next<'a>) -> BoxFuture<'a, Outcome>;
}

/// The rest of the chain behind a middleware.
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

    /// Where the notices of the call go.
    pub fn notifier(&self) -> &Notifier {
        &self.notifier
    }
}
