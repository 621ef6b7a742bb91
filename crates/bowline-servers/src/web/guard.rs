//! Restricts requests to the public internet and explicitly allowed hosts (SSRF protection).

use bowline::{
    http::Resolve,
    server::BoxFuture,
    unstable::http::reach::{AddressKind, SpelledHost, plain},
};
use http::Uri;
use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

/// Resolves host names. Tests replace it.
pub(super) trait Lookup: Send + Sync {
    fn lookup<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the system.
struct System;

impl Lookup for System {
    fn lookup<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, port)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Keeps requests out of private networks.
///
/// A name is resolved once per connection, all its addresses are checked, and the connection uses a checked address. A changed DNS
/// record has no effect.
#[derive(Clone)]
pub(super) struct Guard {
    lookup: Arc<dyn Lookup>,
    reach: Reach,
    /// Allowed hosts, in lower case, with or without a port.
    allowed: Vec<String>,
}

/// Which addresses are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The public internet.
    Public,
    /// All addresses.
    Private,
}

impl Default for Guard {
    fn default() -> Self {
        Self { lookup: Arc::new(System), reach: Reach::Public, allowed: Vec::new() }
    }
}

impl Guard {
    pub(super) fn set_reach(&mut self, reach: Reach) {
        self.reach = reach;
    }

    /// Allows a host at any address: `name`, or `name:port` for one port.
    pub(super) fn allow(&mut self, host: &str) {
        self.allowed.push(host.trim_end_matches('.').to_ascii_lowercase());
    }

    /// Allows the host and port of a URL at any address.
    pub(super) fn allow_origin(&mut self, url: &str) {
        if let Ok(uri) = Uri::try_from(url)
            && let Some(host) = uri.host()
        {
            let implied = if uri.scheme_str() == Some("https") { 443 } else { 80 };
            let host = plain(host);
            self.allow(&format!("{host}:{}", uri.port_u16().unwrap_or(implied)));
        }
    }

    /// Checks a URL before its host is resolved. With a proxy, which resolves names itself, the only other check is whether this
    /// machine resolves the name to a private address.
    pub(super) fn check(&self, url: &str) -> Result<(), String> {
        let uri = Uri::try_from(url).map_err(|error| format!("invalid URL: {error}"))?;
        let default = match uri.scheme_str() {
            Some("http") => 80,
            Some("https") => 443,
            Some(_) | None => return Err("expected a URL that starts with `http://` or `https://`".into()),
        };
        let Some(authority) = uri.authority() else { return Err("the URL has no host".into()) };
        if authority.as_str().contains('@') {
            return Err("URLs with a user name or password are not allowed".into());
        }
        if uri.port_u16().is_none() && authority.as_str() != authority.host() {
            return Err("invalid port in the URL".into());
        }
        let port = uri.port_u16().unwrap_or(default);
        match self.host(authority.host(), port)? {
            Host::Anywhere(_) | Host::Name(_) => Ok(()),
            Host::Address(address) => {
                AddressKind::of(address).map_or(Ok(()), |kind| Err(refused(authority.host(), address, kind)))
            }
        }
    }

    /// Checks a host by its spelling.
    fn host<'a>(&self, spelled: &'a str, port: u16) -> Result<Host<'a>, String> {
        let host = plain(spelled);
        if self.reach == Reach::Private || self.is_allowed(host, port) {
            return Ok(Host::Anywhere(host));
        }
        let Some(parsed) = SpelledHost::parse(host) else {
            return Err(format!(
                "invalid host `{spelled}`; expected a host name, a dotted IPv4 address or an IPv6 address"
            ));
        };
        if parsed.is_private_name() {
            return Err(format!(
                "`{spelled}` is a host name of a private network, which is not allowed; start the server with \
                 `--allow-host {spelled}` to allow it"
            ));
        }
        Ok(match parsed {
            SpelledHost::Address(address) => Host::Address(address),
            SpelledHost::Name(name) => Host::Name(name),
        })
    }

    fn is_allowed(&self, host: &str, port: u16) -> bool {
        let host = host.to_ascii_lowercase();
        self.allowed.iter().any(|allowed| *allowed == host || *allowed == format!("{host}:{port}"))
    }

    async fn addresses(&self, spelled: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let unknown =
            |host: &str, error: &io::Error| io::Error::other(format!("cannot resolve `{host}`: {error}"));
        let denied = |reason: String| io::Error::new(io::ErrorKind::PermissionDenied, reason);
        let addresses = match self.host(spelled, port).map_err(denied)? {
            Host::Anywhere(host) => match host.parse() {
                Ok(address) => vec![address],
                Err(_) => self.lookup.lookup(host, port).await.map_err(|error| unknown(host, &error))?,
            },
            Host::Address(address) => public(spelled, vec![address]).map_err(denied)?,
            Host::Name(host) => {
                let addresses =
                    self.lookup.lookup(host, port).await.map_err(|error| unknown(host, &error))?;
                public(spelled, addresses).map_err(denied)?
            }
        };
        Ok(addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }
}

/// Returns all addresses if none of them is private. A private one would be used if the others do not respond.
fn public(host: &str, addresses: Vec<IpAddr>) -> Result<Vec<IpAddr>, String> {
    match addresses.iter().find_map(|address| Some((address, AddressKind::of(*address)?))) {
        Some((address, kind)) => Err(refused(host, *address, kind)),
        None => Ok(addresses),
    }
}

enum Host<'a> {
    Anywhere(&'a str),
    Address(IpAddr),
    Name(&'a str),
}

fn refused(host: &str, address: IpAddr, kind: AddressKind) -> String {
    format!(
        "`{host}` is at {address}, {kind}, which is not allowed; start the server with `--allow-host {host}` to \
         allow it"
    )
}

impl Resolve for Guard {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(self.addresses(host, port))
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("reach", &self.reach)
            .field("allowed", &self.allowed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Answers one list after the other, and counts how often it is asked.
    #[derive(Default)]
    struct Scripted(Mutex<Vec<Vec<IpAddr>>>);

    impl Lookup for Scripted {
        fn lookup<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            let next = self.0.lock().unwrap().pop();
            Box::pin(async move { next.ok_or_else(|| io::Error::other("asked once too often")) })
        }
    }

    fn guard(answers: &[&[&str]]) -> Guard {
        let parsed = answers.iter().rev().map(|list| list.iter().map(|text| text.parse().unwrap()).collect());
        Guard { lookup: Arc::new(Scripted(Mutex::new(parsed.collect()))), ..Guard::default() }
    }

    fn resolve(guard: &Guard, host: &str) -> Result<Vec<String>, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = runtime.block_on(guard.addresses(host, 80)).map_err(|error| error.to_string())?;
        Ok(found.iter().map(ToString::to_string).collect())
    }

    // V-50, V-92
    #[test]
    fn addresses_that_are_not_public_are_refused_in_every_spelling() {
        for host in [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "[::]",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b:1::1]",
            "[2002:7f00:1::]",
            "[2002:a9fe:a9fe::1]",
            "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
            "[2001:db8::1]",
            "[3fff::1]",
            "[fc00::1]",
            "[fd00:ec2::254]",
            "[fe80::1]",
            "[fe80::5efe:808:808]",
            "[2001:db8::5efe:808:808]",
            "[4000::5efe:808:808]",
            "[fec0::1]",
            "[ff02::1]",
            "[100::1]",
            "[5f00::1]",
            "[2a00::5efe:7f00:1]",
            "[4000::1]",
            // Spellings.
            "127.0.0.1.",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.1",
            "127.1",
            "127.0.1",
            "017700000001",
            "127.0.0.0x1",
            "0",
            "1.1.1.1.1",
            "256.1.1.1",
            "localhost",
            "localhost.",
            "LOCALHOST",
            "a.localhost",
            "metadata.google.internal",
            "printer.local",
            ".",
            "",
        ] {
            assert!(resolve(&guard(&[]), host).is_err(), "{host}");
            assert!(guard(&[]).check(&format!("http://{host}/")).is_err(), "{host}");
        }
    }

    // V-50
    #[test]
    fn only_http_without_credentials_is_a_url() {
        for url in [
            "file:///etc/passwd",
            "gopher://example.com/",
            "ftp://example.com/",
            "//example.com/",
            "example.com",
            "",
            "http://user@example.com/",
            "http://user:secret@example.com/",
            "http://example.com@127.0.0.1/",
            "http://127.0.0.1#@example.com/",
            "http://127.0.0.1:80\\@example.com/",
            "http:///path",
            "http://[::1",
            "http://①②⑦.①/",
            "http://exa mple.com/",
            "http://example.com:99999/",
            "javascript:alert(1)",
        ] {
            let message = guard(&[]).check(url).unwrap_err();
            assert!(!message.contains("secret"), "{message}");
        }
        for url in [
            "http://example.com/",
            "https://example.com:8443/a?b=c",
            "https://93.184.216.34/",
            "http://[2a00:1450::1]/",
        ] {
            guard(&[]).check(url).unwrap();
        }
    }

    // V-50
    #[test]
    fn a_name_is_resolved_once_and_every_address_is_checked() {
        assert_eq!(resolve(&guard(&[&["93.184.216.34"]]), "example.com").unwrap(), ["93.184.216.34:80"]);
        for second in ["127.0.0.1", "::1", "169.254.169.254", "::ffff:10.0.0.1"] {
            let message = resolve(&guard(&[&["93.184.216.34", second]]), "example.com").unwrap_err();
            assert!(message.contains(&second.parse::<IpAddr>().unwrap().to_string()), "{message}");
        }
        // A name that changes its meaning is refused when a connection is made by it again.
        let rebinding = guard(&[&["93.184.216.34"], &["127.0.0.1"]]);
        assert_eq!(resolve(&rebinding, "example.com").unwrap(), ["93.184.216.34:80"]);
        assert!(resolve(&rebinding, "example.com").is_err());
    }

    #[test]
    fn only_refusals_apply_behind_a_proxy() {
        let kind = |answers: &[&[&str]], host: &str| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(guard(answers).addresses(host, 80)).unwrap_err().kind()
        };
        assert_eq!(kind(&[&["10.0.0.7"]], "wiki.example"), io::ErrorKind::PermissionDenied);
        assert_eq!(kind(&[], "localhost"), io::ErrorKind::PermissionDenied);
        assert_eq!(kind(&[], "169.254.169.254"), io::ErrorKind::PermissionDenied);
        // Only the proxy knows the name.
        assert_eq!(kind(&[], "unknown.example"), io::ErrorKind::Other);
    }

    #[test]
    fn public_addresses_are_allowed() {
        for host in [
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "[2a00:1450::1]",
            "[64:ff9b::808:808]",
            "[2002:808:808::1]",
        ] {
            assert!(resolve(&guard(&[]), host).is_ok(), "{host}");
        }
    }

    #[test]
    fn allowed_hosts_may_have_private_addresses() {
        let mut allowing = guard(&[&["10.0.0.7"]]);
        allowing.allow("Wiki.internal");
        allowing.allow("127.0.0.1:8080");
        allowing.allow_origin("http://[::1]:9000/openapi.json");
        assert_eq!(resolve(&allowing, "wiki.internal.").unwrap(), ["10.0.0.7:80"]);
        assert!(resolve(&allowing, "127.0.0.1").is_err(), "another port");
        assert!(resolve(&allowing, "evil.wiki.internal").is_err());
        allowing.check("http://127.0.0.1:8080/").unwrap();
        allowing.check("http://[::1]:9000/x").unwrap();
        assert!(allowing.check("http://[::1]:9001/x").is_err());
        let mut open = guard(&[&["10.0.0.7"]]);
        open.set_reach(Reach::Private);
        assert_eq!(resolve(&open, "anything").unwrap(), ["10.0.0.7:80"]);
        assert_eq!(resolve(&open, "127.0.0.1").unwrap(), ["127.0.0.1:80"]);
    }
}
