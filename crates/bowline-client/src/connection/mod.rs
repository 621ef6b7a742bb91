//! The state of one connection: running requests in both directions.
//!
//! The reading task calls [`Connection::accept`] for every frame. It completes requests, starts handlers and routes
//! notifications without waiting. Requests are sent by the task that makes them. This module is independent of the
//! transport.

mod incoming;
mod wire;

use crate::{
    CallKey, Error, ResponseHead, Result,
    error::Kind,
    handlers::{Direction, OnProgress},
    rate::RateLimit,
    shared::{Shared, lock, now},
    subscriptions::Route,
    transport::{CancelWay, Outgoing, OutgoingKind, Transport},
};
use bowline_proto::{
    client::Negotiated,
    pending::{Pending, Timeouts},
};
use bowline_types::{CancelledParams, Era, Id, Method, RawJson, Revision};
use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    sync::{Notify, oneshot},
    task::{AbortHandle, JoinSet},
};

/// Effectively unlimited, for requests that run until someone ends them.
const ENDLESS: Timeouts = Timeouts { silence: Duration::MAX, total: Duration::MAX };
/// The maximum number of URLs that the user has open. Beyond it, the oldest is forgotten.
const MAX_OPENED_URLS: usize = 1000;

/// A connection to the server.
pub(crate) struct Connection {
    pub(crate) shared: Arc<Shared>,
    known_era: Option<Era>,
    transport: OnceLock<Box<dyn Transport>>,
    negotiated: OnceLock<Arc<Negotiated>>,
    closed: OnceLock<Error>,
    /// Wakes tasks that wait for the connection to open or close.
    turned: Notify,
    pending: Mutex<Pending<Waiter>>,
    /// The relay's keys of running requests.
    calls: Mutex<HashMap<Id, CallKey>>,
    answering: Mutex<Answering>,
    routes: Mutex<HashMap<Id, Arc<Route>>>,
    /// Elicitations with a URL that the user agreed to and that are not complete.
    opened_urls: Mutex<BTreeSet<String>>,
    /// Whether a request other than those of the handshake was answered.
    useful: AtomicBool,
    progress_rate: RateLimit,
    log_rate: RateLimit,
}

/// Requests of the server that are being answered.
#[derive(Default)]
struct Answering {
    tasks: JoinSet<()>,
    running: HashMap<Id, AbortHandle>,
}

/// The receiver of a response.
struct Waiter {
    method: Box<str>,
    started: Instant,
    timeouts: Timeouts,
    /// Whether the server is notified if the request is cancelled.
    sends_cancellation: bool,
    kind: WaiterKind,
}

enum WaiterKind {
    Call { reply: oneshot::Sender<Result<RawJson>>, progress: Option<OnProgress> },
    Listen(Arc<Route>),
}

/// The options of a request.
pub(crate) struct Ticket {
    pub(crate) timeouts: Timeouts,
    pub(crate) progress: Option<OnProgress>,
    /// The relay's key of the request.
    pub(crate) key: Option<CallKey>,
    /// The handshake is never cancelled.
    pub(crate) is_opening: bool,
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>, known_era: Option<Era>) -> Self {
        let (progress_rate, log_rate) = (shared.settings.progress_rate, shared.settings.log_rate);
        Self {
            progress_rate: RateLimit::new(progress_rate),
            log_rate: RateLimit::new(log_rate),
            shared,
            known_era,
            transport: OnceLock::new(),
            negotiated: OnceLock::new(),
            closed: OnceLock::new(),
            turned: Notify::new(),
            pending: Mutex::default(),
            calls: Mutex::default(),
            answering: Mutex::default(),
            routes: Mutex::default(),
            opened_urls: Mutex::default(),
            useful: AtomicBool::new(false),
        }
    }

    pub(crate) fn attach(&self, transport: Box<dyn Transport>) {
        // The transport is set once, by the task that created both.
        let _ = self.transport.set(transport);
    }

    pub(crate) fn known_era(&self) -> Option<Era> {
        self.known_era
    }

    pub(crate) fn transport(&self) -> Option<&dyn Transport> {
        self.transport.get().map(|transport| &**transport)
    }

    /// Returns the negotiated revision and the description of the server, once the connection is open.
    pub(crate) fn negotiated(&self) -> Option<&Arc<Negotiated>> {
        self.negotiated.get()
    }

    pub(crate) fn revision(&self) -> Option<Revision> {
        self.negotiated.get().map(|negotiated| negotiated.revision)
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.revision().is_some_and(Revision::is_modern)
    }

    /// Marks the connection as open.
    pub(crate) fn open(&self, negotiated: Negotiated) {
        if let Some(transport) = self.transport() {
            transport.opened(&negotiated);
        }
        let _ = self.negotiated.set(Arc::new(negotiated));
        self.turned.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get().is_some()
    }

    /// Returns whether a request other than those of the handshake was answered.
    pub(crate) fn was_useful(&self) -> bool {
        self.useful.load(Ordering::Relaxed)
    }

    /// Waits until the connection is closed, and returns the reason.
    pub(crate) async fn gone(&self) -> Error {
        self.until(|| self.closed.get().cloned()).await
    }

    /// Waits until the connection is open. Returns `None` if it was closed.
    async fn opened(&self) -> Option<Arc<Negotiated>> {
        self.until(|| match (self.negotiated.get(), self.closed.get()) {
            (Some(negotiated), None) => Some(Some(Arc::clone(negotiated))),
            (_, Some(_)) => Some(None),
            (None, None) => None,
        })
        .await
    }

    async fn until<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        loop {
            let mut turned = std::pin::pin!(self.turned.notified());
            turned.as_mut().enable();
            if let Some(found) = look() {
                return found;
            }
            turned.await;
        }
    }

    fn send(&self, frame: bytes::Bytes, kind: OutgoingKind) {
        if let Some(transport) = self.transport() {
            self.shared.handlers.show(Direction::Sent, &frame);
            transport.send(Outgoing { frame, kind });
        }
    }

    /// Sends a notification.
    pub(crate) fn notify(&self, method: &str, params: Option<&RawJson>) {
        let frame = wire::message(None, method, params);
        self.send(frame, OutgoingKind::Notification { method: method.into() });
    }

    /// Sends a request with complete parameters.
    ///
    /// `fill` writes them. It receives the id, which is also the progress token.
    pub(crate) async fn request(
        self: &Arc<Self>,
        method: &str,
        fill: impl FnOnce(&Id) -> RawJson,
        ticket: Ticket,
    ) -> Result<RawJson> {
        self.wait_until_ready(method, ticket.timeouts).await?;
        let (reply, answer) = oneshot::channel();
        let sends_cancellation = !ticket.is_opening;
        let kind = WaiterKind::Call { reply, progress: ticket.progress };
        let in_flight = self.start(method, fill, ticket.timeouts, sends_cancellation, |id| {
            if let Some(key) = ticket.key {
                lock(&self.calls).insert(id.clone(), key);
            }
            kind
        })?;
        let answer = answer.await.unwrap_or_else(|_| Err(self.reason()));
        drop(in_flight);
        if answer.is_ok() && sends_cancellation {
            self.useful.store(true, Ordering::Relaxed);
        }
        answer
    }

    /// Waits until the transport accepts a request, at most for the request timeout.
    async fn wait_until_ready(&self, method: &str, timeouts: Timeouts) -> Result<()> {
        let Some(transport) = self.transport() else { return Ok(()) };
        tokio::select! {
            biased;
            () = transport.ready() => Ok(()),
            reason = self.gone() => Err(reason),
            () = tokio::time::sleep(timeouts.silence) => Err(Error::timeout(method, timeouts.silence)),
        }
    }

    /// Opens a subscription, and returns the part of it that the server grants.
    pub(crate) async fn listen(
        self: &Arc<Self>,
        fill: impl FnOnce(&Id) -> RawJson,
        route: Arc<Route>,
        granted: oneshot::Receiver<Result<bowline_types::SubscriptionFilter>>,
    ) -> Result<(InFlight, bowline_types::SubscriptionFilter)> {
        let timeouts = self.shared.settings.timeouts;
        let in_flight = self.start(Method::Listen.as_str(), fill, timeouts, true, |id| {
            lock(&self.routes).insert(id.clone(), Arc::clone(&route));
            WaiterKind::Listen(route)
        })?;
        let granted = granted.await.unwrap_or_else(|_| Err(self.reason()))?;
        Ok((in_flight, granted))
    }

    /// Sends a request and ignores its response.
    pub(crate) fn send_and_forget(self: &Arc<Self>, method: &str, params: RawJson) {
        let (reply, _) = oneshot::channel();
        let kind = WaiterKind::Call { reply, progress: None };
        let started = self.start(method, |_| params, self.shared.settings.timeouts, false, |_| kind);
        if let Ok(mut in_flight) = started {
            in_flight.connection = Weak::new();
        }
    }

    fn start(
        self: &Arc<Self>,
        method: &str,
        fill: impl FnOnce(&Id) -> RawJson,
        timeouts: Timeouts,
        sends_cancellation: bool,
        kind: impl FnOnce(&Id) -> WaiterKind,
    ) -> Result<InFlight> {
        let started = now();
        let mut pending = lock(&self.pending);
        // Checked under the lock, so that closing the connection cannot miss this request.
        if self.is_closed() {
            return Err(self.reason());
        }
        let id = pending.next_id();
        let kind = kind(&id);
        pending.insert(
            id.clone(),
            Waiter { method: method.into(), started, timeouts, sends_cancellation, kind },
            timeouts,
            started,
        );
        let deadline = pending.deadline_of(&id);
        drop(pending);
        if let Some(deadline) = deadline {
            self.shared.timer.add(deadline);
        }
        let params = fill(&id);
        let frame = wire::message(Some(&id), method, Some(&params));
        self.send(frame, OutgoingKind::Request { id: id.clone(), method: method.into(), params });
        Ok(InFlight { connection: Arc::downgrade(self), id })
    }

    fn reason(&self) -> Error {
        self.closed.get().cloned().unwrap_or_else(|| Kind::Cancelled.into())
    }

    /// Returns whether a request is running on the server.
    pub(crate) fn is_busy(&self) -> bool {
        lock(&self.pending).values().any(|waiter| matches!(waiter.kind, WaiterKind::Call { .. }))
    }

    /// Returns whether a request is running.
    pub(crate) fn awaits(&self, id: &Id) -> bool {
        lock(&self.pending).peek(id).is_some()
    }

    /// Fails one request.
    pub(crate) fn fail(&self, id: &Id, error: Error) {
        self.complete(id, Err(error));
    }

    /// Completes a request. Returns `false` if it was completed before or never sent.
    fn complete(&self, id: &Id, result: Result<RawJson>) -> bool {
        let Some(waiter) = self.take(id) else { return false };
        match waiter.kind {
            // The caller may be gone.
            WaiterKind::Call { reply, .. } => drop(reply.send(result)),
            WaiterKind::Listen(route) => {
                lock(&self.routes).remove(id);
                match result {
                    Err(error) if error.is_closed() => route.stream_lost(&error, &self.shared.views),
                    result => route.finish(result.map(drop)),
                }
            }
        }
        true
    }

    /// Removes a running request. The caller must complete it.
    fn take(&self, id: &Id) -> Option<Waiter> {
        let waiter = lock(&self.pending).take(id)?;
        lock(&self.calls).remove(id);
        Some(waiter)
    }

    /// Returns the call that a message of the server belongs to: the one on whose stream it arrived. On a shared
    /// channel there is none, even if only one call is running, because a cancelled call may still run on the server.
    fn call_of(&self, request: Option<&Id>) -> Option<CallKey> {
        lock(&self.calls).get(request?).copied()
    }

    /// Cancels a request.
    fn give_up(&self, id: &Id) {
        let waiter = self.take(id);
        lock(&self.routes).remove(id);
        if waiter.is_some_and(|waiter| waiter.sends_cancellation) {
            self.cancel(id, "the caller cancelled the request");
        }
    }

    fn cancel(&self, id: &Id, reason: &str) {
        tracing::debug!(%id, reason, "cancelling a request");
        let way = self.transport().map(|transport| transport.cancel(id));
        if self.is_closed() || way != Some(CancelWay::Notify) {
            return;
        }
        let params = CancelledParams::new().request_id(id.clone()).reason(reason);
        if let Ok(params) = RawJson::of(&params) {
            self.notify(Method::Cancelled.as_str(), Some(&params));
        }
    }

    /// Restarts the idle timeouts of all requests.
    pub(crate) fn keep_waiting(&self) {
        lock(&self.pending).touch_all(now());
    }

    /// Fails requests that timed out, and returns the next deadline.
    pub(crate) fn expire(&self) -> Option<Instant> {
        let now = now();
        let (expired, deadline) = {
            let mut pending = lock(&self.pending);
            (pending.expire(now), pending.deadline())
        };
        for (id, waiter) in expired {
            lock(&self.calls).remove(&id);
            if waiter.sends_cancellation {
                self.cancel(&id, "no answer in time");
            }
            let Timeouts { silence, total } = waiter.timeouts;
            let after = if now.duration_since(waiter.started) >= total { total } else { silence };
            let error = Error::timeout(&*waiter.method, after);
            match waiter.kind {
                WaiterKind::Call { reply, .. } => drop(reply.send(Err(error))),
                WaiterKind::Listen(route) => {
                    lock(&self.routes).remove(&id);
                    route.finish(Err(error));
                }
            }
        }
        deadline
    }

    /// Closes the connection: all running requests fail. Subscriptions wait for the next connection.
    pub(crate) fn close(&self, reason: &Error) {
        let waiters = {
            let mut pending = lock(&self.pending);
            if self.closed.set(reason.clone()).is_err() {
                return;
            }
            pending.drain()
        };
        for (_, waiter) in waiters {
            match waiter.kind {
                WaiterKind::Call { reply, .. } => drop(reply.send(Err(reason.clone()))),
                WaiterKind::Listen(route) => route.interrupt(reason),
            }
        }
        lock(&self.calls).clear();
        lock(&self.routes).clear();
        let mut answering = lock(&self.answering);
        answering.tasks.abort_all();
        answering.running.clear();
        drop(answering);
        self.turned.notify_waiters();
    }

    pub(crate) fn wants_responses(&self) -> bool {
        self.shared.handlers.response.is_some()
    }

    pub(crate) fn show_response(&self, head: &ResponseHead<'_>) {
        self.shared.handlers.show_response(head);
    }

    pub(crate) fn note_noise(&self, sample: &[u8]) {
        self.shared.note_noise(sample);
    }

    /// Records that the user agreed to open a URL, so that its completion is recognized.
    pub(crate) fn note_opened_url(&self, elicitation_id: &str) {
        let mut opened_urls = lock(&self.opened_urls);
        if opened_urls.len() >= MAX_OPENED_URLS {
            opened_urls.pop_first();
        }
        opened_urls.insert(elicitation_id.to_owned());
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("negotiated", &self.negotiated)
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

/// A running request. Dropping it cancels the request.
#[derive(Debug)]
pub(crate) struct InFlight {
    connection: Weak<Connection>,
    id: Id,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.upgrade() {
            connection.give_up(&self.id);
        }
    }
}
