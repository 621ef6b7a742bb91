//! Metadata documents: of resources, authorization servers and clients.

mod client;
mod resource;
mod server;

pub use client::ClientDocument;
pub(crate) use client::{check_client_document_url, check_redirect_uri};
pub use resource::ProtectedResource;
pub use server::ServerMetadata;

pub(crate) use resource::ResourceWire;
pub(crate) use server::ServerWire;

use crate::{
    Error, Lenient, Resource,
    url::{PlainHttp, Url, check_learned},
};
use std::sync::OnceLock;

/// Which rules apply to the documents of one MCP server.
#[derive(Clone, Debug)]
pub struct Rules {
    server: String,
    lenient: Vec<Lenient>,
    /// Exceptions of the login that is stored.
    remembered: OnceLock<Vec<Lenient>>,
    exact_resource: bool,
    http: PlainHttp,
}

impl Rules {
    /// Creates the rules for the MCP server at `server`. Fails if a login there would send tokens without TLS.
    pub fn new(server: &str, lenient: &[Lenient], exact_resource: bool) -> Result<Self, Error> {
        let http = match Url::split(server) {
            _ if lenient.contains(&Lenient::Http) => PlainHttp::Allowed,
            Ok(url) if url.is_loopback() => PlainHttp::Loopback,
            _ => PlainHttp::Refused,
        };
        let without_fragment = server.split('#').next().unwrap_or_default();
        check_learned("the URL of the server", without_fragment, http).map_err(|error| {
            Error::misuse(format!("{error}; a login needs `https`, or the exception `{}`", Lenient::Http))
        })?;
        Ok(Self {
            server: without_fragment.to_owned(),
            lenient: lenient.to_vec(),
            remembered: OnceLock::new(),
            exact_resource,
            http,
        })
    }

    /// Also allows the exceptions that the stored login was made with: its tokens cannot be refreshed without them. Only the
    /// first call has an effect.
    pub fn remember(&self, exceptions: &[Lenient]) {
        let _ = self.remembered.set(exceptions.to_vec());
    }

    /// Returns the exceptions that are allowed, those of the stored login included.
    #[must_use]
    pub fn exceptions(&self) -> Vec<Lenient> {
        Lenient::ALL.into_iter().filter(|exception| self.allows(*exception)).collect()
    }

    /// Returns the URL of the MCP server, without fragment.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns whether an exception is set.
    #[must_use]
    pub fn allows(&self, lenient: Lenient) -> bool {
        self.lenient.contains(&lenient)
            || self.remembered.get().is_some_and(|remembered| remembered.contains(&lenient))
    }

    /// Returns whether the resource has to be exactly the server.
    #[must_use]
    pub fn exact_resource(&self) -> bool {
        self.exact_resource
    }

    /// Returns the value of the parameter `resource` of authorization and token requests; `None` with the exception
    /// [`Lenient::NoResourceParameter`].
    #[must_use]
    pub fn resource_parameter<'a>(&self, resource: &'a Resource) -> Option<&'a Resource> {
        (!self.allows(Lenient::NoResourceParameter)).then_some(resource)
    }

    /// Checks an endpoint that is in the settings.
    pub fn check_endpoint(&self, what: &str, url: &str) -> Result<(), Error> {
        check_learned(what, url, self.http)
    }

    /// Checks a URL that was learned from a server.
    pub(crate) fn check_url(&self, what: &str, url: &str) -> Result<(), Error> {
        check_learned(what, url, self.http)
    }
}
