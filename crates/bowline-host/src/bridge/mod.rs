//! Calls to servers of any revision, and what those servers ask during a call.
//!
//! A modern server that needs input says so in its result and is called again: its questions and its state go to the caller,
//! whose retry brings the answers and the state back. A legacy server asks while its call runs: the call is then *parked*
//! until the retry of the caller, or the session of a legacy caller, resumes it. Callers see no difference.

mod parked_calls;
mod upstream_call;

pub(crate) use parked_calls::ParkedCalls;
pub(crate) use upstream_call::{
    Attempt, Follow, TaskWish, UpstreamCall, UpstreamReply, for_caller, or_cancelled,
};
