//! Everything that is offered to one caller, and whose it is.

use super::{names, uris};
use crate::upstream::Instance;
use bowline_policy::Definition;
use bowline_proto::uri::UriTemplate;
use bowline_search::{Index, MetaTool, Source, estimate_tokens};
use bowline_types::{Prompt, RawJson, Resource, ResourceTemplate, Tool};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::{Arc, OnceLock},
};

/// What one server offers.
pub(crate) struct Offer {
    pub(crate) instance: Arc<Instance>,
    pub(crate) tools: Arc<Vec<Tool>>,
    /// What is pinned of each tool.
    pub(crate) definitions: Arc<Vec<Definition>>,
    pub(crate) prompts: Arc<Vec<Prompt>>,
    pub(crate) resources: Arc<Vec<Resource>>,
    pub(crate) templates: Arc<Vec<ResourceTemplate>>,
}

/// Something that is offered, and what its server calls it.
pub(crate) struct Entry<T> {
    pub(crate) instance: Arc<Instance>,
    /// The name or URI at its server.
    pub(crate) original: String,
    /// As it is shown.
    pub(crate) shown: T,
}

/// A tool, with its definition as its server gives it: what is pinned.
pub(crate) struct ToolEntry {
    pub(crate) entry: Entry<Tool>,
    pub(crate) definition: Definition,
}

/// What more than one server has: nobody's under its own name, so that no server takes what is another's.
struct Shared<'a> {
    resources: HashSet<&'a str>,
    templates: HashSet<&'a str>,
}

impl<'a> Shared<'a> {
    fn of(offers: &'a [Offer]) -> Self {
        let resources =
            |offer: &'a Offer| offer.resources.iter().map(|resource| resource.uri.as_str()).collect();
        let templates = |offer: &'a Offer| {
            offer.templates.iter().map(|template| template.uri_template.as_str()).collect()
        };
        Self { resources: several(offers, resources), templates: several(offers, templates) }
    }
}

/// The names that more than one offer has.
fn several<'a>(offers: &'a [Offer], names: impl Fn(&'a Offer) -> HashSet<&'a str>) -> HashSet<&'a str> {
    let mut seen = HashSet::new();
    offers.iter().flat_map(names).filter(|name| !seen.insert(*name)).collect()
}

/// Everything that is offered.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) tools: Vec<ToolEntry>,
    tool_index: HashMap<String, usize>,
    pub(crate) prompts: Vec<Entry<Prompt>>,
    prompt_index: HashMap<String, usize>,
    pub(crate) resources: Vec<Entry<Resource>>,
    resource_index: HashMap<String, usize>,
    pub(crate) templates: Vec<(Entry<ResourceTemplate>, Option<UriTemplate>)>,
    /// The URIs of each server that are shown with a prefix, by instance.
    prefixed: HashMap<u64, HashSet<String>>,
    /// The same for templates.
    prefixed_templates: Vec<(u64, UriTemplate)>,
    /// Names that met although they follow the rule, and so had to be made longer.
    pub(crate) collisions: Vec<String>,
    max_name: usize,
    tokens: OnceLock<usize>,
    search: OnceLock<Search>,
}

/// The tools, ready to be searched.
pub(crate) struct Search {
    /// In the order of the catalog.
    pub(crate) tools: Vec<Tool>,
    pub(crate) index: Index,
}

impl Catalog {
    /// Puts together what servers offer, in whatever order.
    pub(crate) fn of(offers: &[Offer], max_name: usize) -> Self {
        let mut catalog = Self { max_name, ..Self::default() };
        let shared = Shared::of(offers);
        for offer in offers {
            catalog.add_tools(offer);
            catalog.add_prompts(offer);
            catalog.add_resources(offer, &shared);
            catalog.add_templates(offer, &shared);
        }
        catalog
    }

    /// A free name, compared without case as some clients do.
    fn name(&mut self, taken: fn(&Self, &str) -> bool, server: &str, name: &str) -> Option<String> {
        let shown = names::name_within(self.max_name, server, name);
        if !taken(self, &shown) {
            return Some(shown);
        }
        let longer = names::longer_name(self.max_name, server, name);
        self.collisions.push(shown);
        (!taken(self, &longer)).then_some(longer)
    }

    fn add_tools(&mut self, offer: &Offer) {
        let (instance, spec) = (&offer.instance, &offer.instance.spec);
        let mut seen = HashSet::new();
        for (tool, definition) in offer.tools.iter().zip(&*offer.definitions) {
            // Two tools of one name are a fault of their server: the first one counts.
            if !spec.shows(&tool.name) || !seen.insert(&tool.name) {
                continue;
            }
            let called = spec.rename.get(&tool.name).unwrap_or(&tool.name);
            let taken = |catalog: &Self, name: &str| catalog.tool_index.contains_key(&name.to_lowercase());
            let Some(name) = self.name(taken, &instance.name, called) else { continue };
            let definition = definition.clone();
            let mut shown = Tool { name: name.clone(), ..tool.clone() };
            if let Some(description) = spec.describe.get(&tool.name) {
                shown.description = Some(description.clone());
            }
            self.tool_index.insert(name.to_lowercase(), self.tools.len());
            let entry = Entry { instance: Arc::clone(instance), original: tool.name.clone(), shown };
            self.tools.push(ToolEntry { entry, definition });
        }
    }

    fn add_prompts(&mut self, offer: &Offer) {
        let instance = &offer.instance;
        for prompt in offer.prompts.iter().filter(|prompt| instance.spec.shows(&prompt.name)) {
            let taken = |catalog: &Self, name: &str| catalog.prompt_index.contains_key(&name.to_lowercase());
            let Some(name) = self.name(taken, &instance.name, &prompt.name) else { continue };
            let shown = Prompt { name: name.clone(), ..prompt.clone() };
            self.prompt_index.insert(name.to_lowercase(), self.prompts.len());
            self.prompts.push(Entry { instance: Arc::clone(instance), original: prompt.name.clone(), shown });
        }
    }

    fn add_resources(&mut self, offer: &Offer, shared: &Shared<'_>) {
        let instance = &offer.instance;
        for resource in offer.resources.iter().filter(|resource| instance.spec.shows_uri(&resource.uri)) {
            let mut uri = resource.uri.clone();
            if shared.resources.contains(&*uri) {
                uri = uris::prefixed(&instance.name, &uri);
                self.prefixed.entry(instance.id).or_default().insert(resource.uri.clone());
            }
            // A server that lists one twice has it once.
            if self.resource_index.contains_key(&uri) {
                continue;
            }
            self.resource_index.insert(uri.clone(), self.resources.len());
            let shown = Resource { uri, ..resource.clone() };
            self.resources.push(Entry {
                instance: Arc::clone(instance),
                original: resource.uri.clone(),
                shown,
            });
        }
    }

    fn add_templates(&mut self, offer: &Offer, shared: &Shared<'_>) {
        let instance = &offer.instance;
        for template in offer.templates.iter().filter(|template| instance.spec.shows(&template.uri_template))
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
            let shown = ResourceTemplate { uri_template, ..template.clone() };
            let original = template.uri_template.clone();
            self.templates.push((Entry { instance: Arc::clone(instance), original, shown }, parsed));
        }
    }

    /// What the list of all tools costs a model, estimated.
    pub(crate) fn tokens(&self) -> usize {
        let cost = |tool: &ToolEntry| {
            RawJson::of(&tool.entry.shown).map_or(0, |definition| estimate_tokens(definition.as_str()))
        };
        *self.tokens.get_or_init(|| self.tools.iter().map(cost).sum())
    }

    /// The tools, ready to be searched. Made when it is first needed, and gone with the catalog.
    pub(crate) fn search(&self) -> &Search {
        self.search.get_or_init(|| {
            let tools: Vec<_> = self.tools.iter().map(|tool| tool.entry.shown.clone()).collect();
            let index = Index::of(&tools);
            Search { tools, index }
        })
    }

    /// What is listed where tools are searched for: the means to search, and what is always to be listed.
    pub(crate) fn for_search(&self) -> Vec<Tool> {
        let mut counts = BTreeMap::new();
        for tool in &self.tools {
            *counts.entry(&*tool.entry.instance.name).or_insert(0) += 1;
        }
        let sources: Vec<_> = counts.into_iter().map(|(name, tools)| Source { name, tools }).collect();
        let always = self.tools.iter().filter(|tool| tool.entry.instance.spec.always_listed);
        let always = always.map(|tool| tool.entry.shown.clone());
        MetaTool::ALL.into_iter().map(|tool| tool.definition(&sources)).chain(always).collect()
    }

    /// The tool of this name.
    pub(crate) fn tool(&self, name: &str) -> Option<&ToolEntry> {
        let found = self.tools.get(*self.tool_index.get(&name.to_lowercase())?)?;
        (found.entry.shown.name == name).then_some(found)
    }

    /// The prompt of this name.
    pub(crate) fn prompt(&self, name: &str) -> Option<&Entry<Prompt>> {
        let found = self.prompts.get(*self.prompt_index.get(&name.to_lowercase())?)?;
        (found.shown.name == name).then_some(found)
    }

    /// The template of this text.
    pub(crate) fn template(&self, uri_template: &str) -> Option<&Entry<ResourceTemplate>> {
        let mut templates = self.templates.iter().map(|(entry, _)| entry);
        templates.find(|entry| entry.shown.uri_template == uri_template)
    }

    /// Whose a URI is, and what its server calls it: by a resource that is listed, or a template that covers it. What a
    /// server is told not to show is nobody's, by whatever way it is asked for.
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
        // A template that covers what another server's covers as well does not take it: nobody knows whose it is.
        covering.all(|(instance, _)| Arc::ptr_eq(&instance, &first.0)).then_some(first)
    }

    /// How a URI of a server is shown.
    pub(crate) fn shown_uri(&self, instance: &Instance, uri: &str) -> String {
        let listed = self.prefixed.get(&instance.id).is_some_and(|uris| uris.contains(uri));
        let mut templates = self.prefixed_templates.iter().filter(|(id, _)| *id == instance.id);
        let is_prefixed = listed || templates.any(|(_, template)| template.match_uri(uri).is_some());
        if is_prefixed { uris::prefixed(&instance.name, uri) } else { uri.to_owned() }
    }

    /// Whether any URI of a server is shown otherwise than the server says it.
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
