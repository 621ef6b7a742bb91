//! Writes refused requests to the audit log, at a limited rate: anybody can send them.

use bowline_http::AccessRefusal;
use bowline_policy::{
    DecidedBy,
    audit::{Audit, Entry, Event},
};
use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

/// How many refusals are written per minute: of requests with a verified token, and of all others.
const MAX_PER_MINUTE: u32 = 60;
const MINUTE: Duration = Duration::from_secs(60);

/// The refusals of one gateway.
#[derive(Debug)]
pub(super) struct RefusalLog {
    audit: Audit,
    /// Requests without a valid token must not use up the lines of known users.
    known: Mutex<Window>,
    unknown: Mutex<Window>,
}

/// What was written in the current minute.
#[derive(Debug, Default)]
struct Window {
    started: Option<Instant>,
    written: u32,
    suppressed: u64,
}

impl Window {
    /// Whether a line may be written at `now`: then how many were left out before it.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        let is_over = self.started.is_none_or(|started| now.duration_since(started) >= MINUTE);
        if is_over {
            (self.started, self.written) = (Some(now), 0);
        }
        if self.written >= MAX_PER_MINUTE {
            self.suppressed += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

impl RefusalLog {
    pub(super) fn new(audit: Audit) -> Self {
        Self { audit, known: Mutex::default(), unknown: Mutex::default() }
    }

    /// Records a request that was refused because of its access token.
    pub(super) fn record(&self, refusal: &AccessRefusal<'_>) {
        let window = if refusal.caller().is_some() { &self.known } else { &self.unknown };
        self.write(window, || {
            let mut entry = entry();
            if let Some(caller) = refusal.caller() {
                entry = entry.with_token(caller);
            }
            entry.token_digest = refusal.token_digest();
            let required = refusal.required_scopes().map(|scopes| format!("; required: {scopes}"));
            entry.reason = Some(format!(
                "{}: {}{}",
                refusal.kind().as_str(),
                refusal.reason(),
                required.unwrap_or_default()
            ));
            entry
        });
    }

    /// Records a request without the token of the gateway.
    pub(super) fn record_token(&self) {
        self.write(&self.unknown, || Entry { reason: Some("missing or invalid token".into()), ..entry() });
    }

    fn write(&self, window: &Mutex<Window>, entry: impl FnOnce() -> Entry) {
        let admitted = window.lock().unwrap_or_else(PoisonError::into_inner).admit(Instant::now());
        if let Some(suppressed) = admitted {
            let suppressed = Some(suppressed).filter(|count| *count > 0);
            self.audit.write(Entry { suppressed, ..entry() });
        }
    }
}

fn entry() -> Entry {
    let mut entry = Entry::new(SystemTime::now(), Event::Refusal, "", "");
    (entry.decision, entry.by) = (Some("deny"), Some(DecidedBy::Check));
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_written() {
        let mut window = Window::default();
        let start = Instant::now();
        for _ in 0..MAX_PER_MINUTE {
            assert_eq!(window.admit(start), Some(0));
        }
        for _ in 0..1000 {
            assert_eq!(window.admit(start + Duration::from_secs(59)), None);
        }
        assert_eq!(window.admit(start + MINUTE), Some(1000));
        assert_eq!(window.admit(start + MINUTE), Some(0));
    }
}
