//! Decides when a lost program is restarted, and when to give up.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Whether a lost program is restarted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Restart {
    /// The program is not restarted.
    Never,
    /// A program that exits unexpectedly is restarted after the delays of this backoff.
    AfterExit(Backoff),
}

impl Default for Restart {
    /// Restarts with the default delays and limits of [`Backoff`].
    fn default() -> Self {
        Self::AfterExit(Backoff::new())
    }
}

/// What to do after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retry {
    /// Retry after this time.
    After(Duration),
    /// Give up: too many failures within the window.
    GiveUp,
}

/// Exponential backoff with full jitter, and a limit on failures per time window.
///
/// The value has no clock or randomness; both are arguments. The upper bound of the delay doubles with every failure.
/// [`succeeded`](Self::succeeded) resets it; call that after a useful response, not when a connection merely opened.
/// Failures count against the limit even with successes in between, so a program that works briefly and crashes is not
/// restarted forever.
///
/// ```
/// use bowline_client::{Backoff, Retry};
/// use std::time::{Duration, Instant};
///
/// let mut backoff = Backoff::new();
/// let random = 1 << 63; // The middle of the range.
/// assert_eq!(backoff.failed(Instant::now(), random), Retry::After(Duration::from_millis(250)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    shortest: Duration,
    longest: Duration,
    limit: usize,
    window: Duration,
    /// The upper bound of the next delay.
    bound: Duration,
    /// The times of failures that may be within the window, oldest first, at most `limit`.
    failures: VecDeque<Instant>,
}

impl Backoff {
    /// Creates a backoff with bounds from 0.5 s to 30 s that gives up at the fifth failure within a minute.
    pub fn new() -> Self {
        let shortest = Duration::from_millis(500);
        Self {
            shortest,
            longest: Duration::from_secs(30),
            limit: 5,
            window: Duration::from_secs(60),
            bound: shortest,
            failures: VecDeque::new(),
        }
    }

    /// Sets the upper bound of the first delay, and the maximum delay.
    #[must_use]
    pub fn delays(mut self, shortest: Duration, longest: Duration) -> Self {
        self.shortest = shortest.min(longest);
        self.longest = longest;
        self.bound = self.shortest;
        self
    }

    /// Sets the number of failures within a time window after which to give up. Zero counts as one.
    #[must_use]
    pub fn give_up_after(mut self, failures: usize, window: Duration) -> Self {
        self.limit = failures.max(1);
        self.window = window;
        self
    }

    /// Records a failure at `now` and returns what to do. `random` must be uniform over `u64`.
    ///
    /// The delay is between zero and the current bound, so that many clients that lost a server do not reconnect at the
    /// same time.
    pub fn failed(&mut self, now: Instant, random: u64) -> Retry {
        while self.failures.front().is_some_and(|then| now.saturating_duration_since(*then) >= self.window) {
            self.failures.pop_front();
        }
        if self.failures.len() >= self.limit {
            self.failures.pop_front();
        }
        self.failures.push_back(now);
        if self.failures.len() >= self.limit {
            return Retry::GiveUp;
        }
        Retry::After(self.next_delay(random))
    }

    /// Returns a delay between zero and the current bound, and doubles the bound. Does not count a failure.
    pub fn next_delay(&mut self, random: u64) -> Duration {
        let delay = share_of(self.bound, random);
        self.bound = self.bound.saturating_mul(2).min(self.longest);
        delay
    }

    /// Records a useful response: the next delay is short again.
    pub fn succeeded(&mut self) {
        self.bound = self.shortest;
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

/// Maps `random` evenly to durations from zero to `bound`.
fn share_of(bound: Duration, random: u64) -> Duration {
    let bound = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
    let scaled = ((u128::from(bound) + 1) * u128::from(random)) >> 64;
    Duration::from_nanos(u64::try_from(scaled).unwrap_or(bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the delays in milliseconds after failures at these seconds; `None` means giving up.
    fn delays(backoff: &mut Backoff, start: Instant, random: u64, seconds: &[u32]) -> Vec<Option<u128>> {
        let retry = |second: &u32| match backoff.failed(start + SECOND * *second, random) {
            Retry::After(delay) => Some(delay.as_millis()),
            Retry::GiveUp => None,
        };
        seconds.iter().map(retry).collect()
    }

    #[test]
    fn bounds_double_from_half_a_second_to_thirty() {
        let delays =
            delays(&mut Backoff::new(), Instant::now(), u64::MAX, &[0, 60, 120, 180, 240, 300, 360, 420]);
        assert_eq!(delays, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000].map(Some));
    }

    #[test]
    fn jitter_covers_the_range_from_zero_to_the_bound() {
        for (random, expected) in [(0, 0), (1 << 62, 125), (1 << 63, 250), (u64::MAX, 500)] {
            assert_eq!(delays(&mut Backoff::new(), Instant::now(), random, &[0]), [Some(expected)]);
        }
    }

    #[test]
    fn only_success_shortens_the_delay() {
        let start = Instant::now();
        let mut backoff = Backoff::new();
        assert_eq!(delays(&mut backoff, start, u64::MAX, &[0, 100, 9999]), [500, 1000, 2000].map(Some));
        backoff.succeeded();
        assert_eq!(delays(&mut backoff, start, u64::MAX, &[20000]), [Some(500)]);
    }

    #[test]
    fn fifth_failure_within_a_minute_gives_up() {
        let delays = delays(&mut Backoff::new(), Instant::now(), u64::MAX, &[0, 15, 30, 45, 59]);
        assert_eq!(delays, [Some(500), Some(1000), Some(2000), Some(4000), None]);
    }

    #[test]
    fn failures_a_minute_apart_do_not_count_together() {
        let start = Instant::now();
        let mut backoff = Backoff::new();
        let first = delays(&mut backoff, start, 0, &[0, 15, 30, 45, 60, 75]);
        assert_eq!(first, [Some(0); 6]);
        assert_eq!(delays(&mut backoff, start, 0, &[76]), [None]);
    }

    #[test]
    fn success_does_not_hide_a_crash_loop() {
        let start = Instant::now();
        let mut backoff = Backoff::new();
        for second in 0..4 {
            assert_eq!(delays(&mut backoff, start, u64::MAX, &[second]), [Some(500)]);
            backoff.succeeded();
        }
        assert_eq!(delays(&mut backoff, start, u64::MAX, &[4]), [None]);
    }

    #[test]
    fn giving_up_ends_when_the_window_has_passed() {
        let start = Instant::now();
        let mut backoff = Backoff::new();
        let seconds = [0, 0, 0, 0, 0, 59, 120];
        assert_eq!(delays(&mut backoff, start, 0, &seconds)[4..], [None, None, Some(0)]);
    }

    #[test]
    fn a_clock_that_steps_back_is_not_an_error() {
        assert_eq!(delays(&mut Backoff::new(), Instant::now(), 0, &[100, 0]), [Some(0), Some(0)]);
    }

    #[test]
    fn settings_are_used() {
        let mut backoff = Backoff::new().delays(SECOND * 2, SECOND * 3).give_up_after(3, SECOND * 10);
        let seconds = [0, 1, 2, 20, 40];
        let expected = [Some(2000), Some(3000), None, Some(3000), Some(3000)];
        assert_eq!(delays(&mut backoff, Instant::now(), u64::MAX, &seconds), expected);
        assert_eq!(Backoff::new().give_up_after(0, SECOND).failed(Instant::now(), 0), Retry::GiveUp);
        let huge = Backoff::new().delays(Duration::MAX, Duration::MAX).failed(Instant::now(), u64::MAX);
        assert_eq!(huge, Retry::After(Duration::from_nanos(u64::MAX)));
    }
}
