//! The limits of a server, each with its default.

use std::time::Duration;

/// How much a server takes before it says no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest frame, in bytes: 4 MiB.
    pub frame: usize,
    /// How often one call may ask before it is taken for a loop: 10.
    pub rounds: u32,
    /// How long an unanswered question stays answerable: 10 minutes.
    pub question: Duration,
    /// How long calls may go on after the client has gone: 5 seconds.
    pub drain: Duration,
    /// How many bytes may wait to be written before progress and log messages are dropped and no further frame is
    /// read: 1 MiB.
    pub backlog: usize,
    /// How often a legacy client that sends nothing is pinged on a byte stream; `None`, as by default, for never. One that
    /// sends nothing for as long again is gone.
    pub ping: Option<Duration>,
    /// How many progress notifications one call may send per second, and in a burst: 20. What is left out is made up for
    /// by the next one, at the latest when the call ends.
    pub progress_rate: u32,
    /// How many log messages one call may send per second, and in a burst: 100. A message says how many were left out.
    pub log_rate: u32,
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
