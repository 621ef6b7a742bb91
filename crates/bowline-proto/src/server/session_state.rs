//! What a session opened by `initialize` remembers between requests, so that another process can continue it.

use bowline_types::{LoggingLevel, RawJson, Revision};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What outlives a request in a session opened by `initialize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionState {
    /// The negotiated revision.
    pub revision: Revision,
    /// The capabilities that the client declared.
    pub capabilities: RawJson,
    /// Name and version of the client.
    pub client_info: Option<RawJson>,
    /// Whether the client completed the handshake.
    pub initialized: bool,
    /// The lowest level of log messages that the client receives.
    pub level: LoggingLevel,
    /// The resources that the client subscribes to.
    pub uris: BTreeSet<String>,
}

impl SessionState {
    /// Creates the state of a session that `initialize` just opened.
    pub fn new(revision: Revision, capabilities: RawJson, client_info: Option<RawJson>) -> Self {
        let (level, uris) = (LoggingLevel::Info, BTreeSet::new());
        Self { revision, capabilities, client_info, initialized: false, level, uris }
    }

    /// Makes the changes that lead from `before` to `after`. Others may have changed this state since `before`.
    pub fn merge(&mut self, before: &Self, after: &Self) {
        self.initialized |= after.initialized;
        if after.level != before.level {
            self.level = after.level;
        }
        self.uris.extend(after.uris.difference(&before.uris).cloned());
        for removed in before.uris.difference(&after.uris) {
            self.uris.remove(removed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_two_processes_are_both_kept() {
        let state = |uris: &[&str], level, initialized| SessionState {
            initialized,
            level,
            uris: uris.iter().map(ToString::to_string).collect(),
            ..SessionState::new(Revision::V2025_11_25, RawJson::empty_object(), None)
        };
        let before = state(&["a:1", "a:2"], LoggingLevel::Info, false);
        let here = state(&["a:2", "a:3"], LoggingLevel::Info, true);
        let mut stored = state(&["a:1", "a:2", "a:4"], LoggingLevel::Debug, false);
        stored.merge(&before, &here);
        assert_eq!(stored, state(&["a:2", "a:3", "a:4"], LoggingLevel::Debug, true));
    }

    #[test]
    fn a_state_survives_the_store() {
        let info = RawJson::parse(r#"{"name":"c","version":"1"}"#).unwrap();
        let state = SessionState::new(Revision::V2025_06_18, RawJson::empty_object(), Some(info));
        let text = serde_json::to_vec(&state).unwrap();
        assert_eq!(serde_json::from_slice::<SessionState>(&text).unwrap(), state);
    }
}
