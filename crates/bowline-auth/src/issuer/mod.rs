//! An authorization server for development and tests.
//!
//! [`AuthorizationServer`] answers requests of HTTP without IO: time, random bytes and fetched documents are arguments. It keeps
//! everything in memory, within limits, and lets whoever can open its consent page act as any user. It is not made for production.
//!
//! ```
//! use bowline_auth::{Step, issuer::{AuthorizationServer, Moment}, jose::SigningKey};
//! use http::Request;
//!
//! let mut server = AuthorizationServer::new("http://127.0.0.1:4000", SigningKey::generate_es256()?)?
//!     .resource("http://127.0.0.1:4000/mcp");
//! let request = Request::get("/.well-known/oauth-authorization-server").body(Vec::new())?;
//! let Step::Done(response) = server.answer(&request, &Moment::new(1_800_000_000, [7; 64])) else { panic!("no document is needed") };
//! assert_eq!(response.status(), 200);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod authorize;
mod client;
mod documents;
mod metadata;
mod page;
mod reply;
mod server;
mod session;
mod table;
mod token;

pub use documents::{DocumentReply, MAX_DOCUMENT};
pub use page::escape_html;
pub use server::{AuthorizationServer, MAX_BODY, Moment};
