//! Counts the usage of each server and enforces limits.

use super::{
    error::{Cap, SampleError},
    settings::Caps,
};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// The resolution of the hourly limit.
const MINUTE: Duration = Duration::from_secs(60);
/// The usage of a minute counts until the whole minute is an hour old.
const KEPT: Duration = Duration::from_secs(61 * 60);

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) output: u64,
}

impl Tokens {
    fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// The usage of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The number of admitted calls.
    pub calls: u64,
    /// The number of input tokens.
    pub input_tokens: u64,
    /// The number of output tokens.
    pub output_tokens: u64,
    /// The number of tokens in the last hour.
    pub tokens_in_hour: u64,
}

#[derive(Debug)]
pub(super) struct UsageTracker {
    caps: Caps,
    servers: Mutex<HashMap<String, ServerUsage>>,
}

#[derive(Debug, Default)]
struct ServerUsage {
    calls: u64,
    used: Tokens,
    /// Tokens reserved for running calls.
    reserved: u64,
    under_way: u64,
    minutes: VecDeque<Minute>,
}

#[derive(Debug)]
struct Minute {
    start: Instant,
    tokens: u64,
    calls: u64,
}

impl ServerUsage {
    fn forget_before(&mut self, now: Instant) {
        while self.minutes.front().is_some_and(|minute| now.duration_since(minute.start) >= KEPT) {
            self.minutes.pop_front();
        }
    }

    /// Returns the bucket of a time, unless it has expired.
    fn minute(&mut self, at: Instant) -> Option<&mut Minute> {
        self.minutes.iter_mut().rev().find(|minute| minute.start <= at)
    }

    fn begin(&mut self, now: Instant) {
        if self.minutes.back().is_none_or(|minute| now.duration_since(minute.start) >= MINUTE) {
            self.minutes.push_back(Minute { start: now, tokens: 0, calls: 0 });
        }
        if let Some(minute) = self.minutes.back_mut() {
            minute.calls = minute.calls.saturating_add(1);
        }
        self.calls = self.calls.saturating_add(1);
        self.under_way += 1;
    }

    fn in_hour(&self, count: impl Fn(&Minute) -> u64) -> u64 {
        self.minutes.iter().map(count).fold(0, u64::saturating_add)
    }
}

impl UsageTracker {
    pub(super) fn new(caps: Caps) -> Arc<Self> {
        Arc::new(Self { caps, servers: Mutex::default() })
    }

    /// Reserves tokens for a call: the estimated input, and the maximum output, which may be less than `wanted`.
    pub(super) fn reserve(
        self: &Arc<Self>,
        server: &str,
        now: Instant,
        input: u64,
        wanted: u64,
    ) -> Result<Reservation, SampleError> {
        let mut servers = self.servers();
        let account = servers.entry(server.to_owned()).or_default();
        account.forget_before(now);
        let caps = &self.caps;
        if account.under_way >= caps.calls_at_once {
            return Err(SampleError::capped(Cap::CallsAtOnce, caps.calls_at_once));
        }
        if let Some(limit) = caps.calls_per_hour
            && account.in_hour(|minute| minute.calls) >= limit
        {
            return Err(SampleError::capped(Cap::CallsPerHour, limit));
        }
        let mut output = wanted.min(caps.tokens_per_call);
        let limits = [
            (Cap::TokensPerRun, Some(caps.tokens_per_run), account.used.total()),
            (Cap::TokensPerHour, caps.tokens_per_hour, account.in_hour(|minute| minute.tokens)),
        ];
        for (cap, limit, used) in limits {
            let Some(limit) = limit else { continue };
            let left = limit.saturating_sub(used).saturating_sub(account.reserved).saturating_sub(input);
            if left == 0 {
                return Err(SampleError::capped(cap, limit));
            }
            output = output.min(left);
        }
        let tokens = Tokens { input, output };
        account.reserved = account.reserved.saturating_add(tokens.total());
        account.begin(now);
        Ok(Reservation {
            tracker: Arc::clone(self),
            server: server.to_owned(),
            at: now,
            tokens,
            used: tokens,
        })
    }

    pub(super) fn usage(&self, server: &str, now: Instant) -> Usage {
        let mut servers = self.servers();
        let Some(account) = servers.get_mut(server) else { return Usage::default() };
        account.forget_before(now);
        Usage {
            calls: account.calls,
            input_tokens: account.used.input,
            output_tokens: account.used.output,
            tokens_in_hour: account.in_hour(|minute| minute.tokens),
        }
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<String, ServerUsage>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tokens reserved for one call. They count as used unless [`charge_actual`](Self::charge_actual) is called, because the cost of an
/// aborted call is unknown.
#[derive(Debug)]
pub(super) struct Reservation {
    tracker: Arc<UsageTracker>,
    server: String,
    at: Instant,
    tokens: Tokens,
    used: Tokens,
}

impl Reservation {
    /// Returns the maximum number of output tokens.
    pub(super) fn output(&self) -> u64 {
        self.tokens.output
    }

    /// Replaces the reservation by the actual usage.
    pub(super) fn charge_actual(mut self, used: Tokens) {
        self.used = used;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut servers = self.tracker.servers();
        let Some(account) = servers.get_mut(&self.server) else { return };
        account.under_way = account.under_way.saturating_sub(1);
        account.reserved = account.reserved.saturating_sub(self.tokens.total());
        account.used.input = account.used.input.saturating_add(self.used.input);
        account.used.output = account.used.output.saturating_add(self.used.output);
        if let Some(minute) = account.minute(self.at) {
            minute.tokens = minute.tokens.saturating_add(self.used.total());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::SampleErrorKind;

    fn used(input: u64, output: u64) -> Tokens {
        Tokens { input, output }
    }

    fn refused(tracker: &Arc<UsageTracker>, now: Instant, input: u64) -> Cap {
        match tracker.reserve("s", now, input, 100).unwrap_err().kind() {
            SampleErrorKind::Capped(cap) => cap,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_call_is_limited_to_the_tokens_per_call() {
        let tracker = UsageTracker::new(Caps::new().tokens_per_call(50));
        let now = Instant::now();
        assert_eq!(tracker.reserve("s", now, 1, 49).unwrap().output(), 49);
        assert_eq!(tracker.reserve("s", now, 1, 50).unwrap().output(), 50);
        assert_eq!(tracker.reserve("s", now, 1, 51).unwrap().output(), 50);
    }

    #[test]
    fn the_limit_of_a_run_is_checked_before_and_after_calls() {
        // V-103
        let tracker = UsageTracker::new(Caps::new().tokens_per_run(100));
        let now = Instant::now();
        tracker.reserve("s", now, 10, 50).unwrap().charge_actual(used(20, 50));
        // 30 are left, of which 10 are read.
        let second = tracker.reserve("s", now, 10, 50).unwrap();
        assert_eq!(second.output(), 20);
        assert_eq!(refused(&tracker, now, 1), Cap::TokensPerRun);
        second.charge_actual(used(10, 19));
        assert_eq!(refused(&tracker, now, 1), Cap::TokensPerRun);
        assert_eq!(tracker.reserve("s", now, 0, 50).unwrap().output(), 1);
        // Another server has its own.
        assert_eq!(tracker.reserve("other", now, 10, 50).unwrap().output(), 50);
    }

    #[test]
    fn usage_beyond_the_limit_counts_too() {
        let tracker = UsageTracker::new(Caps::new().tokens_per_run(100));
        let now = Instant::now();
        tracker.reserve("s", now, 1, 10).unwrap().charge_actual(used(u64::MAX, u64::MAX));
        assert_eq!(refused(&tracker, now, 0), Cap::TokensPerRun);
        assert_eq!(tracker.usage("s", now).input_tokens, u64::MAX);
    }

    #[test]
    fn an_hour_ends() {
        let tracker = UsageTracker::new(Caps::new().tokens_per_hour(100));
        let start = Instant::now();
        tracker.reserve("s", start, 1, 10).unwrap().charge_actual(used(50, 40));
        let soon = start + Duration::from_secs(59);
        tracker.reserve("s", soon, 1, 5).unwrap().charge_actual(used(5, 5));
        assert_eq!(refused(&tracker, soon, 1), Cap::TokensPerHour);
        // An hour after the last call, nothing of the first minute has expired too early.
        assert_eq!(refused(&tracker, soon + Duration::from_secs(3600), 1), Cap::TokensPerHour);
        let later = start + Duration::from_secs(3660);
        assert_eq!(tracker.usage("s", later).tokens_in_hour, 0);
        assert_eq!(tracker.reserve("s", later, 1, 10).unwrap().output(), 10);
        assert_eq!(tracker.usage("s", later).calls, 3);
    }

    #[test]
    fn calls_are_counted_by_the_hour_and_at_once() {
        // V-103
        // proves: SAMP-35
        let tracker = UsageTracker::new(Caps::new().calls_per_hour(3).calls_at_once(2));
        let now = Instant::now();
        let first = tracker.reserve("s", now, 0, 1).unwrap();
        let second = tracker.reserve("s", now, 0, 1).unwrap();
        assert_eq!(refused(&tracker, now, 0), Cap::CallsAtOnce);
        drop(first);
        tracker.reserve("s", now, 0, 1).unwrap().charge_actual(used(0, 0));
        assert_eq!(refused(&tracker, now, 0), Cap::CallsPerHour);
        drop(second);
        assert!(tracker.reserve("s", now + KEPT, 0, 1).is_ok());
    }

    #[test]
    fn an_interrupted_call_counts_in_full() {
        let tracker = UsageTracker::new(Caps::new());
        let now = Instant::now();
        drop(tracker.reserve("s", now, 7, 30).unwrap());
        let usage = Usage { calls: 1, input_tokens: 7, output_tokens: 30, tokens_in_hour: 37 };
        assert_eq!(tracker.usage("s", now), usage);
        assert_eq!(tracker.usage("nobody", now), Usage::default());
    }
}
