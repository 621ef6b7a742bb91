//! Where tokens and registrations are kept.

mod record;

pub use record::{AuthMethod, ClientOrigin, Record, Registration, Scheme, TokenSet};

use crate::{Error, Resource};
use std::{fmt, future::Future, pin::Pin};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Names one record: what one account has for one MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreKey {
    server: String,
    account: String,
}

impl StoreKey {
    /// Creates the key for the MCP server at `url` and an account, which is empty unless the user has several.
    pub fn new(url: &str, account: &str) -> Result<Self, Error> {
        Ok(Self { server: Resource::of_server(url)?.as_str().to_owned(), account: account.to_owned() })
    }

    /// Returns the canonical URL of the MCP server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the name that the user gave to the account; empty for the default one.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.account
    }
}

impl fmt::Display for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.account.as_str() {
            "" => f.write_str(&self.server),
            account => write!(f, "{} ({account})", self.server),
        }
    }
}

/// Keeps records: in memory, in files, or where an application wants them.
///
/// A record that cannot be read is an error, never an absent record: the client would log in and overwrite it.
pub trait Store: fmt::Debug + Send + Sync {
    /// Reads a record.
    fn load<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<Option<Record>, Error>>;

    /// Writes a record, as a whole or not at all.
    fn save<'a>(&'a self, key: &'a StoreKey, record: &'a Record) -> BoxFuture<'a, Result<(), Error>>;

    /// Deletes a record. A record that does not exist is not an error.
    fn remove<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<(), Error>>;

    /// Returns the keys of all records.
    fn list(&self) -> BoxFuture<'_, Result<Vec<StoreKey>, Error>>;

    /// Takes the lock of one record, against other tasks and other processes that use the same store. The client holds it
    /// while it refreshes or replaces tokens, and reads the record again once it has the lock. Other records stay usable.
    ///
    /// Waits at most about 30 s, then fails. Dropping the guard releases the lock.
    fn lock<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<StoreLock, Error>>;
}

/// Holds the lock of a record until it is dropped.
pub struct StoreLock {
    _guard: Box<dyn Send + Sync>,
    interrupted: bool,
}

impl StoreLock {
    /// Creates a lock that is released by dropping `guard`.
    pub fn new(guard: impl Send + Sync + 'static) -> Self {
        Self { _guard: Box::new(guard), interrupted: false }
    }

    /// Says that the process that held the lock before ended without releasing it.
    #[must_use]
    pub fn after_interruption(mut self) -> Self {
        self.interrupted = true;
        self
    }

    /// Returns whether the process that held the lock before ended without releasing it. It may have used the refresh
    /// token without keeping the new one.
    #[must_use]
    pub fn is_after_interruption(&self) -> bool {
        self.interrupted
    }
}

impl fmt::Debug for StoreLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreLock")
    }
}
