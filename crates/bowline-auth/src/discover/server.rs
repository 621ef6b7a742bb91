//! Finds and checks the metadata of an authorization server.

use crate::{
    Error, Issuer, Lenient, Reply, Request, Rules, ServerMetadata, Step,
    metadata::ServerWire,
    url::{Url, shown},
};
use std::collections::VecDeque;

/// Looks for the metadata of an authorization server.
#[derive(Debug)]
pub struct ServerDiscovery<'a> {
    rules: &'a Rules,
    issuer: Issuer,
    is_legacy: bool,
    remaining: VecDeque<String>,
    current: Option<String>,
}

impl<'a> ServerDiscovery<'a> {
    /// Creates a discovery for an issuer that the resource names, or that is configured.
    pub fn new(rules: &'a Rules, issuer: Issuer) -> Result<Self, Error> {
        rules.check_url("the authorization server", issuer.as_str())?;
        let remaining = issuer.metadata_urls().into();
        Ok(Self { rules, issuer, is_legacy: false, remaining, current: None })
    }

    /// Creates a discovery as in 2025-03-26, for a server without metadata of the resource: the authorization server is
    /// at the origin of the MCP server, perhaps at default paths.
    pub fn legacy(rules: &'a Rules) -> Result<Self, Error> {
        let origin = Url::split(rules.server()).map(|url| url.origin()).map_err(Error::misuse)?;
        let issuer = Issuer::new(origin)?;
        let remaining = VecDeque::from([format!("{issuer}/.well-known/oauth-authorization-server")]);
        Ok(Self { rules, issuer, is_legacy: true, remaining, current: None })
    }

    /// Takes the reply to the last request, and says what comes next. `None` in `Done` means that the issuer publishes no
    /// metadata.
    pub fn next(&mut self, reply: Option<&Reply>) -> Result<Step<Option<ServerMetadata>>, Error> {
        if let (Some(reply), Some(url)) = (reply, &self.current) {
            let document: Option<ServerWire> =
                reply.document("the metadata of the authorization server", url)?;
            if let Some(document) = document {
                let issuer = self.check_issuer(document.issuer.as_deref(), url)?;
                return ServerMetadata::check(document, issuer, self.rules).map(Some).map(Step::Done);
            }
        }
        self.current = self.remaining.pop_front();
        Ok(match &self.current {
            Some(url) => Step::Fetch(Request::document(url)),
            None if self.is_legacy => Step::Done(Some(ServerMetadata::defaults(self.issuer.clone()))),
            None => Step::Done(None),
        })
    }

    /// Returns the issuer to use: the expected one, which the document must name byte for byte.
    fn check_issuer(&self, published: Option<&str>, url: &str) -> Result<Issuer, Error> {
        let expected = &self.issuer;
        let Some(published) = published else {
            if self.rules.allows(Lenient::MissingIssuer) {
                return Ok(expected.clone());
            }
            let (url, exception) = (shown(url), Lenient::MissingIssuer);
            return Err(Error::untrusted(format!(
                "the metadata at {url} has no issuer; the exception `{exception}` allows it"
            )));
        };
        if published == expected.as_str() {
            return Ok(expected.clone());
        }
        // Nobody named the issuer of a 2025-03-26 server, so the published form counts.
        let slash_is_fine = self.is_legacy || self.rules.allows(Lenient::IssuerSlash);
        if slash_is_fine && expected.is_same_but_slash(published) {
            return Issuer::new(published);
        }
        Err(Error::untrusted(format!(
            "the metadata at {} is of the issuer {}, expected {expected}",
            shown(url),
            shown(published)
        )))
    }
}
