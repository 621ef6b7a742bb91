//! Compares two configurations, so that a reload touches only what changed.

use super::model::Config;

/// The difference between two configurations, by server name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diff {
    /// New servers.
    pub added: Vec<String>,
    /// Servers that were removed.
    pub removed: Vec<String>,
    /// Servers whose command, URL or settings differ.
    pub changed: Vec<String>,
    /// Sections that differ, such as `gateway`.
    pub sections: Vec<&'static str>,
}

impl Diff {
    /// Returns whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.changed.is_empty()
            && self.sections.is_empty()
    }
}

/// Compares two configurations. Only values count, not where they are written.
///
/// ```
/// use bowline_config::{Config, Environment, Loader, Scope, Source, diff};
/// use std::{collections::BTreeMap, path::PathBuf};
///
/// fn load(text: &str) -> Config {
///     let files = BTreeMap::from([(PathBuf::from("bowline.toml"), text.to_owned())]);
///     let environment = Environment::new([("HOME", "/srv/ada")]);
///     Loader::new(environment).source(Source::new("bowline.toml", Scope::User)).load(&files)
/// }
///
/// let old = load("[servers.time]\ncommand = \"uvx\"\n");
/// let new = load("[servers.time]\ncommand = \"npx\"\n[servers.web]\nurl = \"https://web.example/mcp\"\n");
/// let diff = diff(&old, &new);
/// assert_eq!(diff.added, ["web"]);
/// assert_eq!(diff.changed, ["time"]);
/// ```
pub fn diff(old: &Config, new: &Config) -> Diff {
    let mut diff = Diff::default();
    for upstream in &new.upstreams {
        match old.upstream(&upstream.name) {
            None => diff.added.push(upstream.name.clone()),
            Some(present) if !present.is_same(upstream) => diff.changed.push(upstream.name.clone()),
            Some(_) => {}
        }
    }
    let gone = old.upstreams.iter().filter(|upstream| new.upstream(&upstream.name).is_none());
    diff.removed = gone.map(|upstream| upstream.name.clone()).collect();

    let mut section = |name, same: bool| {
        if !same {
            diff.sections.push(name);
        }
    };
    section("gateway", old.gateway == new.gateway);
    section("rules", {
        let same = |(left, right): (&super::RuleConfig, &super::RuleConfig)| {
            super::RuleConfig { origin: right.origin.clone(), ..left.clone() } == *right
        };
        old.rules.len() == new.rules.len() && old.rules.iter().zip(&new.rules).all(same)
    });
    section("sampling", {
        let bare = |config: &Config| {
            let mut sampling = config.sampling.clone();
            let nowhere = super::Origin::start(std::path::Path::new(""));
            sampling.providers.values_mut().for_each(|provider| provider.origin = nowhere.clone());
            sampling.models.iter_mut().for_each(|model| model.origin = nowhere.clone());
            sampling
        };
        bare(old) == bare(new)
    });
    section("audit", old.audit == new.audit);
    section("store", old.store == new.store);
    section("sessions", old.sessions == new.sessions);
    section("tasks", old.tasks == new.tasks);
    section("inspector", old.inspector == new.inspector);
    section("disclosure", old.disclosure == new.disclosure);
    diff
}
