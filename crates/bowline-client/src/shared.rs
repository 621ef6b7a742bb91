//! What every connection of one client shares.

use crate::{
    builder::{ClientBuilder, Settings},
    cache::Cache,
    handlers::Handlers,
    subscriptions::Views,
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

/// How many lines of noise are kept, and how much of each.
const NOISE_LINES: usize = 10;
const NOISE_BYTES: usize = 200;

/// What every connection of one client shares.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) profile: Arc<ClientProfile>,
    pub(crate) settings: Settings,
    pub(crate) handlers: Handlers,
    pub(crate) cache: Cache,
    pub(crate) tools: KnownTools,
    pub(crate) views: Views,
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

    /// Traces, once per client, that a feature on its way out is in use.
    pub(crate) fn warn_deprecated(&self, feature: &'static str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(feature, "the server uses a feature that 2026-07-28 deprecates");
        }
    }
}

/// What came in and was no message.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Noise {
    /// How often it happened.
    pub count: u64,
    /// The beginnings of the last few, oldest first.
    pub last: VecDeque<String>,
}

/// Tells the one task that watches deadlines when it has to look again.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    /// When the task will look next, if at all.
    armed: Mutex<Option<Instant>>,
    wake: Notify,
}

impl Timer {
    /// A deadline was added. Wakes the task only when it comes before the one waited for.
    pub(crate) fn add(&self, deadline: Instant) {
        let armed = lock(&self.armed);
        if armed.is_none_or(|armed| deadline < armed) {
            self.wake.notify_one();
        }
    }

    /// The connection is another one.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    pub(crate) fn arm(&self, deadline: Option<Instant>) {
        *lock(&self.armed) = deadline;
    }

    /// Completes at `deadline`, or earlier when there is a reason to look again.
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

/// The time, as tests may have stopped it.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Locks; a panic elsewhere leaves nothing half done under any of these locks.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A random number, good enough to keep clients from coming back all at once.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}
