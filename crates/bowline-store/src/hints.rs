//! Hands what a bus hears to its subscribers.

use futures_core::stream::BoxStream;
use futures_util::stream;
use tokio::sync::broadcast;

use crate::Heard;

/// How many hints a slow subscriber may be behind.
const CAPACITY: usize = 1024;

/// The subscribers of a bus in this process. Engines send what they hear; a subscriber that falls behind gets [`Heard::Gap`].
///
/// ```
/// use bowline_store::{Heard, Hints};
/// use futures_util::StreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let hints = Hints::new();
/// let mut heard = hints.subscribe();
/// hints.send(Heard::Gap);
/// assert_eq!(heard.next().await, Some(Heard::Gap));
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Hints {
    sender: broadcast::Sender<Heard>,
}

impl Default for Hints {
    fn default() -> Self {
        Self::new()
    }
}

impl Hints {
    /// Without subscribers.
    pub fn new() -> Self {
        Self { sender: broadcast::Sender::new(CAPACITY) }
    }

    /// Sends to every subscriber of this process. It never waits.
    pub fn send(&self, heard: Heard) {
        // Fails if nobody listens.
        let _ = self.sender.send(heard);
    }

    /// Returns what is sent from now on. The stream ends when all senders are dropped.
    pub fn subscribe(&self) -> BoxStream<'static, Heard> {
        let next = |mut receiver: broadcast::Receiver<Heard>| async move {
            let heard = match receiver.recv().await {
                Ok(heard) => heard,
                Err(broadcast::error::RecvError::Lagged(_)) => Heard::Gap,
                Err(broadcast::error::RecvError::Closed) => return None,
            };
            Some((heard, receiver))
        };
        Box::pin(stream::unfold(self.sender.subscribe(), next))
    }

    /// Whether anybody listens.
    pub fn has_subscribers(&self) -> bool {
        self.sender.receiver_count() > 0
    }
}
