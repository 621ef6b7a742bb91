//! Lists of everything that is offered.

use super::{Inner, Wait};
use crate::upstream::CallerKey;
use bowline_proto::service::{Call, Outcome, Reply};
use bowline_types::{
    Adapt, CacheScope, Era, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, Method, RawJson, RpcError,
};

/// Builds a list result of the given type.
macro_rules! listing {
    ($Result:ident, $items:ident: $value:expr, $call:expr) => {{
        let modern = $call.client.revision.era() == Era::Modern;
        let mut result = $Result { $items: $value, ..$Result::default() };
        // What is offered depends on the caller, and may change at any time.
        result.ttl_ms = modern.then_some(0);
        result.cache_scope = modern.then_some(CacheScope::Private);
        result.adapt($call.client.revision);
        RawJson::of(&result)
    }};
}

impl Inner {
    /// Answers a list request. All of it is one page. It is of the servers that are up: clients are told when there are more.
    pub(super) async fn list(&self, call: Call) -> Outcome {
        match call.params.cursor() {
            Ok(None) => {}
            Ok(Some(_)) => {
                return Outcome::Failed(RpcError::invalid_params("`cursor`: there is one page only"));
            }
            Err(error) => return Outcome::Failed(error),
        }
        let catalog = self.catalog(&CallerKey::tenant(&call), Wait::Briefly).await;
        let result = match call.method {
            Method::ListTools => {
                let mut tools = self.listed(&call.client, &catalog);
                tools.extend(self.pending_tools(&call.client));
                listing!(ListToolsResult, tools: tools, call)
            }
            Method::ListPrompts => {
                let prompts = catalog.prompts.iter().map(|entry| entry.shown.clone()).collect();
                listing!(ListPromptsResult, prompts: prompts, call)
            }
            Method::ListResourceTemplates => {
                let templates = catalog.templates.iter().map(|(entry, _)| entry.shown.clone()).collect();
                listing!(ListResourceTemplatesResult, resource_templates: templates, call)
            }
            _ => {
                let resources = catalog.resources.iter().map(|entry| entry.shown.clone()).collect();
                listing!(ListResourcesResult, resources: resources, call)
            }
        };
        match result {
            Ok(result) => Outcome::Complete(Reply::Raw(result)),
            Err(error) => Outcome::Failed(RpcError::internal(error.to_string())),
        }
    }
}
