//! How long to wait before trying again.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// Delays between attempts to read a stream: exponential with full jitter, never shorter than the server asks for.
#[derive(Debug)]
pub(super) struct Backoff {
    longest: Duration,
    bound: Duration,
    /// What the server asked for last.
    asked: Duration,
}

const SHORTEST: Duration = Duration::from_millis(250);

impl Backoff {
    pub(super) fn new(longest: Duration) -> Self {
        Self { longest, bound: SHORTEST, asked: Duration::ZERO }
    }

    /// The server says how long to wait.
    pub(super) fn ask(&mut self, delay: Duration) {
        self.asked = delay;
    }

    /// Something useful came: the next delay is a short one again.
    pub(super) fn succeeded(&mut self) {
        self.bound = SHORTEST;
    }

    /// The next delay; later ones may be longer.
    pub(super) fn next(&mut self) -> Duration {
        let delay = share_of(self.bound, random());
        self.bound = self.bound.saturating_mul(2).min(self.longest);
        delay.max(self.asked)
    }
}

/// A random number, good enough to keep clients from coming back all at once.
fn random() -> u64 {
    RandomState::new().hash_one(0)
}

fn share_of(bound: Duration, random: u64) -> Duration {
    let nanoseconds = (bound.as_nanos() * u128::from(random)) >> 64;
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_never_hurried() {
        let mut backoff = Backoff::new(Duration::from_secs(30));
        backoff.ask(Duration::from_secs(3));
        for _ in 0..20 {
            assert!(backoff.next() >= Duration::from_secs(3));
        }
        backoff.ask(Duration::MAX);
        assert_eq!(backoff.next(), Duration::MAX);
    }

    #[test]
    fn delays_grow_to_the_longest_and_shrink_with_success() {
        let mut backoff = Backoff::new(Duration::from_secs(1));
        for bound in [250, 500, 1000, 1000] {
            assert_eq!(backoff.bound.as_millis(), bound);
            assert!(backoff.next().as_millis() <= bound);
        }
        backoff.succeeded();
        assert_eq!(backoff.bound, SHORTEST);
        assert_eq!(share_of(SHORTEST, 0), Duration::ZERO);
        assert!(share_of(SHORTEST, u64::MAX) < SHORTEST);
    }
}
