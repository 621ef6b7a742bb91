//! The listeners of changes, and the routes of modern subscriptions.

mod listen;
mod managed;
mod resubscribe;

pub use listen::Listen;
pub(crate) use listen::{Earlier, reopen, start};
pub(crate) use managed::Managed;
pub(crate) use resubscribe::resubscribe;

use crate::{Error, Result, connection::InFlight, shared::lock};
use bowline_proto::{subscribe::Change, uri};
use bowline_types::SubscriptionFilter;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};
use tokio::sync::{Mutex as AsyncMutex, Notify, oneshot};

/// The maximum number of unread changes; further ones are dropped.
const MAX_WAITING: usize = 1000;

/// All listeners, and the subscriptions with legacy servers.
#[derive(Debug, Default)]
pub(crate) struct Views {
    all: Mutex<Vec<Arc<View>>>,
    /// The number of listeners per resource of a legacy server.
    pub(crate) subscribed: Mutex<BTreeMap<String, usize>>,
    /// The subscription that `subscribe` and the notification handler share in the modern revision.
    pub(crate) managed: AsyncMutex<Managed>,
    /// Subscriptions that were lost while the connection is still open.
    lost: Mutex<Lost>,
    /// Wakes the task that reopens them.
    broke: Notify,
}

#[derive(Debug, Default)]
struct Lost {
    views: Vec<Arc<View>>,
    managed: bool,
}

impl Views {
    fn add(&self, view: &Arc<View>) {
        lock(&self.all).push(Arc::clone(view));
    }

    fn remove(&self, view: &Arc<View>) {
        lock(&self.all).retain(|known| !Arc::ptr_eq(known, view));
    }

    pub(crate) fn all(&self) -> Vec<Arc<View>> {
        lock(&self.all).clone()
    }

    /// Records a lost subscription.
    fn add_lost(&self, target: &Target) {
        let mut lost = lock(&self.lost);
        match target {
            Target::View(view) => lost.views.push(Arc::clone(view)),
            Target::Handler(_) => lost.managed = true,
        }
        drop(lost);
        self.broke.notify_one();
    }

    /// Passes on a change that a legacy server reported.
    pub(crate) fn on_change(&self, change: &Change) {
        for view in self.all() {
            view.on_change(change);
        }
    }

    /// Reports everything as changed, because notifications may have been missed.
    pub(crate) fn report_all_changed(&self) {
        for view in self.all() {
            view.report_all_changed();
        }
    }

    /// Ends all listeners.
    pub(crate) fn end(&self, reason: &Error) {
        for view in self.all() {
            view.end(Some(reason.clone()));
        }
    }
}

/// The filter of one listener, and its unread changes.
#[derive(Debug)]
pub(crate) struct View {
    filter: SubscriptionFilter,
    queue: Mutex<Queue>,
    /// Keeps a modern subscription open.
    lease: Mutex<Option<InFlight>>,
}

#[derive(Debug, Default)]
struct Queue {
    changes: VecDeque<Change>,
    ended: Option<End>,
    waker: Option<Waker>,
}

/// How a subscription ended.
#[derive(Debug)]
enum End {
    InOrder,
    Failed(Error),
}

impl View {
    fn new(filter: SubscriptionFilter) -> Self {
        Self { filter, queue: Mutex::default(), lease: Mutex::default() }
    }

    /// Adds a change, unless it is already unread.
    fn on_change(&self, change: &Change) {
        if !covers(&self.filter, change) {
            return;
        }
        let mut queue = lock(&self.queue);
        if queue.changes.contains(change) {
            return;
        }
        if queue.changes.len() >= MAX_WAITING {
            tracing::warn!("a listener is too slow; dropped a change");
            return;
        }
        queue.changes.push_back(change.clone());
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Reports everything in the filter as changed, after a reconnect.
    fn report_all_changed(&self) {
        let lists = [Change::Tools, Change::Prompts, Change::Resources];
        let uris = self.filter.resource_subscriptions.iter().flatten().cloned().map(Change::Resource);
        lists.into_iter().chain(uris).for_each(|change| self.on_change(&change));
    }

    fn end(&self, reason: Option<Error>) {
        let waker = {
            let mut queue = lock(&self.queue);
            queue.ended.get_or_insert(reason.map_or(End::InOrder, End::Failed));
            queue.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Change>> {
        let mut queue = lock(&self.queue);
        if let Some(change) = queue.changes.pop_front() {
            return Poll::Ready(Some(change));
        }
        if queue.ended.is_some() {
            return Poll::Ready(None);
        }
        queue.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

fn covers(filter: &SubscriptionFilter, change: &Change) -> bool {
    match change {
        Change::Tools => filter.tools_list_changed == Some(true),
        Change::Prompts => filter.prompts_list_changed == Some(true),
        Change::Resources => filter.resources_list_changed == Some(true),
        Change::Resource(changed) => {
            filter.resource_subscriptions.iter().flatten().any(|known| uri::is_sub_resource(known, changed))
        }
    }
}

/// The destination of the messages of one subscription.
#[derive(Debug)]
pub(crate) struct Route {
    to: Target,
    granted: Mutex<Option<oneshot::Sender<Result<SubscriptionFilter>>>>,
}

#[derive(Debug)]
enum Target {
    /// A single listener.
    View(Arc<View>),
    /// The notification handler, for changes that match the filter.
    Handler(SubscriptionFilter),
}

impl Route {
    fn new(to: Target) -> (Arc<Self>, oneshot::Receiver<Result<SubscriptionFilter>>) {
        let (sender, receiver) = oneshot::channel();
        (Arc::new(Self { to, granted: Mutex::new(Some(sender)) }), receiver)
    }

    /// Records what the server granted. Returns `false` if it was already recorded.
    pub(crate) fn grant(&self, granted: SubscriptionFilter) -> bool {
        let sender = lock(&self.granted).take();
        // The caller may be gone.
        sender.map(|sender| drop(sender.send(Ok(granted)))).is_some()
    }

    /// Handles a change. Returns `true` if the notification handler should be called.
    pub(crate) fn on_change(&self, change: &Change) -> bool {
        match &self.to {
            Target::View(view) => {
                view.on_change(change);
                false
            }
            Target::Handler(filter) => covers(filter, change),
        }
    }

    /// Ends the subscription, with or without an error.
    pub(crate) fn finish(&self, result: Result<()>) {
        if let Some(sender) = lock(&self.granted).take() {
            let early = || Error::malformed("`subscriptions/listen`", "it ended before it was acknowledged");
            drop(sender.send(Err(result.err().unwrap_or_else(early))));
            return;
        }
        if let Target::View(view) = &self.to {
            view.end(result.err());
        }
    }

    /// Handles a lost stream. The granted part is subscribed again.
    pub(crate) fn stream_lost(&self, reason: &Error, views: &Views) {
        match lock(&self.granted).take() {
            Some(sender) => drop(sender.send(Err(reason.clone()))),
            None => views.add_lost(&self.to),
        }
    }

    /// Handles a lost connection. The granted part is subscribed again on the next one.
    pub(crate) fn interrupt(&self, reason: &Error) {
        if let Some(sender) = lock(&self.granted).take() {
            drop(sender.send(Err(reason.clone())));
        }
    }
}
