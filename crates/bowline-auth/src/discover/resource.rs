//! Finds and checks the metadata of the protected resource.

use crate::{
    Error, ProtectedResource, Reply, Request, Rules, Step, metadata::ResourceWire, resource_metadata_urls,
    url::shown,
};
use std::collections::VecDeque;

/// Looks for the metadata of a resource: at the URL that a challenge announced, or else at the well-known URLs.
///
/// ```
/// use bowline_auth::{Reply, ResourceDiscovery, Rules, Step};
///
/// let rules = Rules::new("https://notes.example.com/mcp", &[], false)?;
/// let mut discovery = ResourceDiscovery::new(&rules, None)?;
/// let Step::Fetch(first) = discovery.next(None)? else { unreachable!() };
/// assert_eq!(first.url, "https://notes.example.com/.well-known/oauth-protected-resource/mcp");
/// let Step::Fetch(second) = discovery.next(Some(&Reply::new(404, "")))? else { unreachable!() };
/// assert_eq!(second.url, "https://notes.example.com/.well-known/oauth-protected-resource");
/// # Ok::<(), bowline_auth::Error>(())
/// ```
#[derive(Debug)]
pub struct ResourceDiscovery<'a> {
    rules: &'a Rules,
    is_announced: bool,
    remaining: VecDeque<String>,
    current: Option<String>,
}

impl<'a> ResourceDiscovery<'a> {
    /// Creates a discovery for the server of `rules`. `announced` is `resource_metadata` of a challenge; then no other
    /// URL is used.
    pub fn new(rules: &'a Rules, announced: Option<&str>) -> Result<Self, Error> {
        let remaining = match announced {
            Some(url) => {
                rules.check_url("the announced metadata URL", url)?;
                VecDeque::from([url.to_owned()])
            }
            None => resource_metadata_urls(rules.server())?.into(),
        };
        Ok(Self { rules, is_announced: announced.is_some(), remaining, current: None })
    }

    /// Takes the reply to the last request, and says what comes next. `None` in `Done` means that the server publishes no
    /// metadata, as in 2025-03-26.
    pub fn next(&mut self, reply: Option<&Reply>) -> Result<Step<Option<ProtectedResource>>, Error> {
        if let (Some(reply), Some(url)) = (reply, &self.current) {
            let document: Option<ResourceWire> = reply.document("the metadata of the resource", url)?;
            if let Some(document) = document {
                return ProtectedResource::check(document, url, self.rules).map(Some).map(Step::Done);
            }
            if self.is_announced {
                let (url, status) = (shown(url), reply.status);
                return Err(Error::unavailable(format!(
                    "the server announced metadata at {url}, but there is none (status {status})"
                )));
            }
        }
        self.current = self.remaining.pop_front();
        Ok(match &self.current {
            Some(url) => Step::Fetch(Request::document(url)),
            None => Step::Done(None),
        })
    }
}
