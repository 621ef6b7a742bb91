//! One client and its calls, whatever carries the frames.

mod asking;
#[cfg(any(feature = "tasks", feature = "backend-tasks"))]
mod task_notifications;

pub(super) use asking::NOT_INITIALIZED;
#[cfg(any(feature = "tasks", feature = "backend-tasks"))]
use task_notifications::TaskNotifications;

use super::{Exchange, Observer, RawFrame, RemoteAnswers, Sink, question::Questions};
use crate::{CallOrigin, ServerHandle, hub::Listener, server_handle::TaskFollowing};
use bowline_proto::{
    encode,
    envelope::Frame,
    server::{Ids, Inbound, NotificationEncoder, ServerSession, SessionMemory, SessionState, Ticket},
    service::{BoxFuture, Call, Extensions, Notifier, Outcome, Reply},
    subscribe::{Change, Listen, Subscriber},
};
use bowline_types::{Era, Id, Method, Revision};
use bytes::Bytes;
use std::{
    collections::BTreeSet,
    fmt,
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::sync::Notify;

/// How many custom notifications of one client are handled at a time.
const MAX_NOTIFICATIONS: usize = 100;

/// What runs because of a frame. The transport polls or spawns it; dropping it cancels the call.
pub enum Started {
    /// Nothing: what the frame asked for is done, and its reply, if one is due, is in the sink.
    Nothing,
    /// One call.
    Call(BoxFuture<'static, ()>),
    /// The calls of a batch.
    Batch(Vec<BoxFuture<'static, ()>>),
    /// The handler of a custom notification. Nothing is sent for it.
    Notification(BoxFuture<'static, ()>),
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Call(_) => "Call",
            Self::Batch(_) => "Batch",
            Self::Notification(_) => "Notification",
        })
    }
}

/// The session knows the exchange of each running call.
type Session = ServerSession<Arc<Exchange>>;

/// One client and its calls.
///
/// Locks: the session's is taken before any other, never after, and none is held across an await.
pub struct Conversation {
    server: ServerHandle,
    session: Mutex<Session>,
    questions: Questions,
    /// Why questions cannot be sent, if they cannot.
    refuse_questions: Option<&'static str>,
    /// Notified when the client has completed the handshake.
    initialized: Notify,
    /// The resources that the client subscribes to.
    wanted: Mutex<BTreeSet<String>>,
    /// How many custom notifications are being handled.
    notifications: AtomicUsize,
    /// The tasks that the client is notified of, with the subscriptions they belong to.
    following: Mutex<Vec<(Id, TaskFollowing)>>,
    /// Notifications about tasks of 2025-11-25 that wait to be written: the last ones of each task.
    #[cfg(any(feature = "tasks", feature = "backend-tasks"))]
    task_notifications: Mutex<TaskNotifications>,
    /// Called when there may be notifications to send.
    on_notifications: Box<dyn Fn() + Send + Sync>,
    /// Sees every message, if messages are observed.
    observer: Option<Observer>,
}

/// How a conversation is set up.
#[derive(Default)]
#[must_use = "it does nothing until it is used"]
pub struct Setup {
    ids: Ids,
    memory: SessionMemory,
    remote: Option<(Box<str>, Arc<dyn RemoteAnswers>)>,
    refuse_questions: Option<&'static str>,
}

impl Setup {
    /// Sets whether requests share a channel.
    pub fn ids(mut self, ids: Ids) -> Self {
        self.ids = ids;
        self
    }

    /// Keeps nothing between requests. A call that asks the client fails with `reason`.
    pub fn without_memory(mut self, reason: &'static str) -> Self {
        (self.memory, self.refuse_questions) = (SessionMemory::None, Some(reason));
        self
    }

    /// Accepts answers that reach other processes. The ids of questions begin with `prefix`, which no other conversation in any
    /// process has.
    pub fn answers(mut self, prefix: impl Into<Box<str>>, answers: Arc<dyn RemoteAnswers>) -> Self {
        self.remote = Some((prefix.into(), answers));
        self
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("ids", &self.ids)
            .field("memory", &self.memory)
            .field("has_remote_answers", &self.remote.is_some())
            .finish_non_exhaustive()
    }
}

impl Conversation {
    /// Creates a conversation. `ids` says whether requests share a channel. `on_notifications` is called when
    /// [`Conversation::write_notifications`] may have something to write; it must not block.
    pub fn new(
        server: &ServerHandle,
        principal: Option<Arc<str>>,
        ids: Ids,
        on_notifications: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Self> {
        Self::with(server, principal, Setup::default().ids(ids), on_notifications)
    }

    /// Creates a conversation that is set up in a certain way. `on_notifications` is as for [`Conversation::new`].
    pub fn with(
        server: &ServerHandle,
        principal: Option<Arc<str>>,
        setup: Setup,
        on_notifications: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Self> {
        let Setup { ids, memory, remote, refuse_questions } = setup;
        let session = Session::new(Arc::clone(&server.core.profile), principal);
        let conversation = Arc::new(Self {
            server: server.clone(),
            session: Mutex::new(session.with_ids(ids).with_memory(memory)),
            questions: Questions::with_remote(remote),
            refuse_questions,
            initialized: Notify::new(),
            wanted: Mutex::default(),
            notifications: AtomicUsize::new(0),
            following: Mutex::default(),
            #[cfg(any(feature = "tasks", feature = "backend-tasks"))]
            task_notifications: Mutex::default(),
            on_notifications: Box::new(on_notifications),
            observer: server.observer(),
        });
        let listener: Arc<dyn Listener> = Arc::clone(&conversation) as _;
        server.core.registry.hub().join(&listener);
        conversation
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the negotiated legacy revision, if there is one.
    pub fn revision(&self) -> Option<Revision> {
        self.session().revision()
    }

    /// Returns whether messages are observed. Then the extensions of a frame need a [`RawFrame`].
    pub fn is_observed(&self) -> bool {
        self.observer.is_some()
    }

    /// Returns whether the handshake is complete.
    pub fn is_ready(&self) -> bool {
        self.session().is_initialized()
    }

    /// Returns a number that rises with every change of [`Self::state`].
    pub fn changes(&self) -> u64 {
        self.session().changes()
    }

    /// Returns what the session remembers, so that another process can continue it; `None` before the handshake.
    pub fn state(&self) -> Option<SessionState> {
        self.session().state()
    }

    /// Continues a session of another process, or takes over what changed there. With `extensions`, subscriptions require the
    /// scopes of resources from the token of that request.
    pub fn restore(&self, state: &SessionState, extensions: Option<&Extensions>) {
        let mut session = self.session();
        if let Some(extensions) = extensions {
            session.set_subscriber(extensions.into());
        }
        let completed = session.restore(state);
        if let Some(wanted) = session.take_wanted() {
            self.set_subscribed(wanted);
        }
        drop(session);
        if completed {
            self.initialized.notify_waiters();
        }
    }

    /// Forgets recorded changes, because another process notifies the client.
    pub fn forget_changes(&self) {
        self.session().forget_changes();
    }

    /// Sets the token that its subscriptions need the scopes of resources from, for a request that carries no frame.
    pub fn set_subscriber(&self, subscriber: Subscriber) {
        self.session().set_subscriber(subscriber);
    }

    /// Takes what one frame holds; everything that belongs to it goes to `sink`. Its calls carry `extensions`.
    pub fn accept(self: &Arc<Self>, frame: Frame, sink: &Arc<dyn Sink>, extensions: &Extensions) -> Started {
        // Locked to the end, so that notifications never overtake the acknowledgment of their subscription, and a
        // cancellation finds the call it is for.
        let mut session = self.session();
        session.set_subscriber(extensions.into());
        let inbound = session.accept(frame, unix_time);
        if let Some(observer) = &self.observer {
            let client = match &inbound {
                Inbound::Call(ticket, ..) => Some(&*ticket.client),
                _ => None,
            };
            if let Some(RawFrame(text)) = extensions.get() {
                observer.received(text, client);
            }
        }
        let inbound = match inbound {
            Inbound::Call(ticket, call, notices) => {
                let arrived = Arrived { session: &mut session, sink, extensions };
                return Started::Call(self.start(arrived, ticket, call, notices, None));
            }
            other => other,
        };
        // Only messages that are not calls begin or end a subscription.
        if let Some(wanted) = session.take_wanted() {
            self.set_subscribed(wanted);
        }
        self.following().retain(|(id, _)| session.is_listening(id));
        match inbound {
            Inbound::Batch(items) => {
                self.start_batch(Arrived { session: &mut session, sink, extensions }, items)
            }
            Inbound::Custom(call) => {
                self.start_notification(*call, extensions).map_or(Started::Nothing, Started::Notification)
            }
            Inbound::Reply(reply) => {
                self.show(&reply);
                sink.push(&reply);
                Started::Nothing
            }
            Inbound::Listen(id, listen) => {
                Started::Call(Box::pin(Arc::clone(self).listen(id, listen, Arc::clone(sink))))
            }
            other => {
                self.handle(other);
                Started::Nothing
            }
        }
    }

    /// Shows a sent message that belongs to no call.
    fn show(&self, frame: &[u8]) {
        if let Some(observer) = &self.observer {
            observer.sent(frame, None, None);
        }
    }

    fn set_subscribed(&self, now: BTreeSet<String>) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        self.server.want(&wanted, &now);
        *wanted = now;
    }

    fn following(&self) -> MutexGuard<'_, Vec<(Id, TaskFollowing)>> {
        self.following.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a subscription that names tasks, once it is known which of them the client may see.
    async fn listen(self: Arc<Self>, id: Id, mut listen: Box<Listen>, sink: Arc<dyn Sink>) {
        // Without its store there is nothing to tell; the acknowledgement names no task, and the client asks for their status.
        listen.tasks = self.server.visible_tasks(&listen).await.unwrap_or_default();
        let sink = match &self.observer {
            Some(observer) => observer.sink(&sink, None, None),
            None => sink,
        };
        {
            let mut session = self.session();
            let Some(acknowledged) = session.listen(&id, &listen) else { return };
            sink.push(&acknowledged);
            if let Some(wanted) = session.take_wanted() {
                self.set_subscribed(wanted);
            }
        }
        if let Some(following) = self.server.follow_tasks(&listen, &id, sink) {
            self.following().push((id, following));
        }
    }

    fn start_batch(
        self: &Arc<Self>,
        Arrived { session, sink, extensions }: Arrived<'_>,
        items: Vec<Inbound<Arc<Exchange>>>,
    ) -> Started {
        let due = items.iter().filter(|item| matches!(item, Inbound::Call(..) | Inbound::Reply(_))).count();
        let batch_sink = match &self.observer {
            Some(observer) => observer.sink(sink, None, None),
            None => Arc::clone(sink),
        };
        let batch = Arc::new(Batch { replies: Mutex::new((due, Vec::new())), sink: batch_sink });
        let mut calls = Vec::new();
        for item in items {
            match item {
                Inbound::Call(ticket, call, notices) => {
                    let arrived = Arrived { session: &mut *session, sink, extensions };
                    calls.push(self.start(arrived, ticket, call, notices, Some(Arc::clone(&batch))));
                }
                Inbound::Custom(call) => calls.extend(self.start_notification(*call, extensions)),
                Inbound::Reply(reply) => batch.add_reply(Some(reply)),
                other => self.handle(other),
            }
        }
        Started::Batch(calls)
    }

    fn handle(&self, inbound: Inbound<Arc<Exchange>>) {
        match inbound {
            Inbound::Answer { id, result } => self.questions.answer(&id, result),
            Inbound::Alive(id) => self.questions.touch(&id),
            Inbound::Cancel { attached, reason, .. } => {
                log_cancellation(reason.as_deref());
                if let Some(exchange) = attached {
                    exchange.cancel();
                }
            }
            Inbound::Initialized => self.initialized.notify_waiters(),
            Inbound::Call(..)
            | Inbound::Listen(..)
            | Inbound::Custom(_)
            | Inbound::Batch(_)
            | Inbound::Reply(_)
            | Inbound::RootsChanged
            | Inbound::Ignored => {}
        }
    }

    fn start(
        self: &Arc<Self>,
        Arrived { session, sink, extensions }: Arrived<'_>,
        mut ticket: Ticket,
        mut call: Call,
        notices: NotificationEncoder,
        batch: Option<Arc<Batch>>,
    ) -> BoxFuture<'static, ()> {
        call.extensions.clone_from(extensions);
        let sink = match &self.observer {
            Some(observer) => {
                call.extensions.insert(CallOrigin::new(observer.connection(), ticket.id.clone()));
                observer.sink(sink, Some(ticket.id.clone()), Some(Arc::clone(&ticket.client)))
            }
            None => Arc::clone(sink),
        };
        let mut exchange = Exchange::new(notices, sink, &self.server.core.limits);
        if ticket.client.revision.era() == Era::Legacy {
            ticket.set_extensions(&call.extensions);
            exchange.set_back_channel(Arc::downgrade(self));
        }
        let exchange = Arc::new(exchange);
        if !session.attach(&ticket, Arc::clone(&exchange)) {
            exchange.cancel();
        }
        Box::pin(Arc::clone(self).run(ticket, call, exchange, batch))
    }

    /// Runs the handler of a custom notification. `None` when too many of them are running.
    fn start_notification(
        self: &Arc<Self>,
        mut call: Call,
        extensions: &Extensions,
    ) -> Option<BoxFuture<'static, ()>> {
        let handling = Handling::begin(self)?;
        call.extensions.clone_from(extensions);
        Some(Box::pin(async move {
            handling.0.server.service.call(call, Notifier::closed()).await;
        }))
    }

    async fn run(
        self: Arc<Self>,
        mut ticket: Ticket,
        call: Call,
        exchange: Arc<Exchange>,
        batch: Option<Arc<Batch>>,
    ) {
        let is_legacy = ticket.client.revision.era() == Era::Legacy;
        let asker = is_legacy.then_some((&*self, &ticket));
        let Some(outcome) = exchange.run(&self.server, call, asker).await else {
            if let Some(batch) = batch {
                batch.add_reply(None);
            }
            return;
        };
        let sink = exchange.sink();
        let sealing = || self.server.sealing();
        let mut session = self.session();
        if let (Outcome::Complete(Reply::Encoded(result)), None) = (&outcome, &batch) {
            if session.end(&ticket) {
                sink.push_response(&ticket.id, result);
            }
            return;
        }
        #[cfg(any(feature = "tasks", feature = "backend-tasks"))]
        let accepted = match &outcome {
            Outcome::Complete(Reply::Accepted(result)) if is_legacy => Some(result.clone()),
            _ => None,
        };
        let mut outcome = Some(outcome);
        let mut finish = |out: &mut Vec<u8>| {
            outcome.take().is_some_and(|outcome| session.finish(&mut ticket, outcome, &sealing, out))
        };
        match batch {
            Some(batch) => {
                let mut reply = Vec::new();
                let written = finish(&mut reply);
                batch.add_reply(written.then(|| reply.into()));
            }
            None => sink.write(&mut finish),
        }
        #[cfg(any(feature = "tasks", feature = "backend-tasks"))]
        {
            let subscriber = accepted.is_some().then(|| session.subscriber().clone());
            drop(session);
            if let (Some(result), Some(subscriber)) = (accepted, subscriber) {
                self.follow_status(&result, &ticket.client, subscriber);
            }
        }
    }

    /// Writes the notifications due to changes at the server.
    pub fn write_notifications(&self, sink: &dyn Sink) {
        // Under the session's lock: see `accept`.
        let mut session = self.session();
        for frame in &session.take_notifications() {
            self.show(frame);
            sink.push(frame);
        }
        #[cfg(any(feature = "tasks", feature = "backend-tasks"))]
        if session.is_initialized() {
            let mut task_notifications =
                self.task_notifications.lock().unwrap_or_else(PoisonError::into_inner);
            for (frame, needed) in task_notifications.take() {
                if session.subscriber().check(needed.as_deref()).is_err() {
                    continue;
                }
                self.show(&frame);
                sink.push(&frame);
            }
        }
    }

    /// Asks a legacy client whether it is alive. Returns false if it has not completed the handshake, or does not support pings.
    pub fn ping(&self, sink: &dyn Sink) -> bool {
        let is_known = self.is_ready();
        if is_known {
            let ping = encode::request(&self.questions.next_id(), Method::Ping, None);
            self.show(&ping);
            sink.push(&ping);
        }
        is_known
    }

    /// The client will answer no more questions. Calls that wait for one continue with an error.
    pub fn abandon_questions(&self) {
        self.questions.abandon();
    }

    /// Ends every subscription, as the last frames to the client.
    pub fn close(&self, sink: &dyn Sink) {
        self.following().clear();
        let last = self.session().close();
        for frame in &last {
            self.show(frame);
            sink.push(frame);
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.set_subscribed(BTreeSet::new());
        self.server.leave();
    }
}

impl Listener for Conversation {
    fn on_change(&self, change: &Change) {
        if self.session().mark(change) {
            (self.on_notifications)();
        }
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

/// A frame that is being accepted: the locked session, and where its replies go.
struct Arrived<'a> {
    session: &'a mut Session,
    sink: &'a Arc<dyn Sink>,
    extensions: &'a Extensions,
}

/// The replies of a batch, sent together as 2025-03-26 wants it.
struct Batch {
    /// How many are still due, and those that are there.
    replies: Mutex<(usize, Vec<Bytes>)>,
    sink: Arc<dyn Sink>,
}

impl Batch {
    fn add_reply(&self, reply: Option<Bytes>) {
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        replies.0 = replies.0.saturating_sub(1);
        replies.1.extend(reply);
        if replies.0 > 0 || replies.1.is_empty() {
            return;
        }
        let replies = std::mem::take(&mut replies.1);
        let mut frame = Vec::with_capacity(replies.iter().map(|reply| reply.len() + 1).sum::<usize>() + 1);
        for (position, reply) in replies.iter().enumerate() {
            frame.push(if position == 0 { b'[' } else { b',' });
            frame.extend_from_slice(reply);
        }
        frame.push(b']');
        self.sink.push(&frame);
    }
}

/// A custom notification that is being handled.
struct Handling(Arc<Conversation>);

impl Handling {
    /// Counts one more. `None` when there are too many.
    fn begin(conversation: &Arc<Conversation>) -> Option<Self> {
        let before = conversation.notifications.fetch_add(1, Ordering::Relaxed);
        let handling = Self(Arc::clone(conversation));
        (before < MAX_NOTIFICATIONS).then_some(handling)
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        self.0.notifications.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Logs why a client gave up a call. The reason is its own text, so it is quoted.
fn log_cancellation(reason: Option<&str>) {
    #[cfg(feature = "tracing")]
    tracing::debug!(reason = reason.unwrap_or("none given"), "the client cancelled a call");
    #[cfg(not(feature = "tracing"))]
    let _ = reason;
}

/// Polls a call once. One that answers at once needs no task of its own.
pub async fn poll_once(call: &mut BoxFuture<'static, ()>) -> Poll<()> {
    poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await
}

/// Seconds since the epoch.
pub fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
