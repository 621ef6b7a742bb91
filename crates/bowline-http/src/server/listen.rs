//! `subscriptions/listen` over HTTP: a stream that stays open.

use super::{
    body::Body,
    events::{Events, comment, event},
    reply,
    retention::EVENT_OVERHEAD,
    service::Shared,
};
use bowline_proto::{
    caller::user_of,
    subscribe::{Change, Channel, Listen, MAX_TASKS, Subscriptions},
};
use bowline_server::{
    ServerHandle, TaskFollowing,
    transport::{Listener, Sink},
};
use bowline_types::{Id, RpcError, SubscriptionFilter};
use bytes::Bytes;
use http::Response;
use std::{
    collections::{BTreeSet, HashMap},
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep, timeout};

/// Opens a stream. After `time` it ends with its result.
pub(super) fn open(
    shared: &Arc<Shared>,
    principal: Option<Arc<str>>,
    id: &Id,
    listen: &Listen,
    time: Option<Duration>,
) -> Response<Body> {
    let slot = match ListenSlot::take(shared, principal, &listen.filter) {
        Ok(slot) => slot,
        Err(reason) => return reply::later(reason),
    };
    let events = Arc::new(Events::of(shared));
    let mut subscriptions = Subscriptions::default();
    let Some(acknowledged) = subscriptions.listen(id.clone(), listen, &shared.server.profile().capabilities)
    else {
        return reply::failure(Some(id), &RpcError::internal("too many subscriptions are open"));
    };
    events.push(&acknowledged);
    let server = shared.server.clone();
    let following = server.follow_tasks(listen, id, Arc::clone(&events) as Arc<dyn Sink>);
    let wanted = subscriptions.take_wanted().unwrap_or_default();
    server.want(&BTreeSet::new(), &wanted);
    let listener =
        Arc::new(ChangeListener { subscriptions: Mutex::new(subscriptions), wanted, events, server });
    shared.server.join(&(Arc::clone(&listener) as Arc<dyn Listener>));
    let ending = shared.ending();
    let ending: Pin<Box<dyn Future<Output = ()> + Send>> = match time {
        Some(time) => Box::pin(async move { drop(timeout(time, ending).await) }),
        None => Box::pin(ending),
    };
    let silence = Box::pin(sleep(shared.options.keep_alive));
    reply::stream(Body::listen(ListenStream {
        listener,
        shared: Arc::clone(shared),
        silence,
        ending,
        ended: false,
        _following: following,
        _slot: slot,
    }))
}

/// Counts the open streams, in total and by caller.
#[derive(Debug, Default)]
pub(super) struct OpenListens {
    total: usize,
    /// By principal. All requests without one count as one caller.
    by_caller: HashMap<Option<Arc<str>>, CallerListens>,
}

#[derive(Debug, Default)]
struct CallerListens {
    streams: usize,
    /// The bytes of their filters.
    bytes: usize,
}

/// Which part of the budget for retained bytes the filters of one caller may take.
const CALLER_SHARE: usize = 4;

/// One open stream and the bytes of its filter. Both are released when it is dropped.
struct ListenSlot {
    shared: Arc<Shared>,
    /// Whose limit the stream counts for.
    user: Option<Arc<str>>,
    bytes: usize,
}

impl ListenSlot {
    /// Counts one more stream, or returns the reason why there may be none.
    fn take(
        shared: &Arc<Shared>,
        principal: Option<Arc<str>>,
        filter: &SubscriptionFilter,
    ) -> Result<Self, &'static str> {
        // A URI is stored as wanted, as subscribed, and once more when it changed.
        let uris = filter.resource_subscriptions.iter().flatten();
        let bytes: usize = uris.map(|uri| 3 * (uri.len() + EVENT_OVERHEAD)).sum();
        // The id of a task is stored as wanted, as granted, and by whoever follows the task.
        let tasks = filter.task_ids.iter().flatten().take(MAX_TASKS);
        let bytes = bytes + tasks.map(|id| 3 * (id.len() + EVENT_OVERHEAD)).sum::<usize>();
        let user = principal.map(|principal| user_of(&principal));
        let per_caller = match &user {
            Some(_) => shared.options.max_listens_per_principal,
            None => usize::MAX,
        };
        let mut open = shared.listens.lock().unwrap_or_else(PoisonError::into_inner);
        if open.total >= shared.options.max_listens || !shared.retention.has_space(bytes) {
            return Err("too many `subscriptions/listen` streams are open");
        }
        if let Some(caller) = open.by_caller.get(&user)
            && (caller.streams >= per_caller
                || caller.bytes.saturating_add(bytes) > shared.retention.limit() / CALLER_SHARE)
        {
            return Err("this caller has too many `subscriptions/listen` streams open");
        }
        open.total += 1;
        let caller = open.by_caller.entry(user.clone()).or_default();
        caller.streams += 1;
        caller.bytes += bytes;
        shared.retention.charge(bytes);
        drop(open);
        Ok(Self { shared: Arc::clone(shared), user, bytes })
    }
}

impl Drop for ListenSlot {
    fn drop(&mut self) {
        self.shared.retention.release(self.bytes);
        let mut open = self.shared.listens.lock().unwrap_or_else(PoisonError::into_inner);
        open.total -= 1;
        if let Some(caller) = open.by_caller.get_mut(&self.user) {
            caller.streams -= 1;
            caller.bytes -= self.bytes;
            if caller.streams == 0 {
                open.by_caller.remove(&self.user);
            }
        }
    }
}

/// Hears of changes for one stream.
struct ChangeListener {
    subscriptions: Mutex<Subscriptions>,
    wanted: BTreeSet<String>,
    events: Arc<Events>,
    server: ServerHandle,
}

impl Drop for ChangeListener {
    fn drop(&mut self) {
        self.server.want(&self.wanted, &BTreeSet::new());
        self.server.leave();
    }
}

impl ChangeListener {
    fn subscriptions(&self) -> MutexGuard<'_, Subscriptions> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for ChangeListener {
    fn on_change(&self, change: &Change) {
        if self.subscriptions().mark(change) {
            self.events.wake();
        }
    }
}

/// A stream of changes.
pub(super) struct ListenStream {
    listener: Arc<ChangeListener>,
    shared: Arc<Shared>,
    silence: Pin<Box<Sleep>>,
    ending: Pin<Box<dyn Future<Output = ()> + Send>>,
    ended: bool,
    _following: Option<TaskFollowing>,
    _slot: ListenSlot,
}

impl ListenStream {
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.listener.events.register(context.waker());
        if self.listener.events.len() == 0 {
            for frame in self.listener.subscriptions().drain() {
                self.listener.events.push(&frame);
            }
        }
        if !self.ended && self.ending.as_mut().poll(context).is_ready() {
            self.ended = true;
            let farewell = self.listener.subscriptions().close(self.shared.server.profile(), Channel::Own);
            for frame in farewell {
                self.listener.events.push(&frame);
            }
        }
        if let Some(message) = self.listener.events.pop() {
            self.silence.as_mut().reset(Instant::now() + self.shared.options.keep_alive);
            return Poll::Ready(Some(event(&message)));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        if self.silence.as_mut().poll(context).is_ready() {
            self.silence.as_mut().reset(Instant::now() + self.shared.options.keep_alive);
            let _ = self.silence.as_mut().poll(context);
            return Poll::Ready(Some(comment()));
        }
        Poll::Pending
    }
}
