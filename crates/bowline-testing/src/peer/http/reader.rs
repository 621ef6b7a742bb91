//! One stream of the server, read to its end.

use super::{
    ENDPOINT,
    request::{Outgoing, Reply},
    session::Session,
};
use serde_json::Value;
use std::{net::SocketAddr, time::Duration};
use tokio::sync::mpsc;

/// A frame, or what came in place of one.
pub(super) struct Heard {
    pub(super) stream: u64,
    pub(super) text: String,
}

/// Reads a stream to its end.
pub(super) struct Reader {
    pub(super) reply: Reply,
    pub(super) stream: u64,
    pub(super) ear: mpsc::Sender<Heard>,
}

impl Reader {
    /// A server may hang up on a call and have its client come back: that is done until the response is there, or nothing
    /// comes any more.
    pub(super) async fn run(mut self, back: Option<(SocketAddr, Session)>) {
        let (mut last, mut retry) = (None, Duration::ZERO);
        loop {
            let (mut answered, mut news) = (false, false);
            loop {
                match self.reply.event().await {
                    Ok(Some(event)) => {
                        retry = event.retry.unwrap_or(retry);
                        news |= event.id.is_some();
                        last = event.id.clone().or(last);
                        let Some(message) = event.into_message() else { continue };
                        answered |= is_response(&message);
                        self.tell(message).await;
                    }
                    Ok(None) => break,
                    Err(error) => return self.tell(format!("the stream broke: {error}")).await,
                }
            }
            let (Some((to, session @ Session::Named { .. })), Some(last)) = (&back, &last) else { return };
            if answered || !news {
                return;
            }
            tokio::time::sleep(retry).await;
            let again = session.own(Outgoing::get(ENDPOINT)).header("last-event-id", last);
            match again.send(*to, b"").await {
                Ok(reply) if reply.is_stream() => self.reply = reply,
                // Its session is over, and so is the stream.
                _ => return,
            }
        }
    }

    async fn tell(&self, text: String) {
        // Nobody is left to hear of it when the peer is gone.
        let _ = self.ear.send(Heard { stream: self.stream, text }).await;
    }
}

fn is_response(message: &str) -> bool {
    let message: Value = serde_json::from_str(message).unwrap_or_default();
    message.get("method").is_none()
}
