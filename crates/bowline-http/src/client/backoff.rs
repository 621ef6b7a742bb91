//! Delays before a stream is read again.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// The delays of [`bowline_client::Backoff`], but never shorter than the server asks for.
#[derive(Debug)]
pub(super) struct Backoff {
    delays: bowline_client::Backoff,
    /// The delay that the server asked for last.
    asked: Duration,
}

const SHORTEST: Duration = Duration::from_millis(250);

impl Backoff {
    pub(super) fn new(longest: Duration) -> Self {
        let delays = bowline_client::Backoff::new().delays(SHORTEST, longest);
        Self { delays, asked: Duration::ZERO }
    }

    /// Sets the delay that the server asks for.
    pub(super) fn ask(&mut self, delay: Duration) {
        self.asked = delay;
    }

    /// Resets the delays after something useful arrived.
    pub(super) fn succeeded(&mut self) {
        self.delays.succeeded();
    }

    /// Returns the next delay; later ones may be longer.
    pub(super) fn next(&mut self) -> Duration {
        // Good enough to keep clients from returning all at once.
        let random = RandomState::new().hash_one(0);
        self.delays.next_delay(random).max(self.asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_retry_delay_of_the_server_is_respected() {
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
            assert!(backoff.next().as_millis() <= bound);
        }
        backoff.succeeded();
        assert!(backoff.next() <= SHORTEST);
    }
}
