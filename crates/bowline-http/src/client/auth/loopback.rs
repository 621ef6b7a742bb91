//! Receives the redirect of an authorization server on a loopback address.
//!
//! Every program of this machine and every page in the browser can reach the listener. A request counts only if it names the
//! listener's own host and carries the `state` of the login that waits. All others get an error, and the listener keeps waiting.

use std::{
    fmt,
    future::poll_fn,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    task::Poll,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
};

/// The path of the redirect URI.
const PATH: &str = "/callback";
/// The longest head of a request.
const MAX_HEAD: usize = 32 * 1024;
/// How many connections are served at the same time. Browsers open some that they never use.
const MAX_CONNECTIONS: usize = 16;
/// How long a connection may take to send its request.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// How many free ports are tried until one is free on all addresses.
const PORT_ATTEMPTS: usize = 8;

/// Decides whether path and query of a request are the response.
type IsResponse = dyn Fn(&str) -> bool + Send + Sync;

/// The host in the redirect URI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallbackHost {
    /// `127.0.0.1`. It needs no name lookup.
    #[default]
    Address,
    /// `localhost`, for authorization servers that accept nothing else. Both 127.0.0.1 and ::1 are listened on.
    Localhost,
}

impl CallbackHost {
    /// Returns the host as it is written in the redirect URI.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Address => "127.0.0.1",
            Self::Localhost => "localhost",
        }
    }
}

impl fmt::Display for CallbackHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A listener for the redirect that ends a login in a browser.
#[derive(Debug)]
pub struct Loopback {
    listeners: Vec<TcpListener>,
    /// Host and port, as the browser sends them in `Host`.
    authority: String,
}

impl Loopback {
    /// Listens on a port, or on a free one.
    ///
    /// Fails with [`io::ErrorKind::AddrInUse`] if the port is taken on one of the addresses of the host: another program would
    /// receive the redirect.
    pub async fn bind(host: CallbackHost, port: Option<u16>) -> io::Result<Self> {
        let mut attempts = if port.is_some() { 1 } else { PORT_ATTEMPTS };
        loop {
            attempts -= 1;
            match listen(host, port.unwrap_or(0)).await {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempts > 0 => {}
                listeners => {
                    let listeners = listeners?;
                    let port =
                        listeners.first().map_or(Ok(0), |first| first.local_addr().map(|at| at.port()))?;
                    return Ok(Self { listeners, authority: format!("{host}:{port}") });
                }
            }
        }
    }

    /// Returns host and port of a redirect URI that a listener of this type had.
    pub(super) fn address_of(redirect_uri: &str) -> Option<(CallbackHost, u16)> {
        let authority = redirect_uri.strip_prefix("http://")?.strip_suffix(PATH)?;
        let (host, port) = authority.rsplit_once(':')?;
        let host = [CallbackHost::Address, CallbackHost::Localhost]
            .into_iter()
            .find(|known| known.as_str() == host)?;
        Some((host, port.parse().ok()?))
    }

    /// Returns the URI that the authorization server redirects to.
    pub fn redirect_uri(&self) -> String {
        format!("http://{}{PATH}", self.authority)
    }

    /// Waits for the response of the authorization server, and returns the URL that the browser was redirected to.
    ///
    /// `is_response` gets path and query of a request, as [`Visit::is_response`](bowline_auth::Visit::is_response) takes them.
    /// Fails with [`io::ErrorKind::TimedOut`] if the response does not arrive in time. Dropping the future closes all
    /// connections.
    pub async fn wait(
        &self,
        is_response: impl Fn(&str) -> bool + Send + Sync + 'static,
        timeout: Duration,
    ) -> io::Result<String> {
        let is_response: Arc<IsResponse> = Arc::new(is_response);
        let (sender, mut received) = mpsc::channel(1);
        let mut connections = JoinSet::new();
        let deadline = tokio::time::sleep(timeout);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                biased;
                Some(target) = received.recv() => return Ok(format!("http://{}{target}", self.authority)),
                () = &mut deadline => {
                    let message = format!("no redirect arrived within {} s", timeout.as_secs());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, message));
                }
                Some(_) = connections.join_next() => {}
                stream = self.accept(), if connections.len() < MAX_CONNECTIONS => {
                    let (authority, is_response) = (self.authority.clone(), Arc::clone(&is_response));
                    let (stream, sender) = (stream?, sender.clone());
                    connections.spawn(async move {
                        // A connection that fails or sends nothing does not end the wait.
                        let served = serve(stream, &authority, &*is_response);
                        if let Ok(Ok(Some(target))) = tokio::time::timeout(READ_TIMEOUT, served).await {
                            let _ = sender.send(target).await;
                        }
                    });
                }
            }
        }
    }

    async fn accept(&self) -> io::Result<TcpStream> {
        poll_fn(|context| {
            for listener in &self.listeners {
                match listener.poll_accept(context) {
                    Poll::Ready(Ok((stream, _))) => return Poll::Ready(Ok(stream)),
                    Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ConnectionAborted => {
                        // The client closed the connection before it was accepted.
                        context.waker().wake_by_ref();
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {}
                }
            }
            Poll::Pending
        })
        .await
    }
}

async fn listen(host: CallbackHost, port: u16) -> io::Result<Vec<TcpListener>> {
    let at = |ip: IpAddr, port| TcpListener::bind(SocketAddr::new(ip, port));
    let first = at(Ipv4Addr::LOCALHOST.into(), port).await?;
    let port = first.local_addr()?.port();
    if host == CallbackHost::Address {
        return Ok(vec![first]);
    }
    match at(Ipv6Addr::LOCALHOST.into(), port).await {
        Ok(second) => Ok(vec![first, second]),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
        // This machine has no IPv6.
        Err(_) => Ok(vec![first]),
    }
}

/// Answers one request. Returns path and query if it is the response.
async fn serve(
    mut stream: TcpStream,
    authority: &str,
    is_response: &IsResponse,
) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let answer = loop {
        if head.len() > MAX_HEAD {
            break Answer::Error(Status::TooLong);
        }
        if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            break evaluate(head.get(..end).unwrap_or_default(), authority, is_response);
        }
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(None);
        }
    };
    let (status, page, target) = match answer {
        Answer::Response(target) => ("200 OK", RECEIVED, Some(target)),
        Answer::Error(status) => (status.line(), REFUSED, None),
    };
    let reply = format!("HTTP/1.1 {status}\r\n{HEADERS}Content-Length: {}\r\n\r\n{page}", page.len());
    stream.write_all(reply.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(target)
}

/// The same headers for every page. Nothing of a request is repeated in a page.
const HEADERS: &str = "Content-Type: text/html; charset=utf-8\r\n\
    Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n\
    X-Content-Type-Options: nosniff\r\n\
    Referrer-Policy: no-referrer\r\n\
    Cache-Control: no-store\r\n\
    Connection: close\r\n";
const RECEIVED: &str = "<!doctype html><title>Login</title>\
    <p>The response was received. Close this page and return to the program.\n";
const REFUSED: &str =
    "<!doctype html><title>Login</title><p>This request does not belong to a login that is waiting.\n";

/// The answer to a request.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// It is the response, with this path and query.
    Response(String),
    Error(Status),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    BadRequest,
    Forbidden,
    NotFound,
    NotAllowed,
    TooLong,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Self::BadRequest => "400 Bad Request",
            Self::Forbidden => "403 Forbidden",
            Self::NotFound => "404 Not Found",
            Self::NotAllowed => "405 Method Not Allowed",
            Self::TooLong => "431 Request Header Fields Too Large",
        }
    }
}

fn evaluate(head: &[u8], authority: &str, is_response: &IsResponse) -> Answer {
    let Ok(head) = std::str::from_utf8(head) else { return Answer::Error(Status::BadRequest) };
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Answer::Error(Status::BadRequest);
    };
    if !version.starts_with("HTTP/1.") {
        return Answer::Error(Status::BadRequest);
    }
    let mut hosts = lines
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, value)| value.trim());
    // A page whose own name resolves to this machine sends its own name.
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if host.eq_ignore_ascii_case(authority) => {}
        (Some(_), None) => return Answer::Error(Status::Forbidden),
        _ => return Answer::Error(Status::BadRequest),
    }
    if target.split('?').next() != Some(PATH) {
        return Answer::Error(Status::NotFound);
    }
    if method != "GET" {
        return Answer::Error(Status::NotAllowed);
    }
    if is_response(target) { Answer::Response(target.to_owned()) } else { Answer::Error(Status::BadRequest) }
}

#[cfg(test)]
#[path = "loopback_tests.rs"]
mod tests;
