//! What several processes of a gateway share: keys, and a store for sessions.

use super::problem::Problem;
use bowline_config::{ResumeMode, SessionMode, SessionsConfig};
use bowline_http::{HttpOptions, Resume, SessionStore};
use bowline_server::KeyRing;
use bowline_store::Store;

/// What processes share.
#[derive(Clone, Debug, Default)]
pub(super) struct Sharing {
    pub(super) store: Option<Store>,
    pub(super) keys: Option<KeyRing>,
}

impl Sharing {
    /// The keys of all processes: those that were set, or those of the store.
    pub(super) fn keys(&self) -> Option<KeyRing> {
        let of_store = || self.store.as_ref().and_then(Store::keys);
        self.keys.as_ref().or_else(of_store).cloned()
    }

    /// Sets up sessions as configured. Fails if something they need is missing.
    pub(super) fn apply(
        &self,
        mut options: HttpOptions,
        config: &SessionsConfig,
    ) -> Result<HttpOptions, Problem> {
        if let Some(store) = &self.store {
            options = options.used_states(store.records().clone());
        }
        let needs_keys = || {
            let reason =
                "processes that share sessions need the same keys; name their variables in `store.keys_env`";
            Problem::new("sessions.mode", reason)
        };
        match config.mode {
            SessionMode::Process => Ok(options),
            SessionMode::Sealed if self.keys().is_none() => Err(needs_keys()),
            SessionMode::Sealed => Ok(options.sealed_sessions()),
            SessionMode::Store => {
                let Some(store) = &self.store else {
                    return Err(Problem::new("sessions.mode", "`store` needs a store; set `store.url`"));
                };
                if self.keys().is_none() {
                    return Err(needs_keys());
                }
                let resume = match config.resume {
                    ResumeMode::Node => Resume::Node,
                    _ => Resume::Store,
                };
                Ok(options.session_store(SessionStore::of(store).resume(resume)))
            }
            _ => Err(Problem::new("sessions.mode", "not supported")),
        }
    }
}
