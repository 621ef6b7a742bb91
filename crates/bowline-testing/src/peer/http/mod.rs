//! A connection over HTTP: the client's frames become requests, what their replies carry becomes frames.
//!
//! The frames say which form the conversation has. A handshake for 2024-11-05 opens the stream of its two endpoints, any
//! other handshake a session, and what belongs to neither is a request of 2026-07-28, which repeats in headers what it
//! says. Requests go out one after the other: the next when the head of the last reply is there.

mod client;
mod events;
mod reader;
mod request;
mod said;
mod served;
mod session;

pub(super) use client::Http;
pub(super) use served::Served;

/// The endpoint of every revision with one.
const ENDPOINT: &str = "/mcp";
/// Where the stream of 2024-11-05 is.
const STREAM_2024: &str = "/sse";
