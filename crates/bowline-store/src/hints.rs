//! Passes the hints of a bus to its subscribers.

use futures_core::stream::BoxStream;
use futures_util::stream;
use tokio::sync::broadcast;

use crate::BusEvent;

/// How many hints a slow subscriber may be behind.
const CAPACITY: usize = 1024;

/// The subscribers of a bus in this process. Engines send what they receive; a subscriber that falls behind gets [`BusEvent::Gap`].
///
/// ```
/// use bowline_store::{BusEvent, Hints};
/// use futures_util::StreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let hints = Hints::new();
/// let mut events = hints.subscribe();
/// hints.send(BusEvent::Gap);
/// assert_eq!(events.next().await, Some(BusEvent::Gap));
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Hints {
    sender: broadcast::Sender<BusEvent>,
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
    pub fn send(&self, event: BusEvent) {
        // Fails if nobody listens.
        let _ = self.sender.send(event);
    }

    /// Returns what is sent from now on. The stream ends when all senders are dropped.
    pub fn subscribe(&self) -> BoxStream<'static, BusEvent> {
        let next = |mut receiver: broadcast::Receiver<BusEvent>| async move {
            let event = match receiver.recv().await {
                Ok(event) => event,
                Err(broadcast::error::RecvError::Lagged(_)) => BusEvent::Gap,
                Err(broadcast::error::RecvError::Closed) => return None,
            };
            Some((event, receiver))
        };
        Box::pin(stream::unfold(self.sender.subscribe(), next))
    }

    /// Whether anybody listens.
    pub fn has_subscribers(&self) -> bool {
        self.sender.receiver_count() > 0
    }
}
