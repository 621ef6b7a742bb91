//! Login of the client: where tokens are kept, and how the user visits the authorization server.

mod lock;
mod loopback;
mod private_file;
mod store_file;

pub use loopback::{CallbackHost, Loopback};
pub use store_file::FileStore;
