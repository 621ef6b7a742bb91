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

/// A proxy to reach servers through. The default is that of the [environment](Self::environment).
#[derive(Clone, Default)]
pub struct Proxy(Kind);

#[derive(Clone, Default)]
enum Kind {
    #[default]
    Environment,
    None,
    At(String),
}

impl Proxy {
    /// Returns the proxy that `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY` name for the server, unless `NO_PROXY` excepts
    /// it. The lower-case spellings come first. Servers of this machine are reached without a proxy.
    pub fn environment() -> Self {
        Self(Kind::Environment)
    }

    /// Returns no proxy: servers are reached directly, whatever the environment says.
    pub fn none() -> Self {
        Self(Kind::None)
    }

    /// Returns the proxy at this `http://` URL, which may hold a user and a password.
    pub fn at(url: impl Into<String>) -> Self {
        Self(Kind::At(url.into()))
    }

    /// Returns the proxy for `server`, if there is one.
    pub(super) fn for_server(
        &self,
        server: &Uri,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Via>> {
        match &self.0 {
            Kind::None => Ok(None),
            Kind::At(url) => Via::parse(url).map(Some).map_err(Error::misuse),
            Kind::Environment => match from_environment(server, variable) {
                Some((name, url)) => Via::parse(&url)
                    .map(Some)
                    .map_err(|reason| Error::misuse(format!("environment variable `{name}`: {reason}"))),
                None => Ok(None),
            },
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password.
        f.write_str(match self.0 {
            Kind::Environment => "Proxy::environment()",
            Kind::None => "Proxy::none()",
            Kind::At(_) => "Proxy::at(***)",
        })
    }
}

/// Returns the variable that names the proxy for a server, and its value.
fn from_environment(
    server: &Uri,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<(&'static str, String)> {
    let either = |name: &'static str| {
        let value = variable(&name.to_ascii_lowercase()).or_else(|| variable(name));
        value.filter(|value| !value.is_empty()).map(|value| (name, value))
    };
    // The proxy of a company cannot reach this machine, and must not see what its programs say to each other.
    if is_this_machine(server) || either("NO_PROXY").is_some_and(|(_, list)| is_excepted(&list, server)) {
        return None;
    }
    let by_scheme = if server.scheme_str() == Some("https") {
        either("HTTPS_PROXY")
    } else if variable("REQUEST_METHOD").is_some() {
        // In a CGI program, `HTTP_PROXY` is a header of the request.
        variable("http_proxy").filter(|value| !value.is_empty()).map(|value| ("http_proxy", value))
    } else {
        either("HTTP_PROXY")
    };
    by_scheme.or_else(|| either("ALL_PROXY"))
}

/// Returns the host of a server in lower case, IPv6 without brackets.
fn host(server: &Uri) -> String {
    server.host().unwrap_or_default().trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase()
}

/// Returns whether a host is this machine by its spelling. Systems treat the unspecified addresses as this machine.
fn is_this_machine(server: &Uri) -> bool {
    let host = host(server);
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Returns whether `NO_PROXY` contains a server: by name, suffix, address or network.
fn is_excepted(list: &str, server: &Uri) -> bool {
    let host = host(server);
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

    /// Asks the proxy to open a tunnel to `server`.
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

    fn for_server(server: &str, variables: &[(&str, &str)]) -> Option<String> {
        let lookup = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let via = Proxy::environment().for_server(&url::parse(server).unwrap(), lookup).unwrap();
        via.map(|via| via.uri.to_string())
    }

    #[test]
    fn the_environment_names_a_proxy_per_scheme() {
        let both = [("HTTP_PROXY", "http://plain:1"), ("https_proxy", "tls:2")];
        assert_eq!(for_server("http://h/", &both).unwrap(), "http://plain:1/");
        assert_eq!(for_server("https://h/", &both).unwrap(), "http://tls:2/");
        assert_eq!(for_server("https://h/", &[("ALL_PROXY", "any:3")]).unwrap(), "http://any:3/");
        assert_eq!(for_server("http://h/", &[]), None);
        assert_eq!(for_server("http://h/", &[("HTTP_PROXY", "")]), None);
        assert_eq!(for_server("http://h/", &[("HTTP_PROXY", "evil:1"), ("REQUEST_METHOD", "GET")]), None);
    }

    #[test]
    fn this_machine_is_reached_without_the_proxy_of_the_environment() {
        let all = [("HTTP_PROXY", "p"), ("HTTPS_PROXY", "p"), ("ALL_PROXY", "p")];
        for host in [
            "localhost",
            "LOCALHOST.",
            "a.localhost:9",
            "127.0.0.1:7337",
            "127.9.9.9",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "0.0.0.0:3000",
            "[::]:3000",
        ] {
            assert_eq!(for_server(&format!("http://{host}/"), &all), None, "{host}");
            assert_eq!(for_server(&format!("https://{host}/"), &all), None, "{host}");
        }
        for host in ["localhost.example.com", "notlocalhost", "10.0.0.1", "[fd12::1]"] {
            assert_eq!(for_server(&format!("http://{host}/"), &all).as_deref(), Some("http://p/"), "{host}");
        }
        // What a program sets itself has no exceptions.
        let server = url::parse("http://127.0.0.1/").unwrap();
        assert!(Proxy::at("p").for_server(&server, |_| None).unwrap().is_some());
        let server = url::parse("http://h/").unwrap();
        assert!(Proxy::none().for_server(&server, |_| Some("p".into())).unwrap().is_none());
    }

    #[test]
    fn an_unusable_proxy_is_reported_with_its_variable() {
        let lookup = |name: &str| (name == "all_proxy").then(|| "socks5://ann:secret@p:1".to_owned());
        let error = Proxy::environment().for_server(&url::parse("http://h/").unwrap(), lookup).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("`ALL_PROXY`") && message.contains("socks5://"), "{message}");
        assert!(!message.contains("secret"), "{message}");
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
            let found = for_server(server, &[("HTTP_PROXY", "p"), ("NO_PROXY", list)]);
            assert_eq!(found.is_none(), excepted, "{list} {server}");
        }
    }

    #[test]
    fn credentials_of_a_proxy_become_a_header_and_are_not_shown() {
        let proxy = Proxy::at("http://ann:p%40ss@proxy:3128");
        let via = proxy.for_server(&url::parse("https://h/").unwrap(), |_| None).unwrap().unwrap();
        assert_eq!(via.uri, "http://proxy:3128/");
        assert_eq!(via.authorization.as_ref().unwrap(), &format!("Basic {}", STANDARD.encode("ann:p@ss")));
        assert!(!format!("{proxy:?}{via:?}").contains("p@ss") && !format!("{proxy:?}").contains("ann"));
        assert!(Proxy::at("socks5://p").for_server(&url::parse("http://h/").unwrap(), |_| None).is_err());
    }
}
