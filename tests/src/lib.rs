//! Servers to test against: one name each, so that a transcript can ask for one and a process can be one.

mod fixtures;

pub use fixtures::fixture;
