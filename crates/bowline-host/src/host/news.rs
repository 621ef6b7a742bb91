//! What servers tell of their own accord, and who wants to hear it.

use super::{Inner, Need};
use crate::upstream::{CallerKey, Instance};
use bowline_client::Notification;
use bowline_proto::subscribe::Change;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak},
};
use tokio::sync::watch;

impl Inner {
    /// A server told of a change.
    pub(super) fn hear(&self, instance: &Arc<Instance>, notification: Notification) {
        let shelf = &instance.shelf;
        match notification {
            Notification::ToolsChanged => {
                shelf.tools.forget();
                self.turn();
                self.publish(&Change::Tools);
            }
            Notification::PromptsChanged => {
                shelf.prompts.forget();
                self.turn();
                self.publish(&Change::Prompts);
            }
            Notification::ResourcesChanged => {
                shelf.resources.forget();
                shelf.templates.forget();
                self.turn();
                self.publish(&Change::Resources);
            }
            Notification::ResourceUpdated(params) => {
                let catalogs = self.catalogs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let shown: BTreeSet<_> =
                    catalogs.values().map(|kept| kept.catalog.shown_uri(instance, &params.uri)).collect();
                drop(catalogs);
                for uri in shown {
                    self.publish(&Change::Resource(uri));
                }
            }
            Notification::ElicitationComplete(params) => {
                for pilot in instance.flights.all() {
                    pilot.visited(params.elicitation_id.clone());
                }
            }
            other => tracing::debug!(server = &*instance.name, ?other, "a notification has no further way"),
        }
    }

    /// A server was started or lost: what it offers may be something else now.
    pub(super) fn instance_turned(&self, instance: &Arc<Instance>) {
        instance.shelf.forget();
        self.turn();
        self.tell_instructions();
        self.publish_lists();
    }

    /// Tells clients that come from now on how to use the servers, each under its name.
    fn tell_instructions(&self) {
        let Some(face) = self.face.get() else { return };
        let mut told = String::new();
        for member in self.members() {
            let running = member.all().into_iter().find_map(|instance| instance.running());
            if let Some(text) = running.and_then(|client| client.server().instructions.clone()) {
                told.push_str(&format!("# {}\n\n{}\n\n", member.name, text.trim()));
            }
        }
        let told = told.trim_end();
        face.profile.set_instructions((!told.is_empty()).then(|| told.to_owned()));
    }
}

/// Subscribes, at the servers whose they are, to the resources that some client wants to hear of.
pub(super) async fn follow(inner: Weak<Inner>, mut wanted: watch::Receiver<Arc<BTreeSet<String>>>) {
    let mut held: BTreeMap<String, (Arc<Instance>, String)> = BTreeMap::new();
    loop {
        let now = Arc::clone(&wanted.borrow_and_update());
        let Some(host) = inner.upgrade() else { return };
        let gone: Vec<_> = held.keys().filter(|uri| !now.contains(*uri)).cloned().collect();
        for uri in gone {
            if let Some((instance, original)) = held.remove(&uri)
                && let Some(client) = instance.running()
            {
                let _ = client.unsubscribe(&original).await;
            }
        }
        let new: Vec<_> = now.iter().filter(|uri| !held.contains_key(*uri)).cloned().collect();
        // Whose a resource is, is asked of servers that this may start: not when nobody wants to know.
        let catalog = match new.is_empty() {
            true => Arc::default(),
            false => host.catalog(&CallerKey::User(None), Need::Known).await,
        };
        for uri in new {
            let Some((instance, original)) = catalog.owner(&uri) else { continue };
            let Ok(client) = instance.client().await else { continue };
            match client.subscribe(&original).await {
                Ok(()) => drop(held.insert(uri, (instance, original))),
                Err(error) => tracing::debug!(uri, %error, "a server does not tell of a resource"),
            }
        }
        drop(host);
        if wanted.changed().await.is_err() {
            return;
        }
    }
}
