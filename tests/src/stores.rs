//! Opens stores of sessions by their URL, for processes that tests start.

use bowline::{Result, server::Error};
use bowline_http::SessionStore;
use bowline_store::{Limited, Limits, MemoryBus};
use std::{sync::Arc, time::Duration};

/// Opens the store of a URL: `sqlite:PATH`.
pub async fn open(url: &str) -> Result<SessionStore> {
    let Some(path) = url.strip_prefix("sqlite:") else {
        return Err(Error::tool(format!("`{url}` is not the URL of a store; use `sqlite:PATH`")));
    };
    let sqlite = Arc::new(bowline_sqlite::Sqlite::open(path).map_err(|error| Error::tool(error.to_string()))?);
    // A loaded machine is slow, and nothing is tested by giving up early.
    let limits = Limits::default().deadline(Duration::from_secs(10));
    Ok(SessionStore::new(Arc::new(Limited::new(sqlite, limits)), Arc::new(MemoryBus::new())))
}
