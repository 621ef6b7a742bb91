//! Reads the URL of a server.

use std::path::PathBuf;

use bowline_store::StoreError;
use redis::{Client, TlsCertificates};
use rustls::crypto::ring;

/// The most replicas that a write can wait for.
const MAX_WAIT: u32 = 16;

/// What a URL says.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) client: Client,
    /// How many replicas confirm a write.
    pub(crate) wait: u32,
    /// What errors show.
    pub(crate) shown: String,
}

/// Reads `redis://user:password@host:port/database?…`. No error shows the password.
pub(crate) fn parse(url: &str) -> Result<Address, StoreError> {
    let unfit = |reason: &str| {
        StoreError::invalid(format!(
            "invalid Redis URL, expected `redis://host:port` or `rediss://host:port` for TLS: {reason}"
        ))
    };
    let encrypted = url.starts_with("rediss://");
    if !encrypted && !url.starts_with("redis://") {
        return Err(unfit("it starts with neither `redis://` nor `rediss://`"));
    }
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let (mut roots, mut wait) = (None, 0);
    let mut kept = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslrootcert", path)) => roots = Some(PathBuf::from(path)),
            Some(("wait", value)) => {
                let replicas = value.parse().ok().filter(|replicas| *replicas <= MAX_WAIT);
                wait = replicas.ok_or_else(|| unfit(&format!("`wait` is 0 to {MAX_WAIT}, not `{value}`")))?;
            }
            Some(("protocol", _)) => kept.push(pair),
            _ => {
                let name = pair.split('=').next().unwrap_or_default();
                return Err(unfit(&format!(
                    "unknown parameter `{name}`; known are `wait` and `sslrootcert`"
                )));
            }
        }
    }
    let url = if kept.is_empty() { place.to_owned() } else { format!("{place}?{}", kept.join("&")) };
    let failed = |error: redis::RedisError| {
        // The detail of the parser may quote the URL.
        unfit(error.category())
    };
    let client = if encrypted {
        // The driver takes the provider of the process. It is set here unless the program has chosen one.
        let _ = ring::default_provider().install_default();
        let root_cert = roots.map(|path| read_roots(&path)).transpose()?;
        Client::build_with_tls(url, TlsCertificates { client_tls: None, root_cert })
    } else {
        Client::open(url)
    };
    let client = client.map_err(failed)?;
    let shown = client.get_connection_info().addr().to_string();
    Ok(Address { client, wait, shown })
}

fn read_roots(path: &PathBuf) -> Result<Vec<u8>, StoreError> {
    std::fs::read(path).map_err(|error| {
        StoreError::invalid(format!("the root certificates in {} cannot be read: {error}", path.display()))
            .with_source(error)
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn errors_say_what_is_wrong_without_the_password() {
        let check = |url: &str, expected: &str| {
            let Err(error) = parse(url) else { panic!("{url} was accepted") };
            let error = error.to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("canary"), "{error}");
        };
        check("http://:canary@h", "it starts with neither `redis://` nor `rediss://`");
        check("redis://:canary@h?wiat=1", "unknown parameter `wiat`; known are `wait` and `sslrootcert`");
        check("redis://:canary@h?wait=many", "`wait` is 0 to 16, not `many`");
        check("redis://:canary@h:port", "invalid Redis URL");
        check("redis://:canary@h/database", "invalid Redis URL");
        check(
            "rediss://:canary@h?sslrootcert=/missing.pem",
            "the root certificates in /missing.pem cannot be read",
        );
    }

    #[test]
    fn parameters_are_read() {
        let address = parse("redis://ann:canary@cache.example:6380/2?wait=1&protocol=resp3").unwrap();
        assert_eq!(address.wait, 1);
        assert_eq!(address.shown, "cache.example:6380");
        assert!(parse("rediss://cache.example").is_ok());
    }
}
