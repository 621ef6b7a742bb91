//! The visit of the authorization page: which URL to open, and how the response is received.

use crate::{Error, Issuer, Resource, Scopes, form, store::BoxFuture, url::Url};
use std::fmt;

/// The longest redirected URL that is accepted. The codes of some authorization servers have several kilobytes.
const MAX_RESPONSE: usize = 16 * 1024;

/// A page that the user has to visit to log in.
///
/// Open [`url`](Self::url) in a browser. The authorization server then redirects the browser to
/// [`redirect_uri`](Self::redirect_uri) with a response in the query. The whole redirected URL is the answer to the visit.
#[derive(Clone)]
pub struct Visit {
    pub(crate) url: String,
    pub(crate) redirect_uri: String,
    pub(crate) state: String,
    pub(crate) issuer: Issuer,
    pub(crate) resource: Resource,
    pub(crate) scopes: Scopes,
}

impl Visit {
    /// Returns the URL to open: `https`, or `http` at a loopback address. It has no character that a shell interprets
    /// in quotes, but pass it to programs as one argument all the same.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns where the browser is sent afterwards.
    #[must_use]
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Returns the authorization server, to show to the user.
    #[must_use]
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// Returns the resource that the token will be for.
    #[must_use]
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Returns the scopes that are asked for; empty if the authorization server chooses.
    #[must_use]
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Returns whether a URL is the response to this visit: it leads to the redirect URI and has the right `state`,
    /// once. It is at most 16 KiB of visible ASCII.
    ///
    /// Something that listens for the response refuses everything else and keeps waiting. A URL without scheme and host,
    /// such as the target of a request, is compared by path and query.
    #[must_use]
    pub fn is_response(&self, redirected: &str) -> bool {
        if redirected.len() > MAX_RESPONSE || !redirected.bytes().all(|byte| byte.is_ascii_graphic()) {
            return false;
        }
        let Some((place, query)) = redirected.split_once('?') else { return false };
        let expected_place = self.redirect_uri.split('?').next().unwrap_or_default();
        let leads_here = match (Url::split(expected_place), Url::split(place)) {
            // A private scheme of an application.
            (Err(_), _) => place == expected_place,
            (Ok(expected), Ok(url)) => {
                url.is_same_origin(&expected)
                    && url.fragment.is_none()
                    && path_or_root(url.path) == path_or_root(expected.path)
            }
            (Ok(expected), Err(_)) => place.starts_with('/') && place == path_or_root(expected.path),
        };
        leads_here && self.has_state(query)
    }

    fn has_state(&self, query: &str) -> bool {
        let query = query.split('#').next().unwrap_or_default();
        let Some(parameters) = form::decode(query) else { return false };
        let mut states = parameters.iter().filter(|(name, _)| name == "state");
        states.next().is_some_and(|(_, state)| *state == self.state) && states.next().is_none()
    }
}

fn path_or_root(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

/// `state` protects the response, so the URL is not printed.
impl fmt::Debug for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visit")
            .field("issuer", &self.issuer)
            .field("resource", &self.resource)
            .field("scopes", &self.scopes)
            .field("redirect_uri", &self.redirect_uri)
            .finish_non_exhaustive()
    }
}

/// Opens authorization pages and receives the redirects: a browser with a listener, a window of an application, a terminal.
pub trait UserAgent: Send + Sync {
    /// Prepares a visit, for example by opening a listener.
    ///
    /// `bound` is set if a redirect URI is registered already. Then [`Redirect::redirect_uri`] should be that URI. If it
    /// differs (its port is busy), a dynamic registration is replaced, and other registrations fail.
    fn prepare<'a>(&'a self, bound: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn Redirect>, Error>>;
}

/// A place where the response of the authorization server arrives.
pub trait Redirect: Send + Sync {
    /// Returns the redirect URI: `https`, or `http` at a loopback address, or a private scheme of the application.
    fn redirect_uri(&self) -> &str;

    /// Opens the page and waits for the redirect. Returns the whole redirected URL.
    ///
    /// Dropping the future ends the visit.
    fn visit(self: Box<Self>, visit: Visit) -> BoxFuture<'static, Result<String, Error>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v55_only_the_response_with_the_right_state_counts() {
        let visit = Visit {
            url: "https://as.example/authorize?state=s".into(),
            redirect_uri: "http://127.0.0.1:7000/callback".into(),
            state: "s1".into(),
            issuer: Issuer::new("https://as.example").unwrap(),
            resource: Resource::new("https://h/mcp").unwrap(),
            scopes: Scopes::new(),
        };
        let long = |length: usize| {
            let url = "/callback?state=s1&code=";
            format!("{url}{}", "c".repeat(length - url.len()))
        };
        for url in [
            "http://127.0.0.1:7000/callback?code=c&state=s1",
            "/callback?state=s1&error=x",
            "/callback?state=s1&code={|}^",
            &long(MAX_RESPONSE),
        ] {
            assert!(visit.is_response(url), "{url}");
        }
        for url in [
            "/callback?code=c",
            "/callback?code=c&state=",
            "/callback?code=c&state=S1",
            "/callback?code=c&state=s1&state=s1",
            "/callback?code=c&state=%zz",
            "/callback",
            "/other?code=c&state=s1",
            "/callback/?state=s1",
            "http://127.0.0.1:7001/callback?state=s1",
            "https://evil.example/callback?state=s1",
            "callback?state=s1",
            "http://127.0.0.1:7000/callback#?state=s1",
            "/callback?state=s1&code=\u{fc}",
            "/callback?state=s1&code=c\n",
            &long(MAX_RESPONSE + 1),
            "",
        ] {
            assert!(!visit.is_response(url), "{url}");
        }
        assert!(!format!("{visit:?}").contains("s1"));
    }
}
