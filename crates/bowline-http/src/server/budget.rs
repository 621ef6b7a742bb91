//! How much the bodies of all requests may take together.

use bytes::Bytes;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// From this length on a body counts until the last slice of it is gone; shorter ones count only while they arrive, since
/// the connection they came on takes as much.
const TRACKED: usize = 16 * 1024;

/// The budget for all bodies.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    limit: usize,
    taken: Arc<AtomicUsize>,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, taken: Arc::default() }
    }

    /// Returns an empty share for one body.
    pub(super) fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }
}

/// The part of the budget that one body uses. It is returned on drop.
#[derive(Debug)]
pub(super) struct Share {
    budget: Budget,
    bytes: usize,
}

impl Share {
    /// Reserves more bytes. Returns `false` if the budget is exhausted.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let before = self.budget.taken.fetch_add(bytes, Ordering::Relaxed);
        // The added bytes are returned with the rest, even if they were too many.
        self.bytes += bytes;
        before.saturating_add(bytes) <= self.budget.limit
    }

    /// Ties the share to the lifetime of its body.
    pub(super) fn bind(self, body: Bytes) -> Bytes {
        if body.len() < TRACKED { body } else { Bytes::from_owner(Bound { body, _share: self }) }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

struct Bound {
    body: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Bound {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_released_with_the_last_slice() {
        let budget = Budget::new(100_000);
        let mut first = budget.share();
        assert!(first.grow(60_000));
        let body = first.bind(Bytes::from(vec![0; 60_000]));
        let slice = body.slice(10..20);
        drop(body);
        assert!(!budget.share().grow(60_000));
        drop(slice);
        let mut second = budget.share();
        assert!(second.grow(60_000) && second.grow(40_000) && !second.grow(1));
        drop(second);
        assert_eq!(budget.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_short_body_counts_against_the_limit_while_it_arrives() {
        let budget = Budget::new(1000);
        let mut share = budget.share();
        assert!(share.grow(900));
        assert!(!budget.share().grow(900));
        let _body = share.bind(Bytes::from(vec![0; 900]));
        assert!(budget.share().grow(900));
    }
}
