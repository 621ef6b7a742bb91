//! The tools, prompts and resources of all servers as one caller sees them, and the server that each belongs to.

use super::{names, uris};
use crate::upstream::{Instance, ServerTasks};
use bowline_policy::Definition;
use bowline_proto::uri::UriTemplate;
use bowline_search::{Index, MetaTool, Source, estimate_tokens};
use bowline_types::{Prompt, RawJson, Resource, ResourceTemplate, TaskSupport, Tool, ToolExecution};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::{Arc, OnceLock},
};

/// The lists of one server.
pub(crate) struct ServerLists {
    pub(crate) instance: Arc<Instance>,
    pub(crate) tools: Arc<Vec<Tool>>,
    /// The definition of each tool, which is pinned.
    pub(crate) definitions: Arc<Vec<Definition>>,
    pub(crate) prompts: Arc<Vec<Prompt>>,
    pub(crate) resources: Arc<Vec<Resource>>,
    pub(crate) templates: Arc<Vec<ResourceTemplate>>,
}

impl ServerLists {
    /// Returns the lists that a server last sent. `None` if it never listed its tools.
    pub(crate) fn last_known(instance: &Arc<Instance>) -> Option<Self> {
        let cache = &instance.lists;
        let tools = cache.tools.last_known()?;
        Some(Self {
            instance: Arc::clone(instance),
            definitions: cache.definitions(&tools),
            tools,
            prompts: cache.prompts.last_known().unwrap_or_default(),
            resources: cache.resources.last_known().unwrap_or_default(),
            templates: cache.templates.last_known().unwrap_or_default(),
        })
    }
}

/// An entry of the catalog.
pub(crate) struct Entry<T> {
    pub(crate) instance: Arc<Instance>,
    /// The name or URI at its server.
    pub(crate) original: String,
    /// What callers see.
    pub(crate) shown: T,
}

/// A tool with its definition as its server sent it.
pub(crate) struct ToolEntry {
    pub(crate) entry: Entry<Tool>,
    pub(crate) definition: Definition,
    pub(crate) tasks: ToolTasks,
}

/// Whether calls of a tool become tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolTasks {
    /// Never.
    None,
    /// Its server does not make tasks, but the host does.
    Hosted,
    /// Its server, of 2026-07-28, decides for each call.
    ServerDecides,
    /// Its server, of 2025-11-25, lets callers decide.
    Optional,
    /// Its server, of 2025-11-25, runs it only as a task.
    Required,
}

impl ToolTasks {
    fn of(server: ServerTasks, execution: Option<&ToolExecution>, is_hosted: bool) -> Self {
        let support = execution.and_then(|execution| execution.task_support.as_ref());
        match (server, support) {
            (ServerTasks::Extension, _) => Self::ServerDecides,
            (ServerTasks::V2025_11_25, Some(TaskSupport::Required)) => Self::Required,
            (ServerTasks::V2025_11_25, Some(TaskSupport::Optional)) => Self::Optional,
            (ServerTasks::V2025_11_25 | ServerTasks::None, _) if is_hosted => Self::Hosted,
            (ServerTasks::V2025_11_25 | ServerTasks::None, _) => Self::None,
        }
    }
}

/// URIs that more than one server uses. They get a prefix, so that no server takes over what belongs to another.
struct Shared<'a> {
    resources: HashSet<&'a str>,
    templates: HashSet<&'a str>,
}

impl<'a> Shared<'a> {
    fn of(lists: &'a [ServerLists]) -> Self {
        let resources =
            |lists: &'a ServerLists| lists.resources.iter().map(|resource| resource.uri.as_str()).collect();
        let templates = |lists: &'a ServerLists| {
            lists.templates.iter().map(|template| template.uri_template.as_str()).collect()
        };
        Self { resources: duplicates(lists, resources), templates: duplicates(lists, templates) }
    }
}

/// Returns the names that occur in the lists of more than one server.
fn duplicates<'a>(
    lists: &'a [ServerLists],
    names: impl Fn(&'a ServerLists) -> HashSet<&'a str>,
) -> HashSet<&'a str> {
    let mut seen = HashSet::new();
    lists.iter().flat_map(names).filter(|name| !seen.insert(*name)).collect()
}

/// The tools, prompts and resources of all servers.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) tools: Vec<ToolEntry>,
    tool_index: HashMap<String, usize>,
    pub(crate) prompts: Vec<Entry<Prompt>>,
    prompt_index: HashMap<String, usize>,
    pub(crate) resources: Vec<Entry<Resource>>,
    resource_index: HashMap<String, usize>,
    pub(crate) templates: Vec<(Entry<ResourceTemplate>, Option<UriTemplate>)>,
    /// The URIs of each server that are shown with a prefix, by instance id.
    prefixed: HashMap<u64, HashSet<String>>,
    /// The same for templates.
    prefixed_templates: Vec<(u64, UriTemplate)>,
    /// Names that collided and had to be made longer.
    pub(crate) collisions: Vec<String>,
    max_name: usize,
    tokens: OnceLock<usize>,
    search: OnceLock<Search>,
}

/// The tools with a search index.
pub(crate) struct Search {
    /// In the order of the catalog.
    pub(crate) tools: Vec<Tool>,
    pub(crate) index: Index,
}

impl Catalog {
    /// Combines the lists of servers.
    pub(crate) fn of(lists: &[ServerLists], max_name: usize) -> Self {
        let mut catalog = Self { max_name, ..Self::default() };
        let shared = Shared::of(lists);
        for lists in lists {
            catalog.add_tools(lists);
            catalog.add_prompts(lists);
            catalog.add_resources(lists, &shared);
            catalog.add_templates(lists, &shared);
        }
        catalog
    }

    /// Returns a name that is not taken. Names are compared without case, because some clients do so.
    fn free_name(&mut self, taken: fn(&Self, &str) -> bool, server: &str, name: &str) -> Option<String> {
        let shown = names::name_within(self.max_name, server, name);
        if !taken(self, &shown) {
            return Some(shown);
        }
        let longer = names::longer_name(self.max_name, server, name);
        self.collisions.push(shown);
        (!taken(self, &longer)).then_some(longer)
    }

    fn add_tools(&mut self, lists: &ServerLists) {
        let (instance, spec) = (&lists.instance, &lists.instance.spec);
        let mut seen = HashSet::new();
        for (tool, definition) in lists.tools.iter().zip(&*lists.definitions) {
            // If a server lists a name twice, the first tool counts.
            if !spec.shows(&tool.name) || !seen.insert(&tool.name) {
                continue;
            }
            let listed_name = spec.rename.get(&tool.name).unwrap_or(&tool.name);
            let taken = |catalog: &Self, name: &str| catalog.tool_index.contains_key(&name.to_lowercase());
            let Some(name) = self.free_name(taken, &instance.name, listed_name) else { continue };
            let definition = definition.clone();
            let mut shown = tool.clone();
            shown.name.clone_from(&name);
            // Callers may always call it without a task: the host waits for the task then.
            let tasks = ToolTasks::of(instance.tasks(), shown.execution.as_ref(), spec.task_after.is_some());
            shown.execution =
                (tasks != ToolTasks::None).then(|| ToolExecution::new().task_support(TaskSupport::Optional));
            if let Some(description) = spec.describe.get(&tool.name) {
                shown.description = Some(description.clone());
            }
            self.tool_index.insert(name.to_lowercase(), self.tools.len());
            let entry = Entry { instance: Arc::clone(instance), original: tool.name.clone(), shown };
            self.tools.push(ToolEntry { entry, definition, tasks });
        }
    }

    fn add_prompts(&mut self, lists: &ServerLists) {
        let instance = &lists.instance;
        for prompt in lists.prompts.iter().filter(|prompt| instance.spec.shows(&prompt.name)) {
            let taken = |catalog: &Self, name: &str| catalog.prompt_index.contains_key(&name.to_lowercase());
            let Some(name) = self.free_name(taken, &instance.name, &prompt.name) else { continue };
            let mut shown = prompt.clone();
            shown.name.clone_from(&name);
            self.prompt_index.insert(name.to_lowercase(), self.prompts.len());
            self.prompts.push(Entry { instance: Arc::clone(instance), original: prompt.name.clone(), shown });
        }
    }

    fn add_resources(&mut self, lists: &ServerLists, shared: &Shared<'_>) {
        let instance = &lists.instance;
        for resource in lists.resources.iter().filter(|resource| instance.spec.shows_uri(&resource.uri)) {
            let mut uri = resource.uri.clone();
            if shared.resources.contains(&*uri) {
                uri = uris::prefixed(&instance.name, &uri);
                self.prefixed.entry(instance.id).or_default().insert(resource.uri.clone());
            }
            // A server may list a resource twice.
            if self.resource_index.contains_key(&uri) {
                continue;
            }
            self.resource_index.insert(uri.clone(), self.resources.len());
            let mut shown = resource.clone();
            shown.uri = uri;
            self.resources.push(Entry {
                instance: Arc::clone(instance),
                original: resource.uri.clone(),
                shown,
            });
        }
    }

    fn add_templates(&mut self, lists: &ServerLists, shared: &Shared<'_>) {
        let instance = &lists.instance;
        for template in lists.templates.iter().filter(|template| instance.spec.shows(&template.uri_template))
        {
            let uri_template = if shared.templates.contains(&*template.uri_template) {
                uris::prefixed(&instance.name, &template.uri_template)
            } else {
                template.uri_template.clone()
            };
            if uri_template != template.uri_template {
                self.prefixed_templates.extend(
                    UriTemplate::parse(&template.uri_template).ok().map(|parsed| (instance.id, parsed)),
                );
            }
            let parsed = UriTemplate::parse(&uri_template).ok();
            let mut shown = template.clone();
            shown.uri_template = uri_template;
            let original = template.uri_template.clone();
            self.templates.push((Entry { instance: Arc::clone(instance), original, shown }, parsed));
        }
    }

    /// Returns an estimate of the tokens that the list of all tools costs a model.
    pub(crate) fn tokens(&self) -> usize {
        let cost = |tool: &ToolEntry| {
            RawJson::of(&tool.entry.shown).map_or(0, |definition| estimate_tokens(definition.as_str()))
        };
        *self.tokens.get_or_init(|| self.tools.iter().map(cost).sum())
    }

    /// Returns the search index, which is built on first use.
    pub(crate) fn search(&self) -> &Search {
        self.search.get_or_init(|| {
            let tools: Vec<_> = self.tools.iter().map(|tool| tool.entry.shown.clone()).collect();
            let index = Index::of(&tools);
            Search { tools, index }
        })
    }

    /// Returns what a client that searches is listed: the meta tools and the tools of servers that are always listed.
    pub(crate) fn search_listing(&self) -> Vec<Tool> {
        let mut counts = BTreeMap::new();
        for tool in &self.tools {
            *counts.entry(&*tool.entry.instance.name).or_insert(0) += 1;
        }
        let sources: Vec<_> = counts.into_iter().map(|(name, tools)| Source { name, tools }).collect();
        let always = self.tools.iter().filter(|tool| tool.entry.instance.spec.always_listed);
        let always = always.map(|tool| tool.entry.shown.clone());
        MetaTool::ALL.into_iter().map(|tool| tool.definition(&sources)).chain(always).collect()
    }

    /// Returns the tool of this name.
    pub(crate) fn tool(&self, name: &str) -> Option<&ToolEntry> {
        let found = self.tools.get(*self.tool_index.get(&name.to_lowercase())?)?;
        (found.entry.shown.name == name).then_some(found)
    }

    /// Returns the prompt of this name.
    pub(crate) fn prompt(&self, name: &str) -> Option<&Entry<Prompt>> {
        let found = self.prompts.get(*self.prompt_index.get(&name.to_lowercase())?)?;
        (found.shown.name == name).then_some(found)
    }

    /// Returns the template with exactly this text.
    pub(crate) fn template(&self, uri_template: &str) -> Option<&Entry<ResourceTemplate>> {
        let mut templates = self.templates.iter().map(|(entry, _)| entry);
        templates.find(|entry| entry.shown.uri_template == uri_template)
    }

    /// Returns the server that a URI belongs to and the URI at that server: by a listed resource, or by a template that
    /// matches it. A URI that the configuration of its server hides belongs to no server.
    pub(crate) fn owner(&self, uri: &str) -> Option<(Arc<Instance>, String)> {
        let shown = |instance: &Arc<Instance>, original: &str| {
            instance.spec.shows_uri(original).then(|| (Arc::clone(instance), original.to_owned()))
        };
        if let Some(entry) = self.resource_index.get(uri).and_then(|place| self.resources.get(*place)) {
            return shown(&entry.instance, &entry.original);
        }
        let mut covering = self.templates.iter().filter_map(|(entry, template)| {
            template.as_ref()?.match_uri(uri)?;
            let is_prefixed = entry.shown.uri_template != entry.original;
            let original = if is_prefixed { uris::without_prefix(&entry.instance.name, uri)? } else { uri };
            shown(&entry.instance, original)
        });
        let first = covering.next()?;
        // If the templates of two servers match, the owner is unknown.
        covering.all(|(instance, _)| Arc::ptr_eq(&instance, &first.0)).then_some(first)
    }

    /// Returns the URI that callers see for a URI of a server.
    pub(crate) fn shown_uri(&self, instance: &Instance, uri: &str) -> String {
        let listed = self.prefixed.get(&instance.id).is_some_and(|uris| uris.contains(uri));
        let mut templates = self.prefixed_templates.iter().filter(|(id, _)| *id == instance.id);
        let is_prefixed = listed || templates.any(|(_, template)| template.match_uri(uri).is_some());
        if is_prefixed { uris::prefixed(&instance.name, uri) } else { uri.to_owned() }
    }

    /// Returns whether any URI of a server is shown with a prefix.
    pub(crate) fn renames_uris(&self, instance: &Instance) -> bool {
        self.prefixed.contains_key(&instance.id)
            || self.prefixed_templates.iter().any(|(id, _)| *id == instance.id)
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalog")
            .field("tools", &self.tools.len())
            .field("prompts", &self.prompts.len())
            .field("resources", &self.resources.len())
            .finish_non_exhaustive()
    }
}
