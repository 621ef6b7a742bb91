//! The server side: an endpoint on a local port.

use super::{ENDPOINT, Http, STREAM_2024};
use bowline_http::{HttpOptions, HttpService};
use bowline_server::ServerHandle;
use std::{io, net::Ipv4Addr, time::Duration};
use tokio::{net::TcpListener, sync::oneshot, task::JoinSet};

/// The time after which the server starts the reply to a silent call. The next request waits for that.
const STREAM_AFTER: Duration = Duration::from_millis(20);

/// A server on a local socket.
pub(in crate::peer) struct Served {
    service: HttpService,
    stop: Option<oneshot::Sender<()>>,
    task: JoinSet<io::Result<()>>,
}

impl Served {
    /// Starts the server and connects to it.
    pub(in crate::peer) fn start(handle: ServerHandle) -> io::Result<(Self, Http)> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let to = listener.local_addr()?;
        let listener = TcpListener::from_std(listener)?;
        let settings = HttpOptions::new()
            .path(ENDPOINT)
            .sse_path(STREAM_2024)
            .stream_after(STREAM_AFTER)
            .retry(STREAM_AFTER);
        let service = HttpService::with_options(handle, settings);
        let (stop, stopped) = oneshot::channel::<()>();
        let mut task = JoinSet::new();
        let serving = service.clone();
        task.spawn(async move {
            // A peer that was dropped stops the server, too.
            serving.serve(listener, async { drop(stopped.await) }).await
        });
        let http = Http::new(to, service.clone());
        Ok((Self { service, stop: Some(stop), task }, http))
    }

    /// Stops the server. Fails if a session is left.
    pub(in crate::peer) async fn end(&mut self) -> Result<(), String> {
        let sessions = self.service.sessions();
        if let Some(stop) = self.stop.take() {
            // If the server stopped by itself, the next step reports it.
            let _ = stop.send(());
        }
        match self.task.join_next().await {
            None | Some(Ok(Ok(()))) if sessions == 0 => Ok(()),
            None | Some(Ok(Ok(()))) => Err(format!("the server still has {sessions} sessions")),
            Some(Ok(Err(error))) => Err(format!("the server failed: {error}")),
            Some(Err(error)) => Err(format!("the server failed: {error}")),
        }
    }
}
