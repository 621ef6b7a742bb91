//! The tools, resources and prompts of a server, in listing order. They can change while the server runs.

use crate::{
    BuildError, Result,
    hub::Hub,
    prompt::{IntoPromptEntry, Prompt},
    resource::{IntoResource, Resource, ResourceSource},
    tool::{IntoTool, ReadyTool},
};
use bowline_proto::{params::Params, scope::Scopes, subscribe::Change};
use bowline_types::Method;
use bytes::Bytes;
use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// How many entries one list may hold.
const MAX_ENTRIES: usize = 10_000;

/// Entries by key, in the order they were added; an entry of the same key replaces the older one in its place.
#[derive(Debug)]
pub(crate) struct Ordered<T> {
    entries: Vec<Arc<T>>,
    index: HashMap<Box<str>, usize>,
}

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), index: HashMap::new() }
    }
}

impl<T> Clone for Ordered<T> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), index: self.index.clone() }
    }
}

impl<T> Ordered<T> {
    pub(crate) fn get(&self, key: &str) -> Option<&Arc<T>> {
        self.entries.get(*self.index.get(key)?)
    }

    pub(crate) fn as_slice(&self) -> &[Arc<T>] {
        &self.entries
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn insert(&mut self, key: &str, entry: impl Into<Arc<T>>) -> Result<(), BuildError> {
        let entry = entry.into();
        if let Some(known) = self.index.get(key).and_then(|position| self.entries.get_mut(*position)) {
            *known = entry;
            return Ok(());
        }
        if self.entries.len() >= MAX_ENTRIES {
            return Err(BuildError::new(format!(
                "cannot add `{key}`: a list has at most {MAX_ENTRIES} entries"
            )));
        }
        self.index.insert(key.into(), self.entries.len());
        self.entries.push(entry);
        Ok(())
    }

    fn remove(&mut self, key: &str) -> bool {
        let Some(position) = self.index.remove(key) else { return false };
        self.entries.remove(position);
        for later in self.index.values_mut().filter(|later| **later > position) {
            *later -= 1;
        }
        true
    }
}

/// The first page of each list, encoded once per revision until the registry changes.
pub(crate) type Encoded = [OnceLock<Bytes>; 5];

/// Everything offered at one moment.
#[derive(Default)]
pub(crate) struct Snapshot {
    pub(crate) tools: Ordered<ReadyTool>,
    pub(crate) prompts: Ordered<Prompt>,
    pub(crate) resources: Ordered<Resource>,
    pub(crate) templates: Ordered<Resource>,
    pub(crate) sources: Vec<Arc<dyn ResourceSource>>,
    pub(crate) tool_list: Encoded,
    pub(crate) prompt_list: Encoded,
    pub(crate) resource_list: Encoded,
    pub(crate) template_list: Encoded,
}

impl Snapshot {
    /// Returns a copy to change.
    fn edit(&self) -> Self {
        Self {
            tools: self.tools.clone(),
            prompts: self.prompts.clone(),
            resources: self.resources.clone(),
            templates: self.templates.clone(),
            sources: self.sources.clone(),
            ..Self::default()
        }
    }

    fn forget_encoded(&mut self) {
        for list in
            [&mut self.tool_list, &mut self.prompt_list, &mut self.resource_list, &mut self.template_list]
        {
            *list = Encoded::default();
        }
    }

    pub(crate) fn completes(&self) -> bool {
        let prompts = self.prompts.as_slice().iter().any(|prompt| !prompt.completers.is_empty());
        prompts || self.templates.as_slice().iter().any(|template| !template.completers.is_empty())
    }

    pub(crate) fn has_resources(&self) -> bool {
        !(self.resources.is_empty() && self.templates.is_empty() && self.sources.is_empty())
    }
}

/// The result of an edit.
trait Edited {
    fn is_change(&self) -> bool;
}

impl Edited for () {
    fn is_change(&self) -> bool {
        true
    }
}

impl Edited for bool {
    fn is_change(&self) -> bool {
        *self
    }
}

impl Edited for Result<(), BuildError> {
    fn is_change(&self) -> bool {
        self.is_ok()
    }
}

/// A handle to change what a server offers while it serves.
///
/// Clients that listen are notified of every change; changes made close together are reported once.
///
/// ```
/// use bowline_server::{Server, Tool};
///
/// let server = Server::new("plugins");
/// let registry = server.registry();
/// // Later, from anywhere:
/// registry.add_tool(Tool::new("hello").handler(|| "hello"))?;
/// registry.remove_tool("hello");
/// # Ok::<(), bowline_server::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Registry {
    shared: Arc<Shared>,
}

struct Shared {
    snapshot: RwLock<Arc<Snapshot>>,
    hub: Arc<Hub>,
    dynamic: AtomicBool,
    /// Whether an entry that declares scopes was ever added. Most servers have none, so that requests look no further.
    has_scopes: AtomicBool,
}

impl Registry {
    pub(crate) fn new() -> Self {
        let shared = Shared {
            snapshot: RwLock::default(),
            hub: Arc::default(),
            dynamic: AtomicBool::new(false),
            has_scopes: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.shared.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.shared.hub
    }

    /// Notes that lists may change.
    pub(crate) fn set_dynamic(&self) {
        self.shared.dynamic.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_dynamic(&self) -> bool {
        self.shared.dynamic.load(Ordering::Relaxed)
    }

    /// Returns the scopes that the items named by a request declare.
    pub(crate) fn declared_scopes(&self, method: Method, params: &Params) -> Option<Arc<Scopes>> {
        if !self.shared.has_scopes.load(Ordering::Acquire) {
            return None;
        }
        self.snapshot().declared_scopes(method, params)
    }

    /// The scopes that the resource with this URI declares.
    pub(crate) fn resource_scopes(&self, uri: &str) -> Option<Arc<Scopes>> {
        if !self.shared.has_scopes.load(Ordering::Acquire) {
            return None;
        }
        self.snapshot().resource_scopes(uri)
    }

    /// Remembers that there are scopes. Called before the entry that declares them can be found.
    fn note_scopes(&self, scopes: Option<&Arc<Scopes>>) {
        if scopes.is_some() {
            self.shared.has_scopes.store(true, Ordering::Release);
        }
    }

    /// Edits the registry, and notifies clients if `edit` reports a change.
    fn change<T: Edited>(&self, change: &Change, edit: impl FnOnce(&mut Snapshot) -> T) -> T {
        let result = {
            let mut current = self.shared.snapshot.write().unwrap_or_else(PoisonError::into_inner);
            // Running calls keep the state they started with; without any, there is nothing to copy.
            if Arc::get_mut(&mut current).is_none() {
                *current = Arc::new(current.edit());
            }
            let next =
                Arc::get_mut(&mut current).expect("the write lock keeps others from sharing the state");
            next.forget_encoded();
            edit(next)
        };
        if result.is_change() {
            self.shared.hub.publish(change);
        }
        result
    }

    /// Adds everything of another registry. Fails at the first name or URI that both have.
    pub(crate) fn merge(&self, other: &Snapshot) -> Result<(), BuildError> {
        fn all<T>(
            list: &mut Ordered<T>,
            other: &Ordered<T>,
            kind: &str,
            key: impl Fn(&T) -> &str,
        ) -> Result<(), BuildError> {
            for entry in other.as_slice() {
                let key = key(entry);
                if list.get(key).is_some() {
                    return Err(BuildError::new(format!("two {kind} are named `{key}`")));
                }
                list.insert(key, Arc::clone(entry))?;
            }
            Ok(())
        }
        for tool in other.tools.as_slice() {
            self.note_scopes(tool.scopes.as_ref());
        }
        for prompt in other.prompts.as_slice() {
            self.note_scopes(prompt.scopes.get());
        }
        for resource in other.resources.as_slice().iter().chain(other.templates.as_slice()) {
            self.note_scopes(resource.scopes.get());
        }
        self.change(&Change::Tools, |next| {
            all(&mut next.tools, &other.tools, "tools", |tool| &tool.name)?;
            all(&mut next.prompts, &other.prompts, "prompts", |prompt| &prompt.definition.name)?;
            all(&mut next.resources, &other.resources, "resources", Resource::uri)?;
            all(&mut next.templates, &other.templates, "resources", Resource::uri)?;
            next.sources.extend(other.sources.iter().cloned());
            Ok(())
        })
    }

    /// Adds a tool, or replaces the one of the same name. Fails when its name or schemas are not usable.
    pub fn add_tool(&self, tool: impl IntoTool) -> Result<(), BuildError> {
        let tool = tool.into_tool().ready()?;
        let name = tool.name.clone();
        self.note_scopes(tool.scopes.as_ref());
        self.change(&Change::Tools, |next| next.tools.insert(&name, tool))
    }

    /// Removes a tool. Returns whether there was one with this name.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.change(&Change::Tools, |next| next.tools.remove(name))
    }

    /// Adds a prompt, or replaces the one of the same name.
    pub fn add_prompt(&self, prompt: impl IntoPromptEntry) -> Result<(), BuildError> {
        let prompt = prompt.into_prompt_entry();
        prompt.check()?;
        let name = prompt.definition.name.clone();
        self.note_scopes(prompt.scopes.get());
        self.change(&Change::Prompts, |next| next.prompts.insert(&name, prompt))
    }

    /// Removes a prompt. Returns whether there was one with this name.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.change(&Change::Prompts, |next| next.prompts.remove(name))
    }

    /// Adds a resource or template, or replaces the one of the same URI.
    pub fn add_resource(&self, resource: impl IntoResource) -> Result<(), BuildError> {
        let resource = resource.into_resource();
        resource.check()?;
        let uri = resource.uri().to_owned();
        self.note_scopes(resource.scopes.get());
        self.change(&Change::Resources, |next| {
            let list = if resource.is_template() { &mut next.templates } else { &mut next.resources };
            list.insert(&uri, resource)
        })
    }

    /// Removes a resource or template. Returns whether there was one with this URI.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.change(&Change::Resources, |next| next.resources.remove(uri) || next.templates.remove(uri))
    }

    /// Adds resources that are listed on request.
    pub fn add_source(&self, source: impl ResourceSource) {
        self.change(&Change::Resources, |next| next.sources.push(Arc::new(source)));
    }

    /// Notifies subscribers that a resource has changed.
    #[doc(alias = "notifications/resources/updated")]
    pub fn resource_updated(&self, uri: impl Into<String>) {
        self.shared.hub.publish(&Change::Resource(uri.into()));
    }

    /// Notifies clients that the list of a [`ResourceSource`] has changed.
    #[doc(alias = "notifications/resources/list_changed")]
    pub fn resources_changed(&self) {
        self.change(&Change::Resources, |_| ());
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let snapshot = self.snapshot();
        f.debug_struct("Registry")
            .field("tools", &snapshot.tools.as_slice().len())
            .field("prompts", &snapshot.prompts.as_slice().len())
            .field("resources", &snapshot.resources.as_slice().len())
            .field("templates", &snapshot.templates.as_slice().len())
            .finish_non_exhaustive()
    }
}
