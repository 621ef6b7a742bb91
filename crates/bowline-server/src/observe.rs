//! Shows the messages between a server and its clients to an observer.

use crate::transport::Sink;
use bowline_proto::{encode, service::ClientView};
use bowline_types::Id;
use bytes::Bytes;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The direction of a message, seen from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageDirection {
    /// The server received it.
    Received,
    /// The server sent it.
    Sent,
}

/// A message between the server and a client.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ObservedMessage<'a> {
    /// The number of the connection. A self-contained request over HTTP is a connection of its own.
    pub connection: u64,
    /// Its direction.
    pub direction: MessageDirection,
    /// The message as it passes the transport, without a line break or an event.
    pub frame: &'a [u8],
    /// The request of the client that a sent message belongs to, if it is known.
    pub about: Option<&'a Id>,
    /// The client, if the message is a call or belongs to one.
    pub client: Option<&'a ClientView>,
}

/// Where a call came from. While messages are observed, it is in the extensions of every call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CallOrigin {
    /// The number of the connection.
    pub connection: u64,
    /// The id of the request.
    pub id: Id,
}

impl CallOrigin {
    /// Creates the origin of a call that did not come over a transport.
    pub fn new(connection: u64, id: Id) -> Self {
        Self { connection, id }
    }
}

/// The text of a message. Transports put it into the extensions while messages are observed.
#[derive(Clone, Debug)]
pub struct RawFrame(pub Bytes);

/// What is called for each message.
pub(crate) type OnMessage = Arc<dyn Fn(&ObservedMessage<'_>) + Send + Sync>;

/// The number of the next connection. Numbers are unique in the process, so that several servers can share an observer.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Returns a number for a connection that an observer sees.
pub fn next_connection() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The observer of one connection.
#[derive(Clone)]
pub struct Observer {
    on_message: OnMessage,
    connection: u64,
}

impl Observer {
    pub(crate) fn new(on_message: &OnMessage) -> Self {
        Self { on_message: Arc::clone(on_message), connection: next_connection() }
    }

    /// Returns the number of the connection.
    pub fn connection(&self) -> u64 {
        self.connection
    }

    /// Shows a received message.
    pub fn received(&self, frame: &[u8], client: Option<&ClientView>) {
        self.show(MessageDirection::Received, frame, None, client);
    }

    /// Shows a sent message that belongs to the request `about`.
    pub fn sent(&self, frame: &[u8], about: Option<&Id>, client: Option<&ClientView>) {
        self.show(MessageDirection::Sent, frame, about, client);
    }

    fn show(
        &self,
        direction: MessageDirection,
        frame: &[u8],
        about: Option<&Id>,
        client: Option<&ClientView>,
    ) {
        let connection = self.connection;
        (self.on_message)(&ObservedMessage { connection, direction, frame, about, client });
    }

    /// Returns a sink that shows what it sends.
    pub(crate) fn sink(
        &self,
        inner: &Arc<dyn Sink>,
        about: Option<Id>,
        client: Option<Arc<ClientView>>,
    ) -> Arc<dyn Sink> {
        Arc::new(ObservedSink { inner: Arc::clone(inner), observer: self.clone(), about, client })
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("connection", &self.connection).finish_non_exhaustive()
    }
}

/// Shows each frame that it passes on.
struct ObservedSink {
    inner: Arc<dyn Sink>,
    observer: Observer,
    about: Option<Id>,
    client: Option<Arc<ClientView>>,
}

impl ObservedSink {
    fn show(&self, frame: &[u8]) {
        self.observer.sent(frame, self.about.as_ref(), self.client.as_deref());
    }
}

impl Sink for ObservedSink {
    fn write(&self, write: &mut dyn FnMut(&mut Vec<u8>) -> bool) {
        self.inner.write(&mut |out| {
            let start = out.len();
            let has_written = write(out);
            if has_written {
                self.show(out.get(start..).unwrap_or_default());
            }
            has_written
        });
    }

    fn offer(&self, frame: &[u8]) {
        self.show(frame);
        self.inner.offer(frame);
    }

    fn close_stream(&self) {
        self.inner.close_stream();
    }

    fn push_response(&self, id: &Id, result: &Bytes) {
        let mut frame = Vec::with_capacity(result.len() + 64);
        encode::write_response(&mut frame, id, result);
        self.show(&frame);
        self.inner.push_response(id, result);
    }
}
