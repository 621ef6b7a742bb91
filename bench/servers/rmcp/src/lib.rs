//! The benchmark server on rmcp: echo, add and 100 dummy tools.
#[cfg(feature = "macros")]
pub mod macros;

use rmcp::{
    ErrorData, Json, ServerHandler,
    handler::server::{
        router::tool::{ToolRoute, ToolRouter},
        wrapper::Parameters,
    },
    model::{CallToolResult, ContentBlock, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool},
    service::SubscriptionContext,
    tool, tool_handler, tool_router,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, LazyLock};

/// Parsed once, so that building a router costs what it costs with `#[tool]` functions
/// (whose schemas rmcp caches): clones, boxed handlers and map insertions.
static DUMMIES: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let all: Vec<Tool> = serde_json::from_str(include_str!("../../tools.json")).expect("tools.json");
    all.into_iter().filter(|t| t.name.starts_with("dummy")).collect()
});

#[derive(Deserialize, JsonSchema)]
pub struct EchoArgs {
    /// Text to return
    pub message: String,
}

#[derive(Deserialize, JsonSchema)]
pub struct AddArgs {
    pub a: f64,
    pub b: f64,
}

#[derive(Serialize, JsonSchema)]
pub struct Sum {
    pub sum: f64,
}

#[derive(Clone)]
pub struct Bench {
    router: Arc<ToolRouter<Bench>>,
}

impl Default for Bench {
    fn default() -> Self {
        Self::new()
    }
}

#[tool_router]
impl Bench {
    /// Builds the router anew, as the SDK's examples do in their service factories.
    pub fn new() -> Self {
        let mut router = Self::tool_router();
        for tool in DUMMIES.iter() {
            router.add_route(ToolRoute::new_dyn(tool.clone(), |_ctx| {
                Box::pin(async { Ok(CallToolResult::success(vec![ContentBlock::text("ok")]).into()) })
            }));
        }
        Self { router: Arc::new(router) }
    }

    #[tool(description = "Returns the message unchanged.")]
    async fn echo(&self, Parameters(EchoArgs { message }): Parameters<EchoArgs>) -> String {
        message
    }

    #[tool(description = "Adds two numbers.")]
    async fn add(&self, Parameters(AddArgs { a, b }): Parameters<AddArgs>) -> Json<Sum> {
        Json(Sum { sum: a + b })
    }
}

#[tool_handler(router = self.router)]
impl ServerHandler for Bench {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        context.cancelled().await;
        Ok(())
    }
}
