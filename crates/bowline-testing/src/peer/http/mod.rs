//! A connection over HTTP: turns the client's frames into requests, and the replies into frames.
//!
//! The frames determine the form. A handshake for 2024-11-05 opens its event stream, any other handshake opens a
//! session, and every other request is sent as one of 2026-07-28, with the headers of that revision. Requests are sent
//! one after the other, each after the response head of the one before it.

mod client;
mod client_frame;
mod events;
mod reader;
mod request;
mod served;
mod session;

pub(super) use client::Http;
pub(super) use served::Served;

/// The path of the endpoint, for all revisions with a single endpoint.
const ENDPOINT: &str = "/mcp";
/// The path of the event stream of 2024-11-05.
const STREAM_2024: &str = "/sse";
