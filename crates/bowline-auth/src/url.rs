//! Splits URLs without changing their text.

use crate::Error;
use bowline_proto::uri::{UrlParts, mask_user};

/// The longest URL that is taken from a server.
const MAX_URL: usize = 4096;

/// The parts of an absolute `http` or `https` URL, as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Url<'a> {
    pub(crate) scheme: &'a str,
    /// A name, an IPv4 address, or an IPv6 address in brackets.
    pub(crate) host: &'a str,
    pub(crate) port: Option<u16>,
    /// Host and port.
    pub(crate) authority: &'a str,
    /// The path from the first slash, or empty.
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) fragment: Option<&'a str>,
}

impl<'a> Url<'a> {
    /// Splits a URL. It must be visible ASCII without quotes, angle brackets, backslashes, `$(` and broken escapes, so that no
    /// program or shell reads it in another way, and must not have user info.
    pub(crate) fn split(text: &'a str) -> Result<Self, String> {
        if text.len() > MAX_URL {
            return Err(format!("it is longer than {MAX_URL} bytes"));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'`<>\\^{|}".contains(&byte)) {
            return Err("it has a character that URLs do not have".into());
        }
        if text.contains("$(") || !has_whole_escapes(text) {
            return Err("it has `$(` or an incomplete percent-encoding".into());
        }
        let parts = UrlParts::split(text).ok_or("it is not an absolute URL")?;
        let (scheme, authority) = (parts.scheme, parts.authority);
        if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
            return Err("it starts with neither `https://` nor `http://`".into());
        }
        if parts.user.is_some() {
            return Err("it contains a user name or password".into());
        }
        let host = check_host(parts.host)?;
        let port = parse_port(&parts)?;
        let (rest, fragment) = match parts.tail.split_once('#') {
            Some((rest, fragment)) => (rest, Some(fragment)),
            None => (parts.tail, None),
        };
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        Ok(Self { scheme, host, port, authority, path, query, fragment })
    }

    /// Returns scheme, host and port as they are written.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    pub(crate) fn is_https(&self) -> bool {
        self.scheme.eq_ignore_ascii_case("https")
    }

    /// Returns the port, written or implied.
    pub(crate) fn effective_port(&self) -> u16 {
        self.port.unwrap_or_else(|| if self.is_https() { 443 } else { 80 })
    }

    /// Returns whether scheme, host and port are the same, with case and default port folded.
    pub(crate) fn is_same_origin(&self, other: &Url<'_>) -> bool {
        self.is_https() == other.is_https()
            && self.host.eq_ignore_ascii_case(other.host)
            && self.effective_port() == other.effective_port()
    }

    /// Returns whether the host is this machine: `localhost`, 127.0.0.0/8 or `::1`.
    pub(crate) fn is_loopback(&self) -> bool {
        let address = self.host.trim_matches(['[', ']']);
        self.host.eq_ignore_ascii_case("localhost")
            || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// Returns whether every `%` starts an escape. Windows reads `%PATH%` as a variable.
fn has_whole_escapes(text: &str) -> bool {
    let mut parts = text.split('%');
    parts.next();
    parts.all(|part| part.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)))
}

fn check_host(host: &str) -> Result<&str, String> {
    if let Some(address) = host.strip_prefix('[') {
        let address = address.strip_suffix(']').ok_or("its host has no closing bracket")?;
        address.parse::<std::net::Ipv6Addr>().map_err(|_| "its host is not an IPv6 address")?;
        return Ok(host);
    }
    let is_name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    let has_option = host.split('.').any(|label| label.starts_with('-'));
    if host.is_empty() || !is_name || has_option {
        return Err("its host is not a name or an address".into());
    }
    Ok(host)
}

fn parse_port(parts: &UrlParts<'_>) -> Result<Option<u16>, String> {
    let Some(port) = parts.port else {
        // Without a colon, nothing may follow the host.
        let is_whole = parts.host.len() == parts.authority.len();
        return if is_whole { Ok(None) } else { Err("its port is not a number".into()) };
    };
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| port.parse().ok()).flatten();
    number.map(Some).ok_or_else(|| "its port is not a number".into())
}

/// Checks a URL that a server gave: an endpoint or a document. It is `https`, or `http` at loopback if `allow_loopback`.
pub(crate) fn check_learned(what: &str, text: &str, http: PlainHttp) -> Result<(), Error> {
    let unfit = |reason: &str| Error::untrusted(format!("{what} is not usable: `{}`: {reason}", shown(text)));
    let url = Url::split(text).map_err(|reason| unfit(&reason))?;
    if url.fragment.is_some() {
        return Err(unfit("it has a fragment"));
    }
    let allowed = url.is_https()
        || match http {
            PlainHttp::Refused => false,
            PlainHttp::Loopback => url.is_loopback(),
            PlainHttp::Allowed => true,
        };
    if allowed { Ok(()) } else { Err(unfit("it does not start with `https://`")) }
}

/// Where URLs without TLS are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlainHttp {
    /// Nowhere.
    Refused,
    /// At loopback addresses.
    Loopback,
    /// Everywhere; a named exception.
    Allowed,
}

/// Returns a URL as it may be shown in an error: printable, short, without user info.
pub(crate) fn shown(text: &str) -> String {
    crate::error::printable(&mask_user(text), 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_kept_as_they_are_written() {
        let url = Url::split("HTTPS://Ex.com:8443/a/b?q=1#f").unwrap();
        assert_eq!((url.scheme, url.host, url.port), ("HTTPS", "Ex.com", Some(8443)));
        assert_eq!((url.path, url.query, url.fragment), ("/a/b", Some("q=1"), Some("f")));
        assert_eq!(url.origin(), "HTTPS://Ex.com:8443");
        let url = Url::split("http://[::1]?q").unwrap();
        assert_eq!((url.host, url.path, url.query), ("[::1]", "", Some("q")));
        assert!(url.is_loopback());
    }

    // proves: SEC-38
    #[test]
    fn v52_urls_that_programs_read_differently_are_refused() {
        for text in [
            "",
            "javascript:alert(1)",
            "javascript://x/%0aalert(1)",
            "file:///etc/passwd",
            "ftp://h/",
            "//h/",
            "-oProxyCommand=x",
            "https://",
            "https:///a",
            "https://user@h/",
            "https://user:pw@h/",
            "https://h\\@evil/",
            "https://h/a b",
            "https://h/\n",
            "https://h/\"; rm -rf /",
            "https://h/`id`",
            "https://h/'x'",
            "https://h:99999/",
            "https://h:/",
            "https://h:8a/",
            "https://[::1/",
            "https://[::1]x/",
            "https://[zz]/",
            "https://b\u{fc}cher.example/",
            "https://$(id)/",
            "https://h/$(id)",
            "https://h/a?b=$(id)",
            "https://h/a#$(id)",
            "https://h/%PATH%",
            "https://h/a?b=%4",
            "https://h/%",
            "https://-h/",
            "https://a.-b/",
            "https://--flag/",
            "https://h/a?b=\n",
            "https://h/a?b='c'",
            "https://h/a#\"b\"",
            "-https://h/",
            &format!("https://h/{}", "a".repeat(5000)),
        ] {
            assert!(Url::split(text).is_err(), "{text}");
        }
    }

    #[test]
    fn urls_of_real_servers_are_accepted() {
        for text in [
            "https://gitlab.example/-/oauth/(a)/$metadata?x=1&y=%2B;z",
            "https://a-b.example/caf%C3%A9",
            "https://login.example/tenant/v2.0/.well-known/openid-configuration?p=B2C_1_a-b",
        ] {
            Url::split(text).unwrap();
        }
    }

    // proves: SEC-36
    #[test]
    fn only_https_and_loopback_are_learned() {
        let ok = |text, http| check_learned("x", text, http).is_ok();
        assert!(ok("https://h/a?b=c", PlainHttp::Refused));
        assert!(ok("http://localhost:1/a", PlainHttp::Loopback));
        assert!(ok("http://127.9.9.9/a", PlainHttp::Loopback));
        assert!(!ok("http://localhost:1/a", PlainHttp::Refused));
        assert!(!ok("http://localhost.evil.example/a", PlainHttp::Loopback));
        assert!(!ok("https://h/a#b", PlainHttp::Allowed));
        for other in
            ["javascript:alert(1)", "file:///etc/passwd", "ftp://h/a", "data:text/html,x", "HTTPSX://h/a"]
        {
            assert!(!ok(other, PlainHttp::Allowed), "{other}");
        }
        let error = check_learned("the endpoint", "http://me:canary@h/", PlainHttp::Refused).unwrap_err();
        assert!(!error.to_string().contains("canary"), "{error}");
    }
}
