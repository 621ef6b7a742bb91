//! What servers offer, and whether arguments fit.

use super::ItemKind;
use crate::{form::FormProblem, render::Shown};
use serde::Serialize;

/// Items of all servers.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Entries {
    /// One group per server, by name.
    pub servers: Vec<ServerEntries>,
}

/// Items of one server.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ServerEntries {
    /// The server.
    pub server: String,
    /// Its items: tools, resources, templates, prompts, each in the server's order.
    pub items: Vec<Entry>,
    /// How many tools are hidden by the configuration.
    pub hidden: usize,
    /// Why the lists could not be read, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Shown>,
}

/// One item.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Entry {
    /// Its kind.
    pub kind: ItemKind,
    /// Its name on the server, exactly; the URI of a resource, the template of a template. Send this back.
    pub name: String,
    /// The name to show.
    pub label: Shown,
    /// The name under which clients of the gateway know it.
    pub gateway_name: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Shown>,
    /// Its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Shown>,
    /// What the server says about a tool, as words: `read-only`, `destructive`, `idempotent`, `open world`.
    pub hints: Vec<String>,
    /// MIME type of a resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime: Option<Shown>,
    /// Size of a resource in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// How many required arguments it has.
    pub required: usize,
    /// Whether the tool has an output schema.
    pub has_output_schema: bool,
    /// About how many tokens its definition costs.
    pub tokens: usize,
}

/// Errors of arguments.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Checked {
    /// The errors by position. Empty if the arguments are valid.
    pub problems: Vec<FormProblem>,
}
