//! The servers people install first.
