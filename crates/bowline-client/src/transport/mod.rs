//! Between the client and the wire: what a transport has to do, and what it is given.
//!
//! A [`Connect`] opens connections to one server. Each gives a [`Transport`], which takes frames out, and is given an
//! [`Inbox`], which takes frames in. Neither knows what the frames mean; [`Outgoing`] says as much as a transport may
//! need to route them.

#[cfg(feature = "in-process")]
mod in_process;
mod lines;
mod memory;
mod outbox;
mod program;
mod stream;

pub use memory::{ClientEnd, ServerEnd, memory};
pub use stream::Stream;

use crate::{Error, Restart, Result, Stderr, connection::Connection};
use bowline_proto::{client::Negotiated, service::BoxFuture};
use bowline_types::{Era, Id, Method, RawJson, RawMap};
use bytes::Bytes;
use std::{
    fmt,
    sync::{Arc, Weak},
};

/// A way to reach one server, as often as need be.
pub trait Connect: Send + Sync + 'static {
    /// Opens a connection whose incoming frames go to `inbox`.
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>>;

    /// Whether a lost connection is opened again. By default it is not.
    fn restart(&self) -> Restart {
        Restart::Never
    }

    /// The era of the server, where it is known from elsewhere. By default it is not.
    fn known_era(&self) -> Option<Era> {
        None
    }
}

/// What [`Client::connect`](crate::Client::connect) takes: a way to reach a server, or, with the feature `in-process`, a
/// `Server` itself.
pub trait IntoConnect {
    /// The way to reach it.
    type Target: Connect;

    /// Makes a way to reach the server. Fails when the server cannot be built.
    fn into_connect(self) -> Result<Self::Target>;
}

impl<C: Connect> IntoConnect for C {
    type Target = C;

    fn into_connect(self) -> Result<C> {
        Ok(self)
    }
}

impl<C: Connect + ?Sized> Connect for Arc<C> {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        (**self).connect(inbox)
    }

    fn restart(&self) -> Restart {
        (**self).restart()
    }

    fn known_era(&self) -> Option<Era> {
        (**self).known_era()
    }
}

impl<C: Connect + ?Sized> Connect for Box<C> {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        (**self).connect(inbox)
    }

    fn restart(&self) -> Restart {
        (**self).restart()
    }

    fn known_era(&self) -> Option<Era> {
        (**self).known_era()
    }
}

/// One connection, seen from above: frames go out. Dropping it ends the connection at once.
pub trait Transport: Send + Sync + 'static {
    /// Sends a frame, without waiting. What goes wrong is told to the [`Inbox`].
    fn send(&self, outgoing: Outgoing);

    /// Completes when the transport has room for another request. By default it always has.
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// The caller gave up a request: ends it in the transport's own way, or says that a notification is due.
    fn cancel(&self, id: &Id) -> CancelWay;

    /// The opening is done; what was agreed on may matter to frames sent from here on.
    fn opened(&self, negotiated: &Negotiated) {
        let _ = negotiated;
    }

    /// The standard error of the server's program, where it is one: shown when the connection cannot be opened.
    fn stderr(&self) -> Option<&Stderr> {
        None
    }

    /// Ends the connection in good order. Takes a bounded time.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// How a request is cancelled on a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelWay {
    /// The client sends `notifications/cancelled`.
    Notify,
    /// The transport has ended the request by itself; nothing is sent.
    Closed,
}

/// A frame to send, and what it is.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// One JSON-RPC message.
    pub frame: Bytes,
    /// What the message is.
    pub kind: OutgoingKind,
}

impl Outgoing {
    /// What a request is about: the tool, prompt, URI or task, for the methods that name one.
    pub fn name(&self) -> Option<String> {
        let OutgoingKind::Request { method, params, .. } = &self.kind else { return None };
        let member = Method::parse(method)?.name_source()?;
        params.decode::<RawMap>().ok()?.decode(member).ok()?
    }
}

/// What a frame to send is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutgoingKind {
    /// A request, whose answer is due at the [`Inbox`].
    Request {
        /// Names the request.
        id: Id,
        /// What is asked for.
        method: Box<str>,
        /// With which parameters, as they stand in the frame. See [`Outgoing::name`].
        params: RawJson,
    },
    /// A notification.
    Notification {
        /// What is told.
        method: Box<str>,
    },
    /// A response to a request of the server; legacy eras only.
    Response {
        /// The request.
        id: Option<Id>,
    },
}

/// Takes what comes over a connection, for a program that passes messages on without being a client; see [`Inbox::to`].
pub trait Receive: Send + Sync + 'static {
    /// Whether someone still waits for the answer to this request.
    fn awaits(&self, id: &Id) -> bool;

    /// Takes a frame, which came on the stream of `request` if that is known. Must not block.
    fn accept(&self, frame: &Bytes, request: Option<&Id>);

    /// One request cannot be answered any more.
    fn fail(&self, id: &Id, error: Error);

    /// The connection is gone.
    fn close(&self, reason: Error);
}

/// Where a transport puts what comes in. Cheap to clone; it does not keep the connection alive.
#[derive(Clone)]
pub struct Inbox {
    receiver: Receiver,
    max_frame: usize,
}

#[derive(Clone)]
enum Receiver {
    Client(Weak<Connection>),
    Other(Weak<dyn Receive>),
}

impl Inbox {
    pub(crate) fn new(connection: &Arc<Connection>, max_frame: usize) -> Self {
        Self { receiver: Receiver::Client(Arc::downgrade(connection)), max_frame }
    }

    /// An inbox of a program that is no client: what comes in goes to `receiver`, as long as that is there.
    pub fn to<R: Receive>(receiver: &Arc<R>, max_frame: usize) -> Self {
        let receiver: Weak<R> = Arc::downgrade(receiver);
        Self { receiver: Receiver::Other(receiver), max_frame }
    }

    fn client(&self) -> Option<Arc<Connection>> {
        match &self.receiver {
            Receiver::Client(connection) => connection.upgrade(),
            Receiver::Other(_) => None,
        }
    }

    fn take(&self, frame: &Bytes, request: Option<&Id>) {
        match &self.receiver {
            Receiver::Client(connection) => {
                if let Some(connection) = connection.upgrade() {
                    connection.accept(frame, request);
                }
            }
            Receiver::Other(receiver) => {
                if let Some(receiver) = receiver.upgrade() {
                    receiver.accept(frame, request);
                }
            }
        }
    }

    /// The longest frame the client wants to see, in bytes.
    pub fn max_frame(&self) -> usize {
        self.max_frame
    }

    /// The era found at an earlier connection to the same server, if there was one.
    pub fn known_era(&self) -> Option<Era> {
        self.client()?.known_era()
    }

    /// Whether someone still waits for the answer to this request.
    pub fn awaits(&self, id: &Id) -> bool {
        match &self.receiver {
            Receiver::Client(connection) => {
                connection.upgrade().is_some_and(|connection| connection.awaits(id))
            }
            Receiver::Other(receiver) => receiver.upgrade().is_some_and(|receiver| receiver.awaits(id)),
        }
    }

    /// Takes in a frame. Never blocks, and never fails: what is no message is counted as noise.
    ///
    /// For transports with one channel for everything. A transport that knows more says it with
    /// [`accept_on`](Self::accept_on).
    pub fn accept(&self, frame: &Bytes) {
        self.take(frame, None);
    }

    /// Takes in a frame that came on the stream of a request of this client: what the server asks or tells in it is about
    /// that request.
    pub fn accept_on(&self, request: &Id, frame: &Bytes) {
        self.take(frame, Some(request));
    }

    /// Something came in that is no frame, such as a line too long to read. `sample` is its beginning.
    pub fn noise(&self, sample: &[u8]) {
        if let Some(connection) = self.client() {
            connection.note_noise(sample);
        }
    }

    /// The connection goes on, but what the server told of its own accord may have been lost for a while. Whoever
    /// listens for changes hears that anything may have changed.
    pub fn missed_news(&self) {
        if let Some(connection) = self.client() {
            connection.missed_news();
        }
    }

    /// Requests carry other credentials from now on. What was cached under the old ones is dropped: a private result belongs
    /// to the credentials it was asked for with.
    pub fn credentials_changed(&self) {
        if let Some(connection) = self.client() {
            connection.drop_cache();
        }
    }

    /// Restarts the idle timeouts of all requests of this connection. A transport calls it from time to time while it
    /// waits for something that takes a person long, such as a login in a browser. Total timeouts continue.
    pub fn keep_waiting(&self) {
        if let Some(connection) = self.client() {
            connection.keep_waiting();
        }
    }

    /// One request cannot be answered any more.
    pub fn fail(&self, id: &Id, error: Error) {
        match &self.receiver {
            Receiver::Client(connection) => {
                if let Some(connection) = connection.upgrade() {
                    connection.fail(id, error);
                }
            }
            Receiver::Other(receiver) => {
                if let Some(receiver) = receiver.upgrade() {
                    receiver.fail(id, error);
                }
            }
        }
    }

    /// The connection is gone, for `reason`. The first reason counts.
    pub fn close(&self, reason: Error) {
        match &self.receiver {
            Receiver::Client(connection) => {
                if let Some(connection) = connection.upgrade() {
                    connection.shut(&reason);
                }
            }
            Receiver::Other(receiver) => {
                if let Some(receiver) = receiver.upgrade() {
                    receiver.close(reason);
                }
            }
        }
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("max_frame", &self.max_frame).finish_non_exhaustive()
    }
}
