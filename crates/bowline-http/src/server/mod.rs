//! The server's side of HTTP.

mod body;
mod budget;
mod events;
mod front;
mod guard;
mod legacy;
mod listen;
mod modern;
mod reply;
mod serve;
mod service;
mod settings;

pub use body::Body;
pub use front::Front;
pub use legacy::{EventLog, EventStore, MemoryEvents};
pub use serve::ServeHttp;
pub use service::{HttpService, Principal};
pub use settings::Settings;
