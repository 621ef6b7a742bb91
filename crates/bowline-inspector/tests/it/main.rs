//! Tests of the inspector over its HTTP interface, with a real host behind it.

mod access;
mod questions;
mod support;
mod traffic;
