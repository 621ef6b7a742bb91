//! A connection that reads one stream of a session.

use super::{
    session::{InUse, Session},
    stream::{Next, Stream},
};
use crate::server::{events::comment, service::Shared};
use bowline_proto::sse::{EventRef, encode_event};
use bytes::Bytes;
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep};

/// A connection that reads one stream. Dropping it leaves the stream unchanged, so that it can be read again.
pub(in crate::server) struct Reader {
    session: Arc<Session>,
    stream: Arc<Stream>,
    /// Its number among the readers of the stream.
    number: u64,
    turn: u64,
    next: u64,
    /// Data before the events.
    opening: Option<Bytes>,
    form: Form,
    keep_alive: Duration,
    silence: Pin<Box<Sleep>>,
    /// When to end, even if there is more to read.
    expiry: Option<Pin<Box<Sleep>>>,
    /// When to stop waiting for more.
    until: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Nothing is waited for any more.
    closing: bool,
    /// The endpoint, if the session ends with this reader.
    of: Option<Arc<Shared>>,
    /// What ends with this reader.
    guard: Option<Box<dyn std::any::Any + Send>>,
    _in_use: InUse,
}

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// With an id, so that the stream can be read again.
    Resumable,
    /// Without, as the first revision had it.
    Plain,
}

impl Reader {
    /// Reads `stream` after the event `after`. Returns `None` if the following events are lost.
    pub(super) fn new(
        session: &Arc<Session>,
        stream: Arc<Stream>,
        after: u64,
        form: Form,
        keep_alive: Duration,
    ) -> Option<Self> {
        let turn = stream.attach(after)?;
        let (session, in_use) = (Arc::clone(session), session.mark_in_use());
        let silence = Box::pin(sleep(keep_alive));
        Some(Self {
            session,
            stream,
            number: turn,
            turn,
            next: after + 1,
            opening: None,
            form,
            keep_alive,
            silence,
            expiry: None,
            until: None,
            closing: false,
            of: None,
            guard: None,
            _in_use: in_use,
        })
    }

    /// Reads `stream` after the event `after`, with ids.
    #[cfg(feature = "store")]
    pub(in crate::server) fn resumable(
        session: &Arc<Session>,
        stream: Arc<Stream>,
        after: u64,
        keep_alive: Duration,
    ) -> Option<Self> {
        Self::new(session, stream, after, Form::Resumable, keep_alive)
    }

    /// Keeps `guard` as long as the reader.
    #[cfg(feature = "store")]
    pub(in crate::server) fn guarded(mut self, guard: impl std::any::Any + Send) -> Self {
        self.guard = Some(Box::new(guard));
        self
    }

    /// Has something written before the events.
    pub(super) fn opening(mut self, bytes: Bytes) -> Self {
        self.opening = Some(bytes);
        self
    }

    /// Ends the session with this reader, because without event ids a client cannot resume.
    pub(super) fn only_one(mut self, shared: &Arc<Shared>) -> Self {
        self.of = Some(Arc::clone(shared));
        self
    }

    /// Ends the reader after `time`, even if there is more to read. A client that reconnects reads the rest.
    pub(super) fn at_most(mut self, time: Duration) -> Self {
        self.expiry = Some(Box::pin(sleep(time)));
        self
    }

    /// Ends the reader when `until` completes and nothing is left to read.
    pub(super) fn until(mut self, until: impl Future<Output = ()> + Send + 'static) -> Self {
        self.until = Some(Box::pin(until));
        self
    }

    pub(in crate::server) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(opening) = self.opening.take() {
            return Poll::Ready(Some(opening));
        }
        if self.expiry.as_mut().is_some_and(|expiry| expiry.as_mut().poll(context).is_ready()) {
            // A timer must not be polled again. Without a turn, the stream has ended for this reader.
            (self.expiry, self.turn) = (None, 0);
            return Poll::Ready(None);
        }
        let mut next = self.stream.next(self.turn, self.next, context.waker());
        if self.stream.number == 0 && next == Next::Wait {
            // Only after the waker is registered, so that new notifications wake the reader.
            self.session.conversation.write_notifications(&*self.stream);
            next = self.stream.next(self.turn, self.next, context.waker());
        }
        match next {
            Next::Event(number, message) => {
                self.next = number + 1;
                self.silence.as_mut().reset(Instant::now() + self.keep_alive);
                let form = if self.stream.has_id(number) { self.form } else { Form::Plain };
                Poll::Ready(Some(event(form, &self.stream.name, number, &message)))
            }
            Next::End => Poll::Ready(None),
            Next::Wait => {
                if self.until.as_mut().is_some_and(|until| until.as_mut().poll(context).is_ready()) {
                    (self.until, self.closing) = (None, true);
                    // Events may have been added since the check above.
                    return self.poll_next(context);
                }
                if self.closing {
                    // No turn: polling the body after its end returns the end again.
                    self.turn = 0;
                    return Poll::Ready(None);
                }
                if self.silence.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                self.silence.as_mut().reset(Instant::now() + self.keep_alive);
                let _ = self.silence.as_mut().poll(context);
                Poll::Ready(Some(comment()))
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stream.detach(self.number);
        self.guard = None;
        if let Some(shared) = &self.of {
            shared.sessions.remove(&self.session);
        }
    }
}

fn event(form: Form, stream: &str, number: u64, message: &[u8]) -> Bytes {
    let id = event_id(stream, number);
    let id = (form == Form::Resumable).then_some(id.as_str());
    let mut out = Vec::with_capacity(message.len() + 48);
    // Encoding fails only for an id or a name with a line break, and there is none.
    drop(encode_event(
        &mut out,
        &EventRef { event: Some("message"), data: message, id, ..EventRef::default() },
    ));
    out.into()
}

/// Encodes an event of a stream that was stored by another process.
#[cfg(feature = "store")]
pub(in crate::server) fn encode_logged(out: &mut Vec<u8>, stream: &str, number: u64, message: &[u8]) {
    out.extend_from_slice(&event(Form::Resumable, stream, number, message));
}

/// Returns an event that only contains the start of the stream, so that a client can resume before the first message.
pub(super) fn priming(stream: &str, after: u64, retry: Option<Duration>) -> Bytes {
    let id = event_id(stream, after);
    let mut out = Vec::new();
    drop(encode_event(&mut out, &EventRef { id: Some(&id), data: b"", retry, ..EventRef::default() }));
    out.into()
}

/// Names an event among all of a session: its stream, and its place in it.
pub(super) fn event_id(stream: &str, number: u64) -> String {
    format!("{stream}-{number}")
}

/// Parses an id from [`event_id`].
pub(super) fn parse_event_id(id: &str) -> Option<(&str, u64)> {
    let (stream, number) = id.split_once('-')?;
    let is_name = !stream.is_empty()
        && stream.len() <= MAX_NAME
        && stream.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'.');
    // One more than the number must exist; no stream has this many events.
    let number = number.parse::<u64>().ok()?.min(u64::MAX / 2);
    is_name.then_some((stream, number))
}

/// The longest name of a stream: a node and two numbers.
const MAX_NAME: usize = 64;
