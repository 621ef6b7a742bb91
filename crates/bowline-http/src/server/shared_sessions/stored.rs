//! A copy of a stored session.

use super::{
    Resume, answers,
    node::{Node, unavailable},
    record::{SessionRecord, owner_group},
    stream_log::{self, StreamLog},
};
use crate::server::{
    Body,
    legacy::{Reader, Session, Stream},
    reply,
    service::Shared,
};
use bowline_proto::{
    envelope::{self, Frame, Message, MethodName},
    server::SessionState,
    service::Extensions,
};
use bowline_server::transport::{Sink, unix_time};
use bowline_store::{ErrorKind, Key, Put, PutError, StoreError, Version};
use bowline_types::{CancelledParams, Id, Method};
use bytes::Bytes;
use http::Response;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::time::Instant;

/// How often a write that meets the write of another process is repeated.
const ATTEMPTS: usize = 8;

/// How often a use of a session is recorded at most.
const MAX_TOUCH: Duration = Duration::from_secs(300);

/// What is known of a stored session.
#[derive(Debug)]
pub(in crate::server) struct Stored {
    node: Arc<Node>,
    key: Key,
    pub(super) digest: Arc<str>,
    /// Names this copy, and begins the ids of its questions and the names of its streams.
    prefix: Arc<str>,
    known: Mutex<Known>,
    /// Held while the record is read or written.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Known {
    /// The record and its version; `None` before it is created.
    found: Option<(SessionRecord, Version)>,
    /// When it was last read.
    checked: Option<Instant>,
    touched: Instant,
    /// The changes of the conversation that are in the record.
    changes: u64,
}

type Refused = Box<Response<Body>>;

impl Stored {
    pub(super) fn new(
        node: Arc<Node>,
        key: Key,
        digest: Arc<str>,
        prefix: Arc<str>,
        found: Option<(SessionRecord, Version)>,
    ) -> Self {
        let now = Instant::now();
        let known = Known { found, checked: Some(now), touched: now, changes: 0 };
        Self { node, key, digest, prefix, known: Mutex::new(known), writing: tokio::sync::Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note_changes(&self, changes: u64) {
        self.known().changes = changes;
    }

    /// Reads the record before the next use.
    pub(super) fn mark_stale(&self) {
        self.known().checked = None;
    }

    /// Returns whether the copy can be used without reading the record.
    pub(super) fn is_fresh(&self, session: &Session) -> bool {
        let known = self.known();
        known.checked.is_some_and(|checked| checked.elapsed() < self.node.store.cache)
            && session.conversation.is_ready()
    }

    async fn read(&self) -> Result<Option<(SessionRecord, Version)>, StoreError> {
        let found = self.node.records().get(std::slice::from_ref(&self.key)).await?.pop().flatten();
        let Some(found) = found else { return Ok(None) };
        let record =
            SessionRecord::read(&found.value).map_err(|error| StoreError::invalid(error.to_string()))?;
        Ok(Some((record, found.version)))
    }

    /// Reads the record and takes over what changed. False if the session is gone.
    pub(super) async fn refresh(&self, session: &Session) -> Result<bool, StoreError> {
        let _writing = self.writing.lock().await;
        if self.known().found.is_none() {
            // It is being opened.
            return Ok(true);
        }
        let Some((record, version)) = self.read().await? else { return Ok(false) };
        self.apply_record(session, record, version);
        Ok(true)
    }

    fn apply_record(&self, session: &Session, record: SessionRecord, version: Version) {
        let (get_stream, state) = (record.get_stream.clone(), record.state.clone());
        let mut known = self.known();
        let before = known.found.replace((record, version)).and_then(|(before, _)| before.get_stream);
        known.checked = Some(Instant::now());
        // A change that is not stored yet is merged when it is.
        let is_stored = known.changes == session.conversation.changes();
        drop(known);
        if is_stored {
            session.conversation.restore(&state, None);
        }
        let is_mine = |holder: &Option<String>| holder.as_deref() == Some(&*self.prefix);
        if is_mine(&before) && get_stream.is_some() && !is_mine(&get_stream) {
            session.get_stream.end_reader();
        }
        if before.is_some() && !is_mine(&before) && get_stream.is_none() {
            // The client was notified of everything so far by another process.
            session.conversation.forget_changes();
        }
    }

    /// Records that the session is in use, now and then.
    pub(super) async fn touch(&self, session: &Session, idle: Duration) {
        let is_due = {
            let mut known = self.known();
            let is_due =
                known.touched.elapsed() >= (idle / 4).min(MAX_TOUCH) && session.conversation.is_ready();
            if is_due {
                known.touched = Instant::now();
            }
            is_due
        };
        if is_due && let Err(error) = self.node.records().touch(std::slice::from_ref(&self.key), idle).await {
            tracing::debug!(%error, "the use of a session is not recorded");
        }
    }

    /// Stores what a message changed, before it is answered.
    pub(in crate::server) async fn save(&self, shared: &Shared, session: &Session) -> Result<(), Refused> {
        let changes = session.conversation.changes();
        if self.known().changes == changes {
            return Ok(());
        }
        let _writing = self.writing.lock().await;
        let Some(after) = session.conversation.state() else { return Ok(()) };
        let before = self.known().found.as_ref().map(|(record, _)| record.state.clone());
        let principal = session.principal.as_deref();
        let saved = self
            .write(shared, principal, &after, |record| match &before {
                Some(before) => record.state.merge(before, &after),
                None => record
                    .state
                    .merge(&SessionState::new(after.revision, after.capabilities.clone(), None), &after),
            })
            .await;
        self.note_changes(changes);
        match saved {
            Ok(true) => Ok(()),
            Ok(false) => Err(Box::new(reply::no_session())),
            Err(error) => {
                self.mark_stale();
                Err(unavailable(&error))
            }
        }
    }

    /// Writes the record with a change. False if the session is gone. The caller holds `writing`.
    async fn write(
        &self,
        shared: &Shared,
        principal: Option<&str>,
        state: &SessionState,
        change: impl Fn(&mut SessionRecord),
    ) -> Result<bool, StoreError> {
        let options = &shared.options;
        let mut last = StoreError::unavailable("other processes write the same session");
        let mut found = self.known().found.clone();
        let is_new = found.is_none();
        for _ in 0..ATTEMPTS {
            let (mut record, version) = match &found {
                Some((record, version)) => (record.clone(), Some(*version)),
                None => (SessionRecord::new(principal, unix_time(), state.clone()), None),
            };
            change(&mut record);
            let ttl = if record.state.initialized { options.session_idle } else { options.session_opening };
            let put = if let Some(version) = version {
                Put::update(self.key.clone(), record.write(), version).ttl(ttl)
            } else {
                let group = owner_group(principal).map_err(|error| StoreError::invalid(error.to_string()))?;
                Put::create(self.key.clone(), record.write(), ttl).group(group)
            };
            match self.node.records().put(put).await {
                Ok(version) => {
                    let mut known = self.known();
                    known.found = Some((record, version));
                    (known.checked, known.touched) = (Some(Instant::now()), Instant::now());
                    drop(known);
                    if !is_new {
                        self.node.announce_session(&self.digest);
                    }
                    return Ok(true);
                }
                Err(PutError::Store(error)) if error.kind() == ErrorKind::Unknown => last = error,
                Err(PutError::Store(error)) => return Err(error),
                // Another process wrote it.
                Err(_) => {}
            }
            // What was written without an answer is found here, and written once more.
            found = self.read().await?;
            if found.is_none() && !is_new {
                return Ok(false);
            }
        }
        Err(last)
    }

    /// Ends the session for all processes.
    pub(in crate::server) async fn remove(&self) -> Result<(), Refused> {
        let removed = self.node.records().remove(std::slice::from_ref(&self.key)).await;
        removed.map_err(|error| unavailable(&error))?;
        self.node.announce_session(&self.digest);
        Ok(())
    }

    /// Passes on what a message means for calls that run in other processes: answers and cancellations.
    pub(in crate::server) async fn forward(&self, frame: &Frame) -> Result<(), Refused> {
        let messages = match frame {
            Frame::Single(message) => std::slice::from_ref(message),
            Frame::Batch(messages) => messages,
        };
        for message in messages {
            let (id, answer) = match message {
                Ok(Message::Response { id, result }) => (id, Ok(result.clone())),
                Ok(Message::Failure { id: Some(id), error }) => (id, Err(error.clone())),
                Ok(Message::Notification {
                    method: MethodName::Known(Method::Cancelled),
                    params: Some(params),
                }) => {
                    if let Ok(CancelledParams { request_id: Some(id), .. }) =
                        params.decode::<CancelledParams>()
                    {
                        self.node.announce_cancellation(&self.digest, id);
                    }
                    continue;
                }
                _ => continue,
            };
            let is_own = matches!(id, Id::String(id) if id.strip_prefix(&*self.prefix).is_some_and(|rest| rest.starts_with('-')));
            if !is_own {
                answers::store(&self.node, &self.digest, id, answer)
                    .await
                    .map_err(|error| unavailable(&error))?;
            }
        }
        Ok(())
    }

    /// Cancels a call of the session that runs here.
    pub(super) fn cancel(session: &Session, id: &Id) {
        let params = CancelledParams::new().request_id(id.clone());
        let frame = envelope::parse(&bowline_proto::encode::notify(Method::Cancelled, &params));
        session.conversation.accept(frame, &(Arc::new(DiscardSink) as Arc<dyn Sink>), &Extensions::new());
    }

    /// Stores the events of a stream before they are sent, from its beginning.
    pub(in crate::server) async fn log(&self, shared: &Shared, stream: &Arc<Stream>, requests: Vec<Id>) {
        if self.node.store.resume == Resume::Node || !stream.stage() {
            return;
        }
        let log = StreamLog::new(&self.node, &self.digest, &stream.name, shared.options.log_time);
        let Some(log) = log else {
            stream.go_live();
            return;
        };
        let is_open = log.open(&requests).await;
        if !is_open {
            stream.go_live();
        }
        self.node.spawn(stream_log::write(log, Arc::clone(stream), requests, is_open));
    }

    /// Reads the stream of another process after one of its events. `None` if nothing is known of it.
    pub(in crate::server) async fn follow(
        &self,
        shared: &Shared,
        session: &Arc<Session>,
        name: &str,
        after: u64,
    ) -> Result<Option<Reader>, Refused> {
        let log = StreamLog::new(&self.node, &self.digest, name, shared.options.log_time);
        let Some(log) = log.filter(|_| self.node.store.resume == Resume::Store) else { return Ok(None) };
        let Some(header) = log.header().await.map_err(|error| unavailable(&error))? else { return Ok(None) };
        let stream = session.copy_stream(name, after);
        let copy = tokio::spawn(stream_log::follow(log, Arc::downgrade(&stream), header, after));
        let reader = Reader::resumable(session, stream, after, shared.options.keep_alive);
        Ok(reader.map(|reader| reader.guarded(Aborting(copy))))
    }

    /// Makes this process serve the GET stream of the session.
    pub(in crate::server) async fn take_get_stream(
        &self,
        shared: &Arc<Shared>,
        session: &Arc<Session>,
        name: &str,
        after: Option<u64>,
    ) -> Result<GetStreamGuard, Refused> {
        let writing = self.writing.lock().await;
        let (Some(before), Some(state)) = (
            self.known().found.as_ref().map(|(record, _)| record.get_stream.clone()),
            session.conversation.state(),
        ) else {
            return Err(Box::new(reply::no_session()));
        };
        if before.as_deref() != Some(&*self.prefix) {
            let principal = session.principal.as_deref();
            let taken = self
                .write(shared, principal, &state, |record| record.get_stream = Some(self.prefix.to_string()))
                .await
                .map_err(|error| unavailable(&error))?;
            if !taken {
                shared.sessions.remove(session);
                return Err(Box::new(reply::no_session()));
            }
            let holder = before.as_deref().and_then(|holder| holder.split('.').next());
            if let Some(holder) = holder
                && self.node.is_alive(holder).await.unwrap_or(false)
            {
                // It notified the client so far.
                session.conversation.forget_changes();
            }
        }
        drop(writing);
        let stream = &session.get_stream;
        let mut missed = Vec::new();
        if self.node.store.resume == Resume::Store {
            let log = |name: &str| StreamLog::new(&self.node, &self.digest, name, shared.options.log_time);
            if let Some(after) = after
                && *name != *stream.name
                && let Some(log) = log(name)
            {
                let found = log.missed(name, after).await.map_err(|error| unavailable(&error))?;
                missed = found.ok_or_else(|| {
                    let reason = "the events after `Last-Event-ID` are no longer available";
                    Box::new(reply::refusal(http::StatusCode::NOT_FOUND, reason))
                })?;
            }
            if let Some(log) = log(&stream.name)
                && stream.stage()
            {
                self.node.spawn(stream_log::write(log, Arc::clone(stream), Vec::new(), true));
            }
        }
        let (session, shared) = (Arc::downgrade(session), Arc::downgrade(shared));
        Ok(GetStreamGuard { starts_after: stream.last(), missed, session, shared })
    }

    /// Records that no process serves the GET stream, if this one did.
    async fn release_get_stream(&self, shared: &Shared, session: &Session) {
        let _writing = self.writing.lock().await;
        let is_mine = self
            .known()
            .found
            .as_ref()
            .is_some_and(|(record, _)| record.get_stream.as_deref() == Some(&*self.prefix));
        if let Some(state) = session.conversation.state().filter(|_| is_mine && !session.get_stream.is_read())
        {
            let release = |record: &mut SessionRecord| {
                if record.get_stream.as_deref() == Some(&*self.prefix) {
                    record.get_stream = None;
                }
            };
            let released = self.write(shared, session.principal.as_deref(), &state, release).await;
            if let Err(error) = released {
                tracing::debug!(%error, "a GET stream is not released");
            }
        }
    }
}

/// The GET stream of a session, served by this process.
pub(in crate::server) struct GetStreamGuard {
    /// Earlier events were served by another process.
    pub(in crate::server) starts_after: u64,
    /// What the client has not seen of the stream of another process.
    pub(in crate::server) missed: Vec<u8>,
    session: Weak<Session>,
    shared: Weak<Shared>,
}

impl Drop for GetStreamGuard {
    fn drop(&mut self) {
        let (Some(session), Some(shared)) = (self.session.upgrade(), self.shared.upgrade()) else { return };
        let Some(stored) = session.as_stored() else { return };
        let node = Arc::clone(&stored.node);
        if tokio::runtime::Handle::try_current().is_err() || session.is_over() {
            return;
        }
        node.spawn(async move {
            if let Some(stored) = session.as_stored() {
                stored.release_get_stream(&shared, &session).await;
            }
        });
    }
}

/// A task that ends with the reader it serves.
struct Aborting(tokio::task::JoinHandle<()>);

impl Drop for Aborting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Takes nothing: a cancellation is not answered.
struct DiscardSink;

impl Sink for DiscardSink {
    fn write(&self, write: &mut dyn FnMut(&mut Vec<u8>) -> bool) {
        write(&mut Vec::new());
    }

    fn offer(&self, _: &[u8]) {}
}

/// Bytes of a JSON-RPC error.
pub(super) fn failure(id: &Id, reason: &'static str) -> Bytes {
    bowline_proto::encode::failure(Some(id), &bowline_types::RpcError::internal(reason))
}
