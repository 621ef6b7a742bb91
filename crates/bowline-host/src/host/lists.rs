//! Answers list requests.

use super::{Inner, router::Wait};
use crate::upstream::CallerKey;
use bowline_proto::service::{Call, Outcome, Reply};
use bowline_types::{
    Adapt, CacheScope, Era, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, Meta, Method, RawJson, RawMap, RpcError,
};

/// The `_meta` key for the names of servers that are still starting.
const STARTING: &str = "bowline/starting";

/// Builds a list result of the given type.
macro_rules! listing {
    ($Result:ident, $items:ident: $value:expr, $call:expr, $meta:expr) => {{
        let modern = $call.client.revision.era() == Era::Modern;
        let mut result = $Result::default();
        result.$items = $value;
        // Lists depend on the caller and may change at any time.
        result.meta = $meta;
        result.ttl_ms = modern.then_some(0);
        result.cache_scope = modern.then_some(CacheScope::Private);
        result.adapt($call.client.revision);
        RawJson::of(&result)
    }};
}

impl Inner {
    /// Answers a list request with one page. It covers the servers that are running; clients are notified when others follow.
    pub(super) async fn list(&self, call: Call) -> Outcome {
        match call.params.cursor() {
            Ok(None) => {}
            Ok(Some(_)) => {
                return Outcome::Failed(RpcError::invalid_params(
                    "invalid `cursor`: lists of this host have one page",
                ));
            }
            Err(error) => return Outcome::Failed(error),
        }
        let tenant = CallerKey::tenant(&call);
        let catalog = self.router.catalog(&tenant, Wait::Briefly).await;
        let starting = self.router.starting(&tenant);
        if !starting.is_empty() {
            self.router.report_starting(&tenant);
        }
        let meta = starting_meta(&starting);
        let result = match call.method.known() {
            Some(Method::ListTools) => {
                let mut tools = self.listed_tools(&call.client, &catalog);
                tools.extend(self.asker.pending_tools(&call.client, self.router.max_name));
                tools.extend(self.connect_tools(&tenant));
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

/// Returns metadata that names the servers that are still starting, whose tools are missing.
fn starting_meta(starting: &[String]) -> Option<Meta> {
    if starting.is_empty() {
        return None;
    }
    let mut members = RawMap::new();
    members.insert(STARTING, RawJson::of(&starting).ok()?);
    Some(members.into())
}
