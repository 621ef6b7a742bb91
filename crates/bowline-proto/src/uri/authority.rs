//! Splits a URL into scheme, user, host, port and the rest.

use std::borrow::Cow;

/// The parts of a URL that has an authority, as they are written: nothing is decoded or validated.
///
/// ```
/// use bowline_proto::uri::UrlParts;
///
/// let url = UrlParts::split("https://me:secret@[::1]:8080/a?b#c").unwrap();
/// assert_eq!((url.scheme, url.user, url.host, url.port), ("https", Some("me:secret"), "[::1]", Some("8080")));
/// assert_eq!(url.tail, "/a?b#c");
/// assert!(UrlParts::split("mailto:me@example.com").is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UrlParts<'a> {
    /// The scheme, without `://`.
    pub scheme: &'a str,
    /// User, host and port together.
    pub authority: &'a str,
    /// User and password: everything before the last `@` of the authority.
    pub user: Option<&'a str>,
    /// The host. An IPv6 address keeps its brackets.
    pub host: &'a str,
    /// The port, if there is a colon after the host.
    pub port: Option<&'a str>,
    /// Path, query and fragment.
    pub tail: &'a str,
}

impl<'a> UrlParts<'a> {
    /// Splits a URL; `None` if it has no authority.
    pub fn split(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        // The last `@`, because a password may contain others.
        let (user, server) = match authority.rsplit_once('@') {
            Some((user, server)) => (Some(user), server),
            None => (None, authority),
        };
        let end =
            if server.starts_with('[') { server.find(']').map(|end| end + 1) } else { server.find(':') };
        let (host, port) = server.split_at(end.unwrap_or(server.len()));
        Some(Self { scheme, authority, user, host, port: port.strip_prefix(':'), tail })
    }

    /// Returns the authority with `mask` in the place of user and password.
    pub fn masked_authority(&self, mask: &str) -> Cow<'a, str> {
        match self.authority.rsplit_once('@') {
            Some((_, server)) => format!("{mask}@{server}").into(),
            None => self.authority.into(),
        }
    }

    /// Returns the host without the brackets of an IPv6 address.
    pub fn bare_host(&self) -> &'a str {
        self.host.strip_prefix('[').map_or(self.host, |host| host.strip_suffix(']').unwrap_or(host))
    }
}

/// Replaces user and password of a URL with `***`, also in a text that is not a valid URL.
///
/// Everything between `://` and the last `@` is replaced, because a password may contain any character.
///
/// ```
/// use bowline_proto::uri::mask_user;
///
/// assert_eq!(mask_user("https://me:a/b@example.com/"), "https://***@example.com/");
/// assert_eq!(mask_user("https://example.com/"), "https://example.com/");
/// ```
pub fn mask_user(url: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = url.split_once("://") else { return url.into() };
    match rest.rsplit_once('@') {
        Some((_, rest)) => format!("{scheme}://***@{rest}").into(),
        None => url.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_split_into_its_parts() {
        let check = |url: &str, user: Option<&str>, host: &str, port: Option<&str>, tail: &str| {
            let parts = UrlParts::split(url).unwrap();
            assert_eq!((parts.user, parts.host, parts.port, parts.tail), (user, host, port, tail), "{url}");
        };
        check("http://a", None, "a", None, "");
        check("http://a:1/b@c", None, "a", Some("1"), "/b@c");
        check("http://u@v@a?b", Some("u@v"), "a", None, "?b");
        check("http://u:p@[::1]:80#f", Some("u:p"), "[::1]", Some("80"), "#f");
        check("http://[::1", None, "[::1", None, "");
        check("http://", None, "", None, "");
        check("http://:80", None, "", Some("80"), "");
        assert_eq!(UrlParts::split("http:a"), None);
        assert_eq!(UrlParts::split("http://[::1]").map(|parts| parts.bare_host()), Some("::1"));
    }
}
