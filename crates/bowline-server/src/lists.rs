//! Lists and their pages: encoded once per revision, served as bytes until they change.

use crate::{
    dispatch::Core,
    registry::{Encoded, Snapshot},
    tool::{Guard, ReadyTool},
};
use bowline_proto::{
    lines,
    pagination::{self, Cursor},
    server::CacheHint,
    service::{Call, ClientView, Reply},
};
use bowline_types::{
    Adapt, CacheScope, Era, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, Meta, Method, RawJson, Resource, ResultType, Revision, RpcError, meta, write_json,
};
use bytes::Bytes;
use serde::Serialize;
use std::borrow::Cow;

/// The common members of the four list results.
struct Page {
    next_cursor: Option<String>,
    cache: Option<CacheHint>,
    result_type: Option<ResultType>,
    meta: Option<Meta>,
}

/// Builds a list result of the given type from its items and a page.
macro_rules! listing {
    ($Result:ident, $items:ident: $value:expr, $page:expr, $revision:expr) => {{
        let page: Page = $page;
        let mut result = $Result::default();
        result.$items = $value;
        result.next_cursor = page.next_cursor;
        result.result_type = page.result_type;
        result.meta = page.meta;
        result.ttl_ms = page.cache.as_ref().map(|cache| cache.ttl_ms);
        result.cache_scope = page.cache.map(|cache| cache.scope);
        result.adapt($revision);
        encode(&result)
    }};
}

fn encode<T: Serialize>(result: &T) -> Result<Bytes, RpcError> {
    let mut bytes = Vec::with_capacity(1024);
    write_json(&mut bytes, result).map_err(|error| RpcError::internal(error.to_string()))?;
    lines::join(&mut bytes);
    Ok(bytes.into())
}

/// Answers a list request. `found` are the resources of the sources.
pub(crate) fn list(
    core: &Core,
    snapshot: &Snapshot,
    call: &Call,
    found: &[Resource],
) -> Result<Reply, RpcError> {
    let client = &*call.client;
    let bytes = match call.method.known() {
        Some(Method::ListTools) => {
            let entries = snapshot.tools.as_slice();
            let guarded = entries.iter().any(|tool| tool.guard.is_some());
            cached(call, guarded, &snapshot.tool_list, || {
                let seen: Vec<_> = entries
                    .iter()
                    .filter(|tool| allows(tool.guard.as_ref(), client) && is_callable(tool, client))
                    .collect();
                let (shown, page) = core.page(call, "tools", &seen, |tool| &tool.name, guarded)?;
                // An invalid tool is reported when it is called, and does not hide the others.
                let usable = shown.iter().filter_map(|tool| tool.prepared().ok());
                let tools = usable.map(|prepared| prepared.definition.clone()).collect();
                listing!(ListToolsResult, tools: tools, page, client.revision)
            })
        }
        Some(Method::ListPrompts) => {
            let entries = snapshot.prompts.as_slice();
            let guarded = entries.iter().any(|prompt| prompt.guard.is_some());
            cached(call, guarded, &snapshot.prompt_list, || {
                let seen: Vec<_> =
                    entries.iter().filter(|prompt| allows(prompt.guard.as_ref(), client)).collect();
                let (shown, page) =
                    core.page(call, "prompts", &seen, |prompt| &prompt.definition.name, guarded)?;
                let prompts = shown.iter().map(|prompt| prompt.definition.clone()).collect();
                listing!(ListPromptsResult, prompts: prompts, page, client.revision)
            })
        }
        Some(Method::ListResourceTemplates) => {
            let entries = snapshot.templates.as_slice();
            let guarded = entries.iter().any(|template| template.guard.is_some());
            cached(call, guarded, &snapshot.template_list, || {
                let seen: Vec<_> =
                    entries.iter().filter(|template| allows(template.guard.as_ref(), client)).collect();
                let (shown, page) =
                    core.page(call, "templates", &seen, |template| template.uri(), guarded)?;
                let resource_templates =
                    shown.iter().map(|template| template.template_definition()).collect();
                listing!(ListResourceTemplatesResult, resource_templates: resource_templates, page, client.revision)
            })
        }
        _ => {
            let entries = snapshot.resources.as_slice();
            let guarded =
                !snapshot.sources.is_empty() || entries.iter().any(|resource| resource.guard.is_some());
            cached(call, guarded, &snapshot.resource_list, || {
                let fixed = entries.iter().filter(|resource| allows(resource.guard.as_ref(), client));
                let mut seen: Vec<_> = fixed.map(|resource| resource.definition()).collect();
                seen.extend(found);
                let (shown, page) = core.page(call, "resources", &seen, |resource| &resource.uri, guarded)?;
                let resources = shown.iter().map(|resource| (*resource).clone()).collect();
                listing!(ListResourcesResult, resources: resources, page, client.revision)
            })
        }
    }?;
    Ok(Reply::Encoded(bytes))
}

/// Returns whether a client can call a tool: revisions without tasks have no way to call one that runs only as a task.
fn is_callable(tool: &ReadyTool, client: &ClientView) -> bool {
    #[cfg(feature = "tasks")]
    return client.revision >= Revision::V2025_11_25 || tool.task.as_ref().is_none_or(|task| !task.required);
    #[cfg(not(feature = "tasks"))]
    {
        let _ = (tool, client);
        true
    }
}

/// Returns whether a caller may see an entry.
pub(crate) fn allows(guard: Option<&Guard>, client: &ClientView) -> bool {
    guard.is_none_or(|guard| guard(client))
}

/// Returns the first page. It is the same for all callers unless entries are guarded, so it is encoded once per
/// revision.
fn cached(
    call: &Call,
    guarded: bool,
    encoded: &Encoded,
    build: impl FnOnce() -> Result<Bytes, RpcError>,
) -> Result<Bytes, RpcError> {
    let slot = encoded.get(call.client.revision as usize);
    let (false, None, Some(slot)) = (guarded, call.params.cursor()?, slot) else { return build() };
    if let Some(bytes) = slot.get() {
        return Ok(bytes.clone());
    }
    let bytes = build()?;
    Ok(slot.get_or_init(|| bytes).clone())
}

impl Core {
    /// Returns the entries of the requested page, and the other members of the result.
    fn page<'a, T>(
        &self,
        call: &Call,
        list: &'static str,
        entries: &'a [T],
        key: impl Fn(&T) -> &str,
        guarded: bool,
    ) -> Result<(&'a [T], Page), RpcError> {
        let cursor = call.params.cursor()?;
        let keys = &self.profile.keys;
        // A list that depends on the caller has cursors that only this caller can use.
        let list = match &call.client.principal {
            Some(principal) if guarded => Cow::Owned(format!("{list} of {principal}")),
            _ => Cow::Borrowed(list),
        };
        let cursor = cursor
            .map(|cursor| Cursor::decode(keys, &list, &cursor))
            .transpose()
            .map_err(|error| RpcError::invalid_params(format!("`cursor`: {error}")))?;
        let (shown, next) = pagination::page(entries, key, cursor.as_ref(), self.page_size);
        let next_cursor = next.map(|next| next.encode(keys, &list));
        let modern = call.client.revision.era() == Era::Modern;
        let mut cache = self.list_cache.clone();
        if guarded {
            // A list that depends on the caller is private.
            cache.scope = CacheScope::Private;
        }
        let page = Page {
            next_cursor,
            cache: modern.then_some(cache),
            result_type: modern.then_some(ResultType::Complete),
            meta: modern.then(|| self.result_meta()),
        };
        Ok((shown, page))
    }

    fn result_meta(&self) -> Meta {
        let mut result = Meta::default();
        if let Ok(info) = RawJson::of(&self.profile.info) {
            result.insert(meta::key::SERVER_INFO, info);
        }
        result
    }
}

const _: () = assert!(Revision::ALL.len() == 5, "one encoded list per revision");
