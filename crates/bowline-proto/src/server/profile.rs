//! What a server says of itself, the same to every client.

use crate::{custom::CustomMethods, replay::Consumed, seal::KeyRing, subscribe::SubscriptionGuard};
use bowline_types::{
    Adapt, CacheScope, DiscoverResult, Implementation, Meta, RawJson, ResultType, Revision,
    ServerCapabilities, meta,
};
use bytes::Bytes;
use std::{
    fmt,
    sync::{Mutex, OnceLock, PoisonError, RwLock},
};

/// A set of revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevisionSet(u8);

impl RevisionSet {
    /// Every revision.
    pub const ALL: Self = Self(0b1_1111);
    /// No revision.
    pub const NONE: Self = Self(0);

    /// Whether `revision` is in the set.
    pub const fn contains(self, revision: Revision) -> bool {
        self.0 & (1 << revision as u8) != 0
    }

    /// The set with `revision` added.
    pub const fn with(self, revision: Revision) -> Self {
        Self(self.0 | (1 << revision as u8))
    }

    /// The revisions, newest first.
    pub fn newest_first(self) -> impl Iterator<Item = Revision> {
        Revision::ALL.into_iter().rev().filter(move |revision| self.contains(*revision))
    }

    /// The newest legacy revision of the set.
    pub fn newest_legacy(self) -> Option<Revision> {
        self.newest_first().find(|revision| *revision <= Revision::V2025_11_25)
    }

    /// Whether the set holds a revision without a handshake.
    pub const fn has_modern(self) -> bool {
        self.contains(Revision::V2026_07_28)
    }
}

impl FromIterator<Revision> for RevisionSet {
    fn from_iter<I: IntoIterator<Item = Revision>>(revisions: I) -> Self {
        revisions.into_iter().fold(Self::NONE, Self::with)
    }
}

/// For how long, and by whom, a result may be cached.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheHint {
    /// For how many milliseconds.
    pub ttl_ms: u64,
    /// By whom.
    pub scope: CacheScope,
}

impl Default for CacheHint {
    /// Not cached, and nobody else's business.
    fn default() -> Self {
        Self { ttl_ms: 0, scope: CacheScope::Private }
    }
}

/// What a server says of itself.
#[derive(Debug)]
pub struct Profile {
    /// Its name and version.
    pub info: Implementation,
    /// What it can do.
    pub capabilities: ServerCapabilities,
    /// The revisions it speaks.
    pub revisions: RevisionSet,
    /// How its discovery may be cached.
    pub discovery: CacheHint,
    /// The methods and notifications that are not part of the protocol.
    pub custom: CustomMethods,
    /// Seals what travels through clients.
    pub keys: KeyRing,
    /// The sealed states used so far.
    pub consumed: Mutex<Consumed>,
    info_member: OnceLock<Bytes>,
    told: RwLock<Told>,
    subscriptions: Guarded,
}

/// Who may hear of which resources.
#[derive(Default)]
struct Guarded(Option<SubscriptionGuard>);

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "guarded" } else { "open" })
    }
}

/// What may change while a server serves.
#[derive(Debug, Default)]
struct Told {
    instructions: Option<String>,
    discover: Option<Bytes>,
}

impl Profile {
    /// A server that speaks every revision and declares nothing yet.
    pub fn new(info: Implementation, keys: KeyRing) -> Self {
        Self {
            info,
            capabilities: ServerCapabilities::default(),
            revisions: RevisionSet::ALL,
            discovery: CacheHint::default(),
            custom: CustomMethods::default(),
            keys,
            consumed: Mutex::default(),
            info_member: OnceLock::new(),
            told: RwLock::default(),
            subscriptions: Guarded::default(),
        }
    }

    /// Decides for each client of which resources it may hear. Default: of all.
    pub fn set_subscription_guard(&mut self, guard: SubscriptionGuard) {
        self.subscriptions = Guarded(Some(guard));
    }

    /// What decides of which resources a client may hear, if anything does.
    pub fn subscription_guard(&self) -> Option<&SubscriptionGuard> {
        self.subscriptions.0.as_ref()
    }

    /// How to use the server, told to the model.
    pub fn instructions(&self) -> Option<String> {
        self.told.read().unwrap_or_else(PoisonError::into_inner).instructions.clone()
    }

    /// Changes how to use the server, for whoever asks from now on.
    pub fn set_instructions(&self, instructions: Option<String>) {
        let mut told = self.told.write().unwrap_or_else(PoisonError::into_inner);
        *told = Told { instructions, discover: None };
    }

    /// The server's name as a member of a result's `_meta`.
    pub(crate) fn info_member(&self) -> &[u8] {
        self.info_member.get_or_init(|| {
            let info = RawJson::of(&self.info).unwrap_or_else(|_| RawJson::empty_object());
            format!("\"{}\":{}", meta::key::SERVER_INFO, info.as_str()).into()
        })
    }

    /// The result of `server/discover`, encoded once.
    pub(crate) fn discover(&self) -> Bytes {
        if let Some(encoded) = &self.told.read().unwrap_or_else(PoisonError::into_inner).discover {
            return encoded.clone();
        }
        let mut told = self.told.write().unwrap_or_else(PoisonError::into_inner);
        let encode = |instructions: Option<String>| -> Bytes {
            let mut capabilities = self.capabilities.clone();
            capabilities.adapt(Revision::V2026_07_28);
            let mut meta = Meta::default();
            if let Ok(info) = RawJson::of(&self.info) {
                meta.insert(meta::key::SERVER_INFO, info);
            }
            let versions: Vec<_> =
                self.revisions.newest_first().map(|revision| revision.as_str().to_owned()).collect();
            let result = DiscoverResult {
                result_type: Some(ResultType::Complete),
                instructions,
                ttl_ms: Some(self.discovery.ttl_ms),
                cache_scope: Some(self.discovery.scope.clone()),
                meta: Some(meta),
                ..DiscoverResult::new(versions, capabilities)
            };
            serde_json::to_vec(&result).unwrap_or_default().into()
        };
        let encoded = encode(told.instructions.clone());
        told.discover.insert(encoded).clone()
    }
}
