//! Metadata of a protected resource (RFC 9728).

use super::Rules;
use crate::{Error, Issuer, Lenient, Resource, ResourceMatch, Scopes, url::shown};
use serde::Deserialize;

/// At most this many authorization servers of a document are read.
const MAX_SERVERS: usize = 16;

/// What an MCP server publishes about its authorization.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProtectedResource {
    /// The resource, as published.
    pub resource: Resource,
    /// How the resource covers the server.
    pub matching: ResourceMatch,
    /// The authorization servers that it accepts, at least one.
    pub servers: Vec<Issuer>,
    /// The scopes for basic use.
    pub scopes: Option<Scopes>,
    /// Whether tokens must be bound to a key.
    pub dpop_required: bool,
}

/// The document as it is sent.
#[derive(Deserialize)]
pub(crate) struct ResourceWire {
    resource: String,
    authorization_servers: Option<Vec<String>>,
    scopes_supported: Option<Vec<String>>,
    dpop_bound_access_tokens_required: Option<bool>,
}

impl ProtectedResource {
    /// Checks a document. The resource must be the server of the rules, or a parent of it.
    pub(crate) fn check(wire: ResourceWire, url: &str, rules: &Rules) -> Result<Self, Error> {
        let resource = Resource::new(wire.resource)?;
        let matching = match resource.covers(rules.server()) {
            Some(ResourceMatch::Parent) if rules.exact_resource() => None,
            found => found,
        };
        let matching = match matching {
            Some(matching) => matching,
            None if rules.allows(Lenient::ForeignResource) => ResourceMatch::Parent,
            None => {
                return Err(Error::untrusted(format!(
                    "the metadata at {} is for the resource {resource}, not for {}",
                    shown(url),
                    shown(rules.server())
                )));
            }
        };
        let listed = wire.authorization_servers.unwrap_or_default();
        let mut servers = Vec::new();
        for issuer in listed.into_iter().take(MAX_SERVERS) {
            rules.check_url("the authorization server", &issuer)?;
            servers.push(Issuer::new(issuer)?);
        }
        if servers.is_empty() {
            let url = shown(url);
            return Err(Error::untrusted(format!("the metadata at {url} names no authorization server")));
        }
        Ok(Self {
            resource,
            matching,
            servers,
            scopes: wire.scopes_supported.map(Scopes::from_iter).filter(|scopes| !scopes.is_empty()),
            dpop_required: wire.dpop_bound_access_tokens_required.unwrap_or_default(),
        })
    }
}
