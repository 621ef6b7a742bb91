//! The Model Context Protocol over HTTP, both sides of it.
//!
//! `HttpService` is a tower service: it mounts in axum, or is served by `ServeHttp::serve_http`. One endpoint answers
//! every revision; the era is chosen per request.
//!
//! `http` names a server by its URL, for a client to connect to. Which era the server is of, and whether it is one of
//! the two-endpoint servers of 2024-11-05, is found out by itself.
//!
//! | feature | default | gives |
//! |---|---|---|
//! | `server` | yes | `HttpService`, `ServeHttp`, `Settings`; `Front` for what else is answered on the socket |
//! | `client` | yes | `http`, `HttpTarget`; `Poster` for requests beside the protocol |

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "server")]
mod server;

#[cfg(feature = "client")]
pub use client::{
    Challenge, HttpTarget, Post, PostAnswer, PostError, Poster, Proxy, Reference, Resolve, http,
};
#[cfg(feature = "server")]
pub use server::{
    Body, EventLog, EventStore, Front, HttpService, MemoryEvents, Principal, ServeHttp, Settings,
};
