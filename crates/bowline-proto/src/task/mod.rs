//! Tasks: calls whose result is fetched later. One record and one set of rules for both generations of the wire format.
//!
//! [`TaskRecord`] is what a store keeps of a task. Every change of it is [`transition`], a pure function of the record, an
//! event and the time, so that all processes that share a store follow the same rules. [`view_2025`] and [`view_2026`] say
//! how a record looks to a client of 2025-11-25 and of the tasks extension of 2026-07-28.

mod record;
mod time;
mod transition;
pub mod view_2025;
pub mod view_2026;

pub use record::{
    Body, Ending, MAX_INLINE_BYTES, RECORD_FORMAT, TaskAnswer, TaskCaller, TaskJob, TaskProgress,
    TaskQuestion, TaskRecord, TaskState, TokenFacts, UnreadableRecord,
};
pub use time::rfc3339;
pub use transition::{
    Claim, Due, Effects, Event, KEPT_AFTER_END, MAX_QUESTIONS, MAX_ROUNDS, MAX_STATUS_CHARS, Refused,
    transition,
};
