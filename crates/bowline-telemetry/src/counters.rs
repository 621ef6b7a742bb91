//! Lock-free counters and histograms.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// A monotonic counter.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    pub(super) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The upper bounds of the buckets, as seconds and as text. From 10 ms on they are those that OpenTelemetry recommends
/// for MCP; local servers respond faster.
pub(super) const BOUNDS: [(f64, &str); 17] = [
    (0.001, "0.001"),
    (0.002, "0.002"),
    (0.005, "0.005"),
    (0.01, "0.01"),
    (0.02, "0.02"),
    (0.05, "0.05"),
    (0.1, "0.1"),
    (0.2, "0.2"),
    (0.5, "0.5"),
    (1.0, "1"),
    (2.0, "2"),
    (5.0, "5"),
    (10.0, "10"),
    (30.0, "30"),
    (60.0, "60"),
    (120.0, "120"),
    (300.0, "300"),
];

/// A histogram of durations.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// The number of values per bucket; the last bucket has no bound.
    buckets: [Counter; BOUNDS.len() + 1],
    nanoseconds: Counter,
}

impl Histogram {
    pub(super) fn record(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BOUNDS.partition_point(|(bound, _)| *bound < seconds);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.add(1);
        }
        self.nanoseconds.add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Returns the number of values up to each bound, and the total.
    pub(super) fn cumulative(&self) -> [u64; BOUNDS.len() + 1] {
        let mut sum = 0;
        self.buckets.each_ref().map(|bucket| {
            sum += bucket.value();
            sum
        })
    }

    pub(super) fn sum(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let histogram = Histogram::default();
        for micros in [0, 1_000, 1_001, 300_000_000, 300_000_001] {
            histogram.record(Duration::from_micros(micros));
        }
        let counts = histogram.cumulative();
        assert_eq!((counts[0], counts[1], counts[16], counts[17]), (2, 3, 4, 5));
        assert_eq!(histogram.sum(), Duration::from_micros(600_002_002));
    }

    #[test]
    fn bounds_are_written_as_they_are() {
        for (bound, text) in BOUNDS {
            assert_eq!(text.parse(), Ok(bound));
        }
        assert!(BOUNDS.is_sorted_by(|(left, _), (right, _)| left < right));
    }
}
