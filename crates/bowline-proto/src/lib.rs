//! The Model Context Protocol without IO.
//!
//! Sessions here are values: bytes and the time go in, calls, frames and decisions come out. Nothing in this crate opens
//! a socket, reads a clock or draws a random number, so every rule of the five revisions can be tested in memory.
//!
//! The way of a request through a server: [`envelope`] reads the frame, [`server::ServerSession`] picks the era and
//! checks the request against it, a [`service::Service`] answers the [`service::Call`], and the session encodes the
//! [`service::Outcome`] for the caller's revision. [`client`] is the mirror.

mod canonical;
pub mod client;
pub mod encode;
pub mod envelope;
pub mod header;
mod lenient;
pub mod lines;
pub mod page;
pub mod params;
pub mod pending;
pub mod replay;
pub mod sampling;
pub mod seal;
pub mod server;
pub mod service;
pub mod sse;
pub mod subscribe;
pub mod uri;
