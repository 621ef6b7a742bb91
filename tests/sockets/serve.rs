//! The server that counts itself.

use crate::{Result, census::Census};
use bowline::{
    http::{HttpOptions, HttpService},
    prelude::*,
};
use std::{
    io::{self, Write},
    process::ExitCode,
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};
use tokio::{net::TcpListener, sync::oneshot};

/// Serves on a free port, whose address is printed, until the input ends.
pub(crate) async fn serve() -> Result<ExitCode> {
    let endpoint = Arc::new(OnceLock::<HttpService>::new());
    let counted = Arc::clone(&endpoint);
    let census = Tool::new("census").handler(move || {
        let sessions = counted.get().map_or(0, HttpService::sessions);
        Census::take(sessions).map(Json).map_err(|error| Error::internal(error.to_string()))
    });
    let server = Server::new("crowded").tool(census).build().map_err(|error| error.to_string())?;
    let settings = HttpOptions::new().session_idle(Duration::from_secs(20));
    let service = endpoint.get_or_init(|| HttpService::with_options(server, settings));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "{}", listener.local_addr()?)?;
    let (end, told) = oneshot::channel::<()>();
    // A thread of its own, which is among no tasks.
    thread::spawn(|| {
        drop(io::copy(&mut io::stdin(), &mut io::sink()));
        drop(end);
    });
    service.serve(listener, async { drop(told.await) }).await?;
    Ok(ExitCode::SUCCESS)
}
