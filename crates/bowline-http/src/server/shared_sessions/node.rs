//! This process among those that share a store.

use super::{
    SessionStore,
    answers::Answers,
    hints::Hint,
    record::{SessionRecord, node_key, owner, owner_group, session_digest, session_key},
    stored::Stored,
};
use crate::server::{
    Body,
    legacy::{Session, Sessions},
    options::HttpOptions,
    reply,
    service::Shared,
};
use bowline_proto::subscribe::Change;
use bowline_server::{
    ServerHandle,
    transport::{Listener, Setup, random_id, unix_time},
};
use bowline_store::{
    BusEvent, Group, Key, Message, NodeId, Put, PutError, Records, StoreError, Topic, Version,
};
use http::Response;
use std::{
    cell::Cell,
    collections::{BTreeSet, HashMap},
    fmt,
    future::{Future, poll_fn},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

/// How long changes are collected before others are notified of them.
const COALESCE: Duration = Duration::from_millis(50);

/// How many changed resources are collected; beyond it, only that resources changed.
const MAX_CHANGES: usize = 1000;

/// How long the number of a principal's sessions counts as known.
const COUNT_TIME: Duration = Duration::from_secs(5);

/// How long a session must not have been used before it is removed to make room for a new one. Uses are recorded now and then.
const EVICTABLE_AFTER: Duration = Duration::from_secs(600);

/// The longest id of a session.
const MAX_ID: usize = 64;

thread_local! {
    /// Whether a change is being published that came from another process.
    static FROM_OTHERS: Cell<bool> = const { Cell::new(false) };
}

/// This process among those that share a store.
pub(in crate::server) struct Node {
    pub(super) store: SessionStore,
    id: NodeId,
    pub(super) name: String,
    topic: Topic,
    limit: Duration,
    is_started: AtomicBool,
    is_leaving: AtomicBool,
    /// Whether the store answered the last time.
    is_up: AtomicBool,
    /// Counts copies of sessions.
    copies: AtomicU64,
    waiting: Mutex<HashMap<String, Vec<Arc<Notify>>>>,
    tasks: Mutex<JoinSet<()>>,
    counts: Mutex<HashMap<Group, (Instant, u64)>>,
    changes: Arc<Changes>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Changes of this server that others are not notified of yet.
#[derive(Default)]
struct Changes {
    lists: Mutex<(Vec<Change>, BTreeSet<String>)>,
    changed: Notify,
}

impl Listener for Changes {
    fn on_change(&self, change: &Change) {
        if FROM_OTHERS.get() {
            return;
        }
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        match change {
            Change::Resource(uri) if lists.1.len() < MAX_CHANGES => drop(lists.1.insert(uri.clone())),
            Change::Resource(_) if !lists.0.contains(&Change::Resources) => lists.0.push(Change::Resources),
            Change::Resource(_) => {}
            list if !lists.0.contains(list) => lists.0.push(list.clone()),
            _ => {}
        }
        drop(lists);
        self.changed.notify_one();
    }
}

impl Node {
    pub(in crate::server) fn new(server: &ServerHandle, store: &SessionStore) -> Arc<Self> {
        let id = NodeId::random();
        let changes = Arc::new(Changes::default());
        let listener: Arc<dyn Listener> = Arc::clone(&changes) as _;
        server.join(&listener);
        Arc::new(Self {
            store: store.clone(),
            id,
            name: id.to_string(),
            topic: Topic::new("bowline-sessions").expect("the topic is a valid name"),
            limit: server.limits().question,
            is_started: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            is_up: AtomicBool::new(true),
            copies: AtomicU64::new(0),
            waiting: Mutex::default(),
            tasks: Mutex::default(),
            counts: Mutex::default(),
            changes,
        })
    }

    pub(super) fn records(&self) -> &dyn Records {
        &*self.store.records
    }

    /// Returns whether the store answered when this process last renewed its record.
    pub(in crate::server) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Acquire)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs something until it completes or this process leaves.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Starts to listen to other processes, once.
    pub(in crate::server) fn start(self: &Arc<Self>, shared: &Arc<Shared>) {
        if self.is_started.swap(true, Ordering::AcqRel) {
            return;
        }
        self.spawn(listen(Arc::downgrade(self), Arc::downgrade(shared), self.store.bus.subscribe()));
        self.spawn(publish_changes(Arc::downgrade(self), Arc::clone(&self.changes)));
        self.spawn(tick(Arc::downgrade(self), Arc::downgrade(shared)));
    }

    /// Ends streams with an error from now on, instead of leaving them to others.
    pub(in crate::server) fn start_leaving(&self) {
        self.is_leaving.store(true, Ordering::Release);
    }

    /// Removes the record of this process, after its streams are stored.
    pub(in crate::server) async fn leave(&self) {
        self.start_leaving();
        let mut tasks = std::mem::take(&mut *self.tasks());
        // The three tasks of `start` do not end by themselves.
        let rest = 3 * usize::from(self.is_started.load(Ordering::Acquire));
        let stored = async { while tasks.len() > rest && tasks.join_next().await.is_some() {} };
        let _ = timeout(Duration::from_secs(3), stored).await;
        tasks.shutdown().await;
        if let Ok(key) = node_key(self.id)
            && self.is_started.load(Ordering::Acquire)
        {
            drop(self.records().remove(&[key]).await);
        }
    }

    fn publish(&self, hint: &Hint) {
        // What is too long is not announced; whoever waits for it reads it on a timer.
        if let Ok(message) = Message::new(self.topic.clone(), hint.write(&self.name)) {
            self.store.bus.publish(message);
        }
    }

    pub(super) fn announce_session(&self, digest: &str) {
        self.publish(&Hint::Session(digest.to_owned()));
    }

    pub(super) fn announce_key(&self, key: &str) {
        self.publish(&Hint::Key(key.to_owned()));
        self.wake(key);
    }

    pub(super) fn announce_cancellation(&self, digest: &str, id: bowline_types::Id) {
        self.publish(&Hint::Cancel(digest.to_owned(), id));
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, Vec<Arc<Notify>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, key: &str) {
        for waiter in self.waiting().get(key).into_iter().flatten() {
            waiter.notify_one();
        }
    }

    fn wake_all(&self) {
        for waiter in self.waiting().values().flatten() {
            waiter.notify_one();
        }
    }

    /// Waits for hints about a key.
    pub(super) fn waiter(self: &Arc<Self>, key: &str) -> Waiter {
        let changed = Arc::new(Notify::new());
        self.waiting().entry(key.to_owned()).or_default().push(Arc::clone(&changed));
        Waiter { node: Arc::clone(self), key: key.to_owned(), changed }
    }

    /// Returns whether a process is alive.
    pub(super) async fn is_alive(&self, node: &str) -> Result<bool, StoreError> {
        if node == self.name {
            return Ok(true);
        }
        let Ok(key) = Key::new(format!("node/{node}")) else { return Ok(false) };
        Ok(self.records().get(&[key]).await?.iter().any(Option::is_some))
    }

    /// Creates a session that is stored when its client is known.
    pub(in crate::server) async fn prepare(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        principal: Option<&Arc<str>>,
    ) -> Result<Arc<Session>, Box<Response<Body>>> {
        self.start(shared);
        match self.has_space(&shared.options, principal.map(AsRef::as_ref)).await {
            Ok(true) => {}
            Ok(false) => return Err(Box::new(reply::later("too many sessions are open"))),
            Err(error) => return Err(unavailable(&error)),
        }
        self.copy(shared, &random_id(), principal, None)
    }

    fn copy(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        id: &str,
        principal: Option<&Arc<str>>,
        found: Option<(SessionRecord, Version)>,
    ) -> Result<Arc<Session>, Box<Response<Body>>> {
        let digest: Arc<str> = session_digest(id).into();
        let key = session_key(&digest).map_err(|_| Box::new(reply::no_session()))?;
        let number = self.copies.fetch_add(1, Ordering::Relaxed);
        let prefix: Arc<str> = format!("{}.{number:x}", self.name).into();
        let answers = Answers { node: Arc::clone(self), session: Arc::clone(&digest), limit: self.limit };
        let setup = Setup::default().answers(&*prefix, Arc::new(answers));
        let state = found.as_ref().map(|(record, _)| record.state.clone());
        let stored = Stored::new(Arc::clone(self), key, digest, Arc::clone(&prefix), found);
        let session = Session::stored(shared, id.into(), principal.cloned(), setup, prefix, stored);
        if let Some(state) = state {
            session.conversation.restore(&state, None);
        }
        if let Some(stored) = session.as_stored() {
            stored.note_changes(session.conversation.changes());
        }
        Ok(session)
    }

    /// Returns the session with this id, if it belongs to this principal.
    pub(in crate::server) async fn find(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        id: &str,
        principal: Option<&Arc<str>>,
    ) -> Result<Arc<Session>, Box<Response<Body>>> {
        self.start(shared);
        let no_session = || Box::new(reply::no_session());
        if id.len() > MAX_ID {
            return Err(no_session());
        }
        let session = match shared.sessions.known_as(id) {
            Some(session) => session,
            None => self.load(shared, id, principal).await?.ok_or_else(no_session)?,
        };
        if session.principal.as_ref() != principal {
            // Only logged: the caller must not learn that the session exists.
            let (owner, caller) = (session.principal.as_deref(), principal.map(AsRef::as_ref));
            tracing::warn!(owner, caller, "rejected a session id of another principal");
            return Err(no_session());
        }
        if let Some(stored) = session.as_stored() {
            if !stored.is_fresh(&session)
                && !stored.refresh(&session).await.map_err(|error| unavailable(&error))?
            {
                shared.sessions.remove(&session);
                return Err(no_session());
            }
            stored.touch(&session, shared.options.session_idle).await;
        }
        Ok(session)
    }

    async fn load(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        id: &str,
        principal: Option<&Arc<str>>,
    ) -> Result<Option<Arc<Session>>, Box<Response<Body>>> {
        let Ok(key) = session_key(&session_digest(id)) else { return Ok(None) };
        let found =
            self.records().get(std::slice::from_ref(&key)).await.map_err(|error| unavailable(&error))?;
        let Some(found) = found.into_iter().next().flatten() else { return Ok(None) };
        let record = SessionRecord::read(&found.value).map_err(|error| {
            tracing::error!(%error, "a session cannot be used");
            Box::new(reply::later("the session cannot be read by this release"))
        })?;
        if record.owner != owner(principal.map(AsRef::as_ref)) {
            tracing::warn!("rejected a session id of another principal");
            return Ok(None);
        }
        let age = Duration::from_secs(unix_time().saturating_sub(record.created));
        if age >= shared.options.session_lifetime {
            drop(self.records().remove(&[key]).await);
            return Ok(None);
        }
        let session = self.copy(shared, id, principal, Some((record, found.version)))?;
        match Sessions::add_copy(shared, &session) {
            Some(session) => Ok(Some(session)),
            None => Err(Box::new(reply::later("too many sessions are in use"))),
        }
    }

    /// Returns whether a principal may have one more session. If not, the one that was not used for longest is ended, if it
    /// was not used for a while.
    async fn has_space(&self, options: &HttpOptions, principal: Option<&str>) -> Result<bool, StoreError> {
        let limit = match principal {
            Some(_) => options.max_sessions_per_principal,
            None => options.max_anonymous_sessions.min(options.max_sessions),
        };
        let Ok(group) = owner_group(principal) else { return Ok(false) };
        let known = {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            if counts.len() >= MAX_CHANGES {
                counts.clear();
            }
            let known = counts.get_mut(&group).filter(|(since, _)| since.elapsed() < COUNT_TIME);
            known.map(|(_, count)| {
                *count += 1;
                *count
            })
        };
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        if known.is_some_and(|count| count <= limit) {
            return Ok(true);
        }
        let count = self.records().count(&group).await?;
        let has_space = count < limit || self.evict(&group, options.session_idle).await?;
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.insert(group, (Instant::now(), count.saturating_add(1)));
        Ok(has_space)
    }

    async fn evict(&self, group: &Group, idle: Duration) -> Result<bool, StoreError> {
        let sessions = self.records().list(group, None, MAX_CHANGES).await?;
        let Some(oldest) = sessions.iter().min_by_key(|record| record.expires) else { return Ok(true) };
        let unused = idle.saturating_sub(oldest.expires.since(oldest.read_at));
        if unused < EVICTABLE_AFTER.min(idle) {
            return Ok(false);
        }
        self.records().remove(std::slice::from_ref(&oldest.key)).await?;
        if let Some(digest) = oldest.key.as_str().strip_prefix("session/") {
            self.announce_session(digest);
        }
        Ok(true)
    }
}

/// The response when the store does not answer. Only the store can say that a session does not exist.
pub(super) fn unavailable(error: &dyn fmt::Display) -> Box<Response<Body>> {
    tracing::warn!(%error, "a request of a session is refused");
    Box::new(reply::later("the session store is not available"))
}

/// Waits for hints about a key.
pub(super) struct Waiter {
    node: Arc<Node>,
    key: String,
    changed: Arc<Notify>,
}

impl Waiter {
    /// Completes at the next hint, or when it is time to look without one.
    pub(super) async fn wait(&self) {
        // Many that wait read less often, so that the store has at most 200 reads per second from them.
        let crowd = u32::try_from(self.node.waiting().len() / 200).unwrap_or(u32::MAX);
        let _ =
            timeout(self.node.store.poll.saturating_mul(crowd.saturating_add(1)), self.changed.notified())
                .await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiting = self.node.waiting();
        if let Some(waiters) = waiting.get_mut(&self.key) {
            waiters.retain(|waiter| !Arc::ptr_eq(waiter, &self.changed));
            if waiters.is_empty() {
                waiting.remove(&self.key);
            }
        }
    }
}

/// Takes the hints of other processes.
async fn listen(
    node: Weak<Node>,
    shared: Weak<Shared>,
    mut hints: std::pin::Pin<Box<dyn futures_core::Stream<Item = BusEvent> + Send>>,
) {
    while let Some(hint) = poll_fn(|context| hints.as_mut().poll_next(context)).await {
        let (Some(node), Some(shared)) = (node.upgrade(), shared.upgrade()) else { return };
        let BusEvent::Message(message) = hint else {
            // Hints were lost: nothing that is known is certain any more.
            node.wake_all();
            for session in shared.sessions.copies(|_, _| true) {
                if let Some(stored) = session.as_stored() {
                    stored.mark_stale();
                }
            }
            continue;
        };
        if *message.topic() != node.topic {
            continue;
        }
        match Hint::read(message.hint(), &node.name) {
            Some(Hint::Session(digest)) => {
                for session in shared.sessions.copies(|_, stored| *stored.digest == *digest) {
                    let Some(stored) = session.as_stored() else { continue };
                    stored.mark_stale();
                    // One that runs something is not looked at by the next request only.
                    if session.is_busy() {
                        let (session, shared) = (Arc::clone(&session), Arc::clone(&shared));
                        node.spawn(async move { refresh(&shared, &session).await });
                    }
                }
            }
            Some(Hint::Key(key)) => node.wake(&key),
            Some(Hint::Cancel(digest, id)) => {
                for session in shared.sessions.copies(|_, stored| *stored.digest == *digest) {
                    Stored::cancel(&session, &id);
                }
            }
            Some(Hint::Change(change)) => {
                FROM_OTHERS.set(true);
                shared.server.announcer().publish(&change);
                FROM_OTHERS.set(false);
            }
            None => {}
        }
    }
}

async fn refresh(shared: &Arc<Shared>, session: &Arc<Session>) {
    let Some(stored) = session.as_stored() else { return };
    if let Ok(false) = stored.refresh(session).await {
        shared.sessions.remove(session);
    }
}

async fn publish_changes(node: Weak<Node>, changes: Arc<Changes>) {
    loop {
        changes.changed.notified().await;
        sleep(COALESCE).await;
        let Some(node) = node.upgrade() else { return };
        let (lists, uris) =
            std::mem::take(&mut *changes.lists.lock().unwrap_or_else(PoisonError::into_inner));
        for change in lists.into_iter().chain(uris.into_iter().map(Change::Resource)) {
            node.publish(&Hint::Change(change));
        }
    }
}

/// Renews the record of this process, keeps busy sessions alive and deletes expired records.
async fn tick(node: Weak<Node>, shared: Weak<Shared>) {
    let (mut version, mut renewed, mut looked) = (None, None::<Instant>, Instant::now());
    let mut sweep_at = Instant::now() + jitter();
    loop {
        let Some(pause) = node.upgrade().map(|node| node.store.poll.min(node.store.node_ttl / 3)) else {
            return;
        };
        if let (Some(node), Some(shared)) = (node.upgrade(), shared.upgrade()) {
            if renewed.is_none_or(|renewed| renewed.elapsed() >= node.store.node_ttl / 3) {
                renewed = Some(Instant::now());
                version = renew(&node, version).await;
            }
            let all = looked.elapsed() >= node.store.cache;
            if all {
                looked = Instant::now();
            }
            let wanted = |session: &Session, _: &Stored| {
                session.is_busy() && (all || !session.conversation.is_ready())
            };
            for session in shared.sessions.copies(wanted) {
                refresh(&shared, &session).await;
            }
            if Instant::now() >= sweep_at {
                sweep_at = Instant::now() + jitter();
                drop(node.records().sweep(500).await);
            }
        } else {
            return;
        }
        sleep(pause).await;
    }
}

/// 30 to 90 s, so that processes do not sweep together.
fn jitter() -> Duration {
    let [byte] = bowline_server::transport::random_bytes();
    Duration::from_millis(30_000 + u64::from(byte) * 60_000 / 255)
}

/// Says that this process is alive.
async fn renew(node: &Node, version: Option<Version>) -> Option<Version> {
    let (Ok(key), ttl) = (node_key(node.id), node.store.node_ttl) else { return None };
    let mut version = version;
    for _ in 0..3 {
        let put = match version {
            Some(version) => Put::update(key.clone(), node.name.clone(), version).ttl(ttl),
            None => Put::create(key.clone(), node.name.clone(), ttl),
        };
        match node.records().put(put).await {
            Ok(version) => {
                node.is_up.store(true, Ordering::Relaxed);
                return Some(version);
            }
            // It expired, or an earlier write was applied without an answer.
            Err(PutError::Conflict) => {
                let found = node.records().get(std::slice::from_ref(&key)).await.ok()?.pop().flatten();
                version = found.map(|record| record.version);
            }
            Err(error) => {
                node.is_up.store(false, Ordering::Relaxed);
                tracing::warn!(%error, "the record of this process is not renewed");
                return version;
            }
        }
    }
    version
}
