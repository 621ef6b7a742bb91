//! A scripted peer that sends and receives raw frames.

mod backend;
mod bytes;
mod history;
#[cfg(feature = "http")]
mod http;
mod link;

pub use backend::IntoHandle;

use crate::{Error, Result};
use backend::Backend;
use bowline_transcript::matching::describe;
use bowline_types::Revision;
use history::History;
use link::{Arrived, Link};
use serde_json::{Value, json};
use std::{ffi::OsStr, fmt, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, duplex, split},
    time::{Instant, timeout_at},
};

/// The default time limit for a frame.
const DEADLINE: Duration = Duration::from_secs(20);
/// The buffer size of a connection in memory.
const PIPE: usize = 64 * 1024;

/// One end of a connection that sends the frames of a test.
///
/// It does not check what it sends, so a test can send invalid frames. Received frames are kept in order until the test
/// takes them. Every wait has a deadline, and its error shows the whole conversation.
///
/// A peer can also act as a server:
///
/// ```
/// use bowline_testing::Peer;
/// use serde_json::json;
/// use tokio::io::AsyncWriteExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (mut peer, mut client) = Peer::pair();
/// client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await?;
/// let request = peer.recv_method("ping").await?;
/// peer.reply(&request, json!({})).await?;
/// assert_eq!(peer.transcript().lines().count(), 2);
/// # Ok(())
/// # }
/// ```
pub struct Peer {
    link: Link,
    backend: Backend,
    history: History,
    next_id: u64,
    capabilities: Value,
    deadline: Duration,
}

impl Peer {
    /// Connects to a server in memory. A task of the peer runs the server.
    ///
    /// Fails if the server cannot be built.
    pub fn memory(server: impl IntoHandle) -> Result<Self> {
        let handle = server.into_handle()?;
        let (ours, theirs) = duplex(PIPE);
        let (read, write) = split(ours);
        Ok(Self::new(Link::bytes(read, write), Backend::serve(handle, theirs)))
    }

    /// Serves a server over HTTP on a local port and connects to it.
    ///
    /// The peer sends and receives frames as on any other connection. Each frame is sent in the HTTP form of its
    /// revision, and the contents of replies and streams are received as frames. Cancelling a request of 2026-07-28
    /// closes its stream. Frames of one stream are in order; the order between streams is not defined.
    ///
    /// Fails if the server cannot be built or no port is free. Panics outside of a tokio runtime with IO.
    #[cfg(feature = "http")]
    pub fn http(server: impl IntoHandle) -> Result<Self> {
        let (served, http) = http::Served::start(server.into_handle()?)
            .map_err(|error| Error::unexpected(format!("cannot serve over HTTP: {error}")))?;
        Ok(Self::new(Link::http(http), Backend::Http(Box::new(served))))
    }

    /// Starts a server as a child process and connects to its standard input and output.
    ///
    /// The child is killed when the peer is dropped.
    pub fn spawn(
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Self> {
        let (backend, stdout, stdin) = Backend::spawn(program.as_ref(), args)?;
        Ok(Self::new(Link::bytes(stdout, stdin), backend))
    }

    /// Uses a pair of byte streams, for example to act as the server of a client.
    pub fn over(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self::new(Link::bytes(read, write), Backend::Nothing)
    }

    /// Returns a peer and the other end of its connection, for the code under test.
    pub fn pair() -> (Self, DuplexStream) {
        let (ours, theirs) = duplex(PIPE);
        let (read, write) = split(ours);
        (Self::over(read, write), theirs)
    }

    fn new(link: Link, backend: Backend) -> Self {
        Self {
            link,
            backend,
            history: History::default(),
            next_id: 1,
            capabilities: json!({}),
            deadline: DEADLINE,
        }
    }

    /// Sets the client capabilities that [`Peer::initialize`] and [`Peer::modern`] declare. Default: none.
    #[must_use]
    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Sets the time limit for receiving a frame. Default: 20 seconds.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sends one JSON value as a frame.
    pub async fn send(&mut self, frame: impl Into<Value>) -> Result {
        self.send_raw(format!("{}\n", frame.into())).await
    }

    /// Sends these bytes unchanged. They must include the line breaks.
    pub async fn send_raw(&mut self, bytes: impl AsRef<[u8]>) -> Result {
        let bytes = bytes.as_ref();
        self.history.sent(bytes);
        let until = Instant::now() + self.deadline;
        let sent = timeout_at(until, self.link.send(bytes, &mut self.history)).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Error::closed(self.with_history(&format!("cannot send: {error}")))),
            Err(_) => Err(Error::timeout(self.with_history("the peer does not read what is sent"))),
        }
    }

    /// Receives the next frame.
    pub async fn recv(&mut self) -> Result<Value> {
        self.take(|_| true, "a frame").await
    }

    /// Receives the next request or notification with this method. Frames before it are kept.
    pub async fn recv_method(&mut self, method: &str) -> Result<Value> {
        let wanted = |frame: &Value| frame.get("method").is_some_and(|known| known == method);
        self.take(wanted, &format!("`{method}`")).await
    }

    /// Sends a request with a new id and returns the response, a result or an error.
    ///
    /// Frames that arrive before the response are kept for [`Peer::recv`] and [`Peer::notifications`].
    pub async fn request(&mut self, method: &str, params: impl Into<Value>) -> Result<Value> {
        let id = self.start(method, params).await?;
        self.response(&id).await
    }

    /// Sends a request with a new id and returns that id without waiting.
    pub async fn start(&mut self, method: &str, params: impl Into<Value>) -> Result<Value> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params.into() })).await?;
        Ok(id.into())
    }

    /// Receives the response to the request with this id. Frames before it are kept.
    pub async fn response(&mut self, id: &Value) -> Result<Value> {
        let wanted = |frame: &Value| frame.get("method").is_none() && frame.get("id") == Some(id);
        self.take(wanted, &format!("the response to request {id}")).await
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: impl Into<Value>) -> Result {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params.into() })).await
    }

    /// Sends the result of a request that the peer received.
    pub async fn reply(&mut self, request: &Value, result: impl Into<Value>) -> Result {
        let id = request.get("id").cloned().unwrap_or_default();
        self.send(json!({ "jsonrpc": "2.0", "id": id, "result": result.into() })).await
    }

    /// Opens a legacy session: `initialize` and `notifications/initialized`. Returns the server's result.
    pub async fn initialize(&mut self, revision: Revision) -> Result<Value> {
        let params = json!({
            "protocolVersion": revision.as_str(),
            "capabilities": self.capabilities,
            "clientInfo": { "name": "bowline-testing", "version": env!("CARGO_PKG_VERSION") },
        });
        let mut answer = self.request("initialize", params).await?;
        let Some(result) = answer.get_mut("result").map(Value::take) else {
            return Err(Error::unexpected(self.with_history("`initialize` was refused")));
        };
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
        Ok(result)
    }

    /// Sends a self-describing request of 2026-07-28 and returns the response.
    ///
    /// Members that `params._meta` already has are not changed.
    pub async fn modern(&mut self, method: &str, params: impl Into<Value>) -> Result<Value> {
        let mut params = params.into();
        describe(&mut params, &self.capabilities);
        self.request(method, params).await
    }

    /// Takes the notifications that were received so far.
    pub fn notifications(&mut self) -> Vec<Value> {
        let is_notification = |frame: &Value| frame.get("method").is_some() && frame.get("id").is_none();
        let mut taken = Vec::new();
        while let Some(notification) = self.link.find_json(is_notification) {
            taken.push(notification);
        }
        taken
    }

    /// Closes the sending side and returns all remaining frames, until the other side closes too.
    ///
    /// This proves that a frame was not sent without waiting for a timeout. A child process must exit successfully.
    pub async fn close(&mut self) -> Result<Vec<Value>> {
        self.close_sending().await;
        let until = Instant::now() + self.deadline;
        match timeout_at(until, self.link.drain(&mut self.history)).await {
            Ok(()) => {}
            Err(_) => return Err(Error::timeout(self.with_history("the peer keeps the connection open"))),
        }
        let mut rest = Vec::new();
        while let Some(arrived) = self.link.pop() {
            rest.push(self.json(arrived)?);
        }
        match timeout_at(until, self.backend.end()).await {
            Ok(Ok(())) => Ok(rest),
            Ok(Err(reason)) => Err(Error::unexpected(self.with_history(&reason))),
            Err(_) => Err(Error::timeout(self.with_history("the server did not exit in time"))),
        }
    }

    /// Closes the sending side. Frames can still be received.
    pub async fn close_sending(&mut self) {
        self.link.close_sending().await;
        self.history.closed();
    }

    /// Returns the conversation so far, one frame per line: `>` was sent, `<` was received.
    pub fn transcript(&self) -> String {
        self.history.to_string()
    }

    /// Returns whether all frames arrive on one stream, and therefore in order.
    pub(crate) fn is_one_stream(&self) -> bool {
        self.link.is_one_stream()
    }

    /// Receives the next frame and the number of its stream.
    pub(crate) async fn recv_from(&mut self) -> Result<(u64, Value)> {
        let arrived = self.wait(|_| true, "a frame").await?;
        Ok((arrived.stream, self.json(arrived)?))
    }

    async fn take(&mut self, wanted: impl Fn(&Value) -> bool, what: &str) -> Result<Value> {
        let arrived = self.wait(wanted, what).await?;
        self.json(arrived)
    }

    async fn wait(&mut self, wanted: impl Fn(&Value) -> bool, what: &str) -> Result<Arrived> {
        let until = Instant::now() + self.deadline;
        loop {
            if let Some(arrived) = self.link.find(&wanted) {
                return Ok(arrived);
            }
            match timeout_at(until, self.link.more(&mut self.history)).await {
                Ok(true) => {}
                Ok(false) => {
                    let reason = format!("expected {what}, but the connection was closed");
                    return Err(Error::closed(self.with_history(&reason)));
                }
                Err(_) => {
                    let reason = format!("expected {what}, got nothing within {:?}", self.deadline);
                    return Err(Error::timeout(self.with_history(&reason)));
                }
            }
        }
    }

    fn json(&self, arrived: Arrived) -> Result<Value> {
        arrived.value.ok_or_else(|| {
            Error::unexpected(self.with_history(&format!("expected a frame of JSON, got `{}`", arrived.text)))
        })
    }

    /// Appends the conversation to a message.
    fn with_history(&self, reason: &str) -> String {
        format!("{reason}\n{}{}", self.history, self.backend.stderr_report())
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("history", &self.transcript()).finish_non_exhaustive()
    }
}
