//! What attackers do, and that it comes to nothing. `docs/SECURITY.md` says which threat is met how.
//!
//! Requests go over a real socket, as bytes, to a server with default settings unless a test is about a setting. The one
//! thing every refusal has to show besides its status: no tool ran.

mod bodies;
mod browser;
mod clients;
mod encodings;
mod generated;
mod headers;
mod identity;
mod ids;
mod keys;
mod routes;
mod sessions;
mod shapes;
mod state;
mod streams;
mod support;
mod wire;
