//! What the parts of the host do together.

mod catalog;
mod collector;
mod search;
mod telemetry;
