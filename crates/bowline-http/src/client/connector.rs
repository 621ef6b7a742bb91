//! Opens connections: TCP, optionally through a proxy, with TLS if the URL requires it.

use super::{proxy::Via, url};
use bowline_client::{BoxFuture, Error, Result};
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::legacy::connect::{Connected, Connection, HttpConnector},
    rt::TokioIo,
};
use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::CertificateDer};
use std::{
    fmt,
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::net::TcpStream;
use tower_service::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// The time after which an idle connection is probed, so that an unreachable server is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// The time to find out, before a proxy is asked, whether the resolver refuses a host.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);

/// Finds the addresses of a host, instead of the system: to refuse some of them, or to know others.
///
/// Connections are made to what it gives and to nothing else, in that order, and no name is looked up a second time. A proxy
/// resolves names itself: then only the refusals of the resolver count.
pub trait Resolve: fmt::Debug + Send + Sync {
    /// Returns the addresses of `host`, a name or an address as in the URL, IPv6 without brackets.
    ///
    /// The reason of a failure is reported to the caller. An error of the kind [`io::ErrorKind::PermissionDenied`] refuses the
    /// host, even if it would be reached through a proxy. Other errors do not, because the proxy may know names that this machine
    /// does not know.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// Makes connections, in bounded time.
#[derive(Clone)]
pub(super) struct Connector {
    https: HttpsConnector<TcpConnector>,
    timeout: Duration,
}

impl Connector {
    pub(super) fn new(
        tls: Arc<ClientConfig>,
        via: Option<Via>,
        resolver: Option<Arc<dyn Resolve>>,
        timeout: Duration,
    ) -> Self {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(Some(KEEP_ALIVE));
        let tcp = TcpConnector { http, via: via.map(Arc::new), resolver };
        Self { https: HttpsConnector::from((tcp, tls)), timeout }
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<Wire>;
    type Error = BoxError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(context)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let (connecting, timeout) = (self.https.call(server), self.timeout);
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(format!("connecting timed out after {timeout:?}").into()),
            }
        })
    }
}

/// Opens TCP connections, to the server or through a proxy.
#[derive(Clone)]
struct TcpConnector {
    http: HttpConnector,
    via: Option<Arc<Via>>,
    resolver: Option<Arc<dyn Resolve>>,
}

impl Service<Uri> for TcpConnector {
    type Response = Wire;
    type Error = BoxError;
    type Future = Connecting<Wire>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.http.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let via = self.via.clone();
        if let (None, Some(resolver)) = (&via, self.resolver.clone()) {
            let http = self.http.clone();
            return Box::pin(async move {
                let io = to_resolved(http, &*resolver, &server).await?;
                Ok(Wire { io, proxied: false })
            });
        }
        let resolver = self.resolver.clone();
        let connecting = self.http.call(via.as_ref().map_or_else(|| server.clone(), |via| via.uri.clone()));
        Box::pin(async move {
            if let Some(resolver) = resolver {
                check_refusal(&*resolver, &server).await?;
            }
            let io = connecting.await?;
            Ok(match via {
                None => Wire { io, proxied: false },
                Some(via) if server.scheme_str() == Some("https") => {
                    let stream = via.tunnel(io.into_inner(), &server).await?;
                    Wire { io: TokioIo::new(stream), proxied: false }
                }
                Some(_) => Wire { io, proxied: true },
            })
        })
    }
}

/// Fails if the resolver refuses a server that a proxy would reach. A lookup that takes too long refuses nothing: where names are
/// known to the proxy only, lookups often get no answer.
async fn check_refusal(resolver: &dyn Resolve, server: &Uri) -> io::Result<()> {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let lookup = resolver.resolve(host, url::port(server));
    match tokio::time::timeout(REFUSAL_TIMEOUT, lookup).await {
        Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        Ok(Ok(_) | Err(_)) | Err(_) => Ok(()),
    }
}

/// Connects to the first address of `server` that can be reached.
async fn to_resolved(
    mut http: HttpConnector,
    resolver: &dyn Resolve,
    server: &Uri,
) -> Result<TokioIo<TcpStream>, BoxError> {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let mut failed: Option<BoxError> = None;
    for address in resolver.resolve(host, url::port(server)).await? {
        // An address is not looked up.
        match http.call(Uri::try_from(format!("http://{address}/"))?).await {
            Ok(io) => return Ok(io),
            Err(error) => failed = Some(error.into()),
        }
    }
    Err(failed.unwrap_or_else(|| format!("`{host}` has no address").into()))
}

/// A connection of TCP.
#[derive(Debug)]
pub(super) struct Wire {
    io: TokioIo<TcpStream>,
    /// Whether a proxy reads the requests, so that they must name the server.
    proxied: bool,
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.proxied)
    }
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, buffers)
    }
}

/// Returns the TLS settings, with the certificates of this machine and additional ones.
pub(super) fn tls(server: &Uri, trusted: &[Vec<u8>]) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    if server.scheme_str() == Some("https") {
        let native = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(native.certs);
        for certificate in trusted {
            roots
                .add(CertificateDer::from(certificate.clone()))
                .map_err(|error| Error::misuse(format!("cannot trust a certificate: {error}")))?;
        }
        if roots.is_empty() {
            let reasons: Vec<String> = native.errors.iter().map(ToString::to_string).collect();
            let reasons = if reasons.is_empty() { "there are none".to_owned() } else { reasons.join("; ") };
            return Err(Error::misuse(format!("no certificates to trust on this machine: {reasons}")));
        }
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::misuse(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    enum Scripted {
        Refuses,
        Knows,
        Fails,
        NeverAnswers,
    }

    impl Resolve for Scripted {
        fn resolve<'a>(&'a self, _: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
            Box::pin(async move {
                match self {
                    Self::Refuses => Err(io::Error::new(io::ErrorKind::PermissionDenied, "private")),
                    Self::Knows => Ok(vec![SocketAddr::from(([192, 0, 2, 1], port))]),
                    Self::Fails => Err(io::Error::other("no such name")),
                    Self::NeverAnswers => std::future::pending().await,
                }
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn v92_names_that_this_machine_cannot_resolve_in_time_are_left_to_the_proxy() {
        let server = Uri::from_static("https://wiki.example/");
        let refused = check_refusal(&Scripted::Refuses, &server).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        for passed in [Scripted::Knows, Scripted::Fails, Scripted::NeverAnswers] {
            check_refusal(&passed, &server).await.unwrap();
        }
    }
}
