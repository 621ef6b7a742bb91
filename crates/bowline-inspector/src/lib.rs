//! The inspector: the web page of a host.
//!
//! It shows the servers of a [`Host`](bowline_host::Host), their tools, every message of both legs of a call, and the questions that
//! wait for a person. It has a listener of its own on a loopback address and a few routes: two enums, [`query::Query`] and
//! [`action::Action`], say all that a browser can ask for.

pub mod action;
mod action_trail;
mod actions;
mod answers;
mod assets;
mod buffer;
mod checks;
mod control;
mod copy;
pub mod events;
pub mod form;
mod guard;
pub mod inbox;
mod inspector;
mod keep;
mod keys;
mod queries;
pub mod query;
pub mod render;
mod rules;
mod service;
mod stream;

#[cfg(test)]
mod api_types;

pub use checks::{CheckConnection, CheckFinding, CheckWatch, Checker};
pub use inspector::{Inspector, InspectorOptions};
pub use keys::Code;
pub use service::InspectorService;
