//! PostgreSQL: one connection per call, one transaction on it, one statement in that.

mod schema;
mod times;
mod values;

use super::{
    engine::{Executed, Limits, Statement},
    error::Error,
    rows::{Collector, Column, Rows, Wanted},
    schema::{Table, TableName},
};
use futures_util::{Stream, StreamExt, pin_mut};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::task::JoinHandle;
use tokio_postgres::{
    CancelToken, Client, Config, Row,
    config::{Host, SslMode},
    error::SqlState,
    types::ToSql,
};
use tokio_postgres_rustls::MakeRustlsConnect;
use values::{Cell, Parameter};

/// How long it may take until a connection is there.
const CONNECT: Duration = Duration::from_secs(10);
/// How much longer than the server is waited for that it cuts a statement off.
const GRACE: Duration = Duration::from_secs(2);

/// A database of PostgreSQL.
#[derive(Clone)]
pub(super) struct Postgres {
    config: Config,
    tls: MakeRustlsConnect,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The configuration hides the password by itself.
        f.debug_struct("Postgres").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Postgres {
    pub(super) fn new(url: &str) -> Result<Self, Error> {
        let unfit = |reason: &dyn std::fmt::Display| {
            Error::new(format!(
                "expected the URL of a PostgreSQL database, `postgres://user@host/database`: {reason}"
            ))
        };
        let mut config: Config = url.parse().map_err(|error| unfit(&described(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(unfit(&"it names no host"));
        }
        config.application_name("bowline").connect_timeout(CONNECT);
        // Encryption that falls back to none protects from nobody.
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

    pub(super) async fn query(&self, statement: Statement, limits: Limits) -> Result<Rows, Error> {
        self.within(limits, |mut session| async move {
            let begun = session.client.build_transaction().read_only(true).start().await;
            let transaction = begun.map_err(|error| told(&error, limits))?;
            let prepared = transaction.prepare(&statement.sql).await.map_err(|error| told(&error, limits))?;
            // Commands such as COPY and SET are not kept back by a transaction that only reads; none of them gives rows.
            if prepared.columns().is_empty() {
                return Err(Error::no_rows());
            }
            let parameters = parameters(&statement, prepared.params().len())?;
            let portal = transaction
                .bind(&prepared, &as_sql(&parameters))
                .await
                .map_err(|error| told(&error, limits))?;
            // One row more says whether there are more. Zero would mean all of them.
            let wanted = i32::try_from(limits.rows.saturating_add(1)).unwrap_or(i32::MAX).max(1);
            let rows = transaction.query_portal_raw(&portal, wanted).await;
            let rows = rows.map_err(|error| told(&error, limits))?;
            let mut collector = Collector::new(columns(&prepared), limits);
            collect(rows, &mut collector, limits, Rest::LeaveIt).await?;
            transaction.rollback().await.map_err(|error| told(&error, limits))?;
            session.finish();
            Ok(collector.finish())
        })
        .await
    }

    pub(super) async fn execute(&self, statement: Statement, limits: Limits) -> Result<Executed, Error> {
        self.within(limits, |mut session| async move {
            let begun = session.client.build_transaction().read_only(false).start().await;
            let transaction = begun.map_err(|error| told(&error, limits))?;
            let prepared = transaction.prepare(&statement.sql).await.map_err(|error| told(&error, limits))?;
            let parameters = parameters(&statement, prepared.params().len())?;
            let mut collector = Collector::new(columns(&prepared), limits);
            let rows = transaction.query_raw(&prepared, as_sql(&parameters)).await;
            let rows = rows.map_err(|error| told(&error, limits))?;
            pin_mut!(rows);
            collect(rows.as_mut(), &mut collector, limits, Rest::Drain).await?;
            let affected = rows.rows_affected().unwrap_or(0);
            transaction.commit().await.map_err(|error| told(&error, limits))?;
            session.finish();
            let returned = (!prepared.columns().is_empty()).then(|| collector.finish());
            Ok(Executed { affected, returned })
        })
        .await
    }

    pub(super) async fn tables(&self, limits: Limits) -> Result<Vec<TableName>, Error> {
        schema::tables(self, limits).await
    }

    pub(super) async fn describe(&self, name: String, limits: Limits) -> Result<Table, Error> {
        schema::describe(self, name, limits).await
    }

    /// Connects for `work`, and sees to it that the server and we stop in time.
    async fn within<T, F: Future<Output = Result<T, Error>>>(
        &self,
        limits: Limits,
        work: impl FnOnce(Session) -> F,
    ) -> Result<T, Error> {
        let session = self.connect(limits).await?;
        match tokio::time::timeout(limits.time.saturating_add(GRACE), work(session)).await {
            Ok(done) => done,
            Err(_) => Err(Error::too_slow(limits.time)),
        }
    }

    async fn connect(&self, limits: Limits) -> Result<Session, Error> {
        let connecting = tokio::time::timeout(CONNECT, self.config.connect(self.tls.clone())).await;
        let connected = connecting.map_err(|_| Error::new(format!("no connection within {CONNECT:?}")))?;
        let (client, connection) =
            connected.map_err(|error| Error::new(format!("cannot connect: {}", described(&error))))?;
        let connection = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to PostgreSQL ended");
            }
        });
        let session = Session { cancel: Some((client.cancel_token(), self.tls.clone())), client, connection };
        let settings = format!(
            "SET default_transaction_read_only = on; SET statement_timeout = {}; SET lock_timeout = {0}",
            limits.time.as_millis().clamp(1, i32::MAX.unsigned_abs().into()),
        );
        session.client.batch_execute(&settings).await.map_err(|error| told(&error, limits))?;
        Ok(session)
    }
}

/// A connection, and what cuts its statement off when it is given up.
struct Session {
    client: Client,
    connection: JoinHandle<()>,
    /// Until the statement is through.
    cancel: Option<(CancelToken, MakeRustlsConnect)>,
}

impl Session {
    fn finish(&mut self) {
        self.cancel = None;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Where the statement failed there is nothing to cancel, and the server ignores it.
        if let (Some((token, tls)), Ok(runtime)) = (self.cancel.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(async move { tokio::time::timeout(CONNECT, token.cancel_query(tls)).await });
        }
        self.connection.abort();
    }
}

/// What is done about the rows that are not kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    LeaveIt,
    Drain,
}

async fn collect(
    rows: impl Stream<Item = Result<Row, tokio_postgres::Error>>,
    collector: &mut Collector,
    limits: Limits,
    rest: Rest,
) -> Result<(), Error> {
    pin_mut!(rows);
    let mut wanted = Wanted::More;
    while let Some(row) = rows.next().await {
        let row = row.map_err(|error| told(&error, limits))?;
        if wanted == Wanted::More {
            let cells = (0..row.len()).map(|index| row.try_get::<_, Cell>(index).map(|Cell(value)| value));
            wanted = collector.push(cells.collect::<Result<_, _>>().map_err(|error| told(&error, limits))?);
        }
        if wanted == Wanted::Enough && rest == Rest::LeaveIt {
            break;
        }
    }
    Ok(())
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

/// An error in the server's words, with its hint.
fn told(error: &tokio_postgres::Error, limits: Limits) -> Error {
    match error.code() {
        Some(code) if *code == SqlState::QUERY_CANCELED => Error::too_slow(limits.time),
        _ => Error::new(described(error)),
    }
}

fn described(error: &tokio_postgres::Error) -> String {
    if let Some(from_server) = error.as_db_error() {
        let hint = from_server.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        return format!("{}{hint}", from_server.message());
    }
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
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
    // Without certificates no server is trusted, which is told when one is connected to.
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
    fn only_this_machine_is_spoken_to_in_clear() {
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
            assert!(error.contains("expected the URL"), "{error}");
        }
    }
}
