//! Which addresses the URLs of metadata may lead to (SSRF protection).

use crate::client::connector::Resolve;
use bowline_client::BoxFuture;
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// Resolves the hosts of URLs that were learned from servers, for a client that runs for a user.
///
/// A name is resolved once per connection and all its addresses are checked. Link-local, cloud metadata and similar addresses
/// are refused; loopback addresses are refused unless the MCP server is at one. Private networks are allowed, because companies
/// have their authorization servers there. The host of the MCP server itself is the choice of the user, so it is not checked.
#[derive(Clone, Debug)]
pub(super) struct LearnedHosts {
    server: String,
    allows_loopback: bool,
}

impl LearnedHosts {
    /// The rules for logins at the MCP server at this URL.
    pub(super) fn new(server: &str) -> Self {
        let host = http::Uri::try_from(server).ok().and_then(|uri| uri.host().map(plain)).unwrap_or_default();
        let is_loopback = host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        Self { allows_loopback: is_loopback || host == "localhost", server: host }
    }

    /// Checks the host of a URL by its spelling. With a proxy, which resolves names itself, this is the only check.
    pub(super) fn check(&self, url: &str) -> Result<(), String> {
        let host = http::Uri::try_from(url).ok().and_then(|uri| uri.host().map(plain)).unwrap_or_default();
        if host == self.server {
            return Ok(());
        }
        if !self.allows_loopback && (host == "localhost" || host.ends_with(".localhost")) {
            return Err(refused(&host, "a loopback address"));
        }
        host.parse().map_or(Ok(()), |address| self.check_address(&host, address))
    }

    fn check_address(&self, host: &str, address: IpAddr) -> Result<(), String> {
        match forbidden(address) {
            Some("a loopback address") if self.allows_loopback => Ok(()),
            Some(kind) => Err(refused(host, kind)),
            None => Ok(()),
        }
    }
}

impl Resolve for LearnedHosts {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = tokio::net::lookup_host((host, port)).await?.collect();
            if plain(host) != self.server {
                for address in &addresses {
                    self.check_address(host, address.ip()).map_err(io::Error::other)?;
                }
            }
            Ok(addresses)
        })
    }
}

fn plain(host: &str) -> String {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

fn refused(host: &str, kind: &str) -> String {
    format!("`{host}` is {kind}, which the metadata of a server may not lead to")
}

/// Describes an address that the metadata of a server may not lead to.
fn forbidden(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => forbidden_v4(address),
        IpAddr::V6(address) => forbidden_v6(address),
    }
}

fn forbidden_v4(address: Ipv4Addr) -> Option<&'static str> {
    Some(match address.octets() {
        [127, ..] => "a loopback address",
        [0, ..] => "an unspecified address",
        [169, 254, ..] => "a link-local address",
        [168, 63, 129, 16] | [100, 100, 100, 200] => "an internal address of a cloud provider",
        [224..=255, ..] => "a multicast or reserved address",
        _ => return None,
    })
}

fn forbidden_v6(address: Ipv6Addr) -> Option<&'static str> {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        forbidden_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("an unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("a loopback address"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xfd00, 0x0ec2, ..] => Some("an internal address of a cloud provider"),
        [0xff00..=0xffff, ..] => Some("a multicast or reserved address"),
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => embedded(high, low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v50_metadata_does_not_lead_to_this_machine_or_the_cloud_provider() {
        let hosts = LearnedHosts::new("https://mcp.example/mcp");
        for host in [
            "127.0.0.1",
            "127.9.9.9",
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "0.0.0.0",
            "169.254.169.254",
            "168.63.129.16",
            "100.100.100.200",
            "224.0.0.1",
            "255.255.255.255",
            "[::]",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:169.254.169.254]",
            "[::127.0.0.1]",
            "[64:ff9b::a9fe:a9fe]",
            "[2002:a9fe:a9fe::1]",
            "[fe80::1]",
            "[fd00:ec2::254]",
            "[ff02::1]",
        ] {
            assert!(hosts.check(&format!("https://{host}/token")).is_err(), "{host}");
        }
        for host in ["as.example", "10.0.0.5", "192.168.1.1", "[fd12::1]", "8.8.8.8", "mcp.example"] {
            hosts.check(&format!("https://{host}/token")).unwrap();
        }
    }

    #[tokio::test]
    async fn v50_names_are_checked_after_they_are_resolved() {
        let hosts = LearnedHosts::new("https://mcp.example/mcp");
        let error = hosts.resolve("127.0.0.1", 80).await.unwrap_err();
        assert!(error.to_string().contains("loopback"), "{error}");
        let local = LearnedHosts::new("http://127.0.0.1:3000/mcp");
        assert_eq!(local.resolve("127.0.0.2", 80).await.unwrap().len(), 1);
        assert!(local.resolve("169.254.169.254", 80).await.is_err());
    }

    #[test]
    fn a_server_on_this_machine_may_have_its_authorization_server_there() {
        let hosts = LearnedHosts::new("http://localhost:3000/mcp");
        hosts.check("http://127.0.0.1:9000/token").unwrap();
        hosts.check("http://localhost:9000/token").unwrap();
        assert!(hosts.check("http://169.254.169.254/").is_err());
        let odd = LearnedHosts::new("http://169.254.10.10/mcp");
        odd.check("http://169.254.10.10/token").unwrap();
    }
}
