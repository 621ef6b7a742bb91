//! The server's side of HTTP.

mod body;
mod budget;
mod connections;
mod cors;
mod events;
mod front;
mod guard;
mod legacy;
mod listen;
mod modern;
mod refused;
mod reply;
mod retention;
mod serve;
mod service;
mod settings;

pub use body::Body;
pub use front::Front;
pub use legacy::{EventLog, EventStore, MemoryEvents};
pub use serve::ServeHttp;
pub use service::{HttpService, Principal};
pub use settings::Settings;
