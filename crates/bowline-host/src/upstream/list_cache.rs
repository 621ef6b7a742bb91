//! Caches the lists of one server.

use super::Instance;
use bowline_client::{Client, ListBudget, ListLimits, RelayWith, Relayed};
use bowline_policy::Definition;
use bowline_types::{
    Capability, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Method,
    Prompt, RawJson, Resource, ResourceTemplate, RpcError, Tool,
};
use serde::de::DeserializeOwned;
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How long a list is fresh if its server announces changes.
const ANNOUNCED_TTL: Duration = Duration::from_secs(300);
/// How long a list is fresh if its server neither announces changes nor sends a TTL.
const DEFAULT_TTL: Duration = Duration::from_secs(5);

/// The lists of one server, as last received.
#[derive(Default)]
pub(crate) struct ListCache {
    pub(crate) tools: CachedList<Tool>,
    pub(crate) prompts: CachedList<Prompt>,
    pub(crate) resources: CachedList<Resource>,
    pub(crate) templates: CachedList<ResourceTemplate>,
    /// The definitions that are pinned, computed once per list.
    definitions: Mutex<Option<Definitions>>,
    /// Why the last attempt to read the lists failed.
    problem: Mutex<Option<String>>,
    /// Whether it was reported that lists are incomplete because the server is starting.
    is_missing: AtomicBool,
}

/// A list of tools and the definition of each.
type Definitions = (Arc<Vec<Tool>>, Arc<Vec<Definition>>);

impl ListCache {
    /// Returns the definitions of these tools, in the same order.
    pub(crate) fn definitions(&self, tools: &Arc<Vec<Tool>>) -> Arc<Vec<Definition>> {
        let mut known = self.definitions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, definitions)) = &*known
            && Arc::ptr_eq(of, tools)
        {
            return Arc::clone(definitions);
        }
        let made: Arc<Vec<_>> = Arc::new(tools.iter().map(Definition::of).collect());
        *known = Some((Arc::clone(tools), Arc::clone(&made)));
        made
    }

    /// Returns why the last attempt to read the lists failed, if it did.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records whether the lists could be read, and returns whether that differs from the last attempt.
    pub(crate) fn set_problem(&self, problem: Option<String>) -> bool {
        self.is_missing.store(false, Ordering::Relaxed);
        let mut known = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let differs = *known != problem;
        *known = problem;
        differs
    }

    /// Records that a list was sent without those of this server. Returns whether it is the first one since they were read.
    pub(crate) fn set_missing(&self) -> bool {
        !self.is_missing.swap(true, Ordering::Relaxed)
    }

    /// Marks all lists as changed.
    pub(crate) fn invalidate(&self) {
        self.tools.invalidate();
        self.prompts.invalidate();
        self.resources.invalidate();
        self.templates.invalidate();
    }

    /// Returns whether no list needs to be read again.
    pub(crate) fn is_fresh(&self) -> bool {
        self.tools.fresh().is_some()
            && self.prompts.fresh().is_some()
            && self.resources.fresh().is_some()
            && self.templates.fresh().is_some()
    }
}

/// One list of a server.
#[derive(Debug)]
pub(crate) struct CachedList<T> {
    entry: Mutex<Option<CacheEntry<T>>>,
    /// Counts the changes that the server announced.
    changes: AtomicU64,
    /// Held while the list is read, so that it is read once.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct CacheEntry<T> {
    items: Arc<Vec<T>>,
    /// The value of `changes` when the list was read.
    changes: u64,
    expires: Instant,
}

impl<T> Default for CachedList<T> {
    fn default() -> Self {
        Self { entry: Mutex::default(), changes: AtomicU64::new(0), reading: tokio::sync::Mutex::new(()) }
    }
}

/// An item of a list.
pub(crate) trait ListItem: DeserializeOwned + Send + Sync + 'static {
    const METHOD: Method;
    const CAPABILITY: Capability;
    const LIST_CHANGED: Capability;

    /// Decodes a page into its items, the cursor of the next page, and the TTL in milliseconds.
    fn page(result: &RawJson) -> serde_json::Result<(Vec<Self>, Option<String>, Option<u64>)>;
}

macro_rules! list_items {
    ($($Item:ident in $Result:ident.$items:ident by $method:ident, $has:ident, $tells:ident;)*) => { $(
        impl ListItem for $Item {
            const METHOD: Method = Method::$method;
            const CAPABILITY: Capability = Capability::$has;
            const LIST_CHANGED: Capability = Capability::$tells;

            fn page(result: &RawJson) -> serde_json::Result<(Vec<Self>, Option<String>, Option<u64>)> {
                let page: $Result = result.decode()?;
                Ok((page.$items, page.next_cursor, page.ttl_ms))
            }
        }
    )* };
}

list_items! {
    Tool in ListToolsResult.tools by ListTools, Tools, ToolsListChanged;
    Prompt in ListPromptsResult.prompts by ListPrompts, Prompts, PromptsListChanged;
    Resource in ListResourcesResult.resources by ListResources, Resources, ResourcesListChanged;
    ResourceTemplate in ListResourceTemplatesResult.resource_templates
        by ListResourceTemplates, Resources, ResourcesListChanged;
}

impl<T: ListItem> CachedList<T> {
    /// Marks the list as changed.
    pub(crate) fn invalidate(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the list as last received, however old.
    pub(crate) fn last_known(&self) -> Option<Arc<Vec<T>>> {
        let entry = self.entry.lock().unwrap_or_else(PoisonError::into_inner);
        entry.as_ref().map(|entry| Arc::clone(&entry.items))
    }

    /// Returns whether the server announced a change since the list was read.
    pub(crate) fn has_changed(&self) -> bool {
        let entry = self.entry.lock().unwrap_or_else(PoisonError::into_inner);
        entry.as_ref().is_none_or(|entry| entry.changes != self.changes.load(Ordering::Relaxed))
    }

    /// Returns the list if it is fresh.
    pub(crate) fn fresh(&self) -> Option<Arc<Vec<T>>> {
        let entry = self.entry.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entry.as_ref()?;
        let is_fresh =
            entry.changes == self.changes.load(Ordering::Relaxed) && Instant::now() < entry.expires;
        is_fresh.then(|| Arc::clone(&entry.items))
    }

    /// Returns the list, reading it from the server unless it is fresh.
    pub(crate) async fn get(&self, instance: &Arc<Instance>) -> Result<Arc<Vec<T>>, RpcError> {
        if let Some(items) = self.fresh() {
            return Ok(items);
        }
        let _reading = self.reading.lock().await;
        if let Some(items) = self.fresh() {
            return Ok(items);
        }
        let client = instance.client().await?;
        // Loaded after the start, which invalidates the lists of an earlier process.
        let changes = self.changes.load(Ordering::Relaxed);
        let (items, ttl) = if client.server().capabilities.has(T::CAPABILITY) {
            read_all::<T>(&client, instance.spec.list_limits).await?
        } else {
            (Vec::new(), None)
        };
        // A server that announces changes is trusted beyond its TTL, but not forever: a notification can be lost.
        let announces = client.server().capabilities.has(T::LIST_CHANGED);
        let least = if announces { ANNOUNCED_TTL } else { DEFAULT_TTL };
        let fresh_for = ttl.map_or(least, |ttl| Duration::from_millis(ttl).clamp(least, MAX_TTL));
        let items = Arc::new(items);
        let entry = CacheEntry { items: Arc::clone(&items), changes, expires: Instant::now() + fresh_for };
        *self.entry.lock().unwrap_or_else(PoisonError::into_inner) = Some(entry);
        Ok(items)
    }
}

/// The longest time that a list counts as fresh.
const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

async fn read_all<T: ListItem>(
    client: &Client,
    limits: ListLimits,
) -> Result<(Vec<T>, Option<u64>), RpcError> {
    let malformed =
        |reason: String| RpcError::internal(format!("invalid result of `{}`: {reason}", T::METHOD));
    let refused = |error: bowline_client::Error| RpcError::internal(error.to_string());
    let mut budget = ListBudget::new(limits);
    let (mut items, mut shortest, mut cursor) = (Vec::new(), None, None::<String>);
    loop {
        let params = match &cursor {
            Some(cursor) => serde_json::json!({ "cursor": cursor }).into(),
            None => RawJson::empty_object(),
        };
        let relayed = client.relay(T::METHOD, params, RelayWith::default()).await;
        let result = match relayed {
            Ok(Relayed::Complete(result)) => result,
            Ok(Relayed::InputRequired { .. } | Relayed::Task(_)) => {
                return Err(malformed("lists must not request input".into()));
            }
            // Many servers declare resources but do not implement templates.
            Err(error) if error.as_rpc().is_some_and(|error| error.code == METHOD_NOT_FOUND) => break,
            Err(error) => return Err(RpcError::internal(error.to_string())),
        };
        budget.take(T::METHOD, &result).map_err(refused)?;
        let (page, next, ttl) = T::page(&result).map_err(|error| malformed(error.to_string()))?;
        items.extend(page);
        shortest = match (shortest, ttl) {
            (Some(one), Some(other)) => Some(std::cmp::min::<u64>(one, other)),
            (one, other) => one.or(other),
        };
        match next {
            None => break,
            Some(next) => {
                budget.follow(&next).map_err(refused)?;
                cursor = Some(next);
            }
        }
    }
    Ok((items, shortest))
}

const METHOD_NOT_FOUND: i64 = bowline_types::error_code::METHOD_NOT_FOUND;
