//! Writes one decision to the audit log, also when it is abandoned.

use bowline_types::RawJson;
use std::sync::atomic::{AtomicU64, Ordering};

use super::permit::{Refusal, RefusalKind};
use super::{Clock, Facts, Guard};
use crate::audit::{Audit, Entry, Event};
use crate::rules::{Action, DecidedBy};

/// A decision in progress. If dropped before the decision, it logs that the request was abandoned.
pub(super) struct DecisionLog {
    audit: Option<Audit>,
    clock: Clock,
    entry: Option<Box<Entry>>,
}

impl DecisionLog {
    pub(super) fn begin(
        guard: &Guard,
        facts: &Facts<'_>,
        action: Action,
        name: &str,
        arguments: Option<&RawJson>,
    ) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let entry = guard.audit.is_some().then(|| {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let mut entry = Entry::new(guard.now(), Event::Decision, facts.server, action.method());
            entry = entry.by(&facts.caller);
            entry.id = Some(format!("{}-{number}", std::process::id()));
            entry.name = (!name.is_empty()).then(|| name.to_owned());
            entry.arguments = arguments.cloned();
            Box::new(entry)
        });
        Self { audit: guard.audit.clone(), clock: guard.clock.clone(), entry }
    }

    /// Logs the decision, and returns the start of the entry about the end of the call.
    fn decided(&mut self, decision: &'static str, by: DecidedBy, reason: &str) -> Option<Box<Entry>> {
        let entry = self.entry.take()?;
        if let Some(audit) = &self.audit {
            let mut reported = (*entry).clone();
            reported.time = (self.clock)();
            reported.decision = Some(decision);
            reported.by = Some(by);
            reported.reason = Some(reason.to_owned());
            audit.write(reported);
        }
        Some(entry)
    }

    pub(super) fn allowed(mut self, by: DecidedBy, reason: &str) -> Option<Box<Entry>> {
        self.decided("allow", by, reason)
    }

    pub(super) fn refused(mut self, refusal: Refusal) -> Refusal {
        let decision = match refusal.kind() {
            RefusalKind::Cancelled => "cancel",
            RefusalKind::Deferred => "ask",
            RefusalKind::Denied | RefusalKind::Declined | RefusalKind::Limited | RefusalKind::Unsafe => {
                "deny"
            }
        };
        self.decided(decision, refusal.by(), refusal.reason());
        refusal
    }
}

impl Drop for DecisionLog {
    fn drop(&mut self) {
        if let (Some(mut entry), Some(audit)) = (self.entry.take(), &self.audit) {
            entry.time = (self.clock)();
            entry.decision = Some("abandoned");
            audit.write(*entry);
        }
    }
}
