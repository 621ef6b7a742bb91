//! Serving the endpoint on a socket.

use super::{HttpService, Settings};
use bowline_server::{BoxFuture, Result, Server};
use http::Request;
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::Service,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
};
use std::{convert::Infallible, future::Future, io, time::Duration};
use tokio::{
    io::Interest,
    net::{TcpListener, TcpStream, ToSocketAddrs},
    sync::watch,
    task::JoinSet,
    time::timeout,
};

/// Serves over HTTP.
pub trait ServeHttp: Sized {
    /// Serves on `addr`, at `/mcp`, until the process is told to end (SIGTERM, Ctrl-C). Running calls may then finish;
    /// told a second time, it ends at once.
    fn serve_http(self, addr: impl ToSocketAddrs + Send) -> impl Future<Output = Result<()>> + Send {
        self.serve_http_with(addr, Settings::default())
    }

    /// Serves on `addr` with settings.
    fn serve_http_with(
        self,
        addr: impl ToSocketAddrs + Send,
        settings: Settings,
    ) -> impl Future<Output = Result<()>> + Send;
}

impl ServeHttp for Server {
    async fn serve_http_with(self, addr: impl ToSocketAddrs + Send, settings: Settings) -> Result<()> {
        let service = HttpService::with(self.build()?, settings);
        let listener = TcpListener::bind(addr).await?;
        // Told once, it drains; told twice, it ends at once.
        let told_twice = async {
            told_to_end().await;
            told_to_end().await;
        };
        tokio::select! {
            served = service.serve(listener, told_to_end()) => served?,
            () = told_twice => {}
        }
        Ok(())
    }
}

impl HttpService {
    /// Serves on a socket until `end` completes, then lets running calls finish.
    pub async fn serve(&self, listener: TcpListener, end: impl Future<Output = ()>) -> io::Result<()> {
        let graceful = GracefulShutdown::new();
        let mut connections = JoinSet::new();
        // Dropped with the socket: who has not begun to say anything then will not be listened to.
        let (open, closed) = watch::channel(());
        let mut end = std::pin::pin!(end);
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(converse(self.clone(), stream, closed.clone(), graceful.watcher()));
                    }
                    Err(error) => {
                        // Out of descriptors, most likely: taking a breath beats spinning.
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
                Some(_) = connections.join_next() => {}
                () = &mut end => break,
            }
        }
        drop((listener, open));
        self.end();
        let _ = timeout(self.settings().drain, graceful.shutdown()).await;
        connections.shutdown().await;
        self.end_sessions();
        Ok(())
    }
}

/// How long a client may take for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// Serves one connection to its end.
async fn converse(
    endpoint: HttpService,
    stream: TcpStream,
    mut closed: watch::Receiver<()>,
    watcher: Watcher,
) {
    // A reply is one write; waiting for more to send would only hold it back.
    drop(stream.set_nodelay(true));
    let begun = tokio::select! {
        begun = timeout(HEAD_TIME, begins_as_http2(&stream)) => begun,
        _ = closed.changed() => return,
    };
    let (stream, endpoint) = (TokioIo::new(stream), AtPath(endpoint));
    let ended = match begun {
        Ok(Ok(true)) => {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            let connection = builder.timer(TokioTimer::new()).serve_connection(stream, endpoint);
            // Far larger than the other, and rare: it is not to grow every task.
            Box::pin(watcher.watch(connection)).await
        }
        Ok(Ok(false)) => {
            let mut builder = http1::Builder::new();
            let builder = builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
            watcher.watch(builder.serve_connection(stream, endpoint)).await
        }
        Ok(Err(_)) | Err(_) => return,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended badly");
    }
}

/// Whether a connection begins as one of HTTP/2 does. Looks without reading: what is put before the rest of a stream again
/// costs a buffer of twice the size.
async fn begins_as_http2(stream: &TcpStream) -> io::Result<bool> {
    const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut seen = [0; PREFACE.len()];
    let mut pause = Duration::from_millis(1);
    loop {
        let has_ended = stream.ready(Interest::READABLE).await?.is_read_closed();
        let count = stream.peek(&mut seen).await?;
        let begun = seen.get(..count).unwrap_or_default();
        if count == 0 || has_ended || !PREFACE.starts_with(begun) {
            return Ok(false);
        }
        if count == PREFACE.len() {
            return Ok(true);
        }
        // A beginning in pieces stays readable, so that nothing tells when there is more of it.
        tokio::time::sleep(pause).await;
        pause = longer(pause);
    }
}

/// How long to wait before looking again. Many clients that begin and do not go on are not to keep the server busy.
fn longer(pause: Duration) -> Duration {
    (pause * 2).min(HEAD_TIME / 50)
}

/// The endpoint at its path; what stands before it anywhere else.
#[derive(Clone)]
struct AtPath(HttpService);

impl Service<Request<Incoming>> for AtPath {
    type Response = http::Response<super::Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, std::result::Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (path, settings) = (request.uri().path(), self.0.settings());
        if path == settings.path || settings.sse_path.as_deref() == Some(path) {
            let endpoint = self.0.clone();
            return Box::pin(async move { Ok(endpoint.respond(request).await) });
        }
        Box::pin(std::future::ready(Ok(self.0.beside(request))))
    }
}

#[cfg(unix)]
async fn told_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

#[cfg(not(unix))]
async fn told_to_end() {
    drop(tokio::signal::ctrl_c().await);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_begins_and_does_not_go_on_is_looked_at_now_and_then() {
        let pauses = std::iter::successors(Some(Duration::from_millis(1)), |pause| Some(longer(*pause)));
        let mut waited = Duration::ZERO;
        let looks = pauses.take_while(|pause| {
            waited += *pause;
            waited < HEAD_TIME
        });
        assert!(looks.count() < 100);
    }
}
