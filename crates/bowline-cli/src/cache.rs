//! Caches the names that servers offer for shell completion, which never starts a server.

use crate::{
    context::Context,
    quoting::is_printable,
    schema::{Property, Schema},
};
use bowline_types::{Prompt, Tool};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The maximum number of names of a kind per server.
const MOST: usize = 1000;
/// The maximum number of arguments per tool or prompt, and of values per argument.
const MOST_ARGUMENTS: usize = 100;

/// The names of all servers.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Cache {
    servers: BTreeMap<String, Names>,
}

/// The names of one server.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Names {
    /// The tools, with the allowed values of each argument.
    pub(crate) tools: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// The prompts, with their arguments.
    pub(crate) prompts: BTreeMap<String, Vec<String>>,
    /// The URIs of resources.
    pub(crate) resources: Vec<String>,
}

impl Names {
    pub(crate) fn set_tools(&mut self, tools: &[Tool]) {
        let arguments = |tool: &Tool| {
            let schema = Schema::new(&tool.input_schema);
            let properties = schema.properties().filter(|property| is_kept(property.name));
            let choices = |property: &Property<'_>| {
                property.choices().into_iter().filter(|choice| is_kept(choice)).take(MOST_ARGUMENTS).collect()
            };
            let known = properties.map(|property| (property.name.to_owned(), choices(&property)));
            known.take(MOST_ARGUMENTS).collect()
        };
        let tools = tools.iter().filter(|tool| is_kept(&tool.name)).take(MOST);
        self.tools = tools.map(|tool| (tool.name.clone(), arguments(tool))).collect();
    }

    pub(crate) fn set_prompts(&mut self, prompts: &[Prompt]) {
        let arguments = |prompt: &Prompt| {
            let names = prompt.arguments.iter().map(|argument| argument.name.clone());
            names.filter(|name| is_kept(name)).take(MOST_ARGUMENTS).collect()
        };
        let prompts = prompts.iter().filter(|prompt| is_kept(&prompt.name)).take(MOST);
        self.prompts = prompts.map(|prompt| (prompt.name.clone(), arguments(prompt))).collect();
    }

    pub(crate) fn set_resources<'a>(&mut self, uris: impl IntoIterator<Item = &'a str>) {
        self.resources =
            uris.into_iter().filter(|uri| is_kept(uri)).take(MOST).map(ToOwned::to_owned).collect();
    }
}

impl Cache {
    /// Loads the cache; empty if the file cannot be read.
    pub(crate) fn load(context: &Context) -> Self {
        file(context).and_then(|path| read(&path)).unwrap_or_default()
    }

    /// The names of a server.
    pub(crate) fn names(&self, server: &str) -> Names {
        self.servers.get(server).cloned().unwrap_or_default()
    }
}

/// Updates the names of a server. Errors are ignored.
pub(crate) fn remember(context: &Context, server: &str, change: impl FnOnce(&mut Names)) {
    let Some(path) = file(context) else { return };
    let mut cache = read(&path).unwrap_or_default();
    change(cache.servers.entry(server.to_owned()).or_default());
    let (Some(folder), Ok(text)) = (path.parent(), serde_json::to_vec(&cache)) else { return };
    let written = fs::create_dir_all(folder).and_then(|()| bowline_files::replace(&path, &text));
    if let Err(error) = written {
        tracing::debug!(%error, "cannot write the completion cache");
    }
}

fn file(context: &Context) -> Option<PathBuf> {
    Some(context.environment.cache_dir()?.join("names.json"))
}

fn read(path: &Path) -> Option<Cache> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Returns whether a name can be completed.
fn is_kept(name: &str) -> bool {
    !name.is_empty() && is_printable(name)
}
