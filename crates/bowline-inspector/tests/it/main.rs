//! Tests of the inspector over its HTTP interface, with a real host behind it.

mod access;
mod checks;
mod http;
mod keep;
mod questions;
mod revisions;
mod rules;
mod servers;
mod support;
mod tasks;
mod traffic;
