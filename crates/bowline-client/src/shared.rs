//! State that all connections of a client share.

use crate::{
    builder::{ClientBuilder, Settings},
    cache::Cache,
    handlers::Handlers,
    subscriptions::Views,
    tasks::Watches,
    tools::KnownTools,
};
use bowline_proto::client::ClientProfile;
use bowline_types::{LoggingLevel, Root};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};
use tokio::sync::Notify;

/// The number of lines of noise that are kept, and their length.
const NOISE_LINES: usize = 10;
const NOISE_BYTES: usize = 200;

/// State that all connections of a client share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) profile: Arc<ClientProfile>,
    pub(crate) settings: Settings,
    pub(crate) handlers: Handlers,
    pub(crate) cache: Cache,
    pub(crate) tools: KnownTools,
    pub(crate) views: Views,
    /// The tasks that somebody waits for.
    pub(crate) tasks: Arc<Watches>,
    pub(crate) timer: Timer,
    roots: Mutex<Vec<Root>>,
    log_level: Mutex<Option<LoggingLevel>>,
    noise: Mutex<Noise>,
    warned: AtomicBool,
}

impl Shared {
    pub(crate) fn new(builder: ClientBuilder, profile: ClientProfile) -> Self {
        Self {
            profile: Arc::new(profile),
            settings: builder.settings,
            handlers: builder.handlers,
            cache: Cache::default(),
            tools: KnownTools::default(),
            views: Views::default(),
            tasks: Arc::default(),
            timer: Timer::default(),
            roots: Mutex::new(builder.roots.unwrap_or_default()),
            log_level: Mutex::new(builder.log_level),
            noise: Mutex::default(),
            warned: AtomicBool::new(false),
        }
    }

    pub(crate) fn roots(&self) -> Vec<Root> {
        lock(&self.roots).clone()
    }

    pub(crate) fn set_roots(&self, roots: Vec<Root>) {
        *lock(&self.roots) = roots;
    }

    pub(crate) fn log_level(&self) -> Option<LoggingLevel> {
        *lock(&self.log_level)
    }

    pub(crate) fn set_log_level(&self, level: LoggingLevel) {
        *lock(&self.log_level) = Some(level);
    }

    pub(crate) fn noise(&self) -> Noise {
        lock(&self.noise).clone()
    }

    pub(crate) fn note_noise(&self, sample: &[u8]) {
        let mut text = String::from_utf8_lossy(sample.get(..NOISE_BYTES).unwrap_or(sample)).into_owned();
        text.retain(|character| !character.is_control());
        tracing::debug!(line = text, "skipped an invalid message");
        let mut noise = lock(&self.noise);
        noise.count += 1;
        if noise.last.len() == NOISE_LINES {
            noise.last.pop_front();
        }
        noise.last.push_back(text);
    }

    /// Logs, once per client, that a deprecated feature is used.
    pub(crate) fn warn_deprecated(&self, feature: &'static str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(feature, "the server uses a feature that 2026-07-28 deprecates");
        }
    }
}

/// Received data that was not a message.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Noise {
    /// The number of occurrences.
    pub count: u64,
    /// The start of the last ones, oldest first.
    pub last: VecDeque<String>,
}

/// Wakes the task that watches deadlines.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    /// The time of the next check, if there is one.
    armed: Mutex<Option<Instant>>,
    wake: Notify,
}

impl Timer {
    /// Adds a deadline. Wakes the task only if it is earlier than the current one.
    pub(crate) fn add(&self, deadline: Instant) {
        let armed = lock(&self.armed);
        if armed.is_none_or(|armed| deadline < armed) {
            self.wake.notify_one();
        }
    }

    /// Wakes the task because the connection changed.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    pub(crate) fn arm(&self, deadline: Option<Instant>) {
        *lock(&self.armed) = deadline;
    }

    /// Waits until `deadline`, or until woken.
    pub(crate) async fn wait(&self, deadline: Option<Instant>) {
        match deadline {
            Some(deadline) => tokio::select! {
                () = tokio::time::sleep_until(deadline.into()) => {}
                () = self.wake.notified() => {}
            },
            None => self.wake.notified().await,
        }
    }
}

/// Returns the time, which tests can pause.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Locks a mutex. A panic leaves no inconsistent state under any of these locks.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a random number, to spread the reconnects of many clients.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}
