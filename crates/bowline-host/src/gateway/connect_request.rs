//! Reads requests for the pages on which users connect their accounts.

use http::{header, request::Parts};
use std::fmt::Write as _;

/// Where the pages are.
pub(super) const PATH: &str = "/connect/";
/// Where authorization servers send the browser to: that of the gateway here, those of servers to a path below.
pub(super) const CALLBACK: &str = "/connect/callback";
/// The end of the path that starts a visit.
pub(super) const START: &str = "/start";
/// `__Host-`: only this host can set it, over a secure connection.
pub(super) const COOKIE: &str = "__Host-bowline-connect";

/// Returns the cookie of a visit. A browser that sends two is not trusted.
pub(super) fn cookie_of(request: &Parts) -> Option<String> {
    let lines = request.headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(name, _)| *name == COOKIE).map(|(_, value)| value);
    let value = values.next()?;
    values.next().is_none().then(|| value.to_owned())
}

/// Returns the path that the authorization server of a server sends browsers back to.
pub(super) fn callback_of(server: &str) -> String {
    let mut path = format!("{CALLBACK}/");
    for byte in server.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(path, "%{byte:02X}");
        }
    }
    path
}

/// Returns whether a request comes from a page of the gateway. Browsers say so; other programs have no pages.
pub(super) fn is_from_our_page(request: &Parts) -> bool {
    request.headers.get_all("sec-fetch-site").iter().all(|site| site == "same-origin")
}

/// Returns a query parameter as it is written.
pub(super) fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query
        .split('&')
        .find_map(|pair| pair.split_once('=').filter(|(known, _)| *known == name))
        .map(|(_, value)| value)
}

/// Returns the scheme, host and port of a URL.
pub(super) fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    url[start..].find('/').map_or(url, |end| &url[..start + end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    #[test]
    fn a_cookie_is_found_only_if_it_is_there_once() {
        let cookie = |lines: &[&str]| {
            let mut request = Request::get("/");
            for line in lines {
                request = request.header(header::COOKIE, *line);
            }
            cookie_of(&request.body(()).unwrap().into_parts().0)
        };
        assert_eq!(cookie(&["a=1; __Host-bowline-connect=x"]).as_deref(), Some("x"));
        assert_eq!(cookie(&["__Host-bowline-connect=x", "__Host-bowline-connect=y"]), None);
        assert_eq!(cookie(&["bowline-connect=x"]), None);
        assert_eq!(cookie(&[]), None);
    }

    #[test]
    fn each_server_has_a_redirect_uri_of_its_own() {
        assert_eq!(callback_of("far-1.b"), "/connect/callback/far-1.b");
        assert_eq!(callback_of("a/../é b"), "/connect/callback/a%2F..%2F%C3%A9%20b");
    }

    #[test]
    fn the_base_of_the_pages_is_beside_the_endpoint() {
        for (resource, path, base) in [
            ("https://mcp.example.com/mcp", "/mcp", "https://mcp.example.com"),
            ("https://example.com/team/mcp", "/mcp", "https://example.com/team"),
            ("https://example.com/", "/mcp", "https://example.com"),
            ("https://example.com", "/mcp", "https://example.com"),
        ] {
            let found = resource.strip_suffix(path).unwrap_or_else(|| origin(resource));
            assert_eq!(found.trim_end_matches('/'), base, "{resource}");
        }
    }
}
