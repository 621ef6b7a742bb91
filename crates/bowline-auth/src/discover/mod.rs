//! How a client finds the authorization server of an MCP server.

mod resource;
mod server;

pub use resource::ResourceDiscovery;
pub use server::ServerDiscovery;

#[cfg(test)]
mod tests;

use crate::{Error, Issuer, ProtectedResource};

/// Orders the authorization servers of a resource by preference: the configured one, then those for which `held` says that
/// the client has credentials, then the others as published.
///
/// Fails if one is configured and the resource does not list it: its tokens are not for this server.
pub fn preferred_servers(
    resource: &ProtectedResource,
    configured: Option<&Issuer>,
    held: impl Fn(&Issuer) -> bool,
) -> Result<Vec<Issuer>, Error> {
    let listed = &resource.servers;
    if let Some(configured) = configured {
        if listed.contains(configured) {
            return Ok(vec![configured.clone()]);
        }
        let names: Vec<&str> = listed.iter().map(Issuer::as_str).collect();
        return Err(Error::untrusted(format!(
            "{} accepts tokens of {}, but the configured issuer is {configured}",
            resource.resource,
            names.join(", ")
        )));
    }
    let (mut first, others): (Vec<Issuer>, Vec<Issuer>) =
        listed.iter().cloned().partition(|issuer| held(issuer));
    first.extend(others);
    Ok(first)
}
