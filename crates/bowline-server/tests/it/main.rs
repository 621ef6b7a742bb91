//! What the server framework promises, seen from the other end of a connection.

mod allocations;
mod asking;
mod calls;
mod changes;
mod custom;
mod endings;
mod layers;
mod offers;
mod wire;
