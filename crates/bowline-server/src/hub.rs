//! Where changes of a server reach the connections that listen.

use bowline_proto::subscribe::Change;
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// Hears of changes: a connection.
pub trait Listener: Send + Sync {
    /// Notes a change. Must not block.
    fn hear(&self, change: &Change);
}

/// The connections of one server.
#[derive(Default)]
pub(crate) struct Hub {
    listeners: Mutex<Listeners>,
}

#[derive(Default)]
struct Listeners {
    known: Vec<Weak<dyn Listener>>,
    /// At how many the dead ones are looked for.
    crowded: usize,
}

impl Hub {
    /// Adds a connection for as long as it lives.
    pub(crate) fn join(&self, listener: &Arc<dyn Listener>) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        // Only when their number has doubled, so that joining costs the same however many there are.
        if listeners.known.len() >= listeners.crowded {
            listeners.known.retain(|known| known.strong_count() > 0);
            listeners.crowded = (listeners.known.len() * 2).max(64);
        }
        listeners.known.push(Arc::downgrade(listener));
    }

    /// Tells every connection of a change.
    pub(crate) fn publish(&self, change: &Change) {
        // Listeners are told outside the lock, so that one may join or leave meanwhile.
        let listeners: Vec<_> = {
            let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.known.iter().filter_map(Weak::upgrade).collect()
        };
        for listener in listeners {
            listener.hear(change);
        }
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}
