//! Limits the rate of notifications of a server.

use crate::shared::{lock, now};
use std::{sync::Mutex, time::Instant};

/// Admits this many notifications per second, and twice as many in a burst.
#[derive(Debug)]
pub(crate) struct RateLimit {
    per_second: f64,
    state: Mutex<Option<State>>,
}

#[derive(Debug)]
struct State {
    allowance: f64,
    seen: Instant,
    dropped: u64,
}

/// The result for a notification.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rated {
    /// It is passed on. `dropped` ones were dropped before it.
    Pass { dropped: u64 },
    /// It is dropped. `is_first` marks the first one after a notification that was passed on.
    Drop { is_first: bool },
}

impl RateLimit {
    pub(crate) fn new(per_second: u32) -> Self {
        Self { per_second: f64::from(per_second.max(1)), state: Mutex::new(None) }
    }

    pub(crate) fn take(&self) -> Rated {
        let (now, burst) = (now(), 2.0 * self.per_second);
        let mut state = lock(&self.state);
        let state = state.get_or_insert(State { allowance: burst, seen: now, dropped: 0 });
        let refill = now.duration_since(state.seen).as_secs_f64() * self.per_second;
        state.allowance = (state.allowance + refill).min(burst);
        state.seen = now;
        if state.allowance < 1.0 {
            state.dropped += 1;
            return Rated::Drop { is_first: state.dropped == 1 };
        }
        state.allowance -= 1.0;
        Rated::Pass { dropped: std::mem::take(&mut state.dropped) }
    }
}
