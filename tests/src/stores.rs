//! Opens stores of sessions by their URL, for processes that tests start.

use bowline::{Result, server::Error};
use bowline_http::SessionStore;
use bowline_stores::{Limits, StoreOptions, key_ring};
use std::time::Duration;

/// Opens the store of a URL, such as `sqlite:PATH` or `postgres://…`.
pub async fn open(url: &str) -> Result<SessionStore> {
    let failed = |error: bowline_stores::StoreError| Error::tool(error.to_string());
    // A loaded machine is slow, and nothing is tested by giving up early.
    let limits = Limits::default().deadline(Duration::from_secs(10));
    let keys = key_ring(["KioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKio="])
        .map_err(|error| Error::tool(error.to_string()))?;
    let store = StoreOptions::new(url).keys(keys).limits(limits).open().await.map_err(failed)?;
    Ok(SessionStore::of(&store))
}
