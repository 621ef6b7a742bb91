//! What a login reports while it runs.

use bowline_auth::{ClientId, ClientOrigin, Issuer, Resource, Scopes};
use std::fmt;

/// Something that happened during a login. It contains no secret.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The authorization server was found.
    Discovered {
        /// The authorization server.
        issuer: Issuer,
        /// Whether it was found as in 2025-03-26, without metadata of the resource.
        is_legacy: bool,
    },
    /// The token will be valid for more than the server: for its origin, or for a parent of its path.
    ParentResource {
        /// What the token will be for.
        resource: Resource,
    },
    /// A client was registered.
    Registered {
        /// The authorization server.
        issuer: Issuer,
        /// The id that it issued.
        client_id: ClientId,
    },
    /// The user is asked to log in.
    Visiting {
        /// The authorization server.
        issuer: Issuer,
        /// The client id in use.
        client_id: ClientId,
        /// Where the client id is from.
        origin: ClientOrigin,
        /// The scopes that are asked for.
        scopes: Scopes,
    },
    /// Tokens were issued after a login.
    LoggedIn {
        /// The authorization server.
        issuer: Issuer,
        /// The scopes that were granted.
        granted: Scopes,
        /// Whether an earlier token lacked scopes.
        is_step_up: bool,
        /// A digest of the access token.
        token_digest: String,
    },
    /// A login failed.
    LoginFailed {
        /// Whether an earlier token lacked scopes.
        is_step_up: bool,
        /// Why.
        reason: String,
    },
    /// Tokens were refreshed.
    Refreshed {
        /// The authorization server.
        issuer: Issuer,
        /// The scopes that the new access token has.
        granted: Scopes,
        /// A digest of the new access token.
        token_digest: String,
    },
    /// The authorization server refused to refresh tokens.
    RefreshRefused {
        /// The authorization server.
        issuer: Issuer,
        /// Why.
        reason: String,
    },
    /// A refresh failed, and the old access token stays in use.
    RefreshFailed {
        /// The authorization server.
        issuer: Issuer,
        /// Why.
        reason: String,
    },
    /// Tokens were refreshed and could not be stored. This process uses them until it ends; then the user has to log in again.
    NotStored {
        /// Why.
        reason: String,
    },
    /// Another process ended while it held the lock of the tokens. A refresh token that it used may be lost; then the user
    /// has to log in again.
    Interrupted,
    /// The server names another authorization server than the one that issued the tokens, which are dropped.
    IssuerChanged {
        /// The issuer of the dropped tokens.
        from: Issuer,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discovered { issuer, is_legacy: false } => {
                write!(f, "the authorization server is {issuer}")
            }
            Self::Discovered { issuer, is_legacy: true } => {
                write!(f, "the authorization server is {issuer}, found as in 2025-03-26")
            }
            Self::ParentResource { resource } => {
                write!(f, "the token will be valid for everything below {resource}")
            }
            Self::Registered { issuer, client_id } => write!(f, "registered at {issuer} as `{client_id}`"),
            Self::Visiting { issuer, scopes, .. } if scopes.is_empty() => write!(f, "logging in at {issuer}"),
            Self::Visiting { issuer, scopes, .. } => write!(f, "logging in at {issuer} for {scopes}"),
            Self::LoggedIn { issuer, granted, .. } if granted.is_empty() => {
                write!(f, "logged in at {issuer}")
            }
            Self::LoggedIn { issuer, granted, .. } => write!(f, "logged in at {issuer} for {granted}"),
            Self::LoginFailed { reason, .. } => write!(f, "the login failed: {reason}"),
            Self::Refreshed { issuer, .. } => write!(f, "refreshed the token of {issuer}"),
            Self::RefreshRefused { issuer, reason } => {
                write!(f, "{issuer} refused to refresh the token: {reason}")
            }
            Self::RefreshFailed { issuer, reason } => {
                write!(f, "cannot refresh the token of {issuer} at the moment: {reason}")
            }
            Self::NotStored { reason } => {
                write!(f, "the refreshed token is lost when this process ends: {reason}")
            }
            Self::Interrupted => f.write_str(
                "another process ended while it renewed the tokens; if they are lost, log in again",
            ),
            Self::IssuerChanged { from } => {
                write!(f, "the server no longer accepts tokens of {from}; its tokens are dropped")
            }
        }
    }
}
