//! What goes wrong while a client obtains a token.

use crate::{Issuer, Scopes};
use std::{fmt, sync::Arc};

/// An error of a login, a refresh or a store. Cheap to clone, because one failed login fails every call that waited for it.
///
/// It contains no token, code or secret.
#[derive(Clone)]
pub struct Error(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    /// A user has to log in, and this client cannot ask for it now.
    LoginNeeded { server: String, issuer: Option<Issuer>, scopes: Scopes, reason: String },
    /// The server or the authorization server broke a rule; going on would be unsafe.
    Untrusted(String),
    /// The authorization server refused, with a code of RFC 6749.
    Refused { what: String, code: String, description: Option<String> },
    /// A server could not be reached or did not respond as it should. It may work later.
    Unavailable(String),
    /// The settings do not fit the server.
    Misuse(String),
    /// The user or the application ended the visit.
    Visit(String),
    /// Tokens could not be read or written.
    Store(String),
    /// The limit of attempts for one call is reached.
    TooManyAttempts(String),
}

impl Error {
    /// Reports that a user has to log in at `server`; `reason` says why.
    pub fn login_needed(
        server: impl Into<String>,
        issuer: Option<Issuer>,
        scopes: Scopes,
        reason: impl Into<String>,
    ) -> Self {
        Kind::LoginNeeded { server: server.into(), issuer, scopes, reason: reason.into() }.into()
    }

    /// Reports that a server broke a rule that protects the user.
    pub fn untrusted(reason: impl Into<String>) -> Self {
        Kind::Untrusted(reason.into()).into()
    }

    /// Reports that the authorization server answered with the error `code`.
    ///
    /// Control characters of the peer's text are left out, and long text is cut.
    pub fn refused(what: impl Into<String>, code: &str, description: Option<&str>) -> Self {
        let description = description.map(|text| printable(text, 300)).filter(|text| !text.is_empty());
        Kind::Refused { what: what.into(), code: printable(code, 60), description }.into()
    }

    /// Reports that a server cannot be used at the moment.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Kind::Unavailable(reason.into()).into()
    }

    /// Reports that the settings of the login are wrong.
    pub fn misuse(reason: impl Into<String>) -> Self {
        Kind::Misuse(reason.into()).into()
    }

    /// Reports that the visit of the authorization page ended without a response.
    pub fn visit(reason: impl Into<String>) -> Self {
        Kind::Visit(reason.into()).into()
    }

    /// Reports that a store cannot be read or written.
    pub fn store(reason: impl Into<String>) -> Self {
        Kind::Store(reason.into()).into()
    }

    /// Reports that one call led to more attempts than allowed.
    pub fn too_many_attempts(reason: impl Into<String>) -> Self {
        Kind::TooManyAttempts(reason.into()).into()
    }

    /// Finds an error of this type in the causes of another one.
    #[must_use]
    pub fn find<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref::<Self>() {
                return Some(found);
            }
            next = error.source();
        }
        None
    }

    /// Returns whether a user has to log in before the call can succeed.
    #[must_use]
    pub fn is_login_needed(&self) -> bool {
        matches!(&*self.0, Kind::LoginNeeded { .. })
    }

    /// Returns whether a server broke a rule, so that continuing would be unsafe.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        matches!(&*self.0, Kind::Untrusted(_))
    }

    /// Returns whether the same may succeed later without a change: a server is down, slow or busy.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        matches!(&*self.0, Kind::Unavailable(_))
    }

    /// Returns whether the user or the application ended the visit.
    #[must_use]
    pub fn is_visit(&self) -> bool {
        matches!(&*self.0, Kind::Visit(_))
    }

    /// Returns whether tokens could not be read or written.
    #[must_use]
    pub fn is_store(&self) -> bool {
        matches!(&*self.0, Kind::Store(_))
    }

    /// Returns the error code of the authorization server, such as `invalid_grant`.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match &*self.0 {
            Kind::Refused { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Returns where a login is needed and for what, if [`is_login_needed`](Self::is_login_needed).
    #[must_use]
    pub fn login(&self) -> Option<NeededLogin<'_>> {
        match &*self.0 {
            Kind::LoginNeeded { server, issuer, scopes, .. } => {
                Some(NeededLogin { server, issuer: issuer.as_ref(), scopes })
            }
            _ => None,
        }
    }
}

/// A login that a call needs; see [`Error::login`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NeededLogin<'a> {
    /// The URL of the MCP server.
    pub server: &'a str,
    /// The authorization server, if it is known.
    pub issuer: Option<&'a Issuer>,
    /// The scopes that the call needs, as far as they are known.
    pub scopes: &'a Scopes,
}

/// Returns text of a peer, made safe to print.
pub(crate) fn printable(text: &str, limit: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(limit).collect()
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self(Arc::new(kind))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::LoginNeeded { server, reason, .. } => write!(f, "{server} needs a login: {reason}"),
            Kind::Refused { what, code, description: Some(description) } => {
                write!(f, "{what} was refused: {code} ({description})")
            }
            Kind::Refused { what, code, description: None } => write!(f, "{what} was refused: {code}"),
            Kind::Store(reason) => write!(f, "the token store failed: {reason}"),
            Kind::Visit(reason) => write!(f, "the login was not completed: {reason}"),
            Kind::Untrusted(reason)
            | Kind::Unavailable(reason)
            | Kind::Misuse(reason)
            | Kind::TooManyAttempts(reason) => f.write_str(reason),
        }
    }
}

/// Prints as `Display` does, because this is what a failing `main` shows.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_peer_is_printable_and_short() {
        let error = Error::refused("the login", "access\u{1b}[2J_denied", Some(&"x\n".repeat(1000)));
        assert_eq!(error.code(), Some("access[2J_denied"));
        assert!(error.to_string().len() < 400);
        assert!(!error.to_string().contains(['\n', '\u{1b}']));
    }

    #[derive(Debug)]
    struct Outer(Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a call failed")
        }
    }

    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn an_error_is_found_behind_others() {
        let inner = Error::login_needed("https://h/mcp", None, Scopes::parse("a"), "no token is stored");
        let found = Error::find(&Outer(inner)).map(ToOwned::to_owned).unwrap();
        assert!(found.is_login_needed());
        assert_eq!(found.login().unwrap().server, "https://h/mcp");
        assert_eq!(found.to_string(), "https://h/mcp needs a login: no token is stored");
    }
}
