//! Tools that change what the server offers, so that those who listen hear of it.

use super::resources::WATCHED;
use bowline::prelude::*;

/// What is offered, to be changed while it is.
pub(super) struct Changes {
    registry: Registry,
}

impl Changes {
    pub(super) fn new(registry: Registry) -> Self {
        Self { registry }
    }
}

#[tools]
impl Changes {
    /// Change the list of tools, and back again.
    #[tool]
    fn test_trigger_tool_change(&self) -> Result<&'static str> {
        self.registry.add_tool(Tool::new("passing").handler(|| "gone soon"))?;
        self.registry.remove_tool("passing");
        Ok("the list of tools has changed")
    }

    /// Change the list of prompts, and back again.
    #[tool]
    fn test_trigger_prompt_change(&self) -> Result<&'static str> {
        self.registry.add_prompt(Prompt::new("passing").handler(|| "gone soon"))?;
        self.registry.remove_prompt("passing");
        Ok("the list of prompts has changed")
    }

    /// Change the watched resource, so that its subscribers hear of it.
    #[tool(title = "Touch")]
    fn touch(&self) -> &'static str {
        self.registry.resource_updated(WATCHED);
        "the watched resource has changed"
    }
}
