//! Whether a server waits for a login, and for what.

use bowline_client::Error;
use bowline_http::auth::{self, Scopes};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most bytes of scopes that are remembered. A server names them.
const MAX_SCOPES: usize = 4096;

/// The login that the last failure of an instance asked for.
#[derive(Debug, Default)]
pub(super) struct LoginState(Mutex<Option<Scopes>>);

impl LoginState {
    fn needed(&self) -> MutexGuard<'_, Option<Scopes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers whether a failure was a missing login.
    pub(super) fn failed(&self, error: &Error) {
        let scopes = || {
            let needed = auth::Error::find(error).and_then(auth::Error::login);
            let scopes = needed.map(|needed| needed.scopes.clone()).unwrap_or_default();
            if scopes.to_string().len() > MAX_SCOPES { Scopes::new() } else { scopes }
        };
        *self.needed() = error.is_login_needed().then(scopes);
    }

    /// Remembers that there is a login.
    pub(super) fn clear(&self) {
        *self.needed() = None;
    }

    pub(super) fn is_needed(&self) -> bool {
        self.needed().is_some()
    }

    /// Returns the scopes that the missing login needs, as far as they are known.
    pub(super) fn scopes(&self) -> Scopes {
        self.needed().clone().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_failure_says_whether_a_login_is_missing() {
        let needed = |scopes: &str| {
            let error = auth::Error::login_needed("https://h/mcp", None, Scopes::parse(scopes), "no token");
            Error::authorization(error, true)
        };
        let state = LoginState::default();
        assert!(!state.is_needed());
        state.failed(&needed("a b"));
        assert!(state.is_needed());
        assert_eq!(state.scopes(), Scopes::parse("a b"));
        state.failed(&needed(&"s".repeat(MAX_SCOPES + 1)));
        assert!(state.is_needed() && state.scopes().is_empty());
        state.failed(&Error::unreachable("down"));
        assert!(!state.is_needed());
        state.failed(&needed("a"));
        state.clear();
        assert!(!state.is_needed() && state.scopes().is_empty());
    }
}
