//! The facade and its attributes, used as their users use them.
#![cfg(feature = "server")]

#[cfg(feature = "client")]
mod both_sides;
mod compile_fail;
mod errors;
mod functions;
mod peer;
mod prompts;
mod resources;
mod states;
