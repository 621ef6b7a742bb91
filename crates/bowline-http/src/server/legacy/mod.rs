//! Sessions over HTTP: 2025-03-26 to 2025-11-25, and the two-endpoint transport of 2024-11-05.
//!
//! A session has any number of streams: one for each POST whose call sends more than its response, and one for
//! messages that belong to no request. A stream outlives the connection that reads it; a client that resumes it names the
//! last event that it received and continues after it.

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
