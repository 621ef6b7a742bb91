//! The buffer: the latest messages, the calls they belong to, and what is found in them.

mod call;
mod connections;
mod find;
mod http;
mod recorder;
mod ring;
mod state;
mod tasks;
mod wire;

pub(crate) use connections::PAGE;
pub(crate) use recorder::{QuestionEnd, Recorder};
pub(crate) use ring::{Body, Ring, Stored, Window};
pub(crate) use state::now;

/// Returns how many heads of a ring were replaced so far.
pub(crate) fn updated(ring: &Ring) -> u64 {
    ring.updated()
}
