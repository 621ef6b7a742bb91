//! Who may call at all: `Host` and `Origin`, checked before anything is read.

use super::settings::Settings;
use http::{HeaderMap, HeaderValue, Uri, header, uri::Authority};

/// Why a request is turned away at the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The name of the server is missing, given twice, or not a name.
    BadHost,
    /// The name is not one of this server's.
    ForeignHost,
    /// The page that sends the request is not one of this server's.
    ForeignOrigin,
}

impl Refusal {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::BadHost => "expected exactly one `Host` that is a plain host and port",
            Self::ForeignHost => "this server does not answer under that `Host`",
            Self::ForeignOrigin => "this server does not answer pages of that `Origin`",
        }
    }
}

/// Lets a request pass, or says why not.
pub(super) fn check(settings: &Settings, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let host = host(uri, headers)?;
    if !is_ours(settings, &host) {
        return Err(Refusal::ForeignHost);
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) if is_from_elsewhere(headers) => Err(Refusal::ForeignOrigin),
        (None, _) => Ok(()),
        (Some(origin), None) if is_welcome(settings, origin, &host) => Ok(()),
        _ => Err(Refusal::ForeignOrigin),
    }
}

/// What a page loads as an image or a script comes without `Origin`; browsers say in another header where from.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    headers.get_all("sec-fetch-site").iter().any(|site| site != "same-origin" && site != "none")
}

/// The one name the request is for. HTTP/2 has it in the URI, HTTP/1.1 in a header; where both are, they agree.
fn host(uri: &Uri, headers: &HeaderMap) -> Result<Authority, Refusal> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let named = match (hosts.next(), hosts.next()) {
        (Some(host), None) => Some(parse(host)?),
        (None, _) => None,
        (Some(_), Some(_)) => return Err(Refusal::BadHost),
    };
    match (uri.authority(), named) {
        (Some(authority), None) if is_plain(authority) => Ok(authority.clone()),
        (Some(authority), Some(named)) if is_plain(authority) && *authority == named => Ok(named),
        (None, Some(named)) => Ok(named),
        _ => Err(Refusal::BadHost),
    }
}

fn parse(host: &HeaderValue) -> Result<Authority, Refusal> {
    let authority = Authority::try_from(host.as_bytes()).map_err(|_| Refusal::BadHost)?;
    if is_plain(&authority) { Ok(authority) } else { Err(Refusal::BadHost) }
}

/// A user before the host is never part of it, and has been used to slip past checks.
fn is_plain(authority: &Authority) -> bool {
    !authority.as_str().contains('@') && !authority.host().is_empty()
}

fn is_ours(settings: &Settings, host: &Authority) -> bool {
    let name = host.host().to_ascii_lowercase();
    let with_port = host.as_str().to_ascii_lowercase();
    let local = matches!(name.as_str(), "localhost" | "127.0.0.1" | "[::1]");
    local || settings.hosts.iter().any(|known| *known == name || *known == with_port)
}

fn is_welcome(settings: &Settings, origin: &HeaderValue, host: &Authority) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    let origin = origin.to_ascii_lowercase();
    if settings.origins.contains(&origin) {
        return true;
    }
    // The server's own pages: same host, same port. `null` is nobody's.
    let (default_port, rest) = match origin.split_once("://") {
        Some(("http", rest)) => (80, rest),
        Some(("https", rest)) => (443, rest),
        _ => return false,
    };
    let Ok(authority) = Authority::try_from(rest) else { return false };
    let port = |authority: &Authority| authority.port_u16().unwrap_or(default_port);
    is_plain(&authority)
        && authority.host().eq_ignore_ascii_case(host.host())
        && port(&authority) == port(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(host: &[&str], origin: Option<&str>) -> Result<(), Refusal> {
        let settings = Settings::new().hosts(["mcp.example.com"]).origins(["https://app.example.com"]);
        let mut headers = HeaderMap::new();
        for host in host {
            headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
        }
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        check(&settings, &Uri::from_static("/mcp"), &headers)
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
