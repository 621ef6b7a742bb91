//! What one server offers, as it was last listed.

use crate::upstream::Instance;
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
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// For how long a list is good whose server tells when it changes.
const TOLD_TTL: Duration = Duration::from_secs(300);
/// For how long a list is good whose server says nothing of that and does not tell when it changes.
const DEFAULT_TTL: Duration = Duration::from_secs(5);

/// The lists of one server.
#[derive(Default)]
pub(crate) struct Shelf {
    pub(crate) tools: Slot<Tool>,
    pub(crate) prompts: Slot<Prompt>,
    pub(crate) resources: Slot<Resource>,
    pub(crate) templates: Slot<ResourceTemplate>,
    /// What is pinned of the tools, made once per list.
    definitions: Mutex<Option<Defined>>,
    /// Why the lists could not be read when they were last asked for.
    problem: Mutex<Option<String>>,
}

/// A list of tools, and what is pinned of each.
type Defined = (Arc<Vec<Tool>>, Arc<Vec<Definition>>);

impl Shelf {
    /// What is pinned of these tools, in their order.
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

    /// Why the lists could not be read when they were last asked for, if they could not.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes whether the lists could be read.
    pub(crate) fn note(&self, problem: Option<String>) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// Everything has to be listed anew.
    pub(crate) fn forget(&self) {
        self.tools.forget();
        self.prompts.forget();
        self.resources.forget();
        self.templates.forget();
    }
}

/// One list.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    kept: Mutex<Option<Kept<T>>>,
    /// Counts how often the list was told to have changed.
    changes: AtomicU64,
    /// Held while it is listed, so that it is listed once.
    listing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Kept<T> {
    items: Arc<Vec<T>>,
    changes: u64,
    until: Instant,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { kept: Mutex::default(), changes: AtomicU64::new(0), listing: tokio::sync::Mutex::new(()) }
    }
}

/// An entry of a list.
pub(crate) trait Listed: DeserializeOwned + Send + Sync + 'static {
    const METHOD: Method;
    const HAS: Capability;
    const TELLS: Capability;

    /// The entries of a page, the cursor of the next one, and for how long they are good.
    fn page(result: &RawJson) -> serde_json::Result<(Vec<Self>, Option<String>, Option<u64>)>;
}

macro_rules! listed {
    ($($Item:ident in $Result:ident.$items:ident by $method:ident, $has:ident, $tells:ident;)*) => { $(
        impl Listed for $Item {
            const METHOD: Method = Method::$method;
            const HAS: Capability = Capability::$has;
            const TELLS: Capability = Capability::$tells;

            fn page(result: &RawJson) -> serde_json::Result<(Vec<Self>, Option<String>, Option<u64>)> {
                let page: $Result = result.decode()?;
                Ok((page.$items, page.next_cursor, page.ttl_ms))
            }
        }
    )* };
}

listed! {
    Tool in ListToolsResult.tools by ListTools, Tools, ToolsListChanged;
    Prompt in ListPromptsResult.prompts by ListPrompts, Prompts, PromptsListChanged;
    Resource in ListResourcesResult.resources by ListResources, Resources, ResourcesListChanged;
    ResourceTemplate in ListResourceTemplatesResult.resource_templates
        by ListResourceTemplates, Resources, ResourcesListChanged;
}

impl<T: Listed> Slot<T> {
    /// The list has changed.
    pub(crate) fn forget(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// The list as it was last seen, however long ago.
    pub(crate) fn last(&self) -> Option<Arc<Vec<T>>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().map(|kept| Arc::clone(&kept.items))
    }

    /// Whether the list has changed since it was last seen, as far as its server told.
    pub(crate) fn has_turned(&self) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().is_none_or(|kept| kept.changes != self.changes.load(Ordering::Relaxed))
    }

    /// The list, if it is still good.
    pub(crate) fn fresh(&self) -> Option<Arc<Vec<T>>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.as_ref()?;
        let good = kept.changes == self.changes.load(Ordering::Relaxed) && Instant::now() < kept.until;
        good.then(|| Arc::clone(&kept.items))
    }

    /// The list, asked for where it is not good any more.
    pub(crate) async fn get(&self, instance: &Arc<Instance>) -> Result<Arc<Vec<T>>, RpcError> {
        if let Some(items) = self.fresh() {
            return Ok(items);
        }
        let _listing = self.listing.lock().await;
        if let Some(items) = self.fresh() {
            return Ok(items);
        }
        let client = instance.client().await?;
        // Behind the start, which forgets what an earlier process had.
        let changes = self.changes.load(Ordering::Relaxed);
        let (items, ttl) = if client.server().capabilities.has(T::HAS) {
            all::<T>(&client, instance.spec.lists).await?
        } else {
            (Vec::new(), None)
        };
        // Who tells of changes is believed for longer than it says, but not for ever: news can be lost.
        let tells = client.server().capabilities.has(T::TELLS);
        let least = if tells { TOLD_TTL } else { DEFAULT_TTL };
        let good = ttl.map_or(least, |ttl| Duration::from_millis(ttl).clamp(least, MAX_TTL));
        let items = Arc::new(items);
        let kept = Kept { items: Arc::clone(&items), changes, until: Instant::now() + good };
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
        Ok(items)
    }
}

/// As long as a list may be good without being asked for again.
const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

async fn all<T: Listed>(client: &Client, limits: ListLimits) -> Result<(Vec<T>, Option<u64>), RpcError> {
    let malformed = |reason: String| RpcError::internal(format!("the result of `{}`: {reason}", T::METHOD));
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
            Ok(Relayed::InputRequired { .. }) => return Err(malformed("a list cannot ask".into())),
            // Many servers declare resources and have no templates.
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
