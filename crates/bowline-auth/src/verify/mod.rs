//! What a resource server makes of an access token.
//!
//! A [`Verify`] turns a token into a [`Verdict`]. The [`VerdictCache`] keeps verdicts of tokens that were accepted.

mod cache;
mod claims;
mod hierarchy;
mod introspect;
mod issuers;
mod jwt;
mod keys;

pub use cache::{MAX_CACHED_VERDICTS, VerdictCache, token_digest};
pub use claims::ClaimNames;
pub use hierarchy::{Hierarchy, ScopeCycle};
pub use introspect::Introspection;
pub use issuers::Issuers;
pub use jwt::{FixedKeys, Jwt, Unsigned};
pub use keys::{KeyCache, Plan, check_source, read_jwks_uri};

pub use crate::jose::MAX_TOKEN;

use crate::Caller;
use std::{borrow::Cow, error::Error, fmt, future::Future, pin::Pin, sync::Arc};

/// How far the clocks of issuer and server may differ, in seconds.
pub const CLOCK_SKEW: u64 = 60;

/// The longest time a verdict is cached, in seconds.
pub const MAX_VERDICT_AGE: u64 = 300;

/// Decides whether an access token is valid for this server.
///
/// A verifier checks the signature or asks the issuer, and checks issuer, audience, expiry and whatever else the token has.
/// The scopes that a request needs are checked later, from [`Caller::scopes`].
///
/// ```
/// use bowline_auth::{Caller, Refusal, Scopes, Verify, verify::{Expected, Verification}};
/// use std::sync::Arc;
///
/// /// Accepts one token, for tests.
/// #[derive(Debug)]
/// struct OneToken;
///
/// impl Verify for OneToken {
///     fn verify<'a>(&'a self, token: &'a str, _expected: Expected<'a>) -> Verification<'a> {
///         let verdict = if token == "secret" {
///             Ok(Arc::new(Caller::new("https://login.example.com", "ada").with_scopes(Scopes::parse("notes:read"))))
///         } else {
///             Err(Refusal::invalid("unknown token"))
///         };
///         verdict.into()
///     }
/// }
/// ```
pub trait Verify: fmt::Debug + Send + Sync + 'static {
    /// Verifies one token. It is at most [`MAX_TOKEN`] bytes long and consists of visible ASCII characters.
    fn verify<'a>(&'a self, token: &'a str, expected: Expected<'a>) -> Verification<'a>;

    /// Returns a number that changes when verdicts given so far no longer hold, such as after a change of keys.
    fn generation(&self) -> u64 {
        0
    }

    /// Returns how many seconds an accepted token may be trusted without asking again: at most [`MAX_VERDICT_AGE`], and
    /// never beyond the expiry of the token.
    fn max_age(&self) -> u64 {
        MAX_VERDICT_AGE
    }
}

/// What a token has to satisfy.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Expected<'a> {
    /// The time, in seconds since the Unix epoch.
    pub now: u64,
    /// The audiences of this server. A token has to be issued for one of them, compared byte by byte.
    pub audiences: &'a [String],
    /// The claims that hold the subject and the scopes.
    pub claims: &'a ClaimNames,
}

impl<'a> Expected<'a> {
    /// Creates the expectations for a token that is presented at `now`.
    pub fn new(now: u64, audiences: &'a [String], claims: &'a ClaimNames) -> Self {
        Self { now, audiences, claims }
    }

    /// Returns whether one of `audiences`, the `aud` of a token, is one of this server's.
    pub fn is_for_us<'b>(&self, audiences: impl IntoIterator<Item = &'b str>) -> bool {
        audiences.into_iter().any(|audience| self.audiences.iter().any(|ours| ours == audience))
    }
}

/// The caller that a token identifies, or why the token is refused.
pub type Verdict = Result<Arc<Caller>, Refusal>;

/// A verdict that is known, or the future of one.
pub enum Verification<'a> {
    /// The verdict.
    Ready(Verdict),
    /// The verdict needs IO, such as fetching keys.
    Pending(Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>),
}

impl Verification<'_> {
    /// Waits for the verdict.
    pub async fn verdict(self) -> Verdict {
        match self {
            Self::Ready(verdict) => verdict,
            Self::Pending(future) => future.await,
        }
    }
}

impl From<Verdict> for Verification<'_> {
    fn from(verdict: Verdict) -> Self {
        Self::Ready(verdict)
    }
}

impl fmt::Debug for Verification<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(verdict) => f.debug_tuple("Ready").field(verdict).finish(),
            Self::Pending(_) => f.write_str("Pending"),
        }
    }
}

/// Why a token is refused. The text is sent to the client and must not contain parts of the token.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The token is malformed, expired, not signed by the issuer, or for somebody else: 401.
    Invalid(Cow<'static, str>),
    /// The token could not be checked, because the issuer cannot be reached: 503. It is never treated as valid.
    Unavailable(Cow<'static, str>),
}

impl Refusal {
    /// Refuses a token that is not valid here.
    pub fn invalid(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid(reason.into())
    }

    /// Reports that the token could not be checked.
    pub fn unavailable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Unavailable(reason.into())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(reason) | Self::Unavailable(reason) => f.write_str(reason),
        }
    }
}

impl Error for Refusal {}
