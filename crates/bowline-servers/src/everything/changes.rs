//! Tools that change what the server offers and trigger notifications.

use super::resources::WATCHED;
use bowline::prelude::*;

/// The registry of the running server.
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
    /// Change the tool list and change it back.
    #[tool]
    fn test_trigger_tool_change(&self) -> Result<&'static str> {
        self.registry.add_tool(Tool::new("passing").handler(|| "gone soon"))?;
        self.registry.remove_tool("passing");
        Ok("the tool list changed")
    }

    /// Change the prompt list and change it back.
    #[tool]
    fn test_trigger_prompt_change(&self) -> Result<&'static str> {
        self.registry.add_prompt(Prompt::new("passing").handler(|| "gone soon"))?;
        self.registry.remove_prompt("passing");
        Ok("the prompt list changed")
    }

    /// Update the watched resource and notify its subscribers.
    #[tool(title = "Touch")]
    fn touch(&self) -> &'static str {
        self.registry.resource_updated(WATCHED);
        "the watched resource changed"
    }
}
