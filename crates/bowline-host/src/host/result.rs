//! Converts the results of servers, and refusals of the host, to outcomes for the caller.

use super::{REFUSED, custom::own_result, route::Route};
use bowline_proto::service::{MethodName, Outcome, Reply};
use bowline_types::{
    CacheScope, CallToolResult, ContentBlock, Meta, Method, RawJson, ReadResourceResult, RpcError,
};

/// Converts the result of a server. All its members are kept; it is adapted to the revision of the caller later.
pub(super) fn outcome(route: &Route, method: &MethodName, result: &RawJson) -> Outcome {
    match reply(route, method, result) {
        Ok(reply) => Outcome::Complete(reply),
        Err(error) => {
            let name = &route.instance.name;
            Outcome::Failed(RpcError::internal(format!(
                "the server `{name}` sent an invalid result: {error}"
            )))
        }
    }
}

fn reply(route: &Route, method: &MethodName, result: &RawJson) -> serde_json::Result<Reply> {
    Ok(match method.known() {
        Some(Method::CallTool) => {
            let mut found: CallToolResult = result.decode()?;
            // Only the host may ask in its own name.
            found.result_type = None;
            found.extra.remove("inputRequests");
            found.extra.remove("requestState");
            if route.catalog.renames_uris(&route.instance) {
                found.content.iter_mut().for_each(|block| rename_uri(route, block));
            }
            Reply::Tool(Box::new(found))
        }
        Some(Method::ReadResource) => {
            let mut found: ReadResourceResult = result.decode()?;
            found.result_type = None;
            // The policy decides per caller who may read it.
            found.cache_scope = found.cache_scope.map(|_| CacheScope::Private);
            if route.catalog.renames_uris(&route.instance) {
                for contents in &mut found.contents {
                    let shown = route.catalog.shown_uri(&route.instance, contents.uri());
                    contents.set_uri(shown);
                }
            }
            Reply::Resource(Box::new(found))
        }
        Some(Method::GetPrompt) => Reply::Prompt(Box::new(result.decode()?)),
        Some(Method::Complete) => Reply::Completion(Box::new(result.decode()?)),
        None => own_result(result)?,
        Some(_) => Reply::Raw(result.clone()),
    })
}

fn rename_uri(route: &Route, block: &mut ContentBlock) {
    match block {
        ContentBlock::ResourceLink(link) => {
            link.uri = route.catalog.shown_uri(&route.instance, &link.uri);
        }
        ContentBlock::Resource(embedded) => {
            let shown = route.catalog.shown_uri(&route.instance, embedded.resource.uri());
            embedded.resource.set_uri(shown);
        }
        _ => {}
    }
}

/// Returns the outcome of a call that is refused. The refusal of a tool call is a tool result, so that the model can read it.
pub(super) fn refused(method: &MethodName, reason: &str) -> Outcome {
    if *method == Method::CallTool {
        let mut result = CallToolResult::error(reason);
        result
            .meta
            .get_or_insert_with(Meta::new)
            .insert(REFUSED, RawJson::from(serde_json::Value::Bool(true)));
        return Outcome::Complete(Reply::Tool(Box::new(result)));
    }
    Outcome::Failed(RpcError::internal(reason.to_owned()).with_data(serde_json::json!({ REFUSED: true })))
}
