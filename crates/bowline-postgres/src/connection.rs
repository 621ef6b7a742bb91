//! Connections: how they are made, and those that wait for work.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline_store::StoreError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Row, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::failure::{Failure, connecting};

/// Makes connections to one server.
#[derive(Clone)]
pub(crate) struct Connector {
    config: Config,
    tls: MakeRustlsConnect,
    statement_timeout: Duration,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The configuration does not show its password.
        f.debug_struct("Connector").field("config", &self.config).finish_non_exhaustive()
    }
}

/// What [`Config::connect`] drives a connection with.
pub(crate) type Driver = tokio_postgres::Connection<
    Socket,
    <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<Socket>>::Stream,
>;

impl Connector {
    pub(crate) fn new(
        config: Config,
        roots: Option<&PathBuf>,
        statement_timeout: Duration,
    ) -> Result<Self, StoreError> {
        let store = match (config.get_ssl_mode(), roots) {
            (SslMode::Disable, _) => RootCertStore::empty(),
            (_, Some(path)) => roots_of(path)?,
            (_, None) => native_roots(),
        };
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| StoreError::invalid(error.to_string()))?
            .with_root_certificates(store)
            .with_no_client_auth();
        Ok(Self { config, tls: MakeRustlsConnect::new(tls), statement_timeout })
    }

    /// Connects. The caller drives the connection.
    pub(crate) async fn open(&self) -> Result<(Client, Driver), StoreError> {
        self.config.connect(self.tls.clone()).await.map_err(connecting)
    }

    /// Connects, and drives the connection until it is dropped.
    pub(crate) async fn connect(&self) -> Result<Connection, StoreError> {
        let (client, driver) = self.open().await?;
        let task = tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "a PostgreSQL connection closed");
            }
        });
        let connection = Connection { client, task: task.abort_handle() };
        // A statement that its caller gave up must not stay behind.
        let millis = self.statement_timeout.as_millis().clamp(1, i32::MAX.unsigned_abs().into());
        let settings = format!(
            "SET statement_timeout = {millis}; SET idle_in_transaction_session_timeout = {millis}; \
             SET default_transaction_isolation = 'read committed'"
        );
        connection.client.batch_execute(&settings).await.map_err(connecting)?;
        Ok(connection)
    }
}

fn roots_of(path: &PathBuf) -> Result<RootCertStore, StoreError> {
    let failed = |reason: String| {
        StoreError::invalid(format!("the root certificates in {} cannot be used: {reason}", path.display()))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))? {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(failed("there is none".to_owned()));
    }
    Ok(roots)
}

fn native_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // Without root certificates every connection fails with an error that says so.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// One connection. It closes when it is dropped.
pub(crate) struct Connection {
    pub(crate) client: Client,
    task: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A parameter of a statement, with its type.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Connections that are used in turn.
///
/// Every operation is one statement. Types travel with it, so there is nothing to prepare, and a pooler between us and the
/// server may hand out another connection for each statement.
pub(crate) struct Pool {
    connector: Connector,
    turns: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("connector", &self.connector).finish_non_exhaustive()
    }
}

impl Pool {
    pub(crate) fn new(connector: Connector, size: usize) -> Self {
        Self { connector, turns: Semaphore::new(size), idle: Mutex::default() }
    }

    /// Runs one statement. What the failure says about its effects holds for a write.
    pub(crate) async fn query(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let _turn = self.turns.acquire().await.expect("the semaphore is never closed");
        let mut repeated = false;
        loop {
            let connection = match self.take_idle() {
                Some(connection) => connection,
                None => self.connector.connect().await.map_err(Failure::NotSent)?,
            };
            let parameters =
                parameters.iter().map(|(value, kind)| (*value, kind.clone())).collect::<Vec<_>>();
            // A caller that stops waiting here drops the connection with the statement.
            let result = connection.client.query_typed(statement, &parameters).await;
            if !connection.client.is_closed() {
                self.put_back(connection);
            }
            match result.map_err(Failure::Statement) {
                // The server undid the statement because others waited for it.
                Err(failure) if failure.is_transient() && !repeated => repeated = true,
                result => return result,
            }
        }
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(connection) = idle.pop() {
            if !connection.client.is_closed() {
                return Some(connection);
            }
        }
        None
    }

    fn put_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}
