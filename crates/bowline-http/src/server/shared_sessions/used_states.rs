//! Which states of calls were used, for all processes together.

use super::record::hex;
use bowline_proto::replay::{OpenedState, UsedStates};
use bowline_server::{
    BoxFuture,
    transport::{random_bytes, unix_time},
};
use bowline_store::{ErrorKind, Key, Put, PutError, Records, StoreError};
use bowline_types::RpcError;
use std::{sync::Arc, time::Duration};

/// How much longer than a state its record is kept, because the clocks of processes and store differ.
const MARGIN: Duration = Duration::from_secs(120);

/// How often a write whose outcome is unknown is repeated.
const ATTEMPTS: usize = 3;

/// How long a client should wait before it repeats a request whose state could not be checked.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Stores which `requestState` values were used, as records.
#[derive(Debug)]
pub(in crate::server) struct UsedStatesInStore {
    records: Arc<dyn Records>,
}

impl UsedStatesInStore {
    pub(in crate::server) fn new(records: Arc<dyn Records>) -> Self {
        Self { records }
    }

    async fn mark(&self, state: &OpenedState) -> Result<bool, StoreError> {
        let key = Key::new(format!("state/{}", hex(state.id())))
            .map_err(|error| StoreError::invalid(error.to_string()))?;
        let token = hex(&state.claimant(random_bytes));
        let ttl = Duration::from_secs(state.expires().saturating_sub(unix_time())) + MARGIN;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match self.records.put(Put::create(key.clone(), token.clone(), ttl)).await {
                Ok(_) => return Ok(true),
                Err(PutError::Store(error)) if error.kind() == ErrorKind::Unknown => last = Some(error),
                Err(PutError::Store(error)) => return Err(error),
                // An earlier attempt of this call may have been applied.
                Err(_) => {
                    let found = self.records.get(std::slice::from_ref(&key)).await?.pop().flatten();
                    return Ok(found.is_some_and(|record| record.value == token.as_bytes()));
                }
            }
        }
        Err(last.unwrap_or_else(|| StoreError::unavailable("no attempt was made")))
    }
}

impl UsedStates for UsedStatesInStore {
    fn redeem<'a>(&'a self, state: &'a OpenedState) -> BoxFuture<'a, Result<bool, RpcError>> {
        Box::pin(async move {
            self.mark(state).await.map_err(|error| {
                tracing::warn!(%error, "refused a call, because it is unknown whether its `requestState` was used");
                RpcError::unavailable(
                    "the store is not available, so `requestState` cannot be accepted; try again later",
                    RETRY_AFTER,
                )
            })
        })
    }
}
