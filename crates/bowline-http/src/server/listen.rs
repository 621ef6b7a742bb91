//! `subscriptions/listen` over HTTP: a stream that stays open.

use super::{
    body::Body,
    events::{Events, comment, event},
    reply,
    retention::EVENT_OVERHEAD,
    service::Shared,
};
use bowline_proto::subscribe::{Change, Channel, Listen, Subscriptions};
use bowline_server::{
    ServerHandle,
    transport::{Listener, Sink},
};
use bowline_types::{Id, RpcError, SubscriptionFilter};
use bytes::Bytes;
use http::Response;
use std::{
    collections::BTreeSet,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    task::{Context, Poll},
};
use tokio::time::{Instant, Sleep, sleep};

/// Opens a stream.
pub(super) fn open(shared: &Arc<Shared>, id: &Id, listen: &Listen) -> Response<Body> {
    let Some(place) = Place::take(shared, &listen.filter) else {
        return reply::later("too many `subscriptions/listen` streams are open");
    };
    let events = Arc::new(Events::of(shared));
    let mut subscriptions = Subscriptions::default();
    let Some(acknowledged) = subscriptions.listen(id.clone(), listen, &shared.server.profile().capabilities)
    else {
        return reply::failure(Some(id), &RpcError::internal("too many subscriptions are open"));
    };
    events.push(&acknowledged);
    let server = shared.server.clone();
    let wanted = subscriptions.take_wanted().unwrap_or_default();
    server.want(&BTreeSet::new(), &wanted);
    let ear = Arc::new(Ear { subscriptions: Mutex::new(subscriptions), wanted, events, server });
    shared.server.join(&(Arc::clone(&ear) as Arc<dyn Listener>));
    let ending = Box::pin(shared.ending());
    let silence = Box::pin(sleep(shared.settings.keep_alive));
    reply::stream(Body::listen(ListenStream {
        ear,
        shared: Arc::clone(shared),
        silence,
        ending,
        ended: false,
        _place: place,
    }))
}

/// One of the streams that may be open, and the bytes its filter takes.
struct Place {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Place {
    /// Counts one more stream. `None` when there are too many, or their filters are too long together.
    fn take(shared: &Arc<Shared>, filter: &SubscriptionFilter) -> Option<Self> {
        // A URI is kept as wanted, as subscribed, and once more when it changed.
        let uris = filter.resource_subscriptions.iter().flatten();
        let bytes = uris.map(|uri| 3 * (uri.len() + EVENT_OVERHEAD)).sum();
        let before = shared.listens.fetch_add(1, Ordering::Relaxed);
        shared.retention.charge(bytes);
        // Gives both back when there is no room.
        let place = Self { shared: Arc::clone(shared), bytes };
        (before < shared.settings.max_listens && shared.retention.has_room(0)).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.listens.fetch_sub(1, Ordering::Relaxed);
        self.shared.retention.release(self.bytes);
    }
}

/// Hears of changes for one stream.
struct Ear {
    subscriptions: Mutex<Subscriptions>,
    wanted: BTreeSet<String>,
    events: Arc<Events>,
    server: ServerHandle,
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.server.want(&self.wanted, &BTreeSet::new());
        self.server.leave();
    }
}

impl Ear {
    fn subscriptions(&self) -> MutexGuard<'_, Subscriptions> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Ear {
    fn hear(&self, change: &Change) {
        if self.subscriptions().mark(change) {
            self.events.wake();
        }
    }
}

/// A stream of changes.
pub(super) struct ListenStream {
    ear: Arc<Ear>,
    shared: Arc<Shared>,
    silence: Pin<Box<Sleep>>,
    ending: Pin<Box<dyn Future<Output = ()> + Send>>,
    ended: bool,
    _place: Place,
}

impl ListenStream {
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.ear.events.register(context.waker());
        if self.ear.events.len() == 0 {
            for frame in self.ear.subscriptions().drain() {
                self.ear.events.push(&frame);
            }
        }
        if !self.ended && self.ending.as_mut().poll(context).is_ready() {
            self.ended = true;
            let farewell = self.ear.subscriptions().close(self.shared.server.profile(), Channel::Own);
            for frame in farewell {
                self.ear.events.push(&frame);
            }
        }
        if let Some(message) = self.ear.events.pop() {
            self.silence.as_mut().reset(Instant::now() + self.shared.settings.keep_alive);
            return Poll::Ready(Some(event(&message)));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        if self.silence.as_mut().poll(context).is_ready() {
            self.silence.as_mut().reset(Instant::now() + self.shared.settings.keep_alive);
            let _ = self.silence.as_mut().poll(context);
            return Poll::Ready(Some(comment()));
        }
        Poll::Pending
    }
}
