//! What a client can be asked and told, and who answers.

use crate::Relay;
use bowline_proto::service::BoxFuture;
use bowline_types::{
    Answer, CreateMessageParams, CreateMessageResult, ElicitSchema, ElicitationCompleteParams,
    Implementation, LogMessageParams, ProgressParams, RawJson, ResourceUpdatedParams, RpcError,
};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// A form the server asks the user to fill in.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ask {
    /// What to tell the user.
    pub message: String,
    /// The fields of the form.
    pub schema: ElicitSchema,
    /// Which server asks, by its own account; to be shown to the user.
    pub server: Option<Implementation>,
}

/// A page the server asks the user to visit.
///
/// The client neither opens nor fetches it. Its host is in [`domain`](Self::domain), to be shown to the user together
/// with the whole URL before anything is opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AskUrl {
    /// Why to visit it.
    pub message: String,
    /// The page: always `http` or `https`, with a host.
    pub url: String,
    /// Names the question in `notifications/elicitation/complete`; 2025-11-25 only. To be taken as it is.
    pub elicitation_id: Option<String>,
    /// Which server asks, by its own account.
    pub server: Option<Implementation>,
}

impl AskUrl {
    /// The host the user would be sent to, without user name and port.
    pub fn domain(&self) -> &str {
        crate::web::host(&self.url).unwrap_or_default()
    }

    /// Whether the URL is made to be misread: an encoded or non-ASCII host, or a user name before it.
    pub fn is_suspicious(&self) -> bool {
        crate::web::is_suspicious(&self.url)
    }
}

/// Something the server tells without being asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Notification {
    /// The list of tools has changed.
    ToolsChanged,
    /// The list of prompts has changed.
    PromptsChanged,
    /// The list of resources or templates has changed.
    ResourcesChanged,
    /// A resource has changed.
    ResourceUpdated(ResourceUpdatedParams),
    /// The user has finished with a page this client consented to visit.
    ElicitationComplete(ElicitationCompleteParams),
    /// Anything else.
    Other {
        /// What it is.
        method: Box<str>,
        /// Details.
        params: Option<RawJson>,
    },
}

pub(crate) type OnAsk = Arc<dyn Fn(Ask) -> BoxFuture<'static, Result<Answer, RpcError>> + Send + Sync>;
pub(crate) type OnUrl = Arc<dyn Fn(AskUrl) -> BoxFuture<'static, Result<Answer<()>, RpcError>> + Send + Sync>;
pub(crate) type OnSample = Arc<
    dyn Fn(CreateMessageParams) -> BoxFuture<'static, Result<CreateMessageResult, RpcError>> + Send + Sync,
>;
pub(crate) type OnProgress = Arc<dyn Fn(ProgressParams) + Send + Sync>;
pub(crate) type OnLog = Arc<dyn Fn(LogMessageParams) + Send + Sync>;
pub(crate) type OnNotification = Arc<dyn Fn(Notification) + Send + Sync>;

/// Answers a custom request of the server.
pub(crate) type OnRequest =
    Arc<dyn Fn(RawJson) -> BoxFuture<'static, Result<RawJson, RpcError>> + Send + Sync>;
/// Takes a custom notification of the server.
pub(crate) type OnCustom = Arc<dyn Fn(RawJson) + Send + Sync>;

/// Which way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From this client to the server.
    Sent,
    /// From the server to this client.
    Received,
}

pub(crate) type OnFrame = Arc<dyn Fn(Direction, &[u8]) + Send + Sync>;

/// Everything the user of the client has set.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    pub(crate) ask: Option<OnAsk>,
    pub(crate) url: Option<OnUrl>,
    pub(crate) sample: Option<OnSample>,
    pub(crate) progress: Option<OnProgress>,
    pub(crate) log: Option<OnLog>,
    pub(crate) notification: Option<OnNotification>,
    /// Custom methods by name.
    pub(crate) methods: BTreeMap<Box<str>, OnRequest>,
    /// Custom notifications by name.
    pub(crate) notifications: BTreeMap<Box<str>, OnCustom>,
    pub(crate) frame: Option<OnFrame>,
    /// Instead of all others but progress and frames.
    pub(crate) relay: Option<Arc<dyn Relay>>,
}

impl Handlers {
    /// Shows a message to whoever looks on.
    pub(crate) fn show(&self, direction: Direction, frame: &[u8]) {
        if let Some(handler) = &self.frame {
            guarded(|| handler(direction, frame));
        }
    }

    /// Whether someone hears of changes that the client did not ask about.
    pub(crate) fn hear_news(&self) -> bool {
        self.notification.is_some() || self.relay.is_some()
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers")
            .field("ask", &self.ask.is_some())
            .field("url", &self.url.is_some())
            .field("sample", &self.sample.is_some())
            .field("progress", &self.progress.is_some())
            .field("log", &self.log.is_some())
            .field("notification", &self.notification.is_some())
            .field("methods", &self.methods.keys())
            .field("notifications", &self.notifications.keys())
            .field("frame", &self.frame.is_some())
            .field("relay", &self.relay.is_some())
            .finish()
    }
}

/// What a handler of questions may return: a `T`, or a `Result` of one with any error that converts into
/// `Box<dyn Error + Send + Sync>`.
///
/// The server gets an [`RpcError`] as it is, and any other error as -32603 with its text and that of its sources.
pub trait IntoAnswer<T> {
    /// Returns the answer, or what the server is sent instead.
    fn into_answer(self) -> Result<T, RpcError>;
}

impl<T> IntoAnswer<T> for T {
    fn into_answer(self) -> Result<T, RpcError> {
        Ok(self)
    }
}

impl<T, E: Into<Box<dyn std::error::Error + Send + Sync>>> IntoAnswer<T> for Result<T, E> {
    fn into_answer(self) -> Result<T, RpcError> {
        self.map_err(|error| rpc_error(error.into()))
    }
}

/// What the server is sent when a handler fails.
pub(crate) fn rpc_error(error: Box<dyn std::error::Error + Send + Sync>) -> RpcError {
    let error = match error.downcast::<RpcError>() {
        Ok(error) => return *error,
        Err(error) => error,
    };
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        // Some errors print their source themselves.
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        source = cause.source();
    }
    RpcError::internal(message)
}

/// Runs a handler that is called from the task that reads: what panics there must not end the connection.
pub(crate) fn guarded(handler: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(handler)).is_err() {
        tracing::error!("a handler panicked");
    }
}
