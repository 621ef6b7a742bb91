//! The client's side of HTTP.
//!
//! A [`HttpTarget`] opens connections, none of which is one of TCP: each is a transport that sends every message as a
//! POST of its own. What a reply means differs between the eras, so each has its module; what it takes to send a request
//! and read a reply is shared.

#[cfg(feature = "auth")]
#[cfg_attr(docsrs, doc(cfg(feature = "auth")))]
pub mod auth;
mod authorize;
mod backoff;
mod connection;
mod connector;
mod legacy;
mod modern;
mod param_headers;
mod post;
mod proxy;
mod reply;
mod sender;
mod session_stream;
mod target;
mod transport;
mod two_endpoints;
mod url;

pub use authorize::{Attempts, Authorize, Challenge, Reaction, Refusal};
pub use connector::Resolve;
pub use post::{Post, PostAnswer, PostError, Poster, Reference};
pub use proxy::Proxy;
pub use target::{HttpTarget, http};
