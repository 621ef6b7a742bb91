//! One connection: what is under way on it, in both directions.
//!
//! The task that reads calls [`Connection::accept`] for every frame, which settles requests, starts answers and routes
//! notifications without waiting. Requests are sent by whoever makes them. Nothing here knows how frames travel.

mod incoming;
mod wire;

use crate::{
    CallKey, Error, Result,
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

/// As good as forever, for requests that end when someone wants them to.
const ENDLESS: Timeouts = Timeouts { silence: Duration::MAX, total: Duration::MAX };
/// How many pages a user may be visiting at once before the oldest is forgotten.
const MAX_VISITS: usize = 1000;

/// One connection to the server.
pub(crate) struct Connection {
    pub(crate) shared: Arc<Shared>,
    known_era: Option<Era>,
    transport: OnceLock<Box<dyn Transport>>,
    negotiated: OnceLock<Arc<Negotiated>>,
    closed: OnceLock<Error>,
    /// Wakes who waits for the connection to be open or closed.
    turned: Notify,
    pending: Mutex<Pending<Waiter>>,
    /// What a relay knows requests under way by.
    calls: Mutex<HashMap<Id, CallKey>>,
    answering: Mutex<Answering>,
    routes: Mutex<HashMap<Id, Arc<Route>>>,
    /// The pages this client consented to visit and has not heard the end of.
    visits: Mutex<BTreeSet<String>>,
    /// Whether something other than the opening was answered.
    useful: AtomicBool,
    progress_rate: RateLimit,
    log_rate: RateLimit,
}

/// The requests of the server that are being answered.
#[derive(Default)]
struct Answering {
    tasks: JoinSet<()>,
    running: HashMap<Id, AbortHandle>,
}

/// Who waits for the answer to a request.
struct Waiter {
    method: Box<str>,
    started: Instant,
    timeouts: Timeouts,
    /// Whether giving up is told to the server.
    tells: bool,
    kind: WaiterKind,
}

enum WaiterKind {
    Call { reply: oneshot::Sender<Result<RawJson>>, progress: Option<OnProgress> },
    Listen(Arc<Route>),
}

/// What a request needs besides its parameters.
pub(crate) struct Ticket {
    pub(crate) timeouts: Timeouts,
    pub(crate) progress: Option<OnProgress>,
    /// What a relay knows the request by.
    pub(crate) key: Option<CallKey>,
    /// The opening is never cancelled.
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
            visits: Mutex::default(),
            useful: AtomicBool::new(false),
        }
    }

    pub(crate) fn attach(&self, transport: Box<dyn Transport>) {
        // A connection is given its transport once, by the task that made both.
        let _ = self.transport.set(transport);
    }

    pub(crate) fn known_era(&self) -> Option<Era> {
        self.known_era
    }

    pub(crate) fn transport(&self) -> Option<&dyn Transport> {
        self.transport.get().map(|transport| &**transport)
    }

    /// What was agreed on, once the connection is open.
    pub(crate) fn negotiated(&self) -> Option<&Arc<Negotiated>> {
        self.negotiated.get()
    }

    pub(crate) fn revision(&self) -> Option<Revision> {
        self.negotiated.get().map(|negotiated| negotiated.revision)
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.revision().is_some_and(Revision::is_modern)
    }

    /// The opening is done.
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

    /// Whether something other than the opening was answered.
    pub(crate) fn was_useful(&self) -> bool {
        self.useful.load(Ordering::Relaxed)
    }

    /// Completes when the connection is gone, with the reason.
    pub(crate) async fn gone(&self) -> Error {
        self.until(|| self.closed.get().cloned()).await
    }

    /// Completes when the connection is open; `None` when it never will be.
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

    /// Sends a request. Its parameters are complete as they are.
    ///
    /// `fill` writes them, given the id, for that is also the token of its progress.
    pub(crate) async fn request(
        self: &Arc<Self>,
        method: &str,
        fill: impl FnOnce(&Id) -> RawJson,
        ticket: Ticket,
    ) -> Result<RawJson> {
        self.room(method, ticket.timeouts).await?;
        let (reply, answer) = oneshot::channel();
        let tells = !ticket.is_opening;
        let kind = WaiterKind::Call { reply, progress: ticket.progress };
        let in_flight = self.start(method, fill, ticket.timeouts, tells, |id| {
            if let Some(key) = ticket.key {
                lock(&self.calls).insert(id.clone(), key);
            }
            kind
        })?;
        let answer = answer.await.unwrap_or_else(|_| Err(self.reason()));
        drop(in_flight);
        if answer.is_ok() && tells {
            self.useful.store(true, Ordering::Relaxed);
        }
        answer
    }

    /// Waits until the transport can take a request, but no longer than for its answer.
    async fn room(&self, method: &str, timeouts: Timeouts) -> Result<()> {
        let Some(transport) = self.transport() else { return Ok(()) };
        tokio::select! {
            biased;
            () = transport.ready() => Ok(()),
            reason = self.gone() => Err(reason),
            () = tokio::time::sleep(timeouts.silence) => Err(Error::timeout(method, timeouts.silence)),
        }
    }

    /// Opens a subscription and completes with what the server grants of it.
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

    /// Sends a request whose answer nobody waits for.
    pub(crate) fn fire(self: &Arc<Self>, method: &str, params: RawJson) {
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
        tells: bool,
        kind: impl FnOnce(&Id) -> WaiterKind,
    ) -> Result<InFlight> {
        let started = now();
        let mut pending = lock(&self.pending);
        // Looked at under the lock, so that the end of the connection cannot miss this request.
        if self.is_closed() {
            return Err(self.reason());
        }
        let id = pending.next_id();
        let kind = kind(&id);
        pending.insert(
            id.clone(),
            Waiter { method: method.into(), started, timeouts, tells, kind },
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

    /// Whether the server works on a request.
    pub(crate) fn is_busy(&self) -> bool {
        lock(&self.pending).values().any(|waiter| matches!(waiter.kind, WaiterKind::Call { .. }))
    }

    /// Whether a request is under way.
    pub(crate) fn awaits(&self, id: &Id) -> bool {
        lock(&self.pending).peek(id).is_some()
    }

    /// One request cannot be answered any more.
    pub(crate) fn fail(&self, id: &Id, error: Error) {
        self.settle(id, Err(error));
    }

    /// Settles a request. False when it was settled before or never sent.
    fn settle(&self, id: &Id, result: Result<RawJson>) -> bool {
        let Some(waiter) = self.take(id) else { return false };
        match waiter.kind {
            // Whoever asked may have gone meanwhile.
            WaiterKind::Call { reply, .. } => drop(reply.send(result)),
            WaiterKind::Listen(route) => {
                lock(&self.routes).remove(id);
                match result {
                    Err(error) if error.is_closed() => route.lose(&error, &self.shared.views),
                    result => route.settle(result.map(drop)),
                }
            }
        }
        true
    }

    /// Takes a request out of those under way. Whoever gets it settles it.
    fn take(&self, id: &Id) -> Option<Waiter> {
        let waiter = lock(&self.pending).take(id)?;
        lock(&self.calls).remove(id);
        Some(waiter)
    }

    /// The call that something of the server belongs to: the one on whose stream it came. On a channel for everything not
    /// even the only call there is can be told, for one that was given up may not have ended at the server.
    fn call_of(&self, request: Option<&Id>) -> Option<CallKey> {
        lock(&self.calls).get(request?).copied()
    }

    /// The caller gave up.
    fn give_up(&self, id: &Id) {
        let waiter = self.take(id);
        lock(&self.routes).remove(id);
        if waiter.is_some_and(|waiter| waiter.tells) {
            self.cancel(id, "the caller cancelled the request");
        }
    }

    fn cancel(&self, id: &Id, reason: &str) {
        tracing::debug!(%id, reason, "cancelling a request");
        let way = self.transport().map(|transport| transport.cancel(id));
        if self.is_closed() || way != Some(CancelWay::Notify) {
            return;
        }
        let params = CancelledParams {
            request_id: Some(id.clone()),
            reason: Some(reason.into()),
            ..CancelledParams::default()
        };
        if let Ok(params) = RawJson::of(&params) {
            self.notify(Method::Cancelled.as_str(), Some(&params));
        }
    }

    /// Restarts the idle timeouts of all requests.
    pub(crate) fn keep_waiting(&self) {
        lock(&self.pending).touch_all(now());
    }

    /// Fails the requests whose time is up, and says when the next one's is.
    pub(crate) fn expire(&self) -> Option<Instant> {
        let now = now();
        let (expired, deadline) = {
            let mut pending = lock(&self.pending);
            (pending.expire(now), pending.deadline())
        };
        for (id, waiter) in expired {
            lock(&self.calls).remove(&id);
            if waiter.tells {
                self.cancel(&id, "no answer in time");
            }
            let Timeouts { silence, total } = waiter.timeouts;
            let after = if now.duration_since(waiter.started) >= total { total } else { silence };
            let error = Error::timeout(&*waiter.method, after);
            match waiter.kind {
                WaiterKind::Call { reply, .. } => drop(reply.send(Err(error))),
                WaiterKind::Listen(route) => {
                    lock(&self.routes).remove(&id);
                    route.settle(Err(error));
                }
            }
        }
        deadline
    }

    /// The connection is gone: everything under way fails at once. Subscriptions wait for the next connection.
    pub(crate) fn shut(&self, reason: &Error) {
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

    pub(crate) fn note_noise(&self, sample: &[u8]) {
        self.shared.note_noise(sample);
    }

    /// Remembers that the user agreed to visit a page, so that the news of its end is known to be meant.
    pub(crate) fn note_visit(&self, elicitation_id: &str) {
        let mut visits = lock(&self.visits);
        if visits.len() >= MAX_VISITS {
            visits.pop_first();
        }
        visits.insert(elicitation_id.to_owned());
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

/// A request under way. Dropping it before its answer is there gives it up.
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
