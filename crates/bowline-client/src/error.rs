//! What goes wrong in a client, and whose fault it is.

use crate::{ProcessError, process::LastLines};
use bowline_proto::client::{OpenError, ResultError};
use bowline_types::RpcError;
use std::{fmt, io, sync::Arc, time::Duration};

/// The result of everything a client does.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// An error of a client; cheap to clone, for one lost connection fails many requests.
///
/// [`as_rpc`](Self::as_rpc) tells an error that the server sent from one that arose here.
#[derive(Clone)]
pub struct Error(Arc<Kind>);

#[derive(Debug)]
pub(crate) enum Kind {
    /// The server answered with an error.
    Rpc(RpcError),
    /// A tool reports that it failed.
    Tool(String),
    /// No answer, or no sign of life, in time.
    Timeout { what: String, after: Duration },
    /// Given up before it was answered.
    Cancelled,
    /// The connection is gone, or was never there.
    Closed(String),
    /// The server could not be reached; nothing was sent.
    Unreachable(String),
    /// The server has ended the session that the request belonged to.
    Expired(String),
    /// The server answered over HTTP with a status that is no success, and no error of the protocol.
    Http { status: u16, detail: String },
    /// The program at the other end is gone, or could not be started.
    Process(ProcessError),
    /// Bytes could not be read or written.
    Io(io::Error),
    /// The opening failed.
    Open(OpenError),
    /// The server broke the rules.
    Malformed { what: String, reason: String },
    /// Both sides do not match: the server lacks what the request needs.
    Unsupported(String),
    /// The server asks for something this client cannot or may not answer.
    Unanswerable(String),
    /// The server sent more than a limit allows.
    TooLarge { what: String, limit: String },
    /// The caller holds it wrong.
    Misuse(String),
    /// The client has no token that the server accepts.
    Authorization { login_needed: bool, source: Box<dyn std::error::Error + Send + Sync> },
    /// The server's program did not open the connection; with the last of its standard error.
    NotOpened { error: Error, stderr: String },
}

impl Error {
    /// The connection is gone, for `reason`. Transports report its end with this.
    pub fn closed(reason: impl Into<String>) -> Self {
        Kind::Closed(reason.into()).into()
    }

    /// The server could not be reached, for `reason`; nothing was sent.
    pub fn unreachable(reason: impl Into<String>) -> Self {
        Kind::Unreachable(reason.into()).into()
    }

    /// The server has ended the session, for `reason`. Transports end a connection with this when another one is to
    /// be opened at once; requests that change nothing are then sent again.
    pub fn expired(reason: impl Into<String>) -> Self {
        Kind::Expired(reason.into()).into()
    }

    /// The server answered with a status of HTTP that is no success; `detail` is what it said besides.
    pub fn http(status: u16, detail: impl Into<String>) -> Self {
        Kind::Http { status, detail: detail.into() }.into()
    }

    /// The caller asked for something that cannot be.
    pub fn misuse(reason: impl Into<String>) -> Self {
        Kind::Misuse(reason.into()).into()
    }

    /// The client could not obtain a token that the server accepts, because of `source`.
    ///
    /// `login_needed` says that the call can succeed after a user has logged in.
    pub fn authorization(
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
        login_needed: bool,
    ) -> Self {
        Kind::Authorization { login_needed, source: source.into() }.into()
    }

    /// The server broke the rules: `what` it sent does not hold, for `reason`.
    pub fn malformed(what: impl Into<String>, reason: impl fmt::Display) -> Self {
        Kind::Malformed { what: what.into(), reason: reason.to_string() }.into()
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Kind::Unsupported(what.into()).into()
    }

    pub(crate) fn timeout(what: impl Into<String>, after: Duration) -> Self {
        Kind::Timeout { what: what.into(), after }.into()
    }

    /// The server sent `what`, which is more than `limit` allows.
    pub(crate) fn too_large(what: impl Into<String>, limit: impl Into<String>) -> Self {
        Kind::TooLarge { what: what.into(), limit: limit.into() }.into()
    }

    /// Adds what the server's program wrote to standard error, unless the error tells it already.
    pub(crate) fn with_stderr(self, stderr: String) -> Self {
        if stderr.trim().is_empty() || matches!(self.kind(), Kind::Process(_)) {
            return self;
        }
        Kind::NotOpened { error: self, stderr }.into()
    }

    fn kind(&self) -> &Kind {
        match &*self.0 {
            Kind::NotOpened { error, .. } => error.kind(),
            kind => kind,
        }
    }

    /// The error the server answered with; `None` when the error arose here.
    pub fn as_rpc(&self) -> Option<&RpcError> {
        match self.kind() {
            Kind::Rpc(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the server answered with an error.
    pub fn is_rpc(&self) -> bool {
        self.as_rpc().is_some()
    }

    /// Whether a tool ran and reported that it failed.
    pub fn is_tool(&self) -> bool {
        matches!(self.kind(), Kind::Tool(_))
    }

    /// Whether time ran out, for a request or for the opening of the connection.
    pub fn is_timeout(&self) -> bool {
        matches!(self.kind(), Kind::Timeout { .. } | Kind::Open(OpenError::Silent))
    }

    /// Whether the request was given up on this side.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.kind(), Kind::Cancelled)
    }

    /// Whether the connection is gone: nothing can be sent any more, or what was sent is lost.
    pub fn is_closed(&self) -> bool {
        matches!(
            self.kind(),
            Kind::Closed(_) | Kind::Unreachable(_) | Kind::Expired(_) | Kind::Io(_) | Kind::Process(_)
        )
    }

    /// Whether the server could not be reached, so that nothing was sent.
    pub fn is_unreachable(&self) -> bool {
        matches!(self.kind(), Kind::Unreachable(_))
    }

    /// Whether the server ended the session that the request belonged to. Whether the request was carried out is not
    /// known; the client opens another session by itself.
    pub fn is_expired(&self) -> bool {
        matches!(self.kind(), Kind::Expired(_))
    }

    /// The status of HTTP the server answered with, when that is what failed.
    pub fn http_status(&self) -> Option<u16> {
        match self.kind() {
            Kind::Http { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the call failed because the client could not obtain a token that the server accepts.
    pub fn is_authorization(&self) -> bool {
        matches!(self.kind(), Kind::Authorization { .. })
    }

    /// Whether a user has to log in before the call can succeed.
    pub fn is_login_needed(&self) -> bool {
        matches!(self.kind(), Kind::Authorization { login_needed: true, .. })
    }

    /// Whether the same may well succeed later: what is gone or too busy now may be back.
    pub(crate) fn is_passing(&self) -> bool {
        self.is_closed()
            || self.is_timeout()
            || self.http_status().is_some_and(|status| status == 429 || status >= 500)
    }

    /// Whether the server lacks what the request needs.
    pub fn is_unsupported(&self) -> bool {
        matches!(self.kind(), Kind::Unsupported(_))
    }

    /// Whether the server broke the rules of the protocol, or of its own schemas.
    pub fn is_malformed(&self) -> bool {
        matches!(self.kind(), Kind::Malformed { .. })
    }

    /// Whether the server sent more than a limit allows. Nothing of it was kept.
    pub fn is_too_large(&self) -> bool {
        matches!(self.kind(), Kind::TooLarge { .. })
    }

    /// Whether the server asked back for something this client could not answer.
    pub fn is_unanswerable(&self) -> bool {
        matches!(self.kind(), Kind::Unanswerable(_))
    }

    /// Whether there is no such resource, in the words of any revision.
    pub fn is_resource_not_found(&self) -> bool {
        self.as_rpc().is_some_and(RpcError::is_resource_not_found)
    }

    /// What became of the program at the other end, when that is why it failed.
    pub fn process(&self) -> Option<&ProcessError> {
        match self.kind() {
            Kind::Process(error) => Some(error),
            _ => None,
        }
    }

    /// Why the connection could not be opened, when that is what failed.
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
        }
    }
}

/// Prints as `Display` does, because this is what a failing `main` shows.
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
            Kind::NotOpened { error, .. } => std::error::Error::source(error),
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
            | Kind::Misuse(_) => None,
        }
    }
}
