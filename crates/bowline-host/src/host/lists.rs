//! Lists of everything that is offered.

use super::{Inner, Wait};
use crate::upstream::CallerKey;
use bowline_proto::service::{Call, Outcome, Reply};
use bowline_types::{
    Adapt, CacheScope, Era, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, Meta, Method, RawJson, RawMap, RpcError,
};

/// The member of `_meta` that names the servers that are still starting.
const STARTING: &str = "bowline/starting";

/// Builds a list result of the given type.
macro_rules! listing {
    ($Result:ident, $items:ident: $value:expr, $call:expr, $meta:expr) => {{
        let modern = $call.client.revision.era() == Era::Modern;
        let mut result = $Result { $items: $value, ..$Result::default() };
        // What is offered depends on the caller, and may change at any time.
        result.meta = $meta;
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
        let tenant = CallerKey::tenant(&call);
        let catalog = self.catalog(&tenant, Wait::Briefly).await;
        let starting = self.starting(&tenant);
        if !starting.is_empty() {
            let servers = starting.join(", ");
            tracing::debug!(servers, method = %call.method, "a list is incomplete: servers are still starting");
        }
        let meta = starting_meta(&starting);
        let result = match call.method.known() {
            Some(Method::ListTools) => {
                let mut tools = self.listed(&call.client, &catalog);
                tools.extend(self.pending_tools(&call.client));
                listing!(ListToolsResult, tools: tools, call, meta)
            }
            Some(Method::ListPrompts) => {
                let prompts = catalog.prompts.iter().map(|entry| entry.shown.clone()).collect();
                listing!(ListPromptsResult, prompts: prompts, call, meta)
            }
            Some(Method::ListResourceTemplates) => {
                let templates = catalog.templates.iter().map(|(entry, _)| entry.shown.clone()).collect();
                listing!(ListResourceTemplatesResult, resource_templates: templates, call, meta)
            }
            _ => {
                let resources = catalog.resources.iter().map(|entry| entry.shown.clone()).collect();
                listing!(ListResourcesResult, resources: resources, call, meta)
            }
        };
        match result {
            Ok(result) => Outcome::Complete(Reply::Raw(result)),
            Err(error) => Outcome::Failed(RpcError::internal(error.to_string())),
        }
    }
}

/// Says in the metadata of a list which servers are still starting, so that a reader knows what is missing.
fn starting_meta(starting: &[String]) -> Option<Meta> {
    if starting.is_empty() {
        return None;
    }
    let mut members = RawMap::new();
    members.insert(STARTING, RawJson::of(&starting).ok()?);
    Some(members.into())
}
