//! The Model Context Protocol over HTTP.
//!
//! [`HttpService`] is a tower service: it mounts in axum, or is served by [`ServeHttp::serve_http`]. One endpoint answers
//! every revision; the era is chosen per request.

mod server;

pub use server::{Body, HttpService, Principal, ServeHttp, Settings};
