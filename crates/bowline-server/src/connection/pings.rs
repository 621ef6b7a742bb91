//! Decides when a silent client is pinged.

use crate::transport::{Conversation, Sink};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The pings of one connection.
#[derive(Debug)]
pub(super) struct Pings {
    interval: Option<Duration>,
    due: Instant,
    /// Whether the client has sent nothing since it was pinged.
    unanswered: bool,
}

impl Pings {
    pub(super) fn new(interval: Option<Duration>) -> Self {
        Self { interval, due: Instant::now() + interval.unwrap_or_default(), unanswered: false }
    }

    /// Records that the client has sent something, which shows that it is alive.
    pub(super) fn received(&mut self) {
        if let Some(interval) = self.interval {
            self.due = Instant::now() + interval;
            self.unanswered = false;
        }
    }

    /// Waits until a ping is due and sends it. False when the last one was not answered. Dropping the future changes
    /// nothing.
    pub(super) async fn next(&mut self, conversation: &Conversation, sink: &dyn Sink) -> bool {
        let Some(interval) = self.interval else { return std::future::pending().await };
        sleep_until(self.due).await;
        if self.unanswered {
            #[cfg(feature = "tracing")]
            tracing::warn!(seconds = interval.as_secs_f64(), "a client does not answer pings");
            return false;
        }
        self.unanswered = conversation.ping(sink);
        self.due = Instant::now() + interval;
        true
    }
}
