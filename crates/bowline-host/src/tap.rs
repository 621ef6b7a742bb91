//! Shows what happens in a host: messages of both legs, decisions, model requests, output and states of servers.

use crate::Health;
use bowline_client::{Direction, ResponseHead};
use bowline_policy::{Gate, Question, Verdict};
use bowline_server::{BoxFuture, CallOrigin, ObservedMessage};
use bowline_types::Revision;
use std::{future::Future, time::Duration};

/// Sees what happens in a host. Without one, nothing is captured.
///
/// It is called in the task that has the event, so it must be fast, must not block and must not call the host.
pub trait Tap: Send + Sync + 'static {
    /// Sees an event.
    fn event(&self, event: &TapEvent<'_>);
}

/// Something that happened in a host.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum TapEvent<'a> {
    /// A message between a client and the host.
    Client(ObservedMessage<'a>),
    /// A message between the host and a server.
    Server(ServerMessage<'a>),
    /// The head of an HTTP response of a server, before its messages. It is not masked.
    Response {
        /// The connection.
        connection: u64,
        /// The server.
        server: &'a str,
        /// The head.
        head: ResponseHead<'a>,
    },
    /// The latest request with this method on a connection to a server was asked because of a call.
    Attributed {
        /// The connection.
        connection: u64,
        /// The method.
        method: &'a str,
        /// The call.
        call: &'a CallOrigin,
    },
    /// A call continues an earlier round.
    Continued {
        /// The call.
        call: &'a CallOrigin,
        /// The earlier round.
        earlier: &'a CallOrigin,
    },
    /// The policy decided about a call.
    Decided {
        /// The call.
        call: &'a CallOrigin,
        /// The server.
        server: &'a str,
        /// Whether it is allowed.
        allowed: bool,
        /// Why.
        reason: &'a str,
        /// How long it took, with the time of a person who was asked.
        took: Duration,
    },
    /// A model answered a request of a server, or failed.
    Model {
        /// The call that the server sent the request for.
        call: Option<&'a CallOrigin>,
        /// The server.
        server: &'a str,
        /// What went wrong, if so.
        error: Option<&'a str>,
        /// How long it took.
        took: Duration,
    },
    /// A server program wrote a line to its standard error.
    Output {
        /// The server.
        server: &'a str,
        /// The line.
        line: &'a str,
    },
    /// A server changed its state.
    State {
        /// The server.
        server: &'a str,
        /// Its state.
        health: &'a Health,
        /// The connection, if it is ready, and its revision.
        connection: Option<(u64, Revision)>,
    },
    /// A call has a connection of its own, which speaks this revision.
    Connected {
        /// The connection.
        connection: u64,
        /// The server.
        server: &'a str,
        /// The revision.
        revision: Revision,
    },
    /// The tools, resources or prompts of some server changed.
    ListsChanged,
}

/// A message between the host and a server.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ServerMessage<'a> {
    /// The number of the connection. It differs from those of clients and from earlier connections to the server.
    pub connection: u64,
    /// The server.
    pub server: &'a str,
    /// Its direction, seen from the host.
    pub direction: Direction,
    /// The message.
    pub frame: &'a [u8],
    /// The call of a client that it was sent for, if it is known.
    pub call: Option<&'a CallOrigin>,
}

impl<'a> ServerMessage<'a> {
    pub(crate) fn new(
        connection: u64,
        server: &'a str,
        direction: Direction,
        frame: &'a [u8],
        call: Option<&'a CallOrigin>,
    ) -> Self {
        Self { connection, server, direction, frame, call }
    }
}

tokio::task_local! {
    static CALL: CallOrigin;
}

/// Returns the call of a client that the current task works on. Known only while a host has a [`Tap`].
pub fn current_call() -> Option<CallOrigin> {
    CALL.try_with(Clone::clone).ok()
}

/// Runs a future that works on a call.
pub(crate) fn within<F: Future>(call: CallOrigin, future: F) -> impl Future<Output = F::Output> {
    CALL.scope(call, future)
}

/// Marks a call that a person has just asked for, by a click or a command of their own. Put it into the extensions of the call.
///
/// It is the consent that a rule asks for, for one server: what another server turns out to serve is asked about. Rules that deny,
/// and changed definitions, hold.
#[derive(Clone, Debug)]
pub struct ConsentGiven {
    server: String,
}

impl ConsentGiven {
    /// Marks a call to this server.
    pub fn new(server: impl Into<String>) -> Self {
        Self { server: server.into() }
    }

    pub(crate) fn is_for(&self, server: &str) -> bool {
        self.server == server
    }
}

/// Makes a call over a connection of its own that speaks one revision, to compare revisions. Put it into the extensions of the call.
///
/// The policy decides as for every call. A program is started once more and stopped after the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtRevision(Revision);

impl AtRevision {
    /// Uses this revision.
    pub const fn new(revision: Revision) -> Self {
        Self(revision)
    }

    pub(crate) const fn revision(self) -> Revision {
        self.0
    }
}

/// Allows what the person asked for, and passes other questions on.
pub(crate) struct ClickGate<'a>(pub(crate) &'a dyn Gate);

impl Gate for ClickGate<'_> {
    fn ask(&self, question: Question) -> BoxFuture<'_, Verdict> {
        match question {
            Question::Call { .. } | Question::Access { .. } => Box::pin(std::future::ready(Verdict::allow())),
            other => self.0.ask(other),
        }
    }
}
