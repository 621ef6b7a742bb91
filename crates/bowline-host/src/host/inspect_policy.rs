//! What the policy of a host says, for surfaces that show it to a person: decisions in advance, and pins.

use super::Host;
use crate::upstream::{CallerKey, Instance};
use bowline_policy::{
    Action, CallFacts, Caller, Definition, Facts, PinKey, PinStatus, Pins, Preview, StoreError, Trust,
};
use bowline_types::RawJson;
use std::{collections::BTreeMap, sync::Arc};

/// How a tool compares with its pin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolPinStatus {
    /// It is as it was accepted.
    Same,
    /// It was not accepted yet.
    New,
    /// It changed since it was accepted.
    Changed {
        /// The changes, line by line.
        diff: String,
    },
    /// The server does not list it any more.
    Removed,
    /// The server has not listed its tools yet.
    Unknown,
}

/// A tool and its pin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolPin {
    /// The name at its server.
    pub tool: String,
    /// The digest of the definition that the server listed last.
    pub listed: Option<String>,
    /// How it compares.
    pub status: ToolPinStatus,
}

/// The pins of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerToolPins {
    /// The server.
    pub server: String,
    /// Its tools, ordered by name.
    pub tools: Vec<ToolPin>,
}

/// Why a definition cannot be accepted.
#[derive(Debug)]
#[non_exhaustive]
pub enum AcceptError {
    /// There is no such server, it has not listed this tool, or definitions are not compared.
    Unknown,
    /// The server lists another definition than the one that was shown.
    Changed,
    /// It cannot be stored.
    Store(StoreError),
}

impl Host {
    /// Says what the policy would decide about a call of a client with this name, without asking anybody, running it or starting
    /// its server. Conditions on access tokens do not match, because there is none.
    ///
    /// `None` if there is no such server, or if the action is a call and the server has not listed this tool.
    pub async fn preview(
        &self,
        server: &str,
        action: Action,
        name: &str,
        arguments: &RawJson,
        client: Option<&str>,
    ) -> Option<Preview> {
        let instance = self.instance(server)?;
        let asker = &self.inner.asker;
        let facts = Facts {
            trust: if instance.spec.trusted { Trust::Trusted } else { Trust::Untrusted },
            caller: Caller { client, ..Caller::default() },
            ..asker.server_facts(&instance)
        };
        if action != Action::Call {
            return Some(asker.guard.preview_access(&facts, action, name).await);
        }
        let definition = listed(&instance)?.iter().find(|definition| definition.name() == name)?.clone();
        let call = CallFacts { facts, definition: &definition, arguments };
        Some(asker.guard.preview_call(&call).await)
    }

    /// Compares the tools of the servers with their pins, ordered by name. Starts no server. Empty if definitions are not compared.
    ///
    /// Reads the file of pins.
    pub async fn pins(&self) -> Result<Vec<ServerToolPins>, StoreError> {
        let Some(pins) = self.inner.asker.guard.pins().cloned() else { return Ok(Vec::new()) };
        let read = pins.clone();
        // The file is read, which other tasks must not wait for.
        let refreshed = tokio::task::spawn_blocking(move || read.refresh()).await;
        written(refreshed)?;
        let members = self.inner.router.members();
        let servers = members.iter().map(|member| {
            let instance = member.instance(&CallerKey::User(None));
            ServerToolPins { server: member.name.to_string(), tools: self.compare(&pins, &instance) }
        });
        Ok(servers.collect())
    }

    fn compare(&self, pins: &Pins, instance: &Instance) -> Vec<ToolPin> {
        let key = self.pin_key(instance);
        let listed = listed(instance);
        let mut tools = BTreeMap::new();
        let pinned = pins.list().into_iter().filter(|pinned| pinned.key == key);
        for (tool, _) in pinned.flat_map(|pinned| pinned.tools) {
            let status = if listed.is_some() { ToolPinStatus::Removed } else { ToolPinStatus::Unknown };
            tools.insert(tool.clone(), ToolPin { tool, listed: None, status });
        }
        for definition in listed.iter().flat_map(|listed| listed.iter()) {
            let tool = definition.name().to_owned();
            let status = match pins.status(&key, definition) {
                PinStatus::Same => ToolPinStatus::Same,
                PinStatus::Changed { diff } => ToolPinStatus::Changed { diff },
                _ => ToolPinStatus::New,
            };
            let listed = Some(definition.digest().to_string());
            tools.insert(tool.clone(), ToolPin { tool, listed, status });
        }
        tools.into_values().collect()
    }

    /// Accepts the definition of a tool, if it is still the one with this digest.
    pub async fn accept_pin(&self, server: &str, tool: &str, digest: &str) -> Result<(), AcceptError> {
        let instance = self.instance(server).ok_or(AcceptError::Unknown)?;
        let pins = self.inner.asker.guard.pins().cloned().ok_or(AcceptError::Unknown)?;
        let definitions = listed(&instance).ok_or(AcceptError::Unknown)?;
        let definition = definitions.iter().find(|definition| definition.name() == tool);
        let definition = definition.ok_or(AcceptError::Unknown)?.clone();
        if definition.digest().as_str() != digest {
            return Err(AcceptError::Changed);
        }
        let key = self.pin_key(&instance);
        let accepted = tokio::task::spawn_blocking(move || pins.accept(&key, &[definition])).await;
        written(accepted).map_err(AcceptError::Store)
    }

    fn pin_key(&self, instance: &Instance) -> PinKey {
        match self.inner.asker.server_facts(instance).identity {
            Some(identity) => PinKey::new(&*instance.name, identity),
            None => PinKey::from(&*instance.name),
        }
    }

    fn instance(&self, server: &str) -> Option<Arc<Instance>> {
        let members = self.inner.router.members();
        let member = members.iter().find(|member| &*member.name == server)?;
        Some(member.instance(&CallerKey::User(None)))
    }
}

/// Returns the definitions that a server listed last.
fn listed(instance: &Instance) -> Option<Arc<Vec<Definition>>> {
    instance.lists.tools.last_known().map(|tools| instance.lists.definitions(&tools))
}

/// Returns the result of reading or writing the file of pins. If that panicked, nothing is known of it.
fn written(result: Result<Result<(), StoreError>, tokio::task::JoinError>) -> Result<(), StoreError> {
    result.unwrap_or_else(|error| {
        tracing::error!(%error, "the file of pins cannot be used");
        Err(StoreError::new("the file of pins", format!("it cannot be used: {error}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_not_taken_for_success() {
        let done = tokio::task::spawn_blocking(|| Ok(())).await;
        assert!(written(done).is_ok());
        let panicked = tokio::task::spawn_blocking(|| panic!("while it was written")).await;
        let error = written(panicked).unwrap_err().to_string();
        assert!(error.starts_with("the file of pins: it cannot be used: "), "{error}");
    }
}
