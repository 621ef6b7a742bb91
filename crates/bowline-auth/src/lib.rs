//! The authorization of the Model Context Protocol, without IO.
//!
//! A flow is a value that says which request comes next. Time and random bytes are arguments.

pub mod challenge;
pub mod scope;

pub use challenge::Challenge;
pub use scope::Scopes;
