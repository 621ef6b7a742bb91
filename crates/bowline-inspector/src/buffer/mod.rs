//! The buffer: the latest messages, the calls they belong to, and what is found in them.

mod call;
mod find;
mod recorder;
mod ring;
mod wire;

pub(crate) use recorder::now;
pub(crate) use recorder::{PAGE, QuestionEnd, Recorder};
pub(crate) use ring::{Ring, Window};

/// Returns how many heads of a ring were replaced so far.
pub(crate) fn updated(ring: &Ring) -> u64 {
    ring.updated()
}
