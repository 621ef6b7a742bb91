//! The Model Context Protocol without IO.
//!
//! Sessions are values: bytes and the time go in, calls and frames come out. Nothing in this crate opens
//! a socket, reads a clock or generates random numbers, so every rule of the five revisions can be tested in memory.
//!
//! A server handles a request in these steps: [`envelope`] parses the frame, [`server::ServerSession`] classifies and
//! checks the request, a [`service::Service`] answers the [`service::Call`], and the session encodes the
//! [`service::Outcome`] for the caller's revision. [`client`] has the same for clients.
//!
//! ```
//! use bowline_proto::envelope::{self, Frame, Message};
//! use bytes::Bytes;
//!
//! let ping = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
//! assert!(matches!(envelope::parse(&ping), Frame::Single(Ok(Message::Request { .. }))));
//!
//! let wrong = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#);
//! let Frame::Single(Err(rejected)) = envelope::parse(&wrong) else { unreachable!("a member occurs twice") };
//! assert_eq!(rejected.error.code, -32600);
//! ```

pub mod caller;
pub mod client;
pub mod custom;
pub mod encode;
pub mod envelope;
pub mod extensions;
pub mod header;
pub mod lines;
pub mod pagination;
pub mod params;
pub mod pending;
pub mod replay;
pub mod sampling;
pub mod scope;
pub mod seal;
pub mod server;
pub mod service;
pub mod sse;
pub mod subscribe;
pub mod task;
pub mod uri;
