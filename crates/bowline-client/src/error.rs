//! The errors of a client.

use crate::{ProcessError, process::LastLines};
use bowline_proto::client::{OpenError, ResultError};
use bowline_types::RpcError;
use std::{fmt, io, sync::Arc, time::Duration};

/// The result of client operations.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// An error of a client. It is cheap to clone, because one lost connection fails many requests.
///
/// [`as_rpc`](Self::as_rpc) distinguishes errors of the server from those of the client.
#[derive(Clone)]
pub struct Error(Arc<Kind>);

#[derive(Debug)]
pub(crate) enum Kind {
    /// The server returned an error.
    Rpc(RpcError),
    /// A tool returned a result with `isError`.
    Tool(String),
    /// No response or progress in time.
    Timeout { what: String, after: Duration },
    /// Cancelled before the response.
    Cancelled,
    /// The connection is closed, or was never open.
    Closed(String),
    /// The server cannot be reached; nothing was sent.
    Unreachable(String),
    /// The server has ended the session of the request.
    Expired(String),
    /// The server returned an HTTP error status without a JSON-RPC error.
    Http { status: u16, detail: String },
    /// The server's program has exited, or cannot be started.
    Process(ProcessError),
    /// Reading or writing failed.
    Io(io::Error),
    /// The handshake failed.
    Open(OpenError),
    /// The server violated the protocol.
    Malformed { what: String, reason: String },
    /// The server does not support the request.
    Unsupported(String),
    /// The server requested input that this client cannot provide.
    Unanswerable(String),
    /// The server exceeded a limit.
    TooLarge { what: String, limit: String },
    /// The caller used the API incorrectly.
    Misuse(String),
    /// The client has no token that the server accepts.
    Authorization { login_needed: bool, source: Box<dyn std::error::Error + Send + Sync> },
    /// The server's program did not open the connection; with the end of its standard error.
    NotOpened { error: Error, stderr: String },
    /// The server does not know the task, or no longer; with its error.
    TaskGone(String, Error),
    /// The task was cancelled.
    TaskCancelled(String),
    /// An error that concerns a task, which may still be running.
    OfTask { task_id: String, error: Error },
}

impl Error {
    /// Creates an error for a closed connection. Transports use it to report its end.
    pub fn closed(reason: impl Into<String>) -> Self {
        Kind::Closed(reason.into()).into()
    }

    /// Creates an error for a server that cannot be reached; nothing was sent.
    pub fn unreachable(reason: impl Into<String>) -> Self {
        Kind::Unreachable(reason.into()).into()
    }

    /// Creates an error for a session that the server has ended. Transports use it if a new session should be opened
    /// immediately; requests without side effects are then sent again.
    pub fn expired(reason: impl Into<String>) -> Self {
        Kind::Expired(reason.into()).into()
    }

    /// Creates an error for an HTTP error status. `detail` is the text of the response.
    pub fn http(status: u16, detail: impl Into<String>) -> Self {
        Kind::Http { status, detail: detail.into() }.into()
    }

    /// Creates an error for incorrect use of the API.
    pub fn misuse(reason: impl Into<String>) -> Self {
        Kind::Misuse(reason.into()).into()
    }

    /// Creates an error for a client that could not obtain a token that the server accepts.
    ///
    /// `login_needed` means that the call can succeed after a user has logged in.
    pub fn authorization(
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
        login_needed: bool,
    ) -> Self {
        Kind::Authorization { login_needed, source: source.into() }.into()
    }

    /// Creates an error for a server that violated the protocol: `what` is invalid because of `reason`.
    pub fn malformed(what: impl Into<String>, reason: impl fmt::Display) -> Self {
        Kind::Malformed { what: what.into(), reason: reason.to_string() }.into()
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Kind::Unsupported(what.into()).into()
    }

    pub(crate) fn timeout(what: impl Into<String>, after: Duration) -> Self {
        Kind::Timeout { what: what.into(), after }.into()
    }

    /// Creates an error for `what`, which exceeds `limit`.
    pub(crate) fn too_large(what: impl Into<String>, limit: impl Into<String>) -> Self {
        Kind::TooLarge { what: what.into(), limit: limit.into() }.into()
    }

    /// Adds the standard error of the server's program, unless the error already contains it.
    pub(crate) fn with_stderr(self, stderr: String) -> Self {
        if stderr.trim().is_empty() || matches!(self.kind(), Kind::Process(_)) {
            return self;
        }
        Kind::NotOpened { error: self, stderr }.into()
    }

    fn kind(&self) -> &Kind {
        match &*self.0 {
            Kind::NotOpened { error, .. } | Kind::OfTask { error, .. } => error.kind(),
            kind => kind,
        }
    }

    /// Adds the id of the task that the error is about, unless it is known.
    pub(crate) fn of_task(self, task_id: impl Into<String>) -> Self {
        if self.task_id().is_some() {
            return self;
        }
        Kind::OfTask { task_id: task_id.into(), error: self }.into()
    }

    /// Returns the id of the task that the error is about. The task may still be running: see
    /// [`Client::task`](crate::Client::task).
    pub fn task_id(&self) -> Option<&str> {
        match &*self.0 {
            Kind::OfTask { task_id, .. } | Kind::TaskGone(task_id, _) | Kind::TaskCancelled(task_id) => {
                Some(task_id)
            }
            Kind::NotOpened { error, .. } => error.task_id(),
            _ => None,
        }
    }

    /// Returns whether the server does not know the task: it never existed, belongs to somebody else, or has expired.
    pub fn is_task_gone(&self) -> bool {
        matches!(self.kind(), Kind::TaskGone(..))
    }

    /// Returns whether the error is the end of a task, instead of a failed request about it.
    pub(crate) fn ends_task(&self) -> bool {
        matches!(&*self.0, Kind::Rpc(_) | Kind::TaskGone(..) | Kind::TaskCancelled(_))
    }

    /// Returns whether the task was cancelled.
    pub fn is_task_cancelled(&self) -> bool {
        matches!(self.kind(), Kind::TaskCancelled(_))
    }

    /// Returns the error that the server sent, or `None` if it is an error of the client.
    pub fn as_rpc(&self) -> Option<&RpcError> {
        match self.kind() {
            Kind::Rpc(error) => Some(error),
            _ => None,
        }
    }

    /// Returns whether the server sent an error.
    pub fn is_rpc(&self) -> bool {
        self.as_rpc().is_some()
    }

    /// Returns whether a tool ran and failed.
    pub fn is_tool(&self) -> bool {
        matches!(self.kind(), Kind::Tool(_))
    }

    /// Returns whether a request or the handshake timed out.
    pub fn is_timeout(&self) -> bool {
        matches!(self.kind(), Kind::Timeout { .. } | Kind::Open(OpenError::Silent))
    }

    /// Returns whether the request was cancelled by this client.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.kind(), Kind::Cancelled)
    }

    /// Returns whether the connection is closed: nothing can be sent, or responses are lost.
    pub fn is_closed(&self) -> bool {
        matches!(
            self.kind(),
            Kind::Closed(_) | Kind::Unreachable(_) | Kind::Expired(_) | Kind::Io(_) | Kind::Process(_)
        )
    }

    /// Returns whether the server cannot be reached, so that nothing was sent.
    pub fn is_unreachable(&self) -> bool {
        matches!(self.kind(), Kind::Unreachable(_))
    }

    /// Returns whether the server ended the session of the request. It is unknown whether the request was processed.
    /// The client opens another session by itself.
    pub fn is_expired(&self) -> bool {
        matches!(self.kind(), Kind::Expired(_))
    }

    /// Returns the HTTP status of the response, if that is the error.
    pub fn http_status(&self) -> Option<u16> {
        match self.kind() {
            Kind::Http { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Returns whether the call failed because the client could not obtain a token that the server accepts.
    pub fn is_authorization(&self) -> bool {
        matches!(self.kind(), Kind::Authorization { .. })
    }

    /// Returns whether a user has to log in before the call can succeed.
    pub fn is_login_needed(&self) -> bool {
        matches!(self.kind(), Kind::Authorization { login_needed: true, .. })
    }

    /// Returns whether a retry may succeed, because the server is unavailable or overloaded.
    pub(crate) fn is_passing(&self) -> bool {
        self.is_closed()
            || self.is_timeout()
            || self.http_status().is_some_and(|status| status == 429 || status >= 500)
    }

    /// Returns whether the server does not support the request.
    pub fn is_unsupported(&self) -> bool {
        matches!(self.kind(), Kind::Unsupported(_))
    }

    /// Returns whether the server violated the protocol or its own schemas.
    pub fn is_malformed(&self) -> bool {
        matches!(self.kind(), Kind::Malformed { .. })
    }

    /// Returns whether the server exceeded a limit. The data was discarded.
    pub fn is_too_large(&self) -> bool {
        matches!(self.kind(), Kind::TooLarge { .. })
    }

    /// Returns whether the server requested input that this client cannot provide.
    pub fn is_unanswerable(&self) -> bool {
        matches!(self.kind(), Kind::Unanswerable(_))
    }

    /// Returns whether the resource does not exist, in any revision.
    pub fn is_resource_not_found(&self) -> bool {
        self.as_rpc().is_some_and(RpcError::is_resource_not_found)
    }

    /// Returns the error of the server's program, if that is the cause.
    pub fn process(&self) -> Option<&ProcessError> {
        match self.kind() {
            Kind::Process(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the error of the handshake, if that is the cause.
    pub fn open(&self) -> Option<&OpenError> {
        match self.kind() {
            Kind::Open(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self(Arc::new(kind))
    }
}

impl From<RpcError> for Error {
    fn from(error: RpcError) -> Self {
        Kind::Rpc(error).into()
    }
}

impl From<ProcessError> for Error {
    fn from(error: ProcessError) -> Self {
        Kind::Process(error).into()
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Kind::Io(error).into()
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        Kind::Open(error).into()
    }
}

impl From<ResultError> for Error {
    fn from(error: ResultError) -> Self {
        Self::malformed("the result", error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::Rpc(error) => write!(f, "the server returned an error: {error}"),
            Kind::Tool(text) => f.write_str(text),
            Kind::Timeout { what, after } => write!(f, "{what} timed out after {after:?}"),
            Kind::Cancelled => f.write_str("the request was cancelled"),
            Kind::Closed(reason) => write!(f, "the connection is closed: {reason}"),
            Kind::Unreachable(reason) => write!(f, "the server cannot be reached: {reason}"),
            Kind::Expired(reason) => write!(f, "the session has expired: {reason}"),
            Kind::Http { status, detail } if detail.is_empty() => {
                write!(f, "the server returned HTTP {status}")
            }
            Kind::Http { status, detail } => write!(f, "the server returned HTTP {status}: {detail}"),
            Kind::Process(error) => error.fmt(f),
            Kind::Io(error) => write!(f, "the connection failed: {error}"),
            Kind::Open(error) => error.fmt(f),
            Kind::Malformed { what, reason } => write!(f, "{what} violates the protocol: {reason}"),
            Kind::Unsupported(what) => write!(f, "the server does not support {what}"),
            Kind::Unanswerable(what) => {
                write!(f, "the server requested input that this client cannot provide: {what}")
            }
            Kind::TooLarge { what, limit } => {
                write!(f, "{what} exceeds the limit of {limit}")
            }
            Kind::Misuse(reason) => f.write_str(reason),
            Kind::Authorization { source, .. } => source.fmt(f),
            Kind::NotOpened { error, stderr } => write!(f, "{error}{}", LastLines(stderr)),
            Kind::TaskGone(task_id, error) => {
                let reason = error.as_rpc().map(|error| &*error.message).unwrap_or_default();
                write!(f, "the server does not know task `{task_id}`, or it has expired: {reason}")
            }
            Kind::TaskCancelled(task_id) => write!(f, "task `{task_id}` was cancelled"),
            Kind::OfTask { task_id, error } => write!(f, "{error} (task `{task_id}`)"),
        }
    }
}

/// Prints like `Display`, because a failing `main` shows this.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.0 {
            Kind::Rpc(error) => Some(error),
            Kind::Process(error) => std::error::Error::source(error),
            Kind::Io(error) => Some(error),
            Kind::Open(error) => Some(error),
            Kind::Authorization { source, .. } => Some(&**source),
            Kind::NotOpened { error, .. } | Kind::OfTask { error, .. } => std::error::Error::source(error),
            Kind::TaskGone(_, error) => Some(error),
            Kind::Tool(_)
            | Kind::Timeout { .. }
            | Kind::Cancelled
            | Kind::Closed(_)
            | Kind::Unreachable(_)
            | Kind::Expired(_)
            | Kind::Http { .. }
            | Kind::Malformed { .. }
            | Kind::Unsupported(_)
            | Kind::Unanswerable(_)
            | Kind::TooLarge { .. }
            | Kind::TaskCancelled(_)
            | Kind::Misuse(_) => None,
        }
    }
}
