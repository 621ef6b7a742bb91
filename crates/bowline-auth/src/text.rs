//! The identifiers of OAuth: issuers, resources and client ids. They are kept exactly as published.

use crate::{
    Error,
    url::{Url, shown},
};
use std::fmt;

macro_rules! verbatim {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Returns the text, exactly as it was published.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

verbatim! {
    /// The identifier of an authorization server. Two issuers are the same only if their bytes are.
    Issuer
}

verbatim! {
    /// The identifier of a protected resource, here an MCP server.
    Resource
}

verbatim! {
    /// The id of a client at an authorization server.
    ClientId
}

impl Issuer {
    /// Takes an issuer as it was published: a URL without query and fragment.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        let unfit = |reason: &str| {
            Error::untrusted(format!(
                "`{}` is not an issuer of an authorization server: {reason}",
                shown(&text)
            ))
        };
        let url = Url::split(&text).map_err(|reason| unfit(&reason))?;
        if url.query.is_some() || url.fragment.is_some() {
            return Err(unfit("it has a query or a fragment"));
        }
        Ok(Self(text))
    }

    /// Returns the issuer of an authorization server without metadata: the origin of its token endpoint.
    pub fn of_endpoint(token_endpoint: &str) -> Result<Self, Error> {
        let url = Url::split(token_endpoint).map_err(|reason| {
            Error::misuse(format!("`{}` is not a token URL: {reason}", shown(token_endpoint)))
        })?;
        Self::new(url.origin())
    }

    /// Returns where the metadata of this issuer may be, in the order of the specification (2025-11-25 and later).
    #[must_use]
    pub fn metadata_urls(&self) -> Vec<String> {
        let Ok(url) = Url::split(&self.0) else { return Vec::new() };
        let origin = url.origin();
        match url.path.trim_end_matches('/') {
            "" => vec![
                format!("{origin}/.well-known/oauth-authorization-server"),
                format!("{origin}/.well-known/openid-configuration"),
            ],
            path => vec![
                format!("{origin}/.well-known/oauth-authorization-server{path}"),
                format!("{origin}/.well-known/openid-configuration{path}"),
                format!("{origin}{path}/.well-known/openid-configuration"),
            ],
        }
    }

    /// Returns whether both differ at most by a final slash.
    pub(crate) fn is_same_but_slash(&self, other: &str) -> bool {
        self.0.strip_suffix('/').unwrap_or(&self.0) == other.strip_suffix('/').unwrap_or(other)
    }
}

impl Resource {
    /// Takes a resource as it was published: an absolute URL without fragment.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        let unfit = |reason: &str| {
            Error::untrusted(format!("the resource `{}` is not usable: {reason}", shown(&text)))
        };
        let url = Url::split(&text).map_err(|reason| unfit(&reason))?;
        if url.fragment.is_some() {
            return Err(unfit("it has a fragment"));
        }
        Ok(Self(text))
    }

    /// Returns the canonical identifier of the MCP server at `url`: scheme and host in lower case, without default
    /// port, fragment and lone slash.
    pub fn of_server(url: &str) -> Result<Self, Error> {
        let parts = Url::split(url)
            .map_err(|reason| Error::misuse(format!("cannot log in to `{}`: {reason}", shown(url))))?;
        let implied = if parts.is_https() { 443 } else { 80 };
        let mut text = format!("{}://{}", parts.scheme.to_ascii_lowercase(), parts.host.to_ascii_lowercase());
        if let Some(port) = parts.port.filter(|port| *port != implied) {
            text.push(':');
            text.push_str(&port.to_string());
        }
        if parts.path != "/" || parts.query.is_some() {
            text.push_str(parts.path);
        }
        if let Some(query) = parts.query {
            text.push('?');
            text.push_str(query);
        }
        Ok(Self(text))
    }

    /// Returns whether this resource is, or contains, the MCP server at `url`.
    ///
    /// Scheme, host and port are the same. The path is the same or a prefix of whole segments. A query is the same. Paths
    /// with dot segments or escaped dots and slashes match nothing, because servers read them in different ways.
    #[must_use]
    pub fn covers(&self, url: &str) -> Option<ResourceMatch> {
        let resource = Url::split(&self.0).ok()?;
        let server = Url::split(url).ok()?;
        if !resource.is_same_origin(&server) || is_ambiguous(resource.path) || is_ambiguous(server.path) {
            return None;
        }
        let path = |url: &Url<'_>| if url.path == "/" { String::new() } else { url.path.to_owned() };
        let (own, other) = (path(&resource), path(&server));
        if own == other && resource.query == server.query {
            return Some(ResourceMatch::Exact);
        }
        if resource.query.is_some() {
            return None;
        }
        let folder = own.strip_suffix('/').unwrap_or(&own);
        let rest = other.strip_prefix(folder)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(ResourceMatch::Parent)
    }
}

/// How a resource covers the URL of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceMatch {
    /// It is the server itself.
    Exact,
    /// It is the origin of the server, or a parent of its path. A token for it is valid for everything below.
    Parent,
}

fn is_ambiguous(path: &str) -> bool {
    let escapes = path.to_ascii_lowercase();
    escapes.contains("%2e")
        || escapes.contains("%2f")
        || escapes.contains("%5c")
        || path.split('/').any(|segment| segment == "." || segment == "..")
}

impl ClientId {
    /// Takes a client id as it was given: at most 2048 characters of visible ASCII and spaces.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        let fits =
            !text.is_empty() && text.len() <= 2048 && text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if fits {
            Ok(Self(text))
        } else {
            Err(Error::misuse("expected a client id of 1 to 2048 printable ASCII characters"))
        }
    }
}

/// Returns where the metadata of the protected resource at `url` may be: the form with its path, then the form for the
/// whole origin. The query is kept at the end of the first form.
pub fn resource_metadata_urls(url: &str) -> Result<Vec<String>, Error> {
    let parts = Url::split(url)
        .map_err(|reason| Error::misuse(format!("cannot log in to `{}`: {reason}", shown(url))))?;
    let root = format!("{}/.well-known/oauth-protected-resource", parts.origin());
    let path = if parts.path == "/" { "" } else { parts.path };
    let query = parts.query.map(|query| format!("?{query}")).unwrap_or_default();
    let mut urls = Vec::new();
    if !path.is_empty() || !query.is_empty() {
        urls.push(format!("{root}{path}{query}"));
    }
    urls.push(root);
    Ok(urls)
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: ADISC-20, ADISC-21
    #[test]
    fn metadata_of_an_issuer_is_looked_for_in_a_fixed_order() {
        let urls = |issuer: &str| Issuer::new(issuer).unwrap().metadata_urls();
        assert_eq!(
            urls("https://as.example/tenant1"),
            [
                "https://as.example/.well-known/oauth-authorization-server/tenant1",
                "https://as.example/.well-known/openid-configuration/tenant1",
                "https://as.example/tenant1/.well-known/openid-configuration",
            ]
        );
        let root = [
            "https://as.example/.well-known/oauth-authorization-server",
            "https://as.example/.well-known/openid-configuration",
        ];
        assert_eq!(urls("https://as.example"), root);
        assert_eq!(urls("https://as.example/"), root);
        assert_eq!(
            urls("https://as.example/t/")[0],
            "https://as.example/.well-known/oauth-authorization-server/t"
        );
    }

    // proves: ADISC-14
    #[test]
    fn metadata_of_a_resource_is_at_its_path_and_then_at_the_root() {
        assert_eq!(
            resource_metadata_urls("https://h:8443/v1/mcp?tenant=a").unwrap(),
            [
                "https://h:8443/.well-known/oauth-protected-resource/v1/mcp?tenant=a",
                "https://h:8443/.well-known/oauth-protected-resource",
            ]
        );
        for url in ["https://h", "https://h/"] {
            assert_eq!(
                resource_metadata_urls(url).unwrap(),
                ["https://h/.well-known/oauth-protected-resource"]
            );
        }
    }

    #[test]
    fn identifiers_are_kept_as_they_are_written() {
        for text in ["http://localhost:3000", "HTTPS://Login.Example/", "https://h:443/t"] {
            assert_eq!(Issuer::new(text).unwrap().as_str(), text);
        }
        assert_ne!(Issuer::new("https://h").unwrap(), Issuer::new("https://h/").unwrap());
        for text in ["https://h?x", "https://h#x", "h", "file:///x"] {
            assert!(Issuer::new(text).is_err(), "{text}");
        }
    }

    // proves: AFLOW-13, AFLOW-15
    #[test]
    fn the_canonical_resource_is_folded_and_has_no_lone_slash() {
        for (url, canonical) in [
            ("HTTPS://MCP.Example:443/", "https://mcp.example"),
            ("https://mcp.example/Mcp", "https://mcp.example/Mcp"),
            ("http://h:8080/mcp?a=B#frag", "http://h:8080/mcp?a=B"),
            ("http://h:80/mcp/", "http://h/mcp/"),
        ] {
            assert_eq!(Resource::of_server(url).unwrap().as_str(), canonical, "{url}");
        }
    }

    // proves: AFLOW-16
    #[test]
    fn v56_a_resource_covers_its_own_server_and_no_other() {
        let covers = |resource: &str, url: &str| Resource::new(resource).unwrap().covers(url);
        for (resource, url) in [
            ("https://h/mcp", "https://h/mcp"),
            ("HTTPS://H:443/mcp", "https://h/mcp"),
            ("https://h", "https://h/"),
            ("https://h/mcp?a=1", "https://h/mcp?a=1"),
        ] {
            assert_eq!(covers(resource, url), Some(ResourceMatch::Exact), "{resource} {url}");
        }
        for (resource, url) in [
            ("https://h", "https://h/mcp"),
            ("https://h/", "https://h/mcp"),
            ("https://h/a", "https://h/a/mcp"),
            ("https://h/a/", "https://h/a/mcp"),
            ("https://h/mcp/", "https://h/mcp"),
        ] {
            assert_eq!(covers(resource, url), Some(ResourceMatch::Parent), "{resource} {url}");
        }
        for (resource, url) in [
            ("https://h:8443/mcp", "https://h/mcp"),
            ("http://h/mcp", "https://h/mcp"),
            ("https://evil.example/mcp", "https://h/mcp"),
            ("https://h.evil.example/mcp", "https://h/mcp"),
            ("https://h/mcp-evil", "https://h/mcp"),
            ("https://h/mc", "https://h/mcp"),
            ("https://h/mcp/tenant", "https://h/mcp"),
            ("https://h/a/../mcp", "https://h/mcp"),
            ("https://h/./mcp", "https://h/mcp"),
            ("https://h/%2e%2E/mcp", "https://h/mcp"),
            ("https://h/a%2fmcp", "https://h/a%2fmcp"),
            ("https://h/mcp?a=1", "https://h/mcp"),
            ("https://h/mcp?a=1", "https://h/mcp?a=2"),
        ] {
            assert_eq!(covers(resource, url), None, "{resource} {url}");
        }
    }
}
