//! What the parts of the host do together.

mod catalog;
mod search;
