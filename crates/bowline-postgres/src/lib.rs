//! Keeps the records of [`bowline_store`] in PostgreSQL, version 14 or later.
//!
//! Records are rows of one table, `bowline_records`, which is created when it is missing. Every operation is one
//! statement, so a pooler may hand out another connection for each. Hints travel with `LISTEN` and `NOTIFY`.
//!
//! ```no_run
//! use bowline_postgres::Options;
//!
//! # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
//! let options = Options::new("postgres://bowline@db.example.com/bowline")?;
//! let records = options.open().await?;
//! let bus = options.open_bus().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Parameters of the URL
//!
//! | parameter | meaning |
//! |---|---|
//! | `sslmode` | `require` (default for other machines: certificate and name are verified) or `disable` (default for this machine) |
//! | `sslrootcert` | a file with the root certificates, instead of those of the system |
//! | `pool` | how many connections are used for records, 8 by default; renewals and hints have one more each |
//! | `listen` | `host:port` of the server for hints, if the URL names a pooler that shares connections |
//!
//! The parameters of `tokio-postgres`, such as `options` and `keepalives_idle`, can be used, too.

mod bus;
mod connection;
mod failure;
mod inspect;
mod schema;
mod statements;
mod url;

use std::time::Duration;

use bowline_store::{
    ClaimRequest, Depth, Finding, Group, Key, Limits, Namespace, NodeId, Owner, Page, Put, PutError, Queue,
    Record, Records, StoreError, Version,
};
use futures_core::future::BoxFuture;

pub use bus::PostgresBus;
use connection::{Connector, Pool};

/// How a database is opened.
#[derive(Clone)]
#[must_use]
pub struct Options {
    address: url::Address,
    namespace: Namespace,
    deadline: Duration,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The configuration does not show its password.
        f.debug_struct("Options")
            .field("records", &self.address.records)
            .field("namespace", &self.namespace)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// Reads a URL, `postgres://user:password@host:port/database`.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        let deadline = Limits::default().deadline;
        // A write that finds no connection in time certainly did not happen; it must be known before the deadline.
        let address = url::parse(url, deadline / 2)?;
        Ok(Self { address, namespace: Namespace::default(), deadline })
    }

    /// Sets the namespace. Stores of different namespaces do not see each other's records and hints.
    pub fn namespace(mut self, namespace: Namespace) -> Self {
        self.namespace = namespace;
        self
    }

    /// Sets how long the callers wait for an operation. The server gives up statements a little earlier.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self.address.records.connect_timeout(deadline / 2);
        self.address.hints.connect_timeout(deadline / 2);
        self
    }

    /// Connects, and creates the table if it is missing.
    pub async fn open(&self) -> Result<Postgres, StoreError> {
        let connector = self.connector()?;
        schema::prepare(&connector).await?;
        Ok(Postgres {
            pool: Pool::new(connector.clone(), self.address.pool),
            renewals: Pool::new(connector.clone(), 1),
            connector,
            namespace: self.namespace.clone(),
        })
    }

    /// Connects, and listens to hints.
    pub async fn open_bus(&self) -> Result<PostgresBus, StoreError> {
        let connector = Connector::new(
            self.address.hints.clone(),
            self.address.roots.as_ref(),
            self.statement_timeout(),
        )?;
        PostgresBus::open(connector, &self.namespace).await
    }

    fn connector(&self) -> Result<Connector, StoreError> {
        Connector::new(self.address.records.clone(), self.address.roots.as_ref(), self.statement_timeout())
    }

    fn statement_timeout(&self) -> Duration {
        self.deadline.mul_f32(0.9)
    }
}

/// Records in a table of PostgreSQL.
#[derive(Debug)]
pub struct Postgres {
    pool: Pool,
    /// A lease must not end because of bulk work.
    renewals: Pool,
    connector: Connector,
    namespace: Namespace,
}

impl Postgres {
    /// Reads version, rights and settings of the server.
    pub async fn inspect(&self) -> Result<Vec<Finding>, StoreError> {
        inspect::inspect(&self.connector).await
    }
}

impl Records for Postgres {
    fn get<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        Box::pin(statements::get(&self.pool, self.namespace.as_str(), keys))
    }

    fn put(&self, put: Put) -> BoxFuture<'_, Result<Version, PutError>> {
        Box::pin(async move {
            put.check()?;
            statements::put(&self.pool, self.namespace.as_str(), &put).await
        })
    }

    fn remove<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(statements::remove(&self.pool, self.namespace.as_str(), keys))
    }

    fn list<'a>(
        &'a self,
        group: &'a Group,
        after: Option<&'a Key>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(statements::list(&self.pool, self.namespace.as_str(), group, after, limit))
    }

    fn count<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(statements::count(&self.pool, self.namespace.as_str(), group))
    }

    fn claim(&self, claim: ClaimRequest) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(async move { statements::claim(&self.pool, self.namespace.as_str(), &claim).await })
    }

    fn renew(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Vec<(Key, Owner)>, StoreError>> {
        Box::pin(statements::renew(&self.renewals, self.namespace.as_str(), node, lease))
    }

    fn touch<'a>(&'a self, keys: &'a [Key], ttl: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(statements::touch(&self.pool, self.namespace.as_str(), keys, ttl))
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(statements::sweep(&self.pool, self.namespace.as_str(), limit))
    }

    fn scan<'a>(&'a self, after: Option<&'a str>, limit: usize) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move {
            // No key is empty, so all keys are after the empty text.
            let after = after.unwrap_or_default();
            let records = statements::scan(&self.pool, self.namespace.as_str(), after, limit).await?;
            Ok(Page::in_key_order(records, limit))
        })
    }

    fn depth<'a>(&'a self, queues: &'a [Queue]) -> BoxFuture<'a, Result<Option<Depth>, StoreError>> {
        Box::pin(
            async move { statements::depth(&self.pool, self.namespace.as_str(), queues).await.map(Some) },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    #[test]
    fn a_password_is_never_shown() {
        let options = Options::new("postgres://ann:canary@localhost/state").unwrap();
        assert!(!format!("{options:?}").contains("canary"));
        assert!(!format!("{:?}", options.connector().unwrap()).contains("canary"));
    }
}
