//! Encodes and decodes server-sent events.
//!
//! [`Decoder`] takes the body of a `text/event-stream` in whatever pieces the network delivers and yields the
//! events of the WHATWG standard. [`encode_event`] and [`encode_comment`] write such a body.

use std::time::Duration;

mod decode;
mod encode;

pub use decode::{Decoder, Limits, SseError};
pub use encode::{EncodeError, encode_comment, encode_event};

/// An event of a stream.
///
/// MCP has events without data (they only have an id or a delay), so a block with an `id` or `retry`
/// line but no `data` line is an event with empty `data`. A block with none of the three is dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The type of the event; `None` means `message`.
    pub event: Option<String>,
    /// The data lines, joined by line feeds.
    pub data: String,
    /// The id, if this event has one. See [`Decoder::last_id`] for the one to resume after.
    pub id: Option<String>,
    /// How long the server asks to wait before reconnecting.
    pub retry: Option<Duration>,
}

impl<'a> From<&'a Event> for EventRef<'a> {
    fn from(event: &'a Event) -> Self {
        Self {
            event: event.event.as_deref(),
            data: event.data.as_bytes(),
            id: event.id.as_deref(),
            retry: event.retry,
        }
    }
}

/// What [`encode_event`] writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventRef<'a> {
    /// The type of the event; `None` means `message`.
    pub event: Option<&'a str>,
    /// UTF-8 text, usually one JSON message.
    pub data: &'a [u8],
    /// The id that a client names when it resumes after this event.
    pub id: Option<&'a str>,
    /// How long a client should wait before reconnecting, in whole milliseconds.
    pub retry: Option<Duration>,
}
