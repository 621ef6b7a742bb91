//! Compares two configurations, so that a reload touches only what changed.

use super::model::Config;

/// The difference between two configurations, by the names of servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diff {
    /// Servers that are new.
    pub added: Vec<String>,
    /// Servers that are gone.
    pub removed: Vec<String>,
    /// Servers that are reached or treated differently.
    pub changed: Vec<String>,
    /// Sections that differ, such as `gateway`.
    pub sections: Vec<&'static str>,
}

impl Diff {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.changed.is_empty()
            && self.sections.is_empty()
    }
}

/// Says what `new` changes about `old`. Where something is written does not count, only what.
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
    section("disclosure", old.disclosure == new.disclosure);
    diff
}
