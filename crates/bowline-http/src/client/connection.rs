//! State that the requests of one connection share: the destination, the headers, and the running requests.

use super::{param_headers::ToolHeaders, reply::Reply, sender::RequestSender};
use bowline_client::{Error, Inbox, ResponseHead, Result};
use bowline_proto::header as codec;
use bowline_types::{Era, Id, Method as Rpc, Revision};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use std::{
    collections::HashMap,
    fmt,
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tokio::{
    sync::{Notify, watch},
    task::{AbortHandle, JoinSet},
};

/// The header that names a session.
pub(super) const SESSION_ID: &str = "mcp-session-id";
/// The maximum number of running requests.
const MAX_IN_FLIGHT: usize = 1000;

/// The detected era of a server, kept across connections.
pub(super) type Found = Arc<Mutex<Option<Era>>>;

/// One connection.
pub(super) struct Connection {
    pub(super) sender: RequestSender,
    pub(super) url: Uri,
    pub(super) inbox: Inbox,
    pub(super) tool_headers: ToolHeaders,
    pub(super) order: Order,
    found: Found,
    revision: OnceLock<Revision>,
    session: Mutex<Option<HeaderValue>>,
    /// Where a server of 2024-11-05 wants its messages.
    address: OnceLock<Uri>,
    expired: AtomicBool,
    tasks: Mutex<Tasks>,
    space: Notify,
}

#[derive(Default)]
struct Tasks {
    all: JoinSet<()>,
    requests: HashMap<Id, AbortHandle>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    pub(super) fn new(sender: RequestSender, url: Uri, inbox: Inbox, found: Found) -> Self {
        Self {
            sender,
            url,
            inbox,
            tool_headers: ToolHeaders::default(),
            order: Order::default(),
            found,
            revision: OnceLock::new(),
            session: Mutex::default(),
            address: OnceLock::new(),
            expired: AtomicBool::new(false),
            tasks: Mutex::default(),
            space: Notify::new(),
        }
    }

    /// Records that the connection is open.
    pub(super) fn opened(&self, revision: Revision) {
        let _ = self.revision.set(revision);
        *lock(&self.found) = Some(revision.era());
    }

    pub(super) fn revision(&self) -> Option<Revision> {
        self.revision.get().copied()
    }

    /// Returns whether a message is sent in the modern form. Before negotiation, only the probe is.
    pub(super) fn is_modern(&self, method: &str) -> bool {
        self.revision().map_or_else(|| method == Rpc::Discover.as_str(), Revision::is_modern)
    }

    pub(super) fn session(&self) -> Option<HeaderValue> {
        lock(&self.session).clone()
    }

    /// Takes the session that the reply to `initialize` names.
    pub(super) fn join_session(&self, headers: &HeaderMap) {
        let id = headers.get(SESSION_ID).filter(|id| {
            let valid = !id.is_empty() && id.as_bytes().iter().all(u8::is_ascii_graphic);
            if !valid {
                tracing::warn!("ignored a session id with invalid characters");
            }
            valid
        });
        *lock(&self.session) = id.cloned().map(|mut id| {
            // Whoever knows the id can use the session.
            id.set_sensitive(true);
            id
        });
    }

    /// Returns the URL for messages.
    pub(super) fn destination(&self) -> &Uri {
        self.address.get().unwrap_or(&self.url)
    }

    /// Returns whether the server uses 2024-11-05, whose responses all arrive on one stream.
    pub(super) fn has_two_endpoints(&self) -> bool {
        self.address.get().is_some()
    }

    pub(super) fn set_address(&self, address: Uri) {
        let _ = self.address.set(address);
    }

    /// Closes the connection because the server no longer knows the session, and returns the error. A new session will
    /// be opened.
    pub(super) fn expire(&self) -> Error {
        let error = Error::expired("the server no longer knows it");
        if !self.expired.swap(true, Ordering::AcqRel) {
            self.inbox.close(error.clone());
        }
        error
    }

    pub(super) fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Acquire)
    }

    /// Returns the headers of legacy requests within a session.
    pub(super) fn session_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(session) = self.session() {
            headers.insert(SESSION_ID, session);
        }
        if let Some(revision) = self.revision().filter(|revision| *revision >= Revision::V2025_06_18) {
            headers.insert(codec::PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
        }
        headers
    }

    /// Posts a message.
    pub(super) async fn post(&self, frame: &Bytes, mut headers: HeaderMap) -> Result<Reply> {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        self.sender.send(Method::POST, self.destination(), &headers, frame).await
    }

    /// Asks for a stream of events.
    pub(super) async fn get(&self, mut headers: HeaderMap) -> Result<Reply> {
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        self.sender.send(Method::GET, &self.url, &headers, &Bytes::new()).await
    }

    /// Reports the head of a reply to the observer.
    pub(super) fn show(&self, request: &Id, status: StatusCode, headers: &HeaderMap) {
        if !self.inbox.wants_responses() {
            return;
        }
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap_or(""))).collect();
        self.inbox.response(&ResponseHead::new(Some(request), status.as_u16(), &headers));
    }

    /// Runs something that belongs to no request, for as long as the connection lasts.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.all.try_join_next().is_some() {}
        tasks.all.spawn(task);
    }

    /// Runs a request, until it is done or cancelled.
    pub(super) fn spawn_request(self: &Arc<Self>, id: Id, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.all.try_join_next().is_some() {}
        let (connection, key) = (Arc::clone(self), id.clone());
        let handle = tasks.all.spawn(async move {
            task.await;
            connection.cancel(&key);
        });
        tasks.requests.insert(id, handle);
    }

    /// Cancels a request, which closes its response.
    pub(super) fn cancel(&self, id: &Id) {
        let handle = lock(&self.tasks).requests.remove(id);
        if let Some(handle) = handle {
            handle.abort();
            self.space.notify_waiters();
        }
    }

    /// Cancels all requests.
    pub(super) fn abort(&self) {
        let mut tasks = lock(&self.tasks);
        tasks.all.abort_all();
        tasks.requests.clear();
    }

    /// Waits until another request may be started.
    pub(super) async fn wait_for_space(&self) {
        loop {
            let mut freed = std::pin::pin!(self.space.notified());
            freed.as_mut().enable();
            if lock(&self.tasks).requests.len() < MAX_IN_FLIGHT {
                return;
            }
            freed.await;
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("url", &self.url)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

/// The order of notifications, which each travel in a request of their own: the next waits for the one before, and
/// requests for those sent earlier. So a server learns that the client is ready before it gets a request.
#[derive(Debug)]
pub(super) struct Order {
    sent: AtomicU64,
    done: watch::Sender<u64>,
}

impl Default for Order {
    fn default() -> Self {
        Self { sent: AtomicU64::new(0), done: watch::Sender::new(0) }
    }
}

/// A place in the order.
#[derive(Debug)]
pub(super) struct Place(u64);

impl Order {
    /// Returns the position of a notification.
    pub(super) fn next(&self) -> Place {
        Place(self.sent.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Returns the position after all notifications so far.
    pub(super) fn last(&self) -> Place {
        Place(self.sent.load(Ordering::Acquire) + 1)
    }

    /// Completes when everything before `place` is done.
    pub(super) async fn before(&self, place: &Place) {
        // The sender lives as long as this does.
        let _ = self.done.subscribe().wait_for(|done| *done + 1 >= place.0).await;
    }

    /// Records that the notification at this place was sent, or could not be.
    pub(super) fn done(&self, place: &Place) {
        self.done.send_replace(place.0);
    }
}
