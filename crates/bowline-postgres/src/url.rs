//! Reads the URL of a database.

use std::path::PathBuf;
use std::time::Duration;

use bowline_store::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// How many connections a pool has by default.
const DEFAULT_POOL: usize = 8;

/// The largest pool.
const MAX_POOL: usize = 256;

/// What a URL says.
#[derive(Clone)]
pub(crate) struct Address {
    /// Where records are.
    pub(crate) records: Config,
    /// Where hints are sent and received. A pooler that hands out connections per transaction cannot do that.
    pub(crate) hints: Config,
    /// The root certificates; those of the system if none.
    pub(crate) roots: Option<PathBuf>,
    pub(crate) pool: usize,
}

/// Reads `postgres://user:password@host:port/database?…`. No error shows the password.
pub(crate) fn parse(url: &str, connect_timeout: Duration) -> Result<Address, StoreError> {
    let unfit = |reason: &str| {
        StoreError::invalid(format!(
            "invalid PostgreSQL URL, expected `postgres://user@host/database`: {reason}"
        ))
    };
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(unfit("it does not start with `postgres://`"));
    }
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let (mut listen, mut roots, mut pool) = (None, None, DEFAULT_POOL);
    let mut kept = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("listen", value)) => {
                listen = Some(decoded(value).ok_or_else(|| unfit("`listen` is not UTF-8"))?);
            }
            Some(("sslrootcert", value)) => {
                roots =
                    Some(PathBuf::from(decoded(value).ok_or_else(|| unfit("`sslrootcert` is not UTF-8"))?));
            }
            Some(("pool", value)) => {
                let size = value.parse().ok().filter(|size| (1..=MAX_POOL).contains(size));
                pool = size.ok_or_else(|| unfit(&format!("`pool` is 1 to {MAX_POOL}, not `{value}`")))?;
            }
            // Certificates are always verified, and so are the names in them.
            Some(("sslmode", "verify-ca" | "verify-full")) => kept.push("sslmode=require".to_owned()),
            _ => kept.push(pair.to_owned()),
        }
    }
    let url = if kept.is_empty() { place.to_owned() } else { format!("{place}?{}", kept.join("&")) };
    let mut records: Config = url.parse().map_err(|error| unfit(&described(&error)))?;
    if records.get_hosts().is_empty() {
        return Err(unfit("no host"));
    }
    if records.get_dbname().is_none() {
        return Err(unfit("no database"));
    }
    records.connect_timeout(connect_timeout).target_session_attrs(TargetSessionAttrs::ReadWrite);
    if records.get_application_name().is_none() {
        records.application_name("bowline");
    }
    secure(&mut records);
    let hints = match listen {
        None => records.clone(),
        Some(listen) => direct(&records, &listen)
            .ok_or_else(|| unfit(&format!("`listen` is `host` or `host:port`, not `{listen}`")))?,
    };
    Ok(Address { records, hints, roots, pool })
}

/// The same database and user at another address.
fn direct(records: &Config, listen: &str) -> Option<Config> {
    let (host, port) = match listen.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (listen, 5432),
    };
    if host.is_empty() {
        return None;
    }
    let mut config = Config::new();
    config.host(host).port(port).target_session_attrs(TargetSessionAttrs::ReadWrite);
    if let Some(user) = records.get_user() {
        config.user(user);
    }
    if let Some(password) = records.get_password() {
        config.password(password);
    }
    if let Some(database) = records.get_dbname() {
        config.dbname(database);
    }
    if let Some(name) = records.get_application_name() {
        config.application_name(name);
    }
    if let Some(timeout) = records.get_connect_timeout() {
        config.connect_timeout(*timeout);
    }
    config.ssl_mode(if records.get_ssl_mode() == SslMode::Require {
        SslMode::Require
    } else {
        SslMode::Prefer
    });
    secure(&mut config);
    Some(config)
}

/// Encryption that falls back to plain text protects nothing: it is required, or off on this machine.
fn secure(config: &mut Config) {
    if config.get_ssl_mode() == SslMode::Prefer {
        let near = config.get_hosts().iter().all(is_near);
        config.ssl_mode(if near { SslMode::Disable } else { SslMode::Require });
    }
}

fn is_near(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

/// Decodes `%2F`.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// The message of the server with its hint, or the error with its cause.
pub(crate) fn described(error: &tokio_postgres::Error) -> String {
    if let Some(from_server) = error.as_db_error() {
        let hint = from_server.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        return format!("{}{hint}", from_server.message());
    }
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> Address {
        parse(url, Duration::from_secs(1)).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn only_local_connections_are_unencrypted() {
        let mode = |url| address(url).records.get_ssl_mode();
        assert_eq!(mode("postgres://ann@localhost/state"), SslMode::Disable);
        assert_eq!(mode("postgres://ann@127.0.0.1:5433/state"), SslMode::Disable);
        assert_eq!(mode("postgres://ann@%2Fvar%2Frun%2Fpostgresql/state"), SslMode::Disable);
        assert_eq!(mode("postgres://ann@db.example.com/state"), SslMode::Require);
        assert_eq!(mode("postgres://ann@localhost/state?sslmode=verify-full"), SslMode::Require);
        assert_eq!(mode("postgres://ann@db.example.com/state?sslmode=disable"), SslMode::Disable);
    }

    #[test]
    fn own_parameters_are_read() {
        let address = address(
            "postgres://ann:secret@pooler.example/state?pool=3&listen=db.example:5433&sslrootcert=%2Fetc%2Froot%20a.pem",
        );
        assert_eq!(address.pool, 3);
        assert_eq!(address.roots, Some(PathBuf::from("/etc/root a.pem")));
        assert_eq!(address.hints.get_hosts(), [Host::Tcp("db.example".to_owned())]);
        assert_eq!(address.hints.get_ports(), [5433]);
        assert_eq!(address.hints.get_password(), Some(&b"secret"[..]));
        assert_eq!(address.hints.get_ssl_mode(), SslMode::Require);
        assert_eq!(address.records.get_hosts(), [Host::Tcp("pooler.example".to_owned())]);
    }

    #[test]
    fn errors_say_what_is_wrong_without_the_password() {
        let check = |url: &str, expected: &str| {
            let Err(error) = parse(url, Duration::from_secs(1)) else { panic!("{url} was accepted") };
            let error = error.to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("canary"), "{error}");
        };
        check("mysql://ann:canary@h/db", "it does not start with `postgres://`");
        check("postgres://ann:canary@h", "no database");
        check("postgres://ann:canary@/db", "no host");
        check("postgres://ann:canary@h:port/db", "invalid PostgreSQL URL");
        check("postgres://ann:canary@h/db?pool=0", "`pool` is 1 to 256, not `0`");
        check("postgres://ann:canary@h/db?listen=h:x", "`listen` is `host` or `host:port`, not `h:x`");
        check("postgres://ann:canary@h/db?poool=9", "poool");
    }
}
