//! What goes wrong in a server, and how its client hears of it.

use bowline_types::{ClientCapabilities, ElicitUrlParams, RpcError, error_code};
use std::fmt;

/// The result of a handler or of serving.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// An error of a handler.
///
/// Any `std::error::Error` turns into one with `?`, and reaches the model as the text of a failed tool call. The
/// constructors named after JSON-RPC errors are the explicit way to fail the request itself instead. What is no
/// `std::error::Error` (`anyhow::Error`, `Box<dyn Error>`, a `String`) takes [`Error::tool`]:
///
/// ```
/// use bowline_server::{Error, Result};
///
/// fn price(text: &str) -> Result<f64> {
///     let price: f64 = text.parse()?; // the model reads: invalid float literal
///     check(price).map_err(Error::tool)?; // the model reads: too cheap
///     Ok(price)
/// }
///
/// fn check(price: f64) -> std::result::Result<(), String> {
///     if price < 1.0 { Err("too cheap".into()) } else { Ok(()) }
/// }
/// # assert_eq!(price("0.5").unwrap_err().to_string(), "too cheap");
/// ```
///
/// It is not a `std::error::Error` itself, so that `?` can convert from all of them.
pub struct Error(Box<Kind>);

pub(crate) enum Kind {
    /// Something the model can read and react to.
    Tool(String),
    /// Arguments that do not fit the handler.
    Arguments(String),
    /// The request as such fails.
    Rpc(RpcError),
    /// The user has to visit these pages first.
    Visit(Vec<ElicitUrlParams>),
    /// The client cannot be asked this.
    Missing { needed: Box<ClientCapabilities>, what: &'static str },
    /// The round ended while the question was open; the handler is run again.
    Suspended,
}

impl Error {
    /// A failure the model can read: the text of a tool result with `isError`.
    pub fn tool(message: impl fmt::Display) -> Self {
        Kind::Tool(message.to_string()).into()
    }

    /// Fails the request with a JSON-RPC error.
    pub fn rpc(error: RpcError) -> Self {
        if error.code == error_code::URL_ELICITATION_REQUIRED {
            return Self::url_elicitation_required(error.url_elicitations().unwrap_or_default());
        }
        Kind::Rpc(error).into()
    }

    /// Fails the request with -32602.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::rpc(RpcError::invalid_params(message.into()))
    }

    /// Fails the request with -32603.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::rpc(RpcError::internal(message.into()))
    }

    /// Fails a read: there is no resource of this URI.
    pub fn resource_not_found(uri: &str) -> Self {
        Self::rpc(RpcError::resource_not_found(uri))
    }

    /// Fails the request until the user has visited these pages.
    ///
    /// A client of 2025-11-25 is told with -32042, and makes the request again later; pages without an
    /// `elicitation_id` get one. A client of 2026-07-28 is asked, and the handler runs again when it answers. Either
    /// way it is the handler that knows whether the visit came to its end. Clients that cannot send their user to a
    /// URL get the same error as from [`Ctx::ask_url`](crate::Ctx::ask_url).
    pub fn url_elicitation_required(elicitations: Vec<ElicitUrlParams>) -> Self {
        Kind::Visit(elicitations).into()
    }

    pub(crate) fn missing(needed: ClientCapabilities, what: &'static str) -> Self {
        Kind::Missing { needed: Box::new(needed), what }.into()
    }

    pub(crate) fn arguments(reason: impl fmt::Display) -> Self {
        Kind::Arguments(reason.to_string()).into()
    }

    pub(crate) fn is_arguments(&self) -> bool {
        matches!(*self.0, Kind::Arguments(_))
    }

    pub(crate) fn suspended() -> Self {
        Kind::Suspended.into()
    }

    pub(crate) fn into_kind(self) -> Kind {
        *self.0
    }

    /// Whether the client lacks a capability that was needed.
    pub fn is_unsupported(&self) -> bool {
        matches!(*self.0, Kind::Missing { .. })
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self(Box::new(kind))
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        let error: &(dyn std::error::Error + 'static) = &error;
        if let Some(rpc) = error.downcast_ref::<RpcError>() {
            return Self::rpc(rpc.clone());
        }
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            // Some errors print their source themselves.
            if !message.contains(&cause_text) {
                message = format!("{message}: {cause_text}");
            }
            source = cause.source();
        }
        Self::tool(message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::Tool(message) => f.write_str(message),
            Kind::Arguments(reason) => write!(f, "invalid arguments: {reason}"),
            Kind::Rpc(error) => error.fmt(f),
            Kind::Visit(_) => f.write_str("the user has to visit a page first"),
            Kind::Missing { what, .. } => write!(f, "the client does not support {what}"),
            Kind::Suspended => f.write_str("the question is still open"),
        }
    }
}

/// Prints as `Display` does, because this is what a failing `main` shows.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
