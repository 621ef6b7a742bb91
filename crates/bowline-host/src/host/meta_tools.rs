//! The meta tools: which clients are listed them, and what they do.
//!
//! They bypass nothing: a search finds only what would be listed, and a call through `call_tool` continues as a normal call,
//! with the same rules, pins and questions.

use super::{Inner, router::Wait};
use crate::{aggregate::Catalog, upstream::CallerKey};
use bowline_proto::{
    params::Params,
    service::{Call, ClientView},
};
use bowline_search::{
    Decision, Listing, MetaCall, MetaTool, Reason, describe_tool, no_such_tool, search_result,
};
use bowline_types::{CallToolResult, RawJson, RpcError, Tool};
use std::sync::{Arc, PoisonError};

/// What a call of a meta tool comes to.
pub(super) enum Resolved {
    /// The call of another tool, with these parameters.
    Call(Params),
    /// The result.
    Answer(CallToolResult),
}

impl Inner {
    /// Returns the tools that a client is listed.
    pub(super) fn listed_tools(&self, client: &ClientView, catalog: &Catalog) -> Vec<Tool> {
        match self.listing(client, catalog).listing {
            Listing::Whole => catalog.tools.iter().map(|tool| tool.entry.shown.clone()).collect(),
            Listing::Search => catalog.search_listing(),
        }
    }

    fn listing(&self, client: &ClientView, catalog: &Catalog) -> Decision {
        let disclosure = Arc::clone(&self.disclosure.read().unwrap_or_else(PoisonError::into_inner));
        disclosure.decide(client.info().map(|info| info.name.as_str()), catalog.tokens())
    }

    /// Answers a call of a meta tool, and unwraps one of `call_tool`. `None` if the caller has no meta tools.
    pub(super) async fn resolve_meta_tool(
        &self,
        tool: MetaTool,
        call: &Call,
    ) -> Result<Option<Resolved>, RpcError> {
        let tenant = CallerKey::tenant(call);
        let mut catalog = self.router.catalog(&tenant, Wait::IfIncomplete).await;
        let decision = self.listing(&call.client, &catalog);
        // A client that was listed the meta tools may use them after the number of tools has shrunk.
        if decision.listing == Listing::Whole && decision.reason != Reason::Small {
            return Ok(None);
        }
        let arguments = call.params.arguments()?;
        let meta_call = match MetaCall::parse(tool, arguments.as_ref()) {
            Ok(meta_call) => meta_call,
            Err(error) => return Ok(Some(Resolved::Answer(error.into()))),
        };
        if let MetaCall::Describe { name } | MetaCall::Call { name, .. } = &meta_call
            && catalog.tool(name).is_none()
        {
            // A name contains the name of its server, so other servers need not be running.
            catalog = self.router.catalog(&tenant, Wait::Owners(name)).await;
        }
        let unknown = |name: &str| {
            Resolved::Answer(no_such_tool(name, &catalog.search().tools, &catalog.search().index))
        };
        Ok(Some(match meta_call {
            MetaCall::Search { query, limit } => {
                let search = catalog.search();
                Resolved::Answer(search_result(&search.tools, &search.index.search(&query, limit)))
            }
            MetaCall::Describe { name } => match catalog.tool(&name) {
                Some(tool) => Resolved::Answer(describe_tool(&tool.entry.shown)),
                None => unknown(&name),
            },
            MetaCall::Call { name, arguments } => match catalog.tool(&name) {
                Some(_) => Resolved::Call(unwrapped(call, &name, arguments)?),
                None => unknown(&name),
            },
        }))
    }
}

/// Returns the parameters of the wrapped call.
fn unwrapped(call: &Call, name: &str, arguments: RawJson) -> Result<Params, RpcError> {
    let invalid = |error: serde_json::Error| RpcError::invalid_params(error.to_string());
    let mut members = call.params.raw().members().map_err(invalid)?;
    members.insert("name", RawJson::of(name).map_err(invalid)?);
    members.insert("arguments", arguments);
    Params::parse(RawJson::of(&members).map_err(invalid)?)
}
