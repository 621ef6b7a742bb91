//! How a browser that only looks gets control: the person at the terminal is asked.

use crate::{inspector::Shared, keys::Holder, query::Grade, service::Failure};
use bowline_policy::{Question, Verdict};
use http::StatusCode;
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How long the terminal is asked.
const MAX_WAIT: Duration = Duration::from_secs(120);
/// How long nobody may ask after a refusal. It doubles with each further one, up to the maximum.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
const MAX_PAUSE: Duration = Duration::from_secs(3600);
/// How many digits the page shows.
const DIGITS: usize = 4;

/// Limits how often the terminal is asked. All browsers share it, because a program can open any number of links.
#[derive(Debug, Default)]
pub(crate) struct ControlRequests(Mutex<Limits>);

#[derive(Debug, Default)]
struct Limits {
    is_asking: bool,
    refusals: u32,
    /// Nobody may ask before this time.
    paused: Option<Instant>,
}

/// Why the terminal is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Busy {
    /// It is asked for another browser.
    Asking,
    /// Somebody was refused a short time ago.
    Paused(Duration),
}

/// The only question at a time. Ends as refused unless it is granted.
struct Turn<'a> {
    requests: &'a ControlRequests,
    is_granted: bool,
}

impl ControlRequests {
    fn limits(&self) -> MutexGuard<'_, Limits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, now: Instant) -> Result<Turn<'_>, Busy> {
        let mut limits = self.limits();
        if limits.is_asking {
            return Err(Busy::Asking);
        }
        let left = limits.paused.map(|until| until.saturating_duration_since(now));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            return Err(Busy::Paused(left));
        }
        limits.is_asking = true;
        Ok(Turn { requests: self, is_granted: false })
    }

    fn end(&self, is_granted: bool, now: Instant) {
        let mut limits = self.limits();
        limits.is_asking = false;
        if is_granted {
            (limits.refusals, limits.paused) = (0, None);
            return;
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << limits.refusals.min(16)).min(MAX_PAUSE);
        limits.refusals = limits.refusals.saturating_add(1);
        limits.paused = now.checked_add(pause);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // A tab that was closed counts as refused, so that it cannot be used to ask again at once.
        self.requests.end(self.is_granted, Instant::now());
    }
}

/// Asks the person at the terminal to give a browser control, and waits for the answer. Dropping the future withdraws the question.
pub(crate) async fn ask(shared: &Shared, holder: Holder, digits: String) -> Result<(), Failure> {
    if holder.grade == Grade::Control {
        return Ok(());
    }
    // Nothing else of the page reaches the terminal, so that it cannot pretend anything there.
    if digits.len() != DIGITS || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(Failure::invalid(format!("expected `digits` to be {DIGITS} digits")));
    }
    let terminal = shared.terminal.get().ok_or_else(|| {
        Failure::new(StatusCode::CONFLICT, "no terminal can be asked to let this browser act")
            .advise("start `bowline up` in a terminal, or set `control = true` in `[inspector]` of your configuration")
    })?;
    let mut turn = shared.control.begin(Instant::now()).map_err(|busy| match busy {
        Busy::Asking => Failure::new(StatusCode::TOO_MANY_REQUESTS, "the terminal is being asked already")
            .advise("answer that question in the terminal first"),
        Busy::Paused(left) => {
            let seconds = left.as_secs().max(1);
            Failure::new(StatusCode::TOO_MANY_REQUESTS, "the terminal has just refused a browser")
                .advise(format!("try again in {seconds} s, or open the link that `bowline up` printed"))
        }
    })?;
    let question = Question::Control { key: holder.number, digits };
    let refused = |reason: &str| Failure::new(StatusCode::FORBIDDEN, reason);
    match tokio::time::timeout(MAX_WAIT, terminal.ask(question)).await {
        Ok(Verdict::Allow(_)) => {
            turn.is_granted = true;
            if !shared.keys.grant(holder.number) {
                return Err(refused("this browser was signed out in the meantime"));
            }
            shared.recorder.access_changed();
            Ok(())
        }
        Ok(_) => Err(refused("the person at the terminal declined")),
        Err(_) => Err(refused("nobody answered at the terminal")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_browser_asks_at_a_time_and_refusals_pause_longer_and_longer() {
        let requests = ControlRequests::default();
        let start = Instant::now();
        let turn = requests.begin(start).map(|_| ()).map_err(|busy| panic!("{busy:?}"));
        assert!(turn.is_ok());
        // Dropped above, so it was refused.
        assert!(matches!(requests.begin(start), Err(Busy::Paused(_))));
        let mut now = start + MAX_PAUSE;
        let mut pauses = Vec::new();
        for _ in 0..8 {
            requests.limits().is_asking = true;
            assert!(matches!(requests.begin(now), Err(Busy::Asking)));
            requests.end(false, now);
            let Err(Busy::Paused(left)) = requests.begin(now) else { panic!("it does not pause") };
            pauses.push(left.as_secs());
            now += left;
        }
        assert_eq!(pauses, [120, 240, 480, 960, 1920, 3600, 3600, 3600]);
        requests.end(true, now);
        assert!(requests.begin(now).is_ok());
    }
}
