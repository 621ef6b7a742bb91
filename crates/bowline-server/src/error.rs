//! The error of a handler, and how its client learns of it.

use bowline_types::{ClientCapabilities, ElicitUrlParams, RpcError, error_code};
use std::{error::Error as StdError, fmt};

/// The result of a handler.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// Any error, as handlers may return it.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// The error of a handler.
///
/// Every `std::error::Error` converts into it with `?`. The caller of a tool gets the text of the error and of its
/// sources as a failed result, which the model reads. The constructors named after JSON-RPC errors fail the request
/// itself instead.
///
/// ```
/// use bowline_server::{Error, Result};
///
/// fn price(text: &str) -> Result<f64> {
///     let price: f64 = text.parse()?; // the model reads: invalid float literal
///     if price < 1.0 {
///         return Err(Error::tool("too cheap"));
///     }
///     Ok(price)
/// }
/// # assert_eq!(price("0.5").unwrap_err().to_string(), "too cheap");
/// # assert_eq!(price("a").unwrap_err().to_string(), "invalid float literal");
/// ```
///
/// A handler does not have to use it: `Result<T, E>` works with every `E` that converts into
/// `Box<dyn Error + Send + Sync>`, such as `anyhow::Error`, `io::Error` or `String`.
///
/// Like `anyhow::Error` it does not implement `std::error::Error`, so that `?` can convert every error into it.
/// [`Error::into_std`] and [`HandlerError`] do.
pub struct Error(Box<ErrorCarrier>);

/// Where the source of a [`HandlerError`] leads, so that its kind is found below errors of other types.
struct ErrorCarrier(Kind);

pub(crate) enum Kind {
    /// A text that the model can read and react to.
    Tool(String),
    /// An error of another library. The model reads its text and that of its sources.
    Other(BoxError),
    /// Arguments that do not fit the handler.
    Arguments(String),
    /// Fails the request itself.
    Rpc(RpcError),
    /// The requested item does not exist.
    NotFound(Option<String>),
    /// The user has to visit these pages first.
    Visit(Vec<ElicitUrlParams>),
    /// The client lacks a capability.
    Missing { needed: Box<ClientCapabilities>, what: &'static str },
    /// The round ended while the question was open; the handler runs again.
    Suspended,
}

impl Error {
    /// Fails with a text that the model reads: a tool result with `isError`.
    #[doc(alias = "isError")]
    pub fn tool(message: impl fmt::Display) -> Self {
        Kind::Tool(message.to_string()).into()
    }

    /// Converts any error, also one that is not a `std::error::Error` itself, such as `anyhow::Error`.
    ///
    /// The model reads the text of the error and of its sources.
    pub fn other(error: impl Into<BoxError>) -> Self {
        Self::from_box(error.into())
    }

    /// Fails the request with a JSON-RPC error.
    pub fn rpc(error: RpcError) -> Self {
        if error.code == error_code::URL_ELICITATION_REQUIRED {
            return Self::url_elicitation_required(error.url_elicitations().unwrap_or_default());
        }
        Kind::Rpc(error).into()
    }

    /// Fails the request with -32602: the parameters are wrong.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::rpc(RpcError::invalid_params(message.into()))
    }

    /// Fails the request with -32603: the server is at fault.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::rpc(RpcError::internal(message.into()))
    }

    /// Reports that what was asked for does not exist.
    ///
    /// Reading a resource then fails with the error that the client's revision has for it: -32002 before 2026-07-28,
    /// -32602 since. Returning `None` does the same without a message. A tool reports the message to the model, a
    /// prompt fails with -32602.
    #[doc(alias = "-32002")]
    pub fn not_found(message: impl Into<String>) -> Self {
        Kind::NotFound(Some(message.into())).into()
    }

    /// Reports that the resource with this URI does not exist. [`Error::not_found`] fills in the URI of the request.
    pub fn resource_not_found(uri: &str) -> Self {
        Self::rpc(RpcError::resource_not_found(uri))
    }

    pub(crate) fn nothing_found() -> Self {
        Kind::NotFound(None).into()
    }

    /// Fails the request until the user has visited these pages.
    ///
    /// A client of 2025-11-25 gets -32042 and repeats the request later; pages without an `elicitation_id` get one. A
    /// client of 2026-07-28 is asked, and the handler runs again with the answer. In both cases only the handler knows
    /// whether the visit succeeded. Clients that cannot open a URL get the same error as from
    /// [`Ctx::ask_url`](crate::Ctx::ask_url).
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
        matches!(self.0.0, Kind::Arguments(_))
    }

    pub(crate) fn suspended() -> Self {
        Kind::Suspended.into()
    }

    pub(crate) fn into_kind(self) -> Kind {
        self.0.0
    }

    /// Returns whether the client lacks a required capability.
    pub fn is_unsupported(&self) -> bool {
        matches!(self.0.0, Kind::Missing { .. })
    }

    /// Returns whether the requested item does not exist.
    pub fn is_not_found(&self) -> bool {
        match &self.0.0 {
            Kind::NotFound(_) => true,
            Kind::Rpc(error) => error.is_resource_not_found(),
            _ => false,
        }
    }

    /// Returns the error that was converted into this one, if it is an `E`.
    ///
    /// ```
    /// use std::io;
    ///
    /// fn read() -> bowline_server::Result<String> {
    ///     Ok(std::fs::read_to_string("/does/not/exist")?)
    /// }
    ///
    /// let error = read().unwrap_err();
    /// assert_eq!(error.downcast_ref::<io::Error>().unwrap().kind(), io::ErrorKind::NotFound);
    /// ```
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        match &self.0.0 {
            Kind::Other(error) => error.downcast_ref(),
            Kind::Rpc(error) => (error as &(dyn StdError + 'static)).downcast_ref(),
            _ => None,
        }
    }

    /// Returns this error in a form that implements `std::error::Error`, for functions that return another error type.
    ///
    /// ```
    /// use bowline_server::Error;
    ///
    /// fn check(count: i64) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    ///     if count < 0 {
    ///         return Err(Error::invalid_params("`count` must not be negative").into_std().into());
    ///     }
    ///     Ok(())
    /// }
    /// # assert_eq!(check(-1).unwrap_err().to_string(), "`count` must not be negative (-32602)");
    /// ```
    pub fn into_std(self) -> HandlerError {
        HandlerError(self)
    }

    /// Recovers our own error from `error` or its sources, and wraps any other.
    pub(crate) fn from_box(error: BoxError) -> Self {
        let error = match error.downcast::<HandlerError>() {
            Ok(handler_error) => return handler_error.0,
            Err(error) => error,
        };
        let error = match error.downcast::<RpcError>() {
            Ok(rpc_error) => return Self::rpc(*rpc_error),
            Err(error) => error,
        };
        // `anyhow` hides the type of the outermost error, but not that of its sources.
        let mut context = Vec::new();
        let mut next: Option<&(dyn StdError + 'static)> = Some(&*error);
        while let Some(current) = next {
            let carried = match current.downcast_ref::<HandlerError>() {
                Some(HandlerError(error)) => Some(&*error.0),
                None => current.downcast_ref::<ErrorCarrier>(),
            };
            if let Some(kind) = carried.and_then(|carried| carried.0.duplicate()) {
                return Self::from(kind).with_context(context);
            }
            context.push(current.to_string());
            next = current.source();
        }
        Kind::Other(error).into()
    }

    /// Puts the texts that other errors added in front of the message.
    fn with_context(self, mut context: Vec<String>) -> Self {
        let own = self.to_string();
        context.retain(|text| *text != own);
        if context.is_empty() {
            return self;
        }
        let context = context.join(": ");
        match self.0.0 {
            Kind::Tool(message) => Kind::Tool(format!("{context}: {message}")),
            Kind::Rpc(error) => {
                let message = format!("{context}: {}", error.message);
                Kind::Rpc(RpcError { message: message.into(), ..error })
            }
            Kind::NotFound(message) => Kind::NotFound(Some(match message {
                Some(message) => format!("{context}: {message}"),
                None => context,
            })),
            kind => kind,
        }
        .into()
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self(Box::new(ErrorCarrier(kind)))
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self::from_box(Box::new(error))
    }
}

impl From<Error> for BoxError {
    fn from(error: Error) -> Self {
        Box::new(HandlerError(error))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.0 {
            Kind::Tool(message) | Kind::NotFound(Some(message)) => f.write_str(message),
            Kind::Other(error) => f.write_str(&with_sources(&**error)),
            Kind::Arguments(reason) => write!(f, "invalid arguments: {reason}"),
            Kind::Rpc(error) => error.fmt(f),
            Kind::NotFound(None) => f.write_str("not found"),
            Kind::Visit(_) => f.write_str("the user has to visit a page first"),
            Kind::Missing { what, .. } => write!(f, "the client does not support {what}"),
            Kind::Suspended => f.write_str("the question is still open"),
        }
    }
}

/// Returns the text of an error and its sources.
fn with_sources(error: &(dyn StdError + 'static)) -> String {
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
    message
}

/// Prints like `Display`, because a failing `main` shows this.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// [`Error`] in a form that implements `std::error::Error`; what the methods of [`Ctx`](crate::Ctx) return.
///
/// `?` converts it into [`Error`], `anyhow::Error` and `Box<dyn Error + Send + Sync>`. A handler may return any of them:
/// the server recognizes it again, also below the context that `anyhow` added.
pub struct HandlerError(Error);

impl HandlerError {
    /// Returns whether the client lacks a required capability.
    pub fn is_unsupported(&self) -> bool {
        self.0.is_unsupported()
    }

    /// Returns whether the requested item does not exist.
    pub fn is_not_found(&self) -> bool {
        self.0.is_not_found()
    }

    /// Returns the error that was converted into this one, if it is an `E`.
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

impl From<Error> for HandlerError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.0.0 {
            // The sources follow through `source`.
            Kind::Other(error) => error.fmt(f),
            _ => self.0.fmt(f),
        }
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl StdError for HandlerError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.0.0 {
            Kind::Tool(_) => None,
            Kind::Other(error) => error.source(),
            _ => Some(&*self.0.0),
        }
    }
}

impl Kind {
    /// Returns a copy, unless this is an error of another library.
    fn duplicate(&self) -> Option<Self> {
        Some(match self {
            Self::Other(_) => return None,
            Self::Tool(message) => Self::Tool(message.clone()),
            Self::Arguments(reason) => Self::Arguments(reason.clone()),
            Self::Rpc(error) => Self::Rpc(error.clone()),
            Self::NotFound(message) => Self::NotFound(message.clone()),
            Self::Visit(pages) => Self::Visit(pages.clone()),
            Self::Missing { needed, what } => Self::Missing { needed: needed.clone(), what },
            Self::Suspended => Self::Suspended,
        })
    }
}

/// As the source of a [`HandlerError`], this is the kind of the error.
impl fmt::Display for ErrorCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Tool(_) | Kind::Other(_) => f.write_str("tool error"),
            Kind::Arguments(_) => f.write_str("invalid arguments"),
            Kind::Rpc(error) => write!(f, "JSON-RPC error {}", error.code),
            Kind::NotFound(_) => f.write_str("not found"),
            Kind::Visit(_) => f.write_str("URL elicitation required"),
            Kind::Missing { .. } => f.write_str("missing client capability"),
            Kind::Suspended => f.write_str("input required"),
        }
    }
}

impl fmt::Debug for ErrorCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StdError for ErrorCarrier {}

/// An error that a handler may return: everything that converts into `Box<dyn Error + Send + Sync>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a handler",
    label = "does not convert into `Box<dyn Error + Send + Sync>`",
    note = "implement `std::error::Error` for it, or return `bowline::Error`, `anyhow::Error` or `String`"
)]
pub trait IntoError {
    /// Converts the error.
    fn into_error(self) -> Error;
}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> IntoError for E {
    fn into_error(self) -> Error {
        Error::from_box(self.into())
    }
}
