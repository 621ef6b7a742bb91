//! The inspector: the web page of a host.
//!
//! It shows the servers of a [`Host`](bowline_host::Host), their tools, every message of both legs of a call, and the questions that
//! wait for a person. It has a listener of its own on a loopback address and five routes: two enums, [`query::Query`] and
//! [`action::Action`], say all that a browser can ask for.

pub mod action;
pub mod events;
pub mod form;
pub mod inbox;
pub mod query;
pub mod render;

#[cfg(test)]
mod api_types;
