//! The parts that transports are built from.
//!
//! A [`Conversation`] is one client whose frames share a session: stdio and legacy HTTP. It accepts frames, starts calls and
//! sends the questions of the legacy era. A self-contained request of 2026-07-28 over HTTP has no session; [`respond`] runs
//! it. Both run their calls through the same `Exchange::run`. Replies go to the [`Sink`] that comes with each frame: one
//! for all frames of a byte stream, one per request over HTTP.

mod conversation;
mod exchange;
mod notification_rate;
mod question;

pub use crate::{
    hub::Listener,
    observe::{Observer, RawFrame, next_connection},
    random::{bytes as random_bytes, id as random_id},
};
use bowline_proto::encode;
use bowline_types::Id;
use bytes::Bytes;
pub use conversation::{Conversation, Setup, Started, poll_once, unix_time};
use exchange::Exchange;
pub use exchange::{Response, respond};
pub use question::{RemoteAnswers, is_unanswered};

/// Takes the frames of one stream to the client.
pub trait Sink: Send + Sync + 'static {
    /// Adds the frame that `write` appends to the buffer it is given, if it says that it did.
    ///
    /// Must not block. Called with locks of the conversation held, so it must not call back.
    fn write(&self, write: &mut dyn FnMut(&mut Vec<u8>) -> bool);

    /// Adds a frame that may be lost when the client reads slowly.
    fn offer(&self, frame: &[u8]);

    /// Disconnects the client, which reconnects for the rest. Does nothing where that is not possible.
    fn close_stream(&self) {}

    /// Adds the response to a request whose result, an object on one line, is encoded already and may be large. Where it
    /// can go out as it is, it need not be copied.
    fn push_response(&self, id: &Id, result: &Bytes) {
        self.write(&mut |out| {
            encode::write_response(out, id, result);
            true
        });
    }

    /// Adds a frame.
    fn push(&self, frame: &[u8]) {
        self.write(&mut |out| {
            out.extend_from_slice(frame);
            true
        });
    }
}
