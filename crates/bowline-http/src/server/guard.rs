//! Checks `Host` and `Origin` before anything is read.

use super::options::HttpOptions;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header, request::Parts};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Why a request is refused before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The name of the server is missing, given twice, or not a name.
    BadHost,
    /// The name is not one of this server's.
    ForeignHost,
    /// The page that sends the request is not one of this server's.
    ForeignOrigin,
}

/// The longest part of a host or origin that a refusal repeats.
const MAX_SHOWN: usize = 100;

impl Refusal {
    /// Returns the message for the client: the refused value, and the setting that would allow it.
    pub(super) fn reason(self, options: &HttpOptions, uri: &Uri, headers: &HeaderMap) -> String {
        let short = |text: &str| text.chars().take(MAX_SHOWN).collect::<String>();
        match self {
            Self::BadHost => "expected exactly one `Host` header with a host and an optional port".to_owned(),
            Self::ForeignHost => {
                let name = host(uri, headers).map_or_else(|_| String::new(), |host| short(host.name));
                format!("host `{name}` is not allowed; add it to `{}`", options.hosts_name)
            }
            Self::ForeignOrigin => {
                let mut origins =
                    headers.get_all(header::ORIGIN).iter().filter_map(|value| value.to_str().ok());
                match (origins.next(), origins.next()) {
                    (Some(origin), None) if origin.contains("://") => {
                        let origin = short(origin);
                        format!("origin `{origin}` is not allowed; add it to `{}`", options.origins_name)
                    }
                    _ => format!(
                        "cross-site requests are only allowed from this server's own origin and those in `{}`",
                        options.origins_name
                    ),
                }
            }
        }
    }
}

/// Checks that a request is for a name of this server.
pub(super) fn check_host(options: &HttpOptions, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    if is_ours(options, &host(uri, headers)?) { Ok(()) } else { Err(Refusal::ForeignHost) }
}

/// Checks only the origin of a request, not its host.
pub(super) fn check_origin(options: &HttpOptions, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) if is_from_elsewhere(headers) => Err(Refusal::ForeignOrigin),
        (None, _) => Ok(()),
        (Some(origin), None) if is_origin_allowed(options, origin, || host(uri, headers).ok()) => Ok(()),
        _ => Err(Refusal::ForeignOrigin),
    }
}

/// Returns whether a page of another site sent the request. Requests for images and scripts have no `Origin`, but
/// another header says where they come from.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    headers.get_all(FETCH_SITE).iter().any(|site| site != "same-origin" && site != "none")
}

/// Returns whether a browser opens a page in a window. Requests of scripts, for frames, images and so on are others, and so are forms
/// of other origins, which have an `Origin`.
pub(super) fn is_navigation(parts: &Parts) -> bool {
    let is_only = |name: &HeaderName, expected: &str| {
        let mut values = parts.headers.get_all(name).iter();
        values.next().is_some_and(|value| value == expected) && values.next().is_none()
    };
    parts.method == Method::GET
        && !parts.headers.contains_key(header::ORIGIN)
        && is_only(&FETCH_MODE, "navigate")
        && is_only(&FETCH_DEST, "document")
}

/// The bytes of a host name, as a table, because every request is checked.
const NAME_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        byte += 1;
    }
    table
};

/// The host of a request and, if it was given, its port. The parser accepts plain hosts only: no user, no spaces, no sign before the
/// port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'a> {
    whole: &'a str,
    name: &'a str,
    port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Takes a plain host. A user before it is never part of it, and has been used to slip past checks.
    pub fn parse(whole: &'a str) -> Option<Self> {
        let end = if let Some(address) = whole.strip_prefix('[') {
            let is_allowed = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
            let end = address.bytes().position(|byte| !is_allowed(byte))?;
            (address.as_bytes().get(end) == Some(&b']')).then_some(end + 2)?
        } else {
            let is_allowed = |byte: u8| NAME_BYTES.get(usize::from(byte)) == Some(&true);
            whole.bytes().position(|byte| !is_allowed(byte)).unwrap_or(whole.len())
        };
        let (name, rest) = whole.split_at_checked(end)?;
        let port = match rest.strip_prefix(':') {
            // A sign is not part of a port.
            Some(digits) if !digits.starts_with('+') => Some(digits.parse().ok()?),
            None if rest.is_empty() => None,
            _ => return None,
        };
        (!name.is_empty()).then_some(Self { whole, name, port })
    }

    /// Returns the host that a request names, in exactly one place or in two that agree.
    pub fn of_request(uri: &'a Uri, headers: &'a HeaderMap) -> Option<Self> {
        host(uri, headers).ok()
    }

    /// Returns the name or address, an IPv6 address in brackets.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the port, if there is one.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Returns whether it is a name of this machine: `localhost`, `127.0.0.1` or `[::1]`.
    pub fn is_loopback(&self) -> bool {
        ["localhost", "127.0.0.1", "[::1]"].iter().any(|known| known.eq_ignore_ascii_case(self.name))
    }

    /// Returns whether two authorities are the same, where a missing port means `default_port`.
    pub fn is(&self, other: &Authority<'_>, default_port: u16) -> bool {
        self.name.eq_ignore_ascii_case(other.name)
            && self.port.unwrap_or(default_port) == other.port.unwrap_or(default_port)
    }
}

/// Returns the host of the request. HTTP/2 has it in the URI, HTTP/1.1 in a header; if both are present, they must
/// agree.
fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<Authority<'a>, Refusal> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let named = match (hosts.next(), hosts.next()) {
        (None, _) => None,
        (Some(host), None) => {
            let host = host.to_str().ok().and_then(Authority::parse);
            Some(host.ok_or(Refusal::BadHost)?)
        }
        (Some(_), Some(_)) => return Err(Refusal::BadHost),
    };
    let Some(authority) = uri.authority() else { return named.ok_or(Refusal::BadHost) };
    let authority = Authority::parse(authority.as_str()).ok_or(Refusal::BadHost)?;
    match named {
        Some(named) if !named.whole.eq_ignore_ascii_case(authority.whole) => Err(Refusal::BadHost),
        _ => Ok(authority),
    }
}

fn is_ours(options: &HttpOptions, host: &Authority<'_>) -> bool {
    let is = |known: &str| known.eq_ignore_ascii_case(host.name);
    ["localhost", "127.0.0.1", "[::1]"].into_iter().any(is)
        || options.any_host
        || options.hosts.iter().any(|known| is(known) || known.eq_ignore_ascii_case(host.whole))
}

/// Returns whether the options allow this origin.
pub(super) fn is_named_origin(options: &HttpOptions, origin: &HeaderValue) -> bool {
    origin.to_str().is_ok_and(|origin| options.origins.iter().any(|known| known.eq_ignore_ascii_case(origin)))
}

/// Returns whether a page of this origin may call. `host` returns the host of the request; most requests have no origin and
/// do not need it.
fn is_origin_allowed<'a>(
    options: &HttpOptions,
    origin: &HeaderValue,
    host: impl FnOnce() -> Option<Authority<'a>>,
) -> bool {
    if is_named_origin(options, origin) {
        return true;
    }
    let (Ok(origin), Some(host)) = (origin.to_str(), host()) else { return false };
    // The server's own pages: same host, same port. `null` is nobody's.
    let (default_port, rest) = match origin.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (80, rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (443, rest),
        _ => return false,
    };
    Authority::parse(rest).is_some_and(|origin| origin.is(&host, default_port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(host: &[&str], origin: Option<&str>) -> Result<(), Refusal> {
        let options = HttpOptions::new().hosts(["mcp.example.com"]).origins(["https://app.example.com"]);
        let mut headers = HeaderMap::new();
        for host in host {
            headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
        }
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        let uri = Uri::from_static("/mcp");
        check_host(&options, &uri, &headers).and_then(|()| check_origin(&options, &uri, &headers))
    }

    #[test]
    fn only_a_window_that_opens_a_page_navigates() {
        let navigates = |method: Method, headers: &[(&str, &str)]| {
            let mut request = http::Request::builder().method(method).uri("/page");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            is_navigation(&request.body(()).unwrap().into_parts().0)
        };
        let (mode, document) = (("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document"));
        assert!(navigates(Method::GET, &[mode, document, ("sec-fetch-site", "cross-site")]));
        for method in [Method::POST, Method::HEAD, Method::OPTIONS] {
            assert!(!navigates(method.clone(), &[mode, document]), "{method}");
        }
        for headers in [
            &[][..],
            &[mode],
            &[document],
            &[mode, ("sec-fetch-dest", "iframe")],
            &[mode, ("sec-fetch-dest", "image")],
            &[("sec-fetch-mode", "cors"), document],
            &[("sec-fetch-mode", "no-cors"), document],
            &[mode, document, ("sec-fetch-dest", "iframe")],
            &[mode, document, ("origin", "https://evil.example")],
            &[mode, document, ("origin", "null")],
        ] {
            assert!(!navigates(Method::GET, headers), "{headers:?}");
        }
    }

    #[test]
    fn only_names_of_this_server_are_answered() {
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:1",
            "[::1]:9",
            "mcp.example.com",
            "MCP.example.com:443",
        ] {
            assert_eq!(verdict(&[host], None), Ok(()), "{host}");
        }
        for host in [
            "evil.com",
            "evil.com:8080",
            "127.0.0.1.evil.com",
            "localhost.",
            "127.1",
            "0",
            "0.0.0.0",
            "[::ffff:127.0.0.1]",
            "xn--lcalhost-54a",
        ] {
            assert_eq!(verdict(&[host], None), Err(Refusal::ForeignHost), "{host}");
        }
        for hosts in [&["user@127.0.0.1"][..], &[], &["localhost", "localhost"], &["local host"], &[""]] {
            assert_eq!(verdict(hosts, None), Err(Refusal::BadHost), "{hosts:?}");
        }
        for host in ["[::1", "[::1]x", "[::z]", "[]x", "localhost:", "localhost:99999", "localhost:+1", ":80"]
        {
            assert_eq!(verdict(&[host], None), Err(Refusal::BadHost), "{host}");
        }
    }

    #[test]
    fn only_pages_of_this_server_may_call() {
        for origin in ["http://localhost:8080", "https://localhost:8080", "https://app.example.com"] {
            assert_eq!(verdict(&["localhost:8080"], Some(origin)), Ok(()), "{origin}");
        }
        for origin in [
            "null",
            "http://evil.com",
            "http://localhost",
            "http://localhost:8081",
            "http://localhost.:8080",
            "ftp://localhost:8080",
            "http://user@localhost:8080",
            "localhost:8080",
            "",
        ] {
            let refused = verdict(&["localhost:8080"], Some(origin));
            assert_eq!(refused, Err(Refusal::ForeignOrigin), "{origin}");
        }
    }
}
