//! What a host offers, and its servers, for surfaces that show them to a person.

use super::{Host, router::Wait};
use crate::{
    aggregate::Catalog,
    upstream::{CallerKey, Instance, Member},
};
use bowline_types::{Prompt, Resource, ResourceTemplate, Tool};
use std::sync::Arc;

/// An item with both of its names.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Offered<T> {
    /// The name or URI at its server.
    pub original: String,
    /// What clients of the host see.
    pub shown: T,
}

/// What one server offers.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ServerOffer {
    /// The name of the server.
    pub server: String,
    /// Its tools.
    pub tools: Vec<Offered<Tool>>,
    /// Its resources.
    pub resources: Vec<Offered<Resource>>,
    /// Its templates.
    pub templates: Vec<Offered<ResourceTemplate>>,
    /// Its prompts.
    pub prompts: Vec<Offered<Prompt>>,
    /// How many tools the configuration hides.
    pub hidden: usize,
    /// Why its lists could not be read, if so.
    pub problem: Option<String>,
}

impl Host {
    /// Returns what the servers offer, ordered by name. Starts no server: those that do not run offer what they last listed.
    pub async fn offers(&self) -> Vec<ServerOffer> {
        let router = &self.inner.router;
        let catalog = router.catalog(&CallerKey::User(None), Wait::Running).await;
        router.members().iter().map(|member| offer(&catalog, member)).collect()
    }

    /// Returns what a server offers, and starts it if necessary. `None` if there is no server of this name.
    pub async fn offer(&self, server: &str) -> Option<ServerOffer> {
        let router = &self.inner.router;
        let member = router.members().into_iter().find(|member| &*member.name == server)?;
        let instance = member.instance(&CallerKey::User(None));
        let catalog = router.catalog(&CallerKey::User(None), Wait::Only(instance.id)).await;
        Some(offer(&catalog, &member))
    }

    /// Returns the connection to a server that all clients share, if it runs.
    pub fn client(&self, server: &str) -> Option<bowline_client::Client> {
        self.shared_instance(server)?.running()
    }

    /// Starts a server that all clients share, also right after it failed, and reads its lists. Returns false if there is none of this name.
    pub async fn start_server(&self, server: &str) -> bool {
        let Some(instance) = self.shared_instance(server) else { return false };
        instance.forget_failure();
        // The state of the server says why it failed.
        if instance.client().await.is_ok() {
            self.inner.router.catalog(&CallerKey::User(None), Wait::Only(instance.id)).await;
        }
        true
    }

    /// Stops a server that all clients share. It starts again when it is needed. Returns false if there is none of this name.
    pub async fn stop_server(&self, server: &str) -> bool {
        let Some(instance) = self.shared_instance(server) else { return false };
        instance.halt().await;
        true
    }

    fn shared_instance(&self, server: &str) -> Option<Arc<Instance>> {
        let members = self.inner.router.members();
        let member = members.iter().find(|member| &*member.name == server && !member.is_per_client())?;
        Some(member.instance(&CallerKey::User(None)))
    }
}

/// Returns what a server contributes to a catalog.
fn offer(catalog: &Catalog, member: &Member) -> ServerOffer {
    let instance = member.instance(&CallerKey::User(None));
    let is_of = |other: &Arc<Instance>| Arc::ptr_eq(other, &instance);
    let tools: Vec<_> = (catalog.tools.iter().map(|tool| &tool.entry))
        .filter(|entry| is_of(&entry.instance))
        .map(|entry| Offered { original: entry.original.clone(), shown: entry.shown.clone() })
        .collect();
    let listed = instance.lists.tools.last_known().map_or(0, |tools| tools.len());
    ServerOffer {
        server: member.name.to_string(),
        hidden: listed.saturating_sub(tools.len()),
        tools,
        resources: (catalog.resources.iter().filter(|entry| is_of(&entry.instance)))
            .map(|entry| Offered { original: entry.original.clone(), shown: entry.shown.clone() })
            .collect(),
        templates: (catalog.templates.iter().filter(|(entry, _)| is_of(&entry.instance)))
            .map(|(entry, _)| Offered { original: entry.original.clone(), shown: entry.shown.clone() })
            .collect(),
        prompts: (catalog.prompts.iter().filter(|entry| is_of(&entry.instance)))
            .map(|entry| Offered { original: entry.original.clone(), shown: entry.shown.clone() })
            .collect(),
        problem: instance.lists.problem(),
    }
}
