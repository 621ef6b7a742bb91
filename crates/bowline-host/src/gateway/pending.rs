//! The servers that wait for an approval, for the host to ask about.

use super::{Gateway, Inner, approval::Candidate, reload::EntryState};
use crate::host::PendingServers;
use bowline_policy::Question;
use std::sync::Weak;

pub(super) struct Pending(pub(super) Weak<Inner>);

impl Pending {
    fn candidate(&self, is_meant: impl Fn(&Candidate) -> bool) -> Option<Candidate> {
        let inner = self.0.upgrade()?;
        let state = inner.state();
        state.entry_states.values().find_map(|entry_state| match entry_state {
            EntryState::NeedsApproval(candidate) if is_meant(candidate) => Some(candidate.clone()),
            _ => None,
        })
    }
}

impl PendingServers for Pending {
    fn names(&self) -> Vec<String> {
        let Some(inner) = self.0.upgrade() else { return Vec::new() };
        let state = inner.state();
        let waits = |entry_state: &EntryState| matches!(entry_state, EntryState::NeedsApproval(_));
        state
            .entry_states
            .iter()
            .filter(|(_, entry_state)| waits(entry_state))
            .map(|(name, _)| name.clone())
            .collect()
    }

    fn question(&self, server: &str) -> Option<Question> {
        self.candidate(|candidate| candidate.server() == server).map(|candidate| candidate.question())
    }

    fn approve(&self, question: &Question) -> Result<(), String> {
        // Only what was shown to the user is approved, not what replaced it meanwhile.
        let candidate = self.candidate(|candidate| candidate.question() == *question);
        let (Some(inner), Some(candidate)) = (self.0.upgrade(), candidate) else {
            return Err("the server changed since the question was asked; call again".to_owned());
        };
        inner.approve.approve_for_client(&candidate)?;
        Gateway { inner }.review();
        Ok(())
    }
}
