//! Sessions: found by an id nobody can guess, ended when nobody uses them.

use super::stream::{Bounds, Source, Stream};
#[cfg(feature = "store")]
use crate::server::shared_sessions::Stored;
use crate::server::{options::HttpOptions, service::Shared};
use bowline_proto::{
    caller::user_of,
    server::{Ids, SessionState},
};
use bowline_server::{
    BoxFuture,
    transport::{Conversation, Setup, poll_once, random_id},
};
use bowline_types::Revision;
use http::HeaderName;
use std::{
    collections::HashMap,
    fmt,
    future::{Future, poll_fn},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Poll, ready},
    time::Duration,
};
use tokio::{sync::OwnedSemaphorePermit, task::JoinSet, time::Instant};

/// The header that names a session.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// One session.
pub(in crate::server) struct Session {
    pub(in crate::server) id: Arc<str>,
    pub(in crate::server) principal: Option<Arc<str>>,
    /// Whose limit the session counts for.
    user: Option<Arc<str>>,
    pub(in crate::server) conversation: Arc<Conversation>,
    /// The stream for messages that belong to no request.
    pub(in crate::server) get_stream: Arc<Stream>,
    /// The streams of requests, while they can be read again.
    streams: Mutex<HashMap<u64, Arc<Stream>>>,
    next_stream: AtomicU64,
    source: Source,
    /// The calls that did not answer at once. Many sessions never have one.
    calls: Mutex<Option<JoinSet<()>>>,
    /// The number of running responses and calls; a session in use does not expire.
    busy: AtomicUsize,
    idle_since: Mutex<Instant>,
    since: Instant,
    pub(in crate::server) kind: Kind,
}

/// Where a session is remembered.
#[derive(Debug)]
pub(in crate::server) enum Kind {
    /// In this process.
    Process,
    /// In its id. This value serves one request; the permit limits how many of them run.
    Sealed(#[expect(dead_code, reason = "held until the session is dropped")] Option<OwnedSemaphorePermit>),
    /// In a store. This value is a copy.
    #[cfg(feature = "store")]
    Stored(Box<Stored>),
}

/// Why a call cannot ask in a sealed session.
const CANNOT_ASK: &str = "the client cannot be asked: sessions of this server are set to `sealed`, which keeps nothing \
                          between requests; set them to `store`, or connect with 2026-07-28";

impl Session {
    fn new(shared: &Shared, principal: Option<Arc<str>>, ids: Ids) -> Arc<Self> {
        let setup = Setup::default().ids(ids);
        Self::build(shared, random_id().into(), principal, setup, None, Kind::Process)
    }

    /// Creates the session of one request whose id has the state of the session.
    pub(super) fn sealed(
        shared: &Shared,
        id: Arc<str>,
        principal: Option<Arc<str>>,
        state: Option<&SessionState>,
        permit: OwnedSemaphorePermit,
    ) -> Arc<Self> {
        let setup = Setup::default().ids(Ids::PerExchange).without_memory(CANNOT_ASK);
        let session = Self::build(shared, id, principal, setup, None, Kind::Sealed(Some(permit)));
        if let Some(state) = state {
            session.conversation.restore(state, None);
        }
        session
    }

    /// Creates a copy of a stored session.
    #[cfg(feature = "store")]
    pub(in crate::server) fn stored(
        shared: &Shared,
        id: Arc<str>,
        principal: Option<Arc<str>>,
        setup: Setup,
        prefix: Arc<str>,
        stored: Stored,
    ) -> Arc<Self> {
        let kind = Kind::Stored(Box::new(stored));
        Self::build(shared, id, principal, setup.ids(Ids::PerExchange), Some(prefix), kind)
    }

    /// Returns what is known of the stored session, if it is one.
    #[cfg(feature = "store")]
    pub(in crate::server) fn as_stored(&self) -> Option<&Stored> {
        match &self.kind {
            Kind::Stored(stored) => Some(stored),
            Kind::Process | Kind::Sealed(_) => None,
        }
    }

    /// Returns whether the session is remembered elsewhere, so that this value can be dropped.
    fn is_copy(&self) -> bool {
        !matches!(self.kind, Kind::Process)
    }

    pub(in crate::server) fn is_sealed(&self) -> bool {
        matches!(self.kind, Kind::Sealed(_))
    }

    /// Returns whether a call or a response is running.
    #[cfg(feature = "store")]
    pub(in crate::server) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire) > 0
    }

    fn build(
        shared: &Shared,
        id: Arc<str>,
        principal: Option<Arc<str>>,
        setup: Setup,
        prefix: Option<Arc<str>>,
        kind: Kind,
    ) -> Arc<Self> {
        let (server, options) = (&shared.server, &shared.options);
        let bounds = Bounds { events: options.max_log_events, bytes: options.max_log_bytes };
        let retention = Arc::clone(&shared.retention);
        let source = Source {
            store: Arc::clone(&options.events),
            session: Arc::clone(&id),
            bounds,
            retention,
            prefix,
        };
        let get_stream = Arc::new(Stream::new(0, source.clone(), false));
        get_stream.retain();
        let news = {
            let get_stream = Arc::clone(&get_stream);
            move || get_stream.wake()
        };
        Arc::new(Self {
            id,
            conversation: Conversation::with(server, principal.clone(), setup, news),
            user: principal.as_ref().map(user_of),
            principal,
            get_stream,
            streams: Mutex::default(),
            next_stream: AtomicU64::new(1),
            source,
            calls: Mutex::default(),
            busy: AtomicUsize::new(0),
            idle_since: Mutex::new(Instant::now()),
            since: Instant::now(),
            kind,
        })
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<u64, Arc<Stream>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> MutexGuard<'_, Option<JoinSet<()>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a stream for the response to a POST.
    pub(super) fn new_stream(&self) -> Arc<Stream> {
        let returning = self.conversation.revision() >= Some(Revision::V2025_11_25) && !self.is_sealed();
        Arc::new(Stream::new(
            self.next_stream.fetch_add(1, Ordering::Relaxed),
            self.source.clone(),
            returning,
        ))
    }

    /// Keeps a stream so that it can be read again.
    pub(super) fn keep(&self, stream: &Arc<Stream>) {
        let mut streams = self.streams();
        // The newest few are sufficient: a client resumes what it was just reading.
        let kept =
            |streams: &HashMap<u64, Arc<Stream>>| streams.values().map(|known| known.bytes()).sum::<usize>();
        while streams.len() >= 64 || (!streams.is_empty() && kept(&streams) > self.source.bounds.bytes) {
            let finished =
                streams.iter().filter(|(_, known)| known.is_finished()).map(|(number, _)| *number).min();
            let Some(oldest) = finished.or_else(|| streams.keys().copied().min()) else { break };
            streams.remove(&oldest);
        }
        streams.insert(stream.number, Arc::clone(stream));
        drop(streams);
        stream.retain();
    }

    /// Drops streams that ended long ago, because no client resumes them.
    fn forget_old(&self, options: &HttpOptions, now: Instant) {
        let is_old = |since: Instant| now.saturating_duration_since(since) >= options.log_time;
        self.streams().retain(|_, stream| !stream.finished_since().is_some_and(is_old));
    }

    /// Returns the stream with this name, if it is in this process.
    pub(super) fn stream(&self, name: &str) -> Option<Arc<Stream>> {
        if *self.get_stream.name == *name {
            return Some(Arc::clone(&self.get_stream));
        }
        self.streams().values().find(|stream| *stream.name == *name).cloned()
    }

    /// Returns a copy of a stream of another process, behind the event `after`.
    #[cfg(feature = "store")]
    pub(in crate::server) fn copy_stream(&self, name: &str, after: u64) -> Arc<Stream> {
        let stream = Arc::new(Stream::copy(name.into(), self.source.clone(), after));
        stream.retain();
        stream
    }

    /// Runs a call to completion, even if nobody is listening, and holds `meanwhile` until then.
    ///
    /// In these revisions a closed connection is not a cancellation, so a call that does not answer at once gets a task.
    pub(super) async fn run(
        self: &Arc<Self>,
        mut call: BoxFuture<'static, ()>,
        meanwhile: impl Send + 'static,
    ) {
        if poll_once(&mut call).await.is_ready() {
            return;
        }
        let in_use = self.mark_in_use();
        let mut calls = self.calls();
        // Nobody would end it any more: see `end`.
        if self.is_over() {
            return;
        }
        let calls = calls.get_or_insert_default();
        while calls.try_join_next().is_some() {}
        calls.spawn(async move {
            call.await;
            drop((meanwhile, in_use));
        });
    }

    /// Completes when no call is running.
    pub(super) fn wait_until_idle(self: &Arc<Self>) -> impl Future<Output = ()> + Send + use<> {
        let session = Arc::clone(self);
        poll_fn(move |context| {
            if let Some(calls) = &mut *session.calls() {
                while ready!(calls.poll_join_next(context)).is_some() {}
            }
            Poll::Ready(())
        })
    }

    /// Marks the session as in use until the guard is dropped.
    pub(super) fn mark_in_use(self: &Arc<Self>) -> InUse {
        self.busy.fetch_add(1, Ordering::AcqRel);
        InUse(Arc::clone(self))
    }

    /// Returns whether the session has ended.
    pub(in crate::server) fn is_over(&self) -> bool {
        self.get_stream.is_finished()
    }

    /// Returns whether the session should end: it has ended already, is too old, or was idle for too long.
    fn is_expired(&self, options: &HttpOptions, now: Instant) -> bool {
        let age = now.saturating_duration_since(self.since);
        // An open stream alone does not keep a session whose client has not completed the handshake.
        let unopened = self.conversation.revision().is_none() && age >= options.session_opening;
        let limit = if self.is_copy() {
            COPY_IDLE.min(options.session_idle)
        } else if self.conversation.is_ready() {
            options.session_idle
        } else {
            options.session_opening
        };
        self.is_over()
            || unopened
            || age >= options.session_lifetime && !self.is_copy()
            || self.idle(now).is_some_and(|idle| idle >= limit)
    }

    fn idle(&self, now: Instant) -> Option<Duration> {
        if self.busy.load(Ordering::Acquire) > 0 {
            return None;
        }
        let since = *self.idle_since.lock().unwrap_or_else(PoisonError::into_inner);
        Some(now.saturating_duration_since(since))
    }

    /// Ends the session and everything that it runs.
    pub(super) fn end(&self) {
        // Before the calls are ended, so that none is added afterwards.
        self.get_stream.finish();
        if let Some(calls) = &mut *self.calls() {
            calls.abort_all();
        }
        for stream in self.streams().values() {
            stream.finish();
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The id opens the session, so it is not printed.
        f.debug_struct("Session").field("conversation", &self.conversation).finish_non_exhaustive()
    }
}

/// A session in use.
#[derive(Debug)]
pub(super) struct InUse(Arc<Session>);

impl Drop for InUse {
    fn drop(&mut self) {
        *self.0.idle_since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The sessions of one endpoint.
#[derive(Debug, Default)]
pub(in crate::server) struct Sessions {
    known: Mutex<Known>,
}

/// How long a copy of a session is kept after its last use.
const COPY_IDLE: Duration = Duration::from_secs(60);

/// How long a session has to be idle before it is ended to make room for a new one. One that is used now and then is not
/// lost to a flood of new ones.
const EVICTABLE_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
struct Known {
    by_id: HashMap<Arc<str>, Arc<Session>>,
    /// How many sessions each user has, and requests without one.
    counts: HashMap<Option<Arc<str>>, usize>,
    sweeping: bool,
}

/// A limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Full {
    /// That of all sessions.
    All,
    /// That of one user, or of requests without one.
    User,
}

impl Known {
    /// Returns which limit one more session would exceed.
    fn full(&self, options: &HttpOptions, user: Option<&Arc<str>>) -> Option<Full> {
        let limit = match user {
            Some(_) => options.max_sessions_per_principal,
            None => options.max_anonymous_sessions,
        };
        let count = self.counts.get(&user.cloned()).copied().unwrap_or(0);
        if count >= limit {
            Some(Full::User)
        } else {
            (self.by_id.len() >= options.max_sessions).then_some(Full::All)
        }
    }

    /// Returns the session that has been idle longest among those that count for a limit, if it may be ended.
    fn evictable(&self, options: &HttpOptions, full: Full, user: Option<&Arc<str>>) -> Option<Arc<str>> {
        let now = Instant::now();
        let enough = EVICTABLE_AFTER.min(options.session_idle);
        let counted = |session: &&Arc<Session>| full == Full::All || session.user.as_ref() == user;
        let idle =
            self.by_id.values().filter(counted).filter_map(|session| Some((session.idle(now)?, session)));
        let idle = idle.filter(|(idle, session)| *idle >= enough || session.is_copy());
        let (_, oldest) = idle.max_by_key(|(idle, _)| *idle)?;
        Some(Arc::clone(&oldest.id))
    }

    fn has_space(&self, options: &HttpOptions, user: Option<&Arc<str>>) -> bool {
        let full = self.full(options, user);
        full.is_none_or(|full| self.evictable(options, full, user).is_some())
    }

    fn insert(&mut self, session: &Arc<Session>) {
        // Two requests may have loaded the same session; the calls of the first copy continue.
        if let Some(earlier) = self.by_id.remove(&session.id) {
            self.uncount(&earlier);
        }
        *self.counts.entry(session.user.clone()).or_insert(0) += 1;
        self.by_id.insert(Arc::clone(&session.id), Arc::clone(session));
    }

    fn remove(&mut self, id: &str) -> Option<Arc<Session>> {
        let removed = self.by_id.remove(id)?;
        self.uncount(&removed);
        self.shrink();
        Some(removed)
    }

    fn uncount(&mut self, session: &Session) {
        if let Some(count) = self.counts.get_mut(&session.user) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&session.user);
            }
        }
    }

    /// Returns memory after many sessions have ended.
    fn shrink(&mut self) {
        let needed = self.by_id.len().max(32);
        if self.by_id.capacity() > needed * 4 {
            self.by_id.shrink_to(needed * 2);
        }
    }
}

impl Sessions {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of sessions.
    pub(in crate::server) fn len(&self) -> usize {
        self.known().by_id.len()
    }

    /// Creates a session that cannot be found yet.
    pub(super) fn create(shared: &Arc<Shared>, principal: Option<Arc<str>>, ids: Ids) -> Arc<Session> {
        Session::new(shared, principal, ids)
    }

    /// Returns whether the limits allow one more session, in total and for the user of this principal.
    pub(super) fn has_space(shared: &Shared, principal: Option<&Arc<str>>) -> bool {
        let user = principal.map(user_of);
        shared.sessions.known().has_space(&shared.options, user.as_ref())
    }

    /// Registers a session. If there are too many, in total or of its user, ends the one that has been idle longest.
    /// Returns false if none has been idle long enough.
    pub(in crate::server) fn add(shared: &Arc<Shared>, session: &Arc<Session>) -> bool {
        let (options, user) = (&shared.options, session.user.as_ref());
        let mut known = shared.sessions.known();
        let mut evicted = Vec::new();
        // Both limits can be reached, and a session that counts for one may not count for the other.
        while let Some(full) = known.full(options, user) {
            let oldest = known.evictable(options, full, user).and_then(|id| known.remove(&id));
            let Some(oldest) = oldest else { break };
            evicted.push(oldest);
        }
        let has_space = known.full(options, user).is_none();
        if has_space {
            known.insert(session);
            if !std::mem::replace(&mut known.sweeping, true) {
                tokio::spawn(sweep(Arc::downgrade(shared)));
            }
        }
        drop(known);
        for session in evicted {
            session.end();
        }
        has_space
    }

    /// Makes a copy of a stored session known. If another request was faster, returns its copy. `None` if there are too many.
    #[cfg(feature = "store")]
    pub(in crate::server) fn add_copy(shared: &Arc<Shared>, session: &Arc<Session>) -> Option<Arc<Session>> {
        if let Some(known) = shared.sessions.known_as(&session.id) {
            return Some(known);
        }
        Self::add(shared, session).then(|| Arc::clone(session))
    }

    /// Returns the session with this id, if it belongs to this principal.
    pub(in crate::server) fn find(&self, id: &str, principal: Option<&Arc<str>>) -> Option<Arc<Session>> {
        let session = self.known().by_id.get(id).filter(|session| !session.is_over()).cloned()?;
        if session.principal.as_ref() != principal {
            // Only logged: the caller must not learn that the session exists.
            let (owner, caller) = (session.principal.as_deref(), principal.map(AsRef::as_ref));
            tracing::warn!(owner, caller, "rejected a session id of another principal");
            return None;
        }
        Some(session)
    }

    /// Returns the session with this id, whoever it belongs to.
    #[cfg(feature = "store")]
    pub(in crate::server) fn known_as(&self, id: &str) -> Option<Arc<Session>> {
        self.known().by_id.get(id).filter(|session| !session.is_over()).cloned()
    }

    /// Returns the sessions that are stored elsewhere and for which `wanted` is true.
    #[cfg(feature = "store")]
    pub(in crate::server) fn copies(&self, wanted: impl Fn(&Session, &Stored) -> bool) -> Vec<Arc<Session>> {
        let known = self.known();
        let is_wanted =
            |session: &&Arc<Session>| session.as_stored().is_some_and(|stored| wanted(session, stored));
        known.by_id.values().filter(is_wanted).cloned().collect()
    }

    /// Ends a session.
    pub(in crate::server) fn remove(&self, session: &Session) {
        let removed = self.known().remove(&session.id);
        if let Some(session) = removed {
            session.end();
        }
    }

    /// Ends all sessions.
    pub(in crate::server) fn clear(&self) {
        let mut known = self.known();
        known.counts.clear();
        let all: Vec<_> = known.by_id.drain().map(|(_, session)| session).collect();
        drop(known);
        for session in all {
            session.end();
        }
    }
}

/// Ends unused sessions, as long as there are any. One task for all of them.
async fn sweep(shared: Weak<Shared>) {
    loop {
        let Some(pause) = shared.upgrade().map(|shared| shared.options.session_idle / 4) else { return };
        tokio::time::sleep(pause.clamp(Duration::from_millis(10), Duration::from_secs(15))).await;
        let Some(shared) = shared.upgrade() else { return };
        let now = Instant::now();
        let (expired, more): (Vec<_>, _) = {
            let mut known = shared.sessions.known();
            let expired: Vec<_> = known
                .by_id
                .extract_if(|_, session| session.is_expired(&shared.options, now))
                .map(|(_, session)| session)
                .collect();
            for session in &expired {
                known.uncount(session);
            }
            known.shrink();
            for session in known.by_id.values() {
                session.forget_old(&shared.options, now);
            }
            // From here on a new session starts its own sweep.
            known.sweeping = !known.by_id.is_empty();
            (expired, known.sweeping)
        };
        for session in &expired {
            session.end();
        }
        if !more {
            return;
        }
    }
}
