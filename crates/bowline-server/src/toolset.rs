//! Handlers that share a state.

use crate::{Prompt, Resource, Tool};
use std::sync::Arc;

/// Tools, prompts and resources that are added to a server together.
#[derive(Debug, Default)]
pub struct Entries {
    pub(crate) tools: Vec<Tool>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) resources: Vec<Resource>,
}

impl Entries {
    /// Adds a tool.
    pub fn add_tool(&mut self, tool: Tool) {
        self.tools.push(tool);
    }

    /// Adds a prompt.
    pub fn add_prompt(&mut self, prompt: Prompt) {
        self.prompts.push(prompt);
    }

    /// Adds a resource or template.
    pub fn add_resource(&mut self, resource: Resource) {
        self.resources.push(resource);
    }

    /// Adds everything of `other`.
    pub fn append(&mut self, other: Self) {
        self.tools.extend(other.tools);
        self.prompts.extend(other.prompts);
        self.resources.extend(other.resources);
    }
}

/// A state whose methods are tools, prompts and resources: `#[tools]` on an `impl` block implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no tools",
    label = "put `#[tools]` on one of its `impl` blocks",
    note = "`#[tools(part = name)]` alone is not enough: another block of the type includes the part"
)]
pub trait Toolset: Send + Sync + 'static {
    /// Returns what the state offers.
    fn into_entries(self: Arc<Self>) -> Entries;
}

#[diagnostic::do_not_recommend]
impl<T: Toolset> Toolset for Arc<T> {
    fn into_entries(self: Arc<Self>) -> Entries {
        T::into_entries(Self::clone(&self))
    }
}
