//! The interface between the client and its transports.
//!
//! A [`Connect`] opens connections to one server. Each connection has a [`Transport`], which sends frames, and an
//! [`Inbox`], which receives them. Neither interprets frames; [`Outgoing`] contains what a transport needs to route
//! them.

#[cfg(feature = "in-process")]
mod in_process;
mod lines;
mod memory;
mod outbox;
mod program;
mod stream;

pub use memory::{ClientEnd, ServerEnd, memory};
pub use stream::Stream;

use crate::{Error, ResponseHead, Restart, Result, Stderr, connection::Connection};
use bowline_proto::{client::Negotiated, service::BoxFuture};
use bowline_types::{Era, Id, Method, RawJson, RawMap};
use bytes::Bytes;
use std::{
    fmt,
    sync::{Arc, Weak},
};

/// Opens connections to one server.
pub trait Connect: Send + Sync + 'static {
    /// Opens a connection. Received frames go to `inbox`.
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>>;

    /// Returns whether a lost connection is reopened. Default: it is not.
    fn restart(&self) -> Restart {
        Restart::Never
    }

    /// Returns the era of the server, if it is known. Default: it is not.
    fn known_era(&self) -> Option<Era> {
        None
    }

    /// The identifiers of the protocol extensions that connecting makes use of, such as a way to log in. The client declares
    /// them. By default there are none.
    fn extensions(&self) -> Vec<&'static str> {
        Vec::new()
    }
}

/// The argument of [`Client::connect`](crate::Client::connect): a [`Connect`], or, with the feature `in-process`, a
/// `Server` itself.
pub trait IntoConnect {
    /// The type that opens connections.
    type Target: Connect;

    /// Converts to a [`Connect`]. Fails if the server cannot be built.
    fn into_connect(self) -> Result<Self::Target>;
}

impl<C: Connect> IntoConnect for C {
    type Target = C;

    fn into_connect(self) -> Result<C> {
        Ok(self)
    }
}

macro_rules! connect_by_pointer {
    ($($pointer:ident),*) => { $(
        impl<C: Connect + ?Sized> Connect for $pointer<C> {
            fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
                (**self).connect(inbox)
            }

            fn restart(&self) -> Restart {
                (**self).restart()
            }

            fn known_era(&self) -> Option<Era> {
                (**self).known_era()
            }

            fn extensions(&self) -> Vec<&'static str> {
                (**self).extensions()
            }
        }
    )* };
}

connect_by_pointer!(Arc, Box);

/// The sending side of a connection. Dropping it closes the connection immediately.
pub trait Transport: Send + Sync + 'static {
    /// Sends a frame without waiting. Errors are reported to the [`Inbox`].
    fn send(&self, outgoing: Outgoing);

    /// Waits until the transport can accept another request. Default: always.
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Cancels a request in the way of the transport, or returns that a notification is needed.
    fn cancel(&self, id: &Id) -> CancelWay;

    /// Called after the handshake, because later frames may depend on what was negotiated.
    fn opened(&self, negotiated: &Negotiated) {
        let _ = negotiated;
    }

    /// Returns the standard error of the server's program, if there is one. It is shown if the connection cannot be
    /// opened.
    fn stderr(&self) -> Option<&Stderr> {
        None
    }

    /// Closes the connection gracefully. The time is bounded.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// How a request is cancelled on a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelWay {
    /// The client sends `notifications/cancelled`.
    Notify,
    /// The transport has cancelled the request; nothing more is sent.
    Closed,
}

/// A frame to send, and its kind.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// One JSON-RPC message.
    pub frame: Bytes,
    /// The kind of the message.
    pub kind: OutgoingKind,
}

impl Outgoing {
    /// Returns the subject of a request: the tool, prompt, URI or task, for methods that have one.
    pub fn name(&self) -> Option<String> {
        let OutgoingKind::Request { method, params, .. } = &self.kind else { return None };
        let member = Method::parse(method)?.name_source()?;
        params.decode::<RawMap>().ok()?.decode(member).ok()?
    }
}

/// The kind of a frame to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutgoingKind {
    /// A request, whose response goes to the [`Inbox`].
    Request {
        /// The id.
        id: Id,
        /// The method.
        method: Box<str>,
        /// The parameters in the frame. See [`Outgoing::name`].
        params: RawJson,
    },
    /// A notification.
    Notification {
        /// The method.
        method: Box<str>,
    },
    /// A response to a request of the server; legacy eras only.
    Response {
        /// The id of the request.
        id: Option<Id>,
    },
}

/// Receives messages of a connection, for programs that pass them on without being a client; see [`Inbox::to`].
pub trait Receive: Send + Sync + 'static {
    /// Returns whether the response to this request is still awaited.
    fn awaits(&self, id: &Id) -> bool;

    /// Handles a frame. `request` is the request on whose stream it arrived, if known. Must not block.
    fn accept(&self, frame: &Bytes, request: Option<&Id>);

    /// Fails one request.
    fn fail(&self, id: &Id, error: Error);

    /// Reports that the connection is closed.
    fn close(&self, reason: Error);
}

/// Receives frames from a transport. Cheap to clone. It does not keep the connection alive.
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

    /// Creates an inbox for a program that is not a client. Frames go to `receiver` as long as it exists.
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

    /// Returns the maximum size of a frame in bytes.
    pub fn max_frame(&self) -> usize {
        self.max_frame
    }

    /// Returns the era that an earlier connection to the same server detected, if there was one.
    pub fn known_era(&self) -> Option<Era> {
        self.client()?.known_era()
    }

    /// Returns whether the response to this request is still awaited.
    pub fn awaits(&self, id: &Id) -> bool {
        match &self.receiver {
            Receiver::Client(connection) => {
                connection.upgrade().is_some_and(|connection| connection.awaits(id))
            }
            Receiver::Other(receiver) => receiver.upgrade().is_some_and(|receiver| receiver.awaits(id)),
        }
    }

    /// Handles a frame. Never blocks and never fails: a frame that is not a message is counted as noise.
    ///
    /// For transports with a single channel. Other transports use [`accept_on`](Self::accept_on).
    pub fn accept(&self, frame: &Bytes) {
        self.take(frame, None);
    }

    /// Handles a frame on the stream of a request: requests and notifications in it belong to that request.
    pub fn accept_on(&self, request: &Id, frame: &Bytes) {
        self.take(frame, Some(request));
    }

    /// Reports received data that is not a frame, such as a line that is too long. `sample` is its start.
    pub fn noise(&self, sample: &[u8]) {
        if let Some(connection) = self.client() {
            connection.note_noise(sample);
        }
    }

    /// Reports that notifications may have been lost although the connection is open. Listeners are notified that anything
    /// may have changed.
    pub fn notifications_lost(&self) {
        if let Some(connection) = self.client() {
            connection.notifications_lost();
        }
    }

    /// Reports that requests now have other credentials. The cache is dropped, because private results belong to the
    /// credentials of their request.
    pub fn credentials_changed(&self) {
        if let Some(connection) = self.client() {
            connection.drop_cache();
        }
    }

    /// Restarts the idle timeouts of all requests of this connection. A transport calls it regularly while it waits for
    /// a user, such as during a login in a browser. Total timeouts continue.
    pub fn keep_waiting(&self) {
        if let Some(connection) = self.client() {
            connection.keep_waiting();
        }
    }

    /// Returns whether heads of HTTP responses are wanted.
    pub fn wants_responses(&self) -> bool {
        self.client().is_some_and(|connection| connection.wants_responses())
    }

    /// Reports the head of an HTTP response, before its body.
    pub fn response(&self, head: &ResponseHead<'_>) {
        if let Some(connection) = self.client() {
            connection.show_response(head);
        }
    }

    /// Fails one request.
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

    /// Reports that the connection is closed. The first reason counts.
    pub fn close(&self, reason: Error) {
        match &self.receiver {
            Receiver::Client(connection) => {
                if let Some(connection) = connection.upgrade() {
                    connection.close(&reason);
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
