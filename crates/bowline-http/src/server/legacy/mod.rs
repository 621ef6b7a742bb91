//! Sessions over HTTP: 2025-03-26 to 2025-11-25, and the two-endpoint transport of 2024-11-05.
//!
//! A session has any number of streams: one for each POST that has more to say than its response, and a standing one for
//! what belongs to no request. A stream outlives the connection that reads it; a client that comes back names the last
//! event it saw and goes on behind it.

mod get;
mod log;
mod post;
mod reader;
mod sealed;
mod session;
mod sse;
mod stream;

pub(super) use get::{end, get};
pub use log::{EventLog, EventStore, MemoryEvents};
pub(super) use post::{open, post};
pub(super) use reader::Reader;
pub(super) use sealed::{not_allowed as not_allowed_sealed, open as open_sealed};
pub(super) use session::{SESSION_ID, Session, Sessions};
pub(super) use sse::{message_2024, stream_2024};
#[cfg(feature = "store")]
pub(super) use {
    reader::encode_logged,
    stream::{Batch, MAX_BATCH, Stream},
};
