//! The servers people install first.

pub mod everything;
