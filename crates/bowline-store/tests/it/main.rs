//! The engine in memory, sealed and limited stores.

mod limited;
mod memory;
mod sealed;
