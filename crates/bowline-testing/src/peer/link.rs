//! The connection of a peer, and the frames that were received but not taken.

#[cfg(feature = "http")]
use super::http::Http;
use super::{bytes::Bytes, history::History};
use serde_json::Value;
use std::{collections::VecDeque, io};
use tokio::io::{AsyncRead, AsyncWrite};

/// A received frame.
#[derive(Debug)]
pub(super) struct Arrived {
    /// The stream of the frame. Frames of one stream are in order; frames of different streams are not.
    pub(super) stream: u64,
    pub(super) text: String,
    /// `None` if the frame is not JSON.
    pub(super) value: Option<Value>,
}

/// Frames that were received but not taken.
#[derive(Debug, Default)]
pub(super) struct Inbox(VecDeque<Arrived>);

impl Inbox {
    pub(super) fn arrive(&mut self, stream: u64, frame: &[u8], history: &mut History) {
        let text = String::from_utf8_lossy(frame).trim().to_owned();
        history.received(&text);
        let value = serde_json::from_slice(frame).ok();
        self.0.push_back(Arrived { stream, text, value });
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A connection and its received frames.
pub(super) struct Link {
    wire: Wire,
    inbox: Inbox,
}

enum Wire {
    Bytes(Bytes),
    #[cfg(feature = "http")]
    Http(Box<Http>),
}

impl Link {
    pub(super) fn bytes(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self { wire: Wire::Bytes(Bytes::new(read, write)), inbox: Inbox::default() }
    }

    #[cfg(feature = "http")]
    pub(super) fn http(http: Http) -> Self {
        Self { wire: Wire::Http(Box::new(http)), inbox: Inbox::default() }
    }

    /// Returns whether all frames arrive on one stream, and therefore in order.
    pub(super) fn is_one_stream(&self) -> bool {
        match &self.wire {
            Wire::Bytes(_) => true,
            #[cfg(feature = "http")]
            Wire::Http(_) => false,
        }
    }

    /// Sends all bytes, and receives in the meantime.
    pub(super) async fn send(&mut self, bytes: &[u8], history: &mut History) -> io::Result<()> {
        match &mut self.wire {
            Wire::Bytes(wire) => wire.send(bytes, &mut self.inbox, history).await,
            #[cfg(feature = "http")]
            Wire::Http(wire) => wire.send(bytes, &mut self.inbox, history).await,
        }
    }

    /// Waits for another frame. Returns `false` if there will be none.
    pub(super) async fn more(&mut self, history: &mut History) -> bool {
        match &mut self.wire {
            Wire::Bytes(wire) => wire.more(&mut self.inbox, history).await,
            #[cfg(feature = "http")]
            Wire::Http(wire) => wire.more(&mut self.inbox, history).await,
        }
    }

    pub(super) async fn drain(&mut self, history: &mut History) {
        while self.more(history).await {}
    }

    /// Takes the first matching frame. A frame that is not JSON matches always.
    pub(super) fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Option<Arrived> {
        let position = self.inbox.0.iter().position(|arrived| arrived.value.as_ref().is_none_or(&wanted))?;
        self.inbox.0.remove(position)
    }

    /// Takes the first matching frame of those that are JSON.
    pub(super) fn find_json(&mut self, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        let position = self.inbox.0.iter().position(|arrived| arrived.value.as_ref().is_some_and(&wanted))?;
        self.inbox.0.remove(position)?.value
    }

    pub(super) fn pop(&mut self) -> Option<Arrived> {
        self.inbox.0.pop_front()
    }

    pub(super) async fn close_sending(&mut self) {
        match &mut self.wire {
            Wire::Bytes(wire) => wire.close_sending().await,
            #[cfg(feature = "http")]
            Wire::Http(wire) => wire.close_sending(),
        }
    }
}
