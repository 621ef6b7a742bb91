//! Serving the endpoint on a socket.

use super::{
    Body, HttpOptions, HttpService,
    connections::{Activity, Close, Connections, Member, Running, RunningBody, Version, Watched},
};
#[cfg(feature = "auth")]
use bowline_server::BuildError;
use bowline_server::{BoxFuture, ServeError, Server};
use bytes::Bytes;
use http::Request;
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::Service,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    io,
    net::IpAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::Interest,
    net::{TcpListener, TcpStream, ToSocketAddrs},
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

/// Serves over HTTP.
pub trait ServeHttp: Sized {
    /// Serves on `addr`, at `/mcp`, until SIGTERM or Ctrl-C. Running calls may then finish; a second signal
    /// ends them at once.
    fn serve_http(
        self,
        addr: impl ToSocketAddrs + Send,
    ) -> impl Future<Output = Result<(), ServeError>> + Send {
        self.serve_http_with(addr, HttpOptions::default())
    }

    /// Serves on `addr` with options.
    fn serve_http_with(
        self,
        addr: impl ToSocketAddrs + Send,
        options: HttpOptions,
    ) -> impl Future<Output = Result<(), ServeError>> + Send;
}

impl ServeHttp for Server {
    async fn serve_http_with(
        self,
        addr: impl ToSocketAddrs + Send,
        options: HttpOptions,
    ) -> Result<(), ServeError> {
        let handle = self.build()?;
        let listener = TcpListener::bind(addr).await?;
        let service = HttpService::with_options(handle, options.listening_on(listener.local_addr()?));
        #[cfg(feature = "auth")]
        service.check_protection().map_err(|error| BuildError::new(error.to_string()))?;
        // The first signal drains, the second ends at once.
        let signalled_twice = async {
            shutdown_signal().await;
            shutdown_signal().await;
        };
        tokio::select! {
            served = service.serve(listener, shutdown_signal()) => served?,
            () = signalled_twice => {}
        }
        Ok(())
    }
}

impl HttpService {
    /// Serves on a socket until `end` completes, then lets running calls finish.
    pub async fn serve(&self, listener: TcpListener, end: impl Future<Output = ()>) -> io::Result<()> {
        #[cfg(feature = "auth")]
        self.check_protection().map_err(io::Error::other)?;
        #[cfg(feature = "issuer")]
        if self.issuer().is_some() && !listener.local_addr()?.ip().is_loopback() {
            let address = listener.local_addr()?;
            return Err(io::Error::other(format!(
                "`Protect::dev` works only on a loopback address, not on {address}"
            )));
        }
        let options = self.options();
        let sockets = Sockets { max: options.max_connections, idle: options.idle_connection };
        let mut tasks = accept(self.clone(), listener, sockets, end).await;
        self.end();
        let all = async { while tasks.join_next().await.is_some() {} };
        let drain = self.options().drain;
        // Tasks have the same time to end as calls; those that have not ended are given back to their store.
        let (_, ()) = tokio::join!(timeout(drain, all), self.server().stop_tasks(drain));
        tasks.shutdown().await;
        self.end_sessions();
        #[cfg(feature = "store")]
        self.leave_store().await;
        Ok(())
    }
}

/// Serves any service on a socket until `end` completes. Replies that have not ended two seconds later are cut off.
///
/// Connections have the limits of [`HttpOptions::new`]: how many there are, how long they may be idle, and how long the head of a
/// request may take.
pub async fn serve<S>(listener: TcpListener, service: S, end: impl Future<Output = ()>) -> io::Result<()>
where
    S: tower_service::Service<Request<RequestBody>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    let options = HttpOptions::new();
    let sockets = Sockets { max: options.max_connections, idle: options.idle_connection };
    let mut tasks = accept(AnyService(service), listener, sockets, end).await;
    let all = async { while tasks.join_next().await.is_some() {} };
    let _ = timeout(ENDING, all).await;
    tasks.shutdown().await;
    Ok(())
}

/// How long replies of [`serve`] may take after its end.
const ENDING: Duration = Duration::from_secs(2);

/// The limits of a socket.
#[derive(Clone, Copy)]
struct Sockets {
    max: usize,
    idle: Duration,
}

/// Accepts connections until `end` completes, and returns those that are still open.
async fn accept<A: Answer>(
    answer: A,
    listener: TcpListener,
    sockets: Sockets,
    end: impl Future<Output = ()>,
) -> JoinSet<()> {
    let limit = sockets.max.min(descriptors().saturating_mul(3) / 4).max(1);
    let connections = Connections::new(limit, sockets.idle);
    let mut tasks = JoinSet::new();
    // Dropped with the socket: who has not begun to say anything then will not be listened to.
    let (open, closed) = watch::channel(());
    let mut warnings = Warnings::default();
    let mut end = pin!(end);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let Some(member) = connections.join() else {
                        warnings.warn(&format!("refused a connection: {} are open, and none is idle", connections.max()));
                        continue;
                    };
                    let number = member.number;
                    let task = tasks.spawn(serve_connection(answer.clone(), stream, peer.ip(), closed.clone(), member));
                    connections.set_task(number, task);
                }
                Err(error) => {
                    warnings.warn(&format!("cannot accept a connection: {error}"));
                    // Out of descriptors, most likely. A pause beats spinning where none becomes free.
                    connections.close_oldest_idle();
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = tasks.join_next() => {}
            () = &mut end => break,
        }
    }
    drop((listener, open));
    tasks
}

/// The body of a request, as it arrives.
#[derive(Debug)]
pub struct RequestBody(Incoming);

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, io::Error>>> {
        Pin::new(&mut self.0).poll_frame(context).map_err(io::Error::other)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.0.size_hint()
    }
}

/// The address that a request came from, put into its extensions by whoever accepts connections: [`serve`], and
/// [`HttpService::serve`] with [`HttpOptions::peer_address`].
///
/// Behind a proxy it is the address of the proxy. A layer that knows the address of the client may replace it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);

/// Answers the requests of a socket.
trait Answer: Clone + Send + Sync + 'static {
    /// Answers a request. `running` ends with the reply. One future does all of it, because every request pays for it.
    fn answer(&self, request: Request<Incoming>, running: Running) -> Answered;

    /// Returns whether requests have a [`PeerAddress`].
    fn adds_peer_address(&self) -> bool {
        true
    }
}

type Answered = BoxFuture<'static, Result<http::Response<RunningBody>, Infallible>>;

/// A tower service as an [`Answer`].
#[derive(Clone)]
struct AnyService<S>(S);

impl<S> Answer for AnyService<S>
where
    S: tower_service::Service<Request<RequestBody>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    fn answer(&self, request: Request<Incoming>, running: Running) -> Answered {
        let mut service = self.0.clone();
        Box::pin(async move {
            poll_fn(|context| service.poll_ready(context)).await?;
            Ok(tracked(service.call(request.map(RequestBody)).await?, running))
        })
    }
}

/// Returns the maximum number of file descriptors of the process.
#[cfg(unix)]
fn descriptors() -> usize {
    use rustix::process::{Resource, getrlimit};
    let limit = getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

#[cfg(not(unix))]
fn descriptors() -> usize {
    usize::MAX
}

/// Warnings about connections that are not served: one per minute, since there can be thousands.
#[derive(Debug, Default)]
struct Warnings {
    last: Option<Instant>,
    left_out: u64,
}

impl Warnings {
    const PAUSE: Duration = Duration::from_secs(60);

    fn warn(&mut self, what: &str) {
        if self.last.is_some_and(|last| last.elapsed() < Self::PAUSE) {
            self.left_out += 1;
            return;
        }
        let left_out = std::mem::take(&mut self.left_out);
        self.last = Some(Instant::now());
        tracing::warn!(left_out, "{what}");
    }
}

/// How long a client may take for the head of a request.
pub(super) const HEAD_TIME: Duration = Duration::from_secs(10);

/// How often an HTTP/2 client is asked whether it is still there, and how long it may take to answer.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));

/// How much of a reply HTTP/2 holds for a stream whose client does not read.
const SEND_BUFFER: usize = 64 * 1024;

/// Serves one connection to its end.
async fn serve_connection<A: Answer>(
    answer: A,
    stream: TcpStream,
    peer: IpAddr,
    mut closed: watch::Receiver<()>,
    member: Member,
) {
    // A reply is one write; waiting for more to send would only hold it back.
    drop(stream.set_nodelay(true));
    let begun = tokio::select! {
        begun = timeout(HEAD_TIME, begins_as_http2(&stream)) => begun,
        _ = closed.changed() => return,
    };
    let activity = &member.activity;
    let peer = answer.adds_peer_address().then_some(PeerAddress(peer));
    let service = Tracked { answer, peer, activity: Arc::clone(activity) };
    let watched = |version| Watched { io: TokioIo::new(stream), activity: Arc::clone(activity), version };
    let ended = match begun {
        Ok(Ok(true)) => {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            let builder = builder
                .timer(TokioTimer::new())
                .keep_alive_interval(PING.0)
                .keep_alive_timeout(PING.1)
                .max_send_buf_size(SEND_BUFFER);
            let connection = builder.serve_connection(watched(Version::Http2), service);
            // Far larger than the other, and rare, so it is boxed to keep the other tasks small.
            Box::pin(drive(connection, http2::Connection::graceful_shutdown, activity, closed)).await
        }
        Ok(Ok(false)) => {
            let mut builder = http1::Builder::new();
            // Its timeout for heads runs between requests as well; `drive` distinguishes the two.
            let builder = builder.timer(TokioTimer::new()).header_read_timeout(None);
            let connection = builder.serve_connection(watched(Version::Http1), service);
            drive(connection, http1::Connection::graceful_shutdown, activity, closed).await
        }
        Ok(Err(_)) | Err(_) => return,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection failed");
    }
}

/// Runs a connection until it ends by itself, has been idle for too long, or the server ends.
async fn drive<C>(
    connection: C,
    close: impl Fn(Pin<&mut C>),
    activity: &Activity,
    mut closed: watch::Receiver<()>,
) -> hyper::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    let mut connection = pin!(connection);
    let mut server_ends = pin!(closed.changed());
    let mut timer = pin!(sleep_until(activity.next_look()));
    let mut is_closing = false;
    poll_fn(|context| {
        loop {
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                return Poll::Ready(ended);
            }
            if !is_closing && server_ends.as_mut().poll(context).is_ready() {
                is_closing = true;
                close(connection.as_mut());
                continue;
            }
            let deadline = activity.deadline();
            // An incomplete head has less time than an idle connection. Later deadlines are noticed when the timer ends.
            if let Some((at, _)) = deadline
                && at < timer.deadline()
            {
                timer.as_mut().reset(at);
            }
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            match deadline {
                Some((at, how)) if at <= Instant::now() => {
                    if is_closing || how == Close::AtOnce {
                        return Poll::Ready(Ok(()));
                    }
                    is_closing = true;
                    close(connection.as_mut());
                    timer.as_mut().reset(activity.next_look());
                }
                Some((at, _)) => timer.as_mut().reset(at),
                None => timer.as_mut().reset(activity.next_look()),
            }
        }
    })
    .await
}

/// Returns whether a connection starts as HTTP/2. Peeks without reading, because putting bytes back would slow down all
/// reads.
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
        // A head that arrives in pieces stays readable, so no event reports further pieces.
        tokio::time::sleep(pause).await;
        pause = longer(pause);
    }
}

/// Returns the delay until the next check. Many clients that connect and send nothing must not keep the server busy.
fn longer(pause: Duration) -> Duration {
    (pause * 2).min(HEAD_TIME / 50)
}

/// Answers requests, and knows which replies have not ended.
#[derive(Clone)]
struct Tracked<A> {
    answer: A,
    peer: Option<PeerAddress>,
    activity: Arc<Activity>,
}

impl<A: Answer> Service<Request<Incoming>> for Tracked<A> {
    type Response = http::Response<RunningBody>;
    type Error = Infallible;
    type Future = Answered;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let running = self.activity.begin();
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        self.answer.answer(request, running)
    }
}

/// The endpoint at its path; what stands before it anywhere else.
impl Answer for HttpService {
    fn adds_peer_address(&self) -> bool {
        self.options().peer_address
    }

    fn answer(&self, request: Request<Incoming>, running: Running) -> Answered {
        let (path, options) = (request.uri().path(), self.options());
        let endpoint = self.clone();
        if path == options.path || options.sse_path.as_deref() == Some(path) {
            let (mut parts, body) = request.into_parts();
            return Box::pin(
                async move { Ok(tracked(endpoint.respond_to(&mut parts, body).await, running)) },
            );
        }
        #[cfg(feature = "issuer")]
        if let Some(issuer) = self.issuer().filter(|issuer| issuer.has_path(path)) {
            let issuer = issuer.clone();
            return Box::pin(
                async move { Ok(tracked(endpoint.answer_issuer(issuer, request).await, running)) },
            );
        }
        // The body is not read, and what it holds need not be sent to another thread.
        let request = request.map(drop);
        Box::pin(async move { Ok(tracked(endpoint.answer_other_path(request).await, running)) })
    }
}

fn tracked(response: http::Response<Body>, running: Running) -> http::Response<RunningBody> {
    response.map(|body| RunningBody::new(body, running))
}

#[cfg(unix)]
async fn shutdown_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

#[cfg(not(unix))]
async fn shutdown_signal() {
    drop(tokio::signal::ctrl_c().await);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_sends_an_incomplete_head_is_polled_with_growing_delays() {
        let pauses = std::iter::successors(Some(Duration::from_millis(1)), |pause| Some(longer(*pause)));
        let mut waited = Duration::ZERO;
        let looks = pauses.take_while(|pause| {
            waited += *pause;
            waited < HEAD_TIME
        });
        assert!(looks.count() < 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_connections_is_one_warning_per_minute() {
        let (log, _guard) = bowline_testing::Log::start();
        let mut warnings = Warnings::default();
        for _ in 0..1000 {
            warnings.warn("refused a connection");
        }
        assert_eq!(log.count(&["refused a connection"]), 1, "{:?}", log.lines());
        tokio::time::advance(Warnings::PAUSE).await;
        warnings.warn("refused a connection");
        assert_eq!(log.count(&["refused a connection", "999"]), 1, "{:?}", log.lines());
    }
}
