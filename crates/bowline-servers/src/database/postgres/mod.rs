//! PostgreSQL: one connection, one transaction and one statement per call.

mod schema;
mod stream;
mod times;
mod values;

use super::{
    engine::{Executed, Limits, Statement, Tool},
    error::Error,
    queue::Slot,
    rows::{Collector, Column, Fit, Rows, Wanted},
    schema::{Table, TableName},
};
use futures_util::{Stream, StreamExt, pin_mut};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};
use stream::{Connector, Limited, ReadLimit};
use tokio::task::JoinHandle;
use tokio_postgres::{
    CancelToken, Client, Config, NoTls, Row,
    config::{Host, SslMode, SslNegotiation},
    error::SqlState,
    types::ToSql,
};
use tokio_postgres_rustls::MakeRustlsConnect;
use values::{Parameter, Raw};

/// The timeout for connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// How much longer than the server's own timeout to wait.
const GRACE: Duration = Duration::from_secs(2);

/// The maximum size of a received row, in addition to the result limit.
const MAX_ROW: usize = 16 * 1024 * 1024;

/// A PostgreSQL database.
#[derive(Clone)]
pub(super) struct Postgres {
    config: Config,
    tls: MakeRustlsConnect,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The `Debug` output of the configuration hides the password.
        f.debug_struct("Postgres").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Postgres {
    pub(super) fn new(url: &str) -> Result<Self, Error> {
        let unfit = |reason: &dyn std::fmt::Display| {
            Error::new(format!("invalid PostgreSQL URL, expected `postgres://user@host/database`: {reason}"))
        };
        let mut config: Config = url.parse().map_err(|error| unfit(&described(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(unfit(&"no host"));
        }
        if config.get_hosts().len() > 1 && config.get_hosts().iter().any(|host| !is_tcp(host)) {
            return Err(unfit(&"a Unix socket must be the only host"));
        }
        config.application_name("bowline").connect_timeout(CONNECT);
        // Encryption that silently falls back to plain text is useless.
        if config.get_ssl_mode() == SslMode::Prefer {
            let near = config.get_hosts().iter().all(is_near);
            config.ssl_mode(if near { SslMode::Disable } else { SslMode::Require });
        }
        let roots = match config.get_ssl_mode() {
            SslMode::Disable => RootCertStore::empty(),
            _ => native_roots(),
        };
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(Error::new)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { config, tls: MakeRustlsConnect::new(tls) })
    }

    pub(super) async fn query(
        &self,
        statement: Statement,
        limits: Limits,
        slot: Slot,
    ) -> Result<Rows, Error> {
        let tool = statement.tool;
        self.within(limits, slot, tool, |mut session| async move {
            let begun = session.client.build_transaction().read_only(true).start().await;
            let transaction = begun.map_err(Failed::Engine)?;
            let prepared = transaction.prepare(&statement.sql).await?;
            // A read-only transaction does not prevent commands such as COPY and SET. None of them returns rows.
            if prepared.columns().is_empty() {
                return Err(Failed::Told(Error::no_rows()));
            }
            let parameters = parameters(&statement, prepared.params().len()).map_err(Failed::Told)?;
            let portal = transaction.bind(&prepared, &as_sql(&parameters)).await?;
            // One extra row shows whether there are more. Zero would mean all rows.
            let wanted = i32::try_from(limits.rows.saturating_add(1)).unwrap_or(i32::MAX).max(1);
            let rows = transaction.query_portal_raw(&portal, wanted).await?;
            let mut collector = Collector::new(columns(&prepared), limits);
            let taken = collect(rows, &mut collector, &session.limit, Rest::LeaveIt).await?;
            // A rollback would wait for all remaining rows, so close the connection instead.
            if taken == Taken::All {
                transaction.rollback().await?;
                session.finish();
            }
            Ok(collector.finish())
        })
        .await
    }

    pub(super) async fn execute(
        &self,
        statement: Statement,
        limits: Limits,
        slot: Slot,
    ) -> Result<Executed, Error> {
        self.within(limits, slot, statement.tool, |mut session| async move {
            let begun = session.client.build_transaction().read_only(false).start().await;
            let transaction = begun.map_err(Failed::Engine)?;
            let prepared = transaction.prepare(&statement.sql).await?;
            let parameters = parameters(&statement, prepared.params().len()).map_err(Failed::Told)?;
            let mut collector = Collector::new(columns(&prepared), limits);
            let rows = transaction.query_raw(&prepared, as_sql(&parameters)).await?;
            pin_mut!(rows);
            collect(rows.as_mut(), &mut collector, &session.limit, Rest::Drain).await?;
            let affected = rows.rows_affected().unwrap_or(0);
            transaction.commit().await?;
            session.finish();
            let returned = (!prepared.columns().is_empty()).then(|| collector.finish());
            Ok(Executed { affected, returned })
        })
        .await
    }

    pub(super) async fn tables(&self, limits: Limits, slot: Slot) -> Result<Vec<TableName>, Error> {
        schema::tables(self, limits, slot).await
    }

    pub(super) async fn describe(&self, name: String, limits: Limits, slot: Slot) -> Result<Table, Error> {
        schema::describe(self, name, limits, slot).await
    }

    /// Connects, runs `work`, and enforces the timeout on the server and here.
    async fn within<T, F: Future<Output = Result<T, Failed>>>(
        &self,
        limits: Limits,
        slot: Slot,
        tool: Tool,
        work: impl FnOnce(Session) -> F,
    ) -> Result<T, Error> {
        let limit = ReadLimit::new(MAX_ROW.saturating_add(limits.bytes));
        let session = self.connect(limits, slot, Arc::clone(&limit)).await?;
        match tokio::time::timeout(limits.time.saturating_add(GRACE), work(session)).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_)) if limit.is_exceeded() => Err(Error::too_large(limit.bytes())),
            Ok(Err(failed)) => Err(failed.into_error(tool, limits)),
            Err(_) => Err(Error::too_slow(limits.time)),
        }
    }

    async fn connect(&self, limits: Limits, slot: Slot, limit: Arc<ReadLimit>) -> Result<Session, Error> {
        let connecting = tokio::time::timeout(CONNECT, self.open(&limit)).await;
        let connected =
            connecting.map_err(|_| Error::new(format!("connecting timed out after {CONNECT:?}")))?;
        let (client, connection, canceling) =
            connected.map_err(|error| Error::new(format!("cannot connect: {error}")))?;
        let cancel = Some((client.cancel_token(), canceling, slot));
        let session = Session { client, connection, limit, cancel };
        let time = limits.time.as_millis().clamp(1, i32::MAX.unsigned_abs().into());
        let idle = limits.time.saturating_add(GRACE).as_millis().clamp(1, i32::MAX.unsigned_abs().into());
        let settings = format!(
            "SET default_transaction_read_only = on; SET statement_timeout = {time}; SET lock_timeout = {time}; \
             SET idle_in_transaction_session_timeout = {idle}; SET max_parallel_workers_per_gather = 0",
        );
        session
            .client
            .batch_execute(&settings)
            .await
            .map_err(|error| Failed::Engine(error).into_error(Tool::Query, limits))?;
        Ok(session)
    }

    /// Opens a connection with limited reads and starts its task.
    async fn open(&self, limit: &Arc<ReadLimit>) -> Result<(Client, JoinHandle<()>, Canceling), String> {
        #[cfg(unix)]
        if let [Host::Unix(folder)] = self.config.get_hosts() {
            let port = self.config.get_ports().first().copied().unwrap_or(5432);
            let path = folder.join(format!(".s.PGSQL.{port}"));
            let stream = tokio::net::UnixStream::connect(&path).await;
            let stream = stream.map_err(|error| format!("`{}`: {error}", path.display()))?;
            let mut config = self.config.clone();
            // A Unix socket needs no encryption.
            config.ssl_mode(SslMode::Disable);
            let connecting = config.connect_raw(Limited::new(stream, Arc::clone(limit)), NoTls);
            let (client, connection) = connecting.await.map_err(|error| described(&error))?;
            return Ok((client, tokio::spawn(drive(connection)), Canceling::Socket(path)));
        }
        let mut config = self.config.clone();
        let mut connector = Connector { tls: Some(self.tls.clone()), limit: Arc::clone(limit) };
        if config.get_ssl_mode() == SslMode::Disable {
            // The connector does not encrypt, and TLS is not requested from the server.
            config.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
            connector.tls = None;
        }
        let connecting = config.connect(connector.clone()).await;
        let (client, connection) = connecting.map_err(|error| described(&error))?;
        Ok((client, tokio::spawn(drive(connection)), Canceling::Tcp(connector)))
    }
}

/// Drives a connection until it closes.
async fn drive(connection: impl Future<Output = Result<(), tokio_postgres::Error>>) {
    if let Err(error) = connection.await {
        tracing::debug!(%error, "PostgreSQL connection closed");
    }
}

/// How to open another connection, to cancel a statement.
enum Canceling {
    Tcp(Connector),
    #[cfg_attr(not(unix), expect(dead_code, reason = "Unix sockets only"))]
    Socket(PathBuf),
}

impl Canceling {
    async fn cancel(self, token: CancelToken) -> Result<(), String> {
        match self {
            Self::Tcp(connector) => {
                // Count all bytes from the start.
                let connector = Connector { limit: ReadLimit::new(MAX_ROW), ..connector };
                token.cancel_query(connector).await.map_err(|error| described(&error))
            }
            #[cfg(unix)]
            Self::Socket(path) => {
                let stream = tokio::net::UnixStream::connect(&path).await;
                let stream = stream.map_err(|error| error.to_string())?;
                token.cancel_query_raw(stream, NoTls).await.map_err(|error| described(&error))
            }
            #[cfg(not(unix))]
            Self::Socket(_) => Ok(()),
        }
    }
}

/// Converts the error of a statement.
enum Failed {
    Engine(tokio_postgres::Error),
    Told(Error),
}

impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Engine(error)
    }
}

impl Failed {
    /// The server's message with its hint, and what to do instead.
    fn into_error(self, tool: Tool, limits: Limits) -> Error {
        let error = match self {
            Self::Told(error) => return error,
            Self::Engine(error) => error,
        };
        match error.code() {
            Some(code) if *code == SqlState::QUERY_CANCELED => Error::too_slow(limits.time),
            Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
                Error::new(format!("{}: {}", Error::not_allowed(tool), described(&error)))
            }
            Some(code) if *code == SqlState::SYNTAX_ERROR && tool == Tool::Explain => {
                Error::new(described(&error)).in_explain()
            }
            _ => Error::new(described(&error)),
        }
    }
}

/// A connection that cancels its statement when dropped.
struct Session {
    client: Client,
    connection: JoinHandle<()>,
    limit: Arc<ReadLimit>,
    /// Held until the statement is finished or canceled, then frees the slot.
    cancel: Option<(CancelToken, Canceling, Slot)>,
}

impl Session {
    fn finish(&mut self) {
        self.cancel = None;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The server ignores the cancellation of a finished statement.
        if let (Some((token, canceling, slot)), Ok(runtime)) =
            (self.cancel.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(async move {
                let canceled = tokio::time::timeout(CONNECT, canceling.cancel(token)).await;
                drop(slot);
                if let Ok(Err(error)) = canceled {
                    tracing::debug!(error, "cannot cancel a PostgreSQL statement");
                }
            });
        }
        self.connection.abort();
    }
}

/// Handles rows that do not fit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    LeaveIt,
    Drain,
}

/// Whether all rows were read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    All,
    Some,
}

async fn collect(
    rows: impl Stream<Item = Result<Row, tokio_postgres::Error>>,
    collector: &mut Collector,
    limit: &ReadLimit,
    rest: Rest,
) -> Result<Taken, Failed> {
    pin_mut!(rows);
    let mut wanted = Wanted::More;
    while let Some(row) = rows.next().await {
        let row = row?;
        limit.restart();
        if wanted == Wanted::More {
            wanted = take(&row, collector)?;
        }
        if wanted == Wanted::Enough && rest == Rest::LeaveIt {
            return Ok(Taken::Some);
        }
    }
    Ok(Taken::All)
}

/// Passes a row to the collector. Values that do not fit are not decoded.
fn take(row: &Row, collector: &mut Collector) -> Result<Wanted, Failed> {
    let raw = (0..row.len()).map(|index| row.try_get(index)).collect::<Result<Vec<Raw<'_>>, _>>()?;
    let values =
        |max| raw.iter().map(|raw| raw.value(max)).collect::<Result<Vec<_>, _>>().map_err(Failed::Told);
    Ok(match collector.fit(raw.iter().map(Raw::size).sum()) {
        Fit::Whole => collector.push(values(usize::MAX)?),
        Fit::Shortened(share) => collector.push_shortened(values(share)?, share),
        Fit::Nothing => Wanted::Enough,
    })
}

fn columns(prepared: &tokio_postgres::Statement) -> Vec<Column> {
    let columns = prepared.columns().iter();
    columns
        .map(|column| Column { name: column.name().into(), kind: Some(column.type_().name().into()) })
        .collect()
}

fn parameters(statement: &Statement, expected: usize) -> Result<Vec<Parameter<'_>>, Error> {
    if expected != statement.parameters.len() {
        return Err(Error::parameters(expected, statement.parameters.len()));
    }
    Ok(statement.parameters.iter().map(Parameter).collect())
}

fn as_sql<'a>(parameters: &'a [Parameter<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    parameters.iter().map(|parameter| parameter as &(dyn ToSql + Sync)).collect()
}

/// Formats an error of the server with its hint.
fn described(error: &tokio_postgres::Error) -> String {
    if let Some(from_server) = error.as_db_error() {
        let hint = from_server.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        return format!("{}{hint}", from_server.message());
    }
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

fn is_tcp(host: &Host) -> bool {
    matches!(host, Host::Tcp(_))
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

fn native_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // Without root certificates every connection fails with an error that says so.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssl_mode(url: &str) -> SslMode {
        Postgres::new(url).unwrap().config.get_ssl_mode()
    }

    #[test]
    fn only_local_connections_are_unencrypted() {
        assert_eq!(ssl_mode("postgres://ann@localhost/shop"), SslMode::Disable);
        assert_eq!(ssl_mode("postgres://ann@127.0.0.1:5433/shop"), SslMode::Disable);
        assert_eq!(ssl_mode("postgres://ann@%2Fvar%2Frun%2Fpostgresql/shop"), SslMode::Disable);
        assert_eq!(ssl_mode("postgres://ann@db.example.com/shop"), SslMode::Require);
        assert_eq!(ssl_mode("postgres://ann@localhost,db.example.com/shop"), SslMode::Require);
        assert_eq!(ssl_mode("postgres://ann@db.example.com/shop?sslmode=disable"), SslMode::Disable);
    }

    #[test]
    fn a_password_is_never_shown() {
        let postgres = Postgres::new("postgres://ann:canary@localhost/shop").unwrap();
        assert!(!format!("{postgres:?}").contains("canary"));
        for url in ["postgres://ann:canary@h:port/", "postgres://ann:canary@", "postgres:/ann:canary", ""] {
            let error = Postgres::new(url).unwrap_err().to_string();
            assert!(!error.contains("canary"), "{error}");
            assert!(error.contains("invalid PostgreSQL URL"), "{error}");
        }
    }
}
