//! A connection that many callers share, and that reconnects.

use std::time::Duration;

use bowline_store::StoreError;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError};
use tokio::sync::Mutex;

use crate::failure::connecting;
use crate::url::Address;

/// One connection. Commands of several callers travel on it at the same time; a broken one is replaced.
pub(crate) struct Link {
    client: Client,
    shown: String,
    deadline: Duration,
    current: Mutex<Current>,
}

struct Current {
    connection: Option<MultiplexedConnection>,
    /// Counts the connections, so that a caller does not drop the successor of the one that failed it.
    number: u64,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("to", &self.shown).finish_non_exhaustive()
    }
}

impl Link {
    pub(crate) fn new(address: &Address, deadline: Duration) -> Self {
        Self {
            client: address.client.clone(),
            shown: address.shown.clone(),
            deadline,
            current: Mutex::new(Current { connection: None, number: 0 }),
        }
    }

    /// The connection, which is made if there is none. One caller connects, the others wait for it.
    pub(crate) async fn connection(&self) -> Result<(MultiplexedConnection, u64), StoreError> {
        let mut current = self.current.lock().await;
        if let Some(connection) = &current.connection {
            return Ok((connection.clone(), current.number));
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.deadline / 2))
            .set_response_timeout(Some(self.deadline));
        let connection = self
            .client
            .get_multiplexed_async_connection_with_config(&config)
            .await
            .map_err(|error| connecting(error, &self.shown))?;
        current.connection = Some(connection.clone());
        current.number += 1;
        Ok((connection, current.number))
    }

    /// Drops a connection that broke. After a timeout it may have broken silently.
    pub(crate) async fn failed(&self, number: u64, error: &RedisError) {
        if error.is_io_error() || error.is_unrecoverable_error() {
            let mut current = self.current.lock().await;
            if current.number == number {
                current.connection = None;
            }
        }
    }
}
