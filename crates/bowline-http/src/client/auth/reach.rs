//! Which addresses the URLs of metadata may lead to (SSRF protection).

use crate::{
    client::connector::Resolve,
    reach::{AddressKind, SpelledHost, plain},
};
use bowline_client::BoxFuture;
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

/// The networks that URLs may lead to if they were learned from a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Networks {
    /// The internet and private networks, for a program that runs for one user: companies have their authorization servers in
    /// private networks. Loopback addresses are allowed only if the MCP server is at one; link-local addresses and those of
    /// cloud providers never.
    #[default]
    Desktop,
    /// The internet only, for a program that others can reach, such as a gateway or a web application. A server that others
    /// chose must not make it send requests into its own network.
    Public,
}

/// Resolves the hosts of URLs that were learned from servers.
///
/// A name is resolved once per connection, all its addresses are checked, and the connection uses a checked one. The host of
/// the MCP server itself is the choice of the user, so it is not checked.
#[derive(Clone, Debug)]
pub(crate) struct LearnedHosts {
    /// The host of the server, and hosts that the user configured.
    trusted: Vec<String>,
    networks: Networks,
    allows_loopback: bool,
    lookup: Arc<dyn Resolve>,
}

/// The resolver of the system.
#[derive(Debug)]
struct SystemLookup;

impl Resolve for SystemLookup {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

impl LearnedHosts {
    /// Creates rules for URLs that the server at this URL names.
    pub(crate) fn new(server: &str, networks: Networks) -> Self {
        let server = host_of(server);
        let is_loopback = server.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        let allows_loopback = networks == Networks::Desktop && (is_loopback || server == "localhost");
        Self { trusted: vec![server], networks, allows_loopback, lookup: Arc::new(SystemLookup) }
    }

    /// Also allows the hosts of URLs that the user configured.
    pub(crate) fn trust<'a>(mut self, urls: impl IntoIterator<Item = &'a str>) -> Self {
        self.trusted.extend(urls.into_iter().map(host_of).filter(|host| !host.is_empty()));
        self
    }

    fn is_trusted(&self, host: &str) -> bool {
        self.trusted.iter().any(|trusted| trusted == host)
    }

    /// Checks the host of a URL by its spelling. With a proxy, which resolves names itself, the only other check is whether this
    /// machine resolves the name to a refused address.
    pub(crate) fn check(&self, url: &str) -> Result<(), String> {
        let host = host_of(url);
        if self.is_trusted(&host) {
            return Ok(());
        }
        let Some(parsed) = SpelledHost::parse(&host) else {
            return Err(format!("`{host}` is not a host name, a dotted IPv4 address or an IPv6 address"));
        };
        if let SpelledHost::Address(address) = parsed {
            return self.check_address(&host, address);
        }
        if !self.allows_loopback && (host == "localhost" || host.ends_with(".localhost")) {
            return Err(refused(&host, AddressKind::Loopback));
        }
        if self.networks == Networks::Public && parsed.is_private_name() {
            return Err(format!(
                "`{host}` is a name of a private network, which the metadata of a server may not lead to"
            ));
        }
        Ok(())
    }

    fn check_address(&self, host: &str, address: IpAddr) -> Result<(), String> {
        let Some(kind) = AddressKind::of(address) else { return Ok(()) };
        let is_allowed = self.networks == Networks::Desktop
            && match kind {
                AddressKind::Loopback => self.allows_loopback,
                // Some proxies of desktops resolve every name to an address that is reserved for tests.
                AddressKind::Private | AddressKind::CarrierNat | AddressKind::SpecialPurpose => true,
                AddressKind::Unspecified
                | AddressKind::LinkLocal
                | AddressKind::CloudInternal
                | AddressKind::Multicast
                | AddressKind::Reserved => false,
            };
        if is_allowed { Ok(()) } else { Err(refused(host, kind)) }
    }
}

impl Resolve for LearnedHosts {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move {
            let addresses = self.lookup.resolve(host, port).await?;
            if !self.is_trusted(&plain(host).to_ascii_lowercase()) {
                for address in &addresses {
                    self.check_address(host, address.ip())
                        .map_err(|reason| io::Error::new(io::ErrorKind::PermissionDenied, reason))?;
                }
            }
            Ok(addresses)
        })
    }
}

fn host_of(url: &str) -> String {
    let uri = http::Uri::try_from(url).ok();
    uri.and_then(|uri| uri.host().map(|host| plain(host).to_ascii_lowercase())).unwrap_or_default()
}

fn refused(host: &str, kind: AddressKind) -> String {
    format!("`{host}` is {kind}, which the metadata of a server may not lead to")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn desktop(server: &str) -> LearnedHosts {
        LearnedHosts::new(server, Networks::Desktop)
    }

    fn public(server: &str) -> LearnedHosts {
        LearnedHosts::new(server, Networks::Public)
    }

    /// Answers one list after the other.
    #[derive(Debug)]
    struct Scripted(Mutex<Vec<Vec<SocketAddr>>>);

    impl Resolve for Scripted {
        fn resolve<'a>(&'a self, _: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
            let next = self.0.lock().unwrap().pop();
            let next = next.ok_or_else(|| io::Error::other("asked once too often"));
            let next = next.map(|list| list.iter().map(|at| SocketAddr::new(at.ip(), port)).collect());
            Box::pin(async move { next })
        }
    }

    fn scripted(mut hosts: LearnedHosts, answers: &[&[&str]]) -> LearnedHosts {
        let address = |text: &&str| SocketAddr::new(text.parse().unwrap(), 0);
        let parsed = answers.iter().rev().map(|list| list.iter().map(address).collect());
        hosts.lookup = Arc::new(Scripted(Mutex::new(parsed.collect())));
        hosts
    }

    #[test]
    fn v50_metadata_does_not_lead_to_this_machine_or_the_cloud_provider() {
        let hosts = desktop("https://mcp.example/mcp");
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
        let hosts = desktop("https://mcp.example/mcp");
        let error = hosts.resolve("127.0.0.1", 80).await.unwrap_err();
        assert!(error.to_string().contains("loopback"), "{error}");
        let local = desktop("http://127.0.0.1:3000/mcp");
        assert_eq!(local.resolve("127.0.0.2", 80).await.unwrap().len(), 1);
        assert!(local.resolve("169.254.169.254", 80).await.is_err());
    }

    #[test]
    fn a_server_on_this_machine_may_have_its_authorization_server_there() {
        let hosts = desktop("http://localhost:3000/mcp");
        hosts.check("http://127.0.0.1:9000/token").unwrap();
        hosts.check("http://localhost:9000/token").unwrap();
        assert!(hosts.check("http://169.254.169.254/").is_err());
        let odd = desktop("http://169.254.10.10/mcp");
        odd.check("http://169.254.10.10/token").unwrap();
    }

    #[test]
    fn v50_a_program_that_others_reach_sends_nothing_into_private_networks() {
        // proves: SEC-17, SEC-19
        let hosts = public("https://mcp.example/mcp");
        for host in [
            "127.0.0.1",
            "localhost",
            "a.localhost.",
            "[::1]",
            "[::]",
            "0.0.0.0",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "127.1",
            "[::ffff:127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "[fec0::1]",
            "[fd12::1]",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "10.0.0.5",
            "172.16.0.1",
            "192.168.1.1",
            "198.18.0.1",
            "metadata.google.internal",
            "printer.local",
        ] {
            assert!(hosts.check(&format!("https://{host}/token")).is_err(), "{host}");
        }
        for host in ["as.example", "8.8.8.8", "[2a00:1450::1]", "mcp.example"] {
            hosts.check(&format!("https://{host}/token")).unwrap();
        }
        // The server itself is the choice of whoever runs the program, its neighbors are not.
        let inside = public("http://10.0.0.5/mcp");
        inside.check("http://10.0.0.5/token").unwrap();
        assert!(inside.check("http://10.0.0.6/token").is_err());
        assert!(public("http://127.0.0.1:3000/mcp").check("http://127.0.0.2/token").is_err());
    }

    #[tokio::test]
    async fn v50_a_name_that_changes_its_address_is_checked_again() {
        // proves: SEC-21
        let kinds = [(public as fn(&str) -> LearnedHosts, "10.0.0.1"), (desktop, "169.254.169.254")];
        for (rules, inside) in kinds {
            let hosts = rules("https://mcp.example/mcp");
            let rebinding = scripted(hosts.clone(), &[&["93.184.216.34"], &[inside]]);
            assert_eq!(rebinding.resolve("as.example", 443).await.unwrap().len(), 1);
            assert!(rebinding.resolve("as.example", 443).await.is_err());
            // One bad address among good ones would be used if the others do not answer.
            let mixed = scripted(hosts, &[&["93.184.216.34", inside]]);
            assert!(mixed.resolve("as.example", 443).await.is_err());
        }
    }
}
