//! What the server framework promises, seen from the other end of a connection.

mod allocations;
mod asking;
mod calls;
mod changes;
mod custom;
mod endings;
mod functions;
#[cfg(feature = "tasks")]
mod jobs;
mod layers;
mod offers;
mod rounds;
mod scopes;
#[cfg(feature = "tasks")]
mod tasks;
#[cfg(feature = "tasks")]
mod tasks_legacy;
#[cfg(all(feature = "tasks", unix))]
mod tasks_process;
#[cfg(feature = "tasks")]
mod tasks_store;
mod wire;
