//! How often a call may notify its caller.
//!
//! Progress that comes too soon is held back and replaced by what follows it, so that the caller sees the latest state, a
//! little later. Log messages that come too soon are dropped and counted.

use bowline_proto::service::CallNotification;
use bowline_types::{LoggingLevel, RawJson};
use bytes::Bytes;
use tokio::time::Instant;

/// An allowance that is used up by notifications and refilled by time.
#[derive(Debug)]
struct Bucket {
    per_second: f64,
    allowance: f64,
    seen: Instant,
}

impl Bucket {
    fn new(per_second: u32, now: Instant) -> Self {
        let per_second = f64::from(per_second.max(1));
        Self { per_second, allowance: per_second, seen: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        let refill = now.duration_since(self.seen).as_secs_f64() * self.per_second;
        self.allowance = (self.allowance + refill).min(self.per_second);
        self.seen = now;
        let is_allowed = self.allowance >= 1.0;
        if is_allowed {
            self.allowance -= 1.0;
        }
        is_allowed
    }
}

/// The rate limits of one call.
#[derive(Debug)]
pub(super) struct NotificationRate {
    progress: Bucket,
    logs: Bucket,
    log_rate: u32,
    /// The latest progress that was not sent.
    held_back: Option<Bytes>,
    /// How many log messages were not sent.
    dropped: u64,
}

impl NotificationRate {
    pub(super) fn new(progress_rate: u32, log_rate: u32, now: Instant) -> Self {
        Self {
            progress: Bucket::new(progress_rate, now),
            logs: Bucket::new(log_rate, now),
            log_rate,
            held_back: None,
            dropped: 0,
        }
    }

    /// Returns whether a progress notification may be sent now. Otherwise it is stored.
    pub(super) fn admit_progress(&mut self, frame: &Bytes, now: Instant) -> bool {
        let is_admitted = self.progress.take(now);
        self.held_back = (!is_admitted).then(|| frame.clone());
        is_admitted
    }

    /// Returns whether a log message may be sent now. Otherwise it is counted.
    pub(super) fn admit_log(&mut self, now: Instant) -> bool {
        let is_admitted = self.logs.take(now);
        if !is_admitted {
            self.dropped += 1;
        }
        is_admitted
    }

    /// Takes the stored progress notification.
    pub(super) fn take_progress(&mut self) -> Option<Bytes> {
        self.held_back.take()
    }

    /// Takes a log message about dropped ones.
    pub(super) fn take_dropped(&mut self) -> Option<CallNotification> {
        let dropped = std::mem::take(&mut self.dropped);
        let text = format!("{dropped} log messages dropped: more than {} per second", self.log_rate);
        let data = RawJson::of(&text).ok().filter(|_| dropped > 0)?;
        Some(CallNotification::Log { level: LoggingLevel::Warning, logger: None, data })
    }
}
