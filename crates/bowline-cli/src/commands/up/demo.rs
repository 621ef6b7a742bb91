//! The servers that run where nothing is configured.

use crate::{context::Context, failure::Failure};
use bowline_host::Gateway;

/// A server of the demonstration, as the user is told of it.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) name: &'static str,
    pub(super) about: String,
    /// What to try.
    pub(super) commands: Vec<String>,
}

/// Adds the servers to a gateway.
pub(super) fn add(gateway: &Gateway, context: &Context) -> Result<Vec<Shown>, Failure> {
    let _ = (gateway, context);
    Ok(Vec::new())
}
