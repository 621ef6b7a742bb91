//! The limits of a server, each with its default.

use std::time::Duration;

/// What a server accepts from its clients and its handlers.
///
/// ```
/// use bowline_server::{Limits, Server};
///
/// let server = Server::new("demo").limits(Limits::default().frame(64 * 1024).rounds(3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest frame, in bytes.
    pub frame: usize,
    /// How many rounds of questions one call may have.
    pub rounds: u32,
    /// How long a question can be answered.
    pub question: Duration,
    /// How long calls may run after the client has disconnected.
    pub drain: Duration,
    /// How many bytes may wait to be written.
    pub backlog: usize,
    /// How often a silent legacy client is pinged.
    pub ping: Option<Duration>,
    /// How many progress notifications one call may send per second.
    pub progress_rate: u32,
    /// How many log messages one call may send per second.
    pub log_rate: u32,
}

impl Limits {
    /// Limits the length of a frame in bytes. Default: 4 MiB.
    #[must_use]
    pub fn frame(mut self, bytes: usize) -> Self {
        self.frame = bytes;
        self
    }

    /// Limits how many rounds of questions one call may have. Default: 10.
    #[must_use]
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }

    /// Limits how long a question can be answered. Default: 10 minutes.
    #[must_use]
    pub fn question(mut self, time: Duration) -> Self {
        self.question = time;
        self
    }

    /// Limits how long calls may run after the client has disconnected. Default: 5 seconds.
    #[must_use]
    pub fn drain(mut self, time: Duration) -> Self {
        self.drain = time;
        self
    }

    /// Limits how many bytes may wait to be written. Beyond that, progress and log messages are dropped and no further
    /// frame is read. Default: 1 MiB.
    #[must_use]
    pub fn backlog(mut self, bytes: usize) -> Self {
        self.backlog = bytes;
        self
    }

    /// Sets how often a legacy client that sends nothing is pinged on a byte stream. A client that stays silent for as long
    /// again is disconnected. Default: `None`, never.
    #[must_use]
    pub fn ping(mut self, interval: impl Into<Option<Duration>>) -> Self {
        self.ping = interval.into();
        self
    }

    /// Limits how many progress notifications one call may send per second, and in a burst. A later notification, at the
    /// latest when the call ends, makes up for those left out. Default: 20.
    #[must_use]
    pub fn progress_rate(mut self, per_second: u32) -> Self {
        self.progress_rate = per_second;
        self
    }

    /// Limits how many log messages one call may send per second, and in a burst. A message reports how many were left out.
    /// Default: 100.
    #[must_use]
    pub fn log_rate(mut self, per_second: u32) -> Self {
        self.log_rate = per_second;
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame: 4 * 1024 * 1024,
            rounds: 10,
            question: Duration::from_secs(600),
            drain: Duration::from_secs(5),
            backlog: 1024 * 1024,
            ping: None,
            progress_rate: 20,
            log_rate: 100,
        }
    }
}
