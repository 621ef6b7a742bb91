//! Reads one stream of the server to its end.

use super::{
    ENDPOINT,
    request::{Outgoing, Reply},
    session::Session,
};
use serde_json::Value;
use std::{net::SocketAddr, time::Duration};
use tokio::sync::mpsc;

/// A received frame, or a description of what was received instead.
pub(super) struct ReceivedFrame {
    pub(super) stream: u64,
    pub(super) text: String,
}

/// Reads one stream to its end.
pub(super) struct Reader {
    pub(super) reply: Reply,
    pub(super) stream: u64,
    pub(super) sender: mpsc::Sender<ReceivedFrame>,
}

impl Reader {
    /// Reads the stream. If the server closes it before the response, resumes it until the response arrives or nothing
    /// more comes.
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
                        self.report(message).await;
                    }
                    Ok(None) => break,
                    Err(error) => return self.report(format!("the stream broke: {error}")).await,
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
                // The session has ended, and with it the stream.
                _ => return,
            }
        }
    }

    async fn report(&self, text: String) {
        // The peer may be gone.
        let _ = self.sender.send(ReceivedFrame { stream: self.stream, text }).await;
    }
}

fn is_response(message: &str) -> bool {
    let message: Value = serde_json::from_str(message).unwrap_or_default();
    message.get("method").is_none()
}
