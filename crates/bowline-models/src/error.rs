//! Errors of sampling: a short text for the server, details for the user.

use bowline_types::{RpcError, error_code};
use std::{borrow::Cow, error::Error, fmt};

/// An error of a sampling request.
///
/// `Display` shows the details for the user, without keys. [`to_rpc`](Self::to_rpc) returns the error for the server,
/// which contains neither the provider, nor its address, nor its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleError {
    kind: SampleErrorKind,
    detail: String,
    /// The provider and the model.
    asked: Option<(String, String)>,
}

/// The kind of a [`SampleError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SampleErrorKind {
    /// The model does not support the content of the request.
    Invalid,
    /// The server has reached a limit.
    Capped(Cap),
    /// The provider rejected the key, or the key lacks a permission.
    Unauthorized,
    /// The provider does not have the model, or the base URL is wrong.
    NoModel,
    /// The provider limits the request rate of the user.
    Limited,
    /// The provider is overloaded.
    Overloaded,
    /// The provider failed.
    Failed,
    /// The provider rejected the request.
    Refused,
    /// The provider responded with a redirect, which is not followed because of the key.
    Redirected,
    /// The provider did not respond in time.
    TimedOut,
    /// Cannot connect to the provider.
    Unreachable,
    /// The connection was lost before the response was complete.
    Lost,
    /// The response is invalid.
    Malformed,
    /// The response is too long.
    TooLong,
}

/// A limit on the usage of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cap {
    /// Tokens while the host runs.
    TokensPerRun,
    /// Tokens per hour.
    TokensPerHour,
    /// Calls per hour.
    CallsPerHour,
    /// Concurrent calls.
    CallsAtOnce,
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TokensPerRun => "tokens per run",
            Self::TokensPerHour => "tokens per hour",
            Self::CallsPerHour => "calls per hour",
            Self::CallsAtOnce => "concurrent calls",
        })
    }
}

impl SampleError {
    pub(super) fn new(kind: SampleErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), asked: None }
    }

    pub(super) fn invalid(reason: impl Into<String>) -> Self {
        Self::new(SampleErrorKind::Invalid, reason)
    }

    pub(super) fn capped(cap: Cap, limit: u64) -> Self {
        Self::new(SampleErrorKind::Capped(cap), format!("this server has reached its limit of {limit} {cap}"))
    }

    pub(super) fn asked(mut self, provider: &str, model: &str) -> Self {
        self.asked = Some((provider.to_owned(), model.to_owned()));
        self
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> SampleErrorKind {
        self.kind
    }

    /// Returns whether the provider may have used tokens.
    pub(super) fn may_have_cost(&self) -> bool {
        match self.kind {
            SampleErrorKind::TimedOut
            | SampleErrorKind::Lost
            | SampleErrorKind::Malformed
            | SampleErrorKind::TooLong => true,
            SampleErrorKind::Invalid
            | SampleErrorKind::Capped(_)
            | SampleErrorKind::Unauthorized
            | SampleErrorKind::NoModel
            | SampleErrorKind::Limited
            | SampleErrorKind::Overloaded
            | SampleErrorKind::Failed
            | SampleErrorKind::Refused
            | SampleErrorKind::Redirected
            | SampleErrorKind::Unreachable => false,
        }
    }

    /// Returns the error for the server.
    pub fn to_rpc(&self) -> RpcError {
        let (code, message): (i64, Cow<'static, str>) = match self.kind {
            SampleErrorKind::Invalid => (error_code::INVALID_PARAMS, self.detail.clone().into()),
            // Reported as a rejection by the user, so that servers stop asking.
            SampleErrorKind::Capped(_) => {
                (error_code::USER_REJECTED, format!("sampling refused: {}", self.detail).into())
            }
            SampleErrorKind::Refused => {
                (error_code::INVALID_PARAMS, "the model provider rejected the request".into())
            }
            SampleErrorKind::Unauthorized => internal("the model provider rejected the client's credentials"),
            SampleErrorKind::NoModel => internal("the client's model is not available at its provider"),
            SampleErrorKind::Limited => {
                internal("the model provider is rate limiting the client; try again later")
            }
            SampleErrorKind::Overloaded => internal("the model provider is overloaded; try again later"),
            SampleErrorKind::Failed => internal("the model provider failed"),
            SampleErrorKind::Redirected => internal("the model provider sent a redirect"),
            SampleErrorKind::TimedOut => internal("the model timed out"),
            SampleErrorKind::Unreachable => internal("the model provider cannot be reached"),
            SampleErrorKind::Lost => internal("the connection to the model provider was lost"),
            SampleErrorKind::Malformed => internal("the model provider sent an invalid response"),
            SampleErrorKind::TooLong => internal("the response of the model is too long"),
        };
        RpcError::new(code, message)
    }
}

fn internal(message: &'static str) -> (i64, Cow<'static, str>) {
    (error_code::INTERNAL_ERROR, message.into())
}

impl fmt::Display for SampleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((provider, model)) = &self.asked {
            write!(f, "provider `{provider}`, model `{model}`: ")?;
        }
        let what = match self.kind {
            SampleErrorKind::Invalid | SampleErrorKind::Capped(_) => return f.write_str(&self.detail),
            SampleErrorKind::Unauthorized => "it rejected the key",
            SampleErrorKind::NoModel => "the model or the base URL does not exist",
            SampleErrorKind::Limited => "it is rate limiting requests",
            SampleErrorKind::Overloaded => "it is overloaded",
            SampleErrorKind::Failed => "it failed",
            SampleErrorKind::Refused => "it rejected the request",
            SampleErrorKind::Redirected => "it sent a redirect, which is not followed",
            SampleErrorKind::TimedOut => "timed out",
            SampleErrorKind::Unreachable | SampleErrorKind::Lost | SampleErrorKind::TooLong => {
                return f.write_str(&self.detail);
            }
            SampleErrorKind::Malformed => "its response is invalid",
        };
        write!(f, "{what}: {}", self.detail)
    }
}

impl Error for SampleError {}

/// An error in the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError(String);

impl SettingsError {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sampling: {}", self.0)
    }
}

impl Error for SettingsError {}
