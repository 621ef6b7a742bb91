//! Requests that wait for a response, and their timeouts.

use bowline_types::Id;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// Timeouts of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Maximum time without a response or progress.
    pub silence: Duration,
    /// Maximum total time, regardless of progress.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { silence: Duration::from_secs(60), total: Duration::from_secs(3600) }
    }
}

#[derive(Debug)]
struct Entry<T> {
    waiter: T,
    timeouts: Timeouts,
    quiet_until: Instant,
    end: Instant,
}

/// The requests that one side sent and that are not answered yet.
///
/// Removing a waiter settles its request: a response, a timeout and a cancellation can race, and exactly
/// one of them wins.
#[derive(Debug)]
pub struct Pending<T> {
    next: i64,
    entries: HashMap<Id, Entry<T>>,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self { next: 1, entries: HashMap::new() }
    }
}

impl<T> Pending<T> {
    /// Returns an id that was never used on this connection.
    pub fn next_id(&mut self) -> Id {
        let id = Id::Number(self.next);
        self.next += 1;
        id
    }

    /// Starts waiting for the response to `id`.
    pub fn insert(&mut self, id: Id, waiter: T, timeouts: Timeouts, now: Instant) {
        let end = after(now, timeouts.total);
        let quiet_until = after(now, timeouts.silence).min(end);
        self.entries.insert(id, Entry { waiter, timeouts, quiet_until, end });
    }

    /// Settles `id` and returns its waiter; `None` if it is not waiting.
    pub fn take(&mut self, id: &Id) -> Option<T> {
        self.entries.remove(id).map(|entry| entry.waiter)
    }

    /// Returns the waiter of an unanswered request.
    pub fn peek(&self, id: &Id) -> Option<&T> {
        self.entries.get(id).map(|entry| &entry.waiter)
    }

    /// Iterates over the waiters of unanswered requests.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.values().map(|entry| &entry.waiter)
    }

    /// Restarts the idle timeout of a request; its total timeout continues.
    pub fn touch(&mut self, id: &Id, now: Instant) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.quiet_until = after(now, entry.timeouts.silence).min(entry.end);
        }
    }

    /// Restarts the idle timeouts of all requests; their total timeouts continue.
    pub fn touch_all(&mut self, now: Instant) {
        for entry in self.entries.values_mut() {
            entry.quiet_until = after(now, entry.timeouts.silence).min(entry.end);
        }
    }

    /// Removes and returns the requests that timed out at `now`.
    pub fn expire(&mut self, now: Instant) -> Vec<(Id, T)> {
        self.entries
            .extract_if(|_, entry| entry.quiet_until <= now)
            .map(|(id, entry)| (id, entry.waiter))
            .collect()
    }

    /// Returns when `id` times out; `None` if it is settled.
    pub fn deadline_of(&self, id: &Id) -> Option<Instant> {
        self.entries.get(id).map(|entry| entry.quiet_until)
    }

    /// Returns when the next request times out.
    pub fn deadline(&self) -> Option<Instant> {
        self.entries.values().map(|entry| entry.quiet_until).min()
    }

    /// Removes and returns all requests, for when the connection is closed.
    pub fn drain(&mut self) -> Vec<(Id, T)> {
        self.entries.drain().map(|(id, entry)| (id, entry.waiter)).collect()
    }

    /// Returns the number of waiting requests.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether no request is waiting.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Adds a timeout to a time. If the result cannot be represented, returns a time in a hundred years.
fn after(now: Instant, duration: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 366 * 24 * 3600);
    now + duration.min(CENTURY)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: Timeouts = Timeouts { silence: Duration::from_secs(10), total: Duration::from_secs(25) };

    #[test]
    fn ids_are_never_used_twice() {
        let mut pending = Pending::<()>::default();
        let ids: Vec<_> = (0..3).map(|_| pending.next_id()).collect();
        assert_eq!(ids, [Id::Number(1), Id::Number(2), Id::Number(3)]);
    }

    #[test]
    fn progress_resets_the_idle_timeout_but_not_the_total() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut pending = Pending::default();
        pending.insert(Id::Number(1), "call", TIMEOUTS, start);
        assert!(pending.expire(at(9)).is_empty());
        pending.touch(&Id::Number(1), at(9));
        assert!(pending.expire(at(18)).is_empty());
        pending.touch(&Id::Number(1), at(18));
        assert_eq!(pending.deadline(), Some(at(25)));
        assert_eq!(pending.expire(at(25)), [(Id::Number(1), "call")]);
        assert!(pending.is_empty());
    }

    #[test]
    fn exactly_one_settles_a_request() {
        let mut pending = Pending::default();
        pending.insert(Id::Number(1), (), TIMEOUTS, Instant::now());
        assert!(pending.take(&Id::Number(1)).is_some());
        assert!(pending.take(&Id::Number(1)).is_none());
        assert!(pending.take(&Id::Number(2)).is_none());
    }

    #[test]
    fn no_timeout_is_too_long() {
        let mut pending = Pending::default();
        let endless = Timeouts { silence: Duration::MAX, total: Duration::MAX };
        pending.insert(Id::Number(1), (), endless, Instant::now());
        pending.touch(&Id::Number(1), Instant::now());
        assert!(pending.deadline() > Some(Instant::now()));
    }
}
