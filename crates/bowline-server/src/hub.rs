//! Where changes of a server reach the connections that listen.

use bowline_proto::subscribe::Change;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};
use tokio::sync::watch;

/// Receives notifications of changes: a connection.
pub trait Listener: Send + Sync {
    /// Records a change. Must not block.
    fn on_change(&self, change: &Change);
}

/// The connections of one server.
#[derive(Default)]
pub(crate) struct Hub {
    listeners: Mutex<Listeners>,
    /// The number of connections that are subscribed to each resource.
    wanted: Mutex<BTreeMap<String, usize>>,
    /// Made when somebody looks, which servers of their own resources never do.
    watch: OnceLock<watch::Sender<Arc<BTreeSet<String>>>>,
    followers: Mutex<Vec<Follower>>,
}

/// Receives the set of subscribed resources.
pub(crate) type Follower = Box<dyn Fn(&BTreeSet<String>, &Updates) + Send + Sync>;

/// Notifies the subscribers of a server that a resource has changed. See
/// [`Server::on_subscriptions`](crate::Server::on_subscriptions).
#[derive(Clone)]
pub struct Updates {
    hub: Weak<Hub>,
}

impl Updates {
    /// Notifies subscribers that a resource has changed. Does nothing if the server is gone.
    pub fn resource_updated(&self, uri: impl Into<String>) {
        if let Some(hub) = self.hub.upgrade() {
            hub.publish(&Change::Resource(uri.into()));
        }
    }
}

impl fmt::Debug for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updates").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Listeners {
    known: Vec<Weak<dyn Listener>>,
    /// The number of entries that may be dead.
    disconnected: usize,
    /// The number of entries at which dead ones are removed.
    clean_at: usize,
}

impl Listeners {
    /// Removes entries of dropped listeners, whose memory is not freed before.
    fn remove_dropped(&mut self) {
        self.known.retain(|known| known.strong_count() > 0);
        let alive = self.known.len();
        self.known.shrink_to(alive * 2);
        (self.disconnected, self.clean_at) = (0, (alive * 2).max(64));
    }
}

impl Hub {
    /// Adds a connection until it is dropped.
    pub(crate) fn join(&self, listener: &Arc<dyn Listener>) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        // Only when their number has doubled, so that joining costs the same however many there are.
        if listeners.known.len() >= listeners.clean_at {
            listeners.remove_dropped();
        }
        listeners.known.push(Arc::downgrade(listener));
    }

    /// Records that a connection was dropped.
    pub(crate) fn leave(&self) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.disconnected += 1;
        // Cleans up only when half of them are gone, for the same reason.
        if listeners.disconnected * 2 >= listeners.known.len() {
            listeners.remove_dropped();
        }
    }

    /// Returns the resources that any connection has subscribed to.
    pub(crate) fn wanted(&self) -> watch::Receiver<Arc<BTreeSet<String>>> {
        let watch = self.watch.get_or_init(|| watch::Sender::new(Arc::default()));
        self.publish_wanted(&self.wanted.lock().unwrap_or_else(PoisonError::into_inner));
        watch.subscribe()
    }

    /// Calls `follower` with the set of subscribed resources whenever it changes.
    pub(crate) fn follow(&self, follower: Follower) {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner).push(follower);
    }

    /// Replaces the subscriptions of one connection.
    pub(crate) fn replace_subscriptions(self: &Arc<Self>, before: &BTreeSet<String>, now: &BTreeSet<String>) {
        if before == now {
            return;
        }
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        for uri in now.difference(before) {
            *wanted.entry(uri.clone()).or_default() += 1;
        }
        for uri in before.difference(now) {
            if let Some(count) = wanted.get_mut(uri) {
                *count -= 1;
                if *count == 0 {
                    wanted.remove(uri);
                }
            }
        }
        // Called under the lock, so that the last call has the last set.
        self.publish_wanted(&wanted);
        let followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        if !followers.is_empty() {
            let (all, updates) = (wanted.keys().cloned().collect(), Updates { hub: Arc::downgrade(self) });
            followers.iter().for_each(|follower| follower(&all, &updates));
        }
    }

    fn publish_wanted(&self, wanted: &BTreeMap<String, usize>) {
        if let Some(watch) = self.watch.get() {
            watch.send_replace(Arc::new(wanted.keys().cloned().collect()));
        }
    }

    /// Notifies every connection of a change.
    pub(crate) fn publish(&self, change: &Change) {
        // Listeners are called outside the lock, so that one may join or leave in the meantime.
        let listeners: Vec<_> = {
            let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.known.iter().filter_map(Weak::upgrade).collect()
        };
        for listener in listeners {
            listener.on_change(change);
        }
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records the changes it receives.
    #[derive(Default)]
    struct Recorder(Mutex<Vec<String>>);

    impl Listener for Recorder {
        fn on_change(&self, change: &Change) {
            self.0.lock().unwrap().push(format!("{change:?}"));
        }
    }

    #[test]
    fn a_subscription_listener_sees_all_filters_and_can_notify() {
        let hub = Arc::new(Hub::default());
        let (note, calls) = std::sync::mpsc::channel();
        hub.follow(Box::new(move |all, updates| note.send((all.clone(), updates.clone())).unwrap()));
        let set = |uris: &[&str]| uris.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        // One client subscribes to both, another to the second; then the first leaves.
        hub.replace_subscriptions(&set(&[]), &set(&["a:1", "a:2"]));
        hub.replace_subscriptions(&set(&[]), &set(&["a:2"]));
        hub.replace_subscriptions(&set(&["a:1", "a:2"]), &set(&[]));
        let calls: Vec<_> = calls.try_iter().collect();
        let all: Vec<_> = calls.iter().map(|(all, _)| all.clone()).collect();
        assert_eq!(all, [set(&["a:1", "a:2"]), set(&["a:1", "a:2"]), set(&["a:2"])]);

        let recorder = Arc::new(Recorder::default());
        let listener: Arc<dyn Listener> = recorder.clone();
        hub.join(&listener);
        let (_, updates) = &calls[0];
        updates.resource_updated("a:2");
        assert_eq!(*recorder.0.lock().unwrap(), [r#"Resource("a:2")"#]);
        drop(hub);
        updates.resource_updated("a:2");
        assert_eq!(recorder.0.lock().unwrap().len(), 1, "nobody is notified of a server that is gone");
    }

    struct Member(Arc<Hub>);

    impl Listener for Member {
        fn on_change(&self, _: &Change) {}
    }

    impl Drop for Member {
        fn drop(&mut self) {
            self.0.leave();
        }
    }

    #[test]
    fn nothing_is_kept_of_disconnected_clients() {
        let hub = Arc::new(Hub::default());
        let join = |_| {
            let member: Arc<dyn Listener> = Arc::new(Member(Arc::clone(&hub)));
            hub.join(&member);
            member
        };
        let members: Vec<_> = (0..1000).map(join).collect();
        let known = || hub.listeners.lock().unwrap().known.len();
        assert_eq!(known(), 1000);
        drop(members);
        assert_eq!(known(), 0);
    }
}
