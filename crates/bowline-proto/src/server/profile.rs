//! What a server declares to every client.

use crate::{
    custom::CustomMethods,
    replay::{Consumed, UsedStates},
    seal::KeyRing,
    subscribe::{ResourceScopes, SubscriptionGuard},
};
use bowline_types::{
    Adapt, CacheScope, DiscoverResult, Implementation, Meta, RawJson, ResultType, Revision,
    ServerCapabilities, meta,
};
use bytes::Bytes;
use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock},
};

/// A set of revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevisionSet(u8);

impl RevisionSet {
    /// Every revision.
    pub const ALL: Self = Self(0b1_1111);
    /// No revision.
    pub const NONE: Self = Self(0);

    /// Returns whether `revision` is in the set.
    pub const fn contains(self, revision: Revision) -> bool {
        self.0 & (1 << revision as u8) != 0
    }

    /// Returns the set with `revision` added.
    #[must_use]
    pub const fn with(self, revision: Revision) -> Self {
        Self(self.0 | (1 << revision as u8))
    }

    /// Iterates over the revisions, newest first.
    pub fn newest_first(self) -> impl Iterator<Item = Revision> {
        Revision::ALL.into_iter().rev().filter(move |revision| self.contains(*revision))
    }

    /// Returns the newest legacy revision of the set.
    pub fn newest_legacy(self) -> Option<Revision> {
        self.newest_first().find(|revision| *revision <= Revision::V2025_11_25)
    }

    /// Returns whether the set contains a modern revision.
    pub const fn has_modern(self) -> bool {
        self.contains(Revision::V2026_07_28)
    }
}

impl FromIterator<Revision> for RevisionSet {
    fn from_iter<I: IntoIterator<Item = Revision>>(revisions: I) -> Self {
        revisions.into_iter().fold(Self::NONE, Self::with)
    }
}

/// How long and by whom a result may be cached.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheHint {
    /// Time in milliseconds.
    pub ttl_ms: u64,
    /// Who may cache it.
    pub scope: CacheScope,
}

impl Default for CacheHint {
    /// Not cached, and private.
    fn default() -> Self {
        Self { ttl_ms: 0, scope: CacheScope::Private }
    }
}

/// What a server declares.
#[derive(Debug)]
#[non_exhaustive]
pub struct Profile {
    /// Name and version.
    pub info: Implementation,
    /// Capabilities.
    pub capabilities: ServerCapabilities,
    /// Supported revisions.
    pub revisions: RevisionSet,
    /// Cache hint of `server/discover`.
    pub discovery: CacheHint,
    /// The methods and notifications that are not part of the protocol.
    pub custom: CustomMethods,
    /// Keys for sealed state and cursors.
    pub keys: KeyRing,
    /// Sealed states that were used.
    pub consumed: Mutex<Consumed>,
    used_states: OnceLock<Arc<dyn UsedStates>>,
    info_member: OnceLock<Bytes>,
    changeable: RwLock<Changeable>,
    subscriptions: SubscriptionRules,
}

/// What restricts subscriptions.
#[derive(Default)]
struct SubscriptionRules {
    guard: Option<SubscriptionGuard>,
    scopes: Option<ResourceScopes>,
}

impl fmt::Debug for SubscriptionRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriptionRules")
            .field("is_guarded", &self.guard.is_some())
            .field("has_scopes", &self.scopes.is_some())
            .finish()
    }
}

/// The parts that may change while a server runs.
#[derive(Debug, Default)]
struct Changeable {
    instructions: Option<String>,
    discover: Option<Bytes>,
}

impl Profile {
    /// Creates the profile of a server that supports every revision and has no capabilities.
    pub fn new(info: Implementation, keys: KeyRing) -> Self {
        Self {
            info,
            capabilities: ServerCapabilities::default(),
            revisions: RevisionSet::ALL,
            discovery: CacheHint::default(),
            custom: CustomMethods::default(),
            keys,
            consumed: Mutex::default(),
            used_states: OnceLock::new(),
            info_member: OnceLock::new(),
            changeable: RwLock::default(),
            subscriptions: SubscriptionRules::default(),
        }
    }

    /// Sets who decides, for several processes, which call may use a sealed state. Without it, each process accepts a state
    /// once. False if it was set before; the first one stays.
    pub fn set_used_states(&self, used: Arc<dyn UsedStates>) -> bool {
        self.used_states.set(used).is_ok()
    }

    /// Returns who decides for several processes which call may use a sealed state, if anyone does.
    pub fn used_states(&self) -> Option<&Arc<dyn UsedStates>> {
        self.used_states.get()
    }

    /// Sets the guard that decides which resources a client may subscribe to. Default: all.
    pub fn set_subscription_guard(&mut self, guard: SubscriptionGuard) {
        self.subscriptions.guard = Some(guard);
    }

    /// Returns the guard of subscriptions, if any.
    pub fn subscription_guard(&self) -> Option<&SubscriptionGuard> {
        self.subscriptions.guard.as_ref()
    }

    /// Sets where the scopes of resources are found. Subscriptions over HTTP require them. Default: resources have none.
    pub fn set_resource_scopes(&mut self, scopes: ResourceScopes) {
        self.subscriptions.scopes = Some(scopes);
    }

    /// Returns where the scopes of resources are found, if they have any.
    pub fn resource_scopes(&self) -> Option<&ResourceScopes> {
        self.subscriptions.scopes.as_ref()
    }

    /// Returns the instructions for the model.
    pub fn instructions(&self) -> Option<String> {
        self.changeable.read().unwrap_or_else(PoisonError::into_inner).instructions.clone()
    }

    /// Changes the instructions for clients that connect from now on.
    pub fn set_instructions(&self, instructions: Option<String>) {
        let mut changeable = self.changeable.write().unwrap_or_else(PoisonError::into_inner);
        *changeable = Changeable { instructions, discover: None };
    }

    /// Returns name and version as a member of `_meta`.
    pub(crate) fn info_member(&self) -> &[u8] {
        self.info_member.get_or_init(|| {
            let info = RawJson::of(&self.info).unwrap_or_else(|_| RawJson::empty_object());
            format!("\"{}\":{}", meta::key::SERVER_INFO, info.as_str()).into()
        })
    }

    /// Returns the encoded result of `server/discover`.
    pub(crate) fn discover(&self) -> Bytes {
        if let Some(encoded) = &self.changeable.read().unwrap_or_else(PoisonError::into_inner).discover {
            return encoded.clone();
        }
        let mut changeable = self.changeable.write().unwrap_or_else(PoisonError::into_inner);
        let encode = |instructions: Option<String>| -> Bytes {
            let mut capabilities = self.capabilities.clone();
            capabilities.adapt(Revision::V2026_07_28);
            let mut meta = Meta::default();
            if let Ok(info) = RawJson::of(&self.info) {
                meta.insert(meta::key::SERVER_INFO, info);
            }
            let versions: Vec<_> =
                self.revisions.newest_first().map(|revision| revision.as_str().to_owned()).collect();
            let mut result = DiscoverResult::new(versions, capabilities)
                .result_type(ResultType::Complete)
                .ttl_ms(self.discovery.ttl_ms)
                .cache_scope(self.discovery.scope.clone())
                .meta(meta);
            result.instructions = instructions;
            serde_json::to_vec(&result).unwrap_or_default().into()
        };
        let encoded = encode(changeable.instructions.clone());
        changeable.discover.insert(encoded).clone()
    }
}
