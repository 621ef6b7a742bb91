//! Whether a server is reached through a proxy, and how a proxy is asked to let a connection through.

use super::url;
use base64::{Engine, engine::general_purpose::STANDARD};
use bowline_client::{Error, Result};
use bowline_proto::uri::percent_decode;
use http::{HeaderValue, Uri};
use std::{fmt, io, net::IpAddr};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The most a proxy may say before the connection is through.
const MAX_HEAD: usize = 8 * 1024;

/// A proxy to reach servers through.
#[derive(Clone)]
pub struct Proxy(Kind);

#[derive(Clone)]
enum Kind {
    Environment,
    At(String),
}

impl Proxy {
    /// Returns the proxy that `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY` name for the server, unless `NO_PROXY` excepts
    /// it. The lower-case spellings come first.
    pub fn environment() -> Self {
        Self(Kind::Environment)
    }

    /// Returns the proxy at this `http://` URL, which may hold a user and a password.
    pub fn at(url: impl Into<String>) -> Self {
        Self(Kind::At(url.into()))
    }

    /// Returns the proxy for `server`, if there is one.
    pub(super) fn towards(
        &self,
        server: &Uri,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Via>> {
        let text = match &self.0 {
            Kind::At(url) => Some(url.clone()),
            Kind::Environment => from_environment(server, variable),
        };
        text.map(|text| Via::parse(&text).map_err(Error::misuse)).transpose()
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password.
        f.write_str(match self.0 {
            Kind::Environment => "Proxy::environment()",
            Kind::At(_) => "Proxy::at(***)",
        })
    }
}

fn from_environment(server: &Uri, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let either = |name: &str| {
        variable(&name.to_ascii_lowercase()).or_else(|| variable(name)).filter(|value| !value.is_empty())
    };
    if either("NO_PROXY").is_some_and(|list| is_excepted(&list, server)) {
        return None;
    }
    let by_scheme = if server.scheme_str() == Some("https") {
        either("HTTPS_PROXY")
    } else if variable("REQUEST_METHOD").is_some() {
        // In a CGI program, `HTTP_PROXY` is a header of the request.
        variable("http_proxy").filter(|value| !value.is_empty())
    } else {
        either("HTTP_PROXY")
    };
    by_scheme.or_else(|| either("ALL_PROXY"))
}

/// Returns whether `NO_PROXY` contains a server: by name, suffix, address or network.
fn is_excepted(list: &str, server: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
    let address: Option<IpAddr> = host.parse().ok();
    list.split([',', ' ']).map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        let entry = entry.to_ascii_lowercase();
        if entry == "*" {
            return true;
        }
        if let (Some(address), Some((network, bits))) = (address, entry.split_once('/')) {
            return network.parse().is_ok_and(|network| is_within(address, network, bits));
        }
        let (name, port) = match entry.rsplit_once(':') {
            Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, Some(port)),
            _ => (entry.as_str(), None),
        };
        if port.is_some_and(|port| port.parse() != Ok(url::port(server))) {
            return false;
        }
        let name = name.trim_matches(['[', ']']).trim_start_matches("*.").trim_start_matches('.');
        host == name
            || (address.is_none()
                && host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.') && !name.is_empty()))
    })
}

fn is_within(address: IpAddr, network: IpAddr, bits: &str) -> bool {
    let Ok(bits) = bits.parse::<u32>() else { return false };
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) if bits <= 32 => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            u32::from(address) & mask == u32::from(network) & mask
        }
        (IpAddr::V6(address), IpAddr::V6(network)) if bits <= 128 => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            u128::from(address) & mask == u128::from(network) & mask
        }
        _ => false,
    }
}

/// A proxy for a server.
#[derive(Clone, Debug)]
pub(super) struct Via {
    pub(super) uri: Uri,
    pub(super) authorization: Option<HeaderValue>,
}

impl Via {
    fn parse(text: &str) -> Result<Self, String> {
        let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text.as_str()));
        if scheme != "http" {
            return Err(format!("expected a proxy at an `http://` URL, got one at `{scheme}://`"));
        }
        let (user, host) = match rest.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, rest),
        };
        let uri = url::parse(&format!("http://{host}"))?;
        let authorization = user.map(|user| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            let pair = [percent_decode(name), percent_decode(password)].join(&b':');
            let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)))
                .map_err(|error| error.to_string())?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        });
        Ok(Self { uri, authorization: authorization.transpose()? })
    }

    /// Asks the proxy to pass everything on to `server` from here on.
    pub(super) async fn tunnel(&self, mut stream: TcpStream, server: &Uri) -> io::Result<TcpStream> {
        let to = format!("{}:{}", server.host().unwrap_or_default(), url::port(server));
        let mut request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n").into_bytes();
        if let Some(value) = &self.authorization {
            request.extend_from_slice(b"Proxy-Authorization: ");
            request.extend_from_slice(value.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        stream.write_all(&request).await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() >= MAX_HEAD {
                return Err(io::Error::other(format!(
                    "the response header of the proxy is longer than {MAX_HEAD} bytes"
                )));
            }
            // Reads single bytes, so that nothing after the head is consumed.
            head.push(stream.read_u8().await?);
        }
        let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        match line.split(' ').nth(1) {
            Some("200") => Ok(stream),
            _ => Err(io::Error::other(format!("the proxy refused the connection: {line}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn towards(server: &str, variables: &[(&str, &str)]) -> Option<String> {
        let lookup = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let via = Proxy::environment().towards(&url::parse(server).unwrap(), lookup).unwrap();
        via.map(|via| via.uri.to_string())
    }

    #[test]
    fn the_environment_names_a_proxy_per_scheme() {
        let both = [("HTTP_PROXY", "http://plain:1"), ("https_proxy", "tls:2")];
        assert_eq!(towards("http://h/", &both).unwrap(), "http://plain:1/");
        assert_eq!(towards("https://h/", &both).unwrap(), "http://tls:2/");
        assert_eq!(towards("https://h/", &[("ALL_PROXY", "any:3")]).unwrap(), "http://any:3/");
        assert_eq!(towards("http://h/", &[]), None);
        assert_eq!(towards("http://h/", &[("HTTP_PROXY", "")]), None);
        assert_eq!(towards("http://h/", &[("HTTP_PROXY", "evil:1"), ("REQUEST_METHOD", "GET")]), None);
    }

    #[test]
    fn no_proxy_excepts_by_name_ending_address_and_network() {
        for (list, server, excepted) in [
            ("*", "http://any/", true),
            ("example.com", "http://example.com/", true),
            ("example.com", "http://api.EXAMPLE.com/", true),
            (".example.com", "http://api.example.com/", true),
            ("example.com", "http://badexample.com/", false),
            ("a, b ,c", "http://b/", true),
            ("h:8080", "http://h:8080/", true),
            ("h:8080", "http://h/", false),
            ("127.0.0.1", "http://127.0.0.1:9/", true),
            ("10.0.0.0/8", "http://10.1.2.3/", true),
            ("10.0.0.0/8", "http://11.1.2.3/", false),
            ("0.0.0.0/0", "http://11.1.2.3/", true),
            ("::1", "http://[::1]:8/", true),
            ("fd00::/8", "http://[fd12::1]/", true),
            ("10.0.0.0/99", "http://10.1.2.3/", false),
            ("", "http://h/", false),
        ] {
            let found = towards(server, &[("HTTP_PROXY", "p"), ("NO_PROXY", list)]);
            assert_eq!(found.is_none(), excepted, "{list} {server}");
        }
    }

    #[test]
    fn credentials_of_a_proxy_become_a_header_and_are_not_shown() {
        let proxy = Proxy::at("http://ann:p%40ss@proxy:3128");
        let via = proxy.towards(&url::parse("https://h/").unwrap(), |_| None).unwrap().unwrap();
        assert_eq!(via.uri, "http://proxy:3128/");
        assert_eq!(via.authorization.as_ref().unwrap(), &format!("Basic {}", STANDARD.encode("ann:p@ss")));
        assert!(!format!("{proxy:?}{via:?}").contains("p@ss") && !format!("{proxy:?}").contains("ann"));
        assert!(Proxy::at("socks5://p").towards(&url::parse("http://h/").unwrap(), |_| None).is_err());
    }
}
