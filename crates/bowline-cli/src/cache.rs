//! What servers offer, remembered for the completion of command lines: it never starts a server to find out.

use crate::{context::Context, folders, schema::Schema};
use bowline_types::{Prompt, Tool};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// How many names of a kind are kept of one server.
const MOST: usize = 1000;

/// The names of all servers that were looked at.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Cache {
    servers: BTreeMap<String, Names>,
}

/// The names of one server.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Names {
    /// The tools, and what may be typed for each of their arguments.
    pub(crate) tools: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// The prompts, and their arguments.
    pub(crate) prompts: BTreeMap<String, Vec<String>>,
    /// The URIs of resources.
    pub(crate) resources: Vec<String>,
}

impl Names {
    pub(crate) fn set_tools(&mut self, tools: &[Tool]) {
        let arguments = |tool: &Tool| {
            let schema = Schema::new(&tool.input_schema);
            schema.properties().map(|property| (property.name.to_owned(), property.choices())).collect()
        };
        let tools = tools.iter().filter(|tool| is_plain(&tool.name)).take(MOST);
        self.tools = tools.map(|tool| (tool.name.clone(), arguments(tool))).collect();
    }

    pub(crate) fn set_prompts(&mut self, prompts: &[Prompt]) {
        let arguments =
            |prompt: &Prompt| prompt.arguments.iter().map(|argument| argument.name.clone()).collect();
        let prompts = prompts.iter().filter(|prompt| is_plain(&prompt.name)).take(MOST);
        self.prompts = prompts.map(|prompt| (prompt.name.clone(), arguments(prompt))).collect();
    }

    pub(crate) fn set_resources<'a>(&mut self, uris: impl IntoIterator<Item = &'a str>) {
        self.resources =
            uris.into_iter().filter(|uri| is_plain(uri)).take(MOST).map(ToOwned::to_owned).collect();
    }
}

impl Cache {
    /// What is remembered; nothing where there is no file that can be read.
    pub(crate) fn load(context: &Context) -> Self {
        file(context).and_then(|path| read(&path)).unwrap_or_default()
    }

    /// The names of a server.
    pub(crate) fn names(&self, server: &str) -> Names {
        self.servers.get(server).cloned().unwrap_or_default()
    }
}

/// Remembers names of a server. That it cannot be done is no reason to fail.
pub(crate) fn remember(context: &Context, server: &str, change: impl FnOnce(&mut Names)) {
    let Some(path) = file(context) else { return };
    let mut cache = read(&path).unwrap_or_default();
    change(cache.servers.entry(server.to_owned()).or_default());
    let (Some(folder), Ok(text)) = (path.parent(), serde_json::to_vec(&cache)) else { return };
    let written = fs::create_dir_all(folder)
        .and_then(|()| folders::replace(&path, |new| folders::write_private(new, &text)));
    if let Err(error) = written {
        tracing::debug!(%error, "names for completion cannot be remembered");
    }
}

fn file(context: &Context) -> Option<PathBuf> {
    Some(context.surroundings.cache_folder()?.join("names.json"))
}

fn read(path: &Path) -> Option<Cache> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Whether a name can be offered to a shell as it is.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.len() <= 256 && name.chars().all(|letter| letter.is_ascii_graphic())
}
