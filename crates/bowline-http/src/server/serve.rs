//! Serving the endpoint on a socket.

use super::{HttpService, Settings, reply};
use bowline_server::{BoxFuture, Result, Server};
use http::{Request, StatusCode};
use hyper::{body::Incoming, service::Service};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
};
use std::{convert::Infallible, future::Future, io, time::Duration};
use tokio::{
    net::{TcpListener, ToSocketAddrs},
    task::JoinSet,
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
        let mut end = std::pin::pin!(end);
        loop {
            let stream = tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        // Out of descriptors, most likely: taking a breath beats spinning.
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
                () = &mut end => break,
            };
            // A reply is one write; waiting for more to send would only hold it back.
            drop(stream.set_nodelay(true));
            let mut builder = auto::Builder::new(TokioExecutor::new());
            builder.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(10));
            builder.http2().timer(TokioTimer::new());
            let connection = builder.serve_connection(TokioIo::new(stream), AtPath(self.clone()));
            let connection = graceful.watch(connection.into_owned());
            connections.spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection ended badly");
                }
            });
            while connections.try_join_next().is_some() {}
        }
        drop(listener);
        self.end();
        let _ = tokio::time::timeout(self.settings().drain, graceful.shutdown()).await;
        connections.shutdown().await;
        self.end_sessions();
        Ok(())
    }
}

/// The endpoint at its path; nothing anywhere else.
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
        Box::pin(std::future::ready(Ok(reply::refusal(StatusCode::NOT_FOUND, "there is nothing here"))))
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
