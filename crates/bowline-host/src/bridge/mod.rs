//! Calls on their way to a server of any revision, and what the server asks on the way back.
//!
//! A modern server that needs input answers so, and is called again: its questions and its state go to the caller, whose
//! own retry brings both back. A legacy server asks while its call is under way: the call is then *parked*, and the
//! caller's retry, or the session that asks a legacy caller, finds it again. To a caller both look the same.

mod flight;
mod parking;
mod pilot;
mod visitors;

pub(crate) use flight::{Flight, Landing, Leg, unanswered};
pub(crate) use parking::Parking;
pub(crate) use pilot::Pilot;
pub(crate) use visitors::Visitors;
