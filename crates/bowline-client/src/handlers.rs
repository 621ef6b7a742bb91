//! The handlers of a client, and their arguments.

use crate::{Relay, TaskState};
use bowline_proto::service::BoxFuture;
use bowline_types::{
    Answer, CreateMessageParams, CreateMessageResult, ElicitSchema, ElicitationCompleteParams, Id,
    Implementation, LogMessageParams, ProgressParams, RawJson, ResourceUpdatedParams, RpcError,
};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// A form that the server asks the user to fill in.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ask {
    /// The message for the user.
    pub message: String,
    /// The fields of the form.
    pub schema: ElicitSchema,
    /// The server, as it describes itself; show it to the user.
    pub server: Option<Implementation>,
}

/// A URL that the server asks the user to open.
///
/// The client neither opens nor fetches it. Show [`domain`](Self::domain) and the whole URL to the user before opening
/// it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AskUrl {
    /// The message for the user.
    pub message: String,
    /// The URL: always `http` or `https`, with a host.
    pub url: String,
    /// Identifies the elicitation in `notifications/elicitation/complete`. Only in 2025-11-25.
    pub elicitation_id: Option<String>,
    /// The server, as it describes itself.
    pub server: Option<Implementation>,
}

impl AskUrl {
    /// Returns the host of the URL, without user name and port.
    pub fn domain(&self) -> &str {
        crate::web::host(&self.url).unwrap_or_default()
    }

    /// Returns whether the URL is easy to misread: an encoded or non-ASCII host, or a user name.
    pub fn is_suspicious(&self) -> bool {
        crate::web::is_suspicious(&self.url)
    }
}

/// A notification of the server.
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
    /// The user has completed an elicitation with a URL.
    ElicitationComplete(ElicitationCompleteParams),
    /// Any other notification.
    Other {
        /// The method.
        method: Box<str>,
        /// The parameters.
        params: Option<RawJson>,
    },
}

pub(crate) type OnAsk = Arc<dyn Fn(Ask) -> BoxFuture<'static, Result<Answer, RpcError>> + Send + Sync>;
pub(crate) type OnUrl = Arc<dyn Fn(AskUrl) -> BoxFuture<'static, Result<Answer<()>, RpcError>> + Send + Sync>;
pub(crate) type OnSample = Arc<
    dyn Fn(CreateMessageParams) -> BoxFuture<'static, Result<CreateMessageResult, RpcError>> + Send + Sync,
>;
pub(crate) type OnProgress = Arc<dyn Fn(ProgressParams) + Send + Sync>;
pub(crate) type OnTask = Arc<dyn Fn(&TaskState) + Send + Sync>;
pub(crate) type OnLog = Arc<dyn Fn(LogMessageParams) + Send + Sync>;
pub(crate) type OnNotification = Arc<dyn Fn(Notification) + Send + Sync>;

/// Handles a custom request of the server.
pub(crate) type OnRequest =
    Arc<dyn Fn(RawJson) -> BoxFuture<'static, Result<RawJson, RpcError>> + Send + Sync>;
/// Handles a custom notification of the server.
pub(crate) type OnCustom = Arc<dyn Fn(RawJson) + Send + Sync>;

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From this client to the server.
    Sent,
    /// From the server to this client.
    Received,
}

pub(crate) type OnFrame = Arc<dyn Fn(Direction, &[u8]) + Send + Sync>;

/// The head of an HTTP response, as it arrived. Its headers may contain secrets.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ResponseHead<'a> {
    /// The request of the client that it responds to, if there is one.
    pub request: Option<&'a Id>,
    /// The status code.
    pub status: u16,
    /// Names and values in order. A value that is not text is empty.
    pub headers: &'a [(&'a str, &'a str)],
}

impl<'a> ResponseHead<'a> {
    /// Creates a head.
    pub fn new(request: Option<&'a Id>, status: u16, headers: &'a [(&'a str, &'a str)]) -> Self {
        Self { request, status, headers }
    }
}

pub(crate) type OnResponse = Arc<dyn Fn(&ResponseHead<'_>) + Send + Sync>;

/// All handlers of a client.
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
    pub(crate) response: Option<OnResponse>,
    /// Replaces all handlers except those for progress, frames and heads of responses.
    pub(crate) relay: Option<Arc<dyn Relay>>,
}

impl Handlers {
    /// Calls the handler for messages.
    pub(crate) fn show(&self, direction: Direction, frame: &[u8]) {
        if let Some(handler) = &self.frame {
            guarded(|| handler(direction, frame));
        }
    }

    /// Calls the handler for heads of responses.
    pub(crate) fn show_response(&self, head: &ResponseHead<'_>) {
        if let Some(handler) = &self.response {
            guarded(|| handler(head));
        }
    }

    /// Returns whether there is a handler for changes that no request subscribed to.
    pub(crate) fn handles_changes(&self) -> bool {
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
            .field("response", &self.response.is_some())
            .field("relay", &self.relay.is_some())
            .finish()
    }
}

/// The return type of a handler: a `T`, or a `Result` of it with any error that converts into `Box<dyn Error + Send +
/// Sync>`.
///
/// An [`RpcError`] is sent to the server unchanged, any other error as -32603 with its text and that of its sources.
pub trait IntoAnswer<T> {
    /// Returns the answer, or the error for the server.
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

/// Returns the error for the server if a handler fails.
pub(crate) fn rpc_error(error: Box<dyn std::error::Error + Send + Sync>) -> RpcError {
    let error = match error.downcast::<RpcError>() {
        Ok(error) => return *error,
        Err(error) => error,
    };
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        // Some errors include the text of their source.
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        source = cause.source();
    }
    RpcError::internal(message)
}

/// Runs a handler in the reading task. A panic must not end the connection.
pub(crate) fn guarded(handler: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(handler)).is_err() {
        tracing::error!("a handler panicked");
    }
}
