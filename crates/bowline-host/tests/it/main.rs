//! The host from the outside.

mod policy_guard;
mod policy_terminal;
